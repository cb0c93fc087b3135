"""A thousand answers under each control, in both engines: they obey, and what is left comes as often as it should."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tinychat.config.settings import Settings
from tinychat.events import Token
from tinychat.generate.answer import Answer
from tinychat.generate.controls import Controls
from tinychat.generate.engine import Request
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.generate.vocabulary import Vocabulary
from tinychat.store.models import read_info, read_tokenizer

ANSWERS, LENGTH, DRAWS, GROUP = 1000, 20, 3000, 64
SEARCHES = 64
PROMPT, BEGUN = [3, 5, 4], [1, 7, 9, 1, 9, 1]


class Bench:
    """A small model, asked for many answers at once."""

    def __init__(self, name: str, folder: Path) -> None:
        self.engine = open_engine(read_info(folder), Settings(engine=name, precision="f32"))
        self.tokenizer = read_tokenizer(folder)
        self.vocabulary = Vocabulary(self.tokenizer, self.tokenizer.vocab_size, frozenset())

    def answers(self, settings: Settings, count: int, begun: list[int]) -> list[list[int]]:
        """Return the ids of answers that go on from those of `begun`."""
        found: list[list[int]] = []
        for first in range(0, count, self.engine.batch_size):
            batch, tokens = AnswerBatch(self.engine), dict[Answer, list[int]]()
            for seed in range(first, min(count, first + self.engine.batch_size)):
                answer = Answer(self.tokenizer, PROMPT, lambda: settings, seed=seed, vocabulary=self.vocabulary)
                answer.resume([*PROMPT, *begun], begun, 0)
                tokens[answer] = []
                batch.add(answer)
            for answer, record in drive(batch):
                if isinstance(record, Token):
                    tokens[answer].append(record.id)
            found += tokens.values()
        return found

    def probabilities(self, settings: Settings) -> dict[int, float]:
        """Return the probability of each token after those begun."""
        ids = [*PROMPT, *BEGUN]
        request = Request(0, ids, len(BEGUN), settings, seed=0)
        if controls := Controls.of(settings, self.vocabulary):
            request.biases = controls.biases(ids, len(PROMPT))
        return {one.id: one.probability for one in self.engine.probabilities(request)}


@pytest.fixture(params=["torch", "native"])
def bench(request: pytest.FixtureRequest, letters: Path) -> Bench:
    if request.param == "native":
        request.getfixturevalue("native")
    return Bench(request.param, letters)


def has_no_repeated(n: int) -> Callable[[Bench, list[int]], bool]:
    return lambda bench, ids: len({tuple(ids[at : at + n]) for at in range(len(ids) - n + 1)}) == len(ids) - n + 1


def has_no_long_repetition(bench: Bench, ids: list[int]) -> bool:
    """Whether no token goes on with two that came before: three in a row never come twice, but across a breaker."""
    text = bench.tokenizer.decode(ids)
    return all(text.count(part) == 1 for part in map("".join, zip(text, text[1:], text[2:])) if "\n" not in part)  # noqa: B905


def has_any(bench: Bench, ids: list[int], *texts: str) -> bool:
    return any(text in bench.tokenizer.decode(ids) for text in texts)


CONTROLS: dict[str, tuple[dict[str, Any], Callable[[Bench, list[int]], bool]]] = {
    "presence": ({"presence_penalty": 100}, has_no_repeated(1)),
    "frequency": ({"frequency_penalty": 100}, has_no_repeated(1)),
    "negative": ({"presence_penalty": -100}, lambda bench, ids: len(set(ids)) == 1),
    "no repeat": ({"no_repeat_ngram": 2}, lambda bench, ids: has_no_repeated(2)(bench, [*PROMPT, *ids])),
    "dry": ({"dry_multiplier": 100, "dry_base": 10}, has_no_long_repetition),
    "boost": ({"boost": ("happy 100",)}, lambda bench, ids: bench.tokenizer.decode(ids).startswith("happy")),
    "unlikely": ({"boost": ("e -100", "a -100")}, lambda bench, ids: not {*"ea"} & {*words_of(bench, ids)}),
    "ban": (
        {"ban": ("a", "e", "th")},
        lambda bench, ids: not any(one in bench.tokenizer.decode(ids) for one in ("a", "e", "th")),
    ),
    "all": (
        {"no_repeat_ngram": 3, "dry_multiplier": 1, "presence_penalty": 0.5, "boost": ("cat 3",), "ban": ("z", "ca")},
        lambda bench, ids: has_no_repeated(3)(bench, [*PROMPT, *ids]) and not has_any(bench, ids, "z", "ca"),
    ),
}


def words_of(bench: Bench, ids: list[int]) -> list[str]:
    """Return the first letters of words."""
    text = " " + bench.tokenizer.decode(ids)
    return [after for before, after in pairwise(text) if not before.isalnum()]


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_a_thousand_answers_obey(name: str, bench: Bench) -> None:
    values, obeys = CONTROLS[name]
    settings = Settings(temperature=0.3, top_p=0.98, max_tokens=LENGTH, **values)
    answers = bench.answers(settings, ANSWERS, [])
    assert len(answers) == ANSWERS
    assert {len(ids) for ids in answers} == {LENGTH}
    assert [ids for ids in answers if not obeys(bench, ids)] == []
    free = bench.answers(Settings(temperature=0.3, top_p=0.98, max_tokens=LENGTH), 50, [])
    assert not all(obeys(bench, ids) for ids in free)


def draw(bench: Bench, prompts: list[list[int]], settings: Settings) -> list[list[Token]]:
    """Return the tokens of the answer to each prompt, of which the number is the seed."""
    found: list[list[Token]] = []
    for first in range(0, len(prompts), GROUP):
        batch, tokens = AnswerBatch(bench.engine), dict[Answer, list[Token]]()
        for seed, prompt in enumerate(prompts[first : first + GROUP], first):
            answer = Answer(bench.tokenizer, prompt, lambda: settings, seed=seed, vocabulary=bench.vocabulary)
            tokens[answer] = []
            batch.add(answer)
        for answer, record in drive(batch):
            if isinstance(record, Token):
                tokens[answer].append(record)
        found += tokens.values()
    return found


def mean(tokens: list[Token]) -> float:
    return sum(token.logprob for token in tokens) / len(tokens)


@pytest.mark.slow
def test_a_thousand_answers_are_the_best_of_three(bench: Bench) -> None:
    settings = Settings(temperature=1.2, max_tokens=4)
    alone = draw(bench, [PROMPT] * (ANSWERS + 2), settings)
    found = draw(bench, [PROMPT] * ANSWERS, replace(settings, best_of=3))
    for index, answer in enumerate(found):
        assert mean(answer) == pytest.approx(max(map(mean, alone[index : index + 3])), abs=1e-5)
    assert sum(mean(one) > mean(other) + 1e-4 for one, other in zip(found, alone, strict=False)) > ANSWERS / 3


@pytest.mark.slow
def test_beam_searches_find_the_likeliest_answer(bench: Bench) -> None:
    """With a beam for each token, the answers of two tokens are searched as a whole."""
    size, pick = bench.tokenizer.vocab_size, random.Random(1)
    prompts = [pick.choices(range(size), k=3) for _ in range(SEARCHES)]
    found = draw(bench, prompts, Settings(num_beams=size, max_tokens=2))
    for first in range(0, SEARCHES, GROUP):
        group = prompts[first : first + GROUP]
        ones = odds(bench, group)
        pairs = odds(bench, [[*prompt, id] for prompt in group for id in range(size)])
        for row, answer in enumerate(found[first : first + GROUP]):
            sums = [one + two for id, one in enumerate(ones[row]) for two in pairs[row * size + id]]
            assert 2 * mean(answer) == pytest.approx(max(sums), abs=1e-3)


def odds(bench: Bench, texts: list[list[int]]) -> list[list[float]]:
    """Return the log-probabilities of all tokens after each text."""
    rows: list[list[float]] = []
    for first in range(0, len(texts), bench.engine.batch_size):
        part = texts[first : first + bench.engine.batch_size]
        requests = [Request(slot, list(ids), 0, Settings(temperature=0), seed=0) for slot, ids in enumerate(part)]
        for (token,) in bench.engine.extend(requests, 1, bench.tokenizer.vocab_size):
            row = dict(token.top_logprobs)
            rows.append([row[id] for id in range(len(row))])
    return rows


STEERED: dict[str, dict[str, Any]] = {
    "presence": {"presence_penalty": 1.2},
    "frequency": {"frequency_penalty": -0.7},
    "no repeat": {"no_repeat_ngram": 2},
    "dry": {"dry_multiplier": 0.9, "dry_allowed_length": 1},
    "boost": {"boost": ("happy 6", "e 1")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEERED)
def test_the_next_token_comes_as_often_as_it_should(name: str, bench: Bench) -> None:
    """Pearson's chi-squared, against the odds that the biases make of the model's own."""
    settings = Settings(temperature=1.2, top_p=0.95, max_tokens=1, **STEERED[name])
    expected = {id: DRAWS * share for id, share in bench.probabilities(settings).items()}
    plain = bench.probabilities(Settings(temperature=1.2, top_p=0.95))
    assert max(abs(plain[id] - count / DRAWS) for id, count in expected.items()) > 0.005
    seen = Counter(id for (id,) in bench.answers(settings, DRAWS, BEGUN))
    assert not [id for id in seen if expected[id] == 0]
    classes = [(seen[id], count) for id, count in expected.items() if count >= 5]
    rest = DRAWS - sum(count for _, count in classes)
    if rest >= 1:
        classes.append((DRAWS - sum(count for count, _ in classes), rest))
    statistic = sum((one - other) ** 2 / other for one, other in classes)
    freedom = len(classes) - 1
    assert freedom > 5
    assert statistic < freedom + 4.5 * (2 * freedom) ** 0.5
