"""The only writer to the screen: all output of the REPL goes through `Terminal`, which never rewrites text.

`Region` redraws a few lines at the end of the output; `StatusLine` keeps a line on the bottom row below scrolling text.
"""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NewType, Self, TextIO

from prompt_toolkit.utils import get_cwidth

from tinychat.textutil import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

DIM, BOLD, RED, YELLOW, CYAN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[36m"
GREEN, BLUE, MAGENTA = "\x1b[32m", "\x1b[34m", "\x1b[35m"
RESET = "\x1b[0m"
THEMES: Mapping[str, Mapping[str, str]] = {"dark": {}, "light": {"32": "38;5;28", "33": "38;5;94", "36": "38;5;30"}}
"""Replacements, by background, for the colours that are hard to read on it (green, yellow, cyan)."""
STYLE = re.compile(r"\x1b\[([\d;]*)m")
TAB = 8
SEPARATOR = " · "
"""Separator of the items on a line."""

ERASE_SCREEN_BELOW, ERASE_LINE, ERASE_LINE_END = "\x1b[J", "\x1b[2K", "\x1b[K"
HOME = "\x1b[H"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
SAVE_CURSOR, RESTORE_CURSOR = "\x1b7", "\x1b8"
SCROLL_UP_AT_BOTTOM = "\x1bD\x1b[A"
"""Moves the cursor down and up again, which scrolls the text if the cursor is on the bottom row."""
SCROLL_WHOLE_SCREEN = "\x1b[r"

Size = tuple[int, int]
"""Columns and rows."""
Styled = NewType("Styled", str)
"""Text without control characters, and our sequences of styles: `Terminal.styled` and `render` make it."""


class Terminal:
    """A screen, written to in order: `colour` includes bold and dim, `dumb` means no control sequences at all."""

    def __init__(
        self, out: TextIO, size: Callable[[], Size], *, colour: bool, dumb: bool = False, theme: str = "dark"
    ) -> None:
        self.out, self.size, self.colour, self.dumb = out, size, colour, dumb
        self._substitutes = THEMES[theme]
        self.column = 0
        """Column of the cursor: 0 at the start of a line, `width` after a full one."""

    @classmethod
    def standard(
        cls, out: TextIO = sys.stdout, environment: Mapping[str, str] = os.environ, *, plain: bool = False,
        theme: str = "dark",
    ) -> "Terminal":  # fmt: skip
        """Return the terminal of a stream, dumb if `plain`; theme `none` means no colours, as `NO_COLOR` does."""
        dumb = plain or environment.get("TERM") in ("dumb", "unknown")
        colour = not dumb and not environment.get("NO_COLOR") and theme in THEMES
        return cls(out, lambda: _size(out), colour=colour, dumb=dumb, theme=theme if colour else "dark")

    @property
    def width(self) -> int:
        return self.size()[0]

    def write(self, text: str, style: str = "") -> None:
        """Write text at the cursor, with its control characters escaped."""
        if not text:
            return
        text = escape_controls(text)
        self._track_cursor(text)
        self.control(self._style(text, style))

    def styled(self, text: str, style: str = "") -> Styled:
        """Return text with its control characters escaped, in a style if the terminal has styles."""
        return self._style(escape_controls(text), style)

    def line(self, text: str = "", style: str = "") -> None:
        self.fresh_line()
        self.write(text, style)
        self._end_line()

    def fresh_line(self) -> None:
        """Start a new line, unless the cursor is at the start of one."""
        if self.column:
            self._end_line()

    def problem(self, problem: str, remedy: str = "") -> None:
        self.line(problem, RED)
        if remedy:
            self.line(remedy, DIM)

    def control(self, sequence: str) -> None:
        """Write a sequence as it is, without tracking the cursor; its text must be `Styled`."""
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
        return Styled(self._apply_theme(capture.get()))

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
        return Styled(f"{self._apply_theme(style)}{escaped}{RESET}" if style and self.colour else escaped)

    def _apply_theme(self, styled: str) -> str:
        """Replace the colours that are hard to read on the background."""

        def replace(style: re.Match[str]) -> str:
            return f"\x1b[{';'.join(self._substitutes.get(code, code) for code in style[1].split(';'))}m"

        return STYLE.sub(replace, styled) if self._substitutes else styled

    def _end_line(self) -> None:
        self.control("\n")
        self.column = 0

    def _track_cursor(self, text: str) -> None:
        """Update the column for text about to be written."""
        width = self.width
        for char in text:
            if char == "\n":
                self.column = 0
            elif char == "\t":
                self.column = min(width - 1, (self.column // TAB + 1) * TAB)
            else:
                cells = get_cwidth(char)
                self.column = cells if self.column + cells > width else self.column + cells


class Region:
    """A few lines at the end of the output, redrawn in place until `leave`."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._widths: list[int] = []
        self._size = terminal.size()
        self._is_cut = False  # whether it fills the screen, so that resizing may have moved its start off the screen

    def draw(self, lines: Sequence[Styled]) -> None:
        """Replace the lines with others, each narrower than the screen."""
        text = "".join(f"{line}{ERASE_LINE_END}\n" for line in lines)
        self._terminal.control(f"{HIDE_CURSOR}{self._to_start()}{text}{ERASE_SCREEN_BELOW}{SHOW_CURSOR}")
        self._widths = [get_cwidth(STYLE.sub("", line).rstrip()) for line in lines]

    def erase(self) -> None:
        self._terminal.control(self._to_start() + ERASE_SCREEN_BELOW)
        self._widths = []

    def leave(self) -> None:
        """Leave the lines on screen; the next ones are drawn below them."""
        self._widths = []
        self._is_cut = False

    def _to_start(self) -> str:
        """Return the sequence that moves the cursor to the first line, which a narrower window may have wrapped."""
        before, self._size = self._size, self._terminal.size()
        columns, height = self._size
        rows = sum(max(1, -(-cells // max(1, columns))) for cells in self._widths)
        self._is_cut |= rows >= height
        if self._is_cut and self._size != before:
            return HOME
        return f"\r\x1b[{rows}A" if rows else "\r"


class StatusLine:
    """A line on the bottom row, shown inside a `with` block; invisible on a dumb terminal or a tiny screen.

    The bottom row is excluded from the scrolling region, so text scrolls above it.
    """

    MIN_SIZE: Size = (20, 6)

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._size: Size | None = None
        self._shown = ""
        self._is_waiting = False  # until the next line of text starts

    @property
    def is_visible(self) -> bool:
        return self._size is not None

    def __enter__(self) -> Self:
        self._reserve()
        return self

    def __exit__(self, *_: object) -> None:
        if self._size:
            bottom = f"\x1b[{self._size[1]};1H"
            self._terminal.control(f"{SAVE_CURSOR}{SCROLL_WHOLE_SCREEN}{bottom}{ERASE_LINE}{RESTORE_CURSOR}")
            self._size = None

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line inside a `with` block."""
        self.__exit__()
        yield
        self._reserve()

    def handle_resize(self) -> None:
        """Hide the line if the window was resized, until the next line of text starts; call this before writing.

        Only there is the cursor's position known, since the window may have rewrapped lines.
        """
        if self._size and self._terminal.size() != self._size:
            self._terminal.control(f"{SAVE_CURSOR}{SCROLL_WHOLE_SCREEN}{RESTORE_CURSOR}{ERASE_SCREEN_BELOW}")
            self._size = None
            self._is_waiting = True
        if self._is_waiting and self._terminal.column == 0:
            self._is_waiting = False
            self._reserve()

    def show(self, text: str) -> None:
        self.handle_resize()
        if not self._size:
            return
        width, height = self._size
        text = fit(text, width - 1)
        # After a full line the next character wraps; saving and restoring the cursor would lose that, so skip it.
        if text != self._shown and self._terminal.column < width:
            styled = self._terminal.styled(text, DIM)
            self._terminal.control(f"{SAVE_CURSOR}\x1b[{height};1H{ERASE_LINE}{styled}{RESTORE_CURSOR}")
            self._shown = text

    def _reserve(self) -> None:
        """Exclude the bottom row from scrolling, if the screen is large enough."""
        width, height = self._terminal.size()
        self._shown = ""
        is_large_enough = width >= self.MIN_SIZE[0] and height >= self.MIN_SIZE[1]
        self._size = (width, height) if is_large_enough and not self._terminal.dumb else None
        if self._size:
            self._terminal.control(f"{SCROLL_UP_AT_BOTTOM}{SAVE_CURSOR}\x1b[1;{height - 1}r{RESTORE_CURSOR}")


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


def wrap_items(items: Sequence[str], width: int) -> Iterator[str]:
    """Yield the items, joined by `SEPARATOR`, in as few lines as possible; no item is broken."""
    line = ""
    for item in items:
        if line and len(line) + len(SEPARATOR) + len(item) > width:
            yield line
            line = ""
        line = f"{line}{SEPARATOR}{item}" if line else item
    if line:
        yield line


def _size(out: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    return columns or 80, rows or 24
