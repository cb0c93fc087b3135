"""What a terminal is told of colours."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from rich.text import Text
from screens import Screen

from tinychat.repl.terminal import CYAN, RED, RESET, YELLOW, Terminal, fit


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


@given(text=st.text("ab你\u0301\n\x1b"), width=st.integers(-1, 12))
def test_a_text_is_cut_to_the_longest_beginning_that_fits_with_its_dots(text: str, width: int) -> None:
    one_line = text.replace("\n", " ").replace("\x1b", "␛")
    beginnings = [one_line[:end] for end in range(len(one_line) + 1)]
    if get_cwidth(one_line) <= width:
        assert fit(text, width) == one_line
    elif width > 0:
        assert fit(text, width) == max((one for one in beginnings if get_cwidth(one) < width), key=len) + "…"
    else:
        assert fit(text, width) == ""


def test_what_is_cut_off_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def counted(text: str) -> int:
        measured.append(text)
        return get_cwidth(text)

    monkeypatch.setattr("tinychat.repl.terminal.get_cwidth", counted)
    assert fit("ab " * 10_000, 20) == "ab ab ab ab ab ab a…"
    assert sum(map(len, measured)) == 21
