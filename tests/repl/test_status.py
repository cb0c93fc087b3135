"""The line at the bottom, and text that flows above it."""

import pytest
from screens import Screen

from tinychat.repl.region import Region
from tinychat.repl.status import StatusLine


def test_the_status_stays_at_the_bottom_while_text_scrolls_above_it() -> None:
    screen = Screen(20, 6)
    terminal = screen.terminal()
    with StatusLine(terminal) as status:
        for number in range(12):
            status.show(f"status {number}")
            terminal.write(f"line {number}\n")
            assert screen.lines[-1] == f"status {number}"
    assert screen.lines == [f"line {number}" for number in range(8, 12)]
    terminal.line("after")
    assert screen.lines[-1] == "after"


def test_it_makes_room_when_the_cursor_is_on_the_last_row() -> None:
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


def test_a_window_of_another_size_gets_its_line_at_the_new_bottom_with_the_next_line() -> None:
    screen = Screen(40, 10)
    terminal = screen.terminal()
    with StatusLine(terminal) as status:
        terminal.write("te")
        status.show("status")
        screen.screen.resize(14, 30)
        status.show("status")
        terminal.write("xt")
        assert screen.lines == ["text"]
        assert not status.is_there
        terminal.write("\n")
        status.show("status")
        assert screen.lines == ["text", *[""] * 12, "status"]
    assert screen.lines == ["text"]


@pytest.mark.parametrize(("columns", "rows", "dumb"), [(80, 5, False), (19, 24, False), (80, 24, True)])
def test_there_is_none_where_there_is_no_room_for_it(columns: int, rows: int, dumb: bool) -> None:
    screen = Screen(columns, rows)
    with StatusLine(screen.terminal(dumb=dumb)) as status:
        status.show("status")
        assert not status.is_there
    assert screen.getvalue() == ""


def test_a_region_is_drawn_in_place_also_in_a_narrower_window() -> None:
    screen = Screen(20, 8)
    terminal = screen.terminal()
    terminal.line("before")
    region = Region(terminal)
    region.draw(["one", "two", "three"])
    region.draw(["\x1b[1mONE\x1b[0m", "TWO"])
    assert screen.lines == ["before", "ONE", "TWO"]
    region.wipe()
    terminal.line("between")
    region.draw(["1"])
    region.leave()
    region.draw(["2"])
    assert screen.lines == ["before", "between", "1", "2"]
