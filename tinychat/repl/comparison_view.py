"""Several texts side by side, each wrapped within its column; where the screen is too narrow, in rows of columns.

Draws several answers while they are made, in a region that is written anew; on a dumb terminal, at their end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.utils import get_cwidth

from tinychat.commands.registry import Command
from tinychat.commands.results import Answers, Change
from tinychat.events import Finished, Notice, Record, Token
from tinychat.repl.answer_view import AHEAD, LivePlayer, Producer
from tinychat.repl.keys import Keyboard
from tinychat.repl.render.terminal import DIM, RESET, SEPARATOR, TAB, Region, Size, Terminal, fit, pad
from tinychat.session.session import Session
from tinychat.textutil import count, escape_controls

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


# ---- from tinychat.repl.comparison_view ----


REDRAW_INTERVAL = 0.05
"""seconds between two drawings"""
PICK = "/pick N goes on from one"
PACE = "slow"
"""the command that acts on answers in the making; others wait for the prompt"""

IndexedRecord = tuple[int, Record]
"""a record, with the index of its answer"""


class AnswersPlayer(LivePlayer):
    """Shows several answers. No key changes how tokens are chosen, which is what is compared."""

    keys = "esc stop · space pause, then → one token of each · /slow N sets a pace"
    paused = "space goes on · → one token of each"

    def __init__(self, answers: Answers, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        super().__init__(session, terminal, keyboard)
        self._view = _View(answers.heads, session, terminal)
        self._producer: Producer[IndexedRecord] = Producer(
            answers.start, lambda made: self._pace(made[1]), AHEAD * len(answers.heads)
        )

    def _advance(self) -> None:
        self._view.draw(self._words())
        self._obey_keys(REDRAW_INTERVAL)
        for record in self._producer.take(wait=0):
            if record is None:
                self._is_over = True
            elif isinstance(record, BaseException):
                raise record
            else:
                self._view.take(*record)

    def _close(self) -> None:
        self._view.close()

    def _summary(self, *, show_seed: bool) -> str:
        return self._view.summary(show_seed=show_seed)

    def _press(self, key: KeyPress) -> None:
        if key.key == " " and self._terminal.dumb:  # which would not tell of a pause
            self._typed.press(key)
        else:
            super()._press(key)

    @property
    def _num_going(self) -> int:
        return self._view.going

    def _may_run(self, command: Command) -> bool:
        return command.name == PACE

    def _tell(self, result: object) -> None:
        self._say(result.text if isinstance(result, Change) else "")

    def _progress(self) -> list[str]:
        return [*filter(None, [self._said]), self._view.progress(), "esc stop"]


class _View:
    """What there is of the answers, and how it is drawn."""

    def __init__(self, heads: tuple[str, ...], session: Session, terminal: Terminal) -> None:
        self._heads, self._session, self._terminal = heads, session, terminal
        self._region = Region(terminal)
        self._texts = [GrowingText() for _ in heads]
        self._finished: list[Finished] = []
        self._notices: list[str] = []
        self._tokens = 0
        self._drawn: tuple[Size, list[Line]] | None = None

    def take(self, index: int, record: Record) -> None:
        """Add a record of the answer of that index."""
        match record:
            case Token():
                self._texts[index].append(record.text)
                self._tokens += 1
            case Finished():
                self._finished.append(record)
            case Notice() if record.text not in self._notices:
                self._notices.append(record.text)

    @property
    def going(self) -> int:
        """How many answers are not over; at least 1."""
        return max(1, len(self._heads) - len(self._finished))

    def draw(self, status: str) -> None:
        """Draws all as far as the screen is high, and a line on how it stands."""
        if self._terminal.dumb:
            return
        width, height = self._terminal.size()
        lines = columns(self._heads, self._texts, width - 1, max(2, height - 2))
        drawing = ((width, height), [*lines, Line(fit(status, width - 1), is_head=True)][: height - 1])
        if drawing != self._drawn:
            self._drawn = drawing
            self._region.draw([self._styled(line) for line in drawing[1]])

    def close(self) -> None:
        """Lets all that was said stand on screen, and what is to be known of it."""
        if self._terminal.dumb:
            for head, text in zip(self._heads, self._texts, strict=True):
                self._terminal.line(head)
                self._terminal.line(str(text))
        elif self._tokens:
            lines = columns(self._heads, self._texts, self._terminal.width - 1)
            self._region.draw([self._styled(line) for line in lines])
            self._region.leave()
        else:
            self._region.wipe()
        for notice in self._notices:
            self._terminal.line(notice, DIM)

    def summary(self, *, show_seed: bool) -> str:
        """`4 answers · 312 tokens · 402 tok/s · /pick N goes on from one`."""
        words = [f"{len(self._heads)} answers", count(self._tokens, "token")]
        seconds = max((one.seconds for one in self._finished), default=0.0)
        if self._tokens and seconds:
            words.append(f"{self._tokens / seconds:,.0f} tok/s")
        if any(one.reason == "interrupted" for one in self._finished):
            words.append("interrupted")
        seeds = {one.seed for one in self._finished}
        if show_seed and len(seeds) == 1:  # where there are several, the heads have them
            words.append(f"seed {seeds.pop()}")
        return SEPARATOR.join([*words, PICK])

    def progress(self) -> str:
        """`1 of 4 done · 312 tokens`."""
        if not self._tokens and not self._session.is_ready:
            return f"{self._session.model.name} is loading…"
        return f"{len(self._finished)} of {len(self._heads)} done{SEPARATOR}{self._tokens:,} tokens"

    def _styled(self, line: Line) -> str:
        return f"{DIM}{line.text}{RESET}" if line.is_head and self._terminal.colour else line.text
