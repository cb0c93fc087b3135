"""Compiled layers give the same losses; without a compiler, one notice says so. The layers' share waits for them."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from training import make, write_text

from tinychat.events import Ended, Noticed, Stepped
from tinychat.model.config import ModelConfig
from tinychat.store.runs import RunFolder
from tinychat.train.batches import Batch
from tinychat.train.recipe import load_recipe
from tinychat.train.step import SHARE_HELD, Learner

FIELDS = {"n_layer": 2, "dropout": 0.1, "steps": 12, "evaluate_every": 6}


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


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++"))), reason="no C++ compiler here")
def test_compiled_layers_give_the_same_losses(text: Path) -> None:
    _, plain = train(text, compile=False)
    run, compiled = train(text, compile=True)
    assert [event.text for event in compiled if isinstance(event, Noticed) and "compiled" in event.text] == [
        "the layers are compiled first: about half a minute"
    ]
    assert losses(compiled) == pytest.approx(losses(plain), abs=1e-4)
    assert load_recipe(run.recipe_file).compile is True


@pytest.mark.slow
def test_training_continues_without_a_compiler(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    _, events = train(text, compile=True)
    (notice,) = [event.text for event in events if isinstance(event, Noticed) and "cannot be" in event.text]
    assert notice.startswith("the layers cannot be compiled, so steps take a little longer: ")
    assert "compiler" in notice
    assert "\n" not in notice
    assert isinstance(events[-1], Ended)


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_share_of_layers_that_know_nothing_yet_is_held(goes_on: bool) -> None:
    config = ModelConfig(8, context_length=16, n_layer=1, n_head=1, d_model=16, ngram_order=2)
    recipe = load_recipe().merged({"device": "cpu", "precision": "f32", "from": "other" if goes_on else None})
    ids = np.random.default_rng(0).integers(0, 8, (2, 4, 17))
    start = Learner(config, recipe, None, list(ids[0])).model.state_dict() if goes_on else None
    learner = Learner(config, recipe, None, list(ids[0]), start)
    rows = torch.from_numpy(ids[1])
    batch = Batch(rows[:, :-1], rows[:, 1:], torch.arange(4))

    def moved_by_a_step(progress: float) -> tuple[bool, bool]:
        """Whether shares and strengths did."""
        before = {name: values.clone() for name, values in learner.model.state_dict().items()}
        learner.step(batch, 1.0, progress=progress)
        after = learner.model.state_dict()
        assert not after["ngrams.correction.weight"].equal(before["ngrams.correction.weight"])
        names = ("ngrams.share.bias", "ngrams.strength.bias")
        share, strength = (not after[name].equal(before[name]) for name in names)
        return share, strength

    assert moved_by_a_step(SHARE_HELD / 2) == (goes_on, True)
    assert moved_by_a_step(SHARE_HELD) == (True, True)
