"""A few lines at the end of what is on screen that are written anew in place."""

import re
from collections.abc import Sequence

from prompt_toolkit.utils import get_cwidth

from tinychat.repl.terminal import WIPE_BELOW, Terminal

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
