"""Banned texts: never in an answer, however they are cut into tokens; what is left keeps its odds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.config.settings import Settings
from tinychat.events import Finished, Notice, Record, Token
from tinychat.generate.answer import Answer
from tinychat.generate.bans import BanWatch
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import CIRCLES, AnswerBatch, drive, stream
from tinychat.generate.vocabulary import Vocabulary
from tinychat.store.models import read_info, read_tokenizer

PROMPT = [3, 5, 4]


@given(
    bans=st.lists(st.text("abAß s", min_size=1, max_size=4), min_size=1, max_size=3),
    tokens=st.lists(st.text("abABß sS", max_size=3), max_size=12),
)
def test_a_watch_finds_what_a_search_finds(bans: list[str], tokens: list[str]) -> None:
    watch, shown, held = BanWatch(tuple(bans)), "", list[str]()
    for token in tokens:
        held.append(token)
        text = (shown + "".join(held)).casefold()
        found = [ban.casefold() for ban in bans if ban.casefold() in text]
        begin = watch.push(token)
        assert (begin is not None) == bool(found)
        if begin is not None:
            # Without the token in which it begins and all that follow, nothing is banned; with it, one may begin there.
            before, first = (shown + "".join(held[:begin])).casefold(), "".join(held[begin:]).casefold()
            starts = [text.find(ban) for ban in found]
            assert min(starts) < len(before) + len(first)
            assert any(start + len(ban) > len(before) for start, ban in zip(starts, found, strict=True))
            return
        free = watch.num_free
        shown, held = shown + "".join(held[:free]), held[free:]
        watch.pop(free)
        ends = {ban.casefold()[:end] for ban in bans for end in range(1, len(ban.casefold()) + 1)}
        waiting = [end for end in ends if text.endswith(end)]
        assert len("".join(held).casefold()) >= max(map(len, waiting), default=0)
        assert bool(held) >= bool(waiting)


def open_small(name: str, folder: Path, request: pytest.FixtureRequest) -> Engine:
    if name == "native":
        request.getfixturevalue("native")
    return open_engine(read_info(folder), Settings(engine=name, precision="f32"))


class Asker:
    """Asks a small model for answers."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.tokenizer = engine, read_tokenizer(folder)
        self.vocabulary = Vocabulary(self.tokenizer, self.tokenizer.vocab_size, frozenset())

    def answer(self, settings: Settings, seed: int = 0) -> Answer:
        return Answer(self.tokenizer, PROMPT, lambda: settings, seed=seed, vocabulary=self.vocabulary)

    def crowd(self, settings: Settings, count: int) -> Iterator[list[Token]]:
        """Yield the tokens of many answers, a batch after the other."""
        for first in range(0, count, self.engine.batch_size):
            batch, tokens = AnswerBatch(self.engine), dict[Answer, list[Token]]()
            for seed in range(first, min(count, first + self.engine.batch_size)):
                answer = self.answer(settings, seed)
                tokens[answer] = []
                batch.add(answer)
            for answer, record in drive(batch):
                if isinstance(record, Token):
                    tokens[answer].append(record)
            yield from tokens.values()

    def probabilities(self, ids: Sequence[int], settings: Settings) -> dict[int, float]:
        request = Request(0, [*PROMPT, *ids], len(ids), settings, seed=0)
        return {one.id: one.probability for one in self.engine.probabilities(request)}


def text_of(tokens: Sequence[Record]) -> str:
    return "".join(token.text for token in tokens if isinstance(token, Token))


@pytest.fixture(params=["torch", "native"])
def asker(request: pytest.FixtureRequest, letters: Path) -> Asker:
    return Asker(open_small(request.param, letters, request), letters)


def plain(asker: Asker, settings: Settings, seed: int = 0) -> str:
    """Return the text of an answer."""
    return text_of(list(stream(asker.engine, asker.answer(settings, seed))))


@pytest.mark.slow
def test_an_answer_goes_another_way(asker: Asker) -> None:
    for temperature in (0, 0.3, 1.5):
        before = plain(asker, Settings(temperature=temperature, max_tokens=40))
        ban = before[10:14]
        settings = Settings(temperature=temperature, max_tokens=40, ban=(ban.upper(),))
        records = list(stream(asker.engine, asker.answer(settings)))
        after = text_of(records)
        assert ban not in after
        assert len(after) == 40
        changed = next(index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        assert changed <= before.index(ban) + 3  # in the banned text, or in an earlier one
        avoided = [token.avoided for token in records if isinstance(token, Token) and token.avoided]
        assert ban in avoided[0][0].text
        assert all(0 <= one.probability <= 1 for token in avoided for one in token)
        assert plain(asker, settings) == after
        assert records[-1] == Finished("length", 40, records[-1].seconds, 0)  # type: ignore[union-attr]


def test_both_engines_avoid_a_text_in_the_same_way(letters: Path, request: pytest.FixtureRequest) -> None:
    texts = []
    for name in ("torch", "native"):
        asker = Asker(open_small(name, letters, request), letters)
        settings = Settings(temperature=0.9, max_tokens=60, ban=tuple("aeiou"), presence_penalty=0.5)
        texts.append([plain(asker, settings, seed) for seed in range(3)])
    assert texts[0] == texts[1]


def test_a_text_that_is_banned_meanwhile_is_not_completed(asker: Asker) -> None:
    """Also where it begins in what is shown already, which stays."""
    current = [Settings(temperature=0, max_tokens=30)]
    text = plain(asker, current[0])
    answer = Answer(asker.tokenizer, PROMPT, lambda: current[0], seed=0, vocabulary=asker.vocabulary)
    shown = ""
    for record in stream(asker.engine, answer):
        if isinstance(record, Token):
            shown += record.text
            if len(shown) == 10:
                current[0] = Settings(temperature=0, max_tokens=30, ban=(text[8:12],))
    assert shown.startswith(text[:10])
    assert text[8:12] not in shown
    assert len(shown) == 30


def test_an_answer_ends_where_nothing_else_is_left(asker: Asker) -> None:
    every = tuple(text for id in range(asker.tokenizer.vocab_size) if (text := asker.tokenizer.token_text(id)))
    for temperature in (0, 1):
        *tokens, finished = stream(asker.engine, asker.answer(Settings(temperature=temperature, ban=every)))
        assert tokens == []
        assert finished.reason == "end"  # type: ignore[union-attr]
    most = every[:-1]
    assert set(plain(asker, Settings(max_tokens=20, ban=most))) == {every[-1]}


@pytest.mark.slow
def test_an_answer_that_goes_in_circles_by_its_bans_says_what_helps(asker: Asker) -> None:
    for ban, told in ((("a",), False), (tuple("abcdefghijklmnopqrstuvwxyz"), True)):
        records = list(stream(asker.engine, asker.answer(Settings(max_tokens=60, ban=ban))))
        assert (Notice(CIRCLES) in records) is told


def test_stop_strings_and_bans_get_along(asker: Asker) -> None:
    text = plain(asker, Settings(temperature=0, max_tokens=30))
    stop, ban = text[12:14], text[13:16]
    assert plain(asker, Settings(temperature=0, max_tokens=30, stop=(stop,), ban=(ban,))) == text[: text.index(stop)]


def test_choices_beams_and_the_best_of_some_avoid_a_text_too(asker: Asker) -> None:
    for values in ({"num_beams": 3}, {"best_of": 3}):
        free = Settings(temperature=0.9, max_tokens=20, **values)  # type: ignore[arg-type]
        text = plain(asker, free)
        banned = replace(free, ban=(text[6:8],))
        assert text[6:8] not in plain(asker, banned)
        assert len(plain(asker, banned)) == 20
    choices = Settings(choices=("abc", "abd"), ban=("BC",))
    assert {plain(asker, choices, seed) for seed in range(8)} == {"abd"}


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_what_is_left_comes_as_often_as_it_should(asker: Asker, temperature: float) -> None:
    """Pearson's chi-squared over pairs of letters, against the odds under the condition that no pair is banned."""
    free = Settings(temperature=temperature, max_tokens=2, top_p=0.9)
    first = asker.probabilities([], free)
    second = {id: asker.probabilities([id], free) for id, share in first.items() if share}
    pairs = {(one, two): first[one] * share for one, row in second.items() for two, share in row.items() if share}
    text = asker.tokenizer.decode
    commonest = sorted(pairs, key=lambda pair: -pairs[pair])
    banned = commonest[:3]
    settings = Settings(temperature=temperature, max_tokens=2, top_p=0.9, ban=tuple(map(text, banned)))
    kept = {pair: share for pair, share in pairs.items() if text(pair) not in settings.ban}
    total = sum(kept.values())
    count = 3000
    seen = Counter(tuple(token.id for token in tokens) for tokens in asker.crowd(settings, count))
    assert not set(seen) - set(kept)
    common = {pair: count * share / total for pair, share in kept.items() if count * share / total >= 5}
    statistic = sum((seen[pair] - expected) ** 2 / expected for pair, expected in common.items())
    rest = count - sum(common.values())
    statistic += (count - sum(seen[pair] for pair in common) - rest) ** 2 / rest
    assert len(common) > 10
    assert statistic < len(common) + 4.5 * (2 * len(common)) ** 0.5


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", ["letters", "chatter"])
@pytest.mark.parametrize("name", ["torch", "native"])
def test_no_answer_of_a_thousand_holds_a_banned_text(name: str, folder: str, request: pytest.FixtureRequest) -> None:
    model: Path = request.getfixturevalue(folder)
    asker = Asker(open_small(name, model, request), model)
    free = " ".join(plain(asker, Settings(temperature=1.2, max_tokens=30), seed) for seed in range(20))
    pairs = Counter(free[at : at + 2].lower() for at in range(len(free) - 1))
    bans = (*(pair for pair, _ in pairs.most_common(8)), "he", "th")
    for settings in (
        Settings(temperature=1.2, max_tokens=24, ban=bans),
        Settings(temperature=0.3, max_tokens=24, ban=bans),
    ):
        texts = ["".join(token.text for token in tokens) for tokens in asker.crowd(settings, 500)]
        assert len(texts) == 500
        assert [text for text in texts if any(ban in text.lower() for ban in bans)] == []
