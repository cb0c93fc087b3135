"""Draws heat maps: in colours two rows to a line, without them by how dense a character is."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from prompt_toolkit.utils import get_cwidth

from tinychat.commands.results import HeatMap, HeatMaps, SmallMap
from tinychat.repl.render.terminal import DIM, Terminal, fit, pad
from tinychat.textutil import shorten

Row = Sequence[float | None]
"""None where a row may not look; so may it not at what it lacks at its end"""

LEVELS = (0.0, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 0.75)
COLOURS = (235, 53, 90, 126, 162, 203, 215, 229)
"""of 256, from dark to bright: one for each level"""
SHADES = ((0.0, "·"), (0.03, "░"), (0.1, "▒"), (0.25, "▓"), (0.5, "█"))

UNDER = 5
"""lines that are kept free for the scale, the notes, the prompt and the toolbar"""
LONGEST_LABEL = 12
TALLEST_LABEL = 6
"""of a screen's lines, one in so many"""
LEAST_SIDE = 4
"""rows and columns; of smaller maps nothing can be seen"""
MOST_REPEATED = 6
"""columns or rows that a token has in a small map"""
GAP = 2
EARLIER = "…"


def draw_map(terminal: Terminal, heat: HeatMap) -> None:
    """One map with the labels of its rows and columns, as much of its newest part as there is room for."""
    width, height = terminal.size()
    gutter = min(LONGEST_LABEL, max(map(get_cwidth, heat.rows)))
    room = max(2, width - 2 - gutter)
    across = 2 if 2 * len(heat.columns) <= room or any(get_cwidth(char) > 1 for char in "".join(heat.columns)) else 1
    most = room // across
    cut = len(heat.columns) > most
    first = len(heat.columns) - most + 1 if cut else 0
    columns = [EARLIER, *heat.columns[first:]] if cut else list(heat.columns)
    tall = min(max(1, height // TALLEST_LABEL), max(map(len, columns)))
    start = max(0, len(heat.rows) - max(3, height - UNDER - tall - 2))
    _title(terminal, heat.title)
    for line in _upright(columns, tall, across):
        terminal.line(f"{'':{gutter}} {line}", DIM)
    for index in range(start, len(heat.rows)):
        row = heat.cells[index]
        label = fit(heat.rows[index], gutter)
        terminal.write(pad(label, gutter + 1), "" if index >= heat.marked else DIM)
        _blocks(terminal, [[sum(row[:first]), *row[first:]] if cut else row], across)
        terminal.fresh_line()
    _scale(terminal)
    notes = list(heat.notes)
    if start:
        notes.append(f"the newest {len(heat.rows) - start} of {len(heat.rows):,} rows")
    if cut:
        notes.append(f"the newest {most - 1} of {len(heat.columns):,} columns, {EARLIER} the others together")
    terminal.line(" · ".join(notes), DIM)


def draw_maps(terminal: Terminal, heat: HeatMaps) -> None:
    """Small maps, all of them on one screen; where that leaves too little of each, their captions alone."""
    width, height = terminal.size()
    rows, lines = heat.rows, height - UNDER - 1
    if len(rows) == 1 or len(rows[0]) == 1:  # in as many rows as make them largest
        maps = tuple(one for row in rows for one in row)
        across = max(range(len(maps), 0, -1), key=lambda across: min(_size(len(maps), across, width, lines)))
        rows = tuple(maps[start : start + across] for start in range(0, len(maps), across))
    across = len(rows[0])
    wide, tall = _size(len(rows) * across, across, width, lines)
    drawn = min(wide, tall) >= LEAST_SIDE
    cells = (width - 1) // across
    if not drawn:
        cells = max(get_cwidth(one.caption) for row in rows for one in row) + GAP
        across = max(1, (width - 1) // cells)
    _title(terminal, heat.title)
    for maps in rows:
        for start in range(0, len(maps), across):
            captions = [fit(one.caption, cells - 1) for one in maps[start : start + across]]
            terminal.line("".join(f"{caption:{cells}}" for caption in captions).rstrip())
        if drawn:
            _draw_row(terminal, maps, wide, tall if terminal.colour else tall // 2, cells)
    if drawn:
        _scale(terminal)
    terminal.line(" · ".join(heat.notes), DIM)


def resize(cells: Sequence[Row], tall: int, wide: int) -> list[list[float | None]]:
    """A map of at most so many rows and columns: neighbours taken together, or each repeated as often as may be.

    Columns are added, and of rows the mean is taken: a row still tells where all of its share goes.
    """
    columns = max(map(len, cells))
    padded = [[*row, *[None] * (columns - len(row))] for row in cells]
    narrow = [[_total(row[first:last]) for first, last in _parts(columns, wide)] for row in padded]
    rows = [[_mean(column) for column in zip(*narrow[a:b], strict=True)] for a, b in _parts(len(cells), tall)]
    across, down = (min(MOST_REPEATED, max(1, size // count)) for size, count in ((wide, columns), (tall, len(cells))))
    return [[value for value in row for _ in range(across)] for row in rows for _ in range(down)]


def _size(count: int, across: int, width: int, lines: int) -> tuple[int, int]:
    """Columns and rows of each of so many maps, so many of them side by side; two rows take a line."""
    tall = 2 * (lines // -(-count // across) - 1)
    return min((width - 1) // across - GAP, 2 * tall), tall


def _parts(count: int, most: int) -> list[tuple[int, int]]:
    """Where each part begins and ends, of at most so many."""
    parts = min(count, most)
    return list(pairwise(index * count // parts for index in range(parts + 1)))


def _total(values: Row) -> float | None:
    """The sum, in which None counts for nothing, unless there is nothing else."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Row) -> float | None:
    total = _total(values)
    return None if total is None else total / len(values)


def _draw_row(terminal: Terminal, maps: Sequence[SmallMap], wide: int, tall: int, cells: int) -> None:
    """Maps side by side, each in so many cells."""
    per_line = 2 if terminal.colour else 1
    fitted = [resize(one.cells, tall, wide) for one in maps]
    for line in range(0, max(map(len, fitted)), per_line):
        for index, one in enumerate(fitted):
            terminal.write(" " * (index * cells - terminal.column))
            _blocks(terminal, [*one[line : line + per_line], []][:per_line])
        terminal.fresh_line()


def _blocks(terminal: Terminal, rows: Sequence[Row], across: int = 1) -> None:
    """One line of a map: a row, or in colours two of them, one above the other."""
    for text, style in _painted(rows, colour=terminal.colour):
        terminal.write(text * across, style)


def _painted(rows: Sequence[Row], *, colour: bool) -> Iterator[tuple[str, str]]:
    if not colour:
        for value in rows[0]:
            yield " " if value is None else SHADES[bisect_right([level for level, _ in SHADES], value) - 1][1], ""
    elif len(rows) == 1:
        for value in rows[0]:
            yield " ", "" if value is None else f"\x1b[48;5;{_colour(value)}m"
    else:
        for upper, lower in zip_longest(*rows):
            if upper is None:
                yield ("▄", f"\x1b[38;5;{_colour(lower)}m") if lower is not None else (" ", "")
            elif lower is None:
                yield "▀", f"\x1b[38;5;{_colour(upper)}m"
            else:
                yield "▀", f"\x1b[38;5;{_colour(upper)};48;5;{_colour(lower)}m"


def _colour(value: float) -> int:
    return COLOURS[bisect_right(LEVELS, value) - 1]


def _upright(labels: Sequence[str], tall: int, across: int) -> list[str]:
    """Labels over their columns, read from above; a longer one ends with …."""
    lines = zip(*(f"{shorten(label, tall):>{tall}}" for label in labels), strict=True)
    return ["".join(char + " " * (across - get_cwidth(char)) for char in line).rstrip() for line in lines]


def _title(terminal: Terminal, title: str) -> None:
    terminal.line(fit(title, terminal.width - 1), DIM)


def _scale(terminal: Terminal) -> None:
    """What the colours or characters stand for."""
    if terminal.colour:
        for level, colour in zip(LEVELS, COLOURS, strict=True):
            terminal.write("  ", f"\x1b[48;5;{colour}m")
            terminal.write(f" {100 * level:.0f}  ", DIM)
        terminal.write("% or more", DIM)
    else:
        terminal.write("  ".join(f"{shade} {100 * level:.0f}" for level, shade in SHADES) + " % or more")
    terminal.fresh_line()
