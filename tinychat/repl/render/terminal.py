"""The only writer to the screen: all output of the REPL goes through `Terminal`, which never rewrites text.

`Region` redraws a few lines at the end of the output; `StatusLine` keeps a line on the bottom row below scrolling text.
Both hold in a window that is resized at any moment.
"""

import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NewType, Self, TextIO

from prompt_toolkit.utils import get_cwidth

from tinychat.repl.render.palette import BOLD, DIM, ERROR, RESET, THEMES
from tinychat.textutil import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

TAB = 8
MIN_WIDTH = 20
"""Number of columns of a window from which there is a status line."""
RESIZE_SECONDS, STATUS_INTERVAL = 0.4, 0.2
"""Seconds without a resize, and between two changes, after which the status line is drawn beside a long line."""
SPINNER, SPIN_SECONDS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", 0.1
"""Pictures of a spinner, and seconds for which each is shown."""
SEPARATOR = " · "
"""Separator of the items on a line."""

ERASE_SCREEN_BELOW, ERASE_LINE, ERASE_LINE_END = "\x1b[J", "\x1b[2K", "\x1b[K"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
SAVE_CURSOR, RESTORE_CURSOR = "\x1b7", "\x1b8"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
"""What is written between them stays on its row, even if the window has just become narrower."""
SCROLL_UP_AT_BOTTOM = "\x1bD\x1b[A"
"""Moves the cursor down and up again, which scrolls the text if the cursor is on the bottom row."""
TO_BOTTOM_ROW = "\x1b[999;1H"
TO_LAST_COLUMN = "\x1b[999C"
WIDE_BLANK = "\u3000"
"""A blank of two cells: it does not fit in the last column, so a terminal puts it on the next row."""

PIECES = re.compile(r"(\n)|([^\S\n\xa0\u202f]+)|([\S\xa0\u202f]+)")
"""A newline, spaces at which a line may wrap, or a word."""
ZERO_WIDTH_JOINER = "\u200d"
NOT_FIRST = frozenset("、。，．：；！？）］｝」』】〉》〕…ー々’”")
"""Wide punctuation that stays on the row of the character before it."""
MIN_WORD_ROOM, WORD_RESERVE = 10, 4
"""Minimum number of cells kept for a word that is shown before its end is known: in all, and beyond its known part."""

Size = tuple[int, int]
"""Columns and rows."""
Styled = NewType("Styled", str)
"""Text without control characters, and our sequences of styles: `Terminal.styled` and `render` make it."""
Fragment = tuple[str, str]
"""Text without control characters, and its style."""


class Terminal:
    """A screen, written to in order: `colour` includes bold and dim, `dumb` means no control sequences at all."""

    def __init__(
        self, out: TextIO, size: Callable[[], Size], *, colour: bool, dumb: bool = False, theme: str = "dark",
        has_wide_blank: bool = True, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.out, self.size, self.colour, self.dumb = out, size, colour, dumb
        self._clock = clock
        self.has_status = False
        """Whether a status line is drawn on the bottom row."""
        self.rows_below = 0
        """Number of rows that a drawing leaves free for what follows it."""
        self.theme = THEMES[theme]
        self._batch: list[str] | None = None
        self._width = 0  # for which this is the column of the cursor
        self._column: int | None = 0  # None once the window was resized within a line of several rows
        self._cells = 0  # of the line, on all its rows
        self._word: list[Fragment] = []  # that waits for its end
        self._word_since = 0.0
        self._is_within_word = False  # whose beginning is shown already
        is_utf = (out.encoding or "").lower().startswith("utf")
        self._blank = WIDE_BLANK if has_wide_blank and is_utf else " "

    @classmethod
    def standard(
        cls, out: TextIO = sys.stdout, environment: Mapping[str, str] = os.environ, *, plain: bool = False,
        theme: str = "dark",
    ) -> "Terminal":  # fmt: skip
        """Return the terminal of a stream, dumb if `plain`; theme `none` means no colours, as `NO_COLOR` does."""
        dumb = plain or environment.get("TERM") in ("dumb", "unknown")
        colour = not dumb and not environment.get("NO_COLOR") and theme in THEMES
        return cls(
            out, lambda: _size(out), colour=colour, dumb=dumb, theme=theme if colour else "dark",
            has_wide_blank=environment.get("TERM") != "linux",  # whose console shows a sign for an unknown character
        )  # fmt: skip

    @property
    def width(self) -> int:
        return self.size()[0]

    @property
    def column(self) -> int:
        """Column of the cursor: 0 at the start of a row, `width` after a full one, or where it is unknown."""
        width = self._follow_resize()
        return width if self._column is None else self._column

    @property
    def may_be_full(self) -> bool:
        """Whether the row may be full: then the next character wraps, but only if the cursor is not moved before."""
        return self.column == self._width

    @property
    def is_lost(self) -> bool:
        """Whether the column is unknown, until `start_row`: a terminal may have wrapped the line anew, or cut it."""
        self._follow_resize()
        return self._column is None

    @property
    def is_short(self) -> bool:
        """Whether the text of the line fills no row, even in a window that is narrower than is known yet."""
        return self._cells < MIN_WIDTH

    def write(self, text: str, style: str = "") -> None:
        """Write text at the cursor, with its control characters escaped; a long line wraps at any character."""
        self.show_word()
        self._write(escape_controls(text), style)

    def flow(self, text: str, style: str = "") -> None:
        """Write text at the cursor, wrapped at words; the last word waits for its end, or until `show_word`.

        A line that wraps stays one line, for a terminal that copies it or wraps it anew: nothing is added to the text.
        """
        if self.dumb:
            self.write(text, style)
            return
        rows = _Rows(self._follow_resize(), self._column)
        for newline, spaces, word in PIECES.findall(escape_controls(text)):
            if not word:
                self._place_word(rows, room_after=len(spaces[:1]))
                rows.add((spaces, style) if spaces else (newline, ""))
                self._is_within_word = False
                continue
            for part in [word] if word.isascii() else _wide_apart(word):
                if self._word and _may_break(self._word[-1][0][-1], part[0]):
                    self._place_word(rows)
                    self._is_within_word = False
                if not self._word:
                    self._word_since = self._clock()
                self._word.append((part, style))
            if self._word and _cells(self._word) >= self._width:  # fits on no row, whatever follows
                self._place_word(rows)
                self._is_within_word = True
        self._write_rows(rows)

    def show_word(self, *, may_go_on: bool = False) -> None:
        """Show the word that waits for its end; if it may go on, then on a row that has room for more of it."""
        if self._word:
            rows = _Rows(self._follow_resize(), self._column)
            more = max(MIN_WORD_ROOM - _cells(self._word), WORD_RESERVE) if may_go_on else 0
            self._place_word(rows, room_after=more)
            self._write_rows(rows)
            self._is_within_word = True
        self._is_within_word &= may_go_on

    @property
    def word_seconds(self) -> float:
        """Seconds for which a word has waited for its end; 0 if none does."""
        return self._clock() - self._word_since if self._word else 0.0

    def start_row(self) -> None:
        """Go on at the start of the next row, within the same line."""
        self._write("", wraps=True)

    def styled(self, text: str, style: str = "") -> Styled:
        """Return text with its control characters escaped, in a style if the terminal has styles."""
        return self._style(escape_controls(text), style)

    def line(self, text: str = "", style: str = "") -> None:
        with self.batch():
            self.fresh_line()
            self.flow(f"{text}\n", style)

    def title(self, text: str) -> None:
        """Write the title of a drawing: what it is stands out, and facts about it follow, on lines of whole facts."""
        first, *rest = self.title_lines(text)
        what, separator, facts = first.partition(SEPARATOR)
        self.fresh_line()
        self.write(what, BOLD)
        self.write(separator + facts, DIM)
        self.write("\n")
        for line in rest:
            self.line(line, DIM)

    def title_lines(self, text: str) -> list[str]:
        """Return the lines of a title."""
        return list(wrap_items(text.split(SEPARATOR), self.width - 1)) or [""]

    def fresh_line(self) -> None:
        """Start a new line, unless the cursor is at the start of one."""
        self.show_word()
        if self.column:
            self.write("\n")

    def problem(self, problem: str, remedy: str = "") -> None:
        self.line(problem, ERROR)
        if remedy:
            self.line(remedy, DIM)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write all that is written inside a `with` block at once at its end, so that no part of it shows alone."""
        if self._batch is not None:  # within another
            yield
            return
        parts: list[str] = []
        self._batch = parts
        try:
            yield
        finally:
            self._batch = None
            if parts:
                self.control("".join(parts))

    def draw_status(self, line: Styled) -> None:
        """Draw a status line, narrower than the screen, on the bottom row; the row of the cursor must not be full."""
        self.has_status = True
        above = SCROLL_UP_AT_BOTTOM + ERASE_SCREEN_BELOW + SAVE_CURSOR
        self.control(f"{above}{TO_BOTTOM_ROW}{NO_WRAP}{line}{WRAP}{RESTORE_CURSOR}")

    def erase_status(self) -> None:
        if self.has_status:
            row = f"{SAVE_CURSOR}{TO_BOTTOM_ROW}{ERASE_LINE}{RESTORE_CURSOR}"
            self.control(row if self.may_be_full else ERASE_SCREEN_BELOW)
            self.has_status = False

    def start_line(self) -> None:
        """Take the cursor to be at the start of a line, where something else has written."""
        self._column, self._cells, self._is_within_word = 0, 0, False
        self._word.clear()

    def start_line_after_others(self, *, ended: bool) -> None:
        """Start a new line, unless the cursor is at the start of one, where another program has written.

        A dumb terminal is taken to be at the start of a line if the program `ended` by itself.
        """
        if not self.dumb:  # from anywhere else, as many spaces reach the next line
            self.control(" " * (self.width - 1) + f"\r{ERASE_LINE_END}")
        elif not ended:  # a key such as Ctrl-C has been echoed
            self.control("\n")
        self.start_line()

    def control(self, sequence: str) -> None:
        """Write a sequence as it is, without tracking the cursor; its text must be `Styled`."""
        if self._batch is not None:
            self._batch.append(sequence)
            return
        encoding = self.out.encoding or "utf-8"  # unencodable characters, such as lone surrogates, become `?`
        self.out.write(sequence.encode(encoding, "replace").decode(encoding))
        self.out.flush()

    def set_bracketed_paste(self, enabled: bool) -> None:
        """Switch bracketed paste mode: pasted text arrives as one key, or as single keys."""
        if not self.dumb:
            self.control("\x1b[?2004h" if enabled else "\x1b[?2004l")

    def show(self, drawing: "RenderableType") -> None:
        """Write a rich renderable, with the control characters of its text escaped."""
        self.fresh_line()
        self.control(self.render(drawing))

    def render(self, drawing: "RenderableType", width: int | None = None) -> Styled:
        """Return the lines of a rich renderable, each with its newline."""
        console = self.console(width)
        with console.capture() as capture:
            console.print(drawing)
        return Styled(self.theme.apply(capture.get()))

    def render_lines(self, drawing: "RenderableType", width: int | None = None) -> list[Styled]:
        """Return the lines of a rich renderable, without their newlines."""
        return [Styled(line) for line in self.render(drawing, width).splitlines()]

    def console(self, width: int | None = None) -> "Console":
        """Return a rich console with the width and colours of this terminal."""
        from tinychat.repl.render.console import SafeConsole

        return SafeConsole(
            file=io.StringIO(), width=width or self.width, force_terminal=self.colour, no_color=not self.colour,
            color_system="standard" if self.colour else None, legacy_windows=False, highlight=False, markup=False,
            emoji=False, safe_box=False,
        )  # fmt: skip

    def _style(self, escaped: str, style: str) -> Styled:
        return Styled(f"{self.theme.apply(style)}{escaped}{RESET}" if style and self.colour else escaped)

    def _write(self, escaped: str, style: str = "", *, wraps: bool = False) -> None:
        """Write text at the cursor, or if it `wraps` at the start of the next row."""
        if not escaped and not wraps:
            return
        was_full, reaches = wraps or self.may_be_full, wraps or "\n" in escaped
        kept = 0
        if wraps or (self.has_status and (reaches or self.column + get_cwidth(escaped) > self._width)):
            # The text reaches the next row. After a full row, erasing would take its last character, until one wraps.
            if was_full:
                ends = (end for end, char in enumerate(escaped, 1) if char == "\n" or get_cwidth(char))
                kept = next(ends, len(escaped))
                self.control(self._next_row() * wraps + self._style(escaped[:kept], style))
            self.control(ERASE_SCREEN_BELOW)
            self.has_status = False
        if wraps:
            self._column, self._cells = 0, max(self._cells, self._width)
        self._track_cursor(escaped)
        self.control(self._style(escaped[kept:], style))

    def _next_row(self) -> str:
        """Return a sequence that goes to the start of the next row, and marks the line as wrapped.

        The first blank wraps, as it does not fit in the last column, and the second one on terminals where it does. The
        cells between the text and that column stay empty, so most terminals do not copy them.
        """
        return TO_LAST_COLUMN + self._blank * 2 + "\r"

    def _place_word(self, rows: "_Rows", room_after: int = 0) -> None:
        """Move the word to the rows: to a new one if it does not fit, or if the column of the cursor is unknown."""
        if not self._word:
            return
        if not self._is_within_word:
            rows.wrap_before(_cells(self._word), room_after)
        for fragment in self._word:
            rows.add(fragment)
        self._word.clear()

    def _write_rows(self, rows: "_Rows") -> None:
        for number, row in enumerate(rows.rows):
            wraps = number > 0
            for text, style in row:
                self._write(text, style, wraps=wraps)
                wraps = False

    def _track_cursor(self, text: str) -> None:
        """Update the column for text about to be written."""
        width = self._follow_resize()
        *ended, last = text.split("\n")
        if ended:
            self._column = self._cells = 0
        self._cells += get_cwidth(last)
        if self._column is not None:
            self._column = advance(self._column, last, width)

    def _follow_resize(self) -> int:
        """Return the width; if it has changed, the column is known only if the line is on one row before and after."""
        width = self.width
        if width != self._width:
            if self._cells and self._cells >= min(self._width, width):
                self._column = None
            self._width = width
        return width


class _Rows:
    """Text laid out on the row of the cursor and those below it; each row is a list of fragments."""

    def __init__(self, width: int, column: int | None) -> None:
        self._width, self._column = width, column
        self.rows: list[list[Fragment]] = [[]]

    def wrap_before(self, cells: int, room_after: int) -> None:
        """Start a new row unless a word fits on this one, or on none; `room_after` is that for what follows it."""
        column, width = self._column, self._width
        # After a full row, the terminal wraps by itself.
        if column is None or (0 < column < width < column + cells + room_after and cells < width):
            self.rows.append([])
            self._column = 0

    def add(self, fragment: Fragment) -> None:
        """Add text, or a new line, at the end of the last row."""
        text, style = fragment
        if text == "\n":
            self._column = 0
        elif self._column is not None:
            self._column = advance(self._column, text, self._width)
        row = self.rows[-1]
        if row and row[-1][1] == style:
            row[-1] = (row[-1][0] + text, style)
        else:
            row.append(fragment)


def _cells(word: Sequence[Fragment]) -> int:
    return sum(get_cwidth(text) for text, _ in word)


def _wide_apart(piece: str) -> list[str]:
    """Split a word before and after each wide character at which it may wrap."""
    starts = [0, *(index for index, pair in enumerate(pairwise(piece), 1) if _may_break(*pair)), len(piece)]
    return [piece[start:end] for start, end in pairwise(starts)]


def _may_break(before: str, char: str) -> bool:
    """Return whether a word may wrap between two characters: beside wide ones, but not before their punctuation."""
    if before.isascii() and char.isascii():
        return False
    is_wide = get_cwidth(before) > 1 or get_cwidth(char) > 1
    return is_wide and get_cwidth(char) > 0 and char not in NOT_FIRST and before != ZERO_WIDTH_JOINER


def advance(column: int, text: str, width: int) -> int:
    """Return the column of the cursor, `width` after a full line, once a text without new lines is written."""
    if text.isascii() and "\t" not in text:
        column += len(text)
        return column if column <= width else (column - 1) % width + 1
    for char in text:
        if char == "\t":
            column = min(width - 1, (column // TAB + 1) * TAB)
        else:
            cells = get_cwidth(char)
            column = cells if column + cells > width else column + cells
    return column


class Region:
    """A few lines at the end of the output, redrawn in place until `leave`.

    Meanwhile the cursor is hidden at their start. Wherever resizing the window moves it, and whether or not that wraps
    lines anew, all that is below it is theirs, and nothing above.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._is_drawn = False

    def draw(self, lines: Sequence[Styled]) -> None:
        """Replace the lines with others, each narrower than the screen."""
        up = f"\x1b[{len(lines)}A" if lines else ""
        self._is_drawn = True
        self._terminal.control(f"{HIDE_CURSOR}{NO_WRAP}{self._replace(lines)}{WRAP}{up}")

    def erase(self) -> None:
        if self._is_drawn:
            self.leave()

    def leave(self, lines: Sequence[Styled] = ()) -> None:
        """Replace the lines with those that stay on screen; the next ones are drawn below them."""
        self._terminal.control(f"{self._replace(lines)}{SHOW_CURSOR}")
        self._is_drawn = False

    def _replace(self, lines: Sequence[Styled]) -> str:
        return "\r" + "".join(f"{line}{ERASE_LINE_END}\n" for line in lines) + ERASE_SCREEN_BELOW


def spin(clock: Callable[[], float] = time.monotonic) -> str:
    """Return how a spinner looks now."""
    return SPINNER[int(clock() / SPIN_SECONDS) % len(SPINNER)]


@contextmanager
def spinner(terminal: Terminal, text: str) -> Iterator[Callable[[], None]]:
    """Show a line with a spinner inside a `with` block; the function that it yields turns it, when called often.

    The line disappears at the end. On a dumb terminal it is a plain line, which stays.
    """
    if terminal.dumb:
        terminal.line(text)
        yield lambda: None
        return
    terminal.fresh_line()
    region, shown = Region(terminal), ""

    def turn() -> None:
        nonlocal shown
        if (line := fit(f"{spin()} {text}", terminal.width - 1)) != shown:
            region.draw([terminal.styled(line, DIM)])
            shown = line

    try:
        turn()
        yield turn
    finally:
        region.erase()


class StatusLine:
    """A line on the bottom row, shown inside a `with` block; invisible on a dumb terminal or a tiny screen.

    A window may be resized at any moment, which is known only later. So nothing depends on the number of a row: text is
    never on the bottom row when the line is drawn, and whatever is below the text is erased before anything is written
    there. But a terminal may forget that the next character wraps when the cursor has been moved; so the line is drawn
    seldom where text may fill a row unnoticed, and not while the window is being resized.
    """

    MIN_HEIGHT = 6

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal, self._clock = terminal, clock
        self._shown, self._shown_at = "", 0.0
        self._size, self._resized_at = terminal.size(), -RESIZE_SECONDS

    @property
    def is_visible(self) -> bool:
        width, height = self._terminal.size()
        return not self._terminal.dumb and width >= MIN_WIDTH and height >= self.MIN_HEIGHT

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.erase()

    def erase(self) -> None:
        """Remove the line until it is shown again."""
        self._terminal.erase_status()

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Show a text; a change of it may wait a little, unless it is to show `at_once`."""
        terminal, size, now = self._terminal, self._terminal.size(), self._clock()
        if size != self._size:
            self._size, self._resized_at, self._shown = size, now, ""
        if not self.is_visible:
            self.erase()
            return
        text = fit_items(text, size[0] - 1)
        is_settled = now - self._resized_at >= RESIZE_SECONDS
        if terminal.is_lost and is_settled:
            terminal.start_row()
        if terminal.may_be_full or (terminal.has_status and text == self._shown):
            return
        is_due = at_once or not terminal.has_status or now - self._shown_at >= STATUS_INTERVAL
        if terminal.is_short or (is_settled and is_due):
            terminal.draw_status(terminal.styled(text, DIM))
            self._shown, self._shown_at = text, now


def pad(text: str, width: int) -> str:
    """Pad the text with spaces to `width` cells."""
    return text + " " * (width - get_cwidth(text))


def fit(text: str, width: int) -> str:
    """Return the text on one line, truncated with … to `width` cells."""
    text = escape_controls(text).replace("\n", " ").replace("\t", " ")
    cells = end = 0
    for index, char in enumerate(text):  # measures only the part that fits: the text may be a whole answer
        cells += get_cwidth(char)
        if cells > width:
            return text[:end] + "…" if width > 0 else ""
        if cells < width:  # leaves room for the …
            end = index + 1
    return text


def fit_items(text: str, width: int) -> str:
    """Return a list's items that fit in `width` cells, then …; a text that is no list is truncated as by `fit`."""
    items = text.split(SEPARATOR)
    while get_cwidth(text) > width and len(items) > 1:
        items.pop()
        text = SEPARATOR.join([*items, "…"])
    return fit(text, width)


def break_line(line: str, width: int) -> list[str]:
    """Break a line into rows at words, each with room for a space after it; joined, the rows are the line."""
    rows, column = [""], 0
    for _, spaces, word in PIECES.findall(line):
        for part in [word] if 0 < get_cwidth(word) < width else spaces + word:
            cells = get_cwidth(part)
            if column and column + cells > width - (not spaces):
                rows.append("")
                column = 0
            rows[-1] += part
            column += cells
    return rows


def wrap_items(items: Sequence[str], width: int, separator: str = SEPARATOR) -> Iterator[str]:
    """Yield the items, joined by a separator, in as few lines as possible; no item is broken."""
    line = ""
    for item in items:
        if line and get_cwidth(line) + len(separator) + get_cwidth(item) > width:
            yield line
            line = ""
        line = f"{line}{separator}{item}" if line else item
    if line:
        yield line


def _size(out: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    return columns or 80, rows or 24
