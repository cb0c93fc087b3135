"""Draws what commands come back with."""

from prompt_toolkit.utils import get_cwidth
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tinychat.commands.results import Bars, Change, Help, Message, Table
from tinychat.repl.terminal import DIM, Terminal, fit
from tinychat.text.harmless import harmless

GAP = 2
"""columns between two columns of a table"""
BAR = "▇"
LONGEST_BAR = 24
THEME_WIDTH = 10
ENTRY_WIDTH = 35
NAME_WIDTH = 14

KEYS = (
    ("typing", "Enter sends · Alt-Enter new line · Tab completes · //x sends /x"),
    ("answering", "↑↓ temperature · ←→ length · g greedy · space pause · Esc stop"),
    ("training", "b background · s sample · p prompt · e evaluate · q stop"),
)


def draw(terminal: Terminal, result: Message | Change | Table | Bars | Help) -> None:
    """Shows a result."""
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
            _draw_bars(terminal, result)
        case Help():
            _draw_help(terminal, result)


def _notes(terminal: Terminal, notes: tuple[str, ...]) -> None:
    for note in notes:
        terminal.line(note, DIM)


def _text(text: str, style: str = "") -> Text:
    return Text(harmless(text), style=style)


def _draw_table(terminal: Terminal, table: Table) -> None:
    """Columns as wide as they need; where the screen is too narrow, the last one is cut off."""
    if table.title:
        terminal.line(table.title)
    widths = [
        max(get_cwidth(harmless(cell)) for cell in cells) for cells in zip(table.columns, *table.rows, strict=True)
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


def _draw_bars(terminal: Terminal, bars: Bars) -> None:
    terminal.line(bars.title, DIM)
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for _ in range(4):
        grid.add_column(no_wrap=True)
    grid.columns[2].justify = "right"
    for bar in bars.bars:
        length = BAR * max(1, round(LONGEST_BAR * bar.share)) if bar.share >= 0.001 else ""
        style = "bold" if bar.marked else ""
        share = f"{100 * bar.share:.1f} %"
        grid.add_row("›" if bar.marked else "", _text(bar.label, style), share, Text(length, style="cyan"))
    terminal.show(grid)


def _draw_help(terminal: Terminal, help: Help) -> None:
    """Themes at the left; beside them their commands, in as many columns as there is room for."""
    grid = Grid.grid()
    grid.add_column(width=THEME_WIDTH, style="dim", no_wrap=True)
    grid.add_column()
    across = max(1, (terminal.width - THEME_WIDTH) // ENTRY_WIDTH)
    for theme, entries in help.themes:
        plain = [entry for entry in entries if not entry.brief]
        if plain:
            grid.add_row(theme, Text("  ".join(f"/{entry.name}" for entry in plain), style="cyan"))
        explained = [entry for entry in entries if entry.brief]
        for place in range(0, len(explained), across):
            line = Text(no_wrap=True, overflow="ellipsis")
            for entry in explained[place : place + across]:
                line.append(f"{'/' + entry.name:{NAME_WIDTH}}", style="cyan")
                line.append(f"{entry.brief:{ENTRY_WIDTH - NAME_WIDTH}}")
            line.rstrip()
            grid.add_row(theme if place == 0 and not plain else "", line)
    for theme, words in KEYS:
        grid.add_row(theme, Text(words, style="dim"))
    terminal.show(Padding(grid, (0, 1, 0, 0)))
    terminal.line("/help COMMAND says more, with an example; the beginning of a name is enough", DIM)
