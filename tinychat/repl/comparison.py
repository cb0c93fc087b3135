"""Draws several answers while they are made, in a region that is written anew; on a dumb terminal, at their end."""

from prompt_toolkit.key_binding import KeyPress

from tinychat.commands.registry import Command
from tinychat.commands.results import Answers, Change
from tinychat.events import Finished, Notice, Record, Token
from tinychat.repl.columns import GrowingText, Line, columns
from tinychat.repl.keyboard import Keyboard
from tinychat.repl.player import LivePlayer
from tinychat.repl.producer import AHEAD, Producer
from tinychat.repl.region import Region
from tinychat.repl.terminal import DIM, RESET, SEPARATOR, Size, Terminal, fit
from tinychat.session import Session
from tinychat.textutil import count

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
