"""The view of an answer: draws tokens as they stream, while keys stop it, pause it or change its settings.

`Producer` generates in a thread, `LiveView` handles keys and the status of any stream, and `AnswerView` draws one
answer. `walk` browses a finished answer token by token.
"""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any, ClassVar, Generic, TypeVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Command
from tinychat.commands.results import Change, Help, Message, StreamAnswer, TokenBrowser, summary
from tinychat.commands.settings import nudge, toggle_greedy
from tinychat.config.settings import SAMPLING, SETTINGS, describe_sampling
from tinychat.errors import TinychatError
from tinychat.events import (
    AnswerStart,
    Candidates,
    ChoiceProbabilities,
    Finished,
    Notice,
    Record,
    SettingsChanged,
    Token,
)
from tinychat.repl.keys import LEAVING, Keyboard, TypeAhead, is_printable
from tinychat.repl.prompt import mark
from tinychat.repl.render.palette import ACCENT, DIM
from tinychat.repl.render.terminal import SEPARATOR, Region, StatusLine, Styled, Terminal, fit, spin
from tinychat.session.session import Session

POLL_INTERVAL = 0.02
"""Seconds to wait for a token before the keyboard is polled again."""
QUEUE_SIZE = 64
"""Maximum number of generated records that wait to be drawn."""
WORD_PATIENCE = 0.2
"""Seconds for which the beginning of a word waits for its end, so that words are not broken at the end of a row."""
THROUGHPUT_WINDOW = 1.0
"""Seconds over which the tokens per second are averaged."""
RESIZE_POLL_INTERVAL = 0.2
"""Seconds to wait for a key before the size of the window is polled again."""
HINT = "? keys"
WALKING_KEYS = "←/→ walk · q or any other key ends · ↑/↓ choose, Enter goes on from there"

SETTING_KEYS: Mapping[str, Callable[[Session], Change]] = {
    Keys.Up: lambda session: nudge(session, "temperature", 0.1),
    Keys.Down: lambda session: nudge(session, "temperature", -0.1),
    Keys.Right: lambda session: nudge(session, "max_tokens", 16),
    Keys.Left: lambda session: nudge(session, "max_tokens", -16),
    "[": lambda session: nudge(session, "top_p", -0.05),
    "]": lambda session: nudge(session, "top_p", 0.05),
    "g": toggle_greedy,
}
"""Keys that change a setting while an answer streams; letters do so only while the typed line is empty."""

RecordT = TypeVar("RecordT")


class Producer(Generic[RecordT]):
    """Generates records in a thread; `None` follows the last one, or the exception that ended the generation.

    `start` returns the records, and receives a function that returns whether to stop. `delay_after` returns the minimum
    number of seconds between a record and the next one; None for no delay, not even in a pause. The queue is short, so
    that the model never runs far ahead of the screen.
    """

    def __init__(
        self,
        start: Callable[[Callable[[], bool]], Iterator[RecordT]],
        delay_after: Callable[[RecordT], float | None],
        queue_size: int = QUEUE_SIZE,
    ) -> None:
        self._start, self._delay_after = start, delay_after
        self._records: queue.Queue[RecordT | BaseException | None] = queue.Queue(queue_size)
        self._changed = threading.Condition()
        self.is_stopping = False
        """Whether `stop` has been called."""
        self.is_paused = False
        """Whether tokens come only by `step`."""
        self._is_held = False
        self._num_steps = 0  # records still allowed despite the pause
        threading.Thread(target=self._run, name="answer", daemon=True).start()

    def stop(self) -> None:
        """Request the end; this also ends a pause."""
        with self._changed:
            self.is_stopping, self.is_paused = True, False
            self._changed.notify()

    def toggle_pause(self) -> None:
        with self._changed:
            self.is_paused, self._num_steps = not self.is_paused, 0
            self._changed.notify()

    def hold(self, held: bool) -> None:
        """Suspend the generation while `held`, or until it is stopped."""
        with self._changed:
            self._is_held = held
            self._changed.notify()

    def step(self, count: int = 1) -> None:
        """Generate `count` more tokens during a pause."""
        with self._changed:
            self._num_steps += count
            self._changed.notify()

    def poll(self, timeout: float = POLL_INTERVAL) -> list[RecordT | BaseException | None]:
        """Return all waiting records; wait up to `timeout` seconds for the first."""
        records: list[RecordT | BaseException | None] = []
        with suppress(queue.Empty):
            records.append(self._records.get(timeout=timeout))
            while len(records) < self._records.maxsize:
                records.append(self._records.get_nowait())
        return records

    def _run(self) -> None:
        try:
            for record in self._start(lambda: self.is_stopping):
                self._records.put(record)
                if (seconds := self._delay_after(record)) is not None:
                    self._wait(seconds)
        except BaseException as error:  # raised again by the thread that draws
            self._records.put(error)
        self._records.put(None)

    def _wait(self, seconds: float) -> None:
        """Wait between two tokens, and until the end of a pause."""
        with self._changed:
            if seconds:
                self._changed.wait_for(lambda: self.is_stopping or self.is_paused, seconds)
            self._changed.wait_for(lambda: self.is_stopping or not self._is_held)
            self._changed.wait_for(lambda: not self.is_paused or self._num_steps)
            self._num_steps = max(0, self._num_steps - 1)


class LiveView(ABC):
    """A view of a stream that keys stop and pause; other keys that are typed go to the next prompt."""

    key_help: ClassVar[str]
    """Line that explains the keys."""
    pause_help: ClassVar[str]
    """Line that explains the keys of a pause."""
    setting_keys: ClassVar[Mapping[str, Callable[[Session], Change]]] = {}
    """Keys that change a setting; letters do so only while the typed line is empty."""
    _producer: Producer[Any]

    def __init__(self, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._typed = TypeAhead()
        self._message, self._is_finished = "", False
        self._is_text = False  # whether text follows at once on the key being handled
        self._num_unfinished = 1
        """Number of answers that are being generated; at least 1."""

    def play(self) -> None:
        """Draw the stream to its end, then write a summary line.

        Raises:
            TinychatError: If the generation failed; the text so far stays on screen.
        """
        seed_is_set = self._session.settings.current.seed is not None
        try:
            with self._keyboard.live(), self._screen():
                while not self._is_finished:
                    try:
                        self._advance()
                    except KeyboardInterrupt:  # a signal from another process; Ctrl-C itself arrives as a key
                        self._producer.stop()
        finally:
            self._producer.stop()
            self._terminal.set_bracketed_paste(False)
            self._keyboard.push_typeahead(self._typed.lines + self._typed.line)
            self._close()
        if line := self._summary(show_seed=not seed_is_set):
            self._terminal.line(line, DIM)

    @contextmanager
    def _screen(self) -> Iterator[None]:
        """Prepare the screen, and restore it at the end."""
        self._terminal.set_bracketed_paste(True)
        yield

    @abstractmethod
    def _advance(self) -> None:
        """Update the status, draw new records and handle keys, once; set `_is_finished` after the last record."""

    @abstractmethod
    def _close(self) -> None:
        """Write the lines that follow the text, also after an error."""

    @abstractmethod
    def _summary(self, *, show_seed: bool) -> str:
        """Return how the stream ended; empty if unknown."""

    def _press_all(self, keys: Sequence[KeyPress]) -> None:
        """Handle keys read at once; where text follows on the same line, as in a paste, all characters are text."""
        for index, key in enumerate(keys):
            line = takewhile(lambda one: one.key is not Keys.ControlM, keys[index:])
            self._is_text = any(is_printable(one) and one.key not in (" ", "?", *self.setting_keys) for one in line)
            self._press(key)

    def _press(self, key: KeyPress) -> None:
        typing = self._is_text or bool(self._typed.line)
        if key.key in (Keys.ControlC, Keys.Escape):
            self._producer.stop()
        elif key.key is Keys.ControlZ:
            self._suspend()
        elif key.key == " " and not typing:
            self._toggle_pause()
        elif key.key is Keys.Right and self._producer.is_paused:
            self._producer.step(self._num_unfinished)
        elif key.key == "?" and not typing:
            self._show_message("" if self._message == self.key_help else self.key_help)
        elif key.key in self.setting_keys and not (typing and len(key.key) == 1):
            self._show_result(self.setting_keys[key.key](self._session))
        elif key.key is Keys.ControlM and self._runs(self._typed.text):
            self._typed.line.clear()
        else:
            self._typed.press(key)

    def _suspend(self) -> None:
        """Leave the screen to the shell until it continues the program."""
        self._terminal.set_bracketed_paste(False)
        with self._hidden():
            self._keyboard.suspend()
        self._terminal.set_bracketed_paste(True)

    @contextmanager
    @abstractmethod
    def _hidden(self) -> Iterator[None]:
        """Remove from the screen what is redrawn in place, and draw it again at the end."""

    def _toggle_pause(self) -> None:
        self._producer.toggle_pause()

    def _delay_after(self, record: Record) -> float | None:
        """Return the seconds between a token and the next, so that each answer keeps its pace; None after others."""
        slow = self._session.settings.current.slow
        return None if not isinstance(record, Token) else 1 / slow / self._num_unfinished if slow else 0.0

    @abstractmethod
    def _can_run(self, command: Command) -> bool:
        """Return whether a command may run now."""

    def _runs(self, line: str) -> bool:
        """Run a line that is a command allowed now; return False if it waits for the prompt, as others do.

        So does a command whose result needs more room than a message, such as `/help`.
        """
        if (command := COMMANDS.command_of(line)) is None or not self._can_run(command):
            return False
        try:
            result = COMMANDS.dispatch(self._session, line)
        except TinychatError as error:
            self._show_message(error.problem)
            return True
        if isinstance(result, Change | Message):
            self._show_result(result)
            return True
        if isinstance(result, Help):
            self._show_message(self.key_help)
        return False

    @abstractmethod
    def _show_result(self, result: Change | Message) -> None:
        """Show the result of a key or a command."""

    def _show_message(self, text: str) -> None:
        self._message = text

    def _status_text(self) -> str:
        """Return the status: the typed line, or the progress and the keys."""
        if self._typed.text:
            return mark(self._session) + self._typed.text
        if self._producer.is_stopping:
            return "stopping…"
        if self._message == self.key_help:
            return self.key_help
        if self._producer.is_paused:
            sampling = describe_sampling(self._session.settings.current) if self.setting_keys else []
            return SEPARATOR.join(["paused", *sampling, self.pause_help])
        return SEPARATOR.join([*self._progress(), HINT])

    @abstractmethod
    def _progress(self) -> list[str]:
        """Return the parts of the status that describe the progress."""


class AnswerView(LiveView):
    """The view of one answer, written forward, with a status line below it."""

    key_help = "esc stop · space pause, → one token · ↑↓ temp · ←→ max · [ ] top-p · g greedy"
    pause_help = "space goes on · → one token"
    setting_keys = SETTING_KEYS

    def __init__(self, answer: StreamAnswer, session: Session, terminal: Terminal, keyboard: Keyboard) -> None:
        super().__init__(session, terminal, keyboard)
        self._before = answer.before
        self._status, self._throughput = StatusLine(terminal), Throughput()
        self._num_tokens = 0
        self._is_key_pressed = False
        self._later_notices: list[str] = []
        self._finished: Finished | None = None
        self._producer: Producer[Record] = Producer(answer.start, self._delay_after)

    @contextmanager
    def _screen(self) -> Iterator[None]:
        try:
            with self._status, super()._screen():
                self._terminal.flow(self._before, DIM)
                if not self._session.is_ready and not self._status.is_visible:
                    self._terminal.line(f"{self._session.model.name} is loading", DIM)
                yield
                self._terminal.fresh_line()
        finally:
            self._terminal.fresh_line()

    @contextmanager
    def _hidden(self) -> Iterator[None]:
        self._terminal.fresh_line()  # the shell writes on a line of its own
        self._status.erase()
        yield

    def _advance(self) -> None:
        records = self._producer.poll()
        with self._terminal.batch():
            self._draw(records)
            if self._terminal.word_seconds > (0 if self._producer.is_paused else WORD_PATIENCE):
                self._terminal.show_word(may_go_on=True)
            self._status.show(self._status_text(), at_once=self._is_key_pressed)
        self._is_key_pressed = False
        keys = self._keyboard.read()
        self._press_all(keys)
        self._is_key_pressed = bool(keys)
        self._producer.hold(self._keyboard.is_undecided)  # an Esc is likely: suspend at once

    def _draw(self, records: list[Record | BaseException | None]) -> None:
        """Draw records; consecutive tokens are written together."""
        text = ""
        for record in records:
            if isinstance(record, SettingsChanged | AnswerStart | BaseException):
                self._terminal.flow(text)
                text = ""
            match record:
                case Token():
                    self._num_tokens += 1
                    self._throughput.record()
                    text += record.text
                case SettingsChanged():
                    self._terminal.flow(f"⟨{record.text}⟩", ACCENT)
                case AnswerStart():
                    self._terminal.line(record.name, DIM)
                    self._num_tokens = 0
                case Notice() if self._num_tokens == 0:
                    self._terminal.line(record.text, DIM)
                case Notice():  # shown below the text
                    self._later_notices.append(record.text)
                case ChoiceProbabilities() | Candidates():
                    self._later_notices += record.lines
                case Finished():
                    self._finished = record
                case BaseException():
                    raise record
        self._terminal.flow(text)
        self._is_finished = bool(records) and records[-1] is None

    def _close(self) -> None:
        for notice in self._later_notices:
            self._terminal.line(notice, DIM)

    def _summary(self, *, show_seed: bool) -> str:
        return summary(self._finished, self._session, show_seed=show_seed) if self._finished else ""

    def _toggle_pause(self) -> None:
        super()._toggle_pause()
        needs_message = self._producer.is_paused and not self._status.is_visible
        self._show_message(f"paused: {self.pause_help}" if needs_message else "")

    def _can_run(self, command: Command) -> bool:
        return command.while_busy

    def _show_result(self, result: Change | Message) -> None:
        if isinstance(result, Change):  # the status line and the marks in the text show some changes already
            name = SETTINGS.find(result.name).name
            is_shown = name in SAMPLING or (name == "max_tokens" and self._status.is_visible)
            self._show_message("" if is_shown else result.text)
        else:
            self._show_message(SEPARATOR.join(result.lines))

    def _show_message(self, text: str) -> None:
        """Show a message in the status line, or in the text if there is no status line."""
        super()._show_message(text)
        if text and not self._status.is_visible:
            self._terminal.flow(f"⟨{text}⟩", ACCENT)

    def _status_text(self) -> str:
        is_loading = self._num_tokens == 0 and not self._session.is_ready
        if is_loading and not (self._typed.text or self._producer.is_stopping):
            return SEPARATOR.join([f"{spin()} {self._session.model.name} is loading", "esc stop"])
        return super()._status_text()

    def _progress(self) -> list[str]:
        if self._message:
            return [self._message]
        current = self._session.settings.current
        parts = [*describe_sampling(current), f"{self._num_tokens}/{current.max_tokens}"]
        if tokens_per_second := self._throughput.tokens_per_second():
            parts.append(f"{tokens_per_second:,.0f} tok/s")
        if self._session.turns:
            turn, context_length = self._session.turns[-1], self._session.model.config.context_length
            read = len(turn.prompt_ids) - turn.num_replaced + len(turn.tokens)
            parts.append(f"context {min(1.0, read / context_length):.0%}")
        return parts


class Throughput:
    """Tokens per second over the last second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: deque[float] = deque()

    def record(self) -> None:
        """Record the arrival of a token."""
        self._times.append(self._clock())

    def tokens_per_second(self) -> float:
        """Return the tokens per second; 0 if none has come for a second."""
        now = self._clock()
        while self._times and self._times[0] < now - THROUGHPUT_WINDOW:
            self._times.popleft()
        if len(self._times) < 2:
            return float(len(self._times))
        return len(self._times) / max(POLL_INTERVAL, now - self._times[0])


# --- walking through a finished answer ---


def walk(tokens: TokenBrowser, terminal: Terminal, keyboard: Keyboard) -> StreamAnswer | None:
    """Show the probabilities at one token after the other; return the answer that goes on from a chosen one, or None.

    A dumb terminal shows only those at the initial token. The key that ends the walk goes to the next prompt, unless it
    is in `LEAVING`, and so do all keys after it.
    """
    if terminal.dumb:
        from tinychat.repl.render.results import draw_plain

        draw_plain(terminal, tokens.bars_at(tokens.index))
        return None
    return _WalkView(tokens, terminal, keyboard).run()


class _WalkView:
    """The view that `walk` draws in place."""

    def __init__(self, tokens: TokenBrowser, terminal: Terminal, keyboard: Keyboard) -> None:
        self._tokens, self._terminal, self._keyboard = tokens, terminal, keyboard
        self._region = Region(terminal)
        self._index, self._bars = tokens.index, tokens.bars_at(tokens.index)
        self._selected: int | None = None

    def run(self) -> StreamAnswer | None:
        drawn, keys = None, self._keyboard.pop_typeahead()
        try:
            with self._keyboard.live():
                while True:
                    if (state := (self._terminal.size(), self._index, self._selected)) != drawn:
                        self._region.draw(self._lines(WALKING_KEYS))
                        drawn = state
                    for position, key in enumerate(keys):
                        if not self._press(key):
                            return self._finish(key, keys[position:])
                    keys = self._keyboard.read(RESIZE_POLL_INTERVAL)
        finally:  # leave the drawing on screen
            self._region.leave(self._lines())

    def _press(self, key: KeyPress) -> bool:
        """Handle a key, and return whether it is one that moves."""
        last, bars = self._tokens.count - 1, self._bars.bars
        indices: dict[str, int] = {Keys.Left: max(self._index - 1, 0), Keys.Right: min(self._index + 1, last)}
        indices |= {Keys.Home: 0, Keys.End: last}
        steps: dict[str, int] = {Keys.Up: -1, Keys.Down: 1}
        if key.key in steps:
            marked = next((index for index, bar in enumerate(bars) if bar.marked), 0)
            index = marked if self._selected is None else self._selected
            self._selected = (index + steps[key.key]) % len(bars)
        elif (index := indices.get(key.key, self._index)) != self._index:
            self._index, self._bars, self._selected = index, self._tokens.bars_at(index), None
        return key.key in steps or key.key in indices

    def _finish(self, key: KeyPress, unread: list[KeyPress]) -> StreamAnswer | None:
        """Return the answer if `key` chooses one; other keys than that which ends the walk go to the next prompt."""
        if key.key is Keys.ControlM and self._selected is not None:
            self._keyboard.push_typeahead(unread[1:])
            return self._tokens.branch_from(self._index, self._selected)
        self._keyboard.push_typeahead(unread[1:] if key.key in LEAVING else unread)
        return None

    def _lines(self, hint: str = "") -> list[Styled]:
        from tinychat.repl.render.results import bar_lines

        width, height = self._terminal.size()
        if not hint:
            return bar_lines(self._terminal, self._bars, self._selected)
        lines = bar_lines(self._terminal, self._bars, self._selected, max(0, height - 2))
        return [*lines, self._terminal.styled(fit(hint, width - 1), DIM)]
