"""Heat maps as drawn on a screen."""

import textwrap

import pytest
from screens import Screen

from tinychat.commands.results import HeatMap, HeatMaps, SmallMap
from tinychat.repl.render.heatmap import HOW_TO_READ_MAP, HOW_TO_READ_MAPS, resize
from tinychat.repl.render.palette import DIM, THEMES
from tinychat.repl.render.results import draw

TOKENS = ("ROM", "⏎", "a", "语")


def lower(size: int) -> tuple[tuple[float, ...], ...]:
    """Return lower triangular weights: each row gives 0.95 to itself and 0.05 to the first column."""
    return tuple(
        tuple(0.95 if column == row else 0.05 * (column == 0) for column in range(row + 1)) for row in range(size)
    )


def drawn(result: HeatMap | HeatMaps, columns: int = 80, rows: int = 24, *, colour: bool = False) -> Screen:
    screen = Screen(columns, 200)
    terminal = screen.terminal(colour=colour)
    terminal.size = lambda: (columns, rows)
    draw(terminal, result)
    return screen


def test_a_map_has_its_labels_at_its_sides_and_above() -> None:
    heat = HeatMap("layer 1 head 1", TOKENS, TOKENS, lower(4), notes=("a note",))
    assert drawn(heat).lines == [
        "layer 1 head 1",
        "    R",
        "    O",
        "    M ⏎ a 语",
        "ROM ██",
        "⏎   ░░██",
        "a   ░░··██",
        "语  ░░····██",
        "· 0  ░ 3  ▒ 10  ▓ 25  █ 50 % or more",
        "a note",
        HOW_TO_READ_MAP,
    ]


def test_a_long_title_goes_on_in_a_second_line_at_a_whole_fact() -> None:
    heat = HeatMap("layer 1 head 1 · first 13 % · 4.4 tokens back · entropy 2.5 bits", TOKENS, TOKENS, lower(4))
    assert drawn(heat, 40).lines[:2] == ["layer 1 head 1 · first 13 %", "4.4 tokens back · entropy 2.5 bits"]


def test_a_drawing_leaves_room_for_what_follows_it() -> None:
    maps = HeatMaps("title", tuple(tuple(SmallMap("caption", lower(40)) for _ in range(4)) for _ in range(4)))
    heights = []
    for rows_below in (0, 6):
        screen = Screen(100, 60)
        terminal = screen.terminal(colour=True)
        terminal.size, terminal.rows_below = lambda: (100, 30), rows_below
        draw(terminal, maps)
        heights.append(len(screen.lines))
    assert heights == [23, 19]


def test_a_map_too_large_shows_its_newest_part_and_sums_up_the_rest() -> None:
    letters = tuple("abcdefghijklmnopqrstuvwxyz")
    heat = HeatMap("title", letters, letters, lower(26))
    lines = drawn(heat, 20, 15).lines
    assert lines[1] == "  …klmnopqrstuvwxyz"
    assert [line[0] for line in lines[2:8]] == list("uvwxyz")
    assert lines[7] == "z ░···············█"
    assert all(len(line) < 20 for line in lines[:8])
    assert "the newest 6 of 26 rows the newest 16 of 26 columns" in " ".join(lines)


def test_colours_are_brighter_for_more() -> None:
    raw = drawn(HeatMap("title", ("a", "b"), ("a", "b"), ((1.0,), (0.04, 0.96))), colour=True).getvalue().split("\n")
    assert raw[2] == "a \x1b[48;5;229m  \x1b[0m"
    assert raw[3] == "b \x1b[48;5;90m  \x1b[0m\x1b[48;5;229m  \x1b[0m"


def test_the_labels_of_the_prompt_are_dim() -> None:
    raw = drawn(HeatMap("title", ("a", "b"), ("a", "b"), ((1.0,), (0.5, 0.5)), marked=1), colour=True).getvalue()
    assert f"{THEMES['dark'].apply(DIM)}a \x1b[0m" in raw
    assert "\nb \x1b[48" in raw


def test_control_characters_in_labels_do_nothing() -> None:
    labels = ("\x1b[31m", "\x07")
    raw = drawn(HeatMap("title", labels, labels, ((1.0,), (0.5, 0.5)))).getvalue()
    assert "\x1b" not in raw
    assert "\x07" not in raw


SMALL = HeatMaps(
    "all heads",
    tuple(tuple(SmallMap(f"{row} {index} first 95 %", lower(4)) for index in (1, 2)) for row in (1, 2)),
    ("more",),
)


def test_small_maps_stand_in_a_grid_under_their_captions() -> None:
    assert drawn(SMALL, 40, 18).lines == [
        "all heads",
        "1 1 first 95 %     1 2 first 95 %",
        "████               ████",
        "░░░░████           ░░░░████",
        "░░░░····████       ░░░░····████",
        "░░░░········████   ░░░░········████",
        "2 1 first 95 %     2 2 first 95 %",
        "████               ████",
        "░░░░████           ░░░░████",
        "░░░░····████       ░░░░····████",
        "░░░░········████   ░░░░········████",
        "· 0  ░ 3  ▒ 10  ▓ 25  █ 50 % or more",
        "more",
        *textwrap.wrap(HOW_TO_READ_MAPS, 39),
    ]


def test_in_colours_two_rows_share_a_line() -> None:
    screen = drawn(HeatMaps("t", ((SmallMap("1 1", lower(4)),),)), 12, 10, colour=True)
    assert screen.lines[2:4] == ["▀▀▄▄", "▀▀▀▀▀▀▄▄"]
    assert "\x1b[38;5;229;48;5;90m▀" in screen.getvalue()


def test_a_row_or_a_column_of_maps_is_folded_as_it_fits() -> None:
    maps = tuple(SmallMap(f"1 {index}", lower(8)) for index in range(1, 5))
    for grid in ((maps,), tuple((one,) for one in maps)):
        wide = [line for line in drawn(HeatMaps("t", grid), 80, 12).lines if line.startswith("1 ")]
        assert [line.split() for line in wide] == [["1", "1", "1", "2", "1", "3", "1", "4"]]
        tall = [line for line in drawn(HeatMaps("t", grid), 50, 40).lines if line.startswith("1 ")]
        assert [line.split() for line in tall] == [["1", "1", "1", "2"], ["1", "3", "1", "4"]]


def test_too_many_maps_are_shown_by_their_captions() -> None:
    grid = tuple(tuple(SmallMap(f"{row} {index} first 9 %", lower(4)) for index in range(1, 9)) for row in range(1, 13))
    lines = drawn(HeatMaps("t", grid, ("more",))).lines
    assert lines[1].split("   ") == [f"1 {index} first 9 %" for index in range(1, 5)]
    assert len(lines) == 1 + 12 * 2 + 1
    assert "█" not in "".join(lines)


def test_a_map_is_made_smaller_without_losing_weight_and_larger_by_repeating() -> None:
    cells = lower(6)
    small = resize(cells, 3, 2)
    assert [sum(value for value in row if value is not None) for row in small] == pytest.approx([0.975, 1, 1])
    assert small[0][1] is None
    assert resize(((1.0,),), 99, 99) == [[1.0] * 6] * 6
    assert resize(((1.0,), (0.5, 0.5)), 4, 7) == [[1.0] * 3 + [None] * 3] * 2 + [[0.5] * 6] * 2


def test_in_plain_lines_a_row_names_its_largest_columns() -> None:
    screen = Screen()
    heat = HeatMap("title", ("a", "b"), ("w", "x", "y", "z"), ((1.0, 0, 0, 0), (0.1, 0.5, 0.15, 0.25)), marked=1)
    draw(screen.terminal(dumb=True), heat)
    draw(screen.terminal(dumb=True), SMALL)
    captions = [f"{row} {index} first 95 %" for row in (1, 2) for index in (1, 2)]
    assert screen.lines == ["title", "b: x 50.0 %, z 25.0 %, y 15.0 %", "all heads", *captions, "more"]
