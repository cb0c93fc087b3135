"""Reading keys, and SIGINT at awkward moments."""

import importlib
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from tinychat.repl.keys import ESCAPE_TIMEOUT, Keyboard, counted_interrupts, raised_interrupts
from tinychat.repl.prompt import ask


def test_an_esc_is_a_key_if_nothing_follows(input: PipeInput) -> None:
    times = iter([0.0, 1.0, 1.0, 1.0 + 2 * ESCAPE_TIMEOUT])
    keyboard = Keyboard(input, lambda: next(times))
    input.send_text("\x1b")
    assert keyboard.read(1) == []
    assert keyboard.is_undecided
    assert keyboard.read() == []
    assert keyboard.is_undecided
    assert [key.key for key in keyboard.read()] == [Keys.Escape]
    assert not keyboard.is_undecided


def test_an_arrow_key_may_arrive_in_pieces(input: PipeInput) -> None:
    keyboard = Keyboard(input, lambda: 0.0)
    input.send_text("\x1b")
    assert keyboard.read(1) == []
    input.send_text("[A")
    assert [key.key for key in keyboard.read(1)] == [Keys.Up]
    assert not keyboard.is_undecided


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_counted_interrupts_do_not_raise() -> None:
    with counted_interrupts() as interrupts:
        interrupt()
        interrupt()
    assert interrupts.count == 2


def test_an_interrupt_is_raised_once_and_clean_up_is_not_interrupted() -> None:
    def follow() -> None:
        try:
            interrupt()
        finally:
            interrupt()

    with counted_interrupts(), raised_interrupts(), pytest.raises(KeyboardInterrupt) as raised:
        follow()
    assert raised.value.__context__ is None


def test_an_import_is_not_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        importlib.import_module("interrupted")
        time.sleep(30)

    (tmp_path / "interrupted.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with counted_interrupts(), raised_interrupts(), pytest.raises(KeyboardInterrupt):
        load()
    assert sys.modules.pop("interrupted").whole


class Awkward:
    def __del__(self) -> None:
        interrupt()


def test_an_interrupt_in_a_finalizer_is_raised_later(capfd: pytest.CaptureFixture[str]) -> None:
    def collect() -> None:
        Awkward()
        time.sleep(30)

    def forget() -> None:
        held = {"it": threading.Event()}
        reference = weakref.ref(held["it"], lambda _: interrupt())
        held.clear()
        time.sleep(30)
        assert reference

    for awkward in (collect, forget):
        with counted_interrupts(), raised_interrupts(), pytest.raises(KeyboardInterrupt):
            awkward()
    assert "Exception ignored" not in capfd.readouterr().err


def test_a_prompt_can_be_interrupted_before_it_is_on_screen() -> None:
    with create_pipe_input() as input:
        prompt: PromptSession[str] = PromptSession(input=input, output=DummyOutput())
        with pytest.raises(KeyboardInterrupt):
            ask(prompt, on_start=interrupt)
        input.send_text("in time\r")
        assert ask(prompt) == "in time"
