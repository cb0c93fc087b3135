"""A curve in braille dots: two by four of them to a character."""

import itertools
import math
from collections.abc import Sequence

Points = Sequence[tuple[float, float]]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""the bit of each dot of a braille character, by row and column (The Unicode Standard, block 2800)"""
BLANK = 0x2800
MARK = "◆"
LABEL = 6


def plot(points: Points, width: int, height: int, marked: Points = ()) -> list[str]:
    """The lines of a plot, with the largest and the smallest value at its left and the range of x under it.

    The values are drawn by their logarithm, so that the end of a loss curve shows as well as its beginning.

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
    low, high = min(y for _, y in every), max(y for _, y in every)

    def place(x: float, y: float) -> tuple[int, int]:
        """Column and row of a dot."""
        across = (x - left) / (right - left) if right > left else 0.0
        down = (math.log(high) - math.log(y)) / (math.log(high) - math.log(low)) if high > low else 0.5
        return round(across * (2 * columns - 1)), round(down * (4 * rows - 1))

    cells = [[0] * columns for _ in range(rows)]
    for column, row in _joined([place(x, y) for x, y in points]):
        cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]
    drawn = [[chr(BLANK + cell) if cell else " " for cell in line] for line in cells]
    for x, y in marked:
        column, row = place(x, y)
        drawn[row // 4][column // 2] = MARK
    labels = [""] * rows
    labels[-1], labels[0] = _label(low), _label(high)
    lines = [
        f"{label:>{LABEL - 1}} {''.join(line).rstrip()}".rstrip() for label, line in zip(labels, drawn, strict=True)
    ]
    return [*lines, " " * LABEL + _scale(left, right, columns)]


def _joined(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The dots on the lines from each place to the next."""
    dots = list(places[:1])
    for (column, row), (next_column, next_row) in itertools.pairwise(places):
        steps = max(abs(next_column - column), abs(next_row - row), 1)
        for step in range(1, steps + 1):
            part = step / steps
            dots.append((round(column + part * (next_column - column)), round(row + part * (next_row - row))))
    return dots


def _drawable(points: Points) -> Points:
    return [(x, y) for x, y in points if y > 0 and math.isfinite(y)]


def _label(value: float) -> str:
    """In at most five characters: `1.71`, `12345`, `1e+06`."""
    return f"{value:.2f}" if value < 99.995 else f"{value:.0f}" if value < 99_999.5 else f"{value:.0e}"


def _scale(left: float, right: float, columns: int) -> str:
    """The ends of the range of x, as far as there is room."""
    first, last = f"{left:,.0f}", f"{right:,.0f}"
    if len(first) + len(last) < columns:
        return first + last.rjust(columns - len(first))
    return last.rjust(columns) if len(last) <= columns else ""
