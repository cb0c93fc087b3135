"""Draws an answer while it is made, forward, and lets keys change how it goes on.

The records are made in a thread and wait in a short queue, so that the model never runs far ahead of the screen.
"""

import queue
import threading
from collections.abc import Callable, Mapping

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands.results import Answer, Change, Message
from tinychat.commands.settings import nudge, switch
from tinychat.commands.table import is_command, split_line
from tinychat.errors import TinychatError, UsageError
from tinychat.events import Finished, Notice, Part, Record, Token
from tinychat.repl.keyboard import Keyboard, TypeAhead
from tinychat.repl.status import StatusLine
from tinychat.repl.terminal import DIM, Terminal
from tinychat.repl.toolbar import SEPARATOR, sampling
from tinychat.session import Session

FRAME = 0.02
"""seconds between two looks at the keyboard, when no token comes"""
AHEAD = 64
"""records that may wait to be drawn"""
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
HINT = "esc stop · space pause · ↑↓ temp · ←→ max · g greedy"

REASONS = {"length": "max tokens", "stop": "stop text", "interrupted": "interrupted"}
ENDS = {"chat": "end of turn"}

LIVE_KEYS: Mapping[str, Callable[[Session], Change]] = {
    Keys.Up: lambda session: nudge(session, "temperature", 0.1),
    Keys.Down: lambda session: nudge(session, "temperature", -0.1),
    Keys.Right: lambda session: nudge(session, "max_tokens", 16),
    Keys.Left: lambda session: nudge(session, "max_tokens", -16),
    "g": switch,
}
"""Keys that change a setting while an answer is printed; letters do so until something else has been typed."""


class _Maker:
    """Makes records in a thread; `None` comes after the last, or after the error that was in the way."""

    def __init__(self, answer: Answer) -> None:
        self.stopping = threading.Event()
        self.going = threading.Event()
        self.going.set()
        self._answer = answer
        self._records: queue.Queue[Record | BaseException | None] = queue.Queue(AHEAD)
        threading.Thread(target=self._make, name="answer", daemon=True).start()

    def stop(self) -> None:
        """Asks for the end, also of a pause."""
        self.stopping.set()
        self.going.set()

    def take(self) -> list[Record | BaseException | None]:
        """All that is there; waits a moment for the first."""
        taken: list[Record | BaseException | None] = []
        try:
            taken.append(self._records.get(timeout=FRAME))
            while len(taken) < AHEAD:
                taken.append(self._records.get_nowait())
        except queue.Empty:
            pass
        return taken

    def _make(self) -> None:
        try:
            for record in self._answer.start(self.stopping.is_set):
                self._records.put(record)
                self.going.wait()
        except BaseException as error:  # raised anew where the screen is
            self._records.put(error)
        self._records.put(None)


class Player:
    """Shows one answer.

    Args:
        session: whose settings the keys change.
        terminal: to draw on.
        keyboard: to read from.
    """

    def __init__(self, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._status = StatusLine(terminal)
        self._typed = TypeAhead()
        self._tokens = 0
        self._said = ""
        self._notices: list[str] = []
        self._finished: Finished | None = None

    def play(self, answer: Answer) -> None:
        """Draws an answer to its end, and says how it ended; what was typed meanwhile goes to the next prompt.

        Raises:
            TinychatError: it could not be made.
        """
        seed_is_set = self._session.settings.current.seed is not None
        try:
            with self._keyboard.live(), self._status:
                if not self._terminal.dumb:
                    self._terminal.control(PASTE_ON)
                self._play(answer)
                self._terminal.fresh_line()
        finally:
            self._terminal.fresh_line()
            if not self._terminal.dumb:
                self._terminal.control(PASTE_OFF)
            self._keyboard.keep(self._typed.keys)
            for notice in self._notices:
                self._terminal.line(notice, DIM)
        if self._finished is not None:
            self._terminal.line(summary(self._finished, self._session, show_seed=not seed_is_set), DIM)

    def _play(self, answer: Answer) -> None:
        self._terminal.write(answer.before, DIM)
        maker = _Maker(answer)
        if not self._session.is_ready and not self._status.is_there:
            self._terminal.line(self._loading(), DIM)
        over = False
        while not over:
            try:
                self._status.show(self._words(maker))
                over = self._draw(maker.take())
                for key in self._keyboard.read():
                    self._press(key, maker)
            except KeyboardInterrupt:  # a signal from outside; the key itself is read above
                maker.stop()

    def _draw(self, records: list[Record | BaseException | None]) -> bool:
        """Draws records, tokens that came together in one go; whether they were the last."""
        text = ""
        for record in records:
            match record:
                case Token():
                    self._tokens += 1
                    text += record.text
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

    def _press(self, key: KeyPress, maker: _Maker) -> None:
        typing = bool(self._typed.line)
        if key.key in (Keys.ControlC, Keys.Escape):
            maker.stop()
        elif key.key == " " and not typing:
            maker.going.clear() if maker.going.is_set() else maker.going.set()
            self._say("" if maker.going.is_set() else "paused: space goes on")
        elif key.key in LIVE_KEYS and not (typing and len(key.key) == 1):
            self._say(LIVE_KEYS[key.key](self._session).text)
        elif key.key is Keys.ControlM and self._runs_at_once(self._typed.text):
            self._run(self._typed.text)
            self._typed.line.clear()
        else:
            self._typed.press(key)

    def _runs_at_once(self, line: str) -> bool:
        try:
            return is_command(line) and split_line(line)[0].while_busy
        except UsageError:
            return False

    def _run(self, line: str) -> None:
        """Runs a command that may run while an answer is printed."""
        command, text = split_line(line)
        try:
            result = command.function(self._session, text)
        except TinychatError as error:
            self._say(error.problem)
            return
        if isinstance(result, Change):
            self._say(result.text)
        elif isinstance(result, Message):
            self._say(SEPARATOR.join(result.lines))

    def _say(self, text: str) -> None:
        """Says something in the status line; where there is none, in the text."""
        self._said = text
        if text and not self._status.is_there:
            self._terminal.write(f"⟨{text}⟩", DIM)

    def _loading(self) -> str:
        name = self._session.info.name if self._session.info else "the model"
        return f"{name} is loading…"

    def _words(self, maker: _Maker) -> str:
        """What stands in the status line."""
        if self._typed.text:
            return f"› {self._typed.text}"
        if maker.stopping.is_set():
            return "stopping…"
        if self._tokens == 0 and not self._session.is_ready:
            return SEPARATOR.join([self._loading(), "esc stop"])
        made = f"{self._tokens}/{self._session.settings.current.max_tokens}"
        return SEPARATOR.join([*([self._said] if self._said else sampling(self._session)), made, HINT])


def summary(finished: Finished, session: Session, *, show_seed: bool) -> str:
    """`14 tokens · 2,310 tok/s · stop: end of turn`."""
    words = [f"{finished.tokens:,} {'token' if finished.tokens == 1 else 'tokens'}"]
    if finished.tokens and finished.tokens_per_second:
        words.append(f"{finished.tokens_per_second:,.0f} tok/s")
    mode = session.info.mode if session.info else ""
    words.append("stop: " + REASONS.get(finished.reason, ENDS.get(mode, "end of text")))
    if session.speaker:
        words.append(session.speaker)
    elif show_seed:  # weights on their way are gone tomorrow: their seed makes nothing again
        words.append(f"seed {finished.seed}")
    return SEPARATOR.join(words)
