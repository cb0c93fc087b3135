"""Draw the architecture of a model: its layers from top to bottom, with the flow of data on the left."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.commands.results import Architecture
from tinychat.model.config import Diagram, Layer, Stage
from tinychat.repl.render.palette import ACCENT, BOLD, DIM, LINE
from tinychat.repl.render.terminal import Terminal, fit, pad

GAP = "  "
MIN_ABOUT = 18
"""Cells below which the description of a layer is left out."""
FLOW = {
    "": "  │   ",
    "top": "╭─┴─",
    "branch": "│ ├─╮ ",
    "beside": "│ │ │ ",
    "joins": "│ ⊕─╯ ",
    "inside": "│ │   ",
    "bottom": "╰─┬─",
    "begins": "",
    "ends": "  ▼   ",
}
"""Drawing on the left of a row: the residual stream is a line, and a block is a frame around it."""
PLAIN_FLOW = dict.fromkeys(FLOW, "") | {"branch": "  ", "beside": "  ", "joins": "  ", "inside": "  "}
"""Indentation in the place of `FLOW`, on a dumb terminal."""
HOW_TO_READ = "data flows down · ⊕ adds a layer's result · right: its shape and parameters"
FRAMED = ("block", "mixture")
"""Stages with a frame around them."""


@dataclass(frozen=True)
class Row:
    """One line of the drawing; if it `is_ruled`, a rule fills it after the name."""

    flow: str
    name: str
    about: str = ""
    shape: str = ""
    parameters: str = ""
    is_ruled: bool = False


def draw_architecture(terminal: Terminal, architecture: Architecture) -> None:
    """Draw a model's layers; a narrow screen drops their shapes first, then their descriptions."""
    _write_wrapped(terminal, architecture.title, BOLD)
    flow = PLAIN_FLOW if terminal.dumb else FLOW
    gutter = max(map(len, flow.values()))
    rows = [row for row in _rows(architecture.diagram, is_sized=architecture.is_sized) if row.name or not terminal.dumb]
    widths = _widths(rows, terminal.width - 1 - gutter)
    for row in rows:
        left, right = flow[row.flow].ljust(gutter), _line(row, widths)
        if row.is_ruled and not terminal.dumb:
            left, right = _ruled(row, flow[row.flow], gutter + len(right), has_parameters=bool(widths[-1]))
        terminal.fresh_line()
        terminal.write(left, DIM)
        for text, style in _styled(row, right.rstrip()):
            terminal.write(text, style)
        terminal.fresh_line()
    for note in (*[HOW_TO_READ] * (not terminal.dumb), *architecture.notes):
        _write_wrapped(terminal, note, DIM)


def _styled(row: Row, text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a drawn row with their styles: its name and its parameters stand out."""
    name = text[: len(row.name)]
    rest = text.removeprefix(name)
    parameters = row.parameters if row.parameters and rest.endswith(row.parameters) else ""
    yield name, BOLD if row.is_ruled else ACCENT if row.parameters and row.flow != "begins" else ""
    yield rest.removesuffix(parameters), LINE if row.is_ruled else DIM
    yield parameters, BOLD if row.is_ruled or row.flow == "begins" else ""


def _write_wrapped(terminal: Terminal, text: str, style: str = "") -> None:
    for line in textwrap.wrap(text, terminal.width - 1, break_on_hyphens=False):
        terminal.line(line, style)


def _widths(rows: Sequence[Row], room: int) -> list[int]:
    """Return the cells of each column, 0 for one that is left out."""
    name, about, shape, parameters = (max(map(get_cwidth, cells)) for cells in zip(*map(_cells, rows), strict=True))
    if name + len(GAP) + parameters > room:
        return [room, 0, 0, 0]
    room -= name + parameters + 2 * len(GAP)
    if room - shape - len(GAP) < MIN_ABOUT:
        shape = 0
    room -= shape + len(GAP) * bool(shape)
    return [name, min(about, room) if room >= MIN_ABOUT else 0, shape, parameters]


def _cells(row: Row) -> tuple[str, str, str, str]:
    return row.name, row.about, row.shape, row.parameters


def _line(row: Row, widths: Sequence[int]) -> str:
    """Return a row in columns, with its number of parameters aligned right."""
    texts = [pad(fit(cell, width), width) for cell, width in zip(_cells(row), widths, strict=True) if width]
    if widths[-1]:
        texts[-1] = texts[-1].rstrip().rjust(widths[-1])
    return GAP.join(texts)


def _ruled(row: Row, left: str, length: int, *, has_parameters: bool) -> tuple[str, str]:
    """Return the two parts of a row that is a rule: what precedes the name, and the rest."""
    parameters = row.parameters if has_parameters else ""
    rule = "─" * max(0, length - len(" ".join(filter(None, (left, row.name, parameters)))) - bool(row.name))
    return left + (" " if row.name else ""), " ".join(filter(None, (row.name, rule, parameters)))


def _rows(diagram: Diagram, *, is_sized: bool) -> Iterator[Row]:
    """Yield the rows of each stack, from the tokens to the logits, with shapes and numbers of parameters if known."""
    stacks = list(dict.fromkeys(stage.stack for stage in diagram.stages))
    for stack in stacks:
        stages = [stage for stage in diagram.stages if stage.stack == stack]
        positions = str(stages[0].layers[0].shape[0]) if is_sized else ""
        yield Row("begins", "tokens" if len(stacks) == 1 else f"{stack}: tokens", "", positions)
        for stage in stages:
            is_block = stage.name in FRAMED
            yield from _block(stage, is_sized) if is_block else (_row("", layer, is_sized) for layer in stage.layers)
        yield Row("ends", "logits" if stack == stacks[-1] else "to the decoder")
    if is_sized:
        yield Row("begins", "in all", "", "", f"{diagram.parameters:,}")


def _block(stage: Stage, is_sized: bool) -> Iterator[Row]:
    """Yield the rows of a block, framed; the first layer beside the residual stream branches off from it."""
    times = f"{stage.times} × " * (stage.name == "block") + f"{stage.parameters:,}" if is_sized else ""
    name = stage.name if is_sized or stage.name != "block" else "block × n"
    yield Row("top", name, parameters=times, is_ruled=True)
    branches_off = True
    for layer in stage.layers:
        flow = layer.branch or "inside"
        yield _row("branch" if flow == "beside" and branches_off else flow, layer, is_sized)
        branches_off = flow != "beside"
    yield Row("bottom", "", is_ruled=True)


def _row(flow: str, layer: Layer, is_sized: bool) -> Row:
    if not is_sized:
        return Row(flow, layer.name, layer.kind)
    is_same_name = layer.name.replace("-", "").endswith(layer.kind.lower())
    about = layer.about if is_same_name else f"{layer.kind} {layer.about}".strip()
    shape = "" if layer.branch == "joins" else " × ".join(map(str, layer.shape))
    return Row(flow, layer.name, about, shape, f"{layer.parameters:,}" if layer.parameters else "")
