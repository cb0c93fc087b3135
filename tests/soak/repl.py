"""Answers prompts in one REPL at a pseudo-terminal, and prints what the process uses after 100 and at the end.

    python tests/soak/repl.py --count 3000

Memory may grow by 5 MB; there must be no more descriptors and threads. `--model NAME` takes another model than
`smalltalk`, `--timings` prints the seconds of each 500 prompts.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pexpect

WARM_UP = 100
"""Prompts before the first measurement."""
MAX_GROWTH = 5
"""MB by which memory may grow after it."""
PROMPTS = (
    "hello there",
    "what is {number} plus 5?",
    "tell me about dogs",
    "my name is Ada{number}",
    "what can you do?",
)
PATIENCE = 60.0
READINGS = 20
"""Number of readings of what the process uses within a second, of which the one with the fewest threads counts."""


class Usage(NamedTuple):
    """What a process uses: memory in kB, and numbers of descriptors, threads and of files in its data folder."""

    memory: int
    descriptors: int
    threads: int
    files: int

    def __str__(self) -> str:
        memory = f"{self.memory / 1024:,.1f} MB"
        return f"{memory}, {self.descriptors} descriptors, {self.threads} threads, {self.files} files"


def main() -> int:
    """Answer as many prompts as the command line says; return 1 if the process grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=3000, help="number of prompts")
    parser.add_argument("--model", default="smalltalk", help="its name or path")
    parser.add_argument("--timings", action="store_true", help="print the seconds of each 500 prompts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="repl-") as folder:
        return soak(Path(folder), options.model, options.count, timings=options.timings)


def soak(home: Path, model: str, count: int, *, timings: bool = False) -> int:
    """Answer prompts in a REPL whose data is in an empty folder; print what it uses before and after."""
    kernels = Path(os.environ.get("TINYCHAT_HOME", "~/.local/share/tinychat")).expanduser() / "cache"
    if kernels.exists():  # compiled already
        (home / "cache").symlink_to(kernels)
    began = time.monotonic()
    repl = Repl(home, model)
    warm_up = min(WARM_UP, count // 2)
    last = began
    first = repl.usage()
    for number in range(count):
        if number == warm_up:
            first = repl.usage()
        repl.answer(PROMPTS[number % len(PROMPTS)].format(number=number))
        if timings and number % 500 == 499:
            seconds = time.monotonic() - last
            sys.stdout.write(f"{number + 1:,} prompts: {seconds:,.1f} s, {repl.usage()}\n")
            last = time.monotonic()  # reading the usage takes a second
    after = repl.usage()
    code = repl.leave()
    seconds = time.monotonic() - began
    sys.stdout.write(f"{count:,} prompts in {seconds:,.0f} s\nafter {warm_up:,}: {first}\nat the end: {after}\n")
    has_grown = after.memory - first.memory > MAX_GROWTH * 1024
    has_more = after.descriptors > first.descriptors or after.threads > first.threads
    return int(has_grown or has_more or code != 0)


class Repl:
    """A REPL at a pseudo-terminal that reports its cursor on the first row."""

    def __init__(self, home: Path, model: str) -> None:
        self._home = home
        environment = os.environ | {"TINYCHAT_HOME": str(home), "TERM": "xterm-256color", "INPUTRC": os.devnull}
        self._process = pexpect.spawn(
            sys.executable, ["-m", "tinychat", "-m", model],
            env=environment, dimensions=(24, 80), timeout=PATIENCE,  # type: ignore[arg-type]
        )  # fmt: skip
        self._process.delaybeforesend = None
        self._output = self._read()
        self._sees("› ".encode())

    def answer(self, prompt: str) -> None:
        """Type a prompt, and wait for the end of its answer and for the next prompt."""
        self._process.send(prompt + "\r")
        self._sees(b"stop: ")
        self._sees("› ".encode())

    def usage(self) -> Usage:
        """Return what the process uses now, without threads that end within a second."""
        readings = [self._usage()]
        for _ in range(READINGS - 1):
            time.sleep(1 / READINGS)
            readings.append(self._usage())
        return min(readings, key=lambda usage: usage.threads)

    def _usage(self) -> Usage:
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        fields = {
            name: value.split()[0] for name, _, value in (line.partition(":") for line in status) if value.strip()
        }
        descriptors = len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))
        files = sum(path.is_file() for path in self._home.rglob("*"))
        return Usage(int(fields["VmRSS"]), descriptors, int(fields["Threads"]), files)

    def leave(self) -> int | None:
        """Leave with Ctrl-D; return the exit code."""
        self._process.send("\x04")
        for _ in self._output:
            pass
        self._process.close()
        code: int | None = self._process.exitstatus
        return code

    def _sees(self, wanted: bytes) -> None:
        """Read up to something wanted."""
        seen = b""
        while wanted not in seen:
            seen = seen[-len(wanted) :] + next(self._output)

    def _read(self) -> Iterator[bytes]:
        """Yield the output byte for byte; answer each question for the position of the cursor."""
        question = b"\x1b[6n"
        recent = b""
        while True:
            try:
                data = self._process.read_nonblocking(65536, PATIENCE)
            except pexpect.EOF:
                return
            for byte in data:
                recent = recent[-len(question) + 1 :] + bytes([byte])
                if recent == question:
                    self._process.send("\x1b[1;1R")
                yield bytes([byte])


if __name__ == "__main__":
    sys.exit(main())
