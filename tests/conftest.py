"""What all tests share: a home of their own, and the mirror of data sets where there is one."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

# Tests run side by side: threads that wait for each other on shared cores would take many times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")


SANITIZED_KERNEL = "SANITIZED_KERNEL"
"""names, in the environment, a library to take in the place of the one that is compiled"""


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The native engine's library, that of the package or compiled once; None where there is no compiler."""
    from tinychat.generate.native import build

    if SANITIZED_KERNEL in os.environ:
        return Path(os.environ[SANITIZED_KERNEL])
    if not any(map(shutil.which, build.COMPILERS)):
        return None
    if build.shipped_file().exists():
        return build.shipped_file()
    path = tmp_path_factory.getbasetemp().parent / build.shipped_file().name  # which those who test beside us share
    with FileLock(f"{path}.lock"):
        if not path.exists():
            build.compile_kernel(path)  # where that fails, the tests do
    return path


@pytest.fixture
def compiled(kernel: Path | None) -> Path:
    """The same, for tests that are about nothing else: on a machine without a compiler tinychat has torch alone."""
    if kernel is None:
        pytest.skip("there is no C compiler")
    return kernel


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, kernel: Path | None) -> Path:
    """A user's data folder that starts empty, but for the native engine; no setting leaks in from the machine."""
    folder = tmp_path_factory.mktemp("home")
    if kernel is not None:
        (folder / "cache" / "native").mkdir(parents=True)
        (folder / "cache" / "native" / kernel.name).symlink_to(kernel)
    for name in list(os.environ):
        if name.startswith("TINYCHAT_") and name != "TINYCHAT_MIRROR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TINYCHAT_HOME", str(folder))
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a mirror the tests that need it are left out, and the last lines say so."""
    if os.environ.get("TINYCHAT_MIRROR"):
        return
    needing = [item for item in items if item.get_closest_marker("mirror")]
    if needing:
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)
        config.stash[LEFT_OUT] = len(needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were left out for want of data."""
    count = terminalreporter.config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(f"{count} tests left out: they need TINYCHAT_MIRROR, a folder of data sets")


LEFT_OUT = pytest.StashKey[int]()


def save_small_model(folder: Path, text: str, kind: str, specials: list[str], mode: Any, **facts: Any) -> Path:
    """A model of one small layer with fixed weights, for what matters is not what it says."""
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
    about = (config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo(folder.name, folder, mode, *about, **facts), model.state_dict(), tokenizer)
    return folder


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a completion model over a few characters."""
    folder = tmp_path_factory.mktemp("models") / "letters"
    return save_small_model(folder, "abcdefghijklmnopqrstuvwxyz \n", "char", [], mode="completion")


@pytest.fixture(scope="session")
def chatter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a chat model of word pieces."""
    from tinychat.tokenizer.chat_template import ChatTemplate

    folder = tmp_path_factory.mktemp("models") / "chatter"
    specials = ["<|end|>", "<|user|>", "<|assistant|>"]
    facts = {"mode": "chat", "template": ChatTemplate(), "settings": {"temperature": 0.7}}
    return save_small_model(folder, "hello there, how are you? fine, thanks! " * 5, "wordpiece", specials, **facts)
