"""Tokenizer training: vocabularies, reproducibility and errors."""

import pytest

from tinychat.errors import TokenizerError
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

TEXT = (
    "The cat's hat isn't here, she said; it's 1,234 miles off!\n\n    def f(x):\n\treturn x_1 + 2\n"
    "Кошка спит на окне. 猫在窗台上睡觉。 naïve café – “quoted” 😀 👩‍👩‍👧 e\u0301\n"
) * 20
KINDS = ("char", "word", "wordpiece", "bpe")
SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>")


def make(kind: str, text: str = TEXT) -> Tokenizer:
    return Tokenizer(train_vocabulary(kind, [text], 600, SPECIALS))


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
    assert [text for text, _ in tokenizer.pieces("the cats")] == ["the", " ", "c", "a", "t", "s"]


def test_pieces_of_words_begin_with_their_space() -> None:
    assert tuple(text for text, _ in make("wordpiece", "we talk to them " * 9).pieces(" talk to")) == (" talk", " to")


def test_each_digit_is_a_piece_of_its_own() -> None:
    pieces = make("wordpiece", "58 + 12 = 70, 1,984 " * 99).pieces(" 58 + 1984")
    assert tuple(text for text, _ in pieces) == (" 5", "8", " +", " 1", "9", "8", "4")


@pytest.mark.parametrize(
    ("kind", "size"), [("wordpiece", 200), ("bpe", 200), ("word", 10), ("char", 3), ("nonsense", None)]
)
def test_an_impossible_vocabulary_is_refused(kind: str, size: int | None) -> None:
    with pytest.raises(TokenizerError):
        train_vocabulary(kind, [TEXT], size, SPECIALS)


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
