"""The kernel as a library: compiled once for this processor, kept in the user's cache."""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tinychat.errors import GenerationError
from tinychat.store import places

SOURCE = Path(__file__).with_name("kernel.c")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-pthread")
PATIENCE = 120
"""seconds that a compiler may take"""


class Unavailable(GenerationError):
    """There is no native engine here; another one serves."""


@functools.cache
def load_library() -> ctypes.CDLL:
    """The kernel, compiled if it has not been for this processor.

    Raises:
        Unavailable: there is no compiler, it fails, or what it made cannot be loaded.
    """
    path = library_file()
    if not path.exists():
        compile_kernel(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"the native engine cannot be loaded: {error}") from None


def is_compiled() -> bool:
    """Whether it can be loaded at once."""
    return library_file().exists()


def start_compiling() -> None:
    """Compiles it in a process of its own, which goes on when this one ends; whatever comes of that."""
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


def library_file() -> Path:
    """Where it lies: a file for each source and processor."""
    made_of = SOURCE.read_bytes() + " ".join(FLAGS).encode() + _processor().encode()
    return places.cache_folder() / "native" / f"kernel-{hashlib.sha256(made_of).hexdigest()[:16]}.so"


def compile_kernel(path: Path) -> None:
    """Compiles the kernel; the file is there whole or not at all.

    Raises:
        Unavailable: there is no compiler, or it fails.
    """
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise Unavailable("the native engine needs a C compiler", f"install one of {', '.join(COMPILERS)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent, suffix=".so")
        os.close(handle)
        try:
            command = [*compiler.split(), *FLAGS, str(SOURCE), "-o", made, "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
            Path(made).replace(path)
        finally:
            with contextlib.suppress(OSError):
                Path(made).unlink()
    except subprocess.CalledProcessError as error:
        first = next(iter(error.stderr.splitlines()), f"{compiler} failed")
        raise Unavailable(f"the native engine cannot be compiled: {first}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the native engine cannot be compiled: {error}") from None


def _processor() -> str:
    """What tells this processor from one for which other instructions would be chosen."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        told = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
        return platform.machine() + "\n".join(dict.fromkeys(told))
    return f"{platform.machine()} {platform.processor()}"


if __name__ == "__main__":
    with contextlib.suppress(Unavailable):
        load_library()
