"""Controls: their biases against `transformers` and the definitions, and both engines that add them."""

import sys
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinychat.config.settings import CONTROLS, Settings
from tinychat.generate.answer import Answer
from tinychat.generate.controls import MAKERS, Controls, allow_only
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import stream
from tinychat.generate.vocabulary import MAX_REMEMBERED, Vocabulary
from tinychat.store.models import read_info, read_tokenizer
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

LETTERS = Tokenizer(train_vocabulary("char", ["abcdefgh:\n"], None, ["<|end|>"]))
SIZE = LETTERS.vocab_size + 2  # a model may have more logits than its tokenizer has tokens
END = LETTERS.special("end")
assert END is not None
VOCABULARY = Vocabulary(LETTERS, SIZE, frozenset([END]))
SOME_IDS = st.lists(st.integers(1, 5), min_size=1, max_size=40)


def biases(ids: Sequence[int], start: int = 0, **values: object) -> list[float]:
    """Return the biases of settings."""
    controls = Controls.of(Settings(**values), VOCABULARY)  # type: ignore[arg-type]
    assert controls is not None
    found = controls.biases(ids, start)
    assert found is not None
    return found.tolist()


def test_without_a_control_there_is_none() -> None:
    assert Controls.of(Settings(dry_base=3, repetition_penalty=1.2), VOCABULARY) is None
    assert set(MAKERS) <= set(CONTROLS)


@given(ids=SOME_IDS, start=st.integers(0, 40), presence=st.integers(-2, 2), frequency=st.integers(-2, 2))
def test_penalties_follow_the_api_reference_of_openai(
    ids: list[int], start: int, presence: int, frequency: int
) -> None:
    """Compared with mu[j] − c[j] · alpha_frequency − float(c[j] > 0) · alpha_presence, over what was sampled."""
    if presence or frequency:
        counts = [ids[start:].count(id) for id in range(SIZE)]
        expected = [-count * frequency - float(count > 0) * presence for count in counts]
        assert biases(ids, start, presence_penalty=presence, frequency_penalty=frequency) == expected


@given(ids=SOME_IDS, n=st.integers(1, 5))
def test_no_repeat_ngram_forbids_what_transformers_forbids(ids: list[int], n: int) -> None:
    transformers = pytest.importorskip("transformers")
    reference = transformers.NoRepeatNGramLogitsProcessor(n)(torch.tensor([ids]), torch.zeros(1, SIZE))[0]
    assert biases(ids, len(ids), no_repeat_ngram=n) == reference.tolist()


def test_an_answer_may_end_although_its_end_would_repeat() -> None:
    assert END is not None
    assert biases([3, END, 4, 3], no_repeat_ngram=2) == [0] * SIZE
    assert biases([3, END, 4, 3], dry_multiplier=1, dry_allowed_length=1) == [0] * SIZE


def dry(ids: list[int], settings: Settings, breakers: set[int]) -> list[float]:
    """Return the biases of DRY, by its definition: the longest repeated end of the text before each earlier token."""
    found = [0.0] * SIZE
    for token in set(range(SIZE)) - breakers:
        repeated = 0
        for position in (position for position, id in enumerate(ids) if id == token):
            length = 0
            while length < min(position, 50) and ids[position - length - 1] == ids[-length - 1] not in breakers:
                length += 1
            repeated = max(repeated, length)
        if repeated >= settings.dry_allowed_length:
            found[token] = -settings.dry_multiplier * settings.dry_base ** (repeated - settings.dry_allowed_length)
    return found


@given(ids=SOME_IDS, allowed=st.integers(1, 4), base=st.sampled_from([1.0, 1.75, 3.0]))
def test_dry_follows_its_definition(ids: list[int], allowed: int, base: float) -> None:
    values = {"dry_multiplier": 0.5, "dry_base": base, "dry_allowed_length": allowed, "dry_sequence_breakers": ("b",)}
    (breaker,) = LETTERS.encode("b")
    unknown = set(range(LETTERS.vocab_size, SIZE))
    expected = dry(ids, Settings(**values), {breaker, 0, *unknown})  # type: ignore[arg-type]
    assert biases(ids, **values) == pytest.approx(expected)


def test_dry_never_overflows() -> None:
    found = biases([5] * 200, dry_multiplier=100, dry_base=10)
    assert found[5] == pytest.approx(-1e30)


@pytest.mark.parametrize("name", ["torch", "native"])
def test_engines_add_biases(name: str, letters: Path, request: pytest.FixtureRequest) -> None:
    if name == "native":
        request.getfixturevalue("native")
    engine = open_engine(read_info(letters), Settings(engine=name, precision="f32"))
    size = read_tokenizer(letters).vocab_size
    for settings in (Settings(temperature=0), Settings(temperature=1.2, top_p=0.9, repetition_penalty=1.3)):
        requests = [Request(slot, [3, 5, 4], 0, settings, seed=slot) for slot in range(3)]
        only = array("f", bytes(4 * size))
        allow_only(only, [7])
        requests[1].biases = only
        requests[2].biases = array("f", [-1e30] * size)
        requests[2].biases[9] = 0
        plain, masked, biased = engine.extend(requests, 5)
        assert len(plain) >= 1
        assert [token.id for token in masked] == [7]
        assert [token.id for token in biased] == [9]
        found = {one.id: one for one in engine.probabilities(requests[1])}
        assert found[7].probability == 1
        assert found[7].logprob == masked[0].logprob  # the model's own
        assert found[8].probability == 0


class OneLetter:
    """A control that allows one token alone, and forbids all after a number of them."""

    def __init__(self, id: int, most: int) -> None:
        self.id, self.most = id, most

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        allow_only(biases, [self.id] if len(ids) - start < self.most else [])


def test_an_answer_ends_where_every_token_is_forbidden(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(read_info(letters), Settings(engine="torch"))
    tokenizer = read_tokenizer(letters)
    vocabulary = Vocabulary(tokenizer, tokenizer.vocab_size, frozenset())
    monkeypatch.setitem(MAKERS, "no_repeat_ngram", lambda settings, vocabulary: OneLetter(5, 4))  # type: ignore[misc]
    answer = Answer(tokenizer, [1, 2], lambda: Settings(no_repeat_ngram=1), seed=1, vocabulary=vocabulary)
    *tokens, finished = stream(engine, answer)
    assert [token.id for token in tokens] == [5] * 4  # type: ignore[union-attr]
    assert finished.reason == "end"  # type: ignore[union-attr]


def answer_of(engine: Engine, folder: Path, settings: Settings) -> list[int]:
    """Return the ids of an answer."""
    tokenizer = read_tokenizer(folder)
    vocabulary = Vocabulary(tokenizer, tokenizer.vocab_size, frozenset())
    answer = Answer(tokenizer, [3, 5, 4], lambda: settings, seed=5, vocabulary=vocabulary)
    list(stream(engine, answer))
    return answer.ids[3:]


ACTIVE = [
    Settings(presence_penalty=1.5, temperature=0),
    Settings(frequency_penalty=0.7, temperature=1.3),
    Settings(no_repeat_ngram=2, top_p=0.8),
    Settings(dry_multiplier=0.8, temperature=0),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", ACTIVE)
def test_both_engines_give_the_same_answers_under_a_control(settings: Settings, letters: Path, native: None) -> None:
    info = read_info(letters)
    answers = [
        answer_of(open_engine(info, Settings(engine=name, precision="f32")), letters, settings)
        for name in ("torch", "native")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0]) == settings.max_tokens
    plain = Settings(temperature=settings.temperature, top_p=settings.top_p)
    assert answer_of(open_engine(info, Settings(engine="torch")), letters, plain) != answers[0]


def test_a_vocabulary_remembers_only_the_newest() -> None:
    """Clients of a server may ask for any texts, for days."""
    vocabulary, made = Vocabulary(LETTERS, SIZE, frozenset()), list[int]()

    def make(_: Vocabulary, key: int) -> frozenset[int]:
        made.append(key)
        return frozenset()

    for key in range(2 * MAX_REMEMBERED):
        for one in (0, key, key):
            vocabulary.remember(make, one)
    assert made == list(range(2 * MAX_REMEMBERED))
    vocabulary.remember(make, 1)
    assert made[-1] == 1


def test_a_vocabulary_remembers_in_any_thread() -> None:
    vocabulary, interval = Vocabulary(LETTERS, SIZE, frozenset()), sys.getswitchinterval()

    def ask(first: int) -> list[int]:
        return [vocabulary.remember(same, (first + 7 * index) % 200) for index in range(2_000)]

    def same(_: Vocabulary, key: int) -> int:
        return key

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert found == [[(first + 7 * index) % 200 for index in range(2_000)] for first in range(4)]
