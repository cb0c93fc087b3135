"""How soon a key acts on an answer that is printing: `python tests/bench/keys.py [--presses N]`.

A key is pressed at a random moment while text streams in a pseudo-terminal of 80×24; measured is the time until what it
does is written: the new temperature, the word for a pause, the last of the text and the last line of an answer that was
stopped. Once at the pace of the bundled model, once as fast as a scripted one can. And a reader who takes 960 bytes a
second (9,600 baud) tells how far the output runs ahead of them, and how long they read on after Ctrl-C.
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
"""bytes that 9,600 baud carry in a second"""
TEXT = re.compile(rb"hello|there")
STATUS = re.compile(rb"\x1b7.*?\x1b8|\x1b\[[0-9;?]*[a-zA-Z]", re.DOTALL)
TEMPERATURES = re.compile(rb"temp (\d[\d.]*)")


class Talk:
    """A REPL in which an answer streams without end.

    Args:
        home: where models are kept.
        model: a folder for the scripted engine.
        delay: seconds that each token takes.
    """

    def __init__(self, home: Path, model: Path, delay: float) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TINYCHAT_")}
        env = kept | {"TINYCHAT_HOME": str(home), "TINYCHAT_TEST_DELAY": str(delay), "TERM": "xterm-256color"}
        script = [str(SCRIPT), str(model)]
        self.process = pexpect.spawn(sys.executable, script, env=env, dimensions=(24, 80), timeout=30)
        self.process.delaybeforesend = None
        self.process.expect_exact("›".encode())
        self.process.send(f"/max 100000000{ENTER}")
        self.process.expect_exact("→ 100000000".encode())

    def begin(self) -> None:
        """Asks for an answer without end, and sees it come."""
        self.process.send(f"flood{ENTER}")
        self.read_until(lambda data: data.count(b"tok/s") > 2)

    def read_until(self, seen: Callable[[bytes], bool], longest: float = 10.0) -> float:
        """Reads until that is among what was written; the seconds it took."""
        began, data = time.perf_counter(), b""
        while not seen(data):
            if time.perf_counter() - began > longest:
                raise TimeoutError(data[-500:])
            data += self.process.read_nonblocking(1 << 20, longest)
        return time.perf_counter() - began

    def drink(self, seconds: float) -> bytes:
        """Reads for so long."""
        end, data = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            try:
                data += self.process.read_nonblocking(1 << 20, left)
            except pexpect.TIMEOUT:
                break
        return data

    def react(self, key: str, seen: Callable[[bytes], bool], moment: float) -> float:
        """Seconds from the key, pressed at that moment, to what it does."""
        self.drink(moment)
        self.process.send(key)
        return self.read_until(seen)

    def stand(self, key: str, moment: float) -> float:
        """Seconds from the key, pressed at that moment, to the last text of the answer."""
        self.drink(moment)
        self.process.send(key)
        began = last = time.perf_counter()
        data = b""
        while b"stop: " not in data:
            new = self.process.read_nonblocking(1 << 20, 10)
            data += new
            if TEXT.search(STATUS.sub(b"", new)):
                last = time.perf_counter()
        return last - began


def shown_temperature(wanted: str) -> Callable[[bytes], bool]:
    return lambda data: wanted.encode() in TEMPERATURES.findall(data)


def temperature(talk: Talk, presses: int, chosen: random.Random) -> list[float]:
    """Up and down, by turns."""
    talk.begin()
    keys = ((UP, "0.9"), (DOWN, "0.8"))
    pressed = [keys[number % 2] for number in range(presses)]
    times = [talk.react(key, shown_temperature(value), chosen.uniform(0.01, 0.1)) for key, value in pressed]
    talk.react(ESCAPE, lambda data: b"stop: " in data, 0.1)
    return times


def pause(talk: Talk, presses: int, chosen: random.Random) -> list[float]:
    """Space, until the pause is told; another goes on."""
    talk.begin()
    times = []
    for _ in range(presses):
        times.append(talk.react(SPACE, lambda data: b"paused" in data, chosen.uniform(0.01, 0.1)))
        talk.react(SPACE, lambda data: b"tok/s" in data, 0.01)
    talk.react(ESCAPE, lambda data: b"stop: " in data, 0.1)
    return times


def stand(key: str) -> Callable[[Talk, int, random.Random], list[float]]:
    """A key that stops, until the last of the text."""

    def measure(talk: Talk, presses: int, chosen: random.Random) -> list[float]:
        times = []
        for _ in range(presses):
            talk.begin()
            times.append(talk.stand(key, chosen.uniform(0.01, 0.1)))
            talk.drink(0.05)
        return times

    return measure


def stop(key: str) -> Callable[[Talk, int, random.Random], list[float]]:
    """A key that stops, until the last line of the answer."""

    def measure(talk: Talk, presses: int, chosen: random.Random) -> list[float]:
        times = []
        for _ in range(presses):
            talk.begin()
            times.append(talk.react(key, lambda data: b"stop: " in data, chosen.uniform(0.01, 0.1)))
            talk.drink(0.05)
        return times

    return measure


def slow_reader(talk: Talk) -> tuple[int, float]:
    """Bytes that wait for somebody who reads 960 a second, and seconds that they read on after Ctrl-C."""
    talk.process.send(f"flood{ENTER}")
    end = time.perf_counter() + 10
    while time.perf_counter() < end:
        talk.process.read_nonblocking(BAUD_BYTES // 20, 5)
        time.sleep(0.05)
    talk.process.send("\x03")
    waiting, data = 0, b""
    began = time.perf_counter()
    while b"stop: " not in data:
        data += talk.process.read_nonblocking(BAUD_BYTES // 20, 5)
        waiting = len(data)
        time.sleep(0.05)
    return waiting, time.perf_counter() - began


def show(name: str, times: list[float]) -> None:
    """A line with the median, the 99th percentile and the longest, in milliseconds."""
    ordered = sorted(1000 * one for one in times)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(f"{name:42} {statistics.median(ordered):7.1f} {last:7.1f} {ordered[-1]:7.1f} ms  ({len(times)})")  # noqa: T201


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presses", type=int, default=200)
    presses = parser.parse_args().presses
    measures = {
        "temperature": temperature, "pause": pause, "Esc, last of the text": stand(ESCAPE),
        "Esc, the prompt": stop(ESCAPE), "Ctrl-C, the prompt": stop("\x03"),
    }  # fmt: skip
    chosen = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="tinychat-bench-") as folder:
        home = Path(folder)
        model = make_model(home / "models")
        print(f"{'':42} {'median':>7} {'99 %':>7} {'most':>7}")  # noqa: T201
        for pace, delay in (("600 tokens/s", 1 / 600), ("as fast as it can", 0.0)):
            for name, measure in measures.items():
                talk = Talk(home, model, delay)
                show(f"{name}, {pace}", measure(talk, presses, chosen))
                talk.process.close(force=True)
        talk = Talk(home, model, 0.0)
        waiting, seconds = slow_reader(talk)
        talk.process.close(force=True)
        print(f"a reader of {BAUD_BYTES} bytes/s: {waiting:,} bytes wait, {seconds:.1f} s until it ends")  # noqa: T201


if __name__ == "__main__":
    main()
