"""Measure the time to the prompt and to the first answer: `python tests/bench/start_up.py [--model NAME] [--runs N]`.

Each run starts `tinychat` in a pseudo-terminal of 80×24 and watches its output. It measures the time to the prompt, to
the first token of an answer to a prompt typed at once, and to the first token of `tinychat -p`.
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
CURSOR_REPLY = "\x1b[3;1R"
"""reply to the cursor position query, without which the prompt waits for a second"""


def repl(model: str) -> tuple[float, float]:
    """Return the seconds from the start to the prompt, and to the last line of a one-token answer."""
    start = time.perf_counter()
    arguments = ["-m", "tinychat", "-m", model, "--max-tokens", "1", "--seed", "1"]
    repl_process = pexpect.spawn(sys.executable, arguments, dimensions=(24, 80), encoding="utf-8", timeout=60)
    repl_process.expect(PROMPT)
    prompt = time.perf_counter() - start
    repl_process.send(f"{CURSOR_REPLY}hello\r")
    repl_process.expect("stop: ")
    token = time.perf_counter() - start
    repl_process.sendeof()
    repl_process.expect(pexpect.EOF)
    return prompt, token


def one_shot(model: str) -> float:
    """Return the seconds from the start of `tinychat -p` to the first byte of its answer."""
    start = time.perf_counter()
    call = [sys.executable, "-m", "tinychat", "-m", model, "-p", "hello", "--max-tokens", "1", "--greedy"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return time.perf_counter() - start


def show(name: str, seconds: list[float]) -> None:
    """Print a line with the median and the range."""
    print(f"{name:34} {statistics.median(seconds):6.3f} s   ({min(seconds):.3f} to {max(seconds):.3f})")  # noqa: T201


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smalltalk")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    if "TINYCHAT_HOME" not in os.environ:  # keeps the user's history untouched
        os.environ["TINYCHAT_HOME"] = tempfile.mkdtemp(prefix="tinychat-")
    repl(args.model)  # fills the file cache
    times = [repl(args.model) for _ in range(args.runs)]
    show("prompt on screen", [prompt for prompt, _ in times])
    show("first answer in the REPL", [token for _, token in times])
    show("first byte of `tinychat -p hello`", [one_shot(args.model) for _ in range(args.runs)])


if __name__ == "__main__":
    main()
