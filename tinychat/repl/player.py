"""Draws an answer while it is made, forward, and lets keys change how it goes on."""

import time
from collections import deque
from collections.abc import Callable, Mapping

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.results import Answer, Change, Message
from tinychat.commands.settings import nudge, switch
from tinychat.errors import TinychatError
from tinychat.events import Changed, Finished, Notice, Part, Record, Token
from tinychat.repl.keyboard import Keyboard, TypeAhead
from tinychat.repl.marks import mark
from tinychat.repl.producer import FRAME, Producer
from tinychat.repl.status import StatusLine
from tinychat.repl.terminal import DIM, SEPARATOR, Terminal
from tinychat.session import Session
from tinychat.settings import SAMPLING, describe_sampling, find_setting
from tinychat.textutil import count

RATE_SPAN = 1.0
"""seconds over which the rate of tokens is told"""
HINT = "? keys"
KEYS = "esc stop · space pause, then → one token · ↑↓ temp · ←→ max · [ ] top-p · g greedy"
PAUSED = "space goes on · → one token"

REASONS = {"length": "max tokens", "stop": "stop text", "interrupted": "interrupted"}
ENDS = {"chat": "end of turn"}

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


class Player:
    """Shows one answer."""

    def __init__(self, answer: Answer, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._before = answer.before
        self._producer: Producer[Record] = Producer(answer.start, self._pace)
        self._status = StatusLine(terminal)
        self._typed = TypeAhead()
        self._tokens = 0
        self._rate = Rate()
        self._said = ""
        self._notices: list[str] = []
        self._finished: Finished | None = None

    def play(self) -> None:
        """Draws the answer to its end, and says how it ended; what was typed meanwhile goes to the next prompt.

        Raises:
            TinychatError: it could not be made.
        """
        seed_is_set = self._session.settings.current.seed is not None
        try:
            with self._keyboard.live(), self._status:
                self._terminal.take_pastes_whole(True)
                self._terminal.write(self._before, DIM)
                if not self._session.is_ready and not self._status.is_there:
                    self._terminal.line(f"{self._session.model.name} is loading…", DIM)
                self._draw_all()
                self._terminal.fresh_line()
        finally:
            self._terminal.fresh_line()
            self._terminal.take_pastes_whole(False)
            self._keyboard.keep(self._typed.keys)
            for notice in self._notices:
                self._terminal.line(notice, DIM)
        if self._finished is not None:
            self._terminal.line(summary(self._finished, self._session, show_seed=not seed_is_set), DIM)

    def _draw_all(self) -> None:
        over = False
        while not over:
            try:
                self._status.show(self._words())
                over = self._draw(self._producer.take())
                for key in self._keyboard.read():
                    self._press(key)
                self._producer.hold(self._keyboard.is_undecided)  # an Esc, most likely: the text stands still at once
            except KeyboardInterrupt:  # a signal from outside; the key itself is read above
                self._producer.stop()

    def _draw(self, records: list[Record | BaseException | None]) -> bool:
        """Draws records, tokens that came together in one go; whether they were the last."""
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
        return bool(records) and records[-1] is None

    def _press(self, key: KeyPress) -> None:
        typing = bool(self._typed.line)
        if key.key in (Keys.ControlC, Keys.Escape):
            self._producer.stop()
        elif key.key == " " and not typing:
            self._producer.pause()
            self._say("" if self._status.is_there or not self._producer.is_pausing else f"paused: {PAUSED}")
        elif key.key is Keys.Right and self._producer.is_pausing:
            self._producer.make_more()
        elif key.key == "?" and not typing:
            self._say("" if self._said == KEYS else KEYS)
        elif key.key in LIVE_KEYS and not (typing and len(key.key) == 1):
            self._tell(LIVE_KEYS[key.key](self._session))
        elif key.key is Keys.ControlM and (command := COMMANDS.command_of(self._typed.text)) and command.while_busy:
            self._run(self._typed.text)
            self._typed.line.clear()
        else:
            self._typed.press(key)

    def _run(self, line: str) -> None:
        """Runs a command that may run while an answer is printed."""
        try:
            result = COMMANDS.dispatch(self._session, line)
        except TinychatError as error:
            self._say(error.problem)
            return
        if isinstance(result, Change):
            self._tell(result)
        elif isinstance(result, Message):
            self._say(SEPARATOR.join(result.lines))

    def _tell(self, change: Change) -> None:
        """Tells of a change where the toolbar, and the mark in the text, do not."""
        shown = find_setting(change.name).name
        self._say("" if shown in SAMPLING or (shown == "max_tokens" and self._status.is_there) else change.text)

    def _say(self, text: str) -> None:
        """Says something in the status line; where there is none, in the text."""
        self._said = text
        if text and not self._status.is_there:
            self._terminal.write(f"⟨{text}⟩", DIM)

    def _words(self) -> str:
        """What stands in the status line."""
        if self._typed.text:
            return mark(self._session) + self._typed.text
        if self._producer.is_stopping:
            return "stopping…"
        if self._tokens == 0 and not self._session.is_ready:
            return SEPARATOR.join([f"{self._session.model.name} is loading…", "esc stop"])
        if self._producer.is_pausing and self._said != KEYS:
            return SEPARATOR.join(["paused", *describe_sampling(self._session.settings.current), PAUSED])
        if self._said:
            return SEPARATOR.join([self._said, HINT] if self._said != KEYS else [KEYS])
        current = self._session.settings.current
        words = [*describe_sampling(current), f"{self._tokens}/{current.max_tokens}"]
        if rate := self._rate.now():
            words.append(f"{rate:,.0f} tok/s")
        if self._session.turns:
            turn, context = self._session.turns[-1], int(self._session.model.info.architecture["context"])
            words.append(f"context {min(1.0, (len(turn.prompt_ids) + len(turn.tokens)) / context):.0%}")
        return SEPARATOR.join([*words, HINT])

    def _pace(self, record: Record) -> float | None:
        """Seconds between a token and the next, at least; None where it is no token."""
        slow = self._session.settings.current.slow
        return None if not isinstance(record, Token) else 1 / slow if slow else 0.0


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


def summary(finished: Finished, session: Session, *, show_seed: bool) -> str:
    """`14 tokens · 2,310 tok/s · stop: end of turn`."""
    words = [count(finished.tokens, "token")]
    if finished.tokens and finished.tokens_per_second:
        words.append(f"{finished.tokens_per_second:,.0f} tok/s")
    mode = session.info.mode if session.info else ""
    words.append("stop: " + REASONS.get(finished.reason, ENDS.get(mode, "end of text")))
    if session.runs.speaker:
        words.append(session.runs.speaker)
    elif show_seed:  # weights on their way are gone tomorrow: their seed makes nothing again
        words.append(f"seed {finished.seed}")
    return SEPARATOR.join(words)
