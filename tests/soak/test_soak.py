"""Some rounds of each soak; alone, they run for as long as one likes."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")
@pytest.mark.parametrize(
    ("name", "count", "done"),
    [
        pytest.param("kills", 4, "4 kills", id="killed runs lose nothing"),
        pytest.param("replacements", 60, ", 0 refused", id="who opens a model while it is replaced gets one version"),
        pytest.param("repl", 60, "60 prompts", id="a long session does not grow"),
        pytest.param("server", 800, "800 requests", id="a server loses no request and does not grow"),
    ],
)
def test_soak(name: str, count: int, done: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), "--count", str(count)]
    soak = subprocess.run(command, capture_output=True, text=True, timeout=1100)
    assert soak.returncode == 0, soak.stdout + soak.stderr
    assert done in soak.stdout
