"""Draws what commands come back with."""

import math

from prompt_toolkit.utils import get_cwidth
from rich.table import Table as Grid
from rich.text import Text

from tinychat.commands.results import (
    Architecture,
    Bars,
    Change,
    Drawn,
    HeatMap,
    HeatMaps,
    Help,
    Message,
    Outline,
    Shaded,
    Table,
)
from tinychat.repl.architecture import draw_architecture
from tinychat.repl.bars import bars_drawing
from tinychat.repl.heatmap import draw_map, draw_maps
from tinychat.repl.overview import draw_help
from tinychat.repl.plain_draw import SURPRISING, bracketed, draw_plain, told_entropy
from tinychat.repl.plot import sparkline
from tinychat.repl.terminal import CYAN, DIM, RED, YELLOW, Terminal, fit
from tinychat.textutil import escape_controls

GAP = 2
"""columns between two columns of a table"""

SHADES = ((1, "", "1 in 2, "), (3, CYAN, "1 in 8, "), (6, YELLOW, "1 in 64, "), (math.inf, RED, "or less"))
"""up to so many bits of surprise, how a token is drawn, and the words for it in the legend"""


def draw(terminal: Terminal, result: Drawn) -> None:
    """Shows a result."""
    if terminal.dumb and draw_plain(terminal, result):
        return
    match result:
        case Message():
            for line in result.lines:
                terminal.line(line)
            _notes(terminal, result.notes)
        case Change():
            terminal.line(result.text)
        case Table():
            _draw_table(terminal, result)
        case Bars():
            terminal.show(bars_drawing(result, terminal.width - 1))
        case Outline():
            _draw_outline(terminal, result)
        case Shaded():
            _draw_shaded(terminal, result)
        case Architecture():
            draw_architecture(terminal, result)
        case HeatMap():
            draw_map(terminal, result)
        case HeatMaps():
            draw_maps(terminal, result)
        case Help():
            draw_help(terminal, result)


def _notes(terminal: Terminal, notes: tuple[str, ...]) -> None:
    for note in notes:
        terminal.line(note, DIM)


def _draw_table(terminal: Terminal, table: Table) -> None:
    """Columns as wide as they need; where the screen is too narrow, the last one is cut off."""
    if table.title:
        terminal.line(table.title)
    widths = [
        max(get_cwidth(escape_controls(cell)) for cell in cells)
        for cells in zip(table.columns, *table.rows, strict=True)
    ]
    widths[-1] = max(1, min(widths[-1], terminal.width - 1 - sum(widths[:-1]) - GAP * (len(widths) - 1)))
    grid = Grid(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    for place, (name, width) in enumerate(zip(table.columns, widths, strict=True)):
        grid.add_column(fit(name, width), no_wrap=True, min_width=width)
        if place in table.right:
            grid.columns[-1].justify = "right"
    for row in table.rows:
        grid.add_row(*(Text(fit(cell, width)) for cell, width in zip(row, widths, strict=True)))
    if table.rows:
        terminal.show(grid)
    else:
        terminal.line("none yet")
    _notes(terminal, table.notes)


def _draw_outline(terminal: Terminal, outline: Outline) -> None:
    """A line for each row; what did not lead to where the conversation stands is dim."""
    for row in outline.rows:
        mark = "› " if row.is_here else "  "
        terminal.line(fit(mark + row.prefix + row.text, terminal.width - 1), "" if row.is_on_path else DIM)
    _notes(terminal, outline.notes)


def _draw_shaded(terminal: Terminal, shaded: Shaded) -> None:
    """The text in colours, or with what is surprising in brackets; under it lines of surprises and of entropies."""
    terminal.fresh_line()
    if terminal.colour:
        for text, bits in shaded.pieces:
            style = DIM if bits is None else next(style for most, style, _ in SHADES if bits <= most)
            terminal.write(text, style)
    else:
        terminal.write(bracketed(shaded))
    known = [bits for _, bits in shaded.pieces if bits is not None]
    terminal.line(sparkline(known, terminal.width - 1), DIM)
    terminal.write(f"surprise, up to {max(known, default=0):.1f} bits", DIM)
    if terminal.colour:
        terminal.write(" · likelier than ", DIM)
        for _, style, words in SHADES:
            terminal.write(words, style)
    else:
        terminal.write(f" · in brackets: less likely than 1 in {2**SURPRISING}", DIM)
    terminal.fresh_line()
    if shaded.entropies:
        terminal.line(sparkline(list(shaded.entropies), terminal.width - 1), DIM)
        terminal.line(told_entropy(shaded), DIM)
    _notes(terminal, shaded.notes)
