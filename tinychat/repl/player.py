"""Draws an answer while it is made, forward, and lets keys change how it goes on."""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Command
from tinychat.commands.results import Answer, Change, Message, summary
from tinychat.commands.settings import nudge, switch
from tinychat.errors import TinychatError
from tinychat.events import Changed, Finished, Notice, Part, Record, Token
from tinychat.repl.keyboard import Keyboard, TypeAhead
from tinychat.repl.marks import mark
from tinychat.repl.producer import FRAME, Producer
from tinychat.repl.status import StatusLine
from tinychat.repl.terminal import DIM, SEPARATOR, Terminal
from tinychat.session import Session
from tinychat.settings import SAMPLING, SETTINGS, describe_sampling

RATE_SPAN = 1.0
"""seconds over which the rate of tokens is told"""
HINT = "? keys"

LIVE_KEYS: Mapping[str, Callable[[Session], Change]] = {
    Keys.Up: lambda session: nudge(session, "temperature", 0.1),
    Keys.Down: lambda session: nudge(session, "temperature", -0.1),
    Keys.Right: lambda session: nudge(session, "max_tokens", 16),
    Keys.Left: lambda session: nudge(session, "max_tokens", -16),
    "[": lambda session: nudge(session, "top_p", -0.05),
    "]": lambda session: nudge(session, "top_p", 0.05),
    "g": switch,
}
"""Keys that change a setting while an answer is printed; letters do so until something else has been typed."""


class LivePlayer(ABC):
    """Shows what a producer makes, while keys stop and pause it; what is typed meanwhile goes to the next prompt."""

    keys: ClassVar[str]
    """what keys do"""
    paused: ClassVar[str]
    """what keys do in a pause"""
    live_keys: ClassVar[Mapping[str, Callable[[Session], Change]]] = {}
    """keys that change a setting; letters do so until something else has been typed"""
    _producer: Producer[Any]

    def __init__(self, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._typed = TypeAhead()
        self._said = ""
        self._is_over = False

    def play(self) -> None:
        """Draw what is made to its end, and say how it ended.

        Raises:
            TinychatError: it could not be made; what was there stays on screen.
        """
        seed_is_set = self._session.settings.current.seed is not None
        try:
            with self._keyboard.live(), self._screen():
                while not self._is_over:
                    try:
                        self._advance()
                    except KeyboardInterrupt:  # a signal from outside; the key itself is one that is pressed
                        self._producer.stop()
        finally:
            self._producer.stop()
            self._terminal.take_pastes_whole(False)
            self._keyboard.keep(self._typed.keys)
            self._close()
        if words := self._summary(show_seed=not seed_is_set):
            self._terminal.line(words, DIM)

    @contextmanager
    def _screen(self) -> Iterator[None]:
        """Make the screen ready, and free again at the end."""
        self._terminal.take_pastes_whole(True)
        yield

    @abstractmethod
    def _advance(self) -> None:
        """Show the status, draw what has come and obey keys, once; set `_is_over` after the last record."""

    @abstractmethod
    def _close(self) -> None:
        """Write what belongs under all that was drawn, also after an error."""

    @abstractmethod
    def _summary(self, *, show_seed: bool) -> str:
        """Return how it ended; empty if that is not known."""

    def _obey_keys(self, wait: float = 0.0) -> None:
        """Obey the keys pressed by now.

        Args:
            wait: seconds, at most, for the first.
        """
        for key in self._keyboard.read(wait):
            self._press(key)

    def _press(self, key: KeyPress) -> None:
        typing = bool(self._typed.line)
        if key.key in (Keys.ControlC, Keys.Escape):
            self._producer.stop()
        elif key.key == " " and not typing:
            self._pause()
        elif key.key is Keys.Right and self._producer.is_pausing:
            self._producer.make_more(self._num_going)
        elif key.key == "?" and not typing:
            self._say("" if self._said == self.keys else self.keys)
        elif key.key in self.live_keys and not (typing and len(key.key) == 1):
            self._tell(self.live_keys[key.key](self._session))
        elif key.key is Keys.ControlM and (command := COMMANDS.command_of(self._typed.text)) and self._may_run(command):
            self._run(self._typed.text)
            self._typed.line.clear()
        else:
            self._typed.press(key)

    def _pause(self) -> None:
        self._producer.pause()

    @property
    def _num_going(self) -> int:
        """How many answers are being made; at least 1."""
        return 1

    def _pace(self, record: Record) -> float | None:
        """Return the seconds between this record and the next, at least; None if it is no token.

        Each of several answers keeps to the pace that is set for one.
        """
        slow = self._session.settings.current.slow
        return None if not isinstance(record, Token) else 1 / slow / self._num_going if slow else 0.0

    @abstractmethod
    def _may_run(self, command: Command) -> bool:
        """Return whether a command runs at once; others wait for the prompt."""

    def _run(self, line: str) -> None:
        try:
            result = COMMANDS.dispatch(self._session, line)
        except TinychatError as error:
            self._say(error.problem)
        else:
            self._tell(result)

    @abstractmethod
    def _tell(self, result: object) -> None:
        """Say what came of a key or a command."""

    def _say(self, text: str) -> None:
        """Say something in the status."""
        self._said = text

    def _words(self) -> str:
        """Return the status: what is typed, or how it stands and what keys do."""
        if self._typed.text:
            return mark(self._session) + self._typed.text
        if self._producer.is_stopping:
            return "stopping…"
        if self._said == self.keys:
            return self.keys
        if self._producer.is_pausing:
            return SEPARATOR.join(["paused", *self._sampling(), self.paused])
        return SEPARATOR.join([*self._progress(), HINT])

    def _sampling(self) -> list[str]:
        """Return how the next token is chosen, if keys change that."""
        return []

    @abstractmethod
    def _progress(self) -> list[str]:
        """Return how it stands, fact by fact."""


class Player(LivePlayer):
    """Shows one answer."""

    keys = "esc stop · space pause, then → one token · ↑↓ temp · ←→ max · [ ] top-p · g greedy"
    paused = "space goes on · → one token"
    live_keys = LIVE_KEYS

    def __init__(self, answer: Answer, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        super().__init__(session, terminal, keyboard)
        self._before = answer.before
        self._status = StatusLine(terminal)
        self._tokens = 0
        self._rate = Rate()
        self._notices: list[str] = []
        self._finished: Finished | None = None
        self._producer: Producer[Record] = Producer(answer.start, self._pace)

    @contextmanager
    def _screen(self) -> Iterator[None]:
        try:
            with self._status, super()._screen():
                self._terminal.write(self._before, DIM)
                if not self._session.is_ready and not self._status.is_there:
                    self._terminal.line(f"{self._session.model.name} is loading…", DIM)
                yield
                self._terminal.fresh_line()
        finally:
            self._terminal.fresh_line()

    def _advance(self) -> None:
        self._status.show(self._words())
        self._draw(self._producer.take())
        self._obey_keys()
        self._producer.hold(self._keyboard.is_undecided)  # an Esc, most likely: the text stands still at once

    def _draw(self, records: list[Record | BaseException | None]) -> None:
        """Draw records, tokens that came together in one go."""
        text = ""
        for record in records:
            match record:
                case Token():
                    self._tokens += 1
                    self._rate.count()
                    text += record.text
                case Changed():
                    self._terminal.write(text)
                    text = ""
                    self._terminal.write(f"⟨{record.text}⟩", DIM)
                case Part():
                    self._terminal.write(text)
                    text = ""
                    self._terminal.fresh_line()
                    self._terminal.line(record.name, DIM)
                    self._tokens = 0
                case Notice() if self._tokens == 0:
                    self._terminal.line(record.text, DIM)
                case Notice():  # the text is not broken for it
                    self._notices.append(record.text)
                case Finished():
                    self._finished = record
                case BaseException():
                    self._terminal.write(text)
                    raise record
        self._status.adapt()
        self._terminal.write(text)
        self._is_over = bool(records) and records[-1] is None

    def _close(self) -> None:
        for notice in self._notices:
            self._terminal.line(notice, DIM)

    def _summary(self, *, show_seed: bool) -> str:
        return summary(self._finished, self._session, show_seed=show_seed) if self._finished else ""

    def _pause(self) -> None:
        super()._pause()
        self._say("" if self._status.is_there or not self._producer.is_pausing else f"paused: {self.paused}")

    def _may_run(self, command: Command) -> bool:
        return command.while_busy

    def _tell(self, result: object) -> None:
        match result:
            case Change():  # the toolbar tells of some, and the mark in the text of others
                shown = SETTINGS.find(result.name).name
                is_told = shown in SAMPLING or (shown == "max_tokens" and self._status.is_there)
                self._say("" if is_told else result.text)
            case Message():
                self._say(SEPARATOR.join(result.lines))

    def _say(self, text: str) -> None:
        """Say something in the status line; where there is none, in the text."""
        super()._say(text)
        if text and not self._status.is_there:
            self._terminal.write(f"⟨{text}⟩", DIM)

    def _words(self) -> str:
        is_loading = self._tokens == 0 and not self._session.is_ready
        if is_loading and not (self._typed.text or self._producer.is_stopping):
            return SEPARATOR.join([f"{self._session.model.name} is loading…", "esc stop"])
        return super()._words()

    def _sampling(self) -> list[str]:
        return describe_sampling(self._session.settings.current)

    def _progress(self) -> list[str]:
        if self._said:
            return [self._said]
        words = [*self._sampling(), f"{self._tokens}/{self._session.settings.current.max_tokens}"]
        if rate := self._rate.now():
            words.append(f"{rate:,.0f} tok/s")
        if self._session.turns:
            turn, context = self._session.turns[-1], int(self._session.model.info.architecture["context"])
            words.append(f"context {min(1.0, (len(turn.prompt_ids) + len(turn.tokens)) / context):.0%}")
        return words


class Rate:
    """How many come a second: of the last second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: deque[float] = deque()

    def count(self) -> None:
        """One has come."""
        self._moments.append(self._clock())

    def now(self) -> float:
        """How many a second; 0 where nothing has come for a second."""
        now = self._clock()
        while self._moments and self._moments[0] < now - RATE_SPAN:
            self._moments.popleft()
        if len(self._moments) < 2:
            return float(len(self._moments))
        return len(self._moments) / max(FRAME, now - self._moments[0])
