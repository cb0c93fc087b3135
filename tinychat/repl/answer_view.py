"""Makes answers in a thread, so that keys act meanwhile: it can be stopped and paused, and keeps to a pace.

What is made waits in a short queue, so that the model never runs far ahead of the screen.

Draws an answer while it is made, forward, and lets keys change how it goes on.

Walks through an answer: at each token the odds, in a region that is drawn anew; Enter goes on from another token.
"""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Command
from tinychat.commands.results import Answer, Change, Message, Walk, summary
from tinychat.commands.settings import nudge, switch
from tinychat.config.settings import SAMPLING, SETTINGS, describe_sampling
from tinychat.errors import TinychatError
from tinychat.events import Changed, Finished, Notice, Part, Record, Token
from tinychat.repl.keys import Keyboard, TypeAhead
from tinychat.repl.prompt import mark
from tinychat.repl.render.results import bars_drawing, draw_plain
from tinychat.repl.render.terminal import DIM, RESET, SEPARATOR, Region, StatusLine, Terminal, fit
from tinychat.session.session import Session

FRAME = 0.02
"""seconds between two looks at the keyboard, when no token comes"""
AHEAD = 64
"""records that may wait to be drawn"""

Made = TypeVar("Made")


class Producer(Generic[Made]):
    """Makes records in a thread; `None` comes after the last, or after the error that was in the way.

    Args:
        start: begins to make them, and is handed a function that says whether to stop.
        pace: asked after each record for the seconds until the next one may come; None: at once, and in a pause too.
        ahead: how many may wait to be drawn.
    """

    def __init__(
        self,
        start: Callable[[Callable[[], bool]], Iterator[Made]],
        pace: Callable[[Made], float | None],
        ahead: int = AHEAD,
    ) -> None:
        self._start, self._pace = start, pace
        self._records: queue.Queue[Made | BaseException | None] = queue.Queue(ahead)
        self._changed = threading.Condition()
        self._stopping = self._pausing = self._holding = False
        self._to_come = 0  # in spite of the pause
        threading.Thread(target=self._make, name="answer", daemon=True).start()

    @property
    def is_stopping(self) -> bool:
        """Whether it has been asked to end."""
        return self._stopping

    @property
    def is_pausing(self) -> bool:
        """Whether no more tokens come by themselves."""
        return self._pausing

    def stop(self) -> None:
        """Asks for the end, also of a pause."""
        with self._changed:
            self._stopping, self._pausing = True, False
            self._changed.notify()

    def pause(self) -> None:
        """Makes no more tokens, or goes on."""
        with self._changed:
            self._pausing, self._to_come = not self._pausing, 0
            self._changed.notify()

    def hold(self, holding: bool) -> None:
        """Makes nothing meanwhile, unless it is to end."""
        with self._changed:
            self._holding = holding
            self._changed.notify()

    def make_more(self, count: int = 1) -> None:
        """Makes so many tokens more in a pause."""
        with self._changed:
            self._to_come += count
            self._changed.notify()

    def take(self, wait: float = FRAME) -> list[Made | BaseException | None]:
        """All that is there; waits a moment (seconds) for the first."""
        taken: list[Made | BaseException | None] = []
        try:
            taken.append(self._records.get(timeout=wait))
            while len(taken) < self._records.maxsize:
                taken.append(self._records.get_nowait())
        except queue.Empty:
            pass
        return taken

    def _make(self) -> None:
        try:
            for record in self._start(lambda: self._stopping):
                self._records.put(record)
                seconds = self._pace(record)
                if seconds is not None:
                    self._wait(seconds)
        except BaseException as error:  # raised anew where the screen is
            self._records.put(error)
        self._records.put(None)

    def _wait(self, seconds: float) -> None:
        """Between two tokens: as long as the pace says, and to the end of a pause."""
        with self._changed:
            if seconds:
                self._changed.wait_for(lambda: self._stopping or self._pausing, seconds)
            self._changed.wait_for(lambda: self._stopping or not self._holding)
            self._changed.wait_for(lambda: not self._pausing or self._to_come)
            self._to_come = max(0, self._to_come - 1)


# ---- from tinychat.repl.answer_view ----


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
            turn, context_length = self._session.turns[-1], int(self._session.model.info.architecture["context_length"])
            words.append(f"context {min(1.0, (len(turn.prompt_ids) + len(turn.tokens)) / context_length):.0%}")
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


# ---- from tinychat.repl.answer_view ----


WAIT = 0.2
"""seconds between two looks at the size of the screen, when no key comes"""
WALKING_KEYS = "←/→ walk · ↑/↓ choose, Enter goes on from there · any other key ends"


def walk(looks: Walk, terminal: Terminal, keyboard: Keyboard) -> Answer | None:
    """Shows one place after the other as keys say; what was chosen to go on from, or None.

    The key that ends it, unless it is Esc or Enter, belongs to the next prompt, with all behind it.
    """
    if terminal.dumb:
        draw_plain(terminal, looks.at(looks.index))
        return None
    return _Walk(looks, terminal, keyboard).go()


class _Walk:
    def __init__(self, looks: Walk, terminal: Terminal, keyboard: Keyboard) -> None:
        self._looks, self._terminal, self._keyboard = looks, terminal, keyboard
        self._region = Region(terminal)
        self._place = looks.index
        self._bars = looks.at(self._place)
        self._pointed_at: int | None = None

    def go(self) -> Answer | None:
        drawn, keys = None, self._keyboard.take_back()
        with self._keyboard.live():
            while True:
                drawing = self._terminal.size(), self._place, self._pointed_at
                if drawing != drawn:
                    self._draw(WALKING_KEYS)
                    drawn = drawing
                for index, key in enumerate(keys):
                    if not self._press(key):
                        return self._end(key, keys[index:])
                keys = self._keyboard.read(WAIT)

    def _press(self, key: KeyPress) -> bool:
        """Moves; whether the key was one that does."""
        match key.key:
            case Keys.Left | Keys.Right:
                step = 1 if key.key is Keys.Right else -1
                self._go_to(min(max(self._place + step, 0), self._looks.count - 1))
            case Keys.Home | Keys.End:
                self._go_to(0 if key.key is Keys.Home else self._looks.count - 1)
            case Keys.Up | Keys.Down:
                self._point(1 if key.key is Keys.Down else -1)
            case _:
                return False
        return True

    def _go_to(self, index: int) -> None:
        if index != self._place:
            self._place, self._bars, self._pointed_at = index, self._looks.at(index), None

    def _point(self, step: int) -> None:
        chosen = next((index for index, bar in enumerate(self._bars.bars) if bar.marked), 0)
        index = chosen if self._pointed_at is None else self._pointed_at
        self._pointed_at = (index + step) % len(self._bars.bars)

    def _end(self, key: KeyPress, left: list[KeyPress]) -> Answer | None:
        """Lets stand what is shown; what comes of the key."""
        self._draw()
        self._region.leave()
        if key.key is Keys.ControlM and self._pointed_at is not None:
            self._keyboard.keep(left[1:])
            return self._looks.choose(self._place, self._pointed_at)
        self._keyboard.keep(left[1:] if key.key in (Keys.Escape, Keys.ControlM, Keys.ControlC) else left)
        return None

    def _draw(self, hint: str = "") -> None:
        width, height = self._terminal.size()
        drawing = bars_drawing(self._bars, width - 1, self._pointed_at)
        lines = self._terminal.render(drawing, width - 1).splitlines()
        if hint:
            hint = fit(hint, width - 1)
            lines = [*lines[: height - 2], f"{DIM}{hint}{RESET}" if self._terminal.colour else hint]
        self._region.draw(lines)
