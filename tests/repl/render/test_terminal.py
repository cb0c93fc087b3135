"""The terminal: colours, truncated texts, the status line and regions redrawn in place."""

import io
import itertools
import random
import re
import textwrap

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from screens import Screen

from tinychat.repl.render.palette import ERROR
from tinychat.repl.render.terminal import (
    RESIZE_SECONDS,
    STATUS_INTERVAL,
    Region,
    StatusLine,
    Terminal,
    advance,
    fit,
    spinner,
)


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
def test_colours_and_control_sequences_depend_on_the_environment(
    environment: dict[str, str], options: dict[str, object], colour: bool, dumb: bool
) -> None:
    terminal = Terminal.standard(io.StringIO(), environment, **options)  # type: ignore[arg-type]
    assert (terminal.colour, terminal.dumb) == (colour, dumb)


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

    monkeypatch.setattr("tinychat.repl.render.terminal.get_cwidth", counted)
    assert fit("ab " * 10_000, 20) == "ab ab ab ab ab ab a…"
    assert sum(map(len, measured)) == 21


def test_the_status_stays_at_the_bottom_while_text_scrolls_above_it() -> None:
    screen = Screen(20, 6)
    terminal = screen.terminal()
    with StatusLine(terminal) as status:
        for number in range(12):
            with terminal.batch():
                terminal.write(f"line {number}\n")
                status.show(f"status {number}")
            assert screen.lines[-1] == f"status {number}"
    assert screen.lines == [f"line {number}" for number in range(8, 12)]
    terminal.line("after")
    assert screen.lines[-1] == "after"


def test_the_text_scrolls_up_when_the_cursor_is_on_the_last_row() -> None:
    screen = Screen(20, 6)
    terminal = screen.terminal()
    terminal.write("\n" * 9 + "text")
    with StatusLine(terminal) as status:
        status.show("status")
        assert screen.lines[-2:] == ["text", "status"]
        terminal.write(" goes on")
        assert screen.lines[-2:] == ["text goes on", "status"]
    assert screen.lines[-1] == "text goes on"


def test_a_full_line_is_not_disturbed() -> None:
    screen = Screen(20, 6)
    terminal = screen.terminal()
    with StatusLine(terminal) as status:
        for letter in "abcdefghijklmnopqrstuvwxyz":
            terminal.write(letter)
            status.show(f"status {letter}")
    assert screen.lines == ["abcdefghijklmnopqrst", "uvwxyz"]


@pytest.mark.parametrize("seed", range(4))
def test_resizing_loses_nothing_and_leaves_nothing_behind(seed: int) -> None:
    """What the program writes before it knows of a new size is drawn in a window that has it."""
    draw, screen = random.Random(seed), Screen(40, 12)
    known = (40, 12)
    terminal = Terminal(screen, lambda: known, colour=True)
    with StatusLine(terminal) as status:
        for number in range(300):
            if draw.random() < 0.3:
                screen.screen.resize(draw.randint(6, 30), draw.randint(20, 90))
            with terminal.batch():
                terminal.write(f"line {number}" + draw.choice(("\n", "\n", "\n\n")))
                status.show(f"status {number} · and more that may be cut off")
            if draw.random() < 0.5:
                known = (screen.screen.columns, screen.screen.lines)
    assert [line for line in screen.screen.everything if line] == [f"line {number}" for number in range(300)]
    assert re.search("\x1b\\[\\d*;\\d*r", screen.getvalue()) is None  # no margins that outlive the program


def test_beside_a_long_line_the_status_waits_until_the_window_is_at_rest() -> None:
    now, screen = [0.0], Screen(40, 10)
    terminal = screen.terminal()
    with StatusLine(terminal, lambda: now[0]) as status:
        terminal.write("a line that is not at its end " * 2)
        status.show("status 1")
        assert screen.lines[-1] == "status 1"
        status.show("status 2")
        assert screen.lines[-1] == "status 1"
        status.show("status 3", at_once=True)
        assert screen.lines[-1] == "status 3"
        now[0] += STATUS_INTERVAL
        status.show("status 4")
        assert screen.lines[-1] == "status 4"
        screen.screen.resize(14, 30)
        status.show("status 5")
        terminal.write("and on")
        assert "status 5" not in screen.getvalue()
        now[0] += RESIZE_SECONDS
        status.show("status 6")
        assert screen.lines[-1] == "status 6"
        assert len(screen.screen.display) == 14
    assert "status" not in "".join(screen.lines)


@pytest.mark.parametrize("width", [20, 31, 40])
def test_a_line_wraps_by_itself_at_every_column_beside_the_status(width: int) -> None:
    """Moving the cursor while the next character is to wrap would overwrite the last one."""
    screen = Screen(width, 6)
    terminal = screen.terminal()
    text = "".join(chr(33 + number % 90) for number in range(width * 4))
    with StatusLine(terminal, itertools.count().__next__) as status:
        for char in text:
            with terminal.batch():
                terminal.write(char)
                status.show(f"status {char}", at_once=True)
    assert "".join(screen.screen.everything) == text


WORDS = "The brave little fox found a lantern under the old bridge, and nobody knew who had left it there. " * 3


@pytest.mark.parametrize(("width", "size"), [(20, 1), (31, 3), (40, 7), (80, 1000)])
def test_a_text_wraps_at_words_however_it_arrives(width: int, size: int) -> None:
    screen = Screen(width, 6)
    terminal = screen.terminal(colour=True)
    with StatusLine(terminal, itertools.count().__next__) as status:
        for start in range(0, len(WORDS), size):
            with terminal.batch():
                terminal.flow(WORDS[start : start + size], ERROR if start % 2 else "")
                status.show(f"status {start}", at_once=True)
        terminal.fresh_line()
    assert screen.screen.everything == textwrap.wrap(WORDS, width - 1)
    terminal.line(WORDS.strip())
    assert screen.screen.everything == textwrap.wrap(WORDS, width - 1) * 2


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("one two three", ["one two", "three"]),
        ("one two 3", ["one two 3"]),  # a row may be full at the end of a line, but not before a space
        ("one two 3 ", ["one two", "3"]),
        ("  indent\n\n    text", ["  indent", "", "    text"]),
        ("a abcdefghijklmnopqrst b", ["a abcdefg", "hijklmnop", "qrst b"]),  # it fits on no row
        ("中文字符，也可以。", ["中文字", "符，也可", "以。"]),  # it wraps beside each, but not before punctuation
        ("ab 中文 word", ["ab 中文", "word"]),
        ("one x\u0301x\u0301x\u0301x\u0301 two", ["one x\u0301x\u0301x\u0301x\u0301", "two"]),
        ("one two\xa03 four", ["one", "two\xa03", "four"]),
    ],
)
def test_where_a_line_wraps(text: str, rows: list[str]) -> None:
    screen = Screen(9, 12)
    terminal = screen.terminal()
    for char in text:
        terminal.flow(char)
    terminal.fresh_line()
    whole = Screen(9, 12)
    whole.terminal().line(text)
    assert [line.rstrip() for line in screen.lines] == rows == [line.rstrip() for line in whole.lines]


@given(st.text("ab你"), st.integers(2, 9), st.data())
def test_the_column_is_that_of_a_screen(text: str, width: int, data: st.DataObject) -> None:
    screen, column = Screen(width, 9), data.draw(st.integers(0, width))
    screen.write("x" * column)
    screen.write(text)
    assert advance(column, text, width) == screen.screen.cursor.x


def test_a_word_that_goes_on_is_shown_where_there_is_room_for_more_of_it() -> None:
    screen = Screen(24, 8)
    terminal = screen.terminal()
    for part in ("some words and an inter", "national one, ", "x", "y"):
        terminal.flow(part)
        terminal.show_word(may_go_on=True)
    assert screen.lines == ["some words and an", "international one,", "xy"]
    terminal.flow(" then a word")
    assert screen.lines[2:] == ["xy then a"]
    terminal.flow("abcdefghijklmnopqrstuvwx")  # too long to wait for its end
    assert screen.lines[2:] == ["xy then a wordabcdefghij", "klmnopqrstuvwx"]


def test_a_wrapped_line_stays_one_line_to_the_terminal() -> None:
    """The row wraps by a character that does not fit, not by a newline; where that shows a sign, by a space."""
    screen, console = Screen(9, 6), Screen(9, 6)
    screen.terminal().line("one two three")
    assert screen.getvalue() == "one two \x1b[999C\u3000\u3000\rt\x1b[Jhree\n"
    Terminal(console, lambda: (9, 6), colour=False, has_wide_blank=False).line("one two three")
    assert console.getvalue() == "one two \x1b[999C  \rt\x1b[Jhree\n"
    assert screen.lines == console.lines == ["one two", "three"]
    cuts = pyte.Screen(9, 6)  # a wide character in the last column
    pyte.Stream(cuts).feed(screen.getvalue().replace("\n", "\r\n"))
    assert [line.rstrip() for line in cuts.display[:3]] == ["one two", "three", ""]


@pytest.mark.parametrize("sizes", [(30, 60, 90), (90, 60, 30), (40, 90, 25)])
def test_text_wraps_at_words_after_each_resize(sizes: tuple[int, ...]) -> None:
    screen = Screen(50, 40)
    terminal = screen.terminal()
    now = [0.0]
    with StatusLine(terminal, lambda: now[0]) as status:
        for number, width in enumerate((50, *sizes)):
            screen.screen.resize(40, width)
            status.show("resized")
            now[0] += 2 * RESIZE_SECONDS
            status.show("at rest")
            assert terminal.column == 0  # known again
            for word in [f"w{number}{'x' * (index % 7)} " for index in range(40)]:
                with terminal.batch():
                    terminal.flow(word)
                    status.show(f"status {word}", at_once=True)
    rows = [row.split() for row in screen.screen.everything]
    last = [word for row in rows for word in row if word.startswith("w3")]
    assert last == [f"w3{'x' * (index % 7)}" for index in range(40)]


@pytest.mark.parametrize(("columns", "rows", "dumb"), [(80, 5, False), (19, 24, False), (80, 24, True)])
def test_a_small_or_dumb_screen_has_no_status_line(columns: int, rows: int, dumb: bool) -> None:
    screen = Screen(columns, rows)
    with StatusLine(screen.terminal(dumb=dumb)) as status:
        status.show("status")
        assert not status.is_visible
    assert screen.getvalue() == ""


def test_a_region_is_drawn_in_place_and_left_at_the_end() -> None:
    screen = Screen(20, 8)
    terminal = screen.terminal()
    terminal.line("before")
    region = Region(terminal)
    region.draw(["one", "two", "three"])
    region.draw(["\x1b[1mONE\x1b[0m", "TWO"])
    assert screen.lines == ["before", "ONE", "TWO"]
    region.erase()
    terminal.line("between")
    region.draw(["1"])
    assert screen.screen.cursor.hidden
    region.leave(["one"])
    assert not screen.screen.cursor.hidden
    region.draw(["2"])
    assert screen.lines == ["before", "between", "one", "2"]


def test_a_spinner_turns_on_a_line_of_its_own_that_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = iter("abc")
    monkeypatch.setattr("tinychat.repl.render.terminal.spin", lambda: next(pictures))
    screen = Screen(20, 8)
    terminal = screen.terminal()
    terminal.line("before")
    with spinner(terminal, "torch is loading") as turn:
        assert screen.lines == ["before", "a torch is loading"]
        screen.screen.resize(columns=12)
        turn()
        assert screen.lines == ["before", "b torch is…"]
        turn()
        assert screen.lines == ["before", "c torch is…"]
    assert screen.lines == ["before"]
    assert not screen.screen.cursor.hidden
    with spinner(screen.terminal(dumb=True), "torch") as turn:
        turn()
    assert screen.lines == ["before", "torch"]


@pytest.mark.parametrize("seed", range(4))
def test_a_region_keeps_to_itself_while_the_window_is_resized(seed: int) -> None:
    """Nothing above it is erased, and nothing of it stays."""
    draw, screen = random.Random(seed), Screen(60, 12)
    terminal = screen.terminal()
    above = [f"above {number}" for number in range(draw.randint(1, 14))]
    for line in above:
        terminal.line(line)
    region = Region(terminal)
    for number in range(60):
        width, height = terminal.size()
        region.draw([f"{number} {'wide' * 30}"[: width - 1]] * draw.randint(1, min(6, height - 1)))
        screen.screen.resize(draw.randint(7, 20), draw.randint(20, 90))
    region.leave(["the end"])
    assert screen.screen.everything == [*above, "the end"]
