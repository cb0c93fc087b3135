"""Plots: ticks, curves in braille, sparklines, and loss curves of several runs on a screen and as pictures."""

import io
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from screens import Screen

from tinychat.commands.results import LossCurve, Plot
from tinychat.repl.render.palette import CURVES, THEMES
from tinychat.repl.render.plot import (
    LABEL_WIDTH,
    Series,
    Span,
    blocks,
    draw_curves,
    legend,
    plot,
    plot_all,
    tick_labels,
    ticks,
    write_picture,
)


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
    slack = 1e-6 * span + 2 * math.ulp(low + span)  # a float has no digits for less
    assert all(low - slack <= value <= low + span + slack for value in values)


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


@pytest.mark.parametrize(
    ("left", "right", "columns", "labels"),
    [
        (0.038, 0.0705, 36, "0.04       0.05       0.06      0.07"),
        (0.038, 0.0705, 64, "  0.040     0.045    0.050     0.055     0.060    0.065    0.070"),
        (0.0, 0.99, 41, "0.0    0.2     0.4     0.6     0.8"),
        (0.0, 4000.0, 64, "0             1,000           2,000          3,000         4,000"),
    ],
)
def test_labels_of_the_x_axis_have_an_even_distance(left: float, right: float, columns: int, labels: str) -> None:
    assert plot([(left, 2.0), (right, 1.0)], LABEL_WIDTH + columns, 6)[-1][LABEL_WIDTH:] == labels


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


@pytest.mark.parametrize(("values", "line"), [([], ""), ([0.0, 0.0], "▁▁"), ([0, 1, 2, 4, 8], "▁▂▃▅█")])
def test_blocks_are_as_high_as_their_values(values: list[float], line: str) -> None:
    assert blocks(values) == line


# --- loss curves of several runs ---


ONE = LossCurve("one", tuple((step, 2 - step / 40) for step in range(0, 41, 4)), ((20, 1.4), (40, 1.45)))
TWO = LossCurve("two & <b>", tuple((step, 1.8 - step / 80) for step in range(0, 21, 4)), ((20, 1.6),))
SVG = "{http://www.w3.org/2000/svg}"


def plot_curves(plot: Plot, columns: int = 40, rows: int = 18, *, colour: bool = False) -> Screen:
    screen = Screen(columns, rows)
    draw_curves(screen.terminal(colour=colour), plot)
    return screen


def test_two_runs_on_a_small_screen_without_colour() -> None:
    assert plot_curves(Plot((ONE, TWO))).lines == [
        "loss by steps · nats per token",
        "  2.0┤⣉⡒⠢⠤⠤⣀⣀⡀",
        "     │ ⠈  ⠉⠒ ⠈⠫⠵⠒⠤⣄⣀  ●",
        "  1.5┤             ⠈⠉⠢⠥⣀⣀             ◆",
        "     │                ◆  ⠉⠑⠒⠢⠤⡀",
        "     │                        ⠈⠉⠢⠤⡀",
        "  1.0┤                            ⠈⠉⠒⠤⣀",
        "      0      10      20      30      40",
        "lower is better · curve: train, marks:…",
        "⠤⠤⠤⠤ ◆ one · train 1.000 · val 1.450, …",
        "⠤⠤   ● two & <b> · train 1.550 · val 1…",
    ]


def test_with_colour_each_run_has_its_own_in_curve_and_legend() -> None:
    plain, coloured = plot_curves(Plot((ONE, TWO)), 80, 24), plot_curves(Plot((ONE, TWO)), 80, 24, colour=True)
    first, second = map(THEMES["dark"].apply, CURVES[:2])
    assert f"{first}⠤⠤⠤⠤ ◆\x1b[0m one · train" in coloured.getvalue()
    assert f"{second}⠤⠤⠤⠤ ●\x1b[0m two & <b> · train" in coloured.getvalue()
    assert "●\x1b[0m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()
    assert len(coloured.lines) <= 24 - 6  # room for the prompt and its menu


def test_marks_of_many_evaluations_do_not_hide_the_curve() -> None:
    many = LossCurve("many", ONE.training, tuple((step / 10, 1.5) for step in range(400)))
    text = "\n".join(plot_curves(Plot((many,)), 80, 24).lines[:-1])
    assert 10 <= text.count("◆") <= 20


def test_the_legend_has_the_best_loss_if_it_is_not_the_last() -> None:
    assert legend(ONE) == "one · train 1.000 · val 1.450, best 1.400 at 20"
    assert legend(TWO) == "two & <b> · train 1.550 · val 1.600"
    assert legend(LossCurve("x", ONE.training, ())) == "x · train 1.000"
    assert legend(replace(TWO, split="train")) == "two & <b> · train 1.550 · train, evaluated 1.600"


def test_a_vector_picture_has_curves_dots_axes_and_a_legend(tmp_path: Path) -> None:
    write_picture(Plot((ONE, TWO), "minutes"), tmp_path / "curves.svg")
    picture = ElementTree.fromstring((tmp_path / "curves.svg").read_text(encoding="utf-8"))
    assert {element.tag for element in picture.iter()} == {
        SVG + name for name in ("svg", "rect", "polyline", "circle", "text")
    }
    words = [element.text for element in picture.iter(SVG + "text")]
    assert {legend(ONE), legend(TWO), "minutes", "1.0", "1.8", "0", "20", "40"} <= set(words)
    assert len(list(picture.iter(SVG + "circle"))) == 3 + 2  # and one for each line of the legend
    (training,) = (line for line in picture.iter(SVG + "polyline") if line.get("stroke-width") == "1.5"
                   and line.get("stroke") == "#0072b2")  # fmt: skip
    points = [tuple(map(float, point.split(","))) for point in training.get("points", "").split()]
    assert len(points) == len(ONE.training)
    assert points == sorted(points)  # from left to right; y grows as the loss falls
    assert [y for _, y in points] == sorted(y for _, y in points)


def test_a_steep_beginning_is_cut_off_at_the_top(tmp_path: Path) -> None:
    steep = LossCurve("steep", ((0, 9.0), *((float(step), 1 + 1 / step) for step in range(1, 100))), ())
    write_picture(Plot((steep,)), tmp_path / "steep.svg")
    picture = ElementTree.fromstring((tmp_path / "steep.svg").read_text(encoding="utf-8"))
    heights = [
        float(point.split(",")[1])
        for line in picture.iter(SVG + "polyline")
        for point in line.get("points", "").split()
    ]
    assert min(heights) == 48.0


@pytest.mark.slow
def test_a_raster_picture_has_the_colours_of_the_curves(tmp_path: Path) -> None:
    write_picture(Plot((ONE, TWO)), tmp_path / "curves.png")
    with Image.open(io.BytesIO((tmp_path / "curves.png").read_bytes())) as image:
        assert (image.format, image.size) == ("PNG", (1920, 1168))
        colours = {colour for _, colour in image.getcolors(1 << 20)}
    assert {(255, 255, 255), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)} <= colours


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        write_picture(Plot((ONE,)), tmp_path / "file" / "curves.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
