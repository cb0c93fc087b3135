"""Round numbers for the axes of plots.

Loss curves: a line in braille dots, two by four of them to a character, and marks over it, between labelled axes.

And curves of one line of text, in blocks.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

ROUND = (1, 2, 5, 10)


def ticks(low: float, high: float, most: int, least_step: float = 0.0) -> list[float]:
    """Round numbers from `low` to `high`, 1, 2 or 5 times a power of ten apart, about `most` of them at most."""
    span = high - low
    if not span > 0 or most < 1:
        return [low]
    least = max(span / most, least_step)
    tenth = 10.0 ** math.floor(math.log10(least))
    step = next(factor * tenth for factor in ROUND if factor * tenth >= least * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def labels(values: Sequence[float]) -> list[str]:
    """The numbers with as many decimals as tell them apart: `1.0`, `1.5`; `1,000`."""
    step = min((after - before for before, after in itertools.pairwise(values)), default=1.0)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:,.{digits}f}" for value in values]


# ---- from tinychat.repl.render.plot ----


Points = Sequence[tuple[float, float]]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""the bit of each dot of a braille character, by row and column (The Unicode Standard, block 2800)"""
BLANK = 0x2800
MARK = "◆"
BLOCKS = "▁▂▃▄▅▆▇█"
LABEL = 6
"""cells of a label and the axis"""
APART = 4
"""rows from one label to the next, at least"""
BEGINNING = 0.05
"""the share of the way in which a curve may fall from above the plot"""
STEEP = 0.25
"""how much of the height that must save"""


@dataclass(frozen=True)
class Series:
    """A curve and the marks over it.

    `points` and `marked` are x and y > 0, in the order of x. `dash` is how many columns of dots of the curve are drawn,
    and how many are left out.
    """

    points: Points
    marked: Points = ()
    mark: str = MARK
    dash: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class Span:
    """A part of a line of a plot; `series` is the place of the one that it belongs to, None for the axes."""

    text: str
    series: int | None = None


def plot(points: Points, width: int, height: int, marked: Points = ()) -> list[str]:
    """The lines of a plot of one curve, as of `plot_all`; `marked` are drawn as ◆ over it."""
    lines = plot_all([Series(points, marked)], width, height)
    return ["".join(span.text for span in line).rstrip() for line in lines]


def plot_all(series: Sequence[Series], width: int, height: int) -> list[list[Span]]:
    """The lines of a plot of several curves, with values of y at its left and of x under it.

    The values are drawn by their logarithm; and where the first twentieth falls so steeply that the rest would be
    flat, the curves come from above the plot. Later ones are drawn over earlier ones, marks over all.

    Args:
        width: of a line, in cells.
    """
    series = [replace(one, points=drawable(one.points), marked=drawable(one.marked)) for one in series]
    every = [point for one in series for point in (*one.points, *one.marked)]
    columns, rows = width - LABEL, height - 1
    if not every or columns < 4 or rows < 1:
        return []
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low, high = value_range(every)
    across, down = 2 * columns - 1, 4 * rows - 1
    logarithms = math.log(high) - math.log(low)

    def place(x: float, y: float) -> tuple[int, int]:
        """Column and row of a dot; a row above the plot is negative."""
        share = (x - left) / (right - left) if right > left else 0.0
        depth = (math.log(high) - math.log(y)) / logarithms if logarithms else 0.5
        return round(share * across), round(depth * down)

    dots = [[0] * columns for _ in range(rows)]
    drawn = [[Span(" ")] * columns for _ in range(rows)]
    for number, one in enumerate(series):
        on, off = one.dash
        for column, row in _joined([place(x, y) for x, y in one.points]):
            if row >= 0 and column % (on + off) < on:
                dots[row // 4][column // 2] |= DOTS[row % 4][column % 2]
                drawn[row // 4][column // 2] = Span(chr(BLANK + dots[row // 4][column // 2]), number)
    for number, one in enumerate(series):
        for x, y in one.marked:
            column, row = place(x, y)
            if row >= 0:
                drawn[row // 4][column // 2] = Span(one.mark, number)
    least = 1.0 if all(x == int(x) for x, _ in every) else 0.0  # there is no half of a step
    named = _values(low, high, rows, lambda value: place(left, value)[1] // 4)
    lines = []
    for row, line in enumerate(drawn):
        label = f"{named[row]:>{LABEL - 1}}┤" if row in named else " " * (LABEL - 1) + "│"
        lines.append([Span(label), *_spans(line)])
    return [*lines, [Span((" " * LABEL + _scale(left, right, columns, least)).rstrip())]]


def sparkline(values: Sequence[float], width: int) -> str:
    """One line of blocks as high as the values, from 0 to their highest; where there are more, the highest of several.

    Args:
        values: none below 0.
        width: the most cells.
    """
    cells = min(len(values), max(1, width))
    edges = [place * len(values) // cells for place in range(cells + 1)] if cells else []
    peaks = [max(values[first:last]) for first, last in itertools.pairwise(edges)]
    top = max(peaks, default=0.0) or 1.0
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int(len(BLOCKS) * peak / top))] for peak in peaks)


def value_range(points: Points) -> tuple[float, float]:
    """The lowest and the highest value that are drawn: of a steep beginning, its end."""
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    later = max(y for x, y in points if x >= left + BEGINNING * (right - left))
    saved = math.log(high / later) / math.log(high / low) if high > low else 0.0
    return low, later if saved > STEEP and later > low else high


def drawable(points: Points) -> Points:
    """The points that can be drawn by their logarithm."""
    return [(x, y) for x, y in points if y > 0 and math.isfinite(y)]


def _joined(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The dots on the lines from each place to the next."""
    yield from places[:1]
    for (column, row), (next_column, next_row) in itertools.pairwise(places):
        steps = max(abs(next_column - column), abs(next_row - row), 1)
        for step in range(1, steps + 1):
            part = step / steps
            yield round(column + part * (next_column - column)), round(row + part * (next_row - row))


def _spans(cells: Sequence[Span]) -> Iterator[Span]:
    """Cells of the same series in one."""
    for series, group in itertools.groupby(cells, key=lambda cell: cell.series):
        yield Span("".join(cell.text for cell in group), series)


def _values(low: float, high: float, rows: int, row_of: Callable[[float], int]) -> dict[int, str]:
    """The labels of some rows: round numbers, or where these are too few, the values at the top and the bottom."""
    named: dict[int, str] = {}
    round_ones = ticks(low, high, rows // APART + 1)
    for value, text in zip(round_ones, labels(round_ones), strict=True):
        row = row_of(value) if value > 0 else 0
        if value > 0 and len(text) < LABEL and all(abs(row - other) >= APART // 2 for other in named):
            named[row] = text
    digits = 2 if high - low > 0.1 else 3
    return named if len(named) > 1 else {rows - 1: _label(low, digits), 0: _label(high, digits)}


def _label(value: float, digits: int) -> str:
    """In at most five characters: `1.71`, `12345`, `1e+06`."""
    texts = (f"{value:.{places}f}" for places in range(digits, -1, -1))
    return next((text for text in texts if len(text) < LABEL), f"{value:.0e}")


def _scale(left: float, right: float, columns: int, least: float) -> str:
    """Round numbers under their places, as many as there is room for, and `least` apart."""
    widest = len(f"{right:,.0f}") + 3
    values = ticks(left, right, columns // widest, least)
    scale = ""
    for value, text in zip(values, labels(values), strict=True):
        share = (value - left) / (right - left) if right > left else 0.0
        column = min(columns - len(text), max(0, round(share * (columns - 1)) - len(text) // 2))
        if column > len(scale) or not scale:
            scale = scale.ljust(column) + text
    return scale if len(scale) <= columns else ""
