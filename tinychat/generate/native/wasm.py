"""Compile the kernel to WebAssembly, for pages in a browser: `make wasm`.

The result is part of the package, so that an export needs no compiler. It is of the kind `plain`, with vectors of four
numbers, and computes in one thread. `zig cc`, a release of which comes from PyPI, makes the same bytes anywhere.
"""

import hashlib
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import tinychat
from tinychat.atomic import atomic_write
from tinychat.errors import GenerationError
from tinychat.generate.native.build import SOURCE

ZIG = "0.17.1"
"""Version of the package `ziglang`: another one may make other bytes."""
MEMORY = "wasm_memory.c"
"""The allocator, beside the kernel."""
TARGET = Path(tinychat.__file__).parent / "formats" / "html" / "kernel.wasm"
EXPORTS = (
    "__stack_pointer", "malloc", "free", "trim", "native_new_model_plain", "native_new_sequence_plain",
    "native_extend_plain", "native_probabilities_plain", "native_score_plain", "native_set_drafting_plain",
    "native_add_encoder_plain", "native_set_source_plain", "native_reserve_plain", "native_count_work_plain",
)  # fmt: skip
FLAGS = (
    "-target", "wasm32-wasi-musl", "-mcpu=generic+simd128", "-mexec-model=reactor", "-std=gnu11", "-O3", "-g0",
    "-DLEVEL=plain", "-D_WASI_EMULATED_MMAN", "-lwasi-emulated-mman",
    "-Wl,--import-symbols",  # madvise, which the page passes in
    "-Wl,--strip-all", "-Wl,-z,stack-size=16384",  # until the page gives it a larger one
    *(f"-Wl,--export={name}" for name in EXPORTS),
)  # fmt: skip
SECTION = b"tinychat.sources"
"""Name of the custom section at the end of the file: it holds the fingerprint of what it was compiled from."""


def fingerprint() -> bytes:
    """Return the SHA-256 of the sources, the flags and the compiler's version."""
    sources = b"".join(source.read_bytes() for source in sorted(SOURCE.parent.glob("*.[ch]")))
    return hashlib.sha256(sources + repr((ZIG, FLAGS)).encode()).digest()


def compile_wasm() -> bytes:
    """Compile the kernel and return the file.

    Raises:
        GenerationError: the pinned compiler is not installed, or it fails.
    """
    try:
        found = version("ziglang")
    except PackageNotFoundError:
        found = ""
    if found != ZIG or find_spec("ziglang") is None:
        problem = f"the kernel is compiled with ziglang {ZIG}, and {found or 'none'} is installed"
        raise GenerationError(problem, f"pip install ziglang=={ZIG}")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "kernel.wasm")
        call = [sys.executable, "-m", "ziglang", "cc", *FLAGS, SOURCE.name, MEMORY, "-o", str(target)]
        process = subprocess.run(call, cwd=SOURCE.parent, capture_output=True, text=True, check=False)
        if process.returncode:
            raise GenerationError(f"the kernel cannot be compiled: {process.stderr.strip()[:500]}")
        content = len(SECTION).to_bytes() + SECTION + fingerprint()
        return target.read_bytes() + b"\0" + len(content).to_bytes() + content


if __name__ == "__main__":
    atomic_write(TARGET, compile_wasm())
