"""Plots as text: curves in braille dots between labelled axes, and sparklines in block characters.

A braille character holds two columns and four rows of dots. Losses are plotted on a logarithmic scale.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

Points = Sequence[tuple[float, float]]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille character, by row and column (The Unicode Standard, block 2800)."""
BLANK = 0x2800
MARK = "◆"
BLOCKS = "▁▂▃▄▅▆▇█"
LABEL_WIDTH = 6
"""Cells of a label of the y axis, with the axis."""
MIN_LABEL_DISTANCE = 4
"""Rows between two labels of the y axis."""
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
    """Numbers of dot columns that are drawn and skipped, in turn."""


@dataclass(frozen=True)
class Span:
    """Part of a line of a plot."""

    text: str
    series: int | None = None
    """Index of the series that it belongs to, None for the axes."""


def plot(points: Points, width: int, height: int, marked: Points = ()) -> list[str]:
    """Return the lines of a plot of one curve, as `plot_all` does, with `marked` points as ◆ over it."""
    lines = plot_all([Series(points, marked)], width, height)
    return ["".join(span.text for span in line).rstrip() for line in lines]


def plot_all(series: Sequence[Series], width: int, height: int) -> list[list[Span]]:
    """Return the lines of a plot of several curves, with the y axis on the left and the x axis below.

    The y axis is logarithmic. If the curves fall so steeply at first that the rest would be flat, their beginning is
    cut off. Later curves are drawn over earlier ones, marks over all curves.

    Args:
        series: curves to plot.
        width: cells of a line.
        height: number of lines, including the x axis.

    Returns:
        The lines; none if there is nothing to plot or no room.
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

    def to_dot(x: float, y: float) -> tuple[int, int]:
        """Return the column and row of a dot; the row is negative above the plot."""
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
        for x, y in one.marked:
            column, row = to_dot(x, y)
            if row >= 0:
                cells[row // 4][column // 2] = Span(one.mark, index)
    least_step = 1.0 if all(x == int(x) for x, _ in all_points) else 0.0  # steps of training are whole numbers
    labels = _y_labels(low, high, rows, lambda value: to_dot(left, value)[1] // 4)
    lines = []
    for row, line in enumerate(cells):
        label = f"{labels[row]:>{LABEL_WIDTH - 1}}┤" if row in labels else " " * (LABEL_WIDTH - 1) + "│"
        lines.append([Span(label), *_merge_spans(line)])
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
    """Return round numbers from `low` to `high`, 1, 2 or 5 times a power of ten apart.

    Args:
        low: lower end of the range.
        high: upper end of the range.
        most: number of steps at most.
        least_step: smallest distance of two ticks.
    """
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


def sparkline(values: Sequence[float], width: int) -> str:
    """Return one line of blocks as high as the values, scaled from 0 to their maximum.

    Args:
        values: numbers of at least 0; if they are more than `width`, each block shows the maximum of several.
        width: cells at most.
    """
    cells = min(len(values), max(1, width))
    edges = [cell * len(values) // cells for cell in range(cells + 1)] if cells else []
    peaks = [max(values[first:last]) for first, last in itertools.pairwise(edges)]
    top = max(peaks, default=0.0) or 1.0
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int(len(BLOCKS) * peak / top))] for peak in peaks)


def _connect(dots: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the dots on the straight lines from each dot to the next."""
    yield from dots[:1]
    for (column, row), (next_column, next_row) in itertools.pairwise(dots):
        steps = max(abs(next_column - column), abs(next_row - row), 1)
        for step in range(1, steps + 1):
            fraction = step / steps
            yield round(column + fraction * (next_column - column)), round(row + fraction * (next_row - row))


def _merge_spans(cells: Sequence[Span]) -> Iterator[Span]:
    """Yield one span for each run of cells of the same series."""
    for series, group in itertools.groupby(cells, key=lambda cell: cell.series):
        yield Span("".join(cell.text for cell in group), series)


def _y_labels(low: float, high: float, rows: int, row_of: Callable[[float], int]) -> dict[int, str]:
    """Return labels by row: round numbers, or the lowest and the highest value if fewer than two of those fit."""
    labels: dict[int, str] = {}
    values = ticks(low, high, rows // MIN_LABEL_DISTANCE + 1)
    for value, text in zip(values, tick_labels(values), strict=True):
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
    """Return a line of round numbers, each centred under its column, as many as fit."""
    width = len(f"{right:,.0f}") + 3
    values = ticks(left, right, columns // width, least_step)
    line = ""
    for value, text in zip(values, tick_labels(values), strict=True):
        across = (value - left) / (right - left) if right > left else 0.0
        column = min(columns - len(text), max(0, round(across * (columns - 1)) - len(text) // 2))
        if column > len(line) or not line:
            line = line.ljust(column) + text
    return line if len(line) <= columns else ""
