"""Draws the overview of all commands and keys: on one screen, however many there are."""

from collections.abc import Collection

from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tinychat.commands.results import Help
from tinychat.repl.terminal import DIM, Terminal

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
        drawing = Padding(_grid(help, terminal.width, NAMES_ALONE[:count]), (0, 1, 0, 0))
        if terminal.render(drawing).count("\n") + 1 <= height - AROUND:
            break
    terminal.show(drawing)
    terminal.line("/help COMMAND says more, with an example; the beginning of a name is enough", DIM)


def _grid(help: Help, width: int, names_alone: Collection[str]) -> Grid:
    grid = Grid.grid()
    grid.add_column(width=THEME_WIDTH, style="dim", no_wrap=True)
    grid.add_column()
    across = max(1, (width - THEME_WIDTH) // ENTRY_WIDTH)
    for theme, entries in help.themes.items():
        plain = [name for name, brief in entries.items() if not brief or theme in names_alone]
        if plain:
            grid.add_row(theme, Text("  ".join(f"/{name}" for name in plain), style="cyan"))
        explained = [(name, brief) for name, brief in entries.items() if name not in plain]
        for place in range(0, len(explained), across):
            line = Text(no_wrap=True, overflow="ellipsis")
            for name, brief in explained[place : place + across]:
                line.append(f"{'/' + name:{NAME_WIDTH}}", style="cyan")
                line.append(f"{brief:{ENTRY_WIDTH - NAME_WIDTH}}")
            line.rstrip()
            grid.add_row(theme if place == 0 and not plain else "", line)
    for theme, words in KEYS:
        grid.add_row(theme, Text(words, style="dim"))
    return grid
