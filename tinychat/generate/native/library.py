"""The kernel as a library: compiled once for all processors of a family.

That is done where the package is built or installed, which imports this file without any of what the package needs;
or else at first use, in the background, and kept in the user's cache.
"""

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
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinychat.errors import GenerationError

SOURCE = Path(__file__).with_name("kernel.c")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-pthread")
PLAIN: Mapping[str, Sequence[str]] = {"plain": ()}
LEVELS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "x86_64": {
        "avx512": ("-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"),
        "avx2": ("-march=x86-64-v3",),
        **PLAIN,
    },
    "aarch64": {"neon": ("-march=armv8.2-a+dotprod",), **PLAIN},
}
"""By family of processors: the kinds that the kernel is compiled for, the best first, each with its flags. Which of
them runs here is found when it is loaded."""
FAMILIES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
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


def levels() -> Mapping[str, Sequence[str]]:
    """Those of this machine."""
    machine = platform.machine().lower()
    return LEVELS.get(FAMILIES.get(machine, machine), PLAIN)


def levels_here() -> list[str]:
    """Those that were compiled and that this processor can run, the best first."""
    kernel = load_library()
    runs = {level: getattr(kernel, f"native_runs_here_{level}", None) for level in levels()}
    return [level for level, runs_here in runs.items() if runs_here is not None and runs_here()]


def library_file() -> Path:
    """Where it lies, or will: beside its source, where the package came with it, or in the user's cache."""
    from tinychat.store import places

    shipped = shipped_file()
    return shipped if shipped.exists() else places.cache_folder() / "native" / shipped.name


def shipped_file() -> Path:
    """Where a package has it: a file for each source, and family of processors."""
    sources = sorted(SOURCE.parent.glob("*.[ch]"))
    made_of = b"".join(source.read_bytes() for source in sources) + repr((FLAGS, levels())).encode()
    return SOURCE.with_name(f"kernel-{hashlib.sha256(made_of).hexdigest()[:16]}.so")


def compile_kernel(path: Path, flags: Sequence[str] = FLAGS) -> None:
    """Compiles the kernel for each level that the compiler knows; the file is there whole or not at all.

    Raises:
        Unavailable: there is no compiler, or it fails.
    """
    compiler = find_compiler()
    call = [*compiler.split(), *flags]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            objects = [f"{folder}/{level}.o" for level in levels()]
            running = [
                _start([*call, f"-DLEVEL={level}", *special, "-c", str(SOURCE), "-o", made])
                for made, (level, special) in zip(objects, levels().items(), strict=True)
            ]
            failures = [_finish(process) for process in running]
            if failures[-1]:  # without what is plain there is nothing; of the others an old compiler may know less
                raise Unavailable(f"the native engine cannot be compiled: {_first_line(failures[-1], compiler)}")
            good = [made for made, failure in zip(objects, failures, strict=True) if not failure]
            linked = f"{folder}/kernel.so"
            failure = _finish(_start([*call, "-shared", *good, "-o", linked, "-lm"]))
            if failure:
                raise Unavailable(f"the native engine cannot be linked: {_first_line(failure, compiler)}")
            Path(linked).replace(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the native engine cannot be compiled: {error}") from None


def find_compiler() -> str:
    """What the environment variable `CC` names, or the first that is here.

    Raises:
        Unavailable: there is none.
    """
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise Unavailable("the native engine needs a C compiler", f"install one of {', '.join(COMPILERS)}")
    return compiler


def _start(call: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _finish(process: "subprocess.Popen[str]") -> str | None:
    """What went wrong."""
    try:
        _, told = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return (told or " ") if process.returncode else None


def _first_line(told: str, compiler: str) -> str:
    return next(filter(str.strip, told.splitlines()), f"{compiler} failed")


if __name__ == "__main__":
    with contextlib.suppress(Unavailable):
        load_library()
