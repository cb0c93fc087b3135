"""What is held out: the end of a running text, documents by their text; the same wherever it is asked."""

from pathlib import Path

import numpy as np
import pytest

from tinychat.corpus.corpus import Corpus, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_tokenizer
from tinychat.train.batches import Rows, encode_rows
from tinychat.train.split import (
    MIN_VAL_TOKENS,
    TextSplit,
    choose_val_rows,
    count_val_tokens,
    cut_validation,
    hash_documents,
)

PAIRS = tuple(f"{'abcd'[index % 4]}{index // 4}\t{index}" for index in range(80))


def shown(rows: Rows, tokenizer: Tokenizer) -> list[str]:
    return ["".join(tokenizer.token_text(int(id)) for id in rows.row(index)) for index in range(len(rows))]


def char_tokenizer(text: str) -> Tokenizer:
    return train_tokenizer("char", TextCorpus("given", "completion", [InlineTexts((text,), "given")]))


def parts_of(corpus: Corpus, rows: Rows, tokenizer: Tokenizer) -> tuple[Rows, Rows]:
    split = TextSplit()
    held_out = split.choose_documents(corpus)
    train, val = (split.take(part, rows, tokenizer, held_out) for part in ("train", "val"))
    assert isinstance(train, Rows)
    assert isinstance(val, Rows)
    return train, val


def test_of_a_running_text_the_last_tenth_of_its_characters_is_held_out() -> None:
    tokenizer = char_tokenizer("ab")
    ids = np.zeros(1_115_394, np.uint16)
    split = TextSplit()
    assert split.find_end(ids, tokenizer) == 1_003_854
    assert [len(split.take(part, ids, tokenizer)) for part in ("train", "val", "all")] == [1_003_854, 111_540, len(ids)]
    assert TextSplit(by_text=False).find_end(ids, tokenizer) == 1_003_854
    assert count_val_tokens(len(ids), 0.1) == 111_540


@pytest.mark.parametrize(("tokens", "val_tokens"), [(80, 0), (90, MIN_VAL_TOKENS), (100, 10)])
def test_nothing_is_held_out_of_a_short_text(tokens: int, val_tokens: int) -> None:
    ids = np.zeros(tokens, np.uint16)
    assert len(TextSplit().take("val", ids, char_tokenizer("ab"))) == val_tokens
    assert count_val_tokens(tokens, 0.1) == val_tokens


def test_held_out_rows_come_from_the_whole_text_and_share_no_source(tmp_path: Path) -> None:
    corpus = TextCorpus("given", "translation", [InlineTexts(PAIRS, "given")])
    tokenizer = train_tokenizer("char", corpus, None, ("end",))
    rows = encode_rows(corpus, tokenizer, tmp_path, source_tokenizer=tokenizer)
    train, val = parts_of(corpus, rows, tokenizer)
    assert (len(train), len(val)) == (72, 8)
    assert sorted(shown(train, tokenizer) + shown(val, tokenizer)) == sorted(shown(rows, tokenizer))
    assert val.starts[0] < len(rows.ids) / 3
    assert val.starts[-1] > len(rows.ids) / 2
    again = TextCorpus("given", "translation", [InlineTexts(PAIRS[::-1], "given")])
    _, other = parts_of(again, encode_rows(again, tokenizer, tmp_path, source_tokenizer=tokenizer), tokenizer)
    assert sorted(shown(other, tokenizer)) == sorted(shown(val, tokenizer))  # whatever the order of the text


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.4, 0.5])
def test_rows_with_equal_sources_are_on_one_side(fraction: float) -> None:
    alike = TextCorpus("given", "translation", [InlineTexts(("a\tb", "a\tc") * 40 + PAIRS, "given")])
    held_out = choose_val_rows(hash_documents(alike), fraction)
    assert (held_out < 80).sum() in (0, 80)
    assert 4 <= len(held_out) < 160


def test_a_few_rows_are_not_split() -> None:
    corpus = TextCorpus("given", "completion", [InlineTexts(("ab", "c"), "given")])
    assert len(choose_val_rows(hash_documents(corpus))) == 0


def test_a_fraction_of_the_validation_part_is_the_end_of_a_text() -> None:
    ids = np.arange(100, dtype=np.uint16)
    assert cut_validation(ids, 0.1)[0] == 90
    assert len(cut_validation(ids, 1.0)) == 100
