'''Keys, a line editor that they act on, and signals.

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
import termios
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Always, Condition, emacs_insert_mode, has_focus, vi_navigation_mode
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.utils import get_cwidth

from tinychat.errors import UsageError
from tinychat.interrupts import is_importing
from tinychat.repl.render.terminal import Terminal
from tinychat.textutil import LAYOUT_CONTROLS, escape_controls

ESCAPE_TIMEOUT = 0.03
"""Seconds after which an Esc is a key of its own, not the first byte of an arrow key on a slow line."""
VI_TIMEOUT, EMACS_TIMEOUT = 0.3, 1.0
"""Seconds in which a key may complete a sequence such as Esc Enter or Ctrl-X Ctrl-E."""
SIGNAL_RETRY_DELAY = 0.01
"""Seconds until an interrupt is sent again that could not be raised."""

ENTER = KeyPress(Keys.ControlM, "\r")
LEAVING = (Keys.Escape, Keys.ControlC, Keys.ControlM, "q")
"""Keys that end a view which is walked through, and go no further."""
ALT_KEYS = "bcdfluy<>."
"""Characters that do with Alt what they do in emacs, once something is typed: they go by words and through history."""
BLOCK, CURSOR, NEW_LINE = '"""', "▏", "↵"
INTERRUPT_HINT = "Ctrl-C gives the prompt back"
EDITORS = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/pico", "/usr/bin/vi", "/usr/bin/emacs")
"""The editors that prompt_toolkit tries, in its order, if none is set."""

# prompt_toolkit shows the other control characters of what is typed, of the menu and of the toolbar already
Char.display_mappings.update((char, escape_controls(char)) for char in LAYOUT_CONTROLS)


class Keyboard:
    """Reads keys without blocking."""

    def __init__(self, input: Input | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.input = input or create_input()
        self._clock, self._read_at = clock, clock()
        self._attributes: Any = None  # of the terminal, before `no_echo`
        self._is_lent = False  # whether another program has the terminal
        self.is_undecided = False
        """Whether an Esc was read that may still be the first byte of an arrow key."""

    @contextmanager
    def no_echo(self) -> Iterator[None]:
        """Disable the terminal's echo, line editing and flow control (Ctrl-S); Ctrl-C still sends SIGINT."""
        descriptor = self.input.fileno()
        self._attributes, attributes = termios.tcgetattr(descriptor), termios.tcgetattr(descriptor)
        attributes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        attributes[3] &= ~(termios.ECHO | termios.ICANON)

        def set_again(*_: object) -> None:
            """Set the attributes again after a shell has continued the program, unless in the background."""
            with suppress(termios.error):
                has_echo = termios.tcgetattr(descriptor)[3] & termios.ECHO  # raw mode has none
                if has_echo and not self._is_lent and not _is_in_background(descriptor):
                    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)

        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
        try:
            self._keep_early_keys()
            with _handler(set_again, signal.SIGCONT):
                signal.siginterrupt(signal.SIGCONT, False)
                yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, self._attributes)
            self._attributes = None

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Give the terminal to another program, as this one got it, and restore it, however the other one leaves it."""
        if not os.isatty(self.input.fileno()):
            yield
            return
        descriptor = self.input.fileno()
        current = termios.tcgetattr(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, self._attributes or current)
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False
            termios.tcsetattr(descriptor, termios.TCSADRAIN, current)
            if self._attributes is not None:
                self._keep_early_keys()

    @contextmanager
    def live(self, *, is_early_for_prompt: bool = True) -> Iterator[None]:
        """Put the terminal into raw mode, in which `read` returns every key, Ctrl-C included.

        What was typed before, as lines that the terminal itself edited, is kept for the next prompt, if there is one.
        """
        with self.input.raw_mode():
            edited = self._attributes is None and os.isatty(self.input.fileno())
            if edited and is_early_for_prompt:
                self._keep_early_keys()
            yield

    def suspend(self) -> None:
        """Stop the program, as Ctrl-Z does outside of raw mode; return when the shell continues it."""
        if not os.isatty(self.input.fileno()):  # only a shell at a terminal can continue it
            return
        with self.input.cooked_mode():
            os.kill(0, signal.SIGTSTP)  # the whole process group, like the terminal itself

    def read(self, timeout: float = 0.0) -> list[KeyPress]:
        """Return the keys pressed so far; wait up to `timeout` seconds for the first.

        Raises:
            EOFError: If the terminal is gone, as when its window is closed.
        """
        if self._is_readable(timeout):
            self._read_at = self._clock()
            keys = self.input.read_keys()
            if not keys and self.input.closed:
                raise EOFError
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
        end = next((index for index, key in enumerate(keys) if key.key is Keys.ControlM), None)
        if end is not None:
            self.push_typeahead(keys[end + 1 :])
        return normalize_newlines("".join(key.data for key in keys[:end])), end is not None

    def _keep_early_keys(self) -> None:
        """Keep what was typed for the next prompt while the terminal turned Enter into a new line."""
        if self._is_readable(0):
            self.push_typeahead([ENTER if key.key is Keys.ControlJ else key for key in self.input.read_keys()])

    def _is_readable(self, timeout: float) -> bool:
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


class LineEditor:
    """A line that is edited key by key. Ctrl-J inserts a new line; ↑ recalls the previous text."""

    def __init__(self, previous: str = "") -> None:
        self._buffer, self._previous = Buffer(), previous

    @property
    def text(self) -> str:
        return self._buffer.text

    def press(self, key: KeyPress) -> None:
        """Apply a key that types, deletes or moves the cursor; ignore any other."""
        buffer, document = self._buffer, self._buffer.document
        match key.key:
            case Keys.Up:
                buffer.text = self._previous
                buffer.cursor_position = len(self._previous)
            case Keys.Left | Keys.ControlB:
                buffer.cursor_position -= 1
            case Keys.Right | Keys.ControlF:
                buffer.cursor_position += 1
            case Keys.Home | Keys.ControlA:
                buffer.cursor_position = 0
            case Keys.End | Keys.ControlE:
                buffer.cursor_position = len(buffer.text)
            case Keys.Backspace:
                buffer.delete_before_cursor()
            case Keys.Delete | Keys.ControlD:
                buffer.delete()
            case Keys.ControlU:
                buffer.delete_before_cursor(buffer.cursor_position)
            case Keys.ControlK:
                buffer.delete(len(buffer.text) - buffer.cursor_position)
            case Keys.ControlW:
                buffer.delete_before_cursor(-(document.find_start_of_previous_word() or 0))
            case Keys.ControlJ:
                buffer.insert_text("\n")
            case Keys.BracketedPaste:
                buffer.insert_text(normalize_newlines(key.data))
            case _ if is_printable(key):
                buffer.insert_text(key.data)

    def view(self, width: int) -> str:
        """Return the text and its cursor in at most `width` cells, scrolled so that the cursor is visible."""
        document, width = self._buffer.document, max(0, width)
        before, after = map(show_on_one_line, (document.text_before_cursor, document.text_after_cursor))
        while before and get_cwidth(before + CURSOR + after[:1]) > width:
            before = before[1:]
        line = before + CURSOR + after
        while line and get_cwidth(line) > width:
            line = line[:-1]
        return line


def is_printable(key: KeyPress) -> bool:
    """Return whether a key types a character."""
    return not isinstance(key.key, Keys) and key.key.isprintable()


def normalize_newlines(text: str) -> str:
    r"""Return a text with `\r\n` and `\r` replaced by `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def show_on_one_line(text: str) -> str:
    """Return a text with `↵` for new lines and control characters escaped."""
    return escape_controls(text.replace("\n", NEW_LINE).replace("\t", " "))


# --- the keys of the prompt ---


def base_bindings() -> KeyBindings:
    """Return the keys of every line that prompt_toolkit edits, to be added to its own.

    It takes a colour in a text that is pasted without brackets, such as `ESC [31m`, for an event of the mouse and fails
    on it. No event of the mouse is wanted, so that all are ignored.
    """
    bindings = KeyBindings()
    bindings.add(Keys.Vt100MouseEvent)(lambda event: None)
    return bindings


def prompt_bindings(terminal: Terminal) -> KeyBindings:
    """Return the keys that edit the prompt, to be added to those of vi or emacs."""
    bindings, editing = base_bindings(), has_focus(DEFAULT_BUFFER)

    @bindings.add("enter", filter=editing)
    def send_unless_block_is_open(event: KeyPressEvent) -> None:
        if is_open_block(event.current_buffer.text):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=editing)
    @bindings.add("c-j", filter=editing)
    def insert_newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    has_text = Condition(lambda: bool(get_app().current_buffer.text))

    def type_after_escape(event: KeyPressEvent) -> None:
        """Type a character: terminals send Alt and a key as Esc and the key, but Esc is also pressed by itself."""
        event.current_buffer.insert_text(event.data)

    for char in map(chr, range(ord("!"), ord("~") + 1)):
        is_free = ~has_text if char in ALT_KEYS else Always()
        bindings.add("escape", char, filter=editing & emacs_insert_mode & is_free)(type_after_escape)

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
            run_above_prompt(partial(terminal.problem, error.problem, error.remedy))
        else:
            event.current_buffer.open_in_editor()

    @bindings.add("f4")
    def toggle_editing_mode(event: KeyPressEvent) -> None:
        set_editing_mode(event.app, vi=event.app.editing_mode is not EditingMode.VI)

    return bindings


def run_above_prompt(write: Callable[[], None]) -> Awaitable[None]:
    """Call a function that writes above the prompt on screen; keys typed meanwhile stay for the prompt, unseen."""

    def run() -> None:
        with get_app().input.raw_mode():  # prompt_toolkit has let the terminal echo and edit what is typed
            write()

    return run_in_terminal(run)


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
            if not (words := command.split()) or shutil.which(words[0]) is None:
                raise UsageError(f"{variable} is {command!r}, which is no program here", "set it to an editor")
            return command
    for command in EDITORS:
        if Path(command).exists():
            return command
    raise UsageError("there is no editor here", "install one, and name it in EDITOR")


def is_open_block(text: str) -> bool:
    '''Return whether a text begins with `"""` and does not end with it.'''
    return text.startswith(BLOCK) and not text.removeprefix(BLOCK).rstrip().endswith(BLOCK)


# --- SIGINT: Ctrl-C outside of raw mode, or `kill -INT` ---


@dataclass
class Interrupts:
    """A counter of SIGINT."""

    count: int = 0


@contextmanager
def counted_interrupts(on_interrupt: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Count SIGINT in the main thread instead of raising KeyboardInterrupt; call `on_interrupt` after each."""
    interrupts = Interrupts()

    def handle(*_: object) -> None:
        interrupts.count += 1
        on_interrupt()

    with _handler(handle):
        yield interrupts


@contextmanager
def ignored_quits() -> Iterator[None]:
    """Let Ctrl-\\, like Ctrl-C in `counted_interrupts`, end only another program that has the terminal."""
    with _handler(lambda *_: None, signal.SIGQUIT):
        yield


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on the first SIGINT and ignore the next ones, so that clean-up is not interrupted.

    During an import, or where Python cannot raise (in a finalizer), the signal is sent again a moment later.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_importing(frame):
            threading.Timer(SIGNAL_RETRY_DELAY, _send_again).start()
            return
        signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    def handle_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            before(unraisable)
            return
        signal.signal(signal.SIGINT, interrupt)
        threading.Timer(SIGNAL_RETRY_DELAY, _send_again).start()

    before = sys.unraisablehook
    sys.unraisablehook = handle_unraisable
    try:
        with _handler(interrupt):
            yield
    finally:
        sys.unraisablehook = before


def _is_in_background(descriptor: int) -> bool:
    """Return whether a terminal has another job in the foreground: then it may not be changed."""
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # it is not the terminal of any job
        return False


def _send_again() -> None:
    main = threading.main_thread().ident
    if main is None:
        signal.raise_signal(signal.SIGINT)
    else:
        signal.pthread_kill(main, signal.SIGINT)  # also ends a blocking call of the main thread


@contextmanager
def _handler(handler: Callable[..., None], number: int = signal.SIGINT) -> Iterator[None]:
    """Install a handler of a signal; do nothing outside of the main thread, or where whoever called us ignores it.

    A shell has jobs in the background ignore SIGINT: a Ctrl-C is not meant for them.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(number) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
