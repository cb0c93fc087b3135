"""Tokenizers: lossless, and the same when streamed, in pieces, and in the plain `tokenizers` library."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers

from tinychat.errors import TokenizerError
from tinychat.tokenizer.tokenizer import LONGEST_WHOLE, SEGMENT, Tokenizer, load_tokenizer
from tinychat.tokenizer.training import train_vocabulary

TEXT = (
    "The cat's hat isn't here, she said; it's 1,234 miles off!\n\n    def f(x):\n\treturn x_1 + 2\n"
    "Кошка спит на окне. 猫在窗台上睡觉。 naïve café – “quoted” 😀 👩‍👩‍👧 e\u0301\n"
) * 20
KINDS = ("char", "word", "wordpiece", "bpe")
SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>")

any_text = st.text(st.characters(exclude_categories=["Cs"]))
known_text = st.text(st.sampled_from(sorted(set(TEXT)))) | st.lists(st.sampled_from(TEXT.split())).map(" ".join)


def make(kind: str, text: str = TEXT, vocab_size: int | None = 600) -> Tokenizer:
    return Tokenizer(train_vocabulary(kind, [text], vocab_size, SPECIALS))


TOKENIZERS = {kind: make(kind) for kind in KINDS}


def bert() -> Tokenizer:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "do",
        "not",
        "##t",
        "don",
        "'",
        ".",
        *"abcdefg",
        *(f"##{c}" for c in "abcdefg"),
    ]
    return _from_lines(words)


def _from_lines(words: Sequence[str]) -> Tokenizer:
    from tinychat.tokenizer.tokenizer import read_bert_vocabulary

    return Tokenizer(read_bert_vocabulary("\n".join(words) + "\n"))


def sentencepiece() -> Tokenizer:
    """Return a tokenizer like Llama's: spaces as `▁`, and byte tokens for unknown characters."""
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "▁a",
        "▁b",
        "ab",
        "▁ab",
    ]
    merges = [("▁", "a"), ("▁", "b"), ("a", "b"), ("▁a", "b")]
    model = models.BPE({piece: id for id, piece in enumerate(pieces)}, merges, byte_fallback=True, unk_token="<unk>")
    inner = tokenizers.Tokenizer(model)
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    ])  # fmt: skip
    inner.add_special_tokens(["<unk>", "<s>", "</s>"])
    return Tokenizer(inner)


FOREIGN = {"bert": bert(), "sentencepiece": sentencepiece()}


@pytest.mark.parametrize("kind", KINDS)
@given(text=known_text)
def test_decoding_undoes_encoding(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unknown(text) == []


@given(any_text)
def test_wordpiece_encodes_any_text(text: str) -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unknown(text) == []


@pytest.mark.parametrize("kind", ["char", "word"])
@given(text=any_text)
def test_unknown_characters_are_left_out_and_named(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    unknown = tokenizer.unknown(text)
    assert unknown == [char for char in dict.fromkeys(text) if char not in TEXT]
    assert tokenizer.decode(tokenizer.encode(text)) == "".join(char for char in text if char not in unknown)


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
@given(data=st.data())
def test_streamed_pieces_joined_are_the_whole(kind: str, data: st.DataObject) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    stream = tokenizer.stream()
    assert "".join([*map(stream.push, ids), stream.flush()]) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_ids_beyond_the_vocabulary_have_no_text(kind: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    beyond = tokenizer.vocab_size + 5  # a model may have room for more
    assert tokenizer.decode([beyond]) == tokenizer.token_text(beyond) == tokenizer.stream().push(beyond) == ""


def test_a_character_of_several_tokens_is_pending_until_it_is_whole() -> None:
    tokenizer = make("wordpiece", "abc", 300)
    stream = tokenizer.stream()
    pushed = [(stream.push(id), stream.pending) for id in tokenizer.encode("猫")]
    assert pushed == [("", True), ("", True), ("猫", False)]


@pytest.mark.parametrize("kind", KINDS)
@given(text=known_text, size=st.integers(1, 9))
@pytest.mark.slow
def test_pieces_have_the_ids_of_the_whole(kind: str, text: str, size: int) -> None:
    tokenizer = TOKENIZERS[kind]
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert np.concatenate(list(tokenizer.encode_pieces(pieces)) or [[]]).tolist() == tokenizer.encode(text)
    assert tokenizer.encode_array(text).tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_a_long_text_is_cut_without_changing_its_ids(kind: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    text = TEXT * (3 * SEGMENT // len(TEXT))
    pieces = [text[start : start + 10_007] for start in range(0, len(text), 10_007)]
    assert np.concatenate(list(tokenizer.encode_pieces(pieces))).tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("tokenizer", [*TOKENIZERS.values(), *FOREIGN.values()], ids=[*TOKENIZERS, *FOREIGN])
def test_the_bytes_of_tokens_are_what_they_add_to_a_text(tokenizer: Tokenizer) -> None:
    text = "a cat"
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode(text))).decode().strip() == text
    assert tokenizer.token_bytes(tokenizer.vocab_size + 1) == b""
    assert all(tokenizer.token_bytes(id) == b"" for id in tokenizer._specials)


@pytest.mark.parametrize("kind", ["word", "wordpiece"])
def test_a_text_without_any_space_is_cut_as_well(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.tokenizer.tokenizer.LONGEST_UNCUT", 5_000)
    tokenizer = TOKENIZERS[kind]
    text = "".join(TEXT.split()) * 10
    pieces = [text[start : start + 1_001] for start in range(0, len(text), 1_001)]
    assert np.concatenate(list(tokenizer.encode_pieces(pieces))).tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_line_of_100_000_characters(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    text = "猫a" * 50_000
    began = time.process_time()
    assert tokenizer.decode(tokenizer.encode_array(text)) == text
    assert time.process_time() - began < 10


@pytest.mark.parametrize("kind", KINDS)
@given(text=any_text, data=st.data())
def test_the_library_encodes_and_decodes_alike(kind: str, text: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[kind]
    plain = PLAIN[kind]
    if not any(special in text for special in SPECIALS):
        assert plain.encode(text).ids == tokenizer.encode(text)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert plain.decode(ids) == tokenizer.decode(ids)


PLAIN = {kind: tokenizers.Tokenizer.from_str(TOKENIZERS[kind].to_json()) for kind in KINDS}


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_saving_and_loading_preserves_a_tokenizer(tmp_path: Path, kind: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    tokenizer.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        loaded = load_tokenizer(path)
        assert loaded.fingerprint == tokenizer.fingerprint
        assert loaded.kind == tokenizer.kind
        assert loaded.encode(TEXT) == tokenizer.encode(TEXT)


def test_tokens_of_words_may_include_the_space_before_them() -> None:
    found = {kind: one.has_spaces_in_words for kind, one in (TOKENIZERS | FOREIGN).items()}
    assert found == {
        "char": False,
        "word": False,
        "wordpiece": True,
        "bpe": True,
        "bert": False,
        "sentencepiece": False,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_in_a_text_are_never_recognized(kind: str) -> None:
    tokenizer = make(kind, TEXT + "<|end|>")
    end = tokenizer.special("end")
    assert end is not None
    ids = tokenizer.encode("hat<|end|>")
    assert end not in ids
    assert tokenizer.decode([*ids, end]) == "hat<|end|>"
    assert tokenizer.token_text(end) == "<|end|>"
    assert tokenizer.special("pad") is None


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_characters_are_counted(kind: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    ids = [*tokenizer.encode("ab ab 😀"), tokenizer.special("end") or 0]
    assert tokenizer.count_characters(np.array(ids)) == len(tokenizer.decode(ids))


def test_a_quoted_token_shows_each_byte_once() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    text = "你\n\\udce4 it's"
    assert "".join(tokenizer.quoted(id)[1:-1] for id in tokenizer.encode(text)) == r"\xe4\xbd\xa0\n\\udce4 it's"


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_half_a_character_can_be_decoded(kind: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    tokenizer.encode("a\ud800b")
    assert [tokenizer.token_text(id) for id in tokenizer.encode("a\udfff")]
    assert "\ud800" not in tokenizer.unknown("\ud800")


@pytest.mark.slow
def test_ids_take_two_bytes_until_they_need_four() -> None:
    assert TOKENIZERS["char"].dtype == np.uint16
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))) + "".join(map(chr, range(0x20000, 0x20000 + 42_000)))
    assert Tokenizer(train_vocabulary("char", [many])).dtype == np.uint16
    more = many + "".join(map(chr, range(0xAC00, 0xAC00 + 11_000)))
    tokenizer = Tokenizer(train_vocabulary("char", [more]))
    assert tokenizer.dtype == np.uint32
    assert tokenizer.decode(tokenizer.encode_array(more)) == more


def test_a_bert_vocabulary_splits_as_bert_does() -> None:
    tokenizer = FOREIGN["bert"]
    assert [tokenizer.token_text(id) for id in tokenizer.encode("Do not ABC")] == ["do", "not", "a", "##b", "##c"]
    assert tokenizer.decode(tokenizer.encode("do not .")) == "do not ."
    assert tokenizer.unknown("a猫") == ["猫"]
    assert tokenizer.special("begin") == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("vocab.txt", "just\nwords\n", "no BERT vocabulary"),
        ("tokenizer.json", "{}", "no tokenizer.json"),
        ("tokenizer.json", "not json", "no tokenizer.json"),
    ],
)
def test_invalid_tokenizer_files_are_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TokenizerError, match=said):
        load_tokenizer(tmp_path)


def test_a_missing_tokenizer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="holds neither") as caught:
        load_tokenizer(tmp_path)
    assert "save_pretrained" in caught.value.remedy
    with pytest.raises(TokenizerError, match="cannot be read"):
        load_tokenizer(tmp_path / "none.json")


def test_a_byte_level_bpe_is_read_with_its_bytes() -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(models.BPE({letter: id for id, letter in enumerate(letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = Tokenizer(inner)
    assert tokenizer.kind == "bpe"
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT


@pytest.mark.mirror
def test_the_published_vocabulary_of_bert_gives_its_ids() -> None:
    tokenizer = load_tokenizer(Path(os.environ["TINYCHAT_MIRROR"]) / "bert_uncased_vocab")
    assert (tokenizer.vocab_size, tokenizer.kind) == (30_522, "wordpiece")
    assert tokenizer.encode("Hello, wörld! Unaffable.") == [7592, 1010, 2088, 999, 14477, 20961, 3468, 1012]
    assert (tokenizer.special("begin"), tokenizer.special("end"), tokenizer.special("pad")) == (101, 102, 0)


@pytest.mark.mirror
def test_a_million_characters_are_encoded_at_once() -> None:
    text = (Path(os.environ["TINYCHAT_MIRROR"]) / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer(train_vocabulary("char", [text]))
    assert tokenizer.vocab_size == 65
    began = time.process_time()
    ids = tokenizer.encode_array(text)
    assert time.process_time() - began < 0.5
    assert tokenizer.decode(ids.tolist()) == text


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
@pytest.mark.parametrize("text", ["a cat sat, on a mat.\nab ba a b\n\n", "ab", "ab \x00"])
def test_the_ends_of_a_long_text_have_the_ids_of_the_whole(kind: str, text: str) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    text *= 3 * LONGEST_WHOLE // len(text)
    ids, length = tokenizer.encode(text), 100
    assert tokenizer.encode_end(text, length)[-length:] == ids[-length:]
    assert tokenizer.encode_start(text, length)[:length] == ids[:length]
    assert tokenizer.encode_end(text[:1000], length) == tokenizer.encode_start(text[:1000], length)
    assert tokenizer.encode_end(text[:1000], length) == tokenizer.encode(text[:1000])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["ACGTTGCA", " ", "=-", "猫犬"])
def test_the_end_of_a_long_text_without_words_has_the_ids_of_the_whole(kind: str, text: str) -> None:
    tokenizer = make(kind, text * 50)
    text = (text * 3 * LONGEST_WHOLE)[: 3 * LONGEST_WHOLE + 17]
    ids = tokenizer.encode(text)
    for length in (1, 100, 1000):
        assert tokenizer.encode_end(text, length)[-length:] == ids[-length:]


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_only_the_ends_of_a_long_text_are_encoded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = (TOKENIZERS | FOREIGN)[kind]
    text = "ab a ab b\n" * LONGEST_WHOLE
    encoded: list[int] = []
    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: encoded.append(len(text)) or encode(self, text))
    assert len(tokenizer.encode_end(text, 100)) == len(tokenizer.encode_start(text, 100)) == 100
    assert sum(encoded) < len(text) / 2


def test_a_long_text_without_words_is_not_encoded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, text, encoded, encode = make("wordpiece", "ACGT"), "ACGTTGCA" * (1 << 19), list[int](), Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: encoded.append(len(text)) or encode(self, text))
    assert len(tokenizer.encode_end(text, 100)) == 100
    assert sum(encoded) < len(text) / 2


def test_an_end_that_is_mostly_unknown_is_still_found() -> None:
    tokenizer = TOKENIZERS["char"]
    text = "a cat" + "犬" * 20 * LONGEST_WHOLE
    assert tokenizer.encode_end(text, 100) == tokenizer.encode("a cat")
