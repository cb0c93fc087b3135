"""Every value of every field of a recipe either trains or is refused with an error of ours: none crashes."""

import itertools
import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training import make, train

from tinychat.config.option import Option
from tinychat.corpus.corpus import TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.errors import TinychatError
from tinychat.events import Ended, Failed
from tinychat.tokenizer.token_cache import encode_corpus
from tinychat.tokenizer.training import train_tokenizer
from tinychat.train.batches import Batches, split_folds
from tinychat.train.evaluation import evaluate
from tinychat.train.planner import Machine, make_plan
from tinychat.train.recipe import MODEL_FIELDS, RECIPE_FIELDS, load_recipe
from tinychat.train.sizes import TextFacts
from tinychat.train.step import Learner

TEXT = "the quick brown fox jumps over the lazy dog, and the dog sleeps.\n" * 12
SMALL: dict[str, Any] = {"n_layer": 1, "d_model": 16, "context_length": 16, "batch_size": 2, "steps": 2, "threads": 1,
                         "precision": "f32"}  # fmt: skip
HIGHEST = {
    "n_layer": 3, "n_encoder_layer": 2, "n_head": 64, "n_kv_head": 64, "d_model": 256, "d_head": 64, "d_ff": 2048,
    "vocab_size": 300, "batch_size": 64, "stride": 5000, "grad_accum_steps": 50, "warmup_steps": 1000,
    "evaluate_every": 50,
    "sample_every": 50, "sample_tokens": 300, "steps": 3, "epochs": 0.5, "weight_decay": 1e6, "learning_rate": 1e4,
    "embedding_learning_rate": 1e4, "grad_clip": 1e9, "threads": 3, "rotary_base": 1e12,
}  # fmt: skip
"""Where the bound is far beyond what a test can train, or there is none, the highest value tried."""
TEXTS = {
    "mode": ["completion", "chat", "translation"],
    "tokenizer": ["char", "word", "whitespace", "wordpiece", "bpe", "no such"],
    "column": ["", "x"], "field": ["", "x"], "sample_prompt": [[], [""], ["the", "\x00", "a" * 100]],
    "description": ["", "for tests"], "window_pattern": ["", "L", "GL", "LLG", "x"],
}  # fmt: skip
OTHERS = {
    "sources", "texts",  # every run has one of them
    "from_model",  # needs a model
    "minutes",  # by the clock
    "compile", "devices", "strategy",  # take long, and are tested by themselves
}  # fmt: skip
PAIRS = {
    "norm": ["none", "rmsnorm"], "qk_norm": [True], "n_head": [1, 3, 16], "n_kv_head": [2],
    "position": ["rotary", "learned"],
    "ngram_order": [0, 1, 5], "bigram_embedding": [True], "d_model": [1, 15], "context_length": [1, 2],
    "tie_embeddings": [True], "head_bias": [True], "n_layer": [0], "norm_position": ["post"],
    "previous_token_embeddings": [16], "d_head": [6], "attention_window": [1], "parallel": [True],
}  # fmt: skip


def values_of(option: Option) -> list[Any]:
    """The bounds of a field, or all of its choices."""
    if option.choices:
        return list(option.choices)
    if option.name in TEXTS:
        return TEXTS[option.name]
    if option.kind is bool:
        return [True, False]
    low = option.low if option.low is not None else 1e-9 if option.above is not None else 0
    high = HIGHEST.get(option.name, option.high)
    return [low, high] if high is not None else [low]


@cache
def text() -> tuple[np.ndarray[Any, Any], TextFacts]:
    corpus = TextCorpus("text", "completion", [InlineTexts((TEXT,), "text")])
    tokenizer = train_tokenizer("char", corpus)
    ids = encode_corpus(corpus, tokenizer, Path("ids")).ids
    return np.array(ids), TextFacts("text", len(TEXT), 1, len(ids), tokenizer.vocab_size, "char")


def learn(**fields: Any) -> float:
    """Plan, take two steps and evaluate, in memory; return the loss."""
    ids, facts = text()
    recipe = load_recipe().merged({**SMALL, **fields, "device": "cpu"})
    plan = make_plan(recipe, facts, Machine("cpu", "f32", 1), lambda config, batch_size: 0.1, None, 0.0)
    train_ids, val = ids[: plan.train_tokens], ids[plan.train_tokens :]
    learner = Learner(plan.config, plan.recipe, None, split_folds(train_ids) if plan.config.ngram_order else None)
    batches = Batches(train_ids, plan.config.context_length, plan.batch_size, recipe.seed, stride=recipe.stride)
    for step in range(2):
        learner.step(batches.batch(step), 1.0, step)
    return evaluate(learner.model, val, 2).loss


def attempt(fields: dict[str, Any]) -> None:
    with suppress(TinychatError):
        assert not math.isnan(learn(**fields))


def architectures() -> Iterator[dict[str, Any]]:
    for name in MODEL_FIELDS:
        yield from ({name: value} for value in values_of(RECIPE_FIELDS[name]))


def test_unigram_counts_train() -> None:
    assert learn(ngram_order=1) < 3.3  # 30 characters: ln 30 = 3.4


@pytest.mark.slow
def test_every_architecture_at_its_bounds_trains_or_is_refused() -> None:
    for fields in architectures():
        attempt(fields)


@pytest.mark.slow
def test_every_pair_of_choices_trains_or_is_refused() -> None:
    for (one, its), (other, others) in itertools.combinations(PAIRS.items(), 2):
        for first, second in itertools.product(its, others):
            attempt({one: first, other: second})


@pytest.mark.slow
@pytest.mark.long
def test_every_other_field_at_its_bounds_trains_or_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    walked = {name: values_of(option) for name, option in RECIPE_FIELDS.items() if name not in {*OTHERS, *MODEL_FIELDS}}
    for name, values in walked.items():
        for value in values:
            fields = {**SMALL, "sample_tokens": 4, **({"steps": None} if name == "epochs" else {}), name: value}
            try:
                run = make(tmp_path / "text.txt", **fields)
            except TinychatError:
                continue
            code = train(run)
            last = list(run.events())[-1]
            assert isinstance(last, Ended if code == 0 else Failed), (name, value, last)
            assert code == 0 or "met an error" not in last.problem, (name, value, last)
