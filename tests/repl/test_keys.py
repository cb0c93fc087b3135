"""Keys as they come.

The interrupt signal at awkward moments.
"""

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


def test_an_esc_is_one_when_nothing_follows(input: PipeInput) -> None:
    times = iter([0.0, 1.0, 1.0, 1.0 + 2 * ESCAPE_TIMEOUT])
    keyboard = Keyboard(input, lambda: next(times))
    input.send_text("\x1b")
    assert keyboard.read(1) == []
    assert keyboard.is_undecided
    assert keyboard.read() == []
    assert keyboard.is_undecided
    assert [key.key for key in keyboard.read()] == [Keys.Escape]
    assert not keyboard.is_undecided


def test_an_arrow_key_may_come_in_pieces(input: PipeInput) -> None:
    keyboard = Keyboard(input, lambda: 0.0)
    input.send_text("\x1b")
    assert keyboard.read(1) == []
    input.send_text("[A")
    assert [key.key for key in keyboard.read(1)] == [Keys.Up]
    assert not keyboard.is_undecided


# ---- from tests.repl.test_keys ----


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_it_is_counted_and_breaks_nothing_off() -> None:
    with counted_interrupts() as interrupts:
        interrupt()
        interrupt()
    assert interrupts.count == 2


def test_it_is_raised_once_so_that_the_next_does_not_break_off_what_follows() -> None:
    def follow() -> None:
        try:
            interrupt()
        finally:
            interrupt()

    with counted_interrupts(), raised_interrupts(), pytest.raises(KeyboardInterrupt) as raised:
        follow()
    assert raised.value.__context__ is None


def test_a_module_that_is_being_imported_is_whole_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_it_comes_a_moment_later_where_nothing_can_be_raised(capfd: pytest.CaptureFixture[str]) -> None:
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


def test_a_prompt_ends_by_it_before_it_is_on_screen() -> None:
    with create_pipe_input() as input:
        prompt: PromptSession[str] = PromptSession(input=input, output=DummyOutput())
        with pytest.raises(KeyboardInterrupt):
            ask(prompt, on_start=interrupt)
        input.send_text("in time\r")
        assert ask(prompt) == "in time"
