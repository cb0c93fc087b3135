"""Recipes that follow known work: as many parameters as are counted by hand, and a few steps that learn."""

import os
from pathlib import Path

import pytest
from training import QUICK, events, train_recipe

from tinychat.events import Ended, Evaluated, Planned
from tinychat.model.config import make_diagram
from tinychat.store.models import read_info
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import load_recipe

# Letters as in the books: vocabulary, context, width, feed-forward, layers.
BY_HAND = {
    # embedding; a layer: four matrices with biases, two with biases, two norms; head
    "shakespeare": 65 * 128 + 2 * (4 * (128 * 128 + 128) + 128 * 512 + 512 + 512 * 128 + 128 + 2 * 2 * 128)
    + 128 * 65 + 65,
    # embedding, places; a layer: the same with three matrices; the last norm; head
    "guide": 65 * 128 + 128 * 128
    + 2 * (4 * (128 * 128 + 128) + 2 * (128 * 341 + 341) + 341 * 128 + 128 + 2 * 2 * 128)
    + 2 * 128 + 128 * 65 + 65,
    # no biases; the head is the embedding
    "nanogpt-cpu": 65 * 128 + 64 * 128 + 4 * (4 * 128 * 128 + 2 * 128 * 512 + 2 * 128) + 128,
    "nanogpt": 65 * 384 + 256 * 384 + 6 * (4 * 384 * 384 + 2 * 384 * 1536 + 2 * 384) + 384,
    "makemore": 27 * 64 + 16 * 64 + 4 * (4 * (64 * 64 + 64) + 64 * 256 + 256 + 256 * 64 + 64 + 2 * 2 * 64)
    + 2 * 64 + 64 * 27,
}  # fmt: skip

FIELDS = QUICK | {"validation_fraction": 0.005, "sample_tokens": 8, "warmup_steps": 0}

GUIDE = {
    "learned positions, norm before, SwiGLU": ({}, 0),
    "fixed positions": ({"position": "sinusoidal"}, -128 * 128),
    "norm after": ({"norm_position": "post"}, -2 * 128),
    "ReLU": (
        {"feed_forward": "relu"},
        2 * (128 * 512 + 512 + 512 * 128 - 2 * (128 * 341 + 341) - 341 * 128),
    ),
}


def train(name: str, **fields: object) -> RunFolder:
    return train_recipe(name, **FIELDS | fields)


@pytest.mark.parametrize("name", BY_HAND)
def test_it_has_the_parameters_that_are_counted_by_hand(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.vocab_size is not None
    assert make_diagram(recipe.model_config(recipe.vocab_size)).parameters == BY_HAND[name]


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields", "most", "least"),
    [
        ("shakespeare", {"steps": 60, "batch_size": 16, "evaluate_every": 30}, 2.75, 0.2),
        ("nanogpt-cpu", {"steps": 60, "evaluate_every": 30, "learning_rate": 1e-3}, 2.8, 0.2),
        ("nanogpt", {"steps": 4, "batch_size": 2, "evaluate_every": 4, "learning_rate": 3e-4}, 3.9, 0.0),
        ("makemore", {"steps": 150, "evaluate_every": 75}, 2.75, 0.2),
    ],
)
def test_it_learns_from_its_own_data(name: str, fields: dict[str, object], most: float, least: float) -> None:
    run = train(name, **fields)
    (planned,), (ended,) = events(run, Planned), events(run, Ended)
    assert planned.parameters == BY_HAND[name]
    assert ended.loss < most
    assert ended.accuracy >= least


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.parametrize("variant", GUIDE)
def test_what_the_guide_varies_is_a_flag_each(variant: str) -> None:
    fields, more = GUIDE[variant]
    run = train("guide", steps=25, evaluate_every=25, **fields)
    assert events(run, Planned)[0].parameters == BY_HAND["guide"] + more
    assert events(run, Evaluated)[-1].loss < 3.5  # 4.17 before anything is learned
    architecture = read_info(run.model).architecture
    assert {name: architecture[name] for name in fields} == fields


@pytest.mark.mirror
@pytest.mark.slow
def test_an_epoch_of_the_plays_has_a_window_every_25_characters() -> None:
    run = train("shakespeare", epochs=0.01, batch_size=64)
    windows = (int(1_115_394 * 0.995) - 1 - 100) // 25
    assert events(run, Planned)[0].steps == -(-windows // (64 * 100))
    assert events(run, Ended)[0].prompts == ("ROMEO: ",) * 3


@pytest.mark.mirror
@pytest.mark.slow
def test_names_are_made_one_at_a_time_and_most_are_new() -> None:
    run = train("makemore", steps=150, evaluate_every=75, sample_prompt=["", "a", "b", "c", "d"], sample_tokens=16)
    names = set(Path(os.environ["TINYCHAT_MIRROR"], "names", "names.txt").read_text(encoding="utf-8").split())
    (ended,) = events(run, Ended)
    made = [prompt + sample for prompt, sample in zip(ended.prompts, ended.samples, strict=True)]
    assert all(name.isalpha() and name.islower() for name in made)
    assert sum(name not in names for name in made) > len(made) / 2
