"""Loss curves on a logarithmic scale: in braille dots between labelled axes, and as picture files; blocks.

A braille character holds two columns and four rows of dots. A picture refers to no other file: its fonts are the
viewer's or Pillow's.
"""

import html
import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from tinychat.atomic import atomic_write
from tinychat.repl.render.palette import CURVES, DIM, PICTURE_BACKGROUND, PICTURE_CURVES, PICTURE_GRID, PICTURE_INK
from tinychat.repl.render.terminal import SEPARATOR, Terminal, fit
from tinychat.textutil import escape_controls
from tinychat.train.event_log import smoothed

if TYPE_CHECKING:
    from tinychat.commands.results import LossCurve, Plot

Point = tuple[float, float]
Points = Sequence[Point]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille character, by row and column (The Unicode Standard, block 2800)."""
BLANK = 0x2800
MARK = "◆"
BLOCKS = "▁▂▃▄▅▆▇█"
LABEL_WIDTH = 6
"""Cells of a label of the y axis, with the axis."""
MIN_LABEL_DISTANCE = 4
"""Rows between two labels of the y axis."""
MIN_LABEL_GAP = 2
"""Cells between two labels of the x axis."""
BEGINNING = 0.05
"""Fraction of the x range in which a curve may start above the plot."""
MIN_SAVING = 0.25
"""Fraction of the height that cutting the beginning must save."""


@dataclass(frozen=True)
class Series:
    """A curve and the marks on it, each as points (x, y > 0) in the order of x."""

    points: Points
    marked: Points = ()
    mark: str = MARK
    dash: tuple[int, int] = (1, 0)
    """Dot columns that are drawn and skipped, in turn."""


class Span(NamedTuple):
    """Part of a line of a plot; `series` is the index of its curve, None for the axes."""

    text: str
    series: int | None = None


def plot(points: Points, width: int, height: int, marked: Points = ()) -> list[str]:
    """Return the lines of a plot of one curve, as `plot_all` does, with `marked` points as ◆ over it."""
    lines = plot_all([Series(points, marked)], width, height)
    return ["".join(span.text for span in line).rstrip() for line in lines]


def plot_all(series: Sequence[Series], width: int, height: int) -> list[list[Span]]:
    """Return the lines of a plot of several curves, with the y axis on the left and the x axis below.

    The y axis is logarithmic. If the curves fall so steeply at first that the rest would be flat, their beginning is
    cut off. Later curves are drawn over earlier ones, marks over all curves. The `height` lines of `width` cells
    include the x axis; there are none if there is nothing to plot or no room.
    """
    series = [replace(one, points=drawable(one.points), marked=drawable(one.marked)) for one in series]
    all_points = [point for one in series for point in (*one.points, *one.marked)]
    columns, rows = width - LABEL_WIDTH, height - 1
    if not all_points or columns < 4 or rows < 1:
        return []
    left, right = min(x for x, _ in all_points), max(x for x, _ in all_points)
    low, high = value_range(all_points)
    last_column, last_row = 2 * columns - 1, 4 * rows - 1
    log_range = math.log(high) - math.log(low)

    def to_dot(x: float, y: float) -> tuple[int, int]:  # the row is negative above the plot
        across = (x - left) / (right - left) if right > left else 0.0
        down = (math.log(high) - math.log(y)) / log_range if log_range else 0.5
        return round(across * last_column), round(down * last_row)

    dots = [[0] * columns for _ in range(rows)]
    cells = [[Span(" ")] * columns for _ in range(rows)]
    for index, one in enumerate(series):
        on, off = one.dash
        for column, row in _connect([to_dot(x, y) for x, y in one.points]):
            if row >= 0 and column % (on + off) < on:
                dots[row // 4][column // 2] |= DOTS[row % 4][column % 2]
                cells[row // 4][column // 2] = Span(chr(BLANK + dots[row // 4][column // 2]), index)
    for index, one in enumerate(series):
        for column, row in (to_dot(x, y) for x, y in one.marked):
            if row >= 0:
                cells[row // 4][column // 2] = Span(one.mark, index)
    least_step = 1.0 if all(x == int(x) for x, _ in all_points) else 0.0  # steps of training are whole numbers
    labels = _y_labels(low, high, rows, lambda value: to_dot(left, value)[1] // 4)
    lines = []
    for row, line in enumerate(cells):
        label = f"{labels.get(row, ''):>{LABEL_WIDTH - 1}}{'┤' if row in labels else '│'}"
        runs = itertools.groupby(line, key=lambda cell: cell.series)
        lines.append([Span(label), *(Span("".join(cell.text for cell in run), index) for index, run in runs)])
    return [*lines, [Span((" " * LABEL_WIDTH + _x_labels(left, right, columns, least_step)).rstrip())]]


def drawable(points: Points) -> Points:
    """Return the points that have a place on a logarithmic scale."""
    return [(x, y) for x, y in points if y > 0 and math.isfinite(y)]


def value_range(points: Points) -> tuple[float, float]:
    """Return the lowest and the highest y to plot; a steep beginning is cut off."""
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    later = max(y for x, y in points if x >= left + BEGINNING * (right - left))
    saved = math.log(high / later) / math.log(high / low) if high > low else 0.0
    return low, later if saved > MIN_SAVING and later > low else high


def ticks(low: float, high: float, most: int, least_step: float = 0.0) -> list[float]:
    """Return round numbers from `low` to `high`, in at most `most` steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0 or most < 1:
        return [low]
    least = max(span / most, least_step)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return [index * step for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick_labels(values: Sequence[float]) -> list[str]:
    """Format ticks with as many decimals as their distance needs: `1.0`, `1.5`; `1,000`."""
    step = min((after - before for before, after in itertools.pairwise(values)), default=1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:,.{decimals}f}" for value in values]


def _labelled_ticks(low: float, high: float, most: int, least_step: float = 0.0) -> Iterator[tuple[float, str]]:
    values = ticks(low, high, most, least_step)
    return zip(values, tick_labels(values), strict=True)


def blocks(values: Sequence[float]) -> str:
    """Return a block for each value, as high as that is between 0 and the largest, or 1 if all are smaller."""
    top = max([1.0, *values])
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int(len(BLOCKS) * value / top))] for value in values)


def _connect(dots: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the dots on the straight lines from each dot to the next."""
    yield from dots[:1]
    for (column, row), (next_column, next_row) in itertools.pairwise(dots):
        steps = max(abs(next_column - column), abs(next_row - row), 1)
        for step in range(1, steps + 1):
            fraction = step / steps
            yield round(column + fraction * (next_column - column)), round(row + fraction * (next_row - row))


def _y_labels(low: float, high: float, rows: int, row_of: Callable[[float], int]) -> dict[int, str]:
    """Return labels by row: round numbers, or the lowest and the highest value if fewer than two of those fit."""
    labels: dict[int, str] = {}
    for value, text in _labelled_ticks(low, high, rows // MIN_LABEL_DISTANCE + 1):
        row = row_of(value) if value > 0 else 0
        is_apart = all(abs(row - other) >= MIN_LABEL_DISTANCE // 2 for other in labels)
        if value > 0 and len(text) < LABEL_WIDTH and is_apart:
            labels[row] = text
    decimals = 2 if high - low > 0.1 else 3
    return labels if len(labels) > 1 else {rows - 1: _shorten(low, decimals), 0: _shorten(high, decimals)}


def _shorten(value: float, most_decimals: int) -> str:
    """Format a number in at most five characters: `1.71`, `12345`, `1e+06`."""
    texts = (f"{value:.{decimals}f}" for decimals in range(most_decimals, -1, -1))
    return next((text for text in texts if len(text) < LABEL_WIDTH), f"{value:.0e}")


def _x_labels(left: float, right: float, columns: int, least_step: float) -> str:
    """Return a line of round numbers, each centred under its column: as many as fit at an even distance."""
    width = len(f"{right:,.0f}") + MIN_LABEL_GAP + 1  # a cell more, as columns are rounded
    for most in range(columns // width, -1, -1):  # with 0, one label is left
        line = ""
        for value, text in _labelled_ticks(left, right, most, least_step):
            across = (value - left) / (right - left) if right > left else 0.0
            column = min(columns - len(text), max(0, round(across * (columns - 1)) - len(text) // 2))
            if line and column < len(line) + MIN_LABEL_GAP:
                break  # try fewer: to leave out this one alone would look like a gap in the numbers
            line = line.ljust(column) + text
        else:
            break
    return line if len(line) <= columns else ""


# Curves of several runs on a screen

CURVE_MARKS = "◆●▲■✚○"
DASHES = ((1, 0), (4, 4), (1, 3), (6, 2), (2, 2), (2, 6))
"""Dash patterns that distinguish curves if there is no colour."""
HOW_TO_READ = "lower is better · curve: train, marks: val · val that rises again: overfitting"
LEGEND_DOTS = 8
"""Length in dots of the piece of a curve shown in the legend; a cell is two dots wide."""
MIN_PLOT_HEIGHT, MAX_PLOT_HEIGHT = 6, 30
RESERVED_ROWS = 9
"""Rows left for the prompt, its menu and the lines above the plot."""
MARK_SPACING = 4
"""Mean number of cells between two marks, at least: a run may have many evaluations."""


def draw_curves(terminal: Terminal, curves: "Plot") -> None:
    """Draw loss curves as large as the screen allows, with a legend below; on a dumb terminal, only the legend."""
    if terminal.dumb:
        for curve in curves.curves:
            terminal.line(legend(curve))
        return
    columns, rows = terminal.size()
    width, height = columns - 1, rows - RESERVED_ROWS - len(curves.curves)
    series = [_series(curve, index, width, plain=not terminal.colour) for index, curve in enumerate(curves.curves)]
    terminal.title(f"loss by {curves.unit}{SEPARATOR}nats per token")
    for line in plot_all(series, width, max(MIN_PLOT_HEIGHT, min(MAX_PLOT_HEIGHT, height))):
        for span in line:
            _write_span(terminal, span)
        terminal.fresh_line()
    terminal.line(fit(HOW_TO_READ, width), DIM)
    sample_width = LEGEND_DOTS // 2
    for index, curve in enumerate(curves.curves):
        dashes = Series([(0, 1), (LEGEND_DOTS, 1)], dash=series[index].dash)
        sample = plot_all([dashes], 6 + sample_width, 2)[0][1].text
        _write_span(terminal, Span(f"{sample:{sample_width}} {CURVE_MARKS[index]}", index))
        terminal.write(fit(f" {legend(curve)}", width - sample_width - 2))
        terminal.fresh_line()


def legend(curve: "LossCurve") -> str:
    """Return `novel · train 1.304 · val 1.375, best 1.371 at 240`; the best loss is left out if it is the last one."""
    parts = [curve.name, f"train {smoothed(curve.training)[-1][1]:.3f}"]
    if curve.validation:
        (_, last), (step, best) = curve.validation[-1], min(curve.validation, key=lambda point: (point[1], point[0]))
        best_text = f", best {best:.3f} at {step:,.4g}" if best < last else ""
        split = "train, evaluated" if curve.split == "train" else curve.split  # nothing was held out
        parts.append(f"{split} {last:.3f}{best_text}")
    return SEPARATOR.join(parts)


def _series(curve: "LossCurve", index: int, width: int, *, plain: bool) -> Series:
    stride = max(1, -(-len(curve.validation) * MARK_SPACING // width))
    marked = curve.validation[::-stride][::-1]  # always includes the last evaluation
    return Series(smoothed(curve.training), marked, CURVE_MARKS[index], DASHES[index if plain else 0])


def _write_span(terminal: Terminal, span: Span) -> None:
    terminal.write(span.text, DIM if span.series is None else CURVES[span.series])


# Pictures

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 48, 56
TEXT_SIZE = 14
LEGEND_ROW = 22
"""Height of a line of the legend."""
PNG_SCALE = 2
"""Pixels of a PNG per unit of the figure."""
OVERSAMPLING = 2
"""Factor by which a PNG is drawn larger and then reduced, for smooth edges."""
INHERITED = {
    PICTURE_INK: 'stroke="currentColor"', PICTURE_GRID: 'stroke="currentColor" stroke-opacity="0.2"',
}  # fmt: skip
"""Replacements of colours that suit a white background alone."""
NOT_IN_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""Replacements for the characters that XML forbids and `escape_controls` leaves."""


class Stroke(NamedTuple):
    """A line through points, which lie to the right of and below the upper left corner of the figure."""

    points: tuple[Point, ...]
    colour: str
    width: float


class Dot(NamedTuple):
    """A filled circle."""

    centre: Point
    radius: float
    colour: str


class Label(NamedTuple):
    """A text whose baseline starts, is centred or ends at a point, as `anchor` says."""

    position: Point
    text: str
    anchor: Literal["start", "middle", "end"] = "start"


Shape = Stroke | Dot | Label


class Figure(NamedTuple):
    """Shapes `WIDTH` wide and `height` tall in all, each drawn over those before it."""

    height: int
    shapes: tuple[Shape, ...]


def make_figure(curves: "Plot", legends: Sequence[str]) -> Figure:
    """Lay out loss curves, at least one point in all, with a legend for each.

    The smoothed training loss is a thin line, the validation loss a thick one with dots.
    """
    training = [drawable(smoothed(one.training)) for one in curves.curves]
    validation = [drawable(one.validation) for one in curves.curves]
    axes = _Axes([point for points in (*training, *validation) for point in points])
    shapes: list[Shape] = [*axes.shapes(curves.unit)]
    for points, colour in zip(training, PICTURE_CURVES, strict=False):
        shapes += [Stroke(part, colour, 1.5) for part in axes.visible_parts(points)]
    for points, colour in zip(validation, PICTURE_CURVES, strict=False):
        shapes += [Stroke(part, colour, 2.5) for part in axes.visible_parts(points)]
        shapes += [Dot(axes.to_position(*point), 4, colour) for point in points if point[1] <= axes.high]
    for row, (text, colour) in enumerate(zip(legends, PICTURE_CURVES, strict=False)):
        y = HEIGHT + LEGEND_ROW * row - 4
        shapes += [Stroke(((LEFT, y), (LEFT + 32, y)), colour, 2.5), Dot((LEFT + 16, y), 4, colour)]
        shapes.append(Label((LEFT + 44, y + 5), text))
    return Figure(HEIGHT + LEGEND_ROW * len(curves.curves), tuple(shapes))


class _Axes:
    """The axes of a figure, and the mapping of values to positions in it."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.low, self.high = value_range(points)
        if self.low == self.high:
            self.low, self.high = 0.9 * self.low, 1.1 * self.high
        self.first, self.last = min(x for x, _ in points), max(x for x, _ in points)
        self.bottom = HEIGHT - BOTTOM
        self._least_step = 1.0 if all(x == int(x) for x, _ in points) else 0.0

    def to_position(self, x: float, y: float) -> Point:
        across = (x - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        down = math.log(self.high / y) / math.log(self.high / self.low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + down * (self.bottom - TOP)

    def shapes(self, unit: str) -> Iterator[Stroke | Label]:
        """Yield faint grid lines at round numbers, the axes and their labels."""
        for value, text in _labelled_ticks(self.low, self.high, 8):
            _, y = self.to_position(self.first, value)
            yield Stroke(((LEFT, y), (WIDTH - RIGHT, y)), PICTURE_GRID, 1)
            yield Label((LEFT - 8, y + 5), text, "end")
        for value, text in _labelled_ticks(self.first, self.last, 10, self._least_step):
            x, _ = self.to_position(value, self.low)
            yield Stroke(((x, TOP), (x, self.bottom)), PICTURE_GRID, 1)
            yield Label((x, self.bottom + 20), text, "middle")
        yield Stroke(((LEFT, TOP), (LEFT, self.bottom), (WIDTH - RIGHT, self.bottom)), PICTURE_INK, 1)
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
    size = f'width="{WIDTH}" height="{figure.height}" viewBox="0 0 {WIDTH} {figure.height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" fill="{PICTURE_INK}">'
    background = f'<rect width="100%" height="100%" fill="{PICTURE_BACKGROUND}"/>'
    lines = [head, background, *map(_svg_element, figure.shapes), "</svg>\n"]
    return "\n".join(lines).encode("utf-8", "replace")


def inline_svg(figure: Figure) -> str:
    """Return a figure as an element of a page, whose colours of text and background it has."""
    head = f'<svg viewBox="0 0 {WIDTH} {figure.height}" font-family="sans-serif" fill="currentColor"'
    elements = "".join(map(_svg_element, figure.shapes))
    for colour, inherited in INHERITED.items():
        elements = elements.replace(f'stroke="{colour}"', inherited)
    return f'{head} style="width:100%;max-width:{WIDTH * 2 // 3}px">{elements}</svg>'


def _svg_element(shape: Shape) -> str:
    match shape:
        case Stroke(points, colour, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            style = 'fill="none" stroke-linejoin="round"'
            return f'<polyline points="{path}" {style} stroke="{colour}" stroke-width="{width:g}"/>'
        case Dot((x, y), radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Label((x, y), text, anchor):
            text = html.escape(replace_not_in_xml(text), quote=False)
            return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{TEXT_SIZE}" text-anchor="{anchor}">{text}</text>'


def replace_not_in_xml(text: str) -> str:
    """Replace the characters that XML forbids; `<`, `>` and `&` are not escaped."""
    return escape_controls(text).translate(NOT_IN_XML)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file, `PNG_SCALE` times as large."""
    from PIL import Image, ImageDraw, ImageFont

    scale = PNG_SCALE * OVERSAMPLING
    image = Image.new("RGB", (scale * WIDTH, scale * figure.height), PICTURE_BACKGROUND)
    draw = ImageDraw.Draw(image)
    for shape in figure.shapes:
        match shape:
            case Stroke(points, colour, width):
                scaled = [(scale * x, scale * y) for x, y in points]
                draw.line(scaled, colour, round(scale * width), joint="curve")
            case Dot((x, y), radius, colour):
                draw.circle((scale * x, scale * y), scale * radius, colour)
            case Label((x, y), text, anchor):
                font = ImageFont.load_default(scale * TEXT_SIZE)
                anchor_code = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
                draw.text((scale * x, scale * y), escape_controls(text), PICTURE_INK, font, anchor_code)
    file = io.BytesIO()
    image.resize((PNG_SCALE * WIDTH, PNG_SCALE * figure.height), Image.Resampling.LANCZOS).save(file, "PNG")
    return file.getvalue()


PICTURE_FORMATS: Mapping[str, Callable[[Figure], bytes]] = {".svg": svg, ".png": png}
"""Functions that write a figure, by file extension."""


def write_picture(curves: "Plot", path: Path) -> None:
    """Write loss curves as a picture, in the format of the file's extension.

    Raises:
        OSError: If the file cannot be written.
    """
    figure = make_figure(curves, [legend(curve) for curve in curves.curves])
    atomic_write(path, PICTURE_FORMATS[path.suffix.lower()](figure))
