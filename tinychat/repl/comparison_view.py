"""The view of several answers side by side, drawn in place as they stream; on a dumb terminal, written at their end."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.utils import get_cwidth

from tinychat.commands.registry import Command
from tinychat.commands.results import Change, ParallelAnswers
from tinychat.events import Finished, Notice, Record, Token
from tinychat.repl.answer_view import QUEUE_SIZE, LiveView, Producer
from tinychat.repl.keys import Keyboard
from tinychat.repl.render.palette import BOLD, DIM, LINE
from tinychat.repl.render.terminal import SEPARATOR, TAB, Region, Size, Styled, Terminal, fit, pad, spin
from tinychat.session.session import Session
from tinychat.textutil import count, escape_controls

MIN_COLUMN_WIDTH = 24
"""Minimum width in cells, if there are several columns."""
COLUMN_SEPARATOR = " │ "
WORD = re.compile(r"\s+|\S+")
REDRAW_INTERVAL = 0.05
"""Seconds between two drawings."""
PICK_HINT = "/pick N goes on from one"
PACE_COMMAND = "slow"
"""The command that runs while answers stream; others wait for the prompt."""

IndexedRecord = tuple[int, Record]
"""The index of an answer, and a record of it."""


@dataclass(frozen=True)
class Line:
    """One line of a drawing: a heading above texts, a part of the texts, or the status."""

    text: str
    style: str = ""


class GrowingText:
    """A text that is wrapped between words as it grows: only new text is measured, unless the width changes."""

    def __init__(self, text: str = "") -> None:
        self._pieces, self._wrapper = [text], _Wrapper(0)
        self._num_wrapped = 0
        """Number of pieces added to the wrapper."""

    def __str__(self) -> str:
        return "".join(self._pieces)

    def append(self, text: str) -> None:
        self._pieces.append(text)

    def lines(self, width: int, newest: int | None = None) -> list[str]:
        """Return the text wrapped to `width` cells: the `newest` lines, at least 1, or all."""
        if self._wrapper.width != width:
            self._wrapper, self._num_wrapped = _Wrapper(width), 0
        self._wrapper.add("".join(self._pieces[self._num_wrapped :]))
        self._num_wrapped = len(self._pieces)
        return self._wrapper.lines(newest)


class _Wrapper:
    """Wraps text incrementally; of a word that may still grow, only the part whose line is certain is placed."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._full_lines: list[str] = []
        """Lines that further text does not change."""
        self._line, self._line_cells = "", 0
        """The current line without the open word, and its width."""
        self._word, self._word_cells = "", 0
        """The part of the open word that is not placed yet, and its width."""
        self._is_space: bool | None = None
        """Whether the open word consists of spaces; None at the beginning of a paragraph."""
        self._is_split = self._is_dropped = False
        """Whether the open word is wider than a line; whether it is a space replaced by a line break."""
        self._column = 0
        """Number of characters of the paragraph, for tabs."""

    def add(self, text: str) -> None:
        first, *others = escape_controls(text).split("\n")
        self._add_words(first)
        for paragraph in others:
            self._end_word()
            self._end_line()
            self._is_space, self._column = None, 0
            self._add_words(paragraph)

    def lines(self, newest: int | None) -> list[str]:
        last = (self._line + self._word).rstrip()
        return [*self._full_lines, last] if newest is None else [*self._full_lines[-newest:], last][-newest:]

    def _add_words(self, text: str) -> None:
        offset = self._column % TAB
        text = (" " * offset + text).expandtabs(TAB)[offset:]
        self._column += len(text)
        for word in WORD.findall(text):
            if word.isspace() is not self._is_space:
                self._end_word()
                self._is_space = word.isspace()
            self._extend_word(word)

    def _extend_word(self, text: str) -> None:
        if self._is_dropped:
            return
        if self._is_split:
            self._split(text)
            return
        self._word, self._word_cells = self._word + text, self._word_cells + get_cwidth(text)
        if self._line_cells and self._line_cells + self._word_cells > self.width:
            self._end_line()
            if self._is_space:
                self._word, self._word_cells, self._is_dropped = "", 0, True
        if self._word_cells > self.width:
            word, self._word, self._word_cells, self._is_split = self._word, "", 0, True
            self._split(word)

    def _split(self, word: str) -> None:
        """Place a word that is wider than a line, character by character."""
        for char in word:
            cells = get_cwidth(char)
            if self._line_cells + cells > self.width:
                self._full_lines.append(self._line)
                self._line, self._line_cells = "", 0
            self._line, self._line_cells = self._line + char, self._line_cells + cells

    def _end_word(self) -> None:
        self._line, self._line_cells = self._line + self._word, self._line_cells + self._word_cells
        self._word, self._word_cells, self._is_split, self._is_dropped = "", 0, False, False

    def _end_line(self) -> None:
        self._full_lines.append(self._line.rstrip())
        self._line, self._line_cells = "", 0


def columns(headings: Sequence[str], texts: Sequence[GrowingText], width: int, height: int | None = None) -> list[Line]:
    """Return the texts under their headings, side by side as far as there is room, in several rows if need be.

    If there is a maximum `height` in lines, they show the end of each text; `width` is in cells.
    """
    per_row = max(1, min(len(texts), (width + len(COLUMN_SEPARATOR)) // (MIN_COLUMN_WIDTH + len(COLUMN_SEPARATOR))))
    num_rows = -(-len(texts) // per_row)
    per_row = -(-len(texts) // num_rows)  # if 3 fit, 4 become 2 and 2
    cells = (width - len(COLUMN_SEPARATOR) * (per_row - 1)) // per_row
    newest = None if height is None else max(1, height // num_rows - 1)
    lines: list[Line] = []
    for first in range(0, len(texts), per_row):
        row = slice(first, first + per_row)
        lines.append(Line(_join([fit(heading, cells) for heading in headings[row]], cells), BOLD))
        wrapped = [text.lines(cells, newest) for text in texts[row]]
        lines += [Line(_join(parts, cells)) for parts in zip_longest(*wrapped, fillvalue="")]
    return lines if height is None else lines[:height]


def _join(parts: Sequence[str], cells: int) -> str:
    return COLUMN_SEPARATOR.join(pad(part, cells) for part in parts).rstrip()


class ComparisonView(LiveView):
    """The view of several answers; no key changes sampling settings, which may be what is compared."""

    key_help = "esc stop · space pause, then → one token of each · /slow N sets a pace"
    pause_help = "space goes on · → one token of each"

    def __init__(self, answers: ParallelAnswers, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        super().__init__(session, terminal, keyboard)
        self._headings, self._texts = answers.labels, [GrowingText() for _ in answers.labels]
        self._num_unfinished = len(answers.labels)
        self._region = Region(terminal)
        self._finished: list[Finished] = []
        self._notices: list[str] = []
        self._num_tokens = 0
        self._drawn: tuple[Size, list[Line]] | None = None
        self._producer: Producer[IndexedRecord] = Producer(
            answers.start, lambda indexed: self._delay_after(indexed[1]), QUEUE_SIZE * len(answers.labels)
        )

    @contextmanager
    def _hidden(self) -> Iterator[None]:
        if not self._terminal.dumb:
            self._region.erase()
        yield
        self._drawn = None

    def _advance(self) -> None:
        if not self._terminal.dumb:
            self._draw()
        self._press_all(self._keyboard.read(REDRAW_INTERVAL))
        for record in self._producer.poll(timeout=0):
            if record is None:
                self._is_finished = True
            elif isinstance(record, BaseException):
                raise record
            else:
                self._add(*record)

    def _add(self, index: int, record: Record) -> None:
        match record:
            case Token():
                self._texts[index].append(record.text)
                self._num_tokens += 1
            case Finished():
                self._finished.append(record)
                self._num_unfinished = max(1, len(self._headings) - len(self._finished))
            case Notice() if record.text not in self._notices:
                self._notices.append(record.text)

    def _draw(self) -> None:
        """Draw the answers as far as the screen is high, and the status under them."""
        width, height = self._terminal.size()
        status = Line(fit(self._status_text(), width - 1), DIM)
        lines = [*columns(self._headings, self._texts, width - 1, max(2, height - 2)), status][: height - 1]
        if self._drawn != ((width, height), lines):
            self._drawn = (width, height), lines
            self._region.draw(self._styled(lines))

    def _styled(self, lines: Sequence[Line]) -> list[Styled]:
        separator = self._terminal.styled(COLUMN_SEPARATOR, LINE)
        rows = ((line.text.split(COLUMN_SEPARATOR), line.style) for line in lines)
        return [Styled(separator.join(self._terminal.styled(part, style) for part in row)) for row, style in rows]

    def _close(self) -> None:
        """Leave the complete answers on screen, followed by the notices."""
        if self._terminal.dumb:
            for heading, text in zip(self._headings, self._texts, strict=True):
                self._terminal.line(heading)
                self._terminal.line(str(text))
        elif self._num_tokens:
            self._region.leave(self._styled(columns(self._headings, self._texts, self._terminal.width - 1)))
        else:
            self._region.erase()
        for notice in self._notices:
            self._terminal.line(notice, DIM)

    def _summary(self, *, show_seed: bool) -> str:
        """Return the last line: `4 answers · 312 tokens · 402 tok/s · /pick N goes on from one`."""
        parts = [f"{len(self._headings)} answers", count(self._num_tokens, "token")]
        seconds = max((finished.seconds for finished in self._finished), default=0.0)
        if self._num_tokens and seconds:
            parts.append(f"{self._num_tokens / seconds:,.0f} tok/s")
        if any(finished.reason == "interrupted" for finished in self._finished):
            parts.append("interrupted")
        seeds = {finished.seed for finished in self._finished}
        if show_seed and len(seeds) == 1:  # the headings show the seeds if they differ
            parts.append(f"seed {seeds.pop()}")
        return SEPARATOR.join([*parts, PICK_HINT])

    def _press(self, key: KeyPress) -> None:
        if key.key == " " and self._terminal.dumb:  # a dumb terminal could not show the pause
            self._typed.press(key)
        else:
            super()._press(key)

    def _can_run(self, command: Command) -> bool:
        return command.name == PACE_COMMAND

    def _show_result(self, result: object) -> None:
        self._show_message(result.text if isinstance(result, Change) else "")

    def _progress(self) -> list[str]:
        """Return the parts of `1 of 4 done · 312 tokens · esc stop`."""
        if not self._num_tokens and not self._session.is_ready:
            progress = [f"{spin()} {self._session.model.name} is loading"]
        else:
            progress = [f"{len(self._finished)} of {len(self._headings)} done", f"{self._num_tokens:,} tokens"]
        return [*filter(None, [self._message]), *progress, "esc stop"]
