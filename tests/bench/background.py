"""Measure how much an idle prompt slows the training run behind it: `python tests/bench/background.py`.

    --steps N    steps of each run (default: 200)
    --rounds N   pairs of runs, one alone and one behind the REPL, alternating (default: 3)

The background run is started by `/train TEXT &`: the toolbar follows the run, and its newest weights answer. Rates are
steps per second from the 10th step to the last, evaluations included.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pexpect
from tokenizing import write_text

from tinychat.events import Stepped
from tinychat.store.runs import RunFolder, find_run

FIRST_STEP = 10


def alone(text: Path, steps: int, name: str) -> RunFolder:
    """Train without a REPL."""
    call = [sys.executable, "-m", "tinychat", "train", str(text), "--steps", str(steps), "--name", name]
    subprocess.run(call, check=True, capture_output=True)
    return find_run(name)


def behind(text: Path, steps: int, name: str) -> RunFolder:
    """Train behind an idle prompt."""
    child = pexpect.spawn(sys.executable, ["-m", "tinychat"], dimensions=(24, 80), encoding="utf-8", timeout=900)
    child.expect("› ")
    child.send(f"/train {text} --steps {steps} --name {name} &\r")
    child.expect("is done: step")
    child.sendeof()
    child.expect(pexpect.EOF)
    return find_run(name)


def rate(run: RunFolder) -> float:
    """Return steps per second."""
    stepped = [event for event in run.events() if isinstance(event, Stepped) and event.step >= FIRST_STEP]
    return (stepped[-1].step - stepped[0].step) / (stepped[-1].seconds - stepped[0].seconds)


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinychat-bench-") as folder:
        os.environ["TINYCHAT_HOME"] = folder
        text = Path(folder, "text.txt")
        write_text(text, 1.0)
        slowdowns: list[float] = []
        for number in range(args.rounds):
            rates = [rate(train(text, args.steps, f"{train.__name__}-{number}")) for train in (alone, behind)]
            slowdowns.append(1 - rates[1] / rates[0])
            print(f"alone {rates[0]:.2f}, behind the prompt {rates[1]:.2f} steps/s: {slowdowns[-1]:+.1%}")  # noqa: T201
            time.sleep(1)
        print(f"slower by {statistics.median(slowdowns):.1%} (median)")  # noqa: T201


if __name__ == "__main__":
    main()
