"""Reading keys, editing lines and blocks with them, and SIGINT at awkward moments."""

import importlib
import os
import select
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.input import PipeInput, create_input, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from tinychat.errors import UsageError
from tinychat.repl.keys import (
    ESCAPE_TIMEOUT,
    Keyboard,
    LineEditor,
    counted_interrupts,
    find_editor,
    is_open_block,
    raised_interrupts,
    run_above_prompt,
    wants_vi,
)
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


@pytest.mark.parametrize("is_for_prompt", [True, False])
def test_lines_that_the_terminal_edited_are_kept_for_the_prompt(is_for_prompt: bool) -> None:
    master, slave = os.openpty()
    with os.fdopen(slave, encoding="utf-8") as terminal:
        os.write(master, b"one\rtwo\rthree")
        assert select.select([terminal], [], [], 10)[0]  # the terminal edits what comes in a thread of its own
        keyboard = Keyboard(create_input(terminal))
        with keyboard.live(is_early_for_prompt=is_for_prompt):
            keys = keyboard.read()
    os.close(master)
    if is_for_prompt:
        assert keys == []
        assert [keyboard.pop_line() for _ in range(3)] == [("one", True), ("two", True), ("three", False)]
    else:
        assert "".join(key.data for key in keys) == "one\ntwo\nthree"


def test_a_program_that_was_suspended_goes_on_without_echo() -> None:
    import termios

    master, slave = os.openpty()
    with os.fdopen(slave, encoding="utf-8") as terminal:
        keyboard, of_shell = Keyboard(create_input(terminal)), termios.tcgetattr(slave)

        def echoes_after_being_continued() -> bool:
            termios.tcsetattr(slave, termios.TCSANOW, of_shell)
            signal.raise_signal(signal.SIGCONT)
            return bool(termios.tcgetattr(slave)[3] & termios.ECHO)

        with keyboard.no_echo():
            assert not echoes_after_being_continued()
            with keyboard.handed_over():  # to a program that sets its own
                assert echoes_after_being_continued()
            assert not echoes_after_being_continued()
        assert echoes_after_being_continued()
    os.close(master)


def press(*keys: Keys | str, previous: str = "") -> LineEditor:
    editor = LineEditor(previous)
    for key in keys:
        for one in [key] if isinstance(key, Keys) else key:
            editor.press(KeyPress(one))
    return editor


@pytest.mark.parametrize(
    ("keys", "text", "view"),
    [
        (["king"], "king", "king▏"),
        (["king", Keys.Left, Keys.Left, "x", Keys.Backspace], "king", "ki▏ng"),
        (["king", Keys.Home, Keys.Left, Keys.Delete, Keys.End, "s", Keys.Right], "ings", "ings▏"),
        (["the king", Keys.ControlW], "the ", "the ▏"),
        (["the king", Keys.ControlA, "O ", Keys.ControlK], "O ", "O ▏"),
        (["the king", Keys.ControlU, Keys.ControlW, Keys.Backspace], "", "▏"),
        (["ROMEO:", Keys.ControlJ, Keys.F1], "ROMEO:\n", "ROMEO:↵▏"),
    ],
)
def test_keys_type_delete_and_move(keys: list[Keys | str], text: str, view: str) -> None:
    editor = press(*keys)
    assert editor.text == text
    assert editor.view(40) == view


def test_up_recalls_the_previous_text() -> None:
    assert press("x", Keys.Up, "!", previous="ROMEO:").text == "ROMEO:!"


def test_a_pasted_text_keeps_its_lines() -> None:
    editor = LineEditor()
    editor.press(KeyPress(Keys.BracketedPaste, "one\r\ntwo\rq\x1b[31m"))
    assert editor.text == "one\ntwo\nq\x1b[31m"
    assert "\x1b" not in editor.view(40)


def test_a_long_line_scrolls_to_its_cursor() -> None:
    editor = press("abcdefghij", *[Keys.Left] * 3)
    assert editor.view(6) == "defg▏h"
    assert press("王" * 10).view(9) == "王" * 4 + "▏"
    assert press(*["abcdefghij", Keys.Home]).view(4) == "▏abc"
    assert [press("王a").view(width) for width in (2, 1, 0, -3)] == ["a▏", "▏", "", ""]


@pytest.mark.parametrize(
    ("text", "open"), [('"""', True), ('"""a', True), ('"""a"""', False), ('""""""', False), ("", False)]
)
def test_blocks_open_and_close(text: str, open: bool) -> None:
    assert is_open_block(text) is open


def test_vi_keys_follow_the_inputrc(tmp_path: Path) -> None:
    file = tmp_path / "inputrc"
    assert not wants_vi("auto", {"INPUTRC": str(file)})
    file.write_text("# set editing-mode vi\nset bell-style none\n")
    assert not wants_vi("auto", {"INPUTRC": str(file)})
    file.write_text("set editing-mode vi\n")
    assert wants_vi("auto", {"INPUTRC": str(file)})
    assert not wants_vi("emacs", {"INPUTRC": str(file)})
    assert wants_vi("vi", {})


def test_a_missing_editor_is_an_error() -> None:
    assert find_editor({"VISUAL": "sh -e", "EDITOR": "nowhere"}) == "sh -e"
    with pytest.raises(UsageError, match="EDITOR is 'nowhere -x', which is no program here"):
        find_editor({"EDITOR": "nowhere -x"})


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


def test_keys_typed_while_something_is_written_above_the_prompt_are_kept_unseen() -> None:
    master, slave = os.openpty()
    echoes: list[int] = []
    rescue = threading.Timer(5, lambda: os.write(master, b"\r"))  # an Enter that was lost

    def write() -> None:
        os.read(master, 100)  # the echo of what was typed before the prompt
        os.write(master, b"twice\x7f\x7f\x7fo\r")
        echoes.extend(select.select([master], [], [], 0.1)[0])

    with os.fdopen(slave, encoding="utf-8") as terminal:
        bindings = KeyBindings()
        bindings.add("f1")(lambda event: run_above_prompt(write))
        prompt: PromptSession[str] = PromptSession(
            input=create_input(terminal), output=DummyOutput(), key_bindings=bindings
        )
        os.write(master, b"one \x1bOP")
        rescue.start()
        assert ask(prompt) == "one two"
        rescue.cancel()
    os.close(master)
    assert not echoes


def test_a_prompt_can_be_interrupted_before_it_is_on_screen() -> None:
    with create_pipe_input() as input:
        prompt: PromptSession[str] = PromptSession(input=input, output=DummyOutput())
        with pytest.raises(KeyboardInterrupt):
            ask(prompt, on_start=interrupt)
        input.send_text("in time\r")
        assert ask(prompt) == "in time"
