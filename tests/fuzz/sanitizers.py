"""The kernel compiled with the sanitizers of gcc, once for all tests and fuzzers of a checkout."""

import hashlib
import os
import subprocess
from pathlib import Path
from unittest.mock import patch

from filelock import FileLock

from tinychat.generate.native import build

KERNEL = "SANITIZED_KERNEL"
"""Environment variable with the path of the compiled kernel."""
MEMORY, THREADS = "address,undefined", "thread"
RUNTIMES = {MEMORY: ("libasan.so", "libubsan.so"), THREADS: ("libtsan.so",)}
FOLDER = Path(__file__).parents[2] / ".pytest_cache" / "d" / "sanitized"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:quarantine_size_mb=16",  # Python leaves it to the system to clean up
    "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1",
}


def sanitized_environment(sanitizers: str) -> dict[str, str]:
    """Return the environment of a process that loads the kernel with some sanitizers, which is compiled if need be.

    Raises:
        Unavailable: If gcc has none of them here.
    """
    flags = ["-std=gnu11", "-O1", "-g", "-fPIC", "-pthread", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    digest = hashlib.sha256(f"{build.shipped_file().name} {flags}".encode()).hexdigest()
    kernel = FOLDER / f"{digest[:16]}.so"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kernel}.lock"):
        if not kernel.exists():
            _compile(kernel, flags, build.levels_here()[: 1 if sanitizers == THREADS else None])
    runtimes = [
        subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in RUNTIMES[sanitizers]
    ]
    return os.environ | OPTIONS | {KERNEL: str(kernel), "LD_PRELOAD": " ".join(runtimes)}


def _compile(kernel: Path, flags: list[str], levels: list[str]) -> None:
    """Compile some instruction sets; threads work alike in all."""
    here = {level: options for level, options in build.levels().items() if level in levels}
    with patch.object(build, "levels", lambda: here), patch.dict(os.environ, CC="gcc"):
        build.compile_kernel(kernel, flags)
