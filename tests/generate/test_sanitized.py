"""The tests of the native engine once more, with memory, operations and the races of threads watched."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinychat.generate.native import build
from tinychat.generate.native.build import Unavailable, compile_kernel

SANITIZERS = {"address,undefined": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
TESTS = {"address,undefined": "", "thread": "threads or crowd or architecture"}
"""Which tests of the engine are run: no other than these start a second thread, without which nothing races."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("sanitizers", SANITIZERS)
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("gcc"), reason="needs gcc and its sanitizers")
def test_the_kernel_touches_nothing_that_is_not_its_own(
    sanitizers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel.so"
    flags = ["-std=gnu11", "-O1", "-g", "-fPIC", "-pthread"]
    flags += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setattr(build, "COMPILER_TIMEOUT", 600)
    try:
        compile_kernel(kernel, flags)
    except Unavailable as error:
        pytest.skip(f"gcc has no sanitizers here: {error}")
    environment = os.environ | {
        "SANITIZED_KERNEL": str(kernel),
        "LD_PRELOAD": " ".join(map(_runtime, SANITIZERS[sanitizers])),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python lets the system take back what it has at its end
    }
    call = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "not slow", "-p", "no:cacheprovider"]
    call += ["-k", TESTS[sanitizers]]
    done = subprocess.run(
        [*call, str(Path(__file__).with_name("test_native_engine.py"))],
        env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def _runtime(name: str) -> str:
    told = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return told.stdout.strip()
