"""The one owner of the screen: everything that the REPL shows goes through here."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

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
