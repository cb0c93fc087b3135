"""Draws what commands come back with as lines of words: for screen readers and slow lines."""

import itertools
from collections.abc import Sequence

from tinychat.commands.results import Bars, HeatMap, HeatMaps, Help, Outline, Result, Shaded, Table
from tinychat.repl.terminal import Terminal
from tinychat.textutil import percent

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
    order = sorted(range(len(cells)), key=lambda place: -cells[place])
    return ", ".join(f"{columns[place]} {percent(cells[place])}" for place in order[:BRIGHTEST])
