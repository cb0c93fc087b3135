"""Documents as rows, and batches: they follow from the seed and the step alone, and miss nothing."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tinychat.corpus.corpus import Corpus, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError
from tinychat.model.config import ModelConfig
from tinychat.model.context_index import ContextIndex
from tinychat.model.transformer import IGNORED, NO_TOKEN
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_tokenizer
from tinychat.train.batches import (
    Batches,
    ChatLossMask,
    Row,
    Rows,
    Windows,
    count_windows,
    cut_document,
    encode_rows,
    join_rows,
    padded_length,
    split_folds,
)
from tinychat.train.gradient_graphs import MAX_GRAPHS


def shown(rows: Rows, tokenizer: Tokenizer) -> list[str]:
    return ["".join(tokenizer.token_text(int(id)) for id in rows.row(index)) for index in range(len(rows))]


def corpus_of(*texts: str) -> Corpus:
    return TextCorpus("given", "completion", [InlineTexts(texts, "given")])


def test_each_document_is_a_row_between_the_ends_of_others(tmp_path: Path) -> None:
    corpus = corpus_of("ab", "c", "bca")
    tokenizer = train_tokenizer("char", corpus, None, ("end",))
    rows = encode_rows(corpus, tokenizer, tmp_path)
    assert shown(rows, tokenizer) == ["<|end|>ab<|end|>", "<|end|>c<|end|>", "<|end|>bca<|end|>"]
    assert rows.lengths.tolist() == [4, 3, 5]
    assert rows.longest == 5
    assert rows.count_predicted(3) == 3 + 2 + 3
    assert tokenizer.decode(rows.flat().tolist()) == "abcbca"


def test_a_begin_token_occurs_once(tmp_path: Path) -> None:
    corpus = corpus_of("ab", "c")
    tokenizer = train_tokenizer("char", corpus, None, ("begin", "end"))
    assert shown(encode_rows(corpus, tokenizer, tmp_path), tokenizer)[1] == "<|begin|>c<|end|>"


def test_each_side_of_a_translation_has_its_own_tokens(tmp_path: Path) -> None:
    corpus = TextCorpus("given", "translation", [InlineTexts(("let's go\tir vamos", "love you\tte amo"), "given")])
    marks = ("begin", "end")
    target, source = (
        train_tokenizer("whitespace", side, None, marks) for side in (corpus.target_side, corpus.source_side)
    )
    rows = encode_rows(corpus, target, tmp_path, source_tokenizer=source)
    assert rows.source is not None
    assert shown(rows, target) == ["<|begin|> ir vamos<|end|>", "<|begin|> te amo<|end|>"]
    assert shown(rows.source, source) == ["<|begin|> let's go<|end|>", "<|begin|> love you<|end|>"]
    assert (target.vocab_size, source.vocab_size) == (6, 6)


def test_predicted_ids_are_those_that_a_model_reads_and_none_that_a_row_begins_with(tmp_path: Path) -> None:
    corpus = TextCorpus("given", "translation", [InlineTexts(("one two three\tuno dos tres", "a b\tuno"), "given")])
    target, source = (
        train_tokenizer("whitespace", side, None, ("begin", "end")) for side in (corpus.target_side, corpus.source_side)
    )
    rows = encode_rows(corpus, target, tmp_path, source_tokenizer=source)
    assert target.decode(rows.predicted(2).tolist()) == "uno dos uno"
    assert len(rows.predicted(2)) == rows.count_predicted(2) == 4
    assert Rows(rows.ids, rows.starts, rows.ends, prefix=(7,)).predicted(2).tolist() == [
        *rows.row(0)[:2], *rows.row(1)[:2]
    ]  # fmt: skip


def test_one_running_text_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "novel.txt"
    path.write_text("once upon a time")
    corpus = read_sources([str(path)], cache=tmp_path)
    with pytest.raises(SourceError, match="one running text"):
        encode_rows(corpus, train_tokenizer("char", corpus), tmp_path)


def test_rows_of_several_files_are_joined(tmp_path: Path) -> None:
    corpora = corpus_of("ab", "c"), corpus_of("ba")
    tokenizer = train_tokenizer("char", corpora[0], None, ("end",))
    both = join_rows([encode_rows(corpus, tokenizer, tmp_path) for corpus in corpora])
    assert shown(both, tokenizer) == ["<|end|>ab<|end|>", "<|end|>c<|end|>", "<|end|>ba<|end|>"]
    assert both.take(np.array([2])).flat().tolist() == both.row(2)[1:].tolist()


# --- batches


def rows(batches: Batches, steps: range) -> np.ndarray:
    return np.concatenate([batches.batch(step).ids.numpy() for step in steps])


@settings(max_examples=50)
@given(st.integers(2, 400), st.integers(1, 30), st.integers(1, 20), st.integers(0, 5))
def test_targets_are_what_follows(length: int, context_length: int, batch_size: int, step: int) -> None:
    context_length = min(context_length, length - 1)
    ids, targets, *_ = Batches(np.arange(length, dtype=np.uint16), context_length, batch_size, seed=1).batch(step)
    assert ids.shape == targets.shape == (batch_size, context_length)
    assert (targets == ids + 1).all()
    assert int(ids.min()) >= 0
    assert int(targets.max()) < length


def test_an_epoch_shows_each_window_once() -> None:
    batches = Batches(np.arange(1001), context_length=10, batch_size=11, seed=3)
    assert batches.sources[0].epoch_rows == 99
    starts = rows(batches, range(9))[:, 0]
    assert len(set(starts)) == 99
    assert sorted(starts)[-1] - sorted(starts)[0] == 980  # side by side


def look_up(rows: list[Row]) -> list[Tensor]:
    assert rows[0].history is not None
    return rows[0].history.followers(rows)


def test_a_long_text_is_indexed_in_chunks_and_each_only_once_in_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, tokens in (("MAX_INDEXED", 500), ("CHUNK", 100), ("CHUNK_REACH", 150), ("ACTIVE_CHUNKS", 3)):
        monkeypatch.setattr(f"tinychat.train.batches.{name}", tokens)
    config = ModelConfig(7, context_length=16, n_layer=1, d_model=8, n_head=1, ngram_order=3)
    ids = np.random.default_rng(0).integers(7, size=1203).astype(np.uint16)
    made = []
    make_index = ContextIndex.__init__

    def count_index(index: ContextIndex, history: Tensor, vocab_size: int) -> None:
        made.append(history.shape[1])
        make_index(index, history, vocab_size)

    monkeypatch.setattr(ContextIndex, "__init__", count_index)
    windows = Windows(ids, 16, seed=1, source_index=0, stride=None, config=config)
    rows = [windows.row(index) for index in range(windows.epoch_rows)]
    found = [followers for first in range(0, len(rows), 5) for followers in look_up(rows[first : first + 5])]
    indexed, starts = len(made), set[int]()
    for row, followers in zip(rows, found, strict=True):
        start = next(start for start in range(1203) if np.array_equal(ids[start : start + 17], row.ids))
        starts.add(start)
        first = max(0, start // 100 * 100 - 150)
        history = torch.from_numpy(ids[first : start + 16].astype(np.int64)).unsqueeze(0)
        expected = ContextIndex(history, 7).followers(torch.arange(start - first, start + 16 - first), 150)[0]
        assert torch.equal(followers.long(), expected)
        assert row.start == start
    assert len(starts) == windows.epoch_rows
    assert indexed == len({start // 100 for start in starts})


def test_windows_may_overlap() -> None:
    batches = Batches(np.arange(1001), context_length=10, batch_size=11, seed=3, stride=5)
    count = batches.sources[0].epoch_rows
    assert count == count_windows(1001, 10, 5) == 198
    starts = sorted(rows(batches, range(18))[:, 0])
    assert set(np.diff(starts)) == {5}
    assert starts[-1] + 10 <= 1000


@settings(max_examples=50)
@given(st.integers(3, 400), st.integers(1, 30), st.integers(1, 60), st.integers(0, 5))
def test_no_window_reaches_beyond_its_text(length: int, context_length: int, stride: int, step: int) -> None:
    context_length = min(context_length, length - 1)
    _, targets, *_ = Batches(np.arange(length), context_length, 7, seed=1, stride=stride).batch(step)
    assert int(targets.min()) >= 1
    assert int(targets.max()) < length


def test_epochs_differ_in_order_and_in_where_windows_begin() -> None:
    batches = Batches(np.arange(1001), context_length=10, batch_size=99, seed=3)
    first, second = (batches.batch(step).ids[:, 0].numpy() for step in (0, 1))
    assert not np.array_equal(first, second)
    assert len({int(batches.batch(step).ids[0, 0]) % 10 for step in range(20)}) > 3


def test_a_step_is_the_same_whatever_came_before() -> None:
    ids = np.arange(5000, dtype=np.uint32)
    onward, fresh = Batches(ids, 16, 8, seed=5), Batches(ids, 16, 8, seed=5)
    wanted = [onward.batch(step) for step in range(100)][77]
    assert wanted.ids.equal(fresh.batch(77).ids)
    assert not wanted.ids.equal(Batches(ids, 16, 8, seed=6).batch(77).ids)


def test_a_text_of_one_window_is_shown_again_and_again() -> None:
    batches = Batches(np.arange(5), context_length=4, batch_size=3, seed=0)
    assert batches.batch(9).ids.tolist() == [[0, 1, 2, 3]] * 3


def test_a_text_without_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="4 ids"):
        Batches(np.arange(4), context_length=4, batch_size=3, seed=0)


def test_one_text_is_drawn_as_ever() -> None:
    """The order is part of the contract: a run that was begun by an older version goes on as it would have."""
    first = Batches(np.arange(1001), context_length=10, batch_size=6, seed=3).batch(40)
    assert first.ids[:, 0].tolist() == [849, 19, 69, 389, 939, 329]


def mixed(weights: tuple[float, ...], batch_size: int = 6, seed: int = 3) -> Batches:
    """Three texts of different lengths: what a window is from can be told from its ids."""
    texts = [np.arange(start, start + length) for start, length in ((0, 501), (10_000, 201), (20_000, 2001))]
    return Batches(texts[: len(weights)], 10, batch_size, seed, weights)


def origins(batches: Batches, steps: range) -> np.ndarray:
    return rows(batches, steps)[:, 0] // 10_000


@pytest.mark.slow
def test_of_a_mix_each_batch_holds_the_shares() -> None:
    for step in (0, 1, 77, 5000):
        assert np.bincount(origins(mixed((2, 1)), range(step, step + 1))).tolist() == [4, 2]
    counts = np.bincount(origins(mixed((0.5, 0.25, 3.1), batch_size=77), range(500)))
    assert counts / counts.sum() == pytest.approx(np.array([0.5, 0.25, 3.1]) / 3.85, abs=1e-3)


@pytest.mark.parametrize("weights", [(1, 1e-9), (1e300, 1e-300), (1, 3, 12_345)])
def test_the_smallest_share_has_its_turn_all_the_same(weights: tuple[float, ...]) -> None:
    assert set(origins(mixed(weights, batch_size=10_100), range(2))) == set(range(len(weights)))


def test_each_text_of_a_mix_has_epochs_of_its_own() -> None:
    starts = rows(mixed((2, 1)), range(0, 60))[:, 0]
    first, second = starts[starts < 10_000], starts[starts >= 10_000]
    assert (len(set(first[:49])), len(set(first[49:98]))) == (49, 49)  # 501 ids: 49 windows of 10
    assert (len(set(second[:19])), len(set(second[19:38]))) == (19, 19)
    assert not np.array_equal(first[:49], first[49:98])


def test_a_step_of_a_mix_is_the_same_whatever_came_before() -> None:
    onward, fresh = mixed((2, 1, 0.3)), mixed((2, 1, 0.3))
    wanted = [onward.batch(step) for step in range(200)][177]
    assert wanted.ids.equal(fresh.batch(177).ids)
    assert not wanted.ids.equal(mixed((2, 1, 0.3), seed=4).batch(177).ids)


def test_each_row_knows_its_part_of_its_text() -> None:
    ids = np.arange(80)
    parts = split_folds(ids)
    assert np.concatenate(parts).tolist() == ids.tolist()
    batch = Batches(ids, context_length=3, batch_size=20, seed=1).batch(0)
    for row, fold in zip(batch.ids.tolist(), batch.folds.tolist(), strict=True):
        assert row[0] in parts[fold]


def documents(*lengths: int, source: bool = False) -> Rows:
    """Rows of so many ids, each of which is the row's number."""
    ends = np.cumsum(lengths)
    ids = np.repeat(np.arange(len(lengths), dtype=np.uint16), lengths)
    return Rows(ids, ends - lengths, ends, source=documents(*(length + 1 for length in lengths)) if source else None)


def test_documents_are_padded_and_padding_is_not_learned() -> None:
    batch = Batches([documents(3, 5)], context_length=9, batch_size=2, seed=1).batch(0)
    short, long = sorted(range(2), key=lambda row: int(batch.ids[row, 0]))
    assert batch.targets[short].tolist() == [0] * 2 + [IGNORED] * 2
    assert batch.targets[long].tolist() == [1] * 4
    assert batch.ids[long, :4].tolist() == [1] * 4
    assert batch.source is None


def test_what_an_encoder_reads_stands_beside_each_row() -> None:
    batch = Batches([documents(3, 5, 2, source=True)], context_length=9, batch_size=3, seed=1).batch(0)
    assert batch.source is not None
    for ids, source in zip(batch.ids.tolist(), batch.source.tolist(), strict=True):
        length = (4, 6, 3)[ids[0]]
        assert source == [ids[0]] * length + [NO_TOKEN] * (8 - length)
    cut = Batches([documents(3, 5, source=True)], context_length=2, batch_size=2, seed=1).batch(0)
    assert cut.source is not None
    assert cut.ids.shape == cut.targets.shape == cut.source.shape == (2, 2)


def test_an_epoch_shows_each_document_once_with_others_of_its_length() -> None:
    lengths = np.random.default_rng(0).integers(2, 600, size=300)
    batches = Batches([documents(*lengths)], context_length=999, batch_size=10, seed=2)
    seen = [batches.batch(step) for step in range(30)]
    assert sorted(int(row[0]) for batch in seen for row in batch.ids) == list(range(300))
    padding = sum(int((batch.targets == IGNORED).sum()) for batch in seen) / sum(batch.ids.numel() for batch in seen)
    assert padding < 0.1
    assert not batches.batch(0).ids[:, 0].equal(batches.batch(30).ids[:, 0])
    assert batches.batch(7).ids.equal(Batches([documents(*lengths)], 999, 10, seed=2).batch(7).ids)
    assert batches.tokens_per_batch == pytest.approx(10 * (lengths.mean() - 1), abs=1)


def test_batches_of_documents_have_few_lengths() -> None:
    lengths = np.random.default_rng(0).integers(2, 200, size=300)
    batches = Batches([documents(*lengths, source=True)], context_length=150, batch_size=10, seed=2)
    few = {*range(4, 33, 4), *range(40, 65, 8), *range(80, 150, 16), 150}
    assert len(set(map(padded_length, range(1, 513)))) <= MAX_GRAPHS
    for batch in map(batches.batch, range(30)):
        assert batch.source is not None
        assert {batch.ids.shape[1], batch.source.shape[1]} <= few
        longest = int((batch.targets != IGNORED).sum(dim=1).max())
        assert longest <= batch.ids.shape[1] < (1.25 * longest if longest > 12 else longest + 4)


def test_a_batch_is_shared_out_row_by_row() -> None:
    batch = Batches([documents(3, 5, 2, 4, 4, source=True)], context_length=9, batch_size=5, seed=1).batch(0)
    assert [len(part.ids) for part in batch.tensor_split(2)] == [3, 2]
    assert [len(part.ids) for part in batch.tensor_split(3)] == [2, 2, 1]
    parts = batch.tensor_split(2)
    assert parts[0].source is not None
    assert batch.source is not None
    assert parts[0].source.equal(batch.source[:3])


# --- which tokens of a chat count in the loss -----------------------------------------------------------------------


USER, BOT, END = 1, 2, 3
ROW = np.array([USER, 10, 11, END, BOT, 20, 21, END, USER, 12, END, BOT, 22, END], np.uint16)


def chat_loss_mask(user_fraction: float = 0.0, reply_fraction: float = 1.0) -> ChatLossMask:
    return ChatLossMask(USER, BOT, user_fraction, reply_fraction, seed=1)


def test_answers_are_learned_with_their_ends_and_nothing_of_what_is_asked() -> None:
    learned = chat_loss_mask().mask(ROW, 0)
    assert ROW[1:][learned].tolist() == [BOT, 20, 21, END, BOT, 22, END]


def test_a_share_of_what_is_asked_is_learned_and_other_parts_of_it_at_other_places() -> None:
    mask = chat_loss_mask(user_fraction=0.25)
    chosen = [mask.mask(ROW, index)[:3] for index in range(400)]
    assert 0.2 < np.mean(chosen) < 0.3
    assert np.array_equal(mask.mask(ROW, 7), mask.mask(ROW, 7))
    assert len({tuple(one) for one in chosen}) == 8


def test_of_a_long_reply_the_first_five_tokens_are_learned_and_a_fraction_of_the_others() -> None:
    row = np.array([USER, 10, END, BOT, *range(20, 40), END])
    mask = chat_loss_mask(reply_fraction=0.25)
    chosen = np.array([mask.mask(row, index) for index in range(400)])
    assert chosen[:, :2].sum() == 0
    assert chosen[:, 2:8].all()
    assert 0.2 < chosen[:, 8:].mean() < 0.3


def test_a_window_that_begins_within_a_reply_does_not_begin_with_its_first_tokens() -> None:
    mask = chat_loss_mask(reply_fraction=0.0)
    assert not mask.mask(np.arange(20, 40), 0, speaker=BOT).any()


def test_what_stands_before_the_first_mark_is_learned() -> None:
    learned = chat_loss_mask().mask(np.array([20, 21, END, USER, 10]), 0)
    assert learned.tolist() == [True, True, False, False]


def test_a_window_that_begins_within_a_message_knows_who_speaks() -> None:
    messages = ([USER, *[10] * 9, END], [BOT, *[20] * 5, END])
    ids = np.array([id for message in messages * 100 for id in message], np.uint16)
    batches = Batches(ids, 4, 8, seed=1, loss_mask=chat_loss_mask())
    rows = [batches.batch(step) for step in range(20)]
    counted = {int(id) for batch in rows for id in batch.targets[batch.targets != IGNORED]}
    assert counted == {BOT, 20, END}
    replies = [(targets != IGNORED)[targets != 10] for batch in rows for targets in batch.targets if 20 in targets]
    assert len(replies) > 20


def test_before_the_first_message_of_a_text_nobody_speaks() -> None:
    ids = np.array([20, 21, 22, 23, 24, END, USER, 10, 11, END], np.uint16)
    (source,) = Batches(ids, 3, 1, seed=1, loss_mask=chat_loss_mask()).sources
    assert [source._cut(start).speaker for start in range(7)] == [None] * 7
    assert source._cut(6).ids.tolist() == [USER, 10, 11, END]


def test_the_fold_of_a_document_is_that_of_its_ids_among_those_that_are_counted() -> None:
    rows = documents(*(5 for _ in range(64))).take(np.arange(64)[np.arange(64) % 3 > 0])  # a third is held out
    folds = split_folds(rows.flat())
    for index in range(len(rows)):
        fold = cut_document(rows, index, 8).fold
        assert rows.row(index)[0] in folds[fold]
