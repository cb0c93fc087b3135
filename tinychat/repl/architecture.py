"""Draws what a model is made of: its parts under each other, and at their left how data flows through them."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.commands.results import Architecture
from tinychat.model.diagram import Diagram, Layer, Stage
from tinychat.repl.terminal import BOLD, DIM, Terminal, fit

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
    rows = [row for row in _rows(drawn.diagram, sized=drawn.is_sized) if row.name or not terminal.dumb]
    gutter = max(map(len, flow.values()))
    columns = [[row.name, row.about, row.shape, row.parameters] for row in rows]
    widths = [max(get_cwidth(cell) for cell in cells) for cells in zip(*columns, strict=True)]
    room = terminal.width - 1 - gutter
    if room - widths[0] - widths[2] - widths[3] - 3 * len(GAP) < LEAST_ABOUT:
        widths[2] = 0
    about = room - sum(width + len(GAP) for place, width in enumerate(widths) if width and place != 1)
    widths[1] = min(widths[1], about) if about >= LEAST_ABOUT else 0
    if widths[0] + len(GAP) + widths[3] > room:
        widths = [room, 0, 0, 0]
    for row, cells in zip(rows, columns, strict=True):
        fitted = [fit(cell, width) for cell, width in zip(cells, widths, strict=True)]
        texts = [
            " " * (width - get_cwidth(cell)) + cell if place == 3 else cell + " " * (width - get_cwidth(cell))
            for place, (cell, width) in enumerate(zip(fitted, widths, strict=True))
            if width
        ]
        line = GAP.join(texts)
        left = flow[row.flow].ljust(gutter)
        if row.is_ruled and not terminal.dumb:
            left = flow[row.flow] + (" " if row.name else "")
            length = gutter + len(line) - len(left) - len(row.name) - (len(row.parameters) if widths[3] else 0)
            rule = "─" * max(0, length - (1 if row.name else 0) - (1 if row.parameters else 0))
            line = " ".join(filter(None, (row.name, rule, row.parameters if widths[3] else "")))
        terminal.fresh_line()
        terminal.write(left, DIM)
        terminal.write(line.rstrip(), BOLD if row.is_ruled and row.name else "" if row.parameters else DIM)
        terminal.fresh_line()
    for note in drawn.notes:
        for line in _wrap(note, terminal.width):
            terminal.line(line, DIM)


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
        places = str(stages[0].layers[0].shape[0]) if sized else ""
        yield Row("begins", "tokens" if len(stacks) == 1 else f"{stack}: tokens", "", places)
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
