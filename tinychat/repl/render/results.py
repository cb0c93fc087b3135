"""Draw results of commands: `draw` for a screen, `draw_plain` in sentences for screen readers and dumb terminals."""

import itertools
import math
import re
import textwrap
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from prompt_toolkit.utils import get_cwidth
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tinychat.commands import results
from tinychat.commands.results import MARKS, PLAIN_MARKS
from tinychat.repl.render.architecture import draw_architecture
from tinychat.repl.render.heatmap import draw_map, draw_maps
from tinychat.repl.render.lesson import draw_page
from tinychat.repl.render.palette import ACCENT, BOLD, DIM, ERROR, WARNING
from tinychat.repl.render.plot import blocks
from tinychat.repl.render.terminal import SEPARATOR, Styled, Terminal, break_line, fit, fit_items, pad, wrap_items
from tinychat.textutil import escape_controls, one_line, percent

NO_ROWS = "none yet"
COLUMN_GAP = 2
"""Cells between two columns of a table."""
PIECE_GAP = "  "
MIN_WRAPPED = 30
"""Minimum number of cells of a last column that wraps; a narrower one goes below its row."""
MAX_PROSE, PROSE_INDENT = 80, "  "
"""Columns of a paragraph, at most, and the spaces before its rows."""
LEAST_SHARE = 5
"""The part of the screen, 1 in this many cells, that names keep before columns are left out instead."""
WRAP_INDENT = 5
"""Cells before a last column that stands below its row."""

BAR = "▇"
MAX_BAR = 24
PERCENT_WIDTH = 7
"""Cells of `100.0 %`."""
CHOSEN, SELECTED = "›", "»"

SHADES = (
    (1, "", "up to 1 bit (1 in 2)"), (3, ACCENT, "3 bits (1 in 8)"), (6, WARNING, "6 bits (1 in 64)"),
    (math.inf, ERROR, "more"),
)  # fmt: skip
"""For tokens of up to so many bits of surprisal, their style and their text in the legend."""
SURPRISING = 3
"""Bits of surprisal above which a token is put in brackets, where there are no colours."""
HOW_TO_READ_BARS = "a longer bar is likelier · › the token chosen · cut: removed by filters"
HOW_TO_READ_SURPRISAL = "a higher bar: a less likely token"
HOW_TO_READ_BOTH = "upper bars: how unlikely each token was · lower: how unsure the model was there"
NEW_LINE = re.compile(r"(\n)")
TAB = " " * 4
"""Cells of a tab in a shaded text."""
BRACKETS_LEGEND = f"in brackets: less likely than 1 in {2**SURPRISING}"

CATEGORY_WIDTH = 10
ENTRY_WIDTH = 35
NAME_WIDTH = 14
ABBREVIATED = ("training", "models", "session", "inside", "talk")
"""Categories whose commands are listed without explanations if the screen is too small, in this order."""
RESERVED_LINES = 3
"""Lines left for the command, the next prompt and the toolbar around the overview."""
KEYS = (
    ("typing", "Enter sends · Alt-Enter new line · Tab completes"),
    ("", "exit and help need no slash · //x sends /x · !ls runs ls"),
    ("", "F1 help · F2 greedy · F4 vi · Ctrl-R search · Ctrl-X Ctrl-E editor"),
    ("answering", "↑↓ temp · ←→ length · [ ] top-p · g greedy · space pause · Esc stop"),
    ("training", "b background · s sample · p prompt · e evaluate · q stop"),
)
HELP_HINT = "/help COMMAND says more, with an example; the beginning of a name is enough"


def draw(terminal: Terminal, result: results.Drawable) -> None:
    """Draw a result, in plain lines if the terminal is dumb."""
    if terminal.dumb and draw_plain(terminal, result):
        return
    match result:
        case results.Message():
            if result.title:
                terminal.line(result.title, BOLD + ACCENT)
                _draw_paragraphs(terminal, result.lines)
            else:
                for line in result.lines:
                    terminal.line(line)
            _notes(terminal, result.notes)
        case results.Turns():
            mark = (PLAIN_MARKS if terminal.dumb else MARKS)[result.mode]
            for prompt, answer in result.turns:
                terminal.line(f"{mark} {prompt}")
                terminal.line(answer)
            _notes(terminal, result.notes)
        case results.Change():
            terminal.line(result.text)
        case results.Table():
            _draw_table(terminal, result)
        case results.BarChart():
            terminal.show(Group(*_bar_parts(result, terminal.width - 1)))
        case results.Tree():
            for row in result.rows:
                text = ("› " if row.is_here else "  ") + row.prefix + row.text
                terminal.line(fit(text, terminal.width - 1), "" if row.is_on_path else DIM)
            _notes(terminal, result.notes)
        case results.ShadedText():
            _draw_shaded(terminal, result)
        case results.Pieces():
            for line in wrap_items(result.pieces, terminal.width - 1, PIECE_GAP):
                terminal.line(line)
            _notes(terminal, result.notes)
        case results.Architecture():
            draw_architecture(terminal, result)
        case results.HeatMap():
            draw_map(terminal, result)
        case results.HeatMaps():
            draw_maps(terminal, result)
        case results.Help():
            _draw_help(terminal, result)
        case results.LessonPage():
            draw_page(terminal, result)


def _draw_paragraphs(terminal: Terminal, paragraphs: Sequence[str]) -> None:
    """Write paragraphs, indented, an empty line between two, in rows that are no wider than is easy to read."""
    width = max(1, min(terminal.width, MAX_PROSE) - 1 - len(PROSE_INDENT))
    for index, paragraph in enumerate(paragraphs):
        if index:
            terminal.line()
        for row in break_line(paragraph, width):
            terminal.line(PROSE_INDENT + row.rstrip())


def _notes(terminal: Terminal, notes: Sequence[str]) -> None:
    for note in notes:
        terminal.line(note, DIM)


def _draw_table(terminal: Terminal, table: results.Table) -> None:
    """Draw columns as wide as their cells; on a narrow screen the widest are cut, or the last one is put below."""
    if table.title:
        terminal.title(table.title)
    columns = zip(table.columns, *table.rows, strict=True)
    widths = [max(get_cwidth(escape_controls(cell)) for cell in cells) for cells in columns]
    room = terminal.width - 1 - COLUMN_GAP * (len(widths) - 1)
    wraps = table.wraps and sum(widths) > room
    if wraps and (last := room - sum(widths[:-1])) < MIN_WRAPPED:
        _draw_wrapped(terminal, table, widths[:-1])
        return
    widths = [*widths[:-1], last] if wraps else _share(widths, room)
    grid = Table(box=None, padding=(0, COLUMN_GAP, 0, 0), header_style="dim", pad_edge=False)
    for index, (name, width) in enumerate(zip(table.columns, widths, strict=True)):
        grid.add_column(fit(name, width), no_wrap=not wraps or index < len(widths) - 1, min_width=width)
        if index in table.right:
            grid.columns[-1].justify = "right"
    for row in table.rows:
        cells = [fit_items(cell, width) for cell, width in zip(row, widths, strict=True)]
        if wraps:
            cells[-1] = one_line(row[-1])
        grid.add_row(*(Text(cell, _cell_style(table, index, row)) for index, cell in enumerate(cells)))
    if table.rows:
        terminal.show(grid)
    else:
        terminal.line(NO_ROWS)
    _notes(terminal, table.notes)


def _share(wanted: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: narrow columns get what they want, the others share what those leave."""
    widths, left = list(wanted), room
    by_width = sorted(range(len(widths)), key=widths.__getitem__)
    for number, index in enumerate(by_width):
        widths[index] = max(1, min(widths[index], left // (len(by_width) - number)))
        left -= widths[index]
    return widths


def _cell_style(table: results.Table, index: int, row: Sequence[str]) -> str:
    """Return the style of a cell: what a row is of stands out, and the current row; what explains it is dim."""
    if table.wraps and index == len(table.columns) - 1:
        return "dim"
    is_current = row[0] == CHOSEN
    return " ".join(["bold"] * is_current + ["cyan"] * (index == _subject(table) or (is_current and index == 0)))


def _subject(table: results.Table) -> int | None:
    """Return the index of the column that names what a row is of; None if all are figures."""
    return next((index for index, name in enumerate(table.columns) if name and index not in table.right), None)


def _draw_wrapped(terminal: Terminal, table: results.Table, widths: list[int]) -> None:
    """Draw all columns but the last, and the last one below each row.

    If the screen is too narrow for those, long names stand above their rows, or long cells of a column that would take
    half of the screen: they are not cut. If it still is, the columns at the end of the rows are left out.
    """
    long = widths.index(max(widths))
    if widths[long] <= terminal.width // 2:
        long = _subject(table) or 0
    least = max(get_cwidth(table.columns[long]), min(widths[long], terminal.width // LEAST_SHARE))

    def room() -> int:
        """Return the number of cells that the other columns leave to the long one."""
        return terminal.width - 1 - COLUMN_GAP * (len(widths) - 1) - (sum(widths) - widths[long])

    while room() < least and long < len(widths) - 1:
        widths.pop()
    widths[long] = max(least, min(widths[long], room()))
    for number, (*cells, last) in enumerate((table.columns, *table.rows)):
        cells = [one_line(cell) for cell in cells[: len(widths)]]
        styles = [_cell_style(table, index, cells) if number else "dim" for index in range(len(cells))]
        if get_cwidth(cells[long]) > widths[long]:
            terminal.show(Text(cells[long], styles[long], overflow="fold"))
            cells[long] = ""
        row = Text()
        for index, cell in enumerate(cells):
            gap = " " * COLUMN_GAP * (index > 0)
            row.append(gap).append(_justify(cell, widths[index], right=index in table.right), styles[index])
        row.rstrip()
        terminal.show(row)
        cells_per_character = 2 if get_cwidth(last) > len(last) else 1
        length = max(1, (terminal.width - 1 - WRAP_INDENT) // cells_per_character)
        for line in textwrap.wrap(last, length) if number else ():
            terminal.line(" " * WRAP_INDENT + line, DIM)
    _notes(terminal, table.notes)


def _justify(text: str, width: int, *, right: bool) -> str:
    return " " * (width - get_cwidth(text)) + text if right else pad(text, width)


def bar_lines(
    terminal: Terminal, chart: results.BarChart, selected: int | None = None, height: int | None = None
) -> list[Styled]:
    """Return the title, the token in its context, the bars and the notes; bar `selected` is under the cursor.

    If they have more lines than `height`, notes are left out first, then bars that are far from the selected one, or
    else from the one chosen.
    """
    width = terminal.width - 1
    above, grid, below = (terminal.render_lines(part, width) for part in _bar_parts(chart, width, selected))
    if height is None:
        return [*above, *grid, *below]
    count = len(chart.bars)
    above, bars = [*above, *grid[:-count]][: max(0, height - 1)], grid[-count:]
    most = max(1, height - len(above))
    marked = next((index for index, bar in enumerate(chart.bars) if bar.marked), 0)
    start = max(0, min((marked if selected is None else selected) - most // 2, count - most))
    return [*above, *bars[start : start + most], *below][:height]


def _bar_parts(
    bars: results.BarChart, width: int, selected: int | None = None
) -> tuple[RenderableType, RenderableType, RenderableType]:
    """Return what stands above the bars, the bars under their headings, a line for each, and the notes."""
    what, separator, facts = bars.title.partition(SEPARATOR)
    above = [Text.assemble((what, "bold"), (separator + facts, "dim"))]
    if any(bars.context):
        above.append(_context(bars.context, width))
    heading, cells = bars.headings[1], _bar_cells(bars, width)
    if get_cwidth(heading) > cells:  # goes below the bars
        bars = replace(bars, headings=(bars.headings[0], fit("after all settings", cells)))
    else:
        heading = ""
    notes = [Text(escape_controls(note), "dim") for note in (*filter(None, [heading]), *bars.notes, HOW_TO_READ_BARS)]
    return Group(*above), _bar_grid(bars, width, selected), Group(*notes)


def _context(context: tuple[str, str, str], width: int) -> Text:
    """Return the token between › and ‹, with as much of the text around it as fits on one line."""
    before, token, after = (escape_controls(text).replace("\n", "⏎").replace("\t", " ") for text in context)
    middle = f"›{fit(token, width // 2)}‹"
    room = width - get_cwidth(middle)
    left = fit(before[::-1], room // 2)[::-1]
    right = fit(after, room - get_cwidth(left))
    return Text.assemble((left, "dim"), (middle, "bold cyan"), (right, "dim"), no_wrap=True)


def _has_after(chart: results.BarChart) -> bool:
    return any(bar.after is not None for bar in chart.bars)


def _label_width(chart: results.BarChart) -> int:
    return max(get_cwidth(escape_controls(bar.label)) for bar in chart.bars)


def _bar_cells(chart: results.BarChart, width: int) -> int:
    """Return the width of a column of bars: a percentage, a space, and the longest bar."""
    room = width - _label_width(chart) - 4
    longest = (room - 1) // 2 - PERCENT_WIDTH - 1 if _has_after(chart) else room - PERCENT_WIDTH - 1
    return PERCENT_WIDTH + 1 + max(1, min(MAX_BAR, longest))


def _bar_grid(chart: results.BarChart, width: int, selected: int | None) -> Table:
    """Return a row for each bar: mark, label, percentage with bar, and a second one for `after` if any bar has it."""
    bars, has_after, cells = chart.bars, _has_after(chart), _bar_cells(chart, width)
    label_width, longest = _label_width(chart), cells - PERCENT_WIDTH - 1
    grid = Table.grid(padding=(0, 1, 0, 0))
    for column_width in (1, label_width, cells, cells)[: 4 if has_after else 3]:
        grid.add_column(no_wrap=True, width=column_width)
    if any(chart.headings):
        grid.add_row("", "", *(Text(fit(heading, cells), "dim") for heading in chart.headings))
    for index, bar in enumerate(bars):
        mark = SELECTED if index == selected else CHOSEN if bar.marked else ""
        style = "reverse" if index == selected else "bold" if bar.marked else ""
        drawn = [_horizontal_bar(bar.fraction, longest, "blue" if has_after else "cyan")]
        if bar.after is not None:
            drawn.append(_horizontal_bar(bar.after, longest, "cyan"))
        grid.add_row(Text(mark, "bold cyan"), Text(escape_controls(bar.label), style), *drawn)
    return grid


def _horizontal_bar(fraction: float, longest: int, style: str) -> Text:
    """Return `37.1 % ▇▇▇`, or `cut` for nothing."""
    if not fraction:
        return Text("cut".rjust(PERCENT_WIDTH), "dim")
    bar = BAR * max(1, round(longest * fraction)) if fraction >= 0.001 else ""
    return Text.assemble((f"{percent(fraction):>{PERCENT_WIDTH}} ", "" if bar else "dim"), (bar, style))


def _draw_shaded(terminal: Terminal, shaded: results.ShadedText) -> None:
    """Draw a text with its surprising tokens coloured or in brackets, over bars of their surprisal and of entropy."""
    terminal.fresh_line()
    charts = [blocks(_surprisals(shaded))] + [blocks([*map(sum, shaded.entropies)])] * bool(shaded.entropies)
    for row in _rows(_spans(shaded, has_colour=terminal.colour), terminal.width - 1):
        for span in row:
            terminal.write(span.text, span.style)
        terminal.write("\n")
        for number, chart in enumerate(charts):
            bars = [(span.bar(chart), DIM if number else span.style or DIM) for span in row]
            if any(bar.strip() for bar, _ in bars):
                for bar, style in bars:
                    terminal.write(bar, style)
                terminal.write("\n")
    if terminal.colour:
        terminal.flow("surprisal", DIM)
        for index, (_, style, words) in enumerate(SHADES):
            terminal.flow(SEPARATOR if index else ": ", DIM)
            terminal.flow(words, style)
        terminal.fresh_line()
    else:
        terminal.line(f"{_surprisal_range(shaded)} · {BRACKETS_LEGEND}", DIM)
    if shaded.entropies:
        terminal.line(_entropy_range(shaded), DIM)
        terminal.line(HOW_TO_READ_BOTH, DIM)
    else:
        terminal.line(HOW_TO_READ_SURPRISAL, DIM)
    _notes(terminal, shaded.notes)


@dataclass(frozen=True)
class _Span:
    """A part of a text on one row; `number` counts the tokens with a surprisal; None if it has no bar."""

    text: str
    style: str = ""
    number: int | None = None

    def bar(self, chart: str) -> str:
        """Return the bar of the token, as wide as its text without the spaces around it, unless these are all."""
        cells, trimmed = get_cwidth(self.text), self.text.strip(" ")
        if self.number is None:
            return " " * cells
        before = cells - get_cwidth(self.text.lstrip(" ")) if trimmed else 0
        return pad(" " * before + chart[self.number] * (get_cwidth(trimmed) or cells), cells)


def _spans(shaded: results.ShadedText, *, has_colour: bool) -> Iterator[_Span]:
    """Yield the tokens, each new line in a span of its own, and where there are no colours brackets between them."""
    numbers, is_open = itertools.count(), False
    for text, bits in shaded.pieces:
        style, number = DIM, None
        if bits is not None:
            style, number = next(style for most, style, _ in SHADES if bits <= most), next(numbers)
        if not has_colour and (is_surprising := (bits or 0) > SURPRISING) != is_open:
            is_open = is_surprising
            yield _Span("[" if is_open else "]")
        for part in NEW_LINE.split(escape_controls(text).replace("\t", TAB)):
            if part:
                yield _Span(part, style, number)
    if is_open:
        yield _Span("]")


def _rows(spans: Iterable[_Span], width: int) -> Iterator[list[_Span]]:
    """Lay out spans in rows that break at words; a new line has its bar under a space at the end of its row."""
    line: list[_Span] = []
    for span in spans:
        if span.text == "\n":
            yield from _cut([*line, replace(span, text=" ")], width)
            line = []
        else:
            line.append(span)
    if line:
        yield from _cut(line, width)


def _cut(line: Sequence[_Span], width: int) -> Iterator[list[_Span]]:
    """Cut a line into rows; only the parts of a token that are not spaces have a bar, unless all of it is spaces."""
    rest = deque(line)
    for text in break_line("".join(span.text for span in line), width):
        row: list[_Span] = []
        room = len(text)
        while room:
            span = rest.popleft()
            head, tail = span.text[:room], span.text[room:]
            room -= len(head)
            for part, keep in ((head, row.append), (tail, rest.appendleft)):
                if part:
                    has_bar = part.strip(" ") or not span.text.strip(" ")
                    keep(replace(span, text=part, number=span.number if has_bar else None))
        yield row


def _surprisals(shaded: results.ShadedText) -> list[float]:
    return [bits for _, bits in shaded.pieces if bits is not None]


def _bracket(shaded: results.ShadedText) -> str:
    """Return the text with brackets around runs of surprising tokens."""
    whole = ""
    for is_surprising, pieces in itertools.groupby(shaded.pieces, key=lambda piece: (piece[1] or 0) > SURPRISING):
        text = "".join(text for text, _ in pieces)
        whole += f"[{text}]" if is_surprising else text
    return whole


def _surprisal_range(shaded: results.ShadedText) -> str:
    return f"surprisal, up to {max(_surprisals(shaded), default=0):.1f} bits"


def _entropy_range(shaded: results.ShadedText) -> str:
    entropies = [*itertools.chain.from_iterable(shaded.entropies)]
    return f"entropy, up to {max(entropies):.1f} bits, {sum(entropies) / len(entropies):.1f} on average"


def _draw_help(terminal: Terminal, help: results.Help) -> None:
    """Draw the overview with as many explanations as fit on one screen."""
    width, height = terminal.size()
    room = height - RESERVED_LINES - len(break_line(HELP_HINT, width))
    for count in range(len(ABBREVIATED) + 1):
        drawing = Padding(_help_grid(help, width, ABBREVIATED[:count]), (0, 1, 0, 0))
        if terminal.render(drawing).count("\n") <= room:
            break
    terminal.show(drawing)
    terminal.line(HELP_HINT, DIM)


def _help_grid(help: results.Help, width: int, abbreviated: Collection[str]) -> Table:
    """Return categories on the left, and their commands beside them in as many columns as fit."""
    grid = Table.grid()
    grid.add_column(width=CATEGORY_WIDTH, style="dim", no_wrap=True)
    grid.add_column()
    columns = max(1, (width - CATEGORY_WIDTH) // ENTRY_WIDTH)
    for category, entries in help.categories.items():
        names = [name for name, brief in entries.items() if not brief or category in abbreviated]
        if names:
            listed = "  ".join(f"/{name}" for name in names)
            if len(listed) > width - 1 - CATEGORY_WIDTH:  # closer together they may fit on one line
                listed = listed.replace("  ", " ")
            grid.add_row(category, Text(listed, style="cyan"))
        explained = [(name, brief) for name, brief in entries.items() if name not in names]
        for index in range(0, len(explained), columns):
            line = Text(no_wrap=True, overflow="ellipsis")
            for name, brief in explained[index : index + columns]:
                line.append(f"{'/' + name:{NAME_WIDTH}}", style="cyan")
                line.append(f"{brief:{ENTRY_WIDTH - NAME_WIDTH}}")
            line.rstrip()
            grid.add_row(category if index == 0 and not names else "", line)
    for category, keys in KEYS:
        grid.add_row(category, Text(keys, style="dim"))
    return grid


def draw_plain(terminal: Terminal, result: results.Result) -> bool:
    """Write a result in plain lines, and return whether that was done: messages and the like are plain already."""
    match result:
        case results.Table():
            rows = [_plain_row(row) for row in (result.columns, *result.rows)] if result.rows else [NO_ROWS]
            lines = [result.title, *rows, *result.notes]
        case results.BarChart():
            lines = [
                result.title,
                ", then ".join(filter(None, result.headings)),
                *map(_plain_bar, result.bars),
                *result.notes,
            ]
        case results.HeatMap():
            pairs = list(zip(result.rows, result.cells, strict=True))[result.marked :]
            rows = [f"{row}: {_top_columns(result.columns, cells)}" for row, cells in pairs]
            lines = [result.title, *rows, *result.notes]
        case results.HeatMaps():
            lines = [result.title, *(one.caption for row in result.rows for one in row), *result.notes]
        case results.Tree():
            lines = [*(fit(_plain_node(row), terminal.width - 1) for row in result.rows), *result.notes]
        case results.ShadedText():
            entropy = [_entropy_range(result)] if result.entropies else []
            lines = [_bracket(result), f"{_surprisal_range(result)}, {BRACKETS_LEGEND}", *entropy, *result.notes]
        case results.Pieces():
            lines = [PIECE_GAP.join(result.pieces), *result.notes]
        case results.Help():
            lines = [
                f"{category}: " + ", ".join(f"/{name} {brief}".rstrip() for name, brief in entries.items())
                for category, entries in result.categories.items()
            ] + [HELP_HINT]
        case _:
            return False
    for line in filter(None, lines):
        terminal.line(line)
    return True


def _plain_row(cells: Sequence[str]) -> str:
    """Return `temperature: 0.8, default, randomness`; the mark of the current row becomes `here, `."""
    first, *others = filter(None, cells)
    if first == "›":
        first, *others = f"here, {others[0]}", *others[1:]
    return f"{first}: {', '.join(others)}" if others else first


def _plain_node(row: results.TreeRow) -> str:
    """Return `here, 2 deep: 3 hello → hi`, on one line."""
    return f"{'here, ' * row.is_here}{len(row.prefix) // 3 + 1} deep: {' '.join(row.text.split())}"


def _plain_bar(bar: results.Bar) -> str:
    """Return `chosen: 'a' 50.0 %, then 75.0 %`."""
    after = "" if bar.after is None else f", then {percent(bar.after)}" if bar.after else ", then cut"
    return f"{'chosen: ' if bar.marked else ''}{bar.label.strip()} {percent(bar.fraction)}{after}"


def _top_columns(columns: Sequence[str], cells: Sequence[float]) -> str:
    """Return the columns of the three largest cells of a row: `the 62.0 %, cat 20.1 %, sat 4.2 %`."""
    largest = sorted(range(len(cells)), key=lambda index: -cells[index])[:3]
    return ", ".join(f"{columns[index]} {percent(cells[index])}" for index in largest)
