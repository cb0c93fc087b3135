"""Draws what commands come back with as lines of words: for screen readers and slow lines.

Shares as bars, beside them what became of them.

Draws the overview of all commands and keys: on one screen, however many there are.

Draws what commands come back with.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence

from prompt_toolkit.utils import get_cwidth
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tinychat.commands.results import (
    Architecture,
    Bar,
    Bars,
    Change,
    Drawn,
    HeatMap,
    HeatMaps,
    Help,
    Message,
    Outline,
    Result,
    Shaded,
    Table,
)
from tinychat.repl.render.architecture import draw_architecture
from tinychat.repl.render.heatmap import draw_map, draw_maps
from tinychat.repl.render.plot import sparkline
from tinychat.repl.render.terminal import CYAN, DIM, RED, YELLOW, Terminal, fit
from tinychat.textutil import escape_controls, percent

BRIGHTEST = 3
"""columns of each row of a heat map"""
SURPRISING = 3
"""bits from which on a token stands in brackets"""


def draw_plain(terminal: Terminal, result: Result) -> bool:
    """Shows a result that would else be drawn; False where it is lines of words anyway."""
    match result:
        case Table():
            rows = [_row(row) for row in (result.columns, *result.rows)] if result.rows else ["none yet"]
            lines = [result.title, *rows, *result.notes]
        case Bars():
            lines = [result.title, *result.notes]
            lines[1:1] = [
                f"{'chosen: ' if bar.marked else ''}{bar.label.strip()} {percent(bar.share)}"
                + ("" if bar.after is None else f", then {percent(bar.after)}" if bar.after else ", then cut")
                for bar in result.bars
            ]
        case HeatMap():
            pairs = list(zip(result.rows, result.cells, strict=True))[result.marked :]
            told = [f"{row}: {_brightest(result.columns, cells)}" for row, cells in pairs]
            lines = [result.title, *told, *result.notes]
        case HeatMaps():
            lines = [result.title, *(one.caption for row in result.rows for one in row), *result.notes]
        case Outline():
            lines = [
                f"{'here, ' if row.is_here else ''}{row.text}, {len(row.prefix) // 3 + 1} deep" for row in result.rows
            ]
            lines += result.notes
        case Shaded():
            known = [bits for _, bits in result.pieces if bits is not None]
            legend = f"in brackets: less likely than 1 in {2**SURPRISING}"
            lines = [bracketed(result), f"surprise, up to {max(known, default=0):.1f} bits, {legend}"]
            lines += [told_entropy(result)] if result.entropies else []
            lines += result.notes
        case Help():
            lines = [
                f"{theme}: " + ", ".join(f"/{name} {brief}".rstrip() for name, brief in entries.items())
                for theme, entries in result.themes.items()
            ]
            lines.append("/help COMMAND says more, with an example; the beginning of a name is enough")
        case _:
            return False
    for line in filter(None, lines):
        terminal.line(line)
    return True


def bracketed(shaded: Shaded) -> str:
    """The text, with what is surprising in brackets."""
    parts = []
    for surprising, pieces in itertools.groupby(shaded.pieces, key=lambda piece: (piece[1] or 0) > SURPRISING):
        text = "".join(text for text, _ in pieces)
        parts.append(f"[{text}]" if surprising else text)
    return "".join(parts)


def told_entropy(shaded: Shaded) -> str:
    """`entropy, up to 4.1 bits, 1.9 on average`."""
    entropies = shaded.entropies
    return f"entropy, up to {max(entropies):.1f} bits, {sum(entropies) / len(entropies):.1f} on average"


def _row(cells: tuple[str, ...]) -> str:
    """`temperature: 0.8, default, randomness`; a mark before the name stays before it."""
    first, *others = filter(None, cells)
    if first == "›":
        first, *others = others
        first = f"here, {first}"
    return f"{first}: {', '.join(others)}" if others else first


def _brightest(columns: Sequence[str], cells: Sequence[float]) -> str:
    """`the 62.0 %, cat 20.1 %`: the columns that a row gives most to."""
    order = sorted(range(len(cells)), key=lambda index: -cells[index])
    return ", ".join(f"{columns[index]} {percent(cells[index])}" for index in order[:BRIGHTEST])


# ---- from tinychat.repl.render.results ----


BAR = "▇"
LONGEST_BAR = 24
SHARE = 7
"""cells of `100.0 %`"""
CHOSEN, POINTED_AT = "›", "»"


def bars_drawing(bars: Bars, width: int, pointed_at: int | None = None) -> Group:
    """The title, the text around the place, the bars, the notes.

    Args:
        width: cells, at most.
        pointed_at: the place of a bar that is marked apart from the chosen one.
    """
    parts: list[RenderableType] = [Text(bars.title, "dim")]
    if any(bars.where):
        parts.append(_where(bars.where, width))
    parts.append(_grid(bars.bars, width, pointed_at))
    parts += [Text(escape_controls(note), "dim") for note in bars.notes]
    return Group(*parts)


def _where(where: tuple[str, str, str], width: int) -> Text:
    """The token between › and ‹, with as much of the text around it as one line holds."""
    before, token, after = (escape_controls(text).replace("\n", "⏎").replace("\t", " ") for text in where)
    middle = f"›{fit(token, width // 2)}‹"
    room = width - get_cwidth(middle)
    left = fit(before[::-1], room // 2)[::-1]
    right = fit(after, room - get_cwidth(left))
    return Text.assemble((left, "dim"), (middle, "bold"), (right, "dim"), no_wrap=True)


def _grid(bars: tuple[Bar, ...], width: int, pointed_at: int | None) -> Grid:
    """Each with its share at its left; where something became of the shares, that beside it."""
    double = any(bar.after is not None for bar in bars)
    longest = LONGEST_BAR
    if double:
        taken = max(get_cwidth(escape_controls(bar.label)) for bar in bars) + 2 * SHARE + 6
        longest = max(1, min(LONGEST_BAR, (width - taken) // 2))
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for index in range(6 if double else 4):
        grid.add_column(no_wrap=True, justify="right" if index in (2, 4) else "left")
    if double:
        grid.add_row("", "", Text("before", style="dim"), "", Text("after", style="dim"), "")
    for index, bar in enumerate(bars):
        mark = POINTED_AT if index == pointed_at else CHOSEN if bar.marked else ""
        style = "reverse" if index == pointed_at else "bold" if bar.marked else ""
        grid.add_row(mark, Text(escape_controls(bar.label), style), *_cells(bar, longest))
    return grid


def _cells(bar: Bar, longest: int) -> Iterator[Text]:
    yield Text(percent(bar.share))
    yield _length(bar.share, longest)
    if bar.after is not None:
        yield Text(percent(bar.after)) if bar.after else Text("cut", style="dim")
        yield _length(bar.after, longest)


def _length(share: float, longest: int) -> Text:
    return Text(BAR * max(1, round(longest * share)) if share >= 0.001 else "", style="cyan")


# ---- from tinychat.repl.render.results ----


THEME_WIDTH = 10
ENTRY_WIDTH = 35
NAME_WIDTH = 14

NAMES_ALONE = ("training", "models", "session", "inside", "talk")
"""the themes that lose their explanations where the screen is too small for all, in that order"""
AROUND = 3
"""lines around the overview: the command, the next prompt and the toolbar"""

KEYS = (
    ("typing", "Enter sends · Alt-Enter new line · Tab completes · //x sends /x"),
    ("", "F1 help · F2 greedy · F4 vi · Ctrl-R search · Ctrl-X Ctrl-E editor"),
    ("answering", "↑↓ temp · ←→ length · [ ] top-p · g greedy · space pause · Esc stop"),
    ("training", "b background · s sample · p prompt · e evaluate · q stop"),
)


def draw_help(terminal: Terminal, help: Help) -> None:
    """Themes at the left; beside them their commands, in as many columns as there is room for."""
    _, height = terminal.size()
    for count in range(len(NAMES_ALONE) + 1):
        drawing = Padding(_overview_grid(help, terminal.width, NAMES_ALONE[:count]), (0, 1, 0, 0))
        if terminal.render(drawing).count("\n") + 1 <= height - AROUND:
            break
    terminal.show(drawing)
    terminal.line("/help COMMAND says more, with an example; the beginning of a name is enough", DIM)


def _overview_grid(help: Help, width: int, names_alone: Collection[str]) -> Grid:
    grid = Grid.grid()
    grid.add_column(width=THEME_WIDTH, style="dim", no_wrap=True)
    grid.add_column()
    across = max(1, (width - THEME_WIDTH) // ENTRY_WIDTH)
    for theme, entries in help.themes.items():
        plain = [name for name, brief in entries.items() if not brief or theme in names_alone]
        if plain:
            grid.add_row(theme, Text("  ".join(f"/{name}" for name in plain), style="cyan"))
        explained = [(name, brief) for name, brief in entries.items() if name not in plain]
        for index in range(0, len(explained), across):
            line = Text(no_wrap=True, overflow="ellipsis")
            for name, brief in explained[index : index + across]:
                line.append(f"{'/' + name:{NAME_WIDTH}}", style="cyan")
                line.append(f"{brief:{ENTRY_WIDTH - NAME_WIDTH}}")
            line.rstrip()
            grid.add_row(theme if index == 0 and not plain else "", line)
    for theme, words in KEYS:
        grid.add_row(theme, Text(words, style="dim"))
    return grid


# ---- from tinychat.repl.render.results ----


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
    for index, (name, width) in enumerate(zip(table.columns, widths, strict=True)):
        grid.add_column(fit(name, width), no_wrap=True, min_width=width)
        if index in table.right:
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
