"""Runs of a tiny model on a text that a machine made up."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tinychat.store.models import read_info, read_weights
from tinychat.store.runs import RunFolder
from tinychat.train.__main__ import main
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import load_recipe

QUICK: dict[str, Any] = {"threads": 1, "precision": "f32"}
TINY: dict[str, Any] = QUICK | {"n_layer": 1, "d_model": 32, "context_length": 16, "batch_size": 8, "sample_tokens": 0}


def write_text(path: Path, words: Sequence[str], count: int, between: str = " ") -> Path:
    """So many of the words, in an order that is always the same."""
    draw = random.Random(3)
    path.write_text(between.join(draw.choice(words) for _ in range(count)), encoding="utf-8")
    return path


def make(text: Path | str, **fields: object) -> RunFolder:
    return prepare_run(load_recipe().merged({**TINY, "sources": [str(text)], **fields}))


def train(run: RunFolder) -> int:
    """Trains in this process; returns the exit code."""
    return main([str(run.path)])


def train_recipe(name: str, **fields: object) -> RunFolder:
    """A run by a recipe, on the text that the recipe has unless there are `sources`."""
    run = prepare_run(load_recipe(name).merged(QUICK | fields), recipe_name=None if "sources" in fields else name)
    assert train(run) == 0, list(run.events())[-1]
    return run


def events(run: RunFolder, *kinds: type) -> list[Any]:
    """What has happened, of some kinds or of all."""
    return [event for event in run.events() if not kinds or isinstance(event, kinds)]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_weights(read_info(folder))
