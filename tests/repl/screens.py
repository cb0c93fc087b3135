"""Virtual screens for tests: a terminal's output as a person sees it."""

import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

from tinychat.repl.render.terminal import Terminal

SCRIPT = Path(__file__).parent.parent / "scripted.py"
PATIENCE = 60.0
"""seconds after which output is considered missing"""
CURSOR_KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D"}


class Screen(io.StringIO):
    """A stream that draws its text on a virtual screen and also keeps it."""

    encoding = "utf-8"

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, rows)
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
    """A simulated person at a pseudo-terminal that runs the REPL, as a job of a shell if `in_shell`."""

    def __init__(
        self, model: Path, home: Path, columns: int = 80, rows: int = 24, *, in_shell: bool = False, **environment: str
    ) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TINYCHAT_", "NO_COLOR"))}
        env = clean | {"TINYCHAT_HOME": str(home), "TERM": "xterm-256color", "INPUTRC": os.devnull} | environment
        command, *arguments = [*(["bash", "-mc", JOB] if in_shell else []), sys.executable, str(SCRIPT), str(model)]
        self.process = pexpect.spawn(command, arguments, env=env, dimensions=(rows, columns), timeout=PATIENCE)
        self.process.delaybeforesend = None
        self.process.ptyproc.delayafterclose = 0
        self.screen = pyte.Screen(columns, rows)
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


def answered(lines: list[str]) -> bool:
    """Return whether an answer has ended and the prompt is back under its last line."""
    text = "\n".join(lines)
    return re.search(r"\d+ tokens? · (?:[\d,]+ tok/s · )?stop: [^\n]*\n[›>](?:\n|$)", text) is not None
