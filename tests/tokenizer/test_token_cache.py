"""Token cache: correct, complete and never stale."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinychat.corpus.corpus import Corpus
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError, TokenizerError
from tinychat.tokenizer import token_cache as module
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import encode_corpus
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_tokenizer

TEXT = "The cat sat on the mat.\nКошка спит. 猫。\n" * 9_000


def corpus_of(folder: Path, text: str, name: str = "text.txt") -> Corpus:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_sources([str(path)], cache=folder / "cache")


def encode(folder: Path, corpus: Corpus, tokenizer: Tokenizer, template: ChatTemplate | None = None) -> list[int]:
    return [int(id) for id in encode_corpus(corpus, tokenizer, folder / "cache", template=template).ids]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["char", "wordpiece", "word"])
def test_the_ids_are_those_of_the_whole_text(tmp_path: Path, kind: str) -> None:
    corpus = corpus_of(tmp_path, TEXT)
    tokenizer = train_tokenizer(kind, corpus, 600)
    file = encode_corpus(corpus, tokenizer, tmp_path / "cache")
    assert np.array_equal(file.ids, tokenizer.encode(TEXT))
    assert tokenizer.count_characters(file.ids) == len(TEXT)
    assert file.ids.dtype == np.uint16
    assert file.ends.tolist() == [len(file.ids)]
    with pytest.raises(ValueError, match="read-only"):
        file.ids[0] = 1


def test_documents_end_with_the_end_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 4)
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "b.jsonl").write_text('"c"\n"d"\n"ab"\n')
    corpus = read_sources([str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl"), str(tmp_path / "a.txt")], cache=tmp_path)
    tokenizer = train_tokenizer("char", corpus, None, ["end"])
    pieces = [tokenizer.token_text(id) for id in encode(tmp_path, corpus, tokenizer)]
    assert "".join(pieces) == "ab<|end|>c<|end|>d<|end|>ab<|end|>ab<|end|>"
    ends = encode_corpus(corpus, tokenizer, tmp_path / "cache").ends
    assert ends.tolist() == [index for index, piece in enumerate(pieces, 1) if piece == "<|end|>"]
    plain = train_tokenizer("char", corpus)
    assert plain.decode(encode(tmp_path, corpus, plain)) == "abcdabab"


def test_conversations_go_through_their_template(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"question": "ab", "answer": "c"}) + "\n")
    corpus = read_sources([str(path)], cache=tmp_path)
    tokenizer = train_tokenizer("char", corpus, None, ("end", "user", "assistant"))
    shown = [tokenizer.token_text(id) for id in encode(tmp_path, corpus, tokenizer, ChatTemplate())]
    assert "".join(shown) == "<|user|>ab<|end|><|assistant|>c<|end|>"
    shown = [tokenizer.token_text(id) for id in encode(tmp_path, corpus, tokenizer)]
    assert "".join(shown) == "ab<|end|>c<|end|>"


def test_a_text_is_encoded_once_for_each_tokenizer(tmp_path: Path) -> None:
    def files(text: str, tokenizer: Tokenizer) -> Path:
        return encode_corpus(corpus_of(tmp_path, text), tokenizer, tmp_path / "c").path

    one = train_tokenizer("char", corpus_of(tmp_path, "abc"))
    other = train_tokenizer("char", corpus_of(tmp_path, "abcd"))
    paths = [files("abc", one), files("abc", other), files("abca", one)]
    made = paths[0].stat().st_mtime_ns
    assert files("abc", one) == paths[0]
    assert paths[0].stat().st_mtime_ns == made
    assert len(set(paths)) == len(list((tmp_path / "c").glob("*.ids"))) == 3


def test_a_text_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "abc")
    tokenizer = train_tokenizer("char", corpus)
    (tmp_path / "text.txt").write_text("cba")
    with pytest.raises(SourceError, match="changed while it was read"):
        encode_corpus(corpus, tokenizer, tmp_path / "c")
    assert list((tmp_path / "c").iterdir()) == []


def test_a_mix_is_encoded_as_its_texts_in_a_row_each_checked_for_changes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "b.txt").write_text("c")
    mix = read_sources([f"{tmp_path}/a.txt:3", f"{tmp_path}/b.txt"], cache=tmp_path)
    tokenizer = train_tokenizer("char", mix, None, ["end"])
    assert "".join(map(tokenizer.token_text, encode(tmp_path, mix, tokenizer))) == "ab<|end|>c<|end|>"
    other = train_tokenizer("char", mix)
    (tmp_path / "b.txt").write_text("b")
    with pytest.raises(SourceError, match=r"b\.txt changed while it was read"):
        encode(tmp_path, mix, other)


def test_a_tokenizer_without_any_token_of_the_text_is_refused(tmp_path: Path) -> None:
    tokenizer = train_tokenizer("char", corpus_of(tmp_path, "abc"))
    with pytest.raises(TokenizerError, match="no token for anything"):
        encode_corpus(corpus_of(tmp_path, "XYZ"), tokenizer, tmp_path / "c")


def test_a_large_vocabulary_takes_four_bytes(tmp_path: Path) -> None:
    text = "".join(map(chr, (*range(0x4E00, 0x9FFF), *range(0x20000, 0x20000 + 50_000))))
    corpus = corpus_of(tmp_path, text)
    tokenizer = train_tokenizer("char", corpus)
    ids = encode_corpus(corpus, tokenizer, tmp_path / "c").ids
    assert ids.dtype == np.uint32
    assert tokenizer.decode(ids.tolist()) == text
