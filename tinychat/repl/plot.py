"""Loss curves: a line in braille dots, two by four of them to a character, and marks over it, between labelled axes.

And curves of one line of text, in blocks.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

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


def plot(points: Points, width: int, height: int, marked: Points = ()) -> list[str]:
    """The lines of a plot, with values of y at its left and of x under it.

    The values are drawn by their logarithm; and where the first twentieth falls so steeply that the rest would be
    flat, the curve comes from above the plot.

    Args:
        points: x and y > 0, in the order of x; a line goes from each to the next.
        width: of a line, in cells.
        height: lines.
        marked: more points, drawn as ◆ over the others.
    """
    points, marked = _drawable(points), _drawable(marked)
    every = [*points, *marked]
    columns, rows = width - LABEL, height - 1
    if not every or columns < 4 or rows < 1:
        return []
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low, high = _range(every, left, right)
    across, down = 2 * columns - 1, 4 * rows - 1
    logarithms = math.log(high) - math.log(low)

    def place(x: float, y: float) -> tuple[int, int]:
        """Column and row of a dot; a row above the plot is negative."""
        share = (x - left) / (right - left) if right > left else 0.0
        depth = (math.log(high) - math.log(y)) / logarithms if logarithms else 0.5
        return round(share * across), round(depth * down)

    cells = [[0] * columns for _ in range(rows)]
    for column, row in _joined([place(x, y) for x, y in points]):
        if row >= 0:
            cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]
    drawn = [[chr(BLANK + cell) if cell else " " for cell in line] for line in cells]
    for x, y in marked:
        column, row = place(x, y)
        if row >= 0:
            drawn[row // 4][column // 2] = MARK
    labels = {0: high, rows - 1: low}
    for row in range(APART, rows - APART, APART):
        labels[row] = high * math.exp(-logarithms * (4 * row + 1.5) / down)  # in the middle of the row
    digits = 2 if high - low > 0.1 else 3
    lines = []
    for row, line in enumerate(drawn):
        label = f"{_label(labels[row], digits):>{LABEL - 1}}┤" if row in labels else " " * (LABEL - 1) + "│"
        lines.append((label + "".join(line)).rstrip())
    return [*lines, (" " * LABEL + _scale(left, right, columns)).rstrip()]


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


def _range(points: Points, left: float, right: float) -> tuple[float, float]:
    """The lowest and the highest value that are drawn."""
    low, high = min(y for _, y in points), max(y for _, y in points)
    later = max(y for x, y in points if x >= left + BEGINNING * (right - left))
    saved = math.log(high / later) / math.log(high / low) if high > low else 0.0
    return low, later if saved > STEEP and later > low else high


def _joined(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The dots on the lines from each place to the next."""
    yield from places[:1]
    for (column, row), (next_column, next_row) in itertools.pairwise(places):
        steps = max(abs(next_column - column), abs(next_row - row), 1)
        for step in range(1, steps + 1):
            part = step / steps
            yield round(column + part * (next_column - column)), round(row + part * (next_row - row))


def _drawable(points: Points) -> Points:
    return [(x, y) for x, y in points if y > 0 and math.isfinite(y)]


def _label(value: float, digits: int) -> str:
    """In at most five characters: `1.71`, `12345`, `1e+06`."""
    texts = (f"{value:.{places}f}" for places in range(digits, -1, -1))
    return next((text for text in texts if len(text) < LABEL), f"{value:.0e}")


def _scale(left: float, right: float, columns: int) -> str:
    """Round numbers under their places, as many as there is room for."""
    widest = len(f"{right:,.0f}") + 3
    least = (right - left) * widest / columns
    tenth = 10 ** math.floor(math.log10(least)) if least > 0 else 1
    step = max(1, next(factor * tenth for factor in (1, 2, 5, 10) if factor * tenth >= least) if least > 0 else 1)
    scale = ""
    for number in range(math.ceil(left / step), math.floor(right / step) + 1):
        share = (number * step - left) / (right - left) if right > left else 0.0
        text = f"{number * step:,.0f}"
        column = min(columns - len(text), max(0, round(share * (columns - 1)) - len(text) // 2))
        if column > len(scale) or not scale:
            scale = scale.ljust(column) + text
    return scale if len(scale) <= columns else ""
