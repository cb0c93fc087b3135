"""Measure how soon a key press acts on an answer while it prints: `python tests/bench/keys.py [--presses N]`.

A key is pressed at a random moment while text streams in a pseudo-terminal of 80×24. The time is measured until its
effect is written: the new temperature, the pause notice, the last text and the last line of a stopped answer; first at
the pace of the bundled model, then as fast as a scripted one can. Finally, a reader of 960 bytes per second (9,600
baud) shows how far the output runs ahead, and how long it continues after Ctrl-C.
"""

import argparse
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pexpect

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripted import make_model

SCRIPT = Path(__file__).parent.parent / "scripted.py"

UP, DOWN, ESCAPE, SPACE, ENTER = "\x1b[A", "\x1b[B", "\x1b", " ", "\r"
BAUD_BYTES = 960
"""bytes per second at 9,600 baud"""
TEXT = re.compile(rb"hello|there")
STATUS = re.compile(rb"\x1b7.*?\x1b8|\x1b\[[0-9;?]*[a-zA-Z]", re.DOTALL)
TEMPERATURES = re.compile(rb"temp (\d[\d.]*)")


class StreamingRepl:
    """A REPL that streams an endless answer.

    Args:
        home: folder of models.
        model: model folder for the scripted engine.
        delay: seconds per token.
    """

    def __init__(self, home: Path, model: Path, delay: float) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TINYCHAT_")}
        env = inherited | {"TINYCHAT_HOME": str(home), "TINYCHAT_TEST_DELAY": str(delay), "TERM": "xterm-256color"}
        script = [str(SCRIPT), str(model)]
        self.process = pexpect.spawn(sys.executable, script, env=env, dimensions=(24, 80), timeout=30)
        self.process.delaybeforesend = None
        self.process.expect_exact("›".encode())
        self.process.send(f"/max 100000000{ENTER}")
        self.process.expect_exact("→ 100000000".encode())

    def begin(self) -> None:
        """Start an endless answer and wait until it streams."""
        self.process.send(f"flood{ENTER}")
        self.read_until(lambda data: data.count(b"tok/s") > 2)

    def read_until(self, condition: Callable[[bytes], bool], longest: float = 10.0) -> float:
        """Read until the output satisfies the condition, and return the elapsed seconds."""
        start, data = time.perf_counter(), b""
        while not condition(data):
            if time.perf_counter() - start > longest:
                raise TimeoutError(data[-500:])
            data += self.process.read_nonblocking(1 << 20, longest)
        return time.perf_counter() - start

    def read_for(self, seconds: float) -> bytes:
        """Read for the given number of seconds, and return the output."""
        end, data = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            try:
                data += self.process.read_nonblocking(1 << 20, left)
            except pexpect.TIMEOUT:
                break
        return data

    def time_until(self, key: str, condition: Callable[[bytes], bool], moment: float) -> float:
        """Return the seconds from a key press after `moment` seconds to its effect."""
        self.read_for(moment)
        self.process.send(key)
        return self.read_until(condition)

    def time_to_last_text(self, key: str, moment: float) -> float:
        """Return the seconds from a key press after `moment` seconds to the last text of the answer."""
        self.read_for(moment)
        self.process.send(key)
        start = last = time.perf_counter()
        data = b""
        while b"stop: " not in data:
            new = self.process.read_nonblocking(1 << 20, 10)
            data += new
            if TEXT.search(STATUS.sub(b"", new)):
                last = time.perf_counter()
        return last - start


def shown_temperature(wanted: str) -> Callable[[bytes], bool]:
    return lambda data: wanted.encode() in TEMPERATURES.findall(data)


def temperature(repl: StreamingRepl, presses: int, rng: random.Random) -> list[float]:
    """Time alternating temperature changes."""
    repl.begin()
    keys = ((UP, "0.9"), (DOWN, "0.8"))
    pressed = [keys[number % 2] for number in range(presses)]
    times = [repl.time_until(key, shown_temperature(value), rng.uniform(0.01, 0.1)) for key, value in pressed]
    repl.time_until(ESCAPE, lambda data: b"stop: " in data, 0.1)
    return times


def pause(repl: StreamingRepl, presses: int, rng: random.Random) -> list[float]:
    """Time pauses; a second press resumes."""
    repl.begin()
    times = []
    for _ in range(presses):
        times.append(repl.time_until(SPACE, lambda data: b"paused" in data, rng.uniform(0.01, 0.1)))
        repl.time_until(SPACE, lambda data: b"tok/s" in data, 0.01)
    repl.time_until(ESCAPE, lambda data: b"stop: " in data, 0.1)
    return times


def last_text(key: str) -> Callable[[StreamingRepl, int, random.Random], list[float]]:
    """Return a function that times a stopping key until the last text."""

    def measure(repl: StreamingRepl, presses: int, rng: random.Random) -> list[float]:
        times = []
        for _ in range(presses):
            repl.begin()
            times.append(repl.time_to_last_text(key, rng.uniform(0.01, 0.1)))
            repl.read_for(0.05)
        return times

    return measure


def last_line(key: str) -> Callable[[StreamingRepl, int, random.Random], list[float]]:
    """Return a function that times a stopping key until the last line of the answer."""

    def measure(repl: StreamingRepl, presses: int, rng: random.Random) -> list[float]:
        times = []
        for _ in range(presses):
            repl.begin()
            times.append(repl.time_until(key, lambda data: b"stop: " in data, rng.uniform(0.01, 0.1)))
            repl.read_for(0.05)
        return times

    return measure


def slow_reader(repl: StreamingRepl) -> tuple[int, float]:
    """Return the bytes buffered for a reader of 960 bytes per second, and the seconds it reads on after Ctrl-C."""
    repl.process.send(f"flood{ENTER}")
    end = time.perf_counter() + 10
    while time.perf_counter() < end:
        repl.process.read_nonblocking(BAUD_BYTES // 20, 5)
        time.sleep(0.05)
    repl.process.send("\x03")
    waiting, data = 0, b""
    start = time.perf_counter()
    while b"stop: " not in data:
        data += repl.process.read_nonblocking(BAUD_BYTES // 20, 5)
        waiting = len(data)
        time.sleep(0.05)
    return waiting, time.perf_counter() - start


def show(name: str, times: list[float]) -> None:
    """Print a line with the median, the 99th percentile and the maximum, in milliseconds."""
    ordered = sorted(1000 * one for one in times)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(f"{name:42} {statistics.median(ordered):7.1f} {last:7.1f} {ordered[-1]:7.1f} ms  ({len(times)})")  # noqa: T201


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presses", type=int, default=200)
    presses = parser.parse_args().presses
    measures = {
        "temperature": temperature, "pause": pause, "Esc, last of the text": last_text(ESCAPE),
        "Esc, the prompt": last_line(ESCAPE), "Ctrl-C, the prompt": last_line("\x03"),
    }  # fmt: skip
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="tinychat-bench-") as folder:
        home = Path(folder)
        model = make_model(home / "models")
        print(f"{'':42} {'median':>7} {'99 %':>7} {'most':>7}")  # noqa: T201
        for pace, delay in (("600 tokens/s", 1 / 600), ("as fast as it can", 0.0)):
            for name, measure in measures.items():
                repl = StreamingRepl(home, model, delay)
                show(f"{name}, {pace}", measure(repl, presses, rng))
                repl.process.close(force=True)
        repl = StreamingRepl(home, model, 0.0)
        waiting, seconds = slow_reader(repl)
        repl.process.close(force=True)
        print(f"a reader of {BAUD_BYTES} bytes/s: {waiting:,} bytes wait, {seconds:.1f} s until it ends")  # noqa: T201


if __name__ == "__main__":
    main()
