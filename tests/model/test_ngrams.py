"""N-grams and copies: against counting and comparing by hand, what is left out, and what a file may hold."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as functional
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tinychat.errors import ModelError
from tinychat.model.config import LONGEST_MATCH, ModelConfig, longest_ngram
from tinychat.model.ngrams import COPY_BLOCK, COUNT_BUFFERS, CopyMechanism, NGrams, TokenContext
from tinychat.model.transformer import LAYERS_LOSS_WEIGHT, Transformer

SIZE, ORDER, WIDTH = 5, 4, 8
COPY_SIZE = 4


Ids = npt.NDArray[np.integer]


def make(folds: Sequence[list[int] | Ids], order: int = ORDER, size: int = SIZE) -> NGrams:
    """Counted, with strengths that differ by length and by how many tokens follow."""
    ngrams = NGrams(ModelConfig(size, d_model=WIDTH, ngram_order=order))
    ngrams.count([np.array(fold, dtype=np.int64) for fold in folds])
    with torch.no_grad():
        ngrams.strength.bias.copy_(torch.linspace(-1, 1, order))
        ngrams.variety.copy_(torch.linspace(0.5, 1, order))
    return ngrams


def ask(ngrams: NGrams, ids: list[int], fold: int | None = None) -> torch.Tensor:
    """The probabilities of what follows each of the ids, where the layers have nothing to say."""
    known = torch.tensor([[-1] * ngrams.longest + ids])
    folds = None if fold is None else torch.tensor([fold])
    return ngrams.counted_logprobs(known, torch.zeros(1, len(ids), WIDTH), folds)[0].exp()


def expected(ngrams: NGrams, folds: list[list[int]], context: list[int], left_out: int | None = None) -> list[float]:
    """The recursion of the paper, over counts in a dictionary, of the contexts met at least twice in all folds."""
    probabilities = [1 / SIZE] * SIZE
    for length in range(min(ngrams.longest, len(context)) + 1):
        tail = context[len(context) - length :]
        met, following = 0, Counter[int]()
        for number, text in enumerate(folds):
            positions = [
                position for position in range(len(text) - length + 1) if text[position : position + length] == tail
            ]
            met += len(positions)
            if number != left_out:
                following.update(text[position + length] for position in positions if position + length < len(text))
        if length and met < 2:
            break
        alpha = math.exp(
            ngrams.strength.bias[length].item() + ngrams.variety[length].item() * math.log1p(len(following))
        )
        total = sum(following.values())
        probabilities = [(following[v] + alpha * p) / (total + alpha) for v, p in enumerate(probabilities)]
    return probabilities


texts = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=40)


@settings(max_examples=60)
@given(st.lists(texts, min_size=2, max_size=3), st.data())
def test_probabilities_are_those_of_counting_by_hand(folds: list[list[int]], data: st.DataObject) -> None:
    ngrams = make(folds)
    text = data.draw(st.sampled_from(folds))[:8] if data.draw(st.booleans()) else data.draw(texts)[:8]
    left_out = data.draw(st.sampled_from([None, *range(len(folds))]))
    got = ask(ngrams, text, left_out)
    torch.testing.assert_close(got.sum(-1), torch.ones(len(text)))
    for position in range(len(text)):
        want = expected(ngrams, folds, text[: position + 1], left_out)
        torch.testing.assert_close(got[position], torch.tensor(want), atol=1e-5, rtol=1e-4)


@settings(max_examples=40, deadline=None)
@given(texts, st.lists(texts, min_size=2, max_size=3))
def test_counts_of_two_texts_are_the_higher_of_both(first: list[int], folds: list[list[int]]) -> None:
    def count_again(ngrams: NGrams, earlier: NGrams) -> NGrams:
        counts = {name: getattr(earlier, name) for name in COUNT_BUFFERS}
        ngrams.count([np.array(fold, dtype=np.int64) for fold in folds], counts)
        return ngrams

    def entries(ngrams: NGrams) -> dict[tuple[int, int], int]:
        rows = ngrams.contexts.repeat_interleave(ngrams.widths.long())
        return dict(zip(zip(rows.tolist(), ngrams.tokens.tolist(), strict=True), ngrams.counts.tolist(), strict=True))

    old, new = make([first]), make(folds)
    united = count_again(make(folds), old)
    before, now = entries(old), entries(new)
    assert entries(united) == {entry: max(before.get(entry, 0), now.get(entry, 0)) for entry in {*before, *now}}
    assert united.contexts.tolist() == sorted({*old.contexts.tolist(), *new.contexts.tolist()})
    again = count_again(make(folds), new)  # of the same text, a fold is left out whole
    for ngrams in (again, new):
        assert ngrams.fold_tables is not None
    for table, same in ((again.table, new.table), (again.fold_tables, new.fold_tables)):
        assert all(one.equal(other) for one, other in zip(table.buffers(), same.buffers(), strict=True))


def test_layers_counts_and_matches_are_mixed_in_shares() -> None:
    torch.manual_seed(0)
    ngrams = make([[0, 1, 2, 0, 1, 3, 0, 1, 2], [4, 4, 0, 1, 2]])
    history = torch.tensor([[0, 1, 0, 3]])
    known, positions = nn.functional.pad(history, (ngrams.longest, 0), value=-1), torch.arange(4)
    x, logits = torch.randn(1, 4, WIDTH), torch.randn(1, 4, SIZE)
    with torch.no_grad():
        for weight in (ngrams.share.weight, ngrams.trust.weight, ngrams.worth):
            nn.init.normal_(weight)
    layers, matches = ngrams.share(x)[0].unbind(-1)
    trusted = (ngrams.trust(x) * ngrams.counted_logprobs(known, x)).softmax(-1)[0]
    mixed = ngrams(logits, x, TokenContext(known, history, positions))[0].exp()
    for position in range(4):
        ratios = [layers[position].exp(), torch.tensor(1.0)]
        said = [logits[0, position].softmax(-1), trusted[position]]
        if position == 2:  # the 0 stood there before, and 1 followed it
            ratios.append((matches[position] + ngrams.worth[1]).exp())
            said.append(torch.eye(SIZE)[1])
        want = sum(ratio * probabilities for ratio, probabilities in zip(ratios, said, strict=True)) / sum(ratios)
        torch.testing.assert_close(mixed[position], want)


def test_layers_learn_to_predict_alone_as_well_which_their_loss_does_not_show() -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3, initialization="torch"
    )
    model = Transformer(config)
    assert model.ngrams is not None
    text = torch.randint(SIZE, (2, 9))
    ids, targets = text[:, :-1], text[:, 1:]
    model.ngrams.count([np.random.default_rng(0).integers(0, SIZE, 200)])
    trained = model.loss(ids, targets)
    assert trained.item() == pytest.approx(model.eval().loss(ids, targets).item())
    (both,) = torch.autograd.grad(trained, [model.head.weight], retain_graph=True)
    mixed = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    (together,) = torch.autograd.grad(mixed, [model.head.weight])
    handle = model.ngrams.register_forward_hook(lambda module, given, made: given[0])  # what the layers say, alone
    (alone,) = torch.autograd.grad(model.loss(ids, targets), [model.head.weight])
    handle.remove()
    torch.testing.assert_close(both, together + LAYERS_LOSS_WEIGHT * alone)


def test_a_text_with_too_many_contexts_keeps_the_commonest(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.random.default_rng(0).integers(0, SIZE, 3000)
    everything = make([ids])
    monkeypatch.setattr("tinychat.model.ngrams.LARGEST_TABLE", 60 * SIZE)
    fewer = make([ids])
    assert 10 < len(fewer.contexts) <= 60 < len(everything.contexts)
    assert set(fewer.contexts.tolist()) < set(everything.contexts.tolist())


def test_the_layers_learn_how_to_weigh_the_counts() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3))
    assert model.ngrams is not None
    text = np.random.default_rng(0).integers(0, SIZE, 200)
    ids, targets = torch.from_numpy(text[None, :8]), torch.from_numpy(text[None, 1:9])
    with torch.no_grad():
        model.ngrams.share.bias[1] = -100.0  # nothing of what matches
    nothing_counted = model.loss(ids, targets).item()
    assert nothing_counted == pytest.approx(math.log(SIZE))
    model.ngrams.count([text[:100], text[100:]])
    honest = model.loss(ids, targets, folds=torch.tensor([0]))
    assert model.loss(ids, targets).item() < honest.item()
    honest.backward()
    for name, weight in model.ngrams.named_parameters():
        assert weight.grad is not None
        assert weight.grad.abs().sum() > 0 or "matches" in name or name == "worth"


@pytest.mark.parametrize("strength", [-200.0, 200.0])
def test_no_strength_is_too_much(strength: float) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3))
    assert model.ngrams is not None
    model.ngrams.count([np.arange(100) % 3, np.arange(100) % 3])
    with torch.no_grad():
        model.ngrams.strength.bias.fill_(strength)  # the shorter contexts say nothing, or everything
    ids = torch.tensor([[0, 1, 2, 0, 1, 2, 0, 4]])
    model.loss(ids[:, :-1], ids[:, 1:], folds=torch.tensor([0])).backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


def test_counts_are_saved_and_loaded_with_the_weights() -> None:
    config = ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3)
    model, other = Transformer(config).eval(), Transformer(config).eval()
    assert model.ngrams is not None
    model.ngrams.count([np.arange(100) % 3])
    other.load_state_dict(model.state_dict())
    ids = torch.tensor([[0, 1, 2, 0]])
    assert torch.equal(other(ids), model(ids))
    assert not torch.allclose(model(ids), Transformer(config).eval()(ids))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_model_on_a_gpu_takes_the_counts_of_a_file() -> None:
    config = ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3)
    model, other = Transformer(config), Transformer(config).cuda()
    assert model.ngrams is not None
    assert other.ngrams is not None
    model.ngrams.count([np.arange(100) % 3])
    for _ in range(2):  # new ones, and those that it has
        other.load_state_dict(model.state_dict())
    assert other.ngrams.counts.cpu().equal(model.ngrams.counts)
    assert other.ngrams.table.counts.is_cuda


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
    config = ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=2)
    model = Transformer(config)
    assert model.ngrams is not None
    model.ngrams.count([np.arange(100) % 3])
    with pytest.raises(RuntimeError, match="ngrams"):
        Transformer(config).load_state_dict({**model.state_dict(), f"ngrams.{name}": torch.tensor(values)})


def test_the_highest_order_still_has_numbers_for_its_contexts() -> None:
    for size in (2, 65, 256, 1024):
        order = longest_ngram(size)
        ids = np.full(4 * order, size - 1)
        ngrams = make([ids], order, size)
        assert ask(ngrams, ids.tolist())[-1, size - 1] > 0.5
        with pytest.raises(ModelError, match="ngram_order"):
            ModelConfig(size, ngram_order=order + 1)


def expected_copies(copier: CopyMechanism, ids: list[int]) -> tuple[list[float], int]:
    """What follows the last of the ids, by comparing tails."""
    weights, lengths = [0.0] * COPY_SIZE, [0]
    for position in range(len(ids) - 1):
        same = 0
        while same < LONGEST_MATCH and position - same >= 0 and ids[position - same] == ids[len(ids) - 1 - same]:
            same += 1
        lengths.append(same)
        if same:
            distance = len(ids) - 1 - position
            weights[ids[position + 1]] += math.exp(same * copier.worth.item()) * distance ** -copier.distance.item()
    total = sum(weights) or 1.0
    return [weight / total for weight in weights], max(lengths)


@settings(max_examples=60)
@given(st.lists(st.integers(0, COPY_SIZE - 1), min_size=1, max_size=40), st.integers(0, 5), st.data())
def test_earlier_places_weigh_by_what_is_the_same(ids: list[int], behind: int, data: st.DataObject) -> None:
    copier = CopyMechanism()
    with torch.no_grad():
        copier.worth.fill_(0.7)
        copier.distance.fill_(0.3)
    history = torch.tensor([ids + [0] * behind])  # what stands behind is not looked at
    first = data.draw(st.integers(0, len(ids) - 1))  # as in decoding: not all places are asked for
    probabilities, lengths = copier(history, torch.arange(first, len(ids)), COPY_SIZE)
    assert probabilities.shape == (1, len(ids) - first, COPY_SIZE)
    for position in range(first, len(ids)):
        want, longest = expected_copies(copier, ids[: position + 1])
        assert lengths[0, position - first] == longest
        torch.testing.assert_close(probabilities[0, position - first], torch.tensor(want), atol=1e-5, rtol=1e-4)


def test_many_places_are_looked_at_in_blocks() -> None:
    copier = CopyMechanism()
    history = torch.randint(COPY_SIZE, (2, 2 * COPY_BLOCK + 7), generator=torch.Generator().manual_seed(0))
    positions = torch.arange(history.shape[1])
    whole, lengths = copier._copy(history, positions.unsqueeze(0), COPY_SIZE)
    got, got_lengths = copier(history, positions, COPY_SIZE)
    torch.testing.assert_close(got, whole)
    assert torch.equal(got_lengths, lengths)


@pytest.mark.parametrize("behind", [2, -1])  # what stands behind a row's last token: anything, or nothing yet
def test_rows_may_be_asked_for_different_places(behind: int) -> None:
    copier, history = CopyMechanism(), torch.tensor([[0, 1, 0, behind, behind], [3, 3, 3, 3, 3]])
    for first in (0, 1):  # one place, and several at a time
        positions = torch.tensor([[1, 2], [3, 4]])[:, first:]
        probabilities, lengths = copier(history, positions, COPY_SIZE)
        assert probabilities[:, -1].argmax(-1).tolist() == [1, 3]
        assert lengths[:, -1].tolist() == [1, 4]


def test_a_copy_mechanism_takes_numbers_without_a_dimension() -> None:
    copier = CopyMechanism()
    copier.load_state_dict({"worth": torch.tensor(0.7), "distance": torch.tensor(0.3)})
    assert copier.state_dict() == {"worth": torch.tensor([0.7]), "distance": torch.tensor([0.3])}
