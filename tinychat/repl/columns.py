"""Several texts side by side, each wrapped within its column; where the screen is too narrow, in rows of columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.repl.terminal import TAB, fit, pad
from tinychat.textutil import escape_controls

LEAST_WIDTH = 24
"""cells of a column, where there are several"""
BETWEEN = " │ "
WORDS = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Line:
    """One line of a drawing; a head stands over texts."""

    text: str
    is_head: bool = False


class GrowingText:
    """A text that is drawn while it grows: only what is new is broken into lines, unless the width changes.

    Lines are broken between words where that can be; wide characters take two cells.
    """

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._wrapper = _Wrapper(0)
        self._num_wrapped = 0
        """pieces that the wrapper has taken"""

    def __str__(self) -> str:
        return "".join(self._pieces)

    def append(self, text: str) -> None:
        """Add text at the end."""
        self._pieces.append(text)

    def lines(self, width: int, newest: int | None = None) -> list[str]:
        """Return the lines, none wider than so many cells.

        Args:
            newest: how many of the last lines to return, at least 1. None: all.
        """
        if self._wrapper.width != width:
            self._wrapper, self._num_wrapped = _Wrapper(width), 0
        self._wrapper.add("".join(self._pieces[self._num_wrapped :]))
        self._num_wrapped = len(self._pieces)
        return self._wrapper.lines(newest)


class _Wrapper:
    """Breaks a text into lines as it comes; a word that may still grow is placed only as far as that is certain."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._whole: list[str] = []
        """lines that no further text changes"""
        self._line, self._used = "", 0
        """the line behind them, without the open word, and its cells"""
        self._word, self._cells = "", 0
        """what of the open word has no place yet, and its cells"""
        self._is_space: bool | None = None
        """whether the open word is one of spaces; None at the beginning of a paragraph"""
        self._is_broken = self._is_dropped = False
        """whether the open word is wider than a line, or a space that the end of a line stands for"""
        self._column = 0
        """characters of the paragraph, for tabs"""

    def add(self, text: str) -> None:
        """Take more text."""
        first, *others = escape_controls(text).split("\n")
        self._add_words(first)
        for paragraph in others:
            self._end_word()
            self._end_line()
            self._is_space, self._column = None, 0
            self._add_words(paragraph)

    def lines(self, newest: int | None) -> list[str]:
        """Return the last lines so far, or all."""
        last = (self._line + self._word).rstrip()
        return [*self._whole, last] if newest is None else [*self._whole[-newest:], last][-newest:]

    def _add_words(self, text: str) -> None:
        before = self._column % TAB
        text = (" " * before + text).expandtabs(TAB)[before:]
        self._column += len(text)
        for word in WORDS.findall(text):
            if word.isspace() is not self._is_space:
                self._end_word()
                self._is_space = word.isspace()
            self._extend_word(word)

    def _extend_word(self, text: str) -> None:
        if self._is_dropped:
            return
        if self._is_broken:
            self._break(text)
            return
        self._word, self._cells = self._word + text, self._cells + get_cwidth(text)
        if self._used and self._used + self._cells > self.width:
            self._end_line()
            if self._is_space:
                self._word, self._cells, self._is_dropped = "", 0, True
        if self._cells > self.width:
            word, self._word, self._cells, self._is_broken = self._word, "", 0, True
            self._break(word)

    def _break(self, word: str) -> None:
        """Place a word that is wider than a line, character by character."""
        for char in word:
            cells = get_cwidth(char)
            if self._used + cells > self.width:
                self._whole.append(self._line)
                self._line, self._used = "", 0
            self._line, self._used = self._line + char, self._used + cells

    def _end_word(self) -> None:
        self._line, self._used = self._line + self._word, self._used + self._cells
        self._word, self._cells, self._is_broken, self._is_dropped = "", 0, False, False

    def _end_line(self) -> None:
        self._whole.append(self._line.rstrip())
        self._line, self._used = "", 0


def columns(heads: Sequence[str], texts: Sequence[GrowingText], width: int, height: int | None = None) -> list[Line]:
    """Return the texts under their heads, side by side where there is room.

    Args:
        heads: one for each text.
        texts: at least one.
        width: cells, at most.
        height: lines, at most; of each text the newest part stays. None: as many as there are.
    """
    count = len(texts)
    across = max(1, min(count, (width + len(BETWEEN)) // (LEAST_WIDTH + len(BETWEEN))))
    rows = -(-count // across)
    across = -(-count // rows)  # 4 where 3 would fit are 2 and 2
    cells = (width - len(BETWEEN) * (across - 1)) // across
    room = None if height is None else max(1, height // rows - 1)
    lines: list[Line] = []
    for first in range(0, count, across):
        wrapped = [text.lines(cells, room) for text in texts[first : first + across]]
        lines.append(Line(_beside([fit(head, cells) for head in heads[first : first + across]], cells), is_head=True))
        for index in range(max(map(len, wrapped))):
            lines.append(Line(_beside([text[index] if index < len(text) else "" for text in wrapped], cells)))
    return lines if height is None else lines[:height]


def _beside(parts: Sequence[str], cells: int) -> str:
    return BETWEEN.join(pad(part, cells) for part in parts).rstrip()
