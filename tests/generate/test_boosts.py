"""Boosts: the same bias for a text however it is cut into tokens, and none for others."""

from array import array
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinychat.config.settings import Settings
from tinychat.errors import SettingError
from tinychat.generate.controls import Controls
from tinychat.generate.vocabulary import Vocabulary
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

TEXT = "the cats sat. a café, the café at the cat! " * 20
TOKENIZER = Tokenizer(train_vocabulary("wordpiece", [TEXT], 290, ["<|end|>"]))
END = TOKENIZER.special("end")
assert END is not None
VOCABULARY = Vocabulary(TOKENIZER, TOKENIZER.vocab_size + 1, frozenset([END]))
BYTES = {bytes([byte]): id for id in range(TOKENIZER.vocab_size) for byte in TOKENIZER.token_bytes(id)[:1]
         if len(TOKENIZER.token_bytes(id)) == 1}  # fmt: skip


def cuts(text: bytes) -> list[int]:
    """Return the tokens of the single bytes of a text."""
    return [BYTES[text[at : at + 1]] for at in range(len(text))]


def total(ids: Sequence[int], *boosts: str, prompt: Sequence[int] = (1,)) -> float:
    """Return the sum of the biases that the tokens of an answer get."""
    controls, got = Controls.of(Settings(boost=boosts), VOCABULARY), 0.0
    assert controls is not None
    for position, id in enumerate(ids):
        biases = controls.biases([*prompt, *ids[:position]], len(prompt))
        assert biases is not None
        got += biases[id]
    return got


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("the cat", 1),
        ("The CAT sat on a cat.", 2),
        ("cats", 1),
        ("concat a ca t", 0),
        ("ca", 0),
        ("a c at. cca", 0),
        ("cat's cat-cat", 3),
    ],
)
def test_each_cut_of_a_text_gets_the_whole_bias_and_no_other_text_any(text: str, times: int) -> None:
    for ids in (TOKENIZER.encode(text), cuts(text.encode())):
        assert total([*ids, END], "cat 6") == pytest.approx(6 * times, abs=1e-5)  # type: ignore[list-item]
        assert total([*ids, END], "cat -3") == pytest.approx(-3 * times, abs=1e-5)  # type: ignore[list-item]


def test_characters_of_several_tokens_count_too() -> None:
    for ids in (TOKENIZER.encode("a café."), cuts("a CAFÉ.".encode())):
        assert total([*ids, END], "café 4", "a 1") == pytest.approx(5, abs=1e-5)  # type: ignore[list-item]


def test_a_phrase_that_repeats_itself_is_found_wherever_it_begins() -> None:
    assert total(cuts(b"ha ha ha ho "), "ha ho 6") == pytest.approx(6, abs=1e-5)


@given(tokens=st.lists(st.sampled_from([*map(TOKENIZER.encode, ("a", " a", " the", " cat", "s"))]), max_size=8))
def test_a_boost_is_the_sequence_bias_of_transformers_for_a_text_of_one_token(tokens: list[list[int]]) -> None:
    transformers = pytest.importorskip("transformers")
    (word,) = TOKENIZER.encode(" the")
    boosted = {(id,): 2.5 for id in (word, *TOKENIZER.encode("the")) if "the" in TOKENIZER.token_text(id)}
    processor = transformers.SequenceBiasLogitsProcessor(boosted)
    ids = [word, *(id for token in tokens for id in token)]
    expected = processor(torch.tensor([ids]), torch.zeros(1, VOCABULARY.size))[0].tolist()
    controls = Controls.of(Settings(boost=("the 2.5",)), VOCABULARY)
    assert controls is not None
    found = controls.biases(ids, len(ids))
    assert found is not None
    whole = {id for (id,) in boosted}
    assert [found[id] for id in sorted(whole)] == [expected[id] for id in sorted(whole)]
    assert all(found[id] == 0 for id in range(VOCABULARY.size) if "t" not in TOKENIZER.token_text(id).lower())


def test_a_rewound_answer_is_read_anew() -> None:
    controls = Controls.of(Settings(boost=("cat 6",)), VOCABULARY)
    assert controls is not None
    ids = cuts(b"a ca")
    longer, fresh = controls.biases(ids, 0), Controls.of(Settings(boost=("cat 6",)), VOCABULARY)
    assert fresh is not None
    other = controls.biases([*ids[:-1], BYTES[b"x"]], 0)
    assert isinstance(longer, array)
    assert longer[BYTES[b"t"]] == pytest.approx(2)
    assert other == fresh.biases([*ids[:-1], BYTES[b"x"]], 0)


@pytest.mark.parametrize("text", ["happy", "2", "happy two", "happy nan", "happy 101", ("happy 1", "sad")])
def test_a_boost_needs_a_text_and_a_number(text: object) -> None:
    with pytest.raises(SettingError, match="each ends with a number"):
        Settings(boost=text)  # type: ignore[arg-type]
