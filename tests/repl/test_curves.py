"""Loss curves on the terminal, and as pictures."""

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from screens import Screen

from tinychat.commands.results import LossCurve, Plot
from tinychat.repl.curves import draw_curves, legend, write_picture

ONE = LossCurve("one", tuple((step, 2 - step / 40) for step in range(0, 41, 4)), ((20, 1.4), (40, 1.45)))
TWO = LossCurve("two & <b>", tuple((step, 1.8 - step / 80) for step in range(0, 21, 4)), ((20, 1.6),))
SVG = "{http://www.w3.org/2000/svg}"


def drawn(plot: Plot, columns: int = 40, rows: int = 17, *, colour: bool = False) -> Screen:
    screen = Screen(columns, rows)
    draw_curves(screen.terminal(colour=colour), plot)
    return screen


def test_two_runs_on_a_small_screen_without_colour() -> None:
    assert drawn(Plot((ONE, TWO))).lines == [
        "loss by steps, nats per token",
        "  2.0┤⣉⡒⠢⠤⠤⣀⣀⡀",
        "     │ ⠈  ⠉⠒ ⠈⠫⠵⠒⠤⣄⣀  ●",
        "  1.5┤             ⠈⠉⠢⠥⣀⣀             ◆",
        "     │                ◆  ⠉⠑⠒⠢⠤⡀",
        "     │                        ⠈⠉⠢⠤⡀",
        "  1.0┤                            ⠈⠉⠒⠤⣀",
        "      0      10      20      30      40",
        "⠤⠤⠤⠤ ◆ one · train 1.000 · val 1.450, …",
        "⠤⠤   ● two & <b> · train 1.550 · val 1…",
    ]


def test_where_there_is_colour_each_run_has_one_in_curve_and_legend() -> None:
    plain, coloured = drawn(Plot((ONE, TWO)), 80, 24), drawn(Plot((ONE, TWO)), 80, 24, colour=True)
    assert "\x1b[36m⠤⠤⠤⠤ ◆\x1b[0m one · train" in coloured.getvalue()
    assert "\x1b[33m⠤⠤⠤⠤ ●\x1b[0m two & <b> · train" in coloured.getvalue()
    assert "●\x1b[0m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()
    assert len(coloured.lines) <= 24 - 6  # the prompt and its menu have room


def test_marks_of_many_evaluations_leave_the_curve_to_be_seen() -> None:
    many = LossCurve("many", ONE.training, tuple((step / 10, 1.5) for step in range(400)))
    text = "\n".join(drawn(Plot((many,)), 80, 24).lines[:-1])
    assert 10 <= text.count("◆") <= 20


def test_the_legend_has_the_best_loss_where_it_is_not_the_last() -> None:
    assert legend(ONE) == "one · train 1.000 · val 1.450, best 1.400 at 20"
    assert legend(TWO) == "two & <b> · train 1.550 · val 1.600"
    assert legend(LossCurve("x", ONE.training, ())) == "x · train 1.000"


def test_a_vector_picture_holds_curves_dots_axes_and_the_legend(tmp_path: Path) -> None:
    write_picture(Plot((ONE, TWO), "minutes"), tmp_path / "curves.svg")
    picture = ElementTree.fromstring((tmp_path / "curves.svg").read_text(encoding="utf-8"))
    assert {element.tag for element in picture.iter()} == {
        SVG + name for name in ("svg", "rect", "polyline", "circle", "text")
    }
    words = [element.text for element in picture.iter(SVG + "text")]
    assert {legend(ONE), legend(TWO), "minutes", "1.0", "1.8", "0", "20", "40"} <= set(words)
    assert len(list(picture.iter(SVG + "circle"))) == 3 + 2  # and one in each line of the legend
    (training,) = (line for line in picture.iter(SVG + "polyline") if line.get("stroke-width") == "1.5"
                   and line.get("stroke") == "#0072b2")  # fmt: skip
    points = [tuple(map(float, point.split(","))) for point in training.get("points", "").split()]
    assert len(points) == len(ONE.training)
    assert points == sorted(points)  # to the right, and as losses fall, down
    assert [y for _, y in points] == sorted(y for _, y in points)


def test_a_steep_beginning_comes_in_from_above(tmp_path: Path) -> None:
    steep = LossCurve("steep", ((0, 9.0), *((float(step), 1 + 1 / step) for step in range(1, 100))), ())
    write_picture(Plot((steep,)), tmp_path / "steep.svg")
    picture = ElementTree.fromstring((tmp_path / "steep.svg").read_text(encoding="utf-8"))
    heights = [
        float(point.split(",")[1])
        for line in picture.iter(SVG + "polyline")
        for point in line.get("points", "").split()
    ]
    assert min(heights) == 48.0


def test_a_raster_picture_has_the_colours_of_the_curves(tmp_path: Path) -> None:
    write_picture(Plot((ONE, TWO)), tmp_path / "curves.png")
    with Image.open(io.BytesIO((tmp_path / "curves.png").read_bytes())) as image:
        assert (image.format, image.size) == ("PNG", (1920, 1168))
        colours = {colour for _, colour in image.getcolors(1 << 20)}
    assert {(255, 255, 255), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)} <= colours


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        write_picture(Plot((ONE,)), tmp_path / "file" / "curves.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
