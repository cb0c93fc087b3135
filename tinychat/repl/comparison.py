"""Draws several answers while they are made, in a region that is written anew; on a dumb terminal, at their end."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from prompt_toolkit.keys import Keys

from tinychat.commands.results import Answers
from tinychat.events import Finished, Notice, Token
from tinychat.repl.columns import Line, columns
from tinychat.repl.keyboard import Keyboard, TypeAhead
from tinychat.repl.region import Region
from tinychat.repl.stream import PASTE_OFF, PASTE_ON
from tinychat.repl.terminal import DIM, RESET, Size, Terminal, fit
from tinychat.repl.toolbar import SEPARATOR
from tinychat.session import Session

FRAME = 0.05
"""seconds between two drawings"""
PICK = "/pick N goes on from one"


def play_all(answers: Answers, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
    """Shows answers to their end, and says how to choose one; what was typed meanwhile goes to the next prompt.

    Raises:
        TinychatError: they could not be made; what was there stays on screen.
    """
    seed_is_set = session.settings.current.seed is not None
    making, view = _Making(answers, session), _View(answers.heads, session, terminal)
    typed, is_over = TypeAhead(), False
    try:
        with keyboard.live(), _pastes_as_one(terminal):
            while not is_over:
                try:
                    view.draw(making.is_stopping, typed.text)
                    for key in keyboard.read(FRAME):
                        if key.key in (Keys.ControlC, Keys.Escape):
                            making.stop()
                        else:
                            typed.press(key)
                    is_over = making.pass_on(view)
                except KeyboardInterrupt:  # a signal from outside; the key itself is read above
                    making.stop()
    finally:
        making.stop()
        keyboard.keep(typed.keys)
        view.close()
    terminal.line(view.summary(show_seed=not seed_is_set), DIM)


class _Making:
    """Makes the records in a thread, at the pace that is set for one answer."""

    def __init__(self, answers: Answers, session: Session) -> None:
        self._answers, self._session = answers, session
        self._stopping = threading.Event()
        self._records: queue.SimpleQueue[tuple[int, object] | BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._make, name="answers", daemon=True).start()

    @property
    def is_stopping(self) -> bool:
        """Whether it has been asked to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Asks for the end."""
        self._stopping.set()

    def pass_on(self, view: "_View") -> bool:
        """Hands over what is there; whether it was the last.

        Raises:
            BaseException: the error that was in the way.
        """
        while not self._records.empty():
            record = self._records.get()
            if record is None:
                return True
            if isinstance(record, BaseException):
                raise record
            view.take(*record)
        return False

    def _make(self) -> None:
        try:
            for place, record in self._answers.start(self._stopping.is_set):
                self._records.put((place, record))
                slow = self._session.settings.current.slow
                if slow and isinstance(record, Token):
                    self._stopping.wait(1 / slow / len(self._answers.heads))
            self._records.put(None)
        except BaseException as error:  # raised anew where the screen is
            self._records.put(error)


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

    def draw(self, is_stopping: bool, typed: str) -> None:
        """Draws all as far as the screen is high, and a line on how it stands."""
        if self._terminal.dumb:
            return
        width, height = self._terminal.size()
        lines = columns(self._heads, self._texts, width - 1, max(2, height - 2))
        status = Line(fit(f"› {typed}" if typed else self._status(is_stopping), width - 1), is_head=True)
        drawing = ((width, height), [*lines, status][: height - 1])
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
        words = [f"{len(self._heads)} answers", f"{self._tokens:,} {'token' if self._tokens == 1 else 'tokens'}"]
        seconds = max((one.seconds for one in self._finished), default=0.0)
        if self._tokens and seconds:
            words.append(f"{self._tokens / seconds:,.0f} tok/s")
        if any(one.reason == "interrupted" for one in self._finished):
            words.append("interrupted")
        seeds = {one.seed for one in self._finished}
        if show_seed and len(seeds) == 1:  # where there are several, the heads have them
            words.append(f"seed {seeds.pop()}")
        return SEPARATOR.join([*words, PICK])

    def _status(self, is_stopping: bool) -> str:
        if is_stopping:
            return "stopping…"
        if not self._tokens and not self._session.is_ready:
            return f"{self._session.model.name} is loading… · esc stop"
        count = len(self._heads)
        return f"{len(self._finished)} of {count} done · {self._tokens:,} tokens · esc stop"

    def _styled(self, line: Line) -> str:
        return f"{DIM}{line.text}{RESET}" if line.is_head and self._terminal.colour else line.text


@contextmanager
def _pastes_as_one(terminal: Terminal) -> Iterator[None]:
    """A pasted block comes as one key meanwhile, so that its lines are not typed one after the other."""
    if terminal.dumb:
        yield
        return
    terminal.control(PASTE_ON)
    try:
        yield
    finally:
        terminal.control(PASTE_OFF)
