"""How soon the REPL takes keys and answers begin: `python tests/bench/start_up.py [--model NAME] [--runs N]`.

Each run starts `tinychat` in a pseudo-terminal of 80×24 and watches what is written: the time to the prompt, from
there to the first token of an answer to a prompt that was typed at once, and to the first token of `tinychat -p`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import pexpect

PROMPT = "› "
HERE = "\x1b[3;1R"
"""what a terminal answers that is asked where its cursor stands; without it the prompt would wait for a second"""


def repl(model: str) -> tuple[float, float]:
    """Seconds from the start to the prompt, and to the last line of an answer of one token."""
    began = time.perf_counter()
    arguments = ["-m", "tinychat", "-m", model, "--max-tokens", "1", "--seed", "1"]
    child = pexpect.spawn(sys.executable, arguments, dimensions=(24, 80), encoding="utf-8", timeout=60)
    child.expect(PROMPT)
    prompt = time.perf_counter() - began
    child.send(f"{HERE}hello\r")
    child.expect("stop: ")
    token = time.perf_counter() - began
    child.sendeof()
    child.expect(pexpect.EOF)
    return prompt, token


def one_shot(model: str) -> float:
    """Seconds from the start of `tinychat -p` to the first byte of its answer."""
    began = time.perf_counter()
    call = [sys.executable, "-m", "tinychat", "-m", model, "-p", "hello", "--max-tokens", "1", "--greedy"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return time.perf_counter() - began


def show(name: str, seconds: list[float]) -> None:
    """A line with the median and the range."""
    print(f"{name:34} {statistics.median(seconds):6.3f} s   ({min(seconds):.3f} to {max(seconds):.3f})")  # noqa: T201


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smalltalk")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if "TINYCHAT_HOME" not in os.environ:  # a history of its own
        os.environ["TINYCHAT_HOME"] = tempfile.mkdtemp(prefix="tinychat-")
    repl(given.model)  # fills the file cache
    times = [repl(given.model) for _ in range(given.runs)]
    show("prompt on screen", [prompt for prompt, _ in times])
    show("first answer in the REPL", [token for _, token in times])
    show("first byte of `tinychat -p hello`", [one_shot(given.model) for _ in range(given.runs)])


if __name__ == "__main__":
    main()
