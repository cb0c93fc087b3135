"""The choice of an engine, and the reason that it states."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tinychat.config.settings import Settings
from tinychat.generate.engine import Engine
from tinychat.generate.loading import (
    MAX_NATIVE_PARAMETERS,
    EngineLoader,
    announced_waits,
    device_of,
    is_loading,
    open_engine,
)
from tinychat.generate.native import build
from tinychat.generate.torch_engine import TorchEngine
from tinychat.store.models import read_info


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Simulate a machine without a compiled kernel; return a list of the compilations that start."""
    begun: list[str] = []
    monkeypatch.setattr(build, "library_file", lambda: tmp_path / "kernel.so")
    monkeypatch.setattr(build, "start_compiling", lambda: begun.append("compiling"))
    build.load_library.cache_clear()
    return begun


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with a GPU, as far as is known without torch."""
    monkeypatch.setattr("tinychat.generate.loading.shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("gpu", "compiled")
def test_a_small_model_runs_on_the_cpu_of_a_machine_with_a_gpu(letters: Path) -> None:
    info = read_info(letters)
    assert open_engine(info, Settings(threads=1)).about.startswith("native engine")
    assert device_of(Settings(), info) == "cpu"


@pytest.mark.usefixtures("gpu", "compiled")
def test_the_reference_engine_of_a_model_on_the_cpu_runs_there_too(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    engine = open_engine(read_info(letters), Settings(threads=1))
    assert engine.about.startswith("native engine")
    assert len(engine.heads([1, 2, 3])) == read_info(letters).architecture["n_layer"]


@pytest.mark.usefixtures("gpu")
def test_large_models_run_on_a_gpu_and_others_if_requested(letters: Path) -> None:
    info = read_info(letters)
    assert device_of(Settings(), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cuda"
    assert device_of(Settings(), replace(info, mode="translation")) == "cpu"
    assert device_of(Settings(engine="torch"), info) == "cuda"
    assert device_of(Settings(engine="native"), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cpu"
    assert device_of(Settings(device="cuda"), info) == "cuda"
    assert device_of(Settings(device="cpu"), replace(info, parameters=MAX_NATIVE_PARAMETERS + 1)) == "cpu"


@pytest.mark.usefixtures("compiled")
def test_the_native_engine_is_the_default_on_a_cpu(letters: Path) -> None:
    about = open_engine(read_info(letters), Settings(device="cpu", threads=1)).about
    assert about == f"native engine, f32, {build.levels_here()[0]}, 1 thread"


def test_the_torch_engine_runs_if_requested(letters: Path) -> None:
    requested = Settings(device="cpu", engine="torch")
    assert open_engine(read_info(letters), requested).about == "torch engine, as it was asked for"


def test_threads_are_one_for_a_small_model_and_as_torch_chooses_for_others(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = read_info(letters)

    def threads(**settings: int) -> int:
        engine = open_engine(info, Settings(engine="torch", device="cpu", **settings))
        assert isinstance(engine, TorchEngine)
        return engine.threads

    monkeypatch.setattr("tinychat.generate.torch_engine.DEFAULT_THREADS", 5)
    assert (threads(), threads(threads=3)) == (1, 3)
    monkeypatch.setattr("tinychat.generate.loading.MAX_SINGLE_THREAD_PARAMETERS", 0)
    assert (threads(), threads(threads=3)) == (5, 3)


def test_the_torch_engine_runs_while_the_native_one_is_compiled(
    letters: Path, uncompiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "cc")
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, while the native one is compiled, for the next time"
    assert uncompiled == ["compiling"]


def test_the_torch_engine_runs_without_a_compiler(
    letters: Path, uncompiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, as the native engine needs a C compiler"
    assert uncompiled == []


def test_the_torch_engine_runs_models_that_the_native_one_does_not_support(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinychat.generate.native.engine.LIMITS", {"d_model": 1})
    monkeypatch.setattr(build, "is_compiled", lambda: True)
    engine = open_engine(read_info(letters), Settings(device="cpu"))
    assert engine.about == "torch engine, as the native engine takes models of a d_model up to 1"


def test_a_library_in_the_package_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shipped = tmp_path / build.shipped_file().name
    monkeypatch.setattr(build, "shipped_file", lambda: shipped)
    assert build.library_file().parent.name == "native"  # in the cache
    shipped.touch()
    assert build.library_file() == shipped


# --- waiting for what loads in a thread ---


@pytest.fixture
def go() -> threading.Event:
    """An event that lets a loader load."""
    return threading.Event()


def make_loader(letters: Path, go: threading.Event) -> EngineLoader:
    def load() -> Engine:
        assert go.wait(60)
        return open_engine(read_info(letters), Settings(device="cpu", engine="torch"))

    return EngineLoader(load, "torch")


def test_an_interrupted_wait_leaves_the_loading_alone(letters: Path, go: threading.Event) -> None:
    loader = make_loader(letters, go)

    def interrupt(name: str) -> NoReturn:
        raise KeyboardInterrupt(name)  # as a signal that comes while the main thread waits

    with announced_waits(interrupt), pytest.raises(KeyboardInterrupt, match="torch"):
        assert loader.engine
    assert is_loading()
    assert not loader.wait(0)
    go.set()
    assert loader.engine is loader.engine


def test_a_wait_is_announced_once_and_only_in_the_thread_that_asks_for_it(letters: Path, go: threading.Event) -> None:
    loader, announced = make_loader(letters, go), list[str]()
    stops = iter([False, False, True])

    @contextmanager
    def announce(name: str) -> Iterator[Callable[[], None]]:
        announced.append(name)
        yield lambda: announced.append("…")
        announced.append("over")

    with announced_waits(announce):
        thread = threading.Thread(target=lambda: loader.wait_until(go.is_set))
        thread.start()
        assert not loader.wait_until(lambda: next(stops))
        assert announced == ["torch", "…", "…", "over"]
        go.set()
        thread.join()
        assert loader.wait(60)
        assert loader.engine
    assert announced == ["torch", "…", "…", "over"]


def test_what_has_failed_to_load_fails_again(letters: Path) -> None:
    def fail() -> NoReturn:
        raise ValueError("no")

    loader = EngineLoader(fail, "torch")
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            assert loader.engine
