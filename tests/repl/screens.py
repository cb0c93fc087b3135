"""Virtual screens for tests: a terminal's output as a person sees it."""

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pexpect
import pyte
from pyte.modes import DECAWM
from wcwidth import wcwidth

from tinychat.repl.render.terminal import Terminal

SCRIPT = Path(__file__).parent.parent / "scripted.py"
PATIENCE = 60.0
"""seconds after which output is considered missing"""
CURSOR_KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D"}


def go_to_next_row_for_wide(screen: pyte.Screen, char: str) -> None:
    """Let a wide character in the last column wrap without a trace, as terminals do."""
    if screen.cursor.x == screen.columns - 1 and DECAWM in screen.mode and wcwidth(char) == 2:
        screen.cursor.x = screen.columns


class Window(pyte.Screen):
    """A screen that keeps what scrolls off its top, and whose window may be resized: this cuts rows, as in xterm."""

    def __init__(self, columns: int, rows: int) -> None:
        self.history: list[str] = []
        super().__init__(columns, rows)

    def draw(self, data: str) -> None:
        for char in data:
            go_to_next_row_for_wide(self, char)
            super().draw(char)

    def index(self) -> None:
        if self.cursor.y == (self.margins.bottom if self.margins else self.lines - 1):
            self.history.append(self._text(0).rstrip())
        super().index()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Resize the window; text scrolls up only as far as the row of the cursor is to stay."""
        lines, columns = lines or self.lines, columns or self.columns
        self.set_margins()
        below, self.cursor.y = self.cursor.y, self.lines - 1
        for _ in range(below - lines + 1):
            self.index()
        for row in [row for row in self.buffer if row >= lines]:
            del self.buffer[row]
        self.cursor.x, self.cursor.y = min(self.cursor.x, columns - 1), min(below, lines - 1)
        self.lines = lines
        super().resize(lines, columns)

    @property
    def display(self) -> list[str]:
        """The rows. That of pyte fails on one in which half of a wide character was overwritten."""
        return [self._text(row) for row in range(self.lines)]

    def _text(self, row: int) -> str:
        return "".join(self.buffer[row][column].data for column in range(self.columns))

    @property
    def everything(self) -> list[str]:
        """All lines, also those that have scrolled off, without trailing spaces and empty lines at the end."""
        return "\n".join([*self.history, *(line.rstrip() for line in self.display)]).rstrip().split("\n")


class Screen(io.StringIO):
    """A stream that draws its text on a virtual screen and also keeps it."""

    encoding = "utf-8"

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__()
        self.screen = Window(columns, rows)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return super().write(text)

    @property
    def lines(self) -> list[str]:
        """Visible lines, without trailing empty ones."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def terminal(self, *, colour: bool = False, dumb: bool = False) -> Terminal:
        """Return a terminal that draws on this screen."""
        return Terminal(self, lambda: (self.screen.columns, self.screen.lines), colour=colour, dumb=dumb)


JOB = '"$0" "$@"; echo the shell is back; read -r; fg'
"""Script of a shell that waits for a line when its job is suspended, then continues it."""


class Person:
    """A simulated person at a pseudo-terminal that runs the REPL, as a job of a shell if `in_shell`.

    Without `hangs_up`, no signal tells the program that the terminal is closed.
    """

    def __init__(
        self,
        model: Path,
        home: Path,
        columns: int = 80,
        rows: int = 24,
        *,
        in_shell: bool = False,
        hangs_up: bool = True,
        **environment: str,
    ) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TINYCHAT_", "NO_COLOR"))}
        env = clean | {"TINYCHAT_HOME": str(home), "TERM": "xterm-256color", "INPUTRC": os.devnull} | environment
        command, *arguments = [*(["bash", "-mc", JOB] if in_shell else []), sys.executable, str(SCRIPT), str(model)]
        self.process = pexpect.spawn(
            command, arguments, env=env, dimensions=(rows, columns), timeout=PATIENCE,
            preexec_fn=None if hangs_up else partial(signal.signal, signal.SIGHUP, signal.SIG_IGN),
        )  # fmt: skip
        self.process.delaybeforesend = None
        self.process.ptyproc.delayafterclose = 0
        self.screen = Window(columns, rows)
        self.screen.write_process_input = self.type  # type: ignore[assignment, method-assign]
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        """all output so far"""

    @property
    def lines(self) -> list[str]:
        """Lines of the screen, without trailing spaces."""
        return [line.rstrip() for line in self.screen.display]

    def type(self, *keys: str) -> None:
        """Send keys, given as text or as the name of an arrow key."""
        self.process.send("".join(CURSOR_KEYS.get(key, key) for key in keys))

    def sees(self, *wanted: str | Callable[[list[str]], bool]) -> list[str]:
        """Wait until everything wanted is on screen; a string matches a whole line.

        Args:
            wanted: whole lines, or conditions on all lines.

        Returns:
            The lines of the screen.

        Raises:
            AssertionError: If something wanted does not appear in time.
        """
        end = time.monotonic() + PATIENCE
        while not all(self._is_there(one) for one in wanted):
            try:
                data = self.process.read_nonblocking(65536, max(0.01, end - time.monotonic()))
            except (pexpect.TIMEOUT, pexpect.EOF):
                raise AssertionError(f"{wanted} did not come:\n" + "\n".join(self.lines)) from None
            self._feed(data)
        return self.lines

    def read_pending(self) -> None:
        """Read the pending output, so that the program never blocks on writing."""
        try:
            while True:
                self._feed(self.process.read_nonblocking(65536, 0.02))
        except pexpect.TIMEOUT:
            return

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        self.screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def wait_for_exit(self) -> int | None:
        """Read until the program ends, and return its exit code."""
        try:
            while True:
                self.raw += self.process.read_nonblocking(65536, PATIENCE)
        except pexpect.EOF:
            return self.exit_code()

    def exit_code(self) -> int | None:
        """Wait for the process to exit, and return its exit code, or None if a signal ended it."""
        self.process.wait()
        self.process.close()
        code: int | None = self.process.exitstatus
        return code

    def close_terminal(self) -> None:
        """Close the terminal, and wait until the process has ended.

        Raises:
            AssertionError: If it goes on.
        """
        terminal = self.process.ptyproc
        terminal.fileobj.close()  # its own `close` would send signals
        terminal.closed = self.process.closed = True
        terminal.fd = self.process.child_fd = -1
        end = time.monotonic() + PATIENCE
        while os.waitpid(self.process.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self.process.pid, signal.SIGKILL)
                raise AssertionError("it goes on without a terminal")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the process, whatever its state."""
        self.process.kill(signal.SIGKILL)
        self.exit_code()

    def _feed(self, data: bytes) -> None:
        self.raw += data
        self._stream.feed(data)

    def _is_there(self, wanted: str | Callable[[list[str]], bool]) -> bool:
        if callable(wanted):
            return wanted(self.lines)
        return wanted in self.lines


class Tmux:
    """The REPL in a window of tmux, a terminal that wraps the lines of a resized window anew."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def run(self, *arguments: str) -> str:
        """Run a command of tmux, and return its output."""
        command = ["tmux", "-S", str(self._socket), "-f", os.devnull, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def type(self, *lines: str) -> None:
        """Type lines, each once the prompt is there."""
        for line in lines:
            self.sees(lambda text: text.rpartition("\n")[2].startswith(" parrot"))
            self.run("send-keys", line, "Enter")
            self.sees(lambda text, line=line: f"› {line}\n" in text)

    def press(self, key: str) -> None:
        self.run("send-keys", key)

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def sees(self, wanted: Callable[[str], bool]) -> str:
        """Wait for a condition on the whole text, also that which has scrolled off; return it, without wraps."""
        end = time.monotonic() + PATIENCE
        while not wanted(text := self.run("capture-pane", "-p", "-J", "-S", "-").rstrip()):
            assert time.monotonic() < end, text
            time.sleep(0.02)
        return text


@contextmanager
def in_tmux(model: Path, home: Path, **environment: str) -> Iterator[Tmux]:
    """Start the REPL in tmux."""
    tmux = Tmux(home / "tmux")
    variables = {"TINYCHAT_HOME": str(home), "INPUTRC": os.devnull} | environment
    try:
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable]
        tmux.run("new-session", "-d", "-x", "80", "-y", "24", shlex.join([*command, str(SCRIPT), str(model)]))
        yield tmux
    finally:
        tmux.run("kill-server")


def answered(lines: list[str]) -> bool:
    """Return whether an answer has ended and the prompt is back under its last line."""
    text = "\n".join(lines)
    return re.search(r"\d+ tokens? · (?:[\d,]+ tok/s · )?stop: [^\n]*\n[›>](?:\n|$)", text) is not None
