"""Keys that are pressed while something else is on screen: an answer, a training run."""

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

ESCAPE_WAIT = 0.03
"""seconds after which an Esc is a key of its own, and not the first byte of an arrow key on a slow line"""

ENTER = KeyPress(Keys.ControlM, "\r")


class Keyboard:
    """Hands out the keys that were pressed."""

    def __init__(self, input: Input | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.input = input or create_input()
        self._clock = clock
        self._read_at = clock()
        self.is_undecided = False
        """whether an Esc has come that may yet turn out to be the first byte of an arrow key"""

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keeps keys from being echoed, changed or held back (Ctrl-S) while nothing reads them; Ctrl-C still acts."""
        if sys.platform == "win32":
            yield
            return
        import termios

        descriptor = self.input.fileno()
        before = termios.tcgetattr(descriptor)
        quiet = termios.tcgetattr(descriptor)
        quiet[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
        try:
            if self._is_readable(0):  # pressed before the terminal was ours: an Enter among them is a new line by now
                self.keep([ENTER if key.key is Keys.ControlJ else key for key in self.input.read_keys()])
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    @contextmanager
    def live(self) -> Iterator["Keyboard"]:
        """Makes every key, Ctrl-C too, one that `read` hands out."""
        with self.input.raw_mode():
            yield self

    def read(self, wait: float = 0.0) -> list[KeyPress]:
        """The keys pressed by now.

        Args:
            wait: seconds, at most, for the first.
        """
        if self._is_readable(wait):
            self._read_at = self._clock()
            keys = self.input.read_keys()
            self.is_undecided = not keys
            return keys
        if self._clock() - self._read_at <= ESCAPE_WAIT:
            return []
        self.is_undecided = False
        return self.input.flush_keys()

    def keep(self, keys: list[KeyPress]) -> None:
        """Hands keys on to the next prompt."""
        store_typeahead(self.input, keys)

    def take_back(self) -> list[KeyPress]:
        """The keys that were to go to the next prompt."""
        return get_typeahead(self.input)

    def take_line(self) -> tuple[str, bool]:
        """What was kept, up to the first Enter, and whether there is one; the rest stays."""
        keys = self.take_back()
        ends = [place for place, key in enumerate(keys) if key.key is Keys.ControlM]
        if ends:
            self.keep(keys[ends[0] + 1 :])
            keys = keys[: ends[0]]
        return "".join(key.data for key in keys).replace("\r\n", "\n").replace("\r", "\n"), bool(ends)

    def _is_readable(self, wait: float) -> bool:
        if sys.platform == "win32":  # a console is no file that select knows; reading it does not wait
            time.sleep(wait)
            return True
        return bool(select.select([self.input.fileno()], [], [], wait)[0])


@dataclass
class TypeAhead:
    """What is typed for the next prompt while an answer is on screen."""

    lines: list[KeyPress] = field(default_factory=list)
    """whole lines, each with its Enter"""
    line: list[KeyPress] = field(default_factory=list)
    """the one being typed"""

    @property
    def text(self) -> str:
        """The line being typed."""
        return "".join(key.data for key in self.line)

    @property
    def keys(self) -> list[KeyPress]:
        """All of it, as the prompt takes it."""
        return self.lines + self.line

    def press(self, key: KeyPress) -> None:
        """Takes a key that types or deletes; any other does nothing."""
        if key.key is Keys.Backspace:
            del self.line[-1:]
        elif key.key is Keys.ControlU:
            self.line.clear()
        elif key.key is Keys.ControlM:
            if self.line:
                self.lines += [*self.line, key]
                self.line = []
        elif key.key in (Keys.ControlJ, Keys.BracketedPaste) or is_printable(key):
            self.line.append(key)


def is_printable(key: KeyPress) -> bool:
    """Whether a key types a character."""
    return not isinstance(key.key, Keys) and key.key.isprintable()
