"""Counts in a weight file: all of them come back, in about a byte each."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinychat.errors import ModelError
from tinychat.model.config import LARGEST_NGRAM_VOCABULARY, ModelConfig
from tinychat.model.ngrams import NGrams
from tinychat.store.packed_counts import PACKED, UNPACKED, pack_arrays, pack_counts, unpack_counts


def counts_of(ids: list[int], vocab_size: int, order: int, earlier: list[int] | None = None) -> dict[str, torch.Tensor]:
    """Count a text in two folds, after an earlier one."""
    ngrams = NGrams(ModelConfig(vocab_size, d_model=4, ngram_order=order))
    folds = np.array_split(np.array(ids), 2)
    if earlier:
        ngrams.count(np.array_split(np.array(earlier), 2))
        before = {name.removeprefix("ngrams."): getattr(ngrams, name.removeprefix("ngrams.")) for name in UNPACKED}
        ngrams.count(folds, before)
    else:
        ngrams.count(folds)
    return {name: getattr(ngrams, name.removeprefix("ngrams.")) for name in UNPACKED}


texts = st.lists(st.integers(0, 3), min_size=2, max_size=80)


@given(texts, st.integers(1, 6), st.none() | texts)
@pytest.mark.slow
def test_all_counts_come_back(ids: list[int], order: int, earlier: list[int] | None) -> None:
    counts = counts_of(ids, 4, order, earlier)
    unpacked = unpack_counts(pack_counts(counts, 4), 4)
    followed = counts["ngrams.widths"] > 0
    expected = counts | {name: counts[name][followed] for name in ("ngrams.contexts", "ngrams.widths")}
    for name in UNPACKED:
        assert unpacked[name].equal(expected[name]), name
        assert unpacked[name].dtype == expected[name].dtype


@pytest.mark.parametrize("vocab_size", [4, 300])
def test_large_counts_and_vocabularies_come_back_and_small_counts_take_two_bits(vocab_size: int) -> None:
    draw = np.random.default_rng(1)
    ids = np.minimum(draw.geometric(0.4, 20_000) - 1, vocab_size - 1).tolist()
    counts = counts_of(ids, vocab_size, 5)
    packed = pack_counts(counts, vocab_size)
    assert packed["ngrams.large_counts"].min() >= 255
    assert unpack_counts(packed, vocab_size)["ngrams.counts"].equal(counts["ngrams.counts"])
    entries = len(counts["ngrams.tokens"])
    size = sum(tensor.numel() * tensor.element_size() for tensor in packed.values())
    others = counts["ngrams.counts"] > 3
    assert len(packed["ngrams.byte_counts"]) == others.sum()
    assert size <= entries * 0.9 + others.sum() + 4 * len(packed["ngrams.large_counts"]) + 3


def test_gaps_take_the_bits_that_the_paper_says() -> None:
    """A gap g takes ⌊g / 2ᵏ⌋ + 1 + k bits (Rice, Plaunt 1971), and the empty context's ranks are tokens."""
    nothing = {name: torch.zeros(1, dtype=torch.long) for name in UNPACKED}
    tokens = torch.tensor([0, 21, 22, 61])
    counts = nothing | {"ngrams.widths": torch.tensor([4]), "ngrams.tokens": tokens, "ngrams.counts": torch.ones(4)}
    packed = pack_counts(counts, 64)
    assert packed["ngrams.remainder_bits"].tolist() == [3]  # of the gaps 0, 20, 0, 38
    bits = np.unpackbits(packed["ngrams.quotients"].numpy(), bitorder="little")
    assert bits.tolist() == [1, *(0, 0, 1), 1, *(0, 0, 0, 0, 1), *[0] * 6]
    low = np.unpackbits(packed["ngrams.remainders"].numpy(), bitorder="little")
    assert low.tolist() == [*(0, 0, 0), *(0, 0, 1), *(0, 0, 0), *(0, 1, 1), *[0] * 4]
    assert unpack_counts(packed, 64)["ngrams.tokens"].tolist() == tokens.tolist()


def test_counts_whose_suffix_lacks_a_follower_are_refused() -> None:
    counts = counts_of([0, 1, 2, 3] * 9, 4, 3)
    last = counts["ngrams.tokens"].clone()
    last[-1] = (last[-1] + 1) % 4
    with pytest.raises(ModelError, match="contradict"):
        pack_counts(counts | {"ngrams.tokens": last}, 4)


@pytest.mark.parametrize(("contexts", "vocab_size"), [([1, 2], 4), ([0, 1 << 62], 1), ([0, 1 << 62], 2)])
def test_contexts_that_lead_to_no_empty_one_are_refused(contexts: list[int], vocab_size: int) -> None:
    ones = np.ones(len(contexts), dtype=np.int64)
    with pytest.raises(ModelError, match="contradict"):
        pack_arrays(np.array(contexts), ones, 0 * ones, ones, vocab_size=vocab_size)


def test_nothing_counted_is_the_empty_context() -> None:
    nothing = NGrams(ModelConfig(4, d_model=4, ngram_order=2))
    counts = {name: getattr(nothing, name.removeprefix("ngrams.")) for name in UNPACKED}
    packed = pack_counts(counts, 4)
    assert all(not len(packed[name]) for name in PACKED)
    assert unpack_counts(packed, 4)["ngrams.contexts"].tolist() == [0]


def test_counts_are_packed_once_while_they_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def pack(*arrays: np.ndarray, vocab_size: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
        made.append(vocab_size)
        return pack_arrays(*arrays, vocab_size=vocab_size)

    monkeypatch.setattr("tinychat.store.packed_counts.pack_arrays", pack)
    first, other = counts_of([0, 1, 2, 3] * 9, 4, 3), counts_of([0, 2, 1, 3] * 9, 4, 3)
    copies = {name: values.clone() for name, values in first.items()}
    packed, again = pack_counts(first, 4), pack_counts(copies, 4)
    assert len(made) == 1
    assert packed.keys() == again.keys()
    first["ngrams.counts"][0] += 1
    for counts in (other, first, copies):
        assert unpack_counts(pack_counts(counts, 4), 4)["ngrams.counts"].equal(counts["ngrams.counts"])
    assert len(made) == 4


@pytest.mark.parametrize("tokens", [[1, 0], [5, 3, 4, 0], [0, 0]])
def test_tokens_that_do_not_ascend_are_refused(tokens: list[int]) -> None:
    ones = np.ones(len(tokens), dtype=np.int64)
    with pytest.raises(ModelError, match="contradict"):
        pack_arrays(np.zeros(1, np.int64), np.array([len(tokens)]), np.array(tokens), ones, vocab_size=8)


def test_a_context_that_nothing_leads_to_is_refused() -> None:
    contexts, tokens = np.array([0, 1, 2]), np.array([0, 0, 0])  # 2 is token 1, which never followed
    with pytest.raises(ModelError, match="contradict"):
        pack_arrays(contexts, np.ones(3, np.int64), tokens, np.ones(3, np.int64), vocab_size=4)


@pytest.mark.parametrize("vocab_size", [1, 2, 32_768])
def test_contexts_that_grow_without_end_are_refused_soon(vocab_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each context has one entry, which makes the next: a file could ask for millions of levels."""
    levels = 200_000
    bits = np.packbits(np.ones(levels, bool), bitorder="little")
    makers = np.packbits(np.arange(levels) < levels - 1, bitorder="little")
    arrays = {
        "quotients": bits, "remainders": np.zeros(0, np.uint8), "remainder_bits": np.zeros(levels, np.uint8),
        "counts": np.full(levels // 4, 0b01010101, np.uint8), "byte_counts": np.zeros(0, np.uint8),
        "large_counts": np.zeros(0, np.int32), "is_first": bits, "is_context": makers,
    }  # fmt: skip
    packed = {f"ngrams.{name}": torch.from_numpy(values) for name, values in arrays.items()}
    repeat = Mock(wraps=np.repeat)  # once a level
    monkeypatch.setattr(np, "repeat", repeat)
    with pytest.raises(ModelError, match="contradict"):
        unpack_counts(packed, vocab_size)
    assert 0 < repeat.call_count <= 64


def test_large_counts_that_are_small_are_refused() -> None:
    counts = counts_of([0, 1] * 400, 4, 2)
    packed = pack_counts(counts, 4)
    assert len(packed["ngrams.large_counts"])
    with pytest.raises(ModelError, match="contradict"):
        unpack_counts(packed | {"ngrams.large_counts": 0 * packed["ngrams.large_counts"] - 7}, 4)


def test_a_text_with_all_tokens_of_the_largest_vocabulary_comes_back() -> None:
    size = LARGEST_NGRAM_VOCABULARY
    counts = counts_of(list(range(size)), size, 1)
    assert counts["ngrams.widths"].tolist() == [size]
    unpacked = unpack_counts(pack_counts(counts, size), size)
    assert all(unpacked[name].equal(counts[name]) for name in UNPACKED)
