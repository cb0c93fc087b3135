"""Keys that are pressed while something else is on screen: an answer, a training run.

The interrupt signal: Ctrl-C where the terminal makes one of it, or `kill -INT`; never in the midst of drawing.

Prompts of several lines between `three quotes`.

The keys of the prompt, beside those of vi or emacs.
"""

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
from tinychat.commands.settings import switch
from tinychat.errors import UsageError
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session

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
        ends = [index for index, key in enumerate(keys) if key.key is Keys.ControlM]
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


# ---- from tinychat.repl.keys ----


RETRY = 0.01
"""seconds from one look to the next whether KeyboardInterrupt may be raised"""


@dataclass
class Interrupts:
    """How often Ctrl-C was pressed, or the signal came, so far."""

    count: int = 0


@contextmanager
def counted_interrupts(then: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Lets the signal be counted, in the main thread, where it would break off whatever is being done.

    Args:
        then: called after each.
    """
    interrupts = Interrupts()

    def note(*_: object) -> None:
        interrupts.count += 1
        then()

    with _handled(note):
        yield interrupts


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Lets the signal raise KeyboardInterrupt, once: what that leads to is not broken off by the next."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            threading.Timer(RETRY, _send_again, [number]).start()
            return
        signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    def tell(lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        signal.signal(signal.SIGINT, interrupt)
        threading.Timer(RETRY, _send_again, [signal.SIGINT]).start()

    before = sys.unraisablehook
    sys.unraisablehook = tell  # where nothing can be raised: while garbage is collected
    try:
        with _handled(interrupt):
            yield
    finally:
        sys.unraisablehook = before


def _send_again(number: int) -> None:
    main = threading.main_thread().ident
    if sys.platform == "win32" or main is None:
        signal.raise_signal(number)
    else:
        signal.pthread_kill(main, number)  # which ends what it waits for


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, half of which would stay."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ---- from tinychat.repl.keys ----


BLOCK = '"""'


def unblock(text: str) -> str:
    '''Takes the marks off a `"""` block, with the new lines next to them; a block is a prompt, whatever is in it.'''
    if not text.startswith(BLOCK):
        return text
    inner = text.removeprefix(BLOCK)
    if inner.rstrip().endswith(BLOCK):
        inner = inner.rstrip().removesuffix(BLOCK)
    inner = inner.removeprefix("\n").removesuffix("\n")
    return "/" + inner if inner.startswith("/") else inner


def is_open_block(text: str) -> bool:
    '''Whether a `"""` block has begun and not ended.'''
    return text.startswith(BLOCK) and not text.removeprefix(BLOCK).rstrip().endswith(BLOCK)


# ---- from tinychat.repl.keys ----


EDITORS = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/pico", "/usr/bin/vi", "/usr/bin/emacs")
"""what prompt_toolkit opens where nothing is set, in its order"""

VI_WAIT, EMACS_WAIT = 0.3, 1.0
"""seconds in which the next key may still belong to the one before: Esc Enter, Ctrl-X Ctrl-E"""


def prompt_bindings(session: Session, terminal: Terminal) -> KeyBindings:
    """Enter sends, but in an open block; Alt-Enter and Ctrl-J begin a new line; Ctrl-C clears; Ctrl-X Ctrl-E edits.

    F1 is help, with the command that is being typed; F2 changes between greedy and sampling, F4 between vi and emacs.
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
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("c-c", filter=editing)
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    @bindings.add("c-x", "c-e", filter=editing)
    @bindings.add("v", filter=editing & vi_navigation_mode)
    def edit(event: KeyPressEvent) -> None:
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
    def change_sampling(event: KeyPressEvent) -> None:
        switch(session)

    @bindings.add("f4")
    def change_keys(event: KeyPressEvent) -> None:
        use_keys(event.app, vi=event.app.editing_mode is not EditingMode.VI)

    return bindings


def use_keys(app: Application[Any], *, vi: bool) -> None:
    """Edits with the keys of vi, whose Esc acts soon, or with those of emacs, which come one after the other."""
    app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
    app.ttimeoutlen = ESCAPE_WAIT
    app.timeoutlen = VI_WAIT if vi else EMACS_WAIT


def _show_help(session: Session, terminal: Terminal, typed: str) -> None:
    """Help of the command that a line begins with, or of all."""
    from tinychat.repl.render.results import draw

    command = COMMANDS.command_of(typed) if len(typed) > 1 else None
    draw(terminal, COMMANDS.dispatch(session, f"/help {command.name if command else ''}"))  # type: ignore[arg-type]


def find_editor(environment: Mapping[str, str] = os.environ) -> str:
    """The command of the person's editor, or of one that the system has.

    Raises:
        UsageError: there is none.
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


def wants_vi(keys: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether keys are vi's: `vi`, or with `auto` where the person has set so for all programs, in `~/.inputrc`."""
    if keys != "auto":
        return keys == "vi"
    path = Path(environment.get("INPUTRC") or "~/.inputrc")
    try:
        return bool(re.search(r"(?m)^\s*set\s+editing-mode\s+vi\b", path.expanduser().read_text(errors="replace")))
    except (OSError, RuntimeError):
        return False
