"""Plots as text: ticks, curves in braille and sparklines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.repl.render.plot import Series, Span, plot, plot_all, sparkline, tick_labels, ticks


@pytest.mark.parametrize(
    ("low", "high", "most", "texts"),
    [
        (0, 4000, 4, ["0", "1,000", "2,000", "3,000", "4,000"]),
        (1.26, 2.1, 4, ["1.5", "2.0"]),
        (0.999, 1.004, 5, ["0.999", "1.000", "1.001", "1.002", "1.003", "1.004"]),
        (1, 3, 10, ["1.0", "1.2", "1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6", "2.8", "3.0"]),
        (7, 7, 5, ["7"]),
    ],
)
def test_tick_labels_have_as_many_decimals_as_they_need(low: float, high: float, most: int, texts: list[str]) -> None:
    assert tick_labels(ticks(low, high, most)) == texts


def test_ticks_are_at_least_a_step_apart() -> None:
    assert ticks(1, 3, 10, least_step=1) == [1, 2, 3]


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9), st.integers(1, 50))
def test_ticks_lie_within_the_range_and_are_few(low: float, span: float, most: int) -> None:
    values = ticks(low, low + span, most)
    assert len(values) <= most + 1
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in values)


def test_a_falling_curve() -> None:
    points = [(0, 2.0), (100, 1.9), (200, 1.7), (300, 1.3), (400, 1.25)]
    assert plot(points, 26, 6, [(200, 1.9), (400, 1.6)]) == [
        "  2.0┤⠉⠑⠒⠒⠤⠤⡀   ◆",
        "     │      ⠈⠉⠢⠤⡀",
        "     │          ⠈⠢⡀      ◆",
        "  1.5┤            ⠑⢄",
        "     │              ⠑⠒⠤⠤⢄⣀",
        "      0        200     400",
    ]


def test_a_steep_beginning_comes_from_above_so_that_the_rest_is_seen() -> None:
    points = [(step, 1.5 + 0.5 * math.exp(-step / 100) + 3 * math.exp(-step / 2)) for step in range(1, 400)]
    lines = plot(points, 40, 10)
    assert lines[2].startswith("  1.8┤")
    assert lines[6].startswith("  1.6┤")
    assert sum(any(cell > "\u2800" for cell in line[6:]) for line in lines[:-1]) == 9  # the whole height


def test_close_values_have_more_digits() -> None:
    assert [line[:6] for line in plot([(1, 1.5), (2, 1.4995)], 20, 3)] == ["1.500┤", "1.500┤", "      "]
    assert plot([(1, 123.456), (2, 123.46)], 20, 3)[0].startswith("123.5┤")
    assert plot([(1, 1e7), (2, 1.0)], 20, 3)[0].startswith("1e+07┤")


def test_curves_over_each_other_are_told_apart_by_dashes_and_marks() -> None:
    falling = Series([(x, 2 - x / 40) for x in range(41)], [(40, 1.0)])
    flat = Series([(0, 1.5), (40, 1.5)], [(20, 1.5)], "●", (2, 2))
    lines = plot_all([falling, flat], 26, 6)
    assert ["".join(span.text for span in line).rstrip() for line in lines] == [
        "  2.0┤⠉⠒⠢⢄⣀",
        "     │     ⠉⠑⠢⢄⣀",
        "  1.5┤⠉ ⠉ ⠉ ⠉ ⠉ ●⠢⢍⡀⠉ ⠉ ⠉",
        "     │             ⠈⠑⠢⣀",
        "  1.0┤                 ⠉⠢◆",
        "      0   10   20  30   40",
    ]
    assert {span.text.strip(): span.series for span in lines[2]}["●"] == 1
    assert lines[4][-1] == Span("⠉⠢◆", 0)


def test_nothing_is_drawn_without_points_or_room() -> None:
    assert plot([], 40, 8) == []
    assert plot([(1, 1.0)], 8, 8) == []
    assert plot([(1, float("nan"))], 40, 8) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e6)), max_size=50),
    st.integers(10, 120),
    st.integers(2, 30),
)
def test_a_plot_keeps_within_its_bounds(points: list[tuple[int, float]], width: int, height: int) -> None:
    lines = plot(sorted(points), width, height)
    assert len(lines) in (0, height)
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("values", "line"),
    [([], ""), ([0.0, 0.0], "▁▁"), ([0, 1, 2, 4, 8], "▁▂▃▅█"), ([1, 0, 0, 0, 0, 0, 8, 0, 4, 0], "▂▁▁█▅")],
)
def test_a_sparkline_keeps_the_peaks_where_there_is_no_room_for_all(values: list[float], line: str) -> None:
    assert sparkline(values, 5) == line
