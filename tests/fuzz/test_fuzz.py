"""Some mutated input of each kind, with fixed seeds; alone, the fuzzers run for as long as one likes."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZERS = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in ("harness", "test_fuzz"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_no_mutated_input_breaks_a_promise(name: str, tmp_path: Path) -> None:
    fuzzer = Path(__file__).with_name(f"{name}.py")
    call = [sys.executable, str(fuzzer), "--count", "40", "--keep", str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
