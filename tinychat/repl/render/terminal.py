"""The one owner of the screen: everything that the REPL shows goes through here.

A few lines at the end of what is on screen that are written anew in place.

One line at the bottom of the screen, while text flows above it.

The bottom row is taken out of the scrolling region, so that text is written forward and never again, and the line is
changed without touching it. The line always lies below the cursor: when the window changes its size, everything
below the cursor is wiped, and the line begins anew at the new bottom with the next line of text.
"""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TextIO

from prompt_toolkit.utils import get_cwidth

from tinychat.textutil import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


DIM, BOLD, RED, YELLOW, CYAN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[36m"
GREEN, BLUE, MAGENTA = "\x1b[32m", "\x1b[34m", "\x1b[35m"
RESET = "\x1b[0m"
THEMES: Mapping[str, Mapping[str, str]] = {
    "dark": {},
    "light": {"32": "38;5;28", "33": "38;5;94", "36": "38;5;30"},
}
"""for a background, the codes of colours that are hard to read on it (green, yellow, cyan), and darker ones instead"""
STYLE = re.compile(r"\x1b\[([\d;]+)m")
WIPE_BELOW = "\x1b[J"
TAB = 8
SEPARATOR = " · "
"""between facts on a line"""

Size = tuple[int, int]
"""columns and rows"""


class Terminal:
    """Writes to a screen, forward.

    Args:
        colour: whether to write colours, bold and dim.
        dumb: whether the screen knows no control sequences at all, or is to be spared them.
        theme: the background that colours are to be read on, a key of `THEMES`.
    """

    def __init__(
        self, out: TextIO, size: Callable[[], Size], *, colour: bool, dumb: bool = False, theme: str = "dark"
    ) -> None:
        self.out, self.size, self.colour, self.dumb = out, size, colour, dumb
        self._instead = THEMES[theme]
        self.column = 0
        """where the cursor stands: 0 at the beginning of a line, `width` behind a full one"""

    @classmethod
    def standard(
        cls,
        out: TextIO = sys.stdout,
        environment: Mapping[str, str] = os.environ,
        *,
        plain: bool = False,
        theme: str = "dark",
    ) -> "Terminal":
        """The terminal that a stream writes to.

        Args:
            plain: as if it were dumb.
            theme: a key of `THEMES`, or `none` for no colours.
        """
        dumb = plain or environment.get("TERM") in ("dumb", "unknown")
        colour = not dumb and not environment.get("NO_COLOR") and theme in THEMES
        return cls(out, lambda: _size(out), colour=colour, dumb=dumb, theme=theme if colour else "dark")

    @property
    def width(self) -> int:
        """In columns."""
        return self.size()[0]

    def write(self, text: str, style: str = "") -> None:
        """Writes text at the cursor, its control characters escaped."""
        if not text:
            return
        text = escape_controls(text)
        self._move(text)
        self.control(f"{self.readable(style)}{text}{RESET}" if style and self.colour else text)

    def line(self, text: str = "", style: str = "") -> None:
        """Writes a line of its own."""
        self.fresh_line()
        self.write(text, style)
        self._end_line()

    def fresh_line(self) -> None:
        """Goes to the next line, unless the cursor is at the beginning of one."""
        if self.column:
            self._end_line()

    def problem(self, problem: str, remedy: str = "") -> None:
        """What went wrong, and what to do about it."""
        self.line(problem, RED)
        if remedy:
            self.line(remedy, DIM)

    def control(self, sequence: str) -> None:
        """Writes as it is what leaves the cursor at the same place, in the end."""
        encoding = self.out.encoding or "utf-8"  # what it cannot write (half a surrogate pair, say) becomes a `?`
        self.out.write(sequence.encode(encoding, "replace").decode(encoding))
        self.out.flush()

    def take_pastes_whole(self, whole: bool) -> None:
        """Lets a pasted block come as one key, or as the keys that it is made of."""
        if not self.dumb:
            self.control("\x1b[?2004h" if whole else "\x1b[?2004l")

    def show(self, drawing: "RenderableType") -> None:
        """Writes something that rich draws, which holds no control characters."""
        self.fresh_line()
        self.control(self.render(drawing))

    def render(self, drawing: "RenderableType", width: int | None = None) -> str:
        """What rich makes of a drawing: lines, each with its end."""
        console = self.console(width)
        with console.capture() as capture:
            console.print(drawing)
        return self.readable(capture.get())

    def readable(self, styled: str) -> str:
        """Styled text with the colours that can be read on the background."""
        if not self._instead:
            return styled
        return STYLE.sub(
            lambda found: f"\x1b[{';'.join(self._instead.get(code, code) for code in found[1].split(';'))}m", styled
        )

    def console(self, width: int | None = None) -> "Console":
        """A console of rich's that draws as this terminal can."""
        from rich.console import Console

        return Console(
            file=io.StringIO(),
            width=width or self.width,
            force_terminal=self.colour,
            color_system="standard" if self.colour else None,
            no_color=not self.colour,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            safe_box=False,
        )

    def _end_line(self) -> None:
        self.control("\n")
        self.column = 0

    def _move(self, text: str) -> None:
        """Follows the cursor."""
        width = self.width
        for char in text:
            if char == "\n":
                self.column = 0
            elif char == "\t":
                self.column = min(width - 1, (self.column // TAB + 1) * TAB)
            else:
                cells = get_cwidth(char)
                self.column = cells if self.column + cells > width else self.column + cells


def pad(text: str, width: int) -> str:
    """The text with spaces behind it, in so many cells."""
    return text + " " * (width - get_cwidth(text))


def fit(text: str, width: int) -> str:
    """Return the text on one line, cut to so many cells and ended with … if it is wider.

    Measures no more of it than fits: what is cut off may be a whole answer.
    """
    text = escape_controls(text).replace("\n", " ").replace("\t", " ")
    cells = kept = 0
    for index, char in enumerate(text):
        cells += get_cwidth(char)
        if cells > width:
            return text[:kept] + "…" if width > 0 else ""
        if cells < width:  # room for the … is left
            kept = index + 1
    return text


def packed(words: Sequence[str], width: int) -> Iterator[str]:
    """The words in as few lines as hold them, none of them broken."""
    line = ""
    for word in words:
        longer = f"{line}{SEPARATOR}{word}" if line else word
        if line and len(longer) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _size(out: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    return columns or 80, rows or 24


# ---- from tinychat.repl.render.terminal ----


_ANY_STYLE = re.compile(r"\x1b\[[0-9;]*m")
WIPE_REST = "\x1b[K"
HOME = "\x1b[H"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Region:
    """Holds the lines; text goes above them after `leave`."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._widths: list[int] = []
        self._size = terminal.size()
        self._is_cut = False
        """its beginning was pushed off the screen by a change of size, and may come back by another"""

    def draw(self, lines: Sequence[str]) -> None:
        """Writes lines (styled, each narrower than the screen) over those that stand there."""
        text = "".join(f"{line}{WIPE_REST}\n" for line in lines)
        self._terminal.control(f"{HIDE_CURSOR}{self._back()}{text}{WIPE_BELOW}{SHOW_CURSOR}")
        self._widths = [get_cwidth(_ANY_STYLE.sub("", line).rstrip()) for line in lines]

    def wipe(self) -> None:
        """Takes the lines away."""
        self._terminal.control(self._back() + WIPE_BELOW)
        self._widths = []

    def leave(self) -> None:
        """Lets the lines stand as they are."""
        self._widths = []
        self._is_cut = False

    def _back(self) -> str:
        """To where the lines begin; a window that has become narrower has broken them into more."""
        size = columns, height = self._terminal.size()
        rows = sum(max(1, -(-cells // max(1, columns))) for cells in self._widths)
        resized, self._size = size != self._size, size
        self._is_cut |= rows >= height
        if resized and self._is_cut:
            return HOME
        return f"\r\x1b[{rows}A" if rows else "\r"


# ---- from tinychat.repl.render.terminal ----


LEAST_WIDTH, LEAST_HEIGHT = 20, 6
NOWHERE = (0, 0)

SAVE, RESTORE = "\x1b7", "\x1b8"
MAKE_ROOM = "\x1bD\x1b[A"
"""down and up: where the cursor was on the bottom row, the text has moved up"""
WIPE_LINE = "\x1b[2K"
WHOLE_SCREEN = "\x1b[r"


class StatusLine:
    """Holds the bottom row while it is entered; where the screen cannot, it does nothing."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._size = NOWHERE
        self._shown = ""
        self._gave_way = False

    @property
    def is_there(self) -> bool:
        """Whether the screen has the line."""
        return self._size != NOWHERE

    def __enter__(self) -> Self:
        self._reserve()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_there:
            self._terminal.control(f"{SAVE}{WHOLE_SCREEN}\x1b[{self._size[1]};1H{WIPE_LINE}{RESTORE}")
            self._size = NOWHERE

    def adapt(self) -> None:
        """Gives way where the window has changed its size, and comes back at the beginning of the next line.

        Only there is it known where the cursor stands: the window may have broken lines anew. Best called right
        before text is written.
        """
        if self.is_there and self._terminal.size() != self._size:
            self._terminal.control(f"{SAVE}{WHOLE_SCREEN}{RESTORE}{WIPE_BELOW}")
            self._size = NOWHERE
            self._gave_way = True
        if self._gave_way and self._terminal.column == 0:
            self._gave_way = False
            self._reserve()

    def show(self, text: str) -> None:
        """Changes the line."""
        self.adapt()
        text = fit(text, self._size[0] - 1)
        # Behind a full line the next character wraps, which saving and restoring the cursor would lose: later, then.
        if self.is_there and text != self._shown and self._terminal.column < self._size[0]:
            styled = f"{DIM}{text}{RESET}" if self._terminal.colour else text
            self._terminal.control(f"{SAVE}\x1b[{self._size[1]};1H{WIPE_LINE}{styled}{RESTORE}")
            self._shown = text

    def _reserve(self) -> None:
        width, height = self._terminal.size()
        self._shown = ""
        if self._terminal.dumb or width < LEAST_WIDTH or height < LEAST_HEIGHT:
            self._size = NOWHERE
            return
        self._size = (width, height)
        self._terminal.control(f"{MAKE_ROOM}{SAVE}\x1b[1;{height - 1}r{RESTORE}")
