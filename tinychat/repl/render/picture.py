"""Loss curves as picture files.

`make_figure` lays the curves out as lines, dots and labels; `svg` and `png` write them. A picture refers to no other
file: its fonts are the viewer's or Pillow's.
"""

import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from tinychat.commands.results import Plot
from tinychat.repl.render.plot import drawable, tick_labels, ticks, value_range
from tinychat.textutil import escape_controls
from tinychat.train.event_log import smoothed

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 48, 56
LEGEND_ROW = 22
"""Height of a line of the legend."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind people can distinguish (Okabe and Ito, "Color Universal Design", 2008)."""
INK, FAINT, BACKGROUND = "#333333", "#dddddd", "#ffffff"

PNG_SCALE = 2
"""Pixels of a PNG per unit of the figure."""
OVERSAMPLING = 2
"""Factor by which a PNG is drawn larger and then reduced, for smooth edges."""
PILLOW_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
NOT_IN_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""Replacements for the characters that XML forbids and `escape_controls` leaves."""

Point = tuple[float, float]
"""Units to the right and down from the upper left corner."""


@dataclass(frozen=True)
class Stroke:
    """A line through points."""

    points: tuple[Point, ...]
    colour: str
    width: float


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    centre: Point
    radius: float
    colour: str


@dataclass(frozen=True)
class Label:
    """A text whose baseline starts, is centred or ends at a point, as `anchor` says."""

    position: Point
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 14


Shape = Stroke | Dot | Label


@dataclass(frozen=True)
class Figure:
    """Shapes, each drawn over those before it."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def make_figure(plot: Plot, legends: Sequence[str]) -> Figure:
    """Lay out loss curves on a logarithmic scale.

    The smoothed training loss is a thin line, the validation loss a thick one with dots.

    Args:
        plot: curves to draw, at least one point in all.
        legends: a text for each curve.
    """
    training = [drawable(smoothed(one.training)) for one in plot.curves]
    validation = [drawable(one.validation) for one in plot.curves]
    axes = _Axes([point for points in (*training, *validation) for point in points])
    shapes: list[Shape] = [*axes.shapes(plot.unit)]
    for points, colour in zip(training, COLOURS, strict=False):
        shapes += [Stroke(part, colour, 1.5) for part in axes.visible_parts(points)]
    for points, colour in zip(validation, COLOURS, strict=False):
        shapes += [Stroke(part, colour, 2.5) for part in axes.visible_parts(points)]
        shapes += [Dot(axes.to_position(*point), 4, colour) for point in points if point[1] <= axes.high]
    for row, (text, colour) in enumerate(zip(legends, COLOURS, strict=False)):
        y = HEIGHT + LEGEND_ROW * row - 4
        shapes += [Stroke(((LEFT, y), (LEFT + 32, y)), colour, 2.5), Dot((LEFT + 16, y), 4, colour)]
        shapes.append(Label((LEFT + 44, y + 5), text))
    return Figure(WIDTH, HEIGHT + LEGEND_ROW * len(plot.curves), tuple(shapes))


class _Axes:
    """The axes, and the mapping of values to positions in the figure."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.low, self.high = value_range(points)
        if self.low == self.high:
            self.low, self.high = 0.9 * self.low, 1.1 * self.high
        self.first, self.last = min(x for x, _ in points), max(x for x, _ in points)
        self.bottom = HEIGHT - BOTTOM
        self._least_step = 1.0 if all(x == int(x) for x, _ in points) else 0.0

    def to_position(self, x: float, y: float) -> Point:
        """Return the position of a value in the figure."""
        across = (x - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        down = math.log(self.high / y) / math.log(self.high / self.low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + down * (self.bottom - TOP)

    def shapes(self, unit: str) -> Iterator[Stroke | Label]:
        """Yield faint grid lines at round numbers, the axes and their labels."""
        values = ticks(self.low, self.high, 8)
        for value, text in zip(values, tick_labels(values), strict=True):
            _, y = self.to_position(self.first, value)
            yield Stroke(((LEFT, y), (WIDTH - RIGHT, y)), FAINT, 1)
            yield Label((LEFT - 8, y + 5), text, "end")
        values = ticks(self.first, self.last, 10, self._least_step)
        for value, text in zip(values, tick_labels(values), strict=True):
            x, _ = self.to_position(value, self.low)
            yield Stroke(((x, TOP), (x, self.bottom)), FAINT, 1)
            yield Label((x, self.bottom + 20), text, "middle")
        yield Stroke(((LEFT, TOP), (LEFT, self.bottom), (WIDTH - RIGHT, self.bottom)), INK, 1)
        yield Label((LEFT, TOP - 16), "loss, nats per token (dots: validation)")
        yield Label((WIDTH - RIGHT, self.bottom + 38), unit, "end")

    def visible_parts(self, points: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
        """Yield the parts of a curve that are not above the figure, cut where they cross its top."""
        part: list[Point] = []
        for (x, y), (next_x, next_y) in itertools.pairwise(points):
            if y <= self.high and not part:
                part.append(self.to_position(x, y))
            if (y <= self.high) != (next_y <= self.high):
                fraction = math.log(self.high / y) / math.log(next_y / y)
                part.append(self.to_position(x + fraction * (next_x - x), self.high))
            if next_y <= self.high:
                part.append(self.to_position(next_x, next_y))
            elif part:
                yield tuple(part)
                part = []
        if part:
            yield tuple(part)


def svg(figure: Figure) -> bytes:
    """Return a figure as an SVG document."""
    size = f'width="{figure.width}" height="{figure.height}" viewBox="0 0 {figure.width} {figure.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" fill="{INK}">',
        f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>',
        *map(_svg_element, figure.shapes),
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _svg_element(shape: Shape) -> str:
    match shape:
        case Stroke(points, colour, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            style = 'fill="none" stroke-linejoin="round"'
            return f'<polyline points="{path}" {style} stroke="{colour}" stroke-width="{width:g}"/>'
        case Dot((x, y), radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Label((x, y), text, anchor, size):
            text = escape(replace_not_in_xml(text))
            return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def replace_not_in_xml(text: str) -> str:
    """Replace the characters that XML forbids; `<`, `>` and `&` are not escaped."""
    return escape_controls(text).translate(NOT_IN_XML)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file, `PNG_SCALE` times as large."""
    from PIL import Image, ImageDraw, ImageFont

    scale = PNG_SCALE * OVERSAMPLING
    image = Image.new("RGB", (scale * figure.width, scale * figure.height), BACKGROUND)
    draw = ImageDraw.Draw(image)
    for shape in figure.shapes:
        match shape:
            case Stroke(points, colour, width):
                scaled = [(scale * x, scale * y) for x, y in points]
                draw.line(scaled, colour, round(scale * width), joint="curve")
            case Dot((x, y), radius, colour):
                draw.circle((scale * x, scale * y), scale * radius, colour)
            case Label((x, y), text, anchor, size):
                font = ImageFont.load_default(scale * size)
                draw.text((scale * x, scale * y), escape_controls(text), INK, font, PILLOW_ANCHORS[anchor])
    file = io.BytesIO()
    image.resize((PNG_SCALE * figure.width, PNG_SCALE * figure.height), Image.Resampling.LANCZOS).save(file, "PNG")
    return file.getvalue()


PICTURE_FORMATS: Mapping[str, Callable[[Figure], bytes]] = {".svg": svg, ".png": png}
"""Functions that write a figure, by file extension."""
