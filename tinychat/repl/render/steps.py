"""Draw `/steps`: an operation a screen, with its numbers, or where they have no room with windows of heat maps."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.generate.computation import Cell, Computation, Derivation, Matrix, Operation, figure
from tinychat.repl.render.heatmap import signed_cell
from tinychat.repl.render.palette import ACCENT, BOLD, DIM, REVERSE
from tinychat.repl.render.terminal import Styled, Terminal, fit, pad

HINT = "←/→ step · q ends · ↑/↓ select a number, Tab along its row · PgUp/PgDn part"
ROW_MARK, COLUMN_MARK = "»", "▾"
LONG_LABEL, MAX_LABEL, MIN_LABEL = 20, 9, 5
"""Cells of a row's label if the matrices stand side by side all the same, of others, and in parts of large ones."""
MAX_DERIVATION, MAX_ABOUT = 3, 2
"""Lines of them, at most."""
ABOUT_HEIGHT = 16
"""Lines of a screen from which an operation is explained in words too."""
HEADINGS = 2
"""Lines above the rows of a matrix: its name and the labels of its columns."""
MAX_LARGEST = 12
"""Tokens of a vocabulary that are listed below its heat map."""
MAX_COLUMNS = 16
"""Columns of matrices that are drawn in numbers, at most."""
PLAIN_WIDTH, PLAIN_ROWS, PLAIN_COLUMNS = 79, 12, 6
"""Limits without a screen: cells of a line, and rows and columns of a matrix."""

MAX_TERMS = 64
"""Terms of a derivation that may all be shown."""
TERM_COUNTS = (None, 40, 32, 24, 16, 12, 8, 6, 5, 4, 3, 2, 1)
"""Numbers of terms to try, until a derivation fits; None: all."""


@dataclass(frozen=True)
class Block:
    """A drawn matrix: lines of one width in cells; the first are headings."""

    lines: tuple[Styled, ...]
    width: int


def step_lines(terminal: Terminal, computation: Computation, index: int, cell: tuple[int, int] | None) -> list[Styled]:
    """Return the lines of one operation for the size of the terminal; `cell` of its output is derived below."""
    width, height = terminal.size()
    width -= 1
    operation = computation.operations[index]
    about = textwrap.wrap(operation.about, width)[: MAX_ABOUT if height >= ABOUT_HEIGHT else 0]
    title = f"{index + 1}/{len(computation.operations)}  {_title(operation)}"
    lines = [terminal.styled(fit(title, width), BOLD)]
    lines += [terminal.styled(fit(operation.formula, width), ACCENT)]
    lines += [terminal.styled(line, DIM) for line in about]
    derived = operation.derive(*cell) if cell is not None and operation.derive is not None else None
    words = _derivation_lines(operation, cell, derived, width) if cell is not None else []
    if cell is None and index == len(computation.operations) - 1:
        words = [fit(computation.result, width)]
    room = height - 2 - len(lines) - max(len(words), 1)
    blocks = _draw(terminal, operation, cell, derived, width, room)
    return [*lines, *blocks, *map(terminal.styled, words)]


def plain_lines(terminal: Terminal, computation: Computation) -> Iterator[Styled]:
    """Yield all operations one after the other, each with its numbers, or a part of them, and one derivation."""
    yield terminal.styled(f"{computation.title}, in {len(computation.operations)} steps")
    for number, operation in enumerate(computation.operations, 1):
        yield Styled("")
        yield terminal.styled(f"{number}. {_title(operation)}")
        yield terminal.styled(operation.formula)
        yield from map(terminal.styled, textwrap.wrap(operation.about, PLAIN_WIDTH))
        row, column = cell = operation.first_cell
        derived = operation.derive(row, column) if operation.derive is not None else None
        reads = _reads(operation, derived)
        blocks = [
            _numbers(terminal, matrix, None, *_plain_window(matrix, read))
            for matrix, read in zip((*operation.inputs, operation.output), (*reads, cell), strict=True)
        ]
        for band in _arrange(blocks, operation.signs, PLAIN_WIDTH):
            yield from (Styled(line.rstrip()) for line in _join(terminal, band))
        if derived is not None:
            yield from map(terminal.styled, _derivation_lines(operation, cell, derived, PLAIN_WIDTH))
    yield Styled("")
    yield terminal.styled(computation.result)


def _title(operation: Operation) -> str:
    return f"{operation.part}: {operation.name}" if operation.part else operation.name


def _reads(operation: Operation, derived: Derivation | None) -> tuple[Cell | None, ...]:
    """Return the cells that were read of each input."""
    reads = derived.reads if derived is not None else ()
    return (*reads, *[None] * (len(operation.inputs) - len(reads)))


def _derivation_lines(operation: Operation, cell: tuple[int, int], derived: Derivation | None, width: int) -> list[str]:
    """Return how a cell was made, in as many terms as fit: `S[is, what] = (0.1 × 0.3 + …) / √2 = 0.212`."""
    output = operation.output
    labels = ", ".join(label for label in (output.row_label(cell[0]), output.column_label(cell[1])) if label)
    name = f"{output.name}[{labels}]"
    if derived is None:
        return [fit(f"{name} = {output.figure(*cell)}", width)]
    lines: list[str] = []
    for terms in TERM_COUNTS[len(derived.terms) > MAX_TERMS :]:
        text = derived.text(terms)
        value = output.figure(*cell)
        words = f"{text} = {value}" if text != value else value
        words = f"{value}: {text}" if output.is_whole else words  # a whole number is chosen, not computed
        lines = textwrap.wrap(f"{name} = {words}", width, break_long_words=False)
        if len(lines) <= MAX_DERIVATION:
            break
    return [fit(line, width) for line in lines[:MAX_DERIVATION]]


def _draw(
    terminal: Terminal, operation: Operation, cell: tuple[int, int] | None, derived: Derivation | None, width: int,
    room: int,
) -> list[Styled]:  # fmt: skip
    """Return the matrices of an operation in `room` lines: in numbers if they fit, else as heat maps."""
    matrices = (*operation.inputs, operation.output)
    marks = (*_reads(operation, derived), cell)
    focus = operation.first_cell if cell is None else cell
    around = (*_reads(operation, operation.derive(*focus) if operation.derive is not None else None), focus)
    tallest = max(matrix.shape[0] for matrix in matrices)
    if all(matrix.shape[1] <= MAX_COLUMNS for matrix in matrices):
        for label, row_label in ((MAX_LABEL, LONG_LABEL), (MAX_LABEL, MAX_LABEL), (MIN_LABEL, MAX_LABEL)):
            for most in (tallest, room // 2 - HEADINGS, room // 3 - HEADINGS):
                if most < 1:
                    continue
                blocks = [
                    _numbers(
                        terminal, matrix, mark,
                        _window(matrix.shape[0], most, where and where[0], from_end=_has_tokens(matrix)),
                        range(matrix.shape[1]), label, row_label, chosen=matrix is operation.output,
                    )
                    for matrix, mark, where in zip(matrices, marks, around, strict=True)
                ]  # fmt: skip
                bands = _arrange(blocks, operation.signs, width)
                if row_label == LONG_LABEL and (len(bands) > 1 or most < tallest):  # the numbers come first
                    break
                lines = [line for band in bands for line in _join(terminal, band)]
                if max(block.width for block in blocks) <= width - 3 and len(lines) <= room:
                    return lines
    signs = _signs(operation.signs, len(matrices))
    columns = (width - sum(map(get_cwidth, signs))) // len(matrices) - MIN_LABEL - 1
    largest = [terminal.styled(fit(line, width)) for line in _largest(operation.output)]
    rows = max(1, room - HEADINGS - 1 - len(largest))
    blocks = [
        _heat(terminal, matrix, mark, where, max(1, columns), rows, is_output=matrix is operation.output)
        for matrix, mark, where in zip(matrices, marks, around, strict=True)
    ]
    while len(blocks) > 1 and sum(map(get_cwidth, signs)) + sum(block.width for block in blocks) > width:
        signs, blocks = signs[1:], blocks[1:]  # on a narrow screen the output is what counts
    note = "stronger is larger, blue is negative" if terminal.colour else "stronger is larger, of either sign"
    lines = _join(terminal, list(zip(signs, blocks, strict=True)))
    return [*lines, *largest, terminal.styled(fit(f"{note}, ╳ is -∞", width), DIM)][:room]


def _largest(matrix: Matrix) -> list[str]:
    """Return the largest numbers of a row for the tokens of a vocabulary, in a line."""
    if matrix.shape[0] > 1 or not matrix.columns or matrix.is_whole:
        return []
    values = matrix.row(0)
    order = sorted(range(len(values)), key=lambda column: -values[column])[:MAX_LARGEST]
    return ["largest: " + " · ".join(f"{matrix.column_label(column)} {figure(values[column])}" for column in order)]


def _signs(signs: Sequence[str], count: int) -> list[str]:
    """Return what stands before each of some matrices."""
    spaced = [f" {sign} " for sign in signs]
    return spaced if len(spaced) == count else ["", *spaced]


def _numbers(
    terminal: Terminal, matrix: Matrix, mark: Cell | None, rows: range, columns: range, most: int = MAX_LABEL,
    row_most: int = MAX_LABEL, *, chosen: bool = False,
) -> Block:  # fmt: skip
    """Draw a matrix, or a part of it, in numbers; the cells of `mark` stand out."""
    labels = [fit(matrix.row_label(row), row_most) for row in rows]
    gutter = max(map(get_cwidth, labels), default=0)
    cells = [[matrix.figure(row, column) for column in columns] for row in rows]
    heads = [fit(matrix.column_label(column), most) for column in columns]
    widths = [1 + max(get_cwidth(head), *(len(row[index]) for row in cells)) for index, head in enumerate(heads)]
    left = len(rows) < matrix.shape[0] or len(columns) < matrix.shape[1]
    name = f"{matrix.name} {matrix.shape[0]}×{matrix.shape[1]}" + " …" * left
    width = max(gutter + 1 + sum(widths), get_cwidth(name))
    head = " " * (gutter + 1)
    for column, text, cell_width in zip(columns, heads, widths, strict=True):
        text = (COLUMN_MARK if mark and mark[1] == column else "") + text
        head += " " * (cell_width - get_cwidth(text)) + text
    lines = [terminal.styled(pad(name, width), BOLD), terminal.styled(pad(head, width), DIM)]
    for row, label, texts in zip(rows, labels, cells, strict=True):
        is_marked = mark is not None and mark[0] == row
        line = terminal.styled(pad(label, gutter) + (ROW_MARK if is_marked else " "), "" if is_marked else DIM)
        for column, text, cell_width in zip(columns, texts, widths, strict=True):
            is_read = mark is not None and mark[0] in (None, row) and mark[1] in (None, column)
            style = (REVERSE if chosen else ACCENT) if is_read else ""
            line = Styled(line + " " * (cell_width - len(text)) + terminal.styled(text, style))
        lines.append(Styled(line + " " * (width - gutter - 1 - sum(widths))))
    return Block(tuple(lines), width)


def _heat(
    terminal: Terminal, matrix: Matrix, mark: Cell | None, around: Cell | None, columns: int, lines: int, *,
    is_output: bool,
) -> Block:  # fmt: skip
    """Draw the window around a cell of a matrix as a heat map."""
    gutter = MIN_LABEL
    rows, shown = (
        _window(size, most, None if around is None else around[axis], from_end=axis == 0 and _has_tokens(matrix))
        for axis, (size, most) in enumerate(zip(matrix.shape, (lines, columns), strict=True))
    )
    values = matrix.values[rows.start : rows.stop, shown.start : shown.stop].tolist()
    finite = [abs(value) for row in values for value in row if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest <= 1 and all(value >= 0 for row in values for value in row):
        largest = 1.0
    name = f"{matrix.name} {matrix.shape[0]:,}×{matrix.shape[1]:,}"
    width = max(gutter + 1 + len(shown), get_cwidth(name))
    above = f"{shown.start + 1:,}–{shown.stop:,}" if len(shown) < matrix.shape[1] else ""
    head = " " * (gutter + 1) + fit(above, len(shown))
    if mark is not None and mark[1] is not None and mark[1] in shown:
        head = " " * (gutter + 1 + mark[1] - shown.start) + COLUMN_MARK
    drawn = [terminal.styled(pad(name, width), BOLD), terminal.styled(pad(head, width), DIM)]
    for row, cells in zip(rows, values, strict=True):
        is_marked = mark is not None and mark[0] == row
        label = pad(fit(matrix.row_label(row), gutter), gutter) + (ROW_MARK if is_marked else " ")
        line = terminal.styled(label, "" if is_marked else DIM)
        for column, value in zip(shown, cells, strict=True):
            text, style = signed_cell(terminal, value, largest)
            if is_output and is_marked and mark is not None and mark[1] == column:
                text = "◆"
            line = Styled(line + terminal.styled(text, style))
        drawn.append(Styled(line + " " * (width - gutter - 1 - len(shown))))
    return Block(tuple(drawn), width)


def _window(size: int, most: int, index: int | None, *, from_end: bool) -> range:
    """Return at most `most` of `size` indices, with one of them in their middle; default: the last or first ones."""
    if size <= most:
        return range(size)
    start = (size - most if from_end else 0) if index is None else index - most // 2
    start = max(0, min(start, size - most))
    return range(start, start + most)


def _has_tokens(matrix: Matrix) -> bool:
    """Return whether the rows of a matrix are the tokens of a text, whose newest are of most interest."""
    return bool(matrix.rows) and not matrix.weight


def _plain_window(matrix: Matrix, around: Cell | None) -> tuple[range, range]:
    """Return the rows and columns of a matrix that are written in plain text."""
    rows, columns = matrix.shape
    row, column = around or (None, None)
    return _window(rows, PLAIN_ROWS, row, from_end=_has_tokens(matrix)), _window(
        columns, PLAIN_COLUMNS, column, from_end=False
    )


def _arrange(blocks: Sequence[Block], signs: Sequence[str], width: int) -> list[list[tuple[str, Block]]]:
    """Put blocks with the signs before them side by side, in as few bands as their widths allow."""
    before = _signs(signs, len(blocks))
    bands: list[list[tuple[str, Block]]] = [[]]
    used = 0
    for sign, block in zip(before, blocks, strict=True):
        size = get_cwidth(sign) + block.width
        if bands[-1] and used + size > width:
            bands.append([])
            used = 0
        bands[-1].append((sign, block))
        used += size
    return bands


def _join(terminal: Terminal, band: Sequence[tuple[str, Block]]) -> list[Styled]:
    """Return the lines of a band; signs stand beside the first row of numbers."""
    lines = []
    for index in range(max(len(block.lines) for _, block in band)):
        line = ""
        for sign, block in band:
            line += terminal.styled(sign if index == HEADINGS else " " * get_cwidth(sign))
            line += block.lines[index] if index < len(block.lines) else " " * block.width
        lines.append(Styled(line))
    return lines
