"""Compiled layers give the same losses; without a compiler, one notice says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from training import make, write_text

from tinychat.events import Ended, Noticed, Stepped
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import load_recipe

FIELDS = {"n_layer": 2, "dropout": 0.1, "steps": 12, "evaluate_every": 6}

pytestmark = pytest.mark.slow


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", ["la", "lu", "mi", "mo"], 2000)


def train(text: Path, **fields: object) -> tuple[RunFolder, list]:
    run = make(text, **FIELDS, **fields)
    subprocess.run([sys.executable, "-m", "tinychat.train", str(run.path)], check=True, timeout=300)
    return run, list(run.events())


def losses(events: list) -> list[float]:
    found = [event.loss for event in events if isinstance(event, Stepped | Ended)]
    return [found[0], found[-1]]


@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++"))), reason="no C++ compiler here")
def test_compiled_layers_give_the_same_losses(text: Path) -> None:
    _, plain = train(text, compile=False)
    run, compiled = train(text, compile=True)
    assert [event.text for event in compiled if isinstance(event, Noticed) and "compiled" in event.text] == [
        "the layers are compiled first: about half a minute"
    ]
    assert losses(compiled) == pytest.approx(losses(plain), abs=1e-4)
    assert load_recipe(run.recipe_file).compile is True


def test_training_continues_without_a_compiler(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    _, events = train(text, compile=True)
    (notice,) = [event.text for event in events if isinstance(event, Noticed) and "cannot be" in event.text]
    assert "compiler" in notice
    assert "\n" not in notice
    assert isinstance(events[-1], Ended)
