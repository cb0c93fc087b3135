"""Files of others: what the library would panic or hang on is refused in a line, and real files are taken."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers

from tinychat.errors import TokenizerError
from tinychat.tokenizer.library import MAX_PATTERN, MAX_REPEATS, call, check_file, check_pattern, read_decoder
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import PIECE_PATTERN, WORD_PATTERN

Values = dict[str, Any]

REAL_PATTERNS = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "GPT-4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "GPT-4o": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "Qwen": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "BLOOM": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "DeepSeek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "words": WORD_PATTERN,
    "pieces": PIECE_PATTERN,
}

BAD_PATTERNS = {
    "look-aheads": ("(?=" * 2_000 + "a" + ")" * 2_000, "nested more than"),
    "classes": ("[" * 100 + "a" + "]" * 100, "nested more than"),
    "long": ("a" * (MAX_PATTERN + 1), "characters, over"),
    "repeated": (f"(?:ab){{{MAX_REPEATS}}}", "repeats more than"),
    "nested counts": ("(?:(?:a{100}){100}){100}", "repeats more than"),
    "counts beside": ("(?:a{10000}b{,60000}){2}", "repeats more than"),
    "endless count": ("a{99999999999999999999}", "repeats more than"),
    "recursion": (r"(?<x>a\g<x>?\g<x>?b)", "calls a part of itself"),
}

BACKTRACKS = "a?" * 64 + "a" * 64
"""A pattern that is short and flat, yet tries 2^64 ways to match `a` 32 times: the library gives up with a panic."""


def file(**sections: Any) -> Values:
    """Return the content of a small `tokenizer.json`, with some sections replaced."""
    inner = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "c": 2, "ab": 3}, [("a", "b")]))
    inner.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    return {**json.loads(inner.to_str()), **sections}


def model(**fields: Any) -> Values:
    return file(model={**file()["model"], **fields})


def split(pattern: str) -> Values:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def added(**fields: Any) -> Values:
    return file(added_tokens=[{**file()["added_tokens"][0], **fields}])


def unigram(**fields: Any) -> Values:
    return file(model={"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0]], "byte_fallback": False} | fields)


WORDPIECE: Values = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
BAD_FILES = {
    "an id of 2^31": (model(vocab={"a": 0, "b": 1, "ab": 2**31}), "'ab' has the id 2147483648, of 3 tokens"),
    "an id below 0": (model(vocab={"a": -1}, merges=[]), "'a' has the id -1"),
    "an id of truth": (model(vocab={"a": True}, merges=[]), "'a' has the id True"),
    "an id twice": (model(vocab={"a": 0, "b": 0}, merges=[]), "'a' and 'b' have the same id, 0"),
    "no vocabulary": (model(vocab=None), "no vocabulary"),
    "an unknown unk": (model(unk_token="zz"), "unknown token 'zz' is not in the vocabulary"),
    "no [UNK]": (file(model=WORDPIECE | {"unk_token": "[UNK]", "vocab": {"a": 0}}), "unknown token '\\[UNK\\]'"),
    "an unknown unk_id": (unigram(unk_id=1), "unknown token 1 is not"),
    "a pair of one": (unigram(vocab=[["a"]]), "no list of tokens"),
    "an unknown merge": (model(merges=[["a", "x"]]), "`x` out of vocabulary"),
    "a short merge": (model(continuing_subword_prefix="####"), "lacks the prefix '####'"),
    "an added id of 2^31": (added(id=2**31), "has the id 2147483648"),
    "an added id twice": (added(id=1), "another token or id has it too"),
    "an added token twice": (added(content="a"), "another token or id has it too"),
    "an added token without text": (added(content=""), "is no text"),
    "pieces of no length": (file(pre_tokenizer={"type": "FixedLength", "length": 0}), "a length of 0"),
    "no charsmap": (file(normalizer={"type": "Precompiled", "precompiled_charsmap": ""}), "Precompiled"),
    "a thousand steps": (
        file(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 1_001}),
        "steps have 1,002 parts",
    ),
    "a step in a step": (
        file(decoder={"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "("}, "content": ""}]}),
        "",
    ),
    "no model": ({"model": 5}, "no model"),
    "no tokens": (file(added_tokens=[1]), "no list of objects"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_the_library_stumbles_over_are_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    values, said = BAD_FILES[name]
    with pytest.raises(TokenizerError, match=f"no tokenizer.json: .*{said}") as caught:
        Tokenizer.from_json(json.dumps(values))
    assert "\n" not in caught.value.problem
    assert len(caught.value.problem) < 300
    assert capfd.readouterr() == ("", "")


def test_odd_json_is_refused() -> None:
    for text in ("[" * 100_000, '{"model": {}, "model": {}}', '{"version": 1e999}', "", "null", "[1]"):
        with pytest.raises(TokenizerError):
            check_file(text)


@pytest.mark.parametrize("name", BAD_PATTERNS)
def test_patterns_that_may_never_end_are_refused_at_once(name: str) -> None:
    pattern, said = BAD_PATTERNS[name]
    began = time.process_time()
    for section in ("normalizer", "pre_tokenizer", "decoder"):
        with pytest.raises(TokenizerError, match=said):
            check_file(json.dumps(file(**{section: {"type": "Sequence", "steps": [split(pattern)]}})))
    assert time.process_time() - began < 1


@pytest.mark.parametrize("name", REAL_PATTERNS)
def test_patterns_of_real_models_are_taken(name: str) -> None:
    check_pattern(REAL_PATTERNS[name])
    tokenizer = Tokenizer.from_json(json.dumps(file(pre_tokenizer=split(REAL_PATTERNS[name]))))
    assert tokenizer.decode(tokenizer.encode("ab")) == "ab"


def test_a_level_of_brackets_in_a_class_or_behind_a_backslash_is_none() -> None:
    check_pattern(r"\(\[\{" * 100 + r"\p{L}\x{1F600}" * 100)
    check_pattern("(a)[b]" * 100 + ")" * 100)


def test_a_vocabulary_of_all_bytes_needs_no_unknown_token() -> None:
    letters = {letter: id for id, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    values = file(
        model=WORDPIECE | {"unk_token": "", "continuing_subword_prefix": "", "vocab": letters}, added_tokens=[]
    )
    assert Tokenizer.from_json(json.dumps(values)).encode("ab") == [letters["a"], letters["b"]]
    del values["model"]["vocab"]["a"]
    with pytest.raises(TokenizerError, match="unknown token ''"):
        Tokenizer.from_json(json.dumps(values))


@pytest.mark.parametrize(
    "use",
    [
        lambda tokenizer: tokenizer.encode("a" * 32),
        lambda tokenizer: tokenizer.encode_array("a" * 32),
        lambda tokenizer: tokenizer.encode_batch(["b", "a" * 32]),
    ],
)
def test_a_pattern_that_backtracks_without_end_is_an_error_in_one_line(
    use: Callable[[Tokenizer], object], capfd: pytest.CaptureFixture[str]
) -> None:
    tokenizer = Tokenizer.from_json(json.dumps(file(pre_tokenizer=split(BACKTRACKS))))
    assert tokenizer.encode("b") == [1]
    with pytest.raises(TokenizerError, match="retry-limit"):
        use(tokenizer)
    assert capfd.readouterr() == ("", "")


def test_a_decoder_that_panics_is_an_error_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    strip = {"type": "Strip", "content": "x", "start": 0, "stop": 5}
    vocab = {"": 0, "a": 1}
    tokenizer = Tokenizer.from_json(
        json.dumps(file(model={**file()["model"], "vocab": vocab, "merges": []}, decoder=strip, added_tokens=[]))
    )
    with pytest.raises(TokenizerError, match="out of bounds"):
        tokenizer.decode([0])
    assert capfd.readouterr() == ("", "")


def test_what_others_write_during_a_call_is_written_after_it(capfd: pytest.CaptureFixture[str]) -> None:
    for text in (b"one\n", b"two\n"):
        assert call(os.write, 2, text) == 4
    assert capfd.readouterr().err == "one\ntwo\n"

    def interrupt() -> None:
        os.write(2, b"three\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(interrupt)
    os.write(2, b"four\n")
    assert capfd.readouterr().err == "three\nfour\n"


def test_a_call_works_without_stderr() -> None:
    saved = os.dup(2)
    try:
        os.close(2)
        assert call(len, "abc") == 3
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def test_brackets_in_a_plain_string_are_no_groups() -> None:
    inner = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("((((" * 100, "isolated"), pre_tokenizers.Split(Regex(r"\s+"), "removed")]
    )
    assert Tokenizer.from_json(inner.to_str()).encode("a b") == [0, 1]


def test_the_texts_of_tokens_are_known_unless_they_depend_on_others_or_grow() -> None:
    def texts(decoder: Any) -> Any:
        inner = tokenizers.Tokenizer(models.BPE())
        if decoder is not None:
            inner.decoder = decoder
        return read_decoder(inner)

    bytes_of = texts(decoders.ByteLevel()).to_bytes
    names = ("Ġa", "ÃŃ", "Ãx y", "世")
    assert [bytes_of(name) for name in names] == [b" a", "í".encode(), "Ãx y".encode(), "世".encode()]
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    piece = texts(decoders.Sequence(steps))
    assert (piece.adds_space, piece.to_bytes("▁a▁"), piece.to_bytes("<0xE4>")) == (True, b" a ", b"\xe4")
    assert texts(decoders.Sequence(steps[:3])).adds_space is False
    spaces = [texts(decoders.Metaspace(prepend_scheme=scheme)).adds_space for scheme in ("never", "first")]
    assert spaces == [False, True]
    growing = decoders.Replace("a", "b" * 100)
    for unknown in (None, decoders.WordPiece(), decoders.CTC(), growing, decoders.Strip("a", 1, 0)):
        assert texts(unknown) is None
