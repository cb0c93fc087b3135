"""Guides: every text that they lead to begins as asked or matches, and no token that leads to a match is missing."""

import random
import re
from functools import cache
from itertools import product

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tinychat.errors import GenerationError
from tinychat.generate.guide import Guide, State
from tinychat.generate.vocabulary import Vocabulary
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

TEXT = "the cat sat on the mat, the dog ran; yes or no, 1234567890? é 你好 \n" * 3
KINDS = ("char", "word", "whitespace", "wordpiece", "bert", "fallback")
CANNOT = {("whitespace", "(1,?)*c"), ("whitespace", "the c")}
"""Kinds of tokenizers, and what they cannot write."""


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    if kind == "bert":
        pieces = ["[UNK]", "cat", "##s", "the", "##me", "a", "c", "##at", "t", "##he", "1", "##2", ","]
        inner = tokenizers.Tokenizer(models.WordPiece({one: id for id, one in enumerate(pieces)}, unk_token="[UNK]"))
        inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(cleanup=False)
        inner.add_special_tokens(["[UNK]"])
        return Tokenizer(inner)
    if kind == "fallback":  # as of LLaMA
        pieces = [
            "<unk>",
            *(f"<0x{byte:02X}>" for byte in range(256)),
            "▁",
            "t",
            "h",
            "e",
            "▁t",
            "▁th",
            "▁the",
            "c",
            "a",
        ]
        merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
        model = models.BPE({one: id for id, one in enumerate(pieces)}, merges, byte_fallback=True, unk_token="<unk>")
        inner = tokenizers.Tokenizer(model)
        inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        inner.decoder = decoders.Sequence(steps)
        inner.add_special_tokens(["<unk>"])
        return Tokenizer(inner)
    return Tokenizer(train_vocabulary(kind, [TEXT], 320, ["<|end|>", "<|user|>"]))


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer, tokenizer.vocab_size, frozenset())


def walk(guide: Guide, max_tokens: int, draw: random.Random) -> list[int]:
    """Choose any allowed token until the answer ends or has `max_tokens`."""
    state, ids = guide.start, list[int]()
    while len(ids) < max_tokens:
        allowed = guide.allowed(state, max_tokens - len(ids)).nonzero()[0].tolist()
        if not allowed:  # it matches, and nothing may follow, or there are too few tokens for more
            assert guide.is_match(state)
            break
        chosen = draw.choice(allowed)
        if chosen in guide._end_ids:
            assert guide.is_match(state)
            break
        after = guide.advance(state, chosen)
        assert after is not None
        state, ids = after, [*ids, chosen]
    return ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("regex", ["(the )+c?a.?", r"[^a]{2,9}\?*", "(t|c|a| |h|e|s)+", r"\w+ \w+", "(1,?)*c"])
def test_all_walks_match(kind: str, regex: str) -> None:
    tokenizer, draw = tokenizer_of(kind), random.Random(0)
    ends = frozenset(id for id in [tokenizer.special("end")] if id is not None)
    if (kind, regex) in CANNOT:
        with pytest.raises(GenerationError, match="no text of this model matches"):
            Guide(Vocabulary(tokenizer, tokenizer.vocab_size + 3, ends), regex=regex)
        return
    guide = Guide(Vocabulary(tokenizer, tokenizer.vocab_size + 3, ends), regex=regex)
    for _ in range(30):
        max_tokens = guide.least + draw.randrange(9)
        text = tokenizer.decode(walk(guide, max_tokens, draw))
        assert re.fullmatch(regex, text), text


def test_a_match_ends_where_there_are_no_tokens_for_a_longer_one() -> None:
    """A model may have no end token; and an answer that matches must not go on to one that does not."""
    tokenizer = tokenizer_of("char")
    guide, state = Guide(vocabulary_of(tokenizer), regex="(the |cat )+"), State(-1)
    for id in tokenizer.encode("the "):
        after = guide.advance(state, id)
        assert after is not None
        state = after
    assert guide.is_match(state)
    assert not guide.allowed(state, 3).any()
    assert set(tokenizer.decode(guide.allowed(state, 4).nonzero()[0].tolist())) == {"t", "c"}


@pytest.mark.parametrize("kind", ["word", "bert", "char"])
def test_no_way_to_a_match_is_missing(kind: str) -> None:
    tokenizer, regex, length = tokenizer_of(kind), "(the |ca|t, )*[1-9]?cat", 3
    ids = [id for id in range(tokenizer.vocab_size) if set(tokenizer.decode([id])) & set("theca, 1")][:24]
    guide = Guide(vocabulary_of(tokenizer), regex=regex)
    for path in product(ids, repeat=length):
        state: State | None = guide.start
        for index, id in enumerate(path):
            if state is not None and not guide.allowed(state, length - index)[id]:
                state = None
            state = None if state is None else guide.advance(state, id)
        found = state is not None and guide.is_match(state)
        assert found == bool(re.fullmatch(regex, tokenizer.decode(path))), tokenizer.decode(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begin", ["th", "the ca", "the", "t"])
def test_all_walks_begin_as_asked(kind: str, begin: str) -> None:
    tokenizer, draw = tokenizer_of(kind), random.Random(1)
    if (kind, begin) in CANNOT:
        with pytest.raises(GenerationError, match="cannot write"):
            Guide(vocabulary_of(tokenizer), begin)
        return
    guide = Guide(vocabulary_of(tokenizer), begin)
    crossed = 0
    for _ in range(50):
        ids = walk(guide, guide.least + 3, draw)
        assert tokenizer.decode(ids).startswith(begin)
        crossed += ids[: guide.least] != tokenizer.encode(begin)
    assert kind not in ("word", "wordpiece") or begin != "th" or crossed  # `the` merges with it


def test_a_beginning_may_end_within_a_token_and_a_match() -> None:
    tokenizer, draw = tokenizer_of("wordpiece"), random.Random(2)
    ends = frozenset(id for id in [tokenizer.special("end")] if id is not None)
    guide = Guide(Vocabulary(tokenizer, tokenizer.vocab_size, ends), "the d", r"the (dog|cat), é+")
    texts = {tokenizer.decode(walk(guide, guide.least + draw.randrange(3), draw)) for _ in range(40)}
    assert all(re.fullmatch("the dog, é+", text) for text in texts)
    assert len(texts) > 1
    for begin in ("the x", "the dog, é!"):
        with pytest.raises(GenerationError, match="no answer that begins with"):
            Guide(vocabulary_of(tokenizer), begin, r"the (dog|cat), é+")


def test_every_character_of_a_match_can_be_spelled_in_bytes() -> None:
    tokenizer, draw = tokenizer_of("wordpiece"), random.Random(3)
    guide = Guide(vocabulary_of(tokenizer), "", "[\u0100-\uffff\U00010300-\U0001ffff]{3}")
    texts = {tokenizer.decode(walk(guide, guide.least + 6, draw)) for _ in range(200)}
    assert all(len(text) == 3 and "\ufffd" not in text for text in texts)
    assert {len(char.encode()) for text in texts for char in text} == {2, 3, 4}
    assert guide.least == 6 or guide.least == 3  # of two bytes each, or of known tokens


def test_an_expression_that_the_vocabulary_makes_too_large_is_refused() -> None:
    tokenizer = tokenizer_of("wordpiece")
    many = Tokenizer(train_vocabulary("word", ["".join(f"{one:06d} " for one in range(9000))], 9500))
    assert Guide(vocabulary_of(tokenizer), "", "[0-9]{990}").least < 991
    with pytest.raises(GenerationError, match=r"too large for a vocabulary of 9,\d\d\d tokens"):
        Guide(vocabulary_of(many), "", "0123456789 [0-9 ]{980}")
