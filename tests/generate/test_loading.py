"""Which engine serves a model, and what it says of why."""

from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.config.settings import Settings
from tinychat.generate.loading import MAX_NATIVE_PARAMETERS, device_of, open_engine
from tinychat.generate.native import build
from tinychat.store.models import read_info


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """As on a machine on which nothing is compiled yet; gives what is begun in the background."""
    begun: list[str] = []
    monkeypatch.setattr(build, "library_file", lambda: tmp_path / "kernel.so")
    monkeypatch.setattr(build, "start_compiling", lambda: begun.append("compiling"))
    build.load_library.cache_clear()
    return begun


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with one, as far as can be told without torch."""
    monkeypatch.setattr("tinychat.generate.loading.shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("gpu", "compiled")
def test_a_small_model_is_on_the_processor_beside_a_gpu(letters: Path) -> None:
    info = read_info(letters)
    assert open_engine(info, Settings(threads=1)).about.startswith("native engine")
    assert device_of(Settings(), info) == "cpu"


@pytest.mark.usefixtures("gpu", "compiled")
def test_what_looks_inside_a_model_on_the_processor_is_there_too(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    engine = open_engine(read_info(letters), Settings(threads=1))
    assert engine.about.startswith("native engine")
    assert len(engine.heads([1, 2, 3])) == read_info(letters).architecture["n_layer"]


@pytest.mark.usefixtures("gpu")
def test_a_gpu_serves_what_it_is_quicker_at_and_who_asks_for_it(letters: Path) -> None:
    info = read_info(letters)
    assert device_of(Settings(), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cuda"
    assert device_of(Settings(), replace(info, mode="translation")) == "cuda"
    assert device_of(Settings(engine="torch"), info) == "cuda"
    assert device_of(Settings(engine="native"), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cpu"
    assert device_of(Settings(device="cuda"), info) == "cuda"
    assert device_of(Settings(device="cpu"), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cpu"


@pytest.mark.usefixtures("compiled")
def test_on_a_processor_the_native_engine_serves(letters: Path) -> None:
    about = open_engine(read_info(letters), Settings(device="cpu", threads=1)).about
    assert about == f"native engine, f32, {build.levels_here()[0]}, 1 thread"


def test_torch_serves_where_it_is_asked_for(letters: Path) -> None:
    asked = Settings(device="cpu", engine="torch")
    assert open_engine(read_info(letters), asked).about == "torch engine, as it was asked for"


def test_torch_serves_while_the_native_engine_is_compiled(
    letters: Path, uncompiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "cc")
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, while the native one is compiled, for the next time"
    assert uncompiled == ["compiling"]


def test_torch_serves_where_there_is_no_compiler(
    letters: Path, uncompiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, as the native engine needs a C compiler"
    assert uncompiled == []


def test_torch_serves_what_the_native_engine_does_not_know(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.generate.native.engine.LIMITS", {"d_model": 1})
    monkeypatch.setattr(build, "is_compiled", lambda: True)
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, as the native engine takes models of a d_model up to 1"


def test_a_library_that_came_with_the_package_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shipped = tmp_path / build.shipped_file().name
    monkeypatch.setattr(build, "shipped_file", lambda: shipped)
    assert build.library_file().parent.name == "native"  # in the cache
    shipped.touch()
    assert build.library_file() == shipped
