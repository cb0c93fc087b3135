"""What a terminal is told of colours."""

import io

import pytest
from rich.text import Text
from screens import Screen

from tinychat.repl.terminal import CYAN, RED, RESET, YELLOW, Terminal


@pytest.mark.parametrize(
    ("environment", "options", "colour", "dumb"),
    [
        ({"TERM": "xterm"}, {}, True, False),
        ({"TERM": "xterm"}, {"theme": "light"}, True, False),
        ({"TERM": "xterm"}, {"theme": "none"}, False, False),
        ({"TERM": "xterm"}, {"plain": True}, False, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, {"theme": "light"}, False, False),
        ({"TERM": "dumb"}, {}, False, True),
    ],
)
def test_who_has_colours_and_who_lines_alone(
    environment: dict[str, str], options: dict[str, object], colour: bool, dumb: bool
) -> None:
    terminal = Terminal.standard(io.StringIO(), environment, **options)  # type: ignore[arg-type]
    assert (terminal.colour, terminal.dumb) == (colour, dumb)


def test_on_a_light_background_colours_are_dark() -> None:
    screen = Screen()
    terminal = Terminal(screen, lambda: (80, 24), colour=True, theme="light")
    terminal.write("a", CYAN)
    terminal.write("b", RED)
    terminal.write("c", YELLOW)
    terminal.show(Text("d", "bold yellow"))
    assert screen.getvalue() == f"\x1b[38;5;30ma{RESET}{RED}b{RESET}\x1b[38;5;94mc{RESET}\n\x1b[1;38;5;94md{RESET}\n"
