'''Keys and signals of the REPL.

`Keyboard` reads keys while an answer or a training run is on screen, and `TypeAhead` collects those that are meant for
the next prompt. `prompt_bindings` adds tinychat's keys to those of vi or emacs; a prompt that begins with `"""` is a
block of several lines. `counted_interrupts` and `raised_interrupts` handle SIGINT so that it never interrupts drawing.
'''

import os
import re
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import has_focus, vi_navigation_mode
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys

from tinychat.commands import COMMANDS
from tinychat.commands.settings import toggle_greedy
from tinychat.errors import UsageError
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session

ESCAPE_TIMEOUT = 0.03
"""Seconds after which an Esc is a key of its own, not the first byte of an arrow key on a slow line."""
VI_TIMEOUT, EMACS_TIMEOUT = 0.3, 1.0
"""Seconds in which a key may complete a sequence such as Esc Enter or Ctrl-X Ctrl-E."""
SIGNAL_RETRY_DELAY = 0.01
"""Seconds until an interrupt is sent again that could not be raised."""

ENTER = KeyPress(Keys.ControlM, "\r")
BLOCK = '"""'
EDITORS = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/pico", "/usr/bin/vi", "/usr/bin/emacs")
"""The editors that prompt_toolkit tries, in its order, if none is set."""


class Keyboard:
    """Reads keys without blocking."""

    def __init__(self, input: Input | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.input = input or create_input()
        self._clock = clock
        self._read_at = clock()
        self.is_undecided = False
        """Whether an Esc was read that may still be the first byte of an arrow key."""

    @contextmanager
    def no_echo(self) -> Iterator[None]:
        """Disable the terminal's echo, line editing and flow control (Ctrl-S); Ctrl-C still sends SIGINT."""
        if sys.platform == "win32":
            yield
            return
        import termios

        descriptor = self.input.fileno()
        before = termios.tcgetattr(descriptor)
        attributes = termios.tcgetattr(descriptor)
        attributes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        attributes[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
        try:
            if self._is_readable(0):  # until now the terminal has turned Enter into a new line
                self.push_typeahead([ENTER if key.key is Keys.ControlJ else key for key in self.input.read_keys()])
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    @contextmanager
    def live(self) -> Iterator["Keyboard"]:
        """Put the terminal into raw mode, in which `read` returns every key, Ctrl-C included."""
        with self.input.raw_mode():
            yield self

    def read(self, timeout: float = 0.0) -> list[KeyPress]:
        """Return the keys pressed so far.

        Args:
            timeout: maximum number of seconds to wait for the first key.
        """
        if self._is_readable(timeout):
            self._read_at = self._clock()
            keys = self.input.read_keys()
            self.is_undecided = not keys
            return keys
        if self._clock() - self._read_at <= ESCAPE_TIMEOUT:
            return []
        self.is_undecided = False
        return self.input.flush_keys()

    def push_typeahead(self, keys: list[KeyPress]) -> None:
        """Append keys to those that the next prompt reads first."""
        store_typeahead(self.input, keys)

    def pop_typeahead(self) -> list[KeyPress]:
        """Remove and return the keys stored for the next prompt."""
        return get_typeahead(self.input)

    def pop_line(self) -> tuple[str, bool]:
        """Remove and return the text stored up to the first Enter, and whether there is an Enter."""
        keys = self.pop_typeahead()
        ends = [index for index, key in enumerate(keys) if key.key is Keys.ControlM]
        if ends:
            self.push_typeahead(keys[ends[0] + 1 :])
            keys = keys[: ends[0]]
        return normalize_newlines("".join(key.data for key in keys)), bool(ends)

    def _is_readable(self, timeout: float) -> bool:
        if sys.platform == "win32":  # `select` does not know consoles, but reading one does not block
            time.sleep(timeout)
            return True
        return bool(select.select([self.input.fileno()], [], [], timeout)[0])


@dataclass
class TypeAhead:
    """Keys that are typed for the next prompt while an answer is on screen."""

    lines: list[KeyPress] = field(default_factory=list)
    """Complete lines, each with its Enter."""
    line: list[KeyPress] = field(default_factory=list)
    """The line being typed."""

    @property
    def text(self) -> str:
        """The line being typed, as text."""
        return "".join(key.data for key in self.line)

    @property
    def keys(self) -> list[KeyPress]:
        """All keys, as `Keyboard.push_typeahead` takes them."""
        return self.lines + self.line

    def press(self, key: KeyPress) -> None:
        """Apply a key that types or deletes; ignore any other."""
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
    """Return whether a key types a character."""
    return not isinstance(key.key, Keys) and key.key.isprintable()


def normalize_newlines(text: str) -> str:
    r"""Return a text with `\r\n` and `\r` replaced by `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# The keys of the prompt


def prompt_bindings(session: Session, terminal: Terminal) -> KeyBindings:
    """Return the prompt's key bindings, to be added to those of vi or emacs.

    Enter sends, except in an open block; Alt-Enter and Ctrl-J insert a new line; Ctrl-C clears; Ctrl-X Ctrl-E opens an
    editor. F1 shows the help of the command being typed, F2 toggles greedy decoding, F4 toggles vi and emacs.
    """
    bindings = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)

    @bindings.add("enter", filter=editing)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_open_block(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=editing)
    @bindings.add("c-j", filter=editing)
    def insert_newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("c-c", filter=editing)
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    @bindings.add("c-x", "c-e", filter=editing)
    @bindings.add("v", filter=editing & vi_navigation_mode)
    def open_editor(event: KeyPressEvent) -> None:
        try:
            find_editor()
        except UsageError as error:
            run_in_terminal(partial(terminal.problem, error.problem, error.remedy))
            return
        event.current_buffer.open_in_editor()

    @bindings.add("f1")
    def help(event: KeyPressEvent) -> None:
        run_in_terminal(partial(_show_help, session, terminal, event.current_buffer.text))

    @bindings.add("f2")
    def on_f2(event: KeyPressEvent) -> None:
        toggle_greedy(session)

    @bindings.add("f4")
    def toggle_editing_mode(event: KeyPressEvent) -> None:
        set_editing_mode(event.app, vi=event.app.editing_mode is not EditingMode.VI)

    return bindings


def set_editing_mode(app: Application[Any], *, vi: bool) -> None:
    """Use the keys of vi or emacs, with a shorter timeout for vi, where Esc is a key of its own."""
    app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
    app.ttimeoutlen = ESCAPE_TIMEOUT
    app.timeoutlen = VI_TIMEOUT if vi else EMACS_TIMEOUT


def wants_vi(keys: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether to use vi keys: for `vi`, and for `auto` if `~/.inputrc` sets vi mode for all programs."""
    if keys != "auto":
        return keys == "vi"
    path = Path(environment.get("INPUTRC") or "~/.inputrc")
    try:
        return bool(re.search(r"(?m)^\s*set\s+editing-mode\s+vi\b", path.expanduser().read_text(errors="replace")))
    except (OSError, RuntimeError):
        return False


def find_editor(environment: Mapping[str, str] = os.environ) -> str:
    """Return the command of the user's editor, or the path of an editor that is installed.

    Raises:
        UsageError: If the editor that is set cannot be found, or none is set and none installed.
    """
    for variable in ("VISUAL", "EDITOR"):
        if command := environment.get(variable):
            words = command.split()
            if not words or shutil.which(words[0]) is None:
                raise UsageError(f"{variable} is {command!r}, which is no program here", "set it to an editor")
            return command
    for command in EDITORS:
        if Path(command).exists():
            return command
    raise UsageError("there is no editor here", "install one, and name it in EDITOR")


def _show_help(session: Session, terminal: Terminal, typed: str) -> None:
    """Show the help of the command that a line begins with, or of all commands."""
    from tinychat.repl.render.results import draw

    command = COMMANDS.command_of(typed) if len(typed) > 1 else None
    draw(terminal, COMMANDS.dispatch(session, f"/help {command.name if command else ''}"))  # type: ignore[arg-type]


# Blocks


def is_open_block(text: str) -> bool:
    '''Return whether a text begins with `"""` and does not end with it.'''
    return text.startswith(BLOCK) and not text.removeprefix(BLOCK).rstrip().endswith(BLOCK)


def strip_block(text: str) -> str:
    '''Return a text without the `"""` around it and the new lines next to them.

    A block is always a prompt: if its content begins with `/`, another `/` is put before it.
    '''
    if not text.startswith(BLOCK):
        return text
    inner = text.removeprefix(BLOCK)
    if inner.rstrip().endswith(BLOCK):
        inner = inner.rstrip().removesuffix(BLOCK)
    inner = inner.removeprefix("\n").removesuffix("\n")
    return "/" + inner if inner.startswith("/") else inner


# SIGINT: Ctrl-C outside of raw mode, or `kill -INT`


@dataclass
class Interrupts:
    """A counter of SIGINT."""

    count: int = 0


@contextmanager
def counted_interrupts(on_interrupt: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Count SIGINT in the main thread instead of raising KeyboardInterrupt.

    Args:
        on_interrupt: called after each signal.
    """
    interrupts = Interrupts()

    def handle(*_: object) -> None:
        interrupts.count += 1
        on_interrupt()

    with _handler(handle):
        yield interrupts


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on the first SIGINT and ignore the next ones, so that clean-up is not interrupted.

    During an import, or where Python cannot raise (in a finalizer), the signal is sent again a moment later.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            threading.Timer(SIGNAL_RETRY_DELAY, _send_again, [number]).start()
            return
        signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    def handle_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            before(unraisable)
            return
        signal.signal(signal.SIGINT, interrupt)
        threading.Timer(SIGNAL_RETRY_DELAY, _send_again, [signal.SIGINT]).start()

    before = sys.unraisablehook
    sys.unraisablehook = handle_unraisable
    try:
        with _handler(interrupt):
            yield
    finally:
        sys.unraisablehook = before


def _send_again(number: int) -> None:
    main = threading.main_thread().ident
    if sys.platform == "win32" or main is None:
        signal.raise_signal(number)
    else:
        signal.pthread_kill(main, number)  # also ends a blocking call of the main thread


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, which an exception would leave half initialized."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _handler(handler: Callable[..., None]) -> Iterator[None]:
    """Install a SIGINT handler; do nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
