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
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig
from tinychat.model.context_index import ContextIndex, recent_followers
from tinychat.model.ngram_counts import Level, count_levels, number_cells
from tinychat.model.ngrams import COUNT_BUFFERS, NGrams, TokenContext
from tinychat.model.transformer import LAYERS_LOSS_WEIGHT, Transformer
from tinychat.store.packed_counts import longest_ngram, pack_counts, unpack_counts

SIZE, ORDER, WIDTH = 5, 4, 8


Ids = npt.NDArray[np.integer]


def make(folds: Sequence[list[int] | Ids], order: int = ORDER, size: int = SIZE) -> NGrams:
    """Counted, with strengths that differ by length and by how many tokens follow, and recency weights."""
    ngrams = NGrams(ModelConfig(size, d_model=WIDTH, ngram_order=order))
    ngrams.count([np.array(fold, dtype=np.int64) for fold in folds])
    levels = order + len(CONTEXT_LENGTHS)
    with torch.no_grad():
        ngrams.strength.bias.copy_(torch.linspace(-1, 1, levels))
        ngrams.variety.copy_(torch.linspace(0.5, 1, levels))
        ngrams.recency.copy_(torch.linspace(0, -1, MAX_RECENT).expand(len(CONTEXT_LENGTHS), -1))
    return ngrams


def context_of(ngrams: NGrams, ids: list[int]) -> TokenContext:
    """The context of the predictions after each of the ids."""
    return TokenContext(torch.tensor([[-1] * ngrams.longest + ids]), torch.tensor([ids]), torch.arange(len(ids)))


def ask(ngrams: NGrams, ids: list[int], fold: int | None = None) -> torch.Tensor:
    """The probabilities of what follows each of the ids, by the counts of the training text alone."""
    folds = None if fold is None else torch.tensor([fold])
    nothing = torch.zeros(1, len(ids), ngrams.vocab_size), torch.zeros(1, len(ids), WIDTH)
    return ngrams.components(*nothing, context_of(ngrams, ids), folds)[0][0, :, 1]


def correct(ngrams: NGrams, level: int, counts: Counter[int], different: int, shorter: list[float]) -> list[float]:
    """A step of the recursion of the paper."""
    alpha = math.exp(ngrams.strength.bias[level].item() + ngrams.variety[level].item() * math.log1p(different))
    total = sum(counts.values())
    return [(counts[v] + alpha * p) / (total + alpha) for v, p in enumerate(shorter)]


def expected(ngrams: NGrams, folds: list[list[int]], context: list[int], left_out: int | None = None) -> list[float]:
    """The recursion over counts in a dictionary, of the contexts met at least twice in all folds."""
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
        probabilities = correct(ngrams, length, following, len(following), probabilities)
    return probabilities


def expected_after(ngrams: NGrams, context: list[int], probabilities: list[float]) -> list[float]:
    """The recursion over what the context itself repeats, from the probabilities by the counts of the text."""
    for index, length in enumerate(CONTEXT_LENGTHS):
        recent: list[int] = find_recent(context, length)
        weights = Counter[int]()
        for age, token in enumerate(recent):
            weights[token] += math.exp(ngrams.recency[index, age].item())  # type: ignore[assignment]
        probabilities = correct(ngrams, ORDER + index, weights, len(weights), probabilities)
    return probabilities


def find_recent(context: list[int], length: int) -> list[int]:
    """What followed the newest earlier occurrences of the last tokens, the newest first."""
    last = len(context) - 1
    ends = [end for end in range(last - 1, length - 2, -1) if last - length + 1 >= 0]
    tail = context[last - length + 1 :]
    return [context[end + 1] for end in ends if context[end - length + 1 : end + 1] == tail][:MAX_RECENT]


texts = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=40)


def test_before_training_an_occurrence_counts_by_its_age() -> None:
    ngrams, ids = NGrams(ModelConfig(SIZE, d_model=WIDTH, ngram_order=ORDER)), [0, 1, 2, 0, 1, 3, 0, 1, 4, 0, 1]
    nothing = torch.zeros(1, len(ids), SIZE), torch.zeros(1, len(ids), WIDTH)
    copied = ngrams.components(*nothing, context_of(ngrams, ids))[0][0, -1, 2]
    assert (copied[[4, 3, 2]] / copied[4]).tolist() == pytest.approx([1, 1 / 2, 1 / 3])


@settings(max_examples=60)
@given(st.lists(texts, min_size=2, max_size=3), st.data())
@pytest.mark.slow
def test_probabilities_are_those_of_counting_by_hand(folds: list[list[int]], data: st.DataObject) -> None:
    ngrams = make(folds)
    text = data.draw(st.sampled_from(folds))[:8] if data.draw(st.booleans()) else data.draw(texts)[:8]
    left_out = data.draw(st.sampled_from([None, *range(len(folds))]))
    got = ask(ngrams, text, left_out)
    torch.testing.assert_close(got.sum(-1), torch.ones(len(text)))
    for position in range(len(text)):
        want = expected(ngrams, folds, text[: position + 1], left_out)
        torch.testing.assert_close(got[position], torch.tensor(want), atol=1e-5, rtol=1e-4)


@settings(max_examples=40)
@given(texts, st.lists(texts, min_size=2, max_size=3))
@pytest.mark.slow
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


@settings(max_examples=30)
@given(texts, st.lists(st.integers(0, 1), min_size=1, max_size=30))
def test_what_the_context_repeats_corrects_the_counts(text: list[int], context: list[int]) -> None:
    ngrams = make([text, text])
    nothing = torch.zeros(1, len(context), SIZE), torch.zeros(1, len(context), WIDTH)
    with torch.no_grad():
        ngrams.share.bias.fill_(-100.0)  # nothing of what the layers say
    got = ngrams(*nothing, context_of(ngrams, context))[0].exp()
    for position in range(len(context)):
        before = context[: position + 1]
        want = expected_after(ngrams, before, expected(ngrams, [text, text], before))
        torch.testing.assert_close(got[position], torch.tensor(want), atol=1e-5, rtol=1e-4)


def test_layers_counts_and_copies_are_mixed_in_shares() -> None:
    torch.manual_seed(0)
    ngrams = make([[0, 1, 2, 0, 1, 3, 0, 1, 2], [4, 4, 0, 1, 2]])
    for weight in ngrams.parameters():
        nn.init.normal_(weight)
    x, logits = torch.randn(1, 5, WIDTH), torch.randn(1, 5, SIZE)
    context = context_of(ngrams, [2, 1, 0, 2, 1])
    components, shares = ngrams.components(logits, x, context)
    torch.testing.assert_close(components[0, :, 0], logits[0].softmax(-1))
    torch.testing.assert_close(components[..., :2, :].sum(-1), torch.ones(1, 5, 2))
    torch.testing.assert_close(shares.sum(-1), torch.ones(1, 5))
    torch.testing.assert_close((shares.unsqueeze(-2) @ components).squeeze(-2), ngrams(logits, x, context).exp())
    assert (shares[0, :, 2] > 0).tolist() == [False] * 4 + [True]  # 2, 1 stood there before, and 0 followed
    torch.testing.assert_close(components[0, 4, 2], torch.eye(SIZE)[0])


@pytest.mark.parametrize("fold", [None, 1])
def test_the_score_of_targets_is_what_the_whole_distribution_says(fold: int | None) -> None:
    torch.manual_seed(0)
    ngrams = make([[0, 1, 2, 0, 1, 3, 0, 1, 2], [4, 4, 0, 1, 2]])
    for weight in ngrams.parameters():
        nn.init.normal_(weight)
    x, logits, targets = torch.randn(1, 5, WIDTH), torch.randn(1, 5, SIZE), torch.tensor([[1, 0, 2, 4, 0]])
    given = context_of(ngrams, [2, 1, 0, 2, 1]), targets, None if fold is None else torch.tensor([fold])
    mixed, of_layers = ngrams.score(logits, x, *given)
    whole = ngrams(logits, x, given[0], given[2])
    torch.testing.assert_close(mixed, whole.gather(-1, targets.unsqueeze(-1)).squeeze(-1))
    torch.testing.assert_close(of_layers, logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1))


def test_many_positions_find_what_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    ngrams = make([torch.randint(SIZE, (300,)).numpy(), torch.randint(SIZE, (300,)).numpy()])
    x, logits = torch.randn(1, 40, WIDTH), torch.randn(1, 40, SIZE)
    context = context_of(ngrams, torch.randint(SIZE, (40,)).tolist())
    few = ngrams(logits, x, context)
    monkeypatch.setattr("tinychat.model.ngram_counts.FEW", 0)
    torch.testing.assert_close(ngrams(logits, x, context), few)


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
    model.ngrams.register_forward_hook(lambda module, given, made: given[0])  # what the layers say, alone
    of_layers = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    (alone,) = torch.autograd.grad(of_layers, [model.head.weight])
    torch.testing.assert_close(both, together + LAYERS_LOSS_WEIGHT * alone)


def test_a_text_with_too_many_contexts_keeps_the_commonest(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.random.default_rng(0).integers(0, SIZE, 3000)
    everything = make([ids])
    monkeypatch.setattr("tinychat.model.ngram_counts.max_contexts", lambda tokens: 60)
    fewer = make([ids])
    assert 10 < len(fewer.contexts) <= 60 < len(everything.contexts)
    assert set(fewer.contexts.tolist()) < set(everything.contexts.tolist())


@pytest.mark.parametrize(("most", "seed"), [(45, 4), (45, 10), (50, 8), (55, 10), (55, 18)])
def test_of_two_texts_no_context_is_kept_without_those_that_it_goes_on_from(
    monkeypatch: pytest.MonkeyPatch, most: int, seed: int
) -> None:
    """Words end with another letter in each text: the higher counts of both add up to more before it than earlier."""
    monkeypatch.setattr("tinychat.model.ngram_counts.max_contexts", lambda tokens: most)
    size = 12

    def text(number: int) -> Ids:
        words = np.random.default_rng(0).integers(0, size, (8, 4))
        words[number % 2 :: 2, 3] = (words[number % 2 :: 2, 3] + 1) % size
        return words[np.random.default_rng(number).integers(0, 8, 60)].ravel()

    old = make([text(seed), text(seed + 2)], size=size)
    both = make([text(seed + 1), text(seed + 3)], size=size)
    both.count([text(seed + 1), text(seed + 3)], {name: getattr(old, name) for name in COUNT_BUFFERS})
    kept = set(both.contexts.tolist())
    assert len(kept) <= most
    assert {(context - 1) // size for context in kept - {0}} <= kept
    counts = {f"ngrams.{name}": getattr(both, name) for name in COUNT_BUFFERS}
    unpacked = unpack_counts(pack_counts(counts, size), size)
    assert unpacked["ngrams.counts"].equal(counts["ngrams.counts"])


def test_contexts_dropped_while_counting_are_those_of_a_higher_least_count(monkeypatch: pytest.MonkeyPatch) -> None:
    folds = [np.random.default_rng(fold).zipf(1.6, 2000) % SIZE for fold in range(3)]
    plain = {least: count_levels(folds, SIZE, ORDER, least) for least in range(2, 400)}
    for most in (40, 100, 200, 400):
        monkeypatch.setattr("tinychat.model.ngram_counts.max_contexts", lambda tokens, most=most: most)
        limited = count_levels(folds, SIZE, ORDER, 2)
        assert sum(len(level.contexts) for level in limited) <= most
        same = [least for least, levels in plain.items() if is_same(levels, limited)]
        assert same, most


def is_same(levels: list[Level], others: list[Level]) -> bool:
    return len(levels) == len(others) and all(
        np.array_equal(one, other)
        for level, another in zip(levels, others, strict=True)
        for one, other in zip(level, another, strict=True)
    )


@given(st.lists(st.integers(0, 99), max_size=50))
def test_cells_are_numbered_alike_by_a_table_and_by_sorting(cells: list[int]) -> None:
    given = np.array(cells, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        by_table = number_cells(given, 100)
        patch.setattr("tinychat.model.ngram_counts.MOST_CELLS", 99)
        by_sorting = number_cells(given, 100)
    expected = np.unique(given, return_inverse=True)
    for found in (by_table, by_sorting):
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_the_layers_learn_how_to_weigh_the_counts() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3))
    assert model.ngrams is not None
    text = np.random.default_rng(0).integers(0, SIZE, 200)
    ids, targets = torch.from_numpy(text[None, :8]), torch.from_numpy(text[None, 1:9])
    with torch.no_grad():
        model.ngrams.strength.bias[3:] = 100.0  # nothing of what the context repeats
    nothing_counted = model.loss(ids, targets).item()
    assert nothing_counted == pytest.approx(math.log(SIZE))
    model.ngrams.count([text[:100], text[100:]])
    honest = model.loss(ids, targets, folds=torch.tensor([0]))
    assert model.loss(ids, targets).item() < honest.item()
    honest.backward()
    for name, weight in model.ngrams.named_parameters():
        assert weight.grad is not None
        # Corrections begin at 0, so that what they are computed from has no gradient yet.
        assert weight.grad.abs().sum() > 0 or name in ("recency", "evidence.weight", "evidence.bias")


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


def test_layers_in_bf16_are_mixed_with_counts_in_f32() -> None:
    """Beyond 256, bf16 has no odd numbers: counts and the network that weighs them must stay as they are."""
    config = ModelConfig(SIZE, context_length=8, n_layer=1, n_head=1, d_model=WIDTH, ngram_order=3)
    model = Transformer(config).eval()
    assert model.ngrams is not None
    model.ngrams.count([np.arange(1000) % 3, np.arange(331) % 2])
    ids = torch.tensor([[0, 1, 2, 0]])
    before, table = model(ids), model.ngrams.table.counts.clone()
    after = model.round_layers(torch.bfloat16)(ids)
    assert model.head.weight.dtype == torch.bfloat16
    assert model.ngrams.table.counts.equal(table)
    torch.testing.assert_close(after, before, atol=0.02, rtol=0)


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
    assert other.ngrams.table.cells.is_cuda


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
    for size in (2, 65, 256, 1 << 15):
        order = longest_ngram(size)
        ids = np.full(4 * order, size - 1)
        ngrams = make([ids], order, size)
        assert ask(ngrams, ids.tolist())[-1, size - 1] > 0.5
        with pytest.raises(ModelError, match="ngram_order"):
            ModelConfig(size, ngram_order=order + 1)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.integers(0, 3), st.integers(0, 5), st.data())
def test_followers_are_those_of_a_search_by_hand(ids: list[int], before: int, behind: int, data: st.DataObject) -> None:
    history = torch.tensor([[-1] * before + ids + [0] * behind])  # what stands behind is not looked at
    first = data.draw(st.integers(0, len(ids) - 1))  # as in decoding: not all places are asked for
    for begin in {first, len(ids) - 1}:  # by sorting, and one at a time
        slots = before + torch.arange(begin, len(ids))
        found = recent_followers(history, slots, 3)
        assert found.shape == (1, len(slots), len(CONTEXT_LENGTHS), MAX_RECENT)
        for place, slot in enumerate(range(begin, len(ids))):
            for index, length in enumerate(CONTEXT_LENGTHS):
                want = find_recent(ids[: slot + 1], length)
                assert found[0, place, index].tolist() == want + [-1] * (MAX_RECENT - len(want))


@pytest.mark.parametrize("behind", [2, -1])  # what stands behind a row's last token: anything, or nothing yet
def test_rows_may_be_asked_for_different_places(behind: int) -> None:
    history = torch.tensor([[0, 1, 2, 0, 1, behind, behind], [3, 3, 3, 3, 3, 3, 3]])
    for first in (0, 1):  # several at a time, and one place
        slots = torch.tensor([[3, 4], [5, 6]])[:, first:]
        found = recent_followers(history, slots, 4)
        assert found[:, -1, 0, :5].tolist() == [[2, -1, -1, -1, -1], [3, 3, 3, 3, 3]]


def test_an_index_looks_no_further_than_it_is_told() -> None:
    index = ContextIndex(torch.tensor([[0, 1, 2, 0, 1, 3, 0, 1]]), 4)
    assert index.followers(torch.tensor([7]), 6)[0, 0, 0, :3].tolist() == [3, 2, -1]
    assert index.followers(torch.tensor([7]), 5)[0, 0, 0, :3].tolist() == [3, -1, -1]


def test_without_matches_what_the_context_repeats_counts_for_nothing_and_training_keeps_it_so() -> None:
    torch.manual_seed(0)
    config = ModelConfig(11, context_length=16, n_layer=1, d_model=16, n_head=1, ngram_order=3, matches=False)
    model = Transformer(config)
    ngrams = model.ngrams
    assert ngrams is not None
    ids = torch.randint(11, (200,))
    ngrams.count([ids.numpy()])
    silent = [parameter.clone() for parameter in (ngrams.recency, ngrams.variety[3:], ngrams.strength.bias[3:])]
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], 0.1, weight_decay=0.0)
    for _ in range(3):
        model.loss(ids[None, :16], ids[None, 1:17]).backward()
        optimizer.step()
        optimizer.zero_grad()
    kept = (ngrams.recency, ngrams.variety[3:], ngrams.strength.bias[3:])
    assert all(one.equal(other) for one, other in zip(kept, silent, strict=True))
    repeated = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5]])
    with torch.inference_mode():
        without = model(repeated)
        ngrams.has_matches = True  # another engine computes as if it had them
        assert torch.allclose(model(repeated), without, atol=1e-5)


@pytest.mark.parametrize("size", [8191, 32_767])
def test_contexts_of_large_vocabularies_are_told_apart(size: int) -> None:
    """Their numbers exceed 64 bits: those that differ in the newest tokens alone would be taken for the same."""
    draw = np.random.default_rng(0)
    words = draw.integers(0, size, (4, 12))
    words[1:, -8:-4] = words[0, -8:-4]
    history = torch.from_numpy(words[draw.integers(0, 4, 25)].reshape(1, -1))
    slots = torch.arange(history.shape[1])
    together = ContextIndex(history, size).followers(slots)
    apart = torch.cat([recent_followers(history[:, : slot + 1], slots[slot : slot + 1], size) for slot in slots], dim=1)
    assert together.equal(apart)
