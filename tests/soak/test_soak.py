"""Some rounds of each soak; alone, they run for as long as one likes."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_killed_runs_lose_nothing() -> None:
    soak = Path(__file__).with_name("kills.py")
    done = subprocess.run([sys.executable, str(soak), "--count", "12"], capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 kills" in done.stdout


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_commands_that_open_a_model_while_it_is_replaced_get_one_version() -> None:
    soak = Path(__file__).with_name("replacements.py")
    done = subprocess.run([sys.executable, str(soak), "--count", "60"], capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_long_session_does_not_grow() -> None:
    soak = Path(__file__).with_name("repl.py")
    done = subprocess.run([sys.executable, str(soak), "--count", "60"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 prompts" in done.stdout
