"""Fixtures of all tests: an isolated home folder, the native engine's library and two small models."""

import gc
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

# Tests may run in parallel, where threads waiting for each other on shared cores would be many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Each of the hundreds of processes that the tests start would compile the package anew, and pytest all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A background job of a shell ignores Ctrl-C and Ctrl-\, and so would all programs that its tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

SANITIZED_KERNEL = "SANITIZED_KERNEL"
"""Environment variable with the path of a library to test instead of the compiled one."""
DESELECTED = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def kernel(pytestconfig: pytest.Config) -> Path | None:
    """The native engine's library, from the package or compiled once for all runs; None without a compiler."""
    from tinychat.generate.native import build

    if SANITIZED_KERNEL in os.environ:
        return Path(os.environ[SANITIZED_KERNEL])
    if not any(map(shutil.which, build.COMPILERS)):
        return None
    if build.shipped_file().exists():
        return build.shipped_file()
    assert pytestconfig.cache is not None
    path = pytestconfig.cache.mkdir("native") / build.shipped_file().name  # the name holds a hash of the sources
    with FileLock(f"{path}.lock"):
        if not path.exists():
            build.compile_kernel(path)
    return path


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Function that returns the folder of a generated data set, which is made once for all processes of a test run."""
    from tinychat.corpus.registry import fetch

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "generated"

    def fetch_once(name: str) -> Path:
        folder.mkdir(exist_ok=True)
        with FileLock(folder / f"{name}.lock"):
            return fetch(name, cache=folder)

    return fetch_once


@pytest.fixture
def compiled(kernel: Path | None) -> Path:
    """The native engine's library; without a compiler the test is skipped."""
    if kernel is None:
        pytest.skip("there is no C compiler")
    return kernel


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of folders not made yet; pytest itself would look through all folders for the next free number."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch, kernel: Path | None) -> Path:
    """A data folder that holds only the native engine; no setting leaks in from the environment."""
    folder = next(homes)
    folder.mkdir()
    if kernel is not None:
        (folder / "cache" / "native").mkdir(parents=True)
        (folder / "cache" / "native" / kernel.name).symlink_to(kernel)
    for name in list(os.environ):
        if name.startswith("TINYCHAT_") and name != "TINYCHAT_MIRROR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TINYCHAT_HOME", str(folder))
    return folder


def pytest_configure() -> None:
    """Give the examples of property tests all the time that they need: on a busy machine each may take seconds."""
    from hypothesis import HealthCheck, settings

    gc.disable()  # until all is collected, see below
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but never look for it among the libraries and the tests: that takes long."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need the mirror of data sets if there is none."""
    if os.environ.get("TINYCHAT_MIRROR"):
        return
    deselected = [item for item in items if item.get_closest_marker("mirror")]
    if deselected:
        items[:] = [item for item in items if item not in deselected]
        config.hook.pytest_deselected(items=deselected)
        config.stash[DESELECTED] = len(deselected)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests were deselected because there is no mirror."""
    count = terminalreporter.config.stash.get(DESELECTED, 0)
    if count:
        terminalreporter.write_line(f"{count} tests left out: they need TINYCHAT_MIRROR, a folder of data sets")


def save_small_model(folder: Path, text: str, kind: str, specials: list[str], mode: Any, **info: Any) -> Path:
    """Save a model of one small layer with reproducible random weights, and return its folder."""
    import torch

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import ModelInfo, save_model
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    tokenizer = Tokenizer(train_vocabulary(kind, [text], 300, specials))
    config = ModelConfig(tokenizer.vocab_size, context_length=32, n_layer=1, d_model=16, initialization="torch")
    torch.manual_seed(0)
    model = Transformer(config)
    required = (config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo(folder.name, folder, mode, *required, **info), model.state_dict(), tokenizer)
    return folder


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a completion model with a vocabulary of letters."""
    folder = tmp_path_factory.mktemp("models") / "letters"
    return save_small_model(folder, "abcdefghijklmnopqrstuvwxyz \n", "char", [], mode="completion")


@pytest.fixture(scope="session")
def chatter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a chat model with a vocabulary of word pieces."""
    from tinychat.tokenizer.chat_template import ChatTemplate

    folder = tmp_path_factory.mktemp("models") / "chatter"
    specials = ["<|end|>", "<|user|>", "<|assistant|>"]
    info = {"mode": "chat", "template": ChatTemplate(), "settings": {"temperature": 0.7}}
    return save_small_model(folder, "hello there, how are you? fine, thanks! " * 5, "wordpiece", specials, **info)
