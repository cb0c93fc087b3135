"""Keys as they come."""

from prompt_toolkit.input import PipeInput
from prompt_toolkit.keys import Keys

from tinychat.repl.keyboard import ESCAPE_WAIT, Keyboard


def test_an_esc_is_one_when_nothing_follows(input: PipeInput) -> None:
    times = iter([0.0, 1.0, 1.0, 1.0 + 2 * ESCAPE_WAIT])
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
