"""Loss curves laid out as a picture: strokes, dots and words, which a file format has only to write down.

Figures as files: SVG, written here, and PNG, by Pillow. Nothing is fetched, fonts are the viewer's or built in.
"""

import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from tinychat.commands.results import Plot
from tinychat.repl.render.plot import drawable, labels, ticks, value_range
from tinychat.textutil import escape_controls
from tinychat.train.event_log import smoothed

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 48, 56
ROW = 22
"""height of a line of the legend"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""of Okabe and Ito, "Color Universal Design" (2008): the colour-blind tell them apart too"""
INK, FAINT = "#333333", "#dddddd"

Point = tuple[float, float]


@dataclass(frozen=True)
class Stroke:
    """A line through points; right and down from the upper left corner."""

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
class Words:
    """Text whose base line begins, has its middle or ends at a point."""

    place: Point
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 14


Shape = Stroke | Dot | Words


@dataclass(frozen=True)
class Figure:
    """What is drawn, one over the other."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def figure(plot: Plot, legends: Sequence[str]) -> Figure:
    """The curves by the logarithm of the loss: thick for training, smoothed; with dots for validation."""
    training = [drawable(smoothed(one.training)) for one in plot.curves]
    validation = [drawable(one.validation) for one in plot.curves]
    every = [point for points in (*training, *validation) for point in points]
    height = HEIGHT + ROW * len(plot.curves)
    frame = _Frame(every, height)
    shapes: list[Shape] = [*frame.axes(plot.unit)]
    for points, colour in zip(training, COLOURS, strict=False):
        shapes += [Stroke(part, colour, 1.5) for part in frame.visible(points)]
    for points, colour in zip(validation, COLOURS, strict=False):
        shapes += [Stroke(part, colour, 2.5) for part in frame.visible(points)]
        shapes += [Dot(frame.place(*point), 4, colour) for point in points if point[1] <= frame.high]
    for row, (text, colour) in enumerate(zip(legends, COLOURS, strict=False)):
        y = HEIGHT + ROW * row - 4
        shapes += [Stroke(((LEFT, y), (LEFT + 32, y)), colour, 2.5), Dot((LEFT + 16, y), 4, colour)]
        shapes.append(Words((LEFT + 44, y + 5), text))
    return Figure(WIDTH, height, tuple(shapes))


class _Frame:
    """Where the points lie within the axes."""

    def __init__(self, points: Sequence[Point], height: int) -> None:
        self.low, self.high = value_range(points)
        if self.low == self.high:
            self.low, self.high = 0.9 * self.low, 1.1 * self.high
        self.first, self.last = min(x for x, _ in points), max(x for x, _ in points)
        self.bottom = HEIGHT - BOTTOM
        self._least = 1.0 if all(x == int(x) for x, _ in points) else 0.0

    def place(self, x: float, y: float) -> Point:
        """Where a value lies in the picture."""
        across = (x - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        down = math.log(self.high / y) / math.log(self.high / self.low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + down * (self.bottom - TOP)

    def axes(self, unit: str) -> Iterator[Stroke | Words]:
        """Faint lines at round numbers, and what they count."""
        values = ticks(self.low, self.high, 8)
        for value, text in zip(values, labels(values), strict=True):
            _, y = self.place(self.first, value)
            yield Stroke(((LEFT, y), (WIDTH - RIGHT, y)), FAINT, 1)
            yield Words((LEFT - 8, y + 5), text, "end")
        values = ticks(self.first, self.last, 10, self._least)
        for value, text in zip(values, labels(values), strict=True):
            x, _ = self.place(value, self.low)
            yield Stroke(((x, TOP), (x, self.bottom)), FAINT, 1)
            yield Words((x, self.bottom + 20), text, "middle")
        yield Stroke(((LEFT, TOP), (LEFT, self.bottom), (WIDTH - RIGHT, self.bottom)), INK, 1)
        yield Words((LEFT, TOP - 16), "loss, nats per token (dots: validation)")
        yield Words((WIDTH - RIGHT, self.bottom + 38), unit, "end")

    def visible(self, points: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
        """The parts of a curve that are not above the picture, each from where it comes in."""
        part: list[Point] = []
        for (x, y), (next_x, next_y) in itertools.pairwise(points):
            if y <= self.high and not part:
                part.append(self.place(x, y))
            if (y <= self.high) != (next_y <= self.high):
                share = math.log(self.high / y) / math.log(next_y / y)
                part.append(self.place(x + share * (next_x - x), self.high))
            if next_y <= self.high:
                part.append(self.place(next_x, next_y))
            elif part:
                yield tuple(part)
                part = []
        if part:
            yield tuple(part)


# ---- from tinychat.repl.render.picture ----


SCALE = 2
"""dots of a PNG to a unit of the figure"""
FINER = 2
"""times as fine is it drawn, so that its edges become smooth"""
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""as Pillow calls them, on the base line"""
UNFIT_FOR_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""characters that no XML may hold, and that `escape_controls` leaves"""


def svg(figure: Figure) -> bytes:
    """As an SVG that stands for itself."""
    size = f'width="{figure.width}" height="{figure.height}" viewBox="0 0 {figure.width} {figure.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" fill="{INK}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *map(_element, figure.shapes),
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def fit_for_xml(text: str) -> str:
    """The text without what XML may not hold; it is not escaped."""
    return escape_controls(text).translate(UNFIT_FOR_XML)


def _element(shape: Shape) -> str:
    match shape:
        case Stroke(points, colour, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            form = 'fill="none" stroke-linejoin="round"'
            return f'<polyline points="{path}" {form} stroke="{colour}" stroke-width="{width:g}"/>'
        case Dot((x, y), radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Words((x, y), text, anchor, size):
            text = escape(fit_for_xml(text))
            return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def png(figure: Figure) -> bytes:
    """As a PNG, `SCALE` times as large."""
    from PIL import Image, ImageDraw, ImageFont

    scale = SCALE * FINER
    image = Image.new("RGB", (scale * figure.width, scale * figure.height), "#ffffff")
    draw = ImageDraw.Draw(image)
    for shape in figure.shapes:
        match shape:
            case Stroke(points, colour, width):
                scaled = [(scale * x, scale * y) for x, y in points]
                draw.line(scaled, colour, round(scale * width), joint="curve")
            case Dot((x, y), radius, colour):
                draw.circle((scale * x, scale * y), scale * radius, colour)
            case Words((x, y), text, anchor, size):
                font = ImageFont.load_default(scale * size)
                draw.text((scale * x, scale * y), escape_controls(text), INK, font, ANCHORS[anchor])
    file = io.BytesIO()
    image.resize((SCALE * figure.width, SCALE * figure.height), Image.Resampling.LANCZOS).save(file, "PNG")
    return file.getvalue()


PICTURES: Mapping[str, Callable[[Figure], bytes]] = {".svg": svg, ".png": png}
"""By the file's ending."""
