"""Draw heat maps: in colour, or where there is none in characters of five densities."""

import textwrap
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, pairwise, zip_longest
from math import isinf
from operator import itemgetter

from prompt_toolkit.utils import get_cwidth

from tinychat.commands.results import HeatMap, HeatMaps, SmallMap
from tinychat.repl.render.palette import DIM
from tinychat.repl.render.terminal import Terminal, fit, pad, wrap_items
from tinychat.textutil import shorten

Row = Sequence[float | None]
"""Values from 0 to 1; None, or missing at the end, for masked cells."""

LEVELS = (0.0, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 0.75)
"""Weights from which the colours of the theme's heat map begin."""
SHADES = ((0.0, "·"), (0.03, "░"), (0.1, "▒"), (0.25, "▓"), (0.5, "█"))

RESERVED_LINES = 6
"""Lines left for the scale, the notes, the prompt and the toolbar."""
MAX_ROW_LABEL = 12
LINES_PER_LABEL_LINE = 6
"""Lines of the screen for each line of the column labels, unless more are left over."""
MIN_SIDE = 4
"""Rows and columns below which a small map shows nothing."""
MAX_REPEATS = 6
"""Columns or rows of a small map per cell of the original."""
HOW_TO_READ_MAP = "a row looks at columns to predict the next row · stronger colour, more weight"
HOW_TO_READ_MAPS = "a row looks at the columns before it · stronger colour, more weight"
GAP = 2
EARLIER = "…"
"""Label of the column that sums up those left out."""


def draw_map(terminal: Terminal, heat: HeatMap) -> None:
    """Draw a map with labelled rows and columns; if it is too large, only its newest rows and columns."""
    width, height = terminal.size()
    height -= terminal.rows_below
    gutter = min(MAX_ROW_LABEL, max(map(get_cwidth, heat.rows)))
    room = max(2, width - 2 - gutter)
    has_wide_labels = any(get_cwidth(char) > 1 for char in "".join(heat.columns))
    cell_width = 2 if has_wide_labels or 2 * len(heat.columns) <= room else 1
    max_columns = room // cell_width
    is_cut = len(heat.columns) > max_columns
    first = len(heat.columns) - max_columns + 1 if is_cut else 0
    columns = [*[EARLIER] * is_cut, *heat.columns[first:]]
    height -= len(terminal.title_lines(heat.title)) - 1
    spare = height - RESERVED_LINES - 2 - len(heat.rows)
    label_height = min(max(1, height // LINES_PER_LABEL_LINE, spare), max(map(len, columns)))
    start = max(0, len(heat.rows) - max(3, height - RESERVED_LINES - label_height - 2))
    terminal.title(heat.title)
    for chars in zip(*(f"{shorten(label, label_height):>{label_height}}" for label in columns), strict=True):
        line = "".join(char + " " * (cell_width - get_cwidth(char)) for char in chars)
        terminal.line(f"{'':{gutter}} {line.rstrip()}", DIM)
    for index, (label, row) in list(enumerate(zip(heat.rows, heat.cells, strict=True)))[start:]:
        terminal.write(pad(fit(label, gutter), gutter + 1), "" if index >= heat.marked else DIM)
        _blocks(terminal, [[sum(row[:first]), *row[first:]] if is_cut else row], cell_width)
        terminal.fresh_line()
    _scale(terminal)
    notes = [*heat.notes, HOW_TO_READ_MAP]
    if start:
        notes.append(f"the newest {len(heat.rows) - start} of {len(heat.rows):,} rows")
    if is_cut:
        notes.append(f"the newest {max_columns - 1} of {len(heat.columns):,} columns, {EARLIER} the others together")
    _write_notes(terminal, notes)


def draw_maps(terminal: Terminal, heat: HeatMaps) -> None:
    """Draw small maps, all on one screen, or only their captions if the maps would be too small."""
    width, height = terminal.size()
    rows, lines = heat.rows, height - terminal.rows_below - RESERVED_LINES - len(terminal.title_lines(heat.title))
    if len(rows) == 1 or len(rows[0]) == 1:  # wrap a single row or column so that the maps become largest
        maps = tuple(chain(*rows))
        across = max(range(len(maps), 0, -1), key=lambda across: min(_size(len(maps), across, width, lines)))
        rows = tuple(maps[start : start + across] for start in range(0, len(maps), across))
    across = len(rows[0])
    wide, tall = _size(len(rows) * across, across, width, lines)
    is_large_enough = min(wide, tall) >= MIN_SIDE
    cells = (width - 1) // across
    if not is_large_enough:
        cells = max(get_cwidth(one.caption) for one in chain(*rows)) + GAP
        across = max(1, (width - 1) // cells)
    terminal.title(heat.title)
    for maps in rows:
        for start in range(0, len(maps), across):
            captions = [fit(one.caption, cells - 1) for one in maps[start : start + across]]
            terminal.line("".join(f"{caption:{cells}}" for caption in captions).rstrip())
        if is_large_enough:
            _draw_row(terminal, maps, wide, tall if terminal.colour else tall // 2, cells)
    if is_large_enough:
        _scale(terminal)
    _write_notes(terminal, [*heat.notes, *[HOW_TO_READ_MAPS] * is_large_enough])


def resize(cells: Sequence[Row], tall: int, wide: int) -> list[list[float | None]]:
    """Reduce a map, or enlarge it by repeating cells up to `MAX_REPEATS` times, to at most `tall` × `wide` cells.

    Merged columns are summed and merged rows averaged, so that each row keeps its sum.
    """
    columns = max(map(len, cells))
    padded = [[*row, *[None] * (columns - len(row))] for row in cells]
    narrow = [[_total(row[first:last]) for first, last in _parts(columns, wide)] for row in padded]
    means = []
    for first, last in _parts(len(cells), tall):
        totals = map(_total, zip(*narrow[first:last], strict=True))
        means.append([None if total is None else total / (last - first) for total in totals])
    repeat_columns = min(MAX_REPEATS, max(1, wide // columns))
    repeat_rows = min(MAX_REPEATS, max(1, tall // len(cells)))
    return [[value for value in row for _ in range(repeat_columns)] for row in means for _ in range(repeat_rows)]


def _size(count: int, across: int, width: int, lines: int) -> tuple[int, int]:
    """Return the columns and rows of each of `count` maps, `across` side by side; a line holds two rows."""
    tall = 2 * (lines // -(-count // across) - 1)
    return min((width - 1) // across - GAP, 2 * tall), tall


def _parts(count: int, most: int) -> list[tuple[int, int]]:
    """Split `count` items into at most `most` parts, and return the start and end of each."""
    parts = min(count, most)
    return list(pairwise(index * count // parts for index in range(parts + 1)))


def _total(values: Row) -> float | None:
    """Return the sum of the values that are not None, or None if there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _draw_row(terminal: Terminal, maps: Sequence[SmallMap], wide: int, tall: int, cells: int) -> None:
    """Draw maps side by side, each in `cells` cells."""
    per_line = 2 if terminal.colour else 1
    fitted = [resize(one.cells, tall, wide) for one in maps]
    for line in range(0, max(map(len, fitted)), per_line):
        for index, one in enumerate(fitted):
            terminal.write(" " * (index * cells - terminal.column))
            _blocks(terminal, [*one[line : line + per_line], []][:per_line])
        terminal.fresh_line()


def _blocks(terminal: Terminal, rows: Sequence[Row], cell_width: int = 1) -> None:
    """Draw one line of a map: a row, or in colour two rows."""
    for values in zip_longest(*rows):
        text, style = _styled(values, terminal.theme.heat) if terminal.colour else (_shade(values[0]), "")
        terminal.write(text * cell_width, style)


def _shade(value: float | None) -> str:
    return " " if value is None else SHADES[bisect_right(SHADES, value, key=itemgetter(0)) - 1][1]


def _styled(values: Row, colours: Sequence[int]) -> tuple[str, str]:
    """Return the character and the style of a cell, or of one above another."""
    codes = ["" if value is None else f"5;{colours[bisect_right(LEVELS, value) - 1]}" for value in values]
    match codes:
        case [one]:
            return " ", f"\x1b[48;{one}m" if one else ""
        case ["", lower]:
            return ("▄", f"\x1b[38;{lower}m") if lower else (" ", "")
        case [upper, ""]:
            return "▀", f"\x1b[38;{upper}m"
    return "▀", "\x1b[38;{};48;{}m".format(*codes)


def _write_notes(terminal: Terminal, notes: Sequence[str]) -> None:
    for line in wrap_items(notes, terminal.width - 1):
        for part in textwrap.wrap(line, terminal.width - 1):
            terminal.line(part, DIM)


def _scale(terminal: Terminal) -> None:
    """Draw the legend of the colours or characters."""
    if terminal.colour:
        for level, colour in zip(LEVELS, terminal.theme.heat, strict=True):
            terminal.write("  ", f"\x1b[48;5;{colour}m")
            terminal.write(f" {100 * level:.0f}  ", DIM)
        terminal.write("% or more", DIM)
    else:
        terminal.write("  ".join(f"{shade} {100 * level:.0f}" for level, shade in SHADES) + " % or more")
    terminal.fresh_line()


def signed_cell(terminal: Terminal, value: float, largest: float) -> tuple[str, str]:
    """Return the character and the style of a number by its size, as a fraction of the largest one, and its sign."""
    if isinf(value):
        return "╳", DIM
    size = min(1.0, abs(value) / largest) if largest else 0.0
    if not terminal.colour:
        return _shade(size), ""
    colours = terminal.theme.cold if value < 0 else terminal.theme.heat
    return " ", f"\x1b[48;5;{colours[bisect_right(LEVELS, size) - 1]}m"
