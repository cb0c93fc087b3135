"""The tests of the native engine once more, with memory, operations and the races of threads watched."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinychat.generate.native.build import Unavailable

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

from sanitizers import MEMORY, THREADS, sanitized_environment

TESTS = {MEMORY: "", THREADS: "threads or crowd or architecture"}
"""Which tests of the engine are run: no other than these start a second thread, without which nothing races."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("sanitizers", TESTS)
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("gcc"), reason="needs gcc and its sanitizers")
def test_the_kernel_touches_nothing_that_is_not_its_own(sanitizers: str) -> None:
    try:
        environment = sanitized_environment(sanitizers)
    except Unavailable as error:
        pytest.skip(f"gcc has no sanitizers here: {error}")
    call = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "not slow", "-p", "no:cacheprovider"]
    call += ["-k", TESTS[sanitizers], str(Path(__file__).with_name("test_native_engine.py"))]
    done = subprocess.run(call, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
