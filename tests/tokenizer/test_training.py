"""Tokenizer training: vocabularies, reproducibility and errors."""

import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.errors import TokenizerError
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import LONGEST_RUN, train_vocabulary

TEXT = (
    "The cat's hat isn't here, she said; it's 1,234 miles off!\n\n    def f(x):\n\treturn x_1 + 2\n"
    "Кошка спит на окне. 猫在窗台上睡觉。 naïve café – “quoted” 😀 👩‍👩‍👧 e\u0301\n"
) * 20
KINDS = ("char", "word", "wordpiece", "bpe")
SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>")


def make(kind: str, text: str = TEXT) -> Tokenizer:
    return Tokenizer(train_vocabulary(kind, [text], 600, SPECIALS))


def split(tokenizer: Tokenizer, text: str) -> list[str]:
    """The texts of the tokens of a text."""
    return [tokenizer.token_text(id) for id in tokenizer.encode(text)]


@pytest.mark.parametrize("kind", KINDS)
def test_training_again_gives_the_same(kind: str) -> None:
    assert make(kind).to_json() == make(kind).to_json()
    assert make(kind, TEXT + "z" * 99).fingerprint != make(kind).fingerprint


def test_the_vocabulary_of_char_is_the_sorted_characters() -> None:
    tokenizer = Tokenizer(train_vocabulary("char", ["ba", "cab\n"]))
    assert [tokenizer.token_text(id) for id in range(tokenizer.vocab_size)] == ["\n", "a", "b", "c"]
    assert tokenizer.encode("cab") == [3, 1, 2]
    assert Tokenizer(train_vocabulary("char", ["aaabbc"], 2)).unknown("abc") == ["c"]


def test_words_are_tokens_and_unknown_ones_are_spelled() -> None:
    tokenizer = Tokenizer(train_vocabulary("word", ["the cat sat"]))
    assert split(tokenizer, "the cats") == ["the", " ", "c", "a", "t", "s"]


def test_pieces_of_words_begin_with_their_space() -> None:
    assert split(make("wordpiece", "we talk to them " * 9), " talk to") == [" talk", " to"]


def test_each_digit_is_a_piece_of_its_own() -> None:
    tokenizer = make("wordpiece", "58 + 12 = 70, 1,984 " * 99)
    assert split(tokenizer, " 58 + 1984") == [" 5", "8", " +", " 1", "9", "8", "4"]


def test_an_apostrophe_begins_a_word() -> None:
    tokenizer = make("wordpiece", "Don't say it's 'tis,' boys' ('so'), rock'n'roll. " * 99)
    assert split(tokenizer, " it's 'tis,'") == [" it", "'s", " 'tis", ",", "'"]


def test_a_word_keeps_its_space_after_an_indentation() -> None:
    tokenizer = make("wordpiece", "if x:\n    return x\n        or return y\n" * 99)
    assert split(tokenizer, "\n    return") == ["\n", "   ", " return"]


SCRAPS = (
    *"'’\",.!-_()[]#&=/ \t\n\r0123456789aIstdm", "''", "--", "...", "  ", "   ", "    ", "\n\n\n", "\t\t\t", "\r\n",
    "the", "'tis", "'s", "n't", "'ll", "don't", "THE", "é", "e\u0301", "ﬁ", "кошка", " кот", "猫", "猫在窗台上",
    "。", "、", "\u3000", "\xa0", "\u2028", "😀", "👩‍👩‍👧", "𝒜", "ﾠ", "\0", "\ufeff", "٣", "½", "²", "กำ", "한국",
)  # fmt: skip
"""Scraps of which odd texts are put together: all kinds of characters, of one to four bytes, some with equal bytes."""


@cache
def odd_vocabulary(script: str) -> Tokenizer:
    texts = {
        "latin": TEXT,
        "quotes": "'Tis so,' said he. 'Don't you ... (''a'') --' '--'tis 'll  two  spaces\n\n   three\t\t\ttabs " * 30,
        "scraps": "".join(one + other for one in SCRAPS for other in SCRAPS) * 3,
    }
    return Tokenizer(train_vocabulary("wordpiece", [texts[script]], 2_000, SPECIALS))


@cache
def pieces_of(tokenizer: Tokenizer) -> dict[bytes, int]:
    return {tokenizer.token_bytes(id): id for id in range(tokenizer.vocab_size) if not tokenizer.is_special(id)}


def longest_matches(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of the longest pieces of a text, from left to right, without splitting it into words."""
    ids, data, found = pieces_of(tokenizer), text.encode(), list[int]()
    longest = max(map(len, ids))
    while data:
        piece = next(data[:end] for end in range(longest, 0, -1) if data[:end] in ids)
        found.append(ids[piece])
        data = data[len(piece) :]
    return found


@pytest.mark.parametrize("script", ["latin", "quotes", "scraps"])
@settings(deadline=None, max_examples=150)
@given(scraps=st.lists(st.sampled_from(SCRAPS) | st.characters(exclude_categories=["Cs"]), max_size=12))
def test_the_longest_match_over_a_text_finds_the_pieces_of_its_words(script: str, scraps: list[str]) -> None:
    text, tokenizer = "".join(scraps), odd_vocabulary(script)
    assert tokenizer.encode(text) == longest_matches(tokenizer, text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("char", [" ", "\n", "\t", "'"])
def test_runs_of_any_length_are_cut_as_the_longest_match_does(char: str) -> None:
    tokenizer = odd_vocabulary("scraps")
    for length in range(1, 3 * LONGEST_RUN):
        text = f"a{char * length}b"
        assert tokenizer.encode(text) == longest_matches(tokenizer, text)


def test_pieces_are_whole_characters_or_parts_of_one() -> None:
    tokenizer = Tokenizer(train_vocabulary("wordpiece", ["猫。犬、鳥。" * 99 + "😀😁😂🤣" * 99], 600))
    parts = [piece for id in range(600) if len(piece := tokenizer.token_bytes(id)) > 1 and not is_text(piece)]
    assert parts
    assert all(byte & 0xC0 == 0x80 for piece in parts for byte in piece[1:])


def is_text(piece: bytes) -> bool:
    return "\ufffd" not in piece.decode("utf-8", "replace")


def test_a_text_without_ends_of_words_takes_bounded_time() -> None:
    began = time.process_time()
    for char in "a猫😀-":
        assert len(odd_vocabulary("latin").encode(char * 20_000)) > 300
    assert time.process_time() - began < 30


@pytest.mark.parametrize(
    ("kind", "size"), [("wordpiece", 200), ("bpe", 200), ("word", 10), ("char", 3), ("nonsense", None)]
)
def test_an_impossible_vocabulary_is_refused(kind: str, size: int | None) -> None:
    with pytest.raises(TokenizerError):
        train_vocabulary(kind, [TEXT], size, SPECIALS)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
@pytest.mark.parametrize(("specials", "least"), [(SPECIALS, 259), ((), 256)])
def test_a_vocabulary_that_lacks_room_for_all_bytes_is_told_how_much_it_needs(
    kind: str, specials: tuple[str, ...], least: int
) -> None:
    assert train_vocabulary(kind, [TEXT], least, specials).get_vocab_size() == least
    with pytest.raises(TokenizerError, match=rf"at least {least} tokens .*, not {least - 1}\n"):
        train_vocabulary(kind, [TEXT], least - 1, specials)


def test_whitespace_words_are_whole_tokens_or_dropped() -> None:
    tokenizer = Tokenizer(train_vocabulary("whitespace", ["let's go a", "go\nhome"], None, ["<|end|>"]))
    assert (tokenizer.kind, tokenizer.vocab_size) == ("whitespace", 5)
    ids = tokenizer.encode("  go apple\ta let's   homes home")
    assert [tokenizer.token_text(id) for id in ids] == [" go", " a", " let's", " home"]
    assert tokenizer.decode(ids) == "go a let's home"
    stream = tokenizer.stream()
    assert "".join(stream.push(id) for id in ids) + stream.flush() == "go a let's home"
    assert tokenizer.unknown("go apple homes apple") == ["apple", "homes"]
    again = Tokenizer.from_json(tokenizer.to_json())
    assert (again.kind, again.encode("a home")) == ("whitespace", tokenizer.encode("a home"))
