"""N-grams: against counting by hand, what is left out, and what a file may hold."""

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.errors import ModelError
from tinychat.model.config import ModelConfig, longest_ngram
from tinychat.model.ngrams import NGrams
from tinychat.model.transformer import Transformer

SIZE, ORDER = 5, 4


def make(ids: list[int] | npt.NDArray[np.integer], order: int = ORDER, size: int = SIZE) -> NGrams:
    """Counted, with strengths that differ by length and by how many tokens follow."""
    ngrams = NGrams(ModelConfig(size, d_model=8, ngram_order=order))
    ngrams.count(np.array(ids))
    with torch.no_grad():
        ngrams.concentration.copy_(torch.linspace(-1, 1, 2 * order).view(order, 2))
    return ngrams


def known(ids: list[int], order: int = ORDER) -> torch.Tensor:
    return torch.tensor([[-1] * (order - 1) + ids])


def expected(ngrams: NGrams, text: list[int], context: list[int], left_out: int | None = None) -> list[float]:
    """The recursion of the paper, over counts in a dictionary, of the contexts met at least twice."""
    probabilities = [1 / SIZE] * SIZE
    for length in range(min(ngrams.longest, len(context)) + 1):
        tail = context[len(context) - length :]
        following = Counter(
            text[place + length] for place in range(len(text) - length) if text[place : place + length] == tail
        )
        met = sum(text[place : place + length] == tail for place in range(len(text) - length + 1))
        if length and met < 2:
            break
        a, b = ngrams.concentration[length].tolist()
        alpha = math.exp(a + b * math.log1p(len(following)))
        if left_out is not None and following[left_out]:
            following[left_out] -= 1
        total = sum(following.values())
        probabilities = [(following[v] + alpha * p) / (total + alpha) for v, p in enumerate(probabilities)]
    return probabilities


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=60), st.data())
def test_probabilities_are_those_of_counting_by_hand(text: list[int], data: st.DataObject) -> None:
    ngrams = make(text)
    asked = data.draw(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6))
    if data.draw(st.booleans()):
        asked = text[: len(asked)]
    got = ngrams(known(asked)).exp()[0]
    torch.testing.assert_close(got.sum(-1), torch.ones(len(asked)))
    for place in range(len(asked)):
        want = expected(ngrams, text, asked[: place + 1])
        torch.testing.assert_close(got[place], torch.tensor(want), atol=1e-5, rtol=1e-4)


def test_what_is_left_out_is_not_counted() -> None:
    text = [0, 1, 2, 0, 1, 2, 0, 1, 3, 0, 1, 2]
    ngrams = make(text)
    targets = torch.tensor([[*text[1:], -100]])
    got = ngrams(known(text), targets).exp()[0]
    for place in range(len(text) - 1):
        want = expected(ngrams, text, text[: place + 1], left_out=text[place + 1])
        torch.testing.assert_close(got[place], torch.tensor(want), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(got[-1], ngrams(known(text)).exp()[0, -1])  # where nothing follows, nothing is left out


def test_a_text_with_too_many_contexts_keeps_the_commonest(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.random.default_rng(0).integers(0, SIZE, 3000)
    everything = make(ids)
    monkeypatch.setattr("tinychat.model.ngrams.LARGEST_TABLE", 60 * SIZE)
    fewer = make(ids)
    assert 10 < len(fewer.contexts) <= 60 < len(everything.contexts)
    assert set(fewer.contexts.tolist()) < set(everything.contexts.tolist())


def test_the_layers_learn_how_far_to_trust_the_counts() -> None:
    """The counts leave out what is learned from, in training alone, and only of a text that was counted."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(SIZE, context=8, n_layer=1, n_head=1, d_model=8, ngram_order=3))
    assert model.ngrams is not None
    text = np.random.default_rng(0).integers(0, SIZE, 200)
    ids = torch.from_numpy(text[None, :8])
    targets = torch.from_numpy(text[None, 1:9])
    nothing_counted = model.loss(ids, targets).item()
    assert nothing_counted == pytest.approx(math.log(SIZE))
    model.ngrams.count(text)
    in_training = model.loss(ids, targets)
    model.eval()
    assert model.loss(ids, targets).item() < in_training.item()
    in_training.backward()
    for weight in (model.ngrams.concentration, model.ngrams.trust.bias):
        assert weight.grad is not None
        assert weight.grad.abs().sum() > 0


def test_counts_are_saved_and_loaded_with_the_weights() -> None:
    config = ModelConfig(SIZE, context=8, n_layer=1, n_head=1, d_model=8, ngram_order=3)
    model, other = Transformer(config).eval(), Transformer(config).eval()
    assert model.ngrams is not None
    model.ngrams.count(np.arange(100) % 3)
    other.load_state_dict(model.state_dict())
    ids = torch.tensor([[0, 1, 2, 0]])
    assert torch.equal(other(ids), model(ids))
    assert not torch.allclose(model(ids), Transformer(config).eval()(ids))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tokens", [0, 1, 99]),
        ("tokens", [0, 1]),
        ("widths", [-1, 1, 1, 1]),
        ("counts", [-5, 1, 1]),
        ("contexts", [0]),
        ("counts", [0.5, 1.0, 1.0]),
    ],
)
def test_counts_that_cannot_be_are_refused(name: str, values: list[float]) -> None:
    config = ModelConfig(SIZE, context=8, n_layer=1, n_head=1, d_model=8, ngram_order=2)
    model = Transformer(config)
    assert model.ngrams is not None
    model.ngrams.count(np.arange(100) % 3)
    with pytest.raises(RuntimeError, match="ngrams"):
        Transformer(config).load_state_dict({**model.state_dict(), f"ngrams.{name}": torch.tensor(values)})


def test_the_highest_order_still_has_numbers_for_its_contexts() -> None:
    for size in (2, 65, 256, 1024):
        order = longest_ngram(size)
        ids = np.full(4 * order, size - 1)
        ngrams = make(ids, order, size)
        assert ngrams(known(ids.tolist(), order)).exp()[0, -1, size - 1] > 0.5
        with pytest.raises(ModelError, match="ngram_order"):
            ModelConfig(size, ngram_order=order + 1)
