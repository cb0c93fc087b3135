"""Compile the kernel and load it as a library: one file for all processors of a family.

It is compiled when the package is built or installed, which imports this file without any of the package's
dependencies; otherwise at first use, in the background, and kept in the user's cache.
"""

import contextlib
import ctypes
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.errors import GenerationError
from tinychat.untrusted import call_module

if TYPE_CHECKING:
    from filelock import FileLock

SOURCE = Path(__file__).with_name("kernel.c")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-pthread")
PLAIN: Mapping[str, Sequence[str]] = {"plain": ()}
LEVELS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "x86_64": {
        "avx512": ("-march=x86-64-v4", "-mtune=haswell", "-mavx512vnni", "-mprefer-vector-width=512"),
        "avx2": ("-march=x86-64-v3", "-mtune=haswell"),
        **PLAIN,
    },
    "aarch64": {"neon": ("-march=armv8.2-a+dotprod",), **PLAIN},
}
"""Instruction sets that the kernel is compiled for, by family of processors, the best first, each with its flags. Which
of them this processor has is found when the library is loaded.

From version 13 on, GCC's default tuning splits some fused multiply-adds and not others, so that a sum would depend on
how many rows and threads share the work; its tuning for Haswell does not."""
FAMILIES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
COMPILER_TIMEOUT = 600
"""Seconds: it needs ten on an idle machine, and minutes on a busy one, where a wheel without the kernel is no help."""


class Unavailable(GenerationError):
    """The native engine cannot run here; another one can."""


@functools.cache
def load_library() -> ctypes.CDLL:
    """Load the kernel, and compile it first if it has not been for this family of processors.

    Raises:
        Unavailable: there is no compiler, it fails, or its result cannot be loaded.
    """
    path = library_file()
    if not path.exists():
        compile_once(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"the native engine cannot be loaded: {error}") from None


def is_compiled() -> bool:
    """Return whether the library is there to be loaded."""
    return library_file().exists()


def start_compiling() -> None:
    """Compile the library in a process that outlives this one, unless another process compiles it; ignore failures."""
    from filelock import Timeout

    path = library_file()
    with contextlib.suppress(OSError, Timeout):
        with lock(path).acquire(blocking=False):
            pass  # nobody compiles: what starts below may find that somebody does by then
        command, environment = call_module(__spec__.name, str(path))
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip


def levels() -> Mapping[str, Sequence[str]]:
    """Return the levels of this machine's family of processors, with their compiler flags."""
    machine = platform.machine().lower()
    return LEVELS.get(FAMILIES.get(machine, machine), PLAIN)


def levels_here() -> list[str]:
    """Return the levels that were compiled and that this processor can run, the best first."""
    kernel = load_library()
    runs = {level: getattr(kernel, f"native_runs_here_{level}", None) for level in levels()}
    return [level for level, runs_here in runs.items() if runs_here is not None and runs_here()]


def library_file() -> Path:
    """Return the library's path: beside its source if the package brought it, else in the user's cache."""
    from tinychat.store import paths

    shipped = shipped_file()
    return shipped if shipped.exists() else paths.cache_folder() / "native" / shipped.name


def shipped_file() -> Path:
    """Return the library's path in a package, named by checksums of sources, flags and levels.

    `hashlib` would do, but loads 4 MB of OpenSSL.
    """
    sources = sorted(SOURCE.parent.glob("*.[ch]"))
    inputs = b"".join(source.read_bytes() for source in sources) + repr((FLAGS, levels())).encode()
    return SOURCE.with_name(f"kernel-{zlib.crc32(inputs):08x}{zlib.adler32(inputs):08x}.so")


def lock(path: Path) -> "FileLock":
    """Return the lock that a process holds while it compiles into the folder of `path`, not yet acquired.

    Raises:
        OSError: the folder cannot be created.
    """
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name("lock"))


def compile_once(path: Path, wait: bool = True) -> None:
    """Compile the kernel, unless another process has done so in the meantime or, without `wait`, is doing so.

    Raises:
        Unavailable: there is no compiler, it fails, or the folder cannot be written to.
    """
    from filelock import Timeout

    try:
        with lock(path).acquire(blocking=wait):
            for left in path.parent.glob("tmp*"):  # by a process that was killed: no other compiles now
                shutil.rmtree(left, ignore_errors=True)
            if not path.exists():
                compile_kernel(path)
    except Timeout:
        return
    except OSError as error:
        raise Unavailable(f"the native engine cannot be compiled: {error}") from None


def compile_kernel(path: Path, flags: Sequence[str] = FLAGS) -> None:
    """Compile the kernel for each level that the compiler knows, whole or not at all.

    Raises:
        Unavailable: there is no compiler, or it fails.
    """
    from concurrent.futures import ThreadPoolExecutor

    compiler = find_compiler()
    call = [*compiler.split(), *flags]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            objects = [f"{folder}/{level}.o" for level in levels()]
            calls = [
                [*call, f"-DLEVEL={level}", *special, "-c", str(SOURCE), "-o", target]
                for target, (level, special) in zip(objects, levels().items(), strict=True)
            ]
            with ThreadPoolExecutor() as pool:
                failures = list(pool.map(_run, calls))
            if failures[-1]:  # `plain` is required; an old compiler may lack the others
                raise Unavailable(f"the native engine cannot be compiled: {_first_line(failures[-1], compiler)}")
            good = [target for target, failure in zip(objects, failures, strict=True) if not failure]
            linked = f"{folder}/kernel.so"
            if failure := _run([*call, "-shared", *good, "-o", linked, "-lm"]):
                raise Unavailable(f"the native engine cannot be linked: {_first_line(failure, compiler)}")
            Path(linked).replace(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the native engine cannot be compiled: {error}") from None


def find_compiler() -> str:
    """Return the compiler that the environment variable `CC` names, or the first of `COMPILERS` that is installed.

    Raises:
        Unavailable: there is none.
    """
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise Unavailable("the native engine needs a C compiler", f"install one of {', '.join(COMPILERS)}")
    return compiler


def _run(call: Sequence[str]) -> str:
    """Run a compiler; return its error output if it failed, else nothing."""
    process = subprocess.run(
        call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=COMPILER_TIMEOUT, check=False
    )
    return (process.stderr or " ") if process.returncode else ""


def _first_line(output: str, compiler: str) -> str:
    return next(filter(str.strip, output.splitlines()), f"{compiler} failed")


if __name__ == "__main__":
    with contextlib.suppress(Unavailable):
        compile_once(Path(sys.argv[1]), wait=False)
