"""The loss over a whole split: each token but the first once."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinychat.model.config import ModelConfig
from tinychat.model.transformer import NO_TOKEN, Transformer
from tinychat.train.batches import Rows, find_fold, split_folds
from tinychat.train.evaluation import Evaluation, MixtureMeter, evaluate


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(13, context_length=8, n_layer=1, n_head=2, d_model=16, initialization="torch", dropout=0.5)
    )
    return model.train()


@torch.inference_mode()
def plain(model: Transformer, ids: np.ndarray, overlap: int) -> tuple[float, float]:
    """The loss and the accuracy by their definition, a window of 8 at a time."""
    losses, hits = [], []
    model.eval()
    known = 1  # tokens that need not be predicted any more
    while known < len(ids):
        start = max(0, known - 1 - overlap)
        window = torch.from_numpy(ids[start : start + 9].astype(np.int64))
        logits, targets = model(window[None, :-1])[0][known - 1 - start :], window[known - start :]
        losses.append(F.cross_entropy(logits, targets, reduction="none"))
        hits.append(logits.argmax(dim=-1) == targets)
        known += len(targets)
    model.train()
    return float(torch.cat(losses).mean()), float(torch.cat(hits).float().mean())


@pytest.mark.parametrize("overlap", [0, 3, 4])
@pytest.mark.parametrize("length", [2, 8, 9, 10, 12, 13, 14, 100, 1000])
def test_each_token_is_predicted_once_from_its_window(model: Transformer, length: int, overlap: int) -> None:
    ids = np.random.default_rng(0).integers(13, size=length).astype(np.uint16)
    result = evaluate(model, ids, overlap=overlap)
    assert result.tokens == length - 1
    assert (result.loss, result.accuracy) == pytest.approx(plain(model, ids, overlap), abs=1e-5)
    assert model.training


def test_windows_share_at_most_half_of_the_context(model: Transformer) -> None:
    ids = np.random.default_rng(0).integers(13, size=100).astype(np.uint16)
    assert evaluate(model, ids) == evaluate(model, ids, overlap=4)


def test_a_glance_looks_at_windows_spread_over_the_whole(model: Transformer) -> None:
    ids = np.random.default_rng(0).integers(13, size=801).astype(np.uint16)
    assert evaluate(model, ids, 10, overlap=0).tokens == 80
    assert evaluate(model, ids, 10).tokens == 8 + 9 * 4
    assert evaluate(model, ids, 10**6) == evaluate(model, ids)


def test_figures_follow_from_the_loss() -> None:
    result = Evaluation(math.log(4), 10)
    assert result.perplexity == pytest.approx(4)
    assert result.bits_per_character(2.0) == pytest.approx(1)


def test_what_was_trained_on_is_measured_by_the_counts_of_other_folds() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(5, context_length=8, n_layer=1, n_head=1, d_model=8, ngram_order=3))
    assert model.ngrams is not None
    ids = np.random.default_rng(0).integers(5, size=641).astype(np.uint16)
    model.ngrams.count(split_folds(ids))
    model.ngrams.strength.bias.data[3:] = 30.0  # nothing of what the context repeats
    known, honest = evaluate(model, ids), evaluate(model, ids, trained_on=True)
    assert known.loss < math.log(5) < honest.loss  # noise can be known by heart, and not foreseen
    rows = torch.from_numpy(ids[:-1].astype(np.int64)).view(80, 8)
    targets = torch.from_numpy(ids[1:].astype(np.int64)).view(80, 8)
    folds = torch.tensor([find_fold(8 * row, len(ids)) for row in range(80)])
    preceding = torch.cat((torch.full((1, 2), NO_TOKEN), rows[:-1, -2:]))
    loss = model.loss(rows, targets, folds=folds, preceding=preceding)
    assert honest.loss == pytest.approx(loss.item(), abs=1e-3)


@pytest.mark.parametrize("indexed", [True, False])
@torch.inference_mode()
def test_n_grams_see_the_text_before_a_window(indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not indexed:
        for name, tokens in (("MAX_INDEXED", 100), ("CHUNK", 50), ("CHUNK_REACH", 400)):
            monkeypatch.setattr(f"tinychat.train.batches.{name}", tokens)
    ids = np.random.default_rng(0).integers(5, size=333).astype(np.uint16)
    losses = []
    for context_length in (8, 37, 400):
        model = Transformer(
            ModelConfig(5, context_length=context_length, n_layer=1, n_head=1, d_model=8, ngram_order=3)
        )
        assert model.ngrams is not None
        model.ngrams.count(split_folds(ids[:200]))
        nn.init.constant_(model.ngrams.share.bias, -100.0)  # nothing of what the layers say, who see the window alone
        losses.append(evaluate(model, ids.copy()).loss)
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-5)


@torch.inference_mode()
def test_of_documents_the_loss_is_that_of_each_by_itself() -> None:
    torch.manual_seed(0)
    config = ModelConfig(13, context_length=8, n_layer=1, d_model=16, initialization="torch", n_encoder_layer=1)
    model = Transformer(config)
    ends = np.cumsum([3, 12, 2, 7, 5])
    ids = np.random.default_rng(0).integers(13, size=ends[-1]).astype(np.uint16)
    rows = Rows(ids, ends - [3, 12, 2, 7, 5], ends, (12,), source=Rows(ids[::-1].copy(), ends - 2, ends))
    losses = []
    for index in range(5):
        row, source = (torch.from_numpy(one.row(index).astype(np.int64))[None] for one in (rows, rows.source))
        logits = model(row[:, :-1][:, :8], encoder_output=model.encode(source))[0]
        losses.append(F.cross_entropy(logits, row[0, 1:][:8], reduction="none"))
    result = evaluate(model, rows)
    assert result.tokens == rows.count_predicted(8) == 3 + 8 + 2 + 7 + 5
    assert result.loss == pytest.approx(float(torch.cat(losses).mean()), abs=1e-5)
    assert evaluate(model, rows, 2).tokens == 2 + 8  # the shortest and the longest


def test_a_meter_tells_what_each_part_of_a_mixture_reaches_alone() -> None:
    torch.manual_seed(0)
    mixed = Transformer(ModelConfig(13, context_length=8, n_layer=1, n_head=2, d_model=16, ngram_order=3))
    assert mixed.ngrams is not None
    ids = np.tile(np.array([1, 2, 3, 4, 5], np.uint16), 20)
    mixed.ngrams.count(split_folds(ids))
    meter = MixtureMeter()
    result = evaluate(mixed, ids, meter=meter)
    assert result == evaluate(mixed, ids)
    assert meter.tokens == result.tokens == 99
    parts = meter.figures()
    assert sum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert parts["layers"]["loss"] == pytest.approx(math.log(13))  # nothing is learned yet
    assert parts["counts"]["loss"] < 1 < parts["layers"]["loss"]
    assert parts["matches"]["accuracy"] == 1
    assert 0.8 < parts["matches"]["found"] < 1
