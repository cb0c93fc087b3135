"""One line at the bottom of the screen, while text flows above it.

The bottom row is taken out of the scrolling region, so that text is written forward and never again, and the line is
changed without touching it. The line always lies below the cursor: when the window changes its size, everything
below the cursor is wiped, and the line begins anew at the new bottom with the next line of text.
"""

from typing import Self

from tinychat.repl.terminal import DIM, RESET, WIPE_BELOW, Terminal, fit

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
