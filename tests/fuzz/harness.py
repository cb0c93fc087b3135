"""Calls tinychat on mutated input, each time in a forked process, and counts what breaks a promise.

Every file beside this one has a `cases` function, which makes the cases of a seed: `models.py` of model folders with
their tokenizers, `foreign.py` of other tools' models, `json_lines.py` of lines in a pipe, `texts.py` of files to read,
`settings.py` of config files, recipes and transcripts, `kernel.py` of weights in the sanitized kernel. Alone, `python
tests/fuzz/FILE.py --seed N --count 10000` runs for as long as it takes and keeps the folder of each case that failed;
`test_fuzz.py` runs some of each.
"""

import argparse
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_SECONDS, MAX_MEMORY = 5.0, 500 << 20
"""How long a call may take, and by how many bytes the memory may grow."""
GRACE = 10.0
"""Seconds after which a call is killed."""
ATTEMPTS = 3
"""Times that a call may be made until it is quick enough: other processes may hold the processor."""
CODES = (0, 1, 2)
"""Exit codes of calls that nobody interrupts."""

interrupted = threading.Event()
"""Set by Ctrl-C: the cases so far are reported."""


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    code: int
    """Exit code; the negative number of the signal that ended it."""
    seconds: float
    """Time until it ended, or was killed after `GRACE`."""
    processor: float
    """Seconds of processor time."""
    memory: int
    """Bytes by which the peak of memory exceeds that of the process before the call."""
    out: bytes
    err: bytes

    @property
    def was_killed(self) -> bool:
        """Whether it had not ended after `GRACE`."""
        return self.code == -signal.SIGKILL and self.seconds > GRACE


@dataclass
class Case:
    """A call, the folder that it runs in, and what must hold beside the promises to all."""

    name: str
    arguments: Sequence[str]
    folder: Path
    stdin: bytes = b""
    check: Callable[[Outcome], str] = lambda outcome: ""
    """Returns what is wrong with an outcome; empty if nothing is."""
    run: Callable[[list[str]], int] | None = None
    """Function to call with the arguments; default: the command line."""


@dataclass
class Report:
    """Counts of cases, and the failures."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, case: Case) -> bool:
        """Make a call and count it; return whether it failed."""
        outcome = call(case)
        wrong = faults(case, outcome) or slowness(outcome)
        self.counts["failed" if wrong else "answered" if outcome.code == 0 else "refused"] += 1
        if wrong:
            call_line = " ".join(case.arguments)
            self.failures.append(f"{case.name}: {wrong}\n    tinychat {call_line}\n    {outcome.err[-300:]!r}")
        return bool(wrong)


def slowness(outcome: Outcome) -> str:
    """Describe how much time a call took if that was too much; empty if it was not."""
    if outcome.seconds <= MAX_SECONDS:
        return ""
    how = "it was killed after" if outcome.was_killed else "it took"
    return f"{how} {outcome.seconds:.1f} s, {outcome.processor:.1f} s of them on the processor"


def faults(case: Case, outcome: Outcome) -> str:
    """Return which promise an outcome breaks, other than to be quick; empty if none."""
    if outcome.code < 0 and not outcome.was_killed:
        return f"ended by signal {signal.Signals(-outcome.code).name}"
    if re.search(rb"Traceback|tinychat: unexpected [A-Z]|panicked", outcome.err):
        return "a traceback"
    if outcome.memory > MAX_MEMORY:
        return f"it took {outcome.memory >> 20:,} MB"
    if outcome.was_killed:
        return ""
    if outcome.code not in CODES:
        return f"exit code {outcome.code}"
    lines = outcome.err.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.startswith("tinychat: ") and not line.startswith("tinychat: prompt ")]
    if outcome.code and not outcome.out and not 1 <= len(said) <= 2:
        return f"{len(said)} errors on stderr"
    return case.check(outcome)


def call(case: Case) -> Outcome:
    """Run a case, again if it was slow and nothing else is wrong; the quickest outcome counts, or a wrong one.

    A busy machine is no fault of the program: some calls wait for a processor for longer than they take.
    """
    outcome = call_once(case)
    for _ in range(ATTEMPTS - 1):
        if not slowness(outcome) or faults(case, outcome):
            break
        again = call_once(case)
        if faults(case, again) or again.seconds < outcome.seconds:
            outcome = again
    return outcome


def call_once(case: Case) -> Outcome:
    """Run a case in a forked process, which need not import anything."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(case.stdin)
        stdin.seek(0)
        before, began = _memory(), time.monotonic()
        process = os.fork()
        if process == 0:
            _run(case, stdin.fileno(), out.fileno(), err.fileno())
        descriptor = os.pidfd_open(process)
        ended, _, _ = select.select([descriptor], [], [], GRACE)
        os.close(descriptor)
        if not ended:
            os.kill(process, signal.SIGKILL)
        _, status, usage = os.wait4(process, 0)
        seconds = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        peak = usage.ru_maxrss << 10
        return Outcome(
            os.waitstatus_to_exitcode(status), seconds, usage.ru_utime + usage.ru_stime, peak - before,
            out.read(), err.read(),
        )  # fmt: skip


def _memory() -> int:
    """Return the bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _run(case: Case, *streams: int) -> None:
    """Run the command line in this process, with its files as standard streams, and end it."""
    code = 70
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the fuzzer after this call
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["tinychat", *case.arguments]
        os.chdir(case.folder)
        os.environ["TINYCHAT_HOME"] = str(case.folder / "home")

        from tinychat.cli.main import run

        code = (case.run or run)(list(case.arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 70
    except BaseException:  # whatever came out of the program: its traceback is what the report looks for
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def warm_up() -> None:
    """Import what the calls need, so that forked processes have it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
    import torch

    import tinychat.cli.pipe
    import tinychat.generate.native.engine
    import tinychat.generate.torch_engine
    import tinychat.repl.render.results  # noqa: F401
    from tinychat.generate.native.build import load_library

    torch.set_num_threads(1)
    load_library()


def run_cases(cases: Callable[[random.Random, Path], Iterator[Case]], seed: int, count: int, keep: Path) -> Report:
    """Run cases until there are `count` of them or Ctrl-C; keep the folders of those that failed in `keep`.

    Args:
        cases: makes the cases of a random generator in a folder.
        seed: of the first generator; each folder has the next one.
        count: number of cases.
        keep: folder for the folders of failures.

    Returns:
        The counts and the failures.
    """
    warm_up()
    report = Report()
    while report.counts.total() < count and not interrupted.is_set():
        with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
            folder = Path(name)
            failed = False
            for case in cases(random.Random(seed), folder):
                failed |= report.add(case)
            if failed:
                shutil.rmtree(keep / str(seed), ignore_errors=True)
                shutil.copytree(folder, keep / str(seed), symlinks=True, ignore=_special)
        seed += 1
    return report


def _special(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that cannot be copied: pipes and sockets."""
    return [name for name in names if not any((Path(folder, name).is_file(), Path(folder, name).is_dir()))]


def main(cases: Callable[[random.Random, Path], Iterator[Case]]) -> None:
    """Run cases as the command line says, and print the report; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--count", type=int, default=1000, help="number of calls")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for the input of failures")
    options = parser.parse_args()
    began = time.monotonic()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    report = run_cases(cases, options.seed, options.count, options.keep)
    for failure in report.failures:
        sys.stdout.write(f"{failure}\n")
    counts = ", ".join(f"{number:,} {name}" for name, number in sorted(report.counts.items()))
    sys.stdout.write(f"{report.counts.total():,} calls in {time.monotonic() - began:,.0f} s: {counts}\n")
    sys.exit(bool(report.failures))


# --- mutators ---------------------------------------------------------------------------------------------------

ODD: tuple[str, ...] = (
    "null", "true", "false", "0", "-1", "1", "2", "0.5", "-0.0", "1e308", "1e400", "NaN", "Infinity", "-Infinity",
    "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "1000000000000",
    "1" + "0" * 400, "1" * 5000, '""', '" "', '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', '"\\u009b31m"', '"../../x"',
    '"' + "x" * 10_000 + '"', "[]", "{}", "[[]]", '[1, "a", null]', '{"a": 1, "a": 2}', '{"": {}}',
    "[" * 50 + "]" * 50, "[" * 2_000 + "]" * 2_000, "[" * 100_000, '{"a":' * 100_000,
)  # fmt: skip
"""Values in JSON that hardly any reader expects."""


def mutate_json(random: random.Random, values: Any) -> bytes:
    """Return JSON that differs from `values` in one to three places, as text that need not be valid."""
    marks: dict[str, str] = {}
    values = json.loads(json.dumps(values))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        owner = random.choice(list(_owners(values)) or [None])
        if owner is None:
            break
        key = random.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        action = random.choice(("replace", "replace", "replace", "delete", "add", "swap", "scale"))
        if action == "delete":
            del owner[key]
        elif action == "add" and isinstance(owner, dict):
            owner[random.choice(("", "x", "\x1b[31m", str(key) + "s"))] = owner[key]
        elif action == "swap":
            other = random.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
            owner[key], owner[other] = owner[other], owner[key]
        elif action == "scale" and isinstance(owner[key], int | float):
            owner[key] = owner[key] * random.choice((-1, 2, 1000, 0.5, 2**31))
        else:
            mark = f"@{len(marks)}@"
            marks[json.dumps(mark)] = random.choice(ODD)
            owner[key] = mark
    text = json.dumps(values)
    for mark, odd in marks.items():
        text = text.replace(mark, odd)
    return text.encode() if random.random() < 0.9 else mutate_bytes(random, text.encode())


def _owners(values: Any) -> Iterator[Any]:
    """Yield all objects and arrays that hold something."""
    if isinstance(values, dict | list) and values:
        yield values
        for one in values.values() if isinstance(values, dict) else values:
            yield from _owners(one)


def mutate_bytes(random: random.Random, data: bytes) -> bytes:
    """Return data with some bytes changed, removed, repeated or put in."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at = random.randrange(len(out) + 1)
        match random.choice(("flip", "cut", "insert", "repeat", "truncate")):
            case "flip" if at < len(out):
                out[at] ^= 1 << random.randrange(8)
            case "cut":
                del out[at : at + random.choice((1, 10, 1000))]
            case "insert":
                out[at:at] = random.randbytes(random.choice((1, 8, 100)))
            case "repeat":
                out[at:at] = out[at : at + 100] * random.choice((1, 10))
            case "truncate" if random.random() < 0.3:
                del out[at:]
    return bytes(out)
