"""One line at the bottom of the screen, while text flows above it.

The bottom row is taken out of the scrolling region, so that text is written forward and never again, and the line is
changed without touching it. The line always lies below the cursor: when the window changes its size, everything
below the cursor is wiped, and the line begins anew at the new bottom.
"""

from types import TracebackType
from typing import Self

from tinychat.repl.terminal import DIM, RESET, Terminal, fit

LEAST_WIDTH, LEAST_HEIGHT = 20, 6

SAVE, RESTORE = "\x1b7", "\x1b8"
MAKE_ROOM = "\x1bD\x1b[A"
"""down and up: where the cursor was on the bottom row, the text has moved up"""
WIPE_BELOW, WIPE_LINE = "\x1b[J", "\x1b[2K"
WHOLE_SCREEN = "\x1b[r"


class StatusLine:
    """Holds the bottom row while it is entered; where the screen cannot, it does nothing."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._size = (0, 0)
        self._shown = ""

    @property
    def is_there(self) -> bool:
        """Whether the screen has the line."""
        return self._size != (0, 0)

    def __enter__(self) -> Self:
        self._reserve()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_there:
            self._terminal.control(f"{SAVE}{WHOLE_SCREEN}\x1b[{self._size[1]};1H{WIPE_LINE}{RESTORE}")
            self._size = (0, 0)

    def show(self, text: str) -> None:
        """Changes the line."""
        if not self.is_there:
            return
        width = self._size[0]
        if self._terminal.column >= width:
            return  # to save and restore the cursor would lose that the next character wraps: the next call will do
        if self._terminal.size() != self._size:
            self._terminal.control(f"{SAVE}{WHOLE_SCREEN}{RESTORE}{WIPE_BELOW}")
            self._reserve()
        text = fit(text, self._size[0] - 1)
        if self.is_there and text != self._shown:
            styled = f"{DIM}{text}{RESET}" if self._terminal.colour else text
            self._terminal.control(f"{SAVE}\x1b[{self._size[1]};1H{WIPE_LINE}{styled}{RESTORE}")
            self._shown = text

    def _reserve(self) -> None:
        width, height = self._terminal.size()
        self._shown = ""
        if self._terminal.dumb or width < LEAST_WIDTH or height < LEAST_HEIGHT:
            self._size = (0, 0)
            return
        self._size = (width, height)
        self._terminal.control(f"{MAKE_ROOM}{SAVE}\x1b[1;{height - 1}r{RESTORE}")
