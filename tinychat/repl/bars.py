"""Shares as bars, beside them what became of them."""

from collections.abc import Iterator

from prompt_toolkit.utils import get_cwidth
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from tinychat.commands.results import Bar, Bars
from tinychat.repl.terminal import fit
from tinychat.textutil import escape_controls, percent

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
    for place in range(6 if double else 4):
        grid.add_column(no_wrap=True, justify="right" if place in (2, 4) else "left")
    if double:
        grid.add_row("", "", Text("before", style="dim"), "", Text("after", style="dim"), "")
    for place, bar in enumerate(bars):
        mark = POINTED_AT if place == pointed_at else CHOSEN if bar.marked else ""
        style = "reverse" if place == pointed_at else "bold" if bar.marked else ""
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
