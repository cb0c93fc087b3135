"""Some mutated input of each kind, with fixed seeds; alone, the fuzzers run for as long as one likes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import harness
from harness import Case, Outcome, Report

SHARED = {"harness", "sanitizers", "test_fuzz"}
FUZZERS = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - SHARED)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", FUZZERS)
def test_no_mutated_input_breaks_a_promise(name: str, tmp_path: Path) -> None:
    fuzzer = Path(__file__).with_name(f"{name}.py")
    call = [sys.executable, str(fuzzer), "--count", "40", "--keep", str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("codes_and_seconds", "wrong"),
    [
        ([(0, 0.1)], ""),
        ([(0, 7.0), (0, 0.1)], ""),
        ([(-9, 10.1), (-9, 10.1), (1, 4.9)], ""),
        ([(0, 7.0), (-9, 10.1), (0, 6.0)], "it took 6.0 s, 0.1 s of them on the processor"),
        ([(-9, 10.1)] * 3, "it was killed after 10.1 s"),
        ([(0, 7.0), (-11, 0.1)], "ended by signal SIGSEGV"),
        ([(-9, 0.1)], "ended by signal SIGKILL"),
        ([(70, 7.0)], "exit code 70"),
    ],
)
def test_only_slow_calls_are_made_again(
    codes_and_seconds: list[tuple[int, float]], wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcomes = [Outcome(code, seconds, 0.1, 0, b"", b"tinychat: no\n") for code, seconds in codes_and_seconds]
    monkeypatch.setattr(harness, "call_once", lambda case: outcomes.pop(0))
    report = Report()
    assert report.add(Case("a case", [], tmp_path)) == bool(wrong)
    assert wrong in "".join(report.failures)
    assert not outcomes


def test_a_call_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(harness, "GRACE", 0.05)
    outcome = harness.call_once(Case("a case", [], tmp_path, run=lambda _: time.sleep(60) or 0))
    assert outcome.code == -signal.SIGKILL
    assert outcome.was_killed
