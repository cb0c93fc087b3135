"""Draws several answers while they are made, in a region that is written anew; on a dumb terminal, at their end."""

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.results import Answers, Change
from tinychat.errors import UsageError
from tinychat.events import Finished, Notice, Record, Token
from tinychat.repl.columns import Line, columns
from tinychat.repl.keyboard import Keyboard, TypeAhead
from tinychat.repl.marks import mark
from tinychat.repl.player import HINT
from tinychat.repl.producer import AHEAD, Producer
from tinychat.repl.region import Region
from tinychat.repl.terminal import DIM, RESET, SEPARATOR, Size, Terminal, fit
from tinychat.session import Session
from tinychat.textutil import count

FRAME = 0.05
"""seconds between two drawings"""
PICK = "/pick N goes on from one"
KEYS = "esc stop · space pause, then → one token of each · /slow N sets a pace"
PAUSED = "space goes on · → one token of each"
PACE = "slow"
"""the command that acts on answers in the making; others wait for the prompt"""

Made = tuple[int, Record]
"""a record, with the place of its answer"""


class AnswersPlayer:
    """Answers in the making, and the keys that act on them."""

    def __init__(self, answers: Answers, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._view = _View(answers.heads, session, terminal)
        self._producer: Producer[Made] = Producer(answers.start, self._pace, AHEAD * len(answers.heads))
        self._typed = TypeAhead()
        self._said = ""

    def play(self) -> None:
        """Shows them to their end, and says how to choose one; what was typed meanwhile goes to the next prompt.

        Raises:
            TinychatError: they could not be made; what was there stays on screen.
        """
        seed_is_set = self._session.settings.current.seed is not None
        is_over = False
        try:
            with self._keyboard.live():
                self._terminal.take_pastes_whole(True)
                while not is_over:
                    try:
                        self._view.draw(self._status())
                        for key in self._keyboard.read(FRAME):
                            self._press(key)
                        is_over = self._take()
                    except KeyboardInterrupt:  # a signal from outside; the key itself is read above
                        self._producer.stop()
        finally:
            self._producer.stop()
            self._terminal.take_pastes_whole(False)
            self._keyboard.keep(self._typed.keys)
            self._view.close()
        self._terminal.line(self._view.summary(show_seed=not seed_is_set), DIM)

    def _take(self) -> bool:
        """Hands over what has been made; whether it was the last.

        Raises:
            BaseException: the error that was in the way.
        """
        for record in self._producer.take(wait=0):
            if record is None:
                return True
            if isinstance(record, BaseException):
                raise record
            self._view.take(*record)
        return False

    def _press(self, key: KeyPress) -> None:
        """As keys act on one answer; but how tokens are chosen stays, which is what is compared."""
        typing = bool(self._typed.line)
        if key.key in (Keys.ControlC, Keys.Escape):
            self._producer.stop()
        elif key.key == " " and not typing and not self._terminal.dumb:  # which would not tell of it
            self._producer.pause()
        elif key.key is Keys.Right and self._producer.is_pausing:
            self._producer.make_more(self._view.going)
        elif key.key == "?" and not typing:
            self._said = "" if self._said == KEYS else KEYS
        elif key.key is Keys.ControlM and (command := COMMANDS.command_of(self._typed.text)) and command.name == PACE:
            self._set_pace(self._typed.text)
            self._typed.line.clear()
        else:
            self._typed.press(key)

    def _set_pace(self, line: str) -> None:
        try:
            result = COMMANDS.dispatch(self._session, line)
        except UsageError as error:
            self._said = error.problem
        else:
            self._said = result.text if isinstance(result, Change) else ""

    def _pace(self, made: Made) -> float | None:
        """Seconds between two tokens, so that each answer keeps to the pace that is set for one."""
        slow = self._session.settings.current.slow
        return None if not isinstance(made[1], Token) else 1 / slow / self._view.going if slow else 0.0

    def _status(self) -> str:
        """What stands under the answers."""
        if self._typed.text:
            return mark(self._session) + self._typed.text
        if self._producer.is_stopping:
            return "stopping…"
        if self._said == KEYS:
            return KEYS
        if self._producer.is_pausing:
            return SEPARATOR.join(["paused", PAUSED])
        return SEPARATOR.join([*filter(None, [self._said]), self._view.progress(), "esc stop", HINT])


class _View:
    """What there is of the answers, and how it is drawn."""

    def __init__(self, heads: tuple[str, ...], session: Session, terminal: Terminal) -> None:
        self._heads, self._session, self._terminal = heads, session, terminal
        self._region = Region(terminal)
        self._texts = [""] * len(heads)
        self._finished: list[Finished] = []
        self._notices: list[str] = []
        self._tokens = 0
        self._drawn: tuple[Size, list[Line]] | None = None

    def take(self, place: int, record: object) -> None:
        """Notes a record of the answer at that place."""
        match record:
            case Token():
                self._texts[place] += record.text
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
                self._terminal.line(text)
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
