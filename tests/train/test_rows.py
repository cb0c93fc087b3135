"""Documents as rows: selection, splits, and the source of each in translations."""

from pathlib import Path

import numpy as np
import pytest

from tinychat.corpus.corpus import Corpus, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_tokenizer
from tinychat.train.rows import Rows, encode_rows, join_rows, split_rows

PAIRS = tuple(f"{'abcd'[index % 4]}{index // 4}\t{index}" for index in range(80))


def shown(rows: Rows, tokenizer: Tokenizer) -> list[str]:
    return ["".join(tokenizer.token_text(int(id)) for id in rows.row(index)) for index in range(len(rows))]


def documents(*texts: str) -> Corpus:
    return TextCorpus("given", "completion", [InlineTexts(texts, "given")])


def test_each_document_is_a_row_between_the_ends_of_others(tmp_path: Path) -> None:
    corpus = documents("ab", "c", "bca")
    tokenizer = train_tokenizer("char", corpus, None, ("end",))
    rows = encode_rows(corpus, tokenizer, tmp_path)
    assert shown(rows, tokenizer) == ["<|end|>ab<|end|>", "<|end|>c<|end|>", "<|end|>bca<|end|>"]
    assert rows.lengths.tolist() == [4, 3, 5]
    assert rows.longest == 5
    assert rows.count_predicted(3) == 3 + 2 + 3
    assert tokenizer.decode(rows.flat().tolist()) == "abcbca"


def test_a_begin_token_occurs_once(tmp_path: Path) -> None:
    corpus = documents("ab", "c")
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


def test_one_running_text_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "novel.txt"
    path.write_text("once upon a time")
    corpus = read_sources([str(path)], cache=tmp_path)
    with pytest.raises(SourceError, match="one running text"):
        encode_rows(corpus, train_tokenizer("char", corpus), tmp_path)


def test_held_out_rows_come_from_the_whole_text_and_share_no_source(tmp_path: Path) -> None:
    corpus = TextCorpus("given", "translation", [InlineTexts(PAIRS, "given")])
    tokenizer = train_tokenizer("char", corpus, None, ("end",))
    rows = encode_rows(corpus, tokenizer, tmp_path, source_tokenizer=tokenizer)
    train, val = split_rows(rows, "train"), split_rows(rows, "val")
    assert (len(train), len(val)) == (72, 8)
    assert sorted(shown(train, tokenizer) + shown(val, tokenizer)) == sorted(shown(rows, tokenizer))
    assert val.starts[0] < len(rows.ids) / 3
    assert val.starts[-1] > len(rows.ids) / 2
    again = TextCorpus("given", "translation", [InlineTexts(PAIRS[::-1], "given")])
    other = split_rows(encode_rows(again, tokenizer, tmp_path, source_tokenizer=tokenizer), "val")
    assert sorted(shown(other, tokenizer)) == sorted(shown(val, tokenizer))  # whatever the order of the text
    alike = TextCorpus("given", "translation", [InlineTexts(("a\tb", "a\tc") * 40 + PAIRS, "given")])
    split = split_rows(encode_rows(alike, tokenizer, tmp_path, source_tokenizer=tokenizer), "val", 0.4).source
    assert split is not None
    assert shown(split, tokenizer).count("<|end|>a<|end|>") in (0, 64, 80)


def test_a_few_rows_are_not_split(tmp_path: Path) -> None:
    corpus = documents("ab", "c")
    rows = encode_rows(corpus, train_tokenizer("char", corpus, None, ("end",)), tmp_path)
    assert (len(split_rows(rows, "train")), len(split_rows(rows, "val"))) == (2, 0)


def test_rows_of_several_files_are_joined(tmp_path: Path) -> None:
    corpora = documents("ab", "c"), documents("ba")
    tokenizer = train_tokenizer("char", corpora[0], None, ("end",))
    both = join_rows([encode_rows(corpus, tokenizer, tmp_path) for corpus in corpora])
    assert shown(both, tokenizer) == ["<|end|>ab<|end|>", "<|end|>c<|end|>", "<|end|>ba<|end|>"]
    assert both.take(np.array([2])).flat().tolist() == both.row(2)[1:].tolist()
