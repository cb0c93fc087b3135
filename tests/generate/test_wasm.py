"""The kernel of exported pages: it is that of today's sources, and compiling it again gives the same bytes."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from tinychat.errors import GenerationError
from tinychat.generate.native import wasm


def test_the_kernel_of_pages_was_compiled_from_todays_sources() -> None:
    content = len(wasm.SECTION).to_bytes() + wasm.SECTION + wasm.fingerprint()
    assert wasm.TARGET.read_bytes().endswith(content), "kernel.c or what it includes has changed: run `make wasm`"


def test_the_compiler_is_the_pinned_one() -> None:
    pyproject = tomllib.loads(Path(__file__, "../../../pyproject.toml").resolve().read_text())
    assert pyproject["project"]["optional-dependencies"]["wasm"] == [f"ziglang=={wasm.ZIG}"]


def test_another_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wasm, "version", lambda name: "0.1")
    with pytest.raises(GenerationError, match=rf"ziglang {wasm.ZIG}, and 0\.1 is installed"):
        wasm.compile_wasm()


@pytest.mark.slow
def test_compiling_the_kernel_again_gives_the_same_bytes() -> None:
    try:
        found = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found != wasm.ZIG:
        pytest.skip(f"ziglang {wasm.ZIG} is not installed: pip install -e .[wasm]")
    assert wasm.compile_wasm() == wasm.TARGET.read_bytes()
