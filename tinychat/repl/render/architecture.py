"""Draws what a model is made of: its parts under each other, and at their left how data flows through them."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.commands.results import Architecture
from tinychat.model.diagram import Diagram, Layer, Stage
from tinychat.repl.render.terminal import BOLD, DIM, Terminal, fit, pad

GAP = "  "
LEAST_ABOUT = 18
"""cells of what a part is, or it is left out"""
FLOW = {
    "": "  │   ",
    "top": "╭─┴─",
    "leaves": "│ ├─╮ ",
    "beside": "│ │ │ ",
    "joins": "│ ⊕─╯ ",
    "inside": "│ │   ",
    "bottom": "╰─┬─",
    "begins": "",
    "ends": "  ▼   ",
}
"""what stands at the left of a row: a line is what all parts read from and add to; a block stands in a frame"""
PLAIN = dict.fromkeys(FLOW, "") | {"leaves": "  ", "beside": "  ", "joins": "  ", "inside": "  "}
"""the same where there is no terminal"""


@dataclass(frozen=True)
class Row:
    """One line of the drawing, in cells."""

    flow: str
    name: str
    about: str = ""
    shape: str = ""
    parameters: str = ""
    is_ruled: bool = False
    """a rule goes on from its name to the end"""


def draw_architecture(terminal: Terminal, drawn: Architecture) -> None:
    """The parts as wide as they need; where the screen is too narrow, without their shapes, or their names alone."""
    for line in _wrap(drawn.title, terminal.width):
        terminal.line(line)
    flow = PLAIN if terminal.dumb else FLOW
    gutter = max(map(len, flow.values()))
    rows = [row for row in _rows(drawn.diagram, sized=drawn.is_sized) if row.name or not terminal.dumb]
    widths = _widths(rows, terminal.width - 1 - gutter)
    for row in rows:
        left, right = flow[row.flow].ljust(gutter), _line(row, widths)
        if row.is_ruled and not terminal.dumb:
            left, right = _ruled(row, flow[row.flow], gutter + len(right), has_parameters=bool(widths[-1]))
        terminal.fresh_line()
        terminal.write(left, DIM)
        terminal.write(right.rstrip(), BOLD if row.is_ruled and row.name else "" if row.parameters else DIM)
        terminal.fresh_line()
    for note in drawn.notes:
        for line in _wrap(note, terminal.width):
            terminal.line(line, DIM)


def _widths(rows: Sequence[Row], room: int) -> list[int]:
    """The cells of each column; 0: it is left out."""
    name, about, shape, parameters = (max(map(get_cwidth, cells)) for cells in zip(*map(_cells, rows), strict=True))
    taken = name + parameters + 2 * len(GAP)
    if room - taken - shape - len(GAP) < LEAST_ABOUT:
        shape = 0
    taken += shape + len(GAP) * bool(shape)
    about = min(about, room - taken) if room - taken >= LEAST_ABOUT else 0
    return [name, about, shape, parameters] if name + len(GAP) + parameters <= room else [room, 0, 0, 0]


def _cells(row: Row) -> tuple[str, str, str, str]:
    return row.name, row.about, row.shape, row.parameters


def _line(row: Row, widths: Sequence[int]) -> str:
    """A row in columns, the figures at the right."""
    texts = [pad(fit(cell, width), width) for cell, width in zip(_cells(row), widths, strict=True) if width]
    if widths[-1]:
        texts[-1] = texts[-1].rstrip().rjust(widths[-1])
    return GAP.join(texts)


def _ruled(row: Row, left: str, length: int, *, has_parameters: bool) -> tuple[str, str]:
    """A row that is a rule, with a name and a figure in it: what stands left of the name, and the rest."""
    figure = row.parameters if has_parameters else ""
    rule = "─" * max(0, length - len(" ".join(filter(None, (left, row.name, figure)))) - bool(row.name))
    return left + (" " if row.name else ""), " ".join(filter(None, (row.name, rule, figure)))


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - 1, break_on_hyphens=False)


def _rows(diagram: Diagram, *, sized: bool) -> Iterator[Row]:
    """From the tokens to the logits of each stack.

    Args:
        sized: whether shapes and parameters are known.
    """
    stacks = list(dict.fromkeys(stage.stack for stage in diagram.stages))
    for stack in stacks:
        stages = [stage for stage in diagram.stages if stage.stack == stack]
        positions = str(stages[0].layers[0].shape[0]) if sized else ""
        yield Row("begins", "tokens" if len(stacks) == 1 else f"{stack}: tokens", "", positions)
        for stage in stages:
            if stage.name == "block":
                yield from _block(stage, sized)
            else:
                yield from (_row("", layer, sized) for layer in stage.layers)
        yield Row("ends", "logits" if stack == stacks[-1] else "to the decoder")
    if sized:
        yield Row("begins", "in all", "", "", f"{diagram.parameters:,}")


def _block(stage: Stage, sized: bool) -> Iterator[Row]:
    times = f"{stage.times} × {stage.parameters:,}" if sized else ""
    yield Row("top", "block" if sized else "block × n", parameters=times, is_ruled=True)
    leaves = True
    for layer in stage.layers:
        flow = layer.branch or "inside"
        yield _row("leaves" if flow == "beside" and leaves else flow, layer, sized)
        leaves = flow != "beside"
    yield Row("bottom", "", is_ruled=True)


def _row(flow: str, layer: Layer, sized: bool) -> Row:
    is_named = layer.name.replace("-", "") == layer.kind.lower()
    about = layer.about if is_named else f"{layer.kind} {layer.about}".strip()
    if not sized:
        return Row(flow, layer.name, layer.kind)
    shape = "" if layer.branch == "joins" else " × ".join(map(str, layer.shape))
    return Row(flow, layer.name, about, shape, f"{layer.parameters:,}" if layer.parameters else "")
