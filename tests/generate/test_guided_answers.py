"""Answers that begin with a text, match a pattern or are a choice: all do in both engines, as often as they should."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count as count_up
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import GenerationError
from tinychat.events import Candidates, ChoiceProbabilities, Finished, Notice, Record, Token
from tinychat.generate.choices import Choices
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.session.open_model import OpenModel
from tinychat.store.models import read_info
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

ENGINES = ["torch", "native"]


class Bench:
    """A model and an engine that answer many times."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.model = OpenModel(str(folder), SettingStore())
        self.engine: Engine = open_engine(read_info(folder), Settings(engine=engine, precision="f32"))

    def answer(self, prompt: str, count: int = 1, **values: Any) -> list[list[Record]]:
        settings, records = Settings(**values), list[list[Record]]()
        for first in range(0, count, self.engine.batch_size):
            batch = AnswerBatch(self.engine)
            answers = [
                self.model.make_answer(prompt, settings=lambda: settings, seed=7, index=index)
                for index in range(first, min(count, first + self.engine.batch_size))
            ]
            for answer in answers:
                batch.add(answer)
            found: dict[Any, list[Record]] = {answer: [] for answer in answers}
            for answer, record in drive(batch):
                found[answer].append(record)
            records += found.values()
        return records

    def texts(self, prompt: str, count: int = 1, **values: Any) -> list[str]:
        return [text_of(records) for records in self.answer(prompt, count, **values)]

    def logprob(self, prompt: str, ids: Sequence[int]) -> float:
        """Log-probability of the tokens of an answer, by the engine's own `probabilities`."""
        start = self.model.make_answer(prompt, settings=lambda: Settings(), seed=0).ids
        total = 0.0
        for index, id in enumerate(ids):
            odds = self.engine.probabilities(Request(0, [*start, *ids[:index]], index, Settings(), seed=0))
            total += next(one.logprob for one in odds if one.id == id)
        return total


def text_of(records: Sequence[Record]) -> str:
    return "".join(record.text for record in records if isinstance(record, Token))


def is_plausible(counts: Counter[str], expected: dict[str, float]) -> bool:
    """Pearson's test with a chance of one in 100,000 to fail wrongly."""
    total = counts.total()
    assert set(counts) <= set(expected)
    common = {text: share for text, share in expected.items() if share * total >= 5}
    classes = [(counts[text], share * total) for text, share in common.items()]
    if (rest := total - sum(size for _, size in classes)) >= 1:
        classes.append((total - sum(seen for seen, _ in classes), rest))
    freedom = len(classes) - 1
    assert freedom >= 2
    return sum((seen - size) ** 2 / size for seen, size in classes) < freedom + 4.5 * (2 * freedom) ** 0.5


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "native":
        request.getfixturevalue("compiled")
    return str(request.param)


@pytest.fixture
def letters_bench(letters: Path, engine: str) -> Bench:
    return Bench(letters, engine)


@pytest.fixture
def chat_bench(chatter: Path, engine: str) -> Iterator[Bench]:
    return Bench(chatter, engine)


COUNTS = [20, pytest.param(1000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "values",
    [
        {"begin": "hello th"}, {"begin": "é, f", "greedy": True}, {"regex": "[a-y]{1,7}(, h.*e)?"},
        {"regex": r"\w+\W\w+"}, {"regex": "hel+o+[!?]", "begin": "hell"}, {"choices": ("fine", "fine, thanks", "é")},
        {"regex": ".{3}|.{9}", "presence_penalty": 2}, {"choices": ("yes", "no"), "stop": ("o",)},
    ],
    ids=str,
)  # fmt: skip
def test_all_answers_are_as_asked(chat_bench: Bench, values: dict[str, Any], count: int) -> None:
    values = dict(values)
    temperature = 0.0 if values.pop("greedy", False) else 1.5
    for text in chat_bench.texts("hi", count, temperature=temperature, top_p=1, max_tokens=24, **values):
        assert text.startswith(values.get("begin", ""))
        assert re.fullmatch(values.get("regex", ".*"), text, re.DOTALL), text
        stops = {choice.partition(stop)[0] for choice in values.get("choices", ()) for stop in values.get("stop", "\0")}
        assert not stops or text in stops


def test_a_match_within_few_tokens(letters_bench: Bench) -> None:
    for text in letters_bench.texts("a", 20, temperature=2, regex="([a-z]+ )+z{5}", max_tokens=8):
        assert re.fullmatch("([a-z]+ )+z{5}", text)
    with pytest.raises(
        GenerationError, match=r"a match of '\(\[a-z\]\+ \)\+z\{5\}' takes 7 tokens, and max-tokens is 6"
    ):
        letters_bench.texts("a", regex="([a-z]+ )+z{5}", max_tokens=6)


def test_an_answer_is_free_once_it_has_begun(chat_bench: Bench) -> None:
    settings = Settings(begin="hell", max_tokens=30, temperature=1.5)
    answer = chat_bench.model.make_answer("hi", settings=lambda: settings, seed=1)
    batch, is_free = AnswerBatch(chat_bench.engine), list[bool]()
    batch.add(answer)
    while batch.answers:
        begun = answer.text
        for _, records in batch.step():
            list(records)
        is_free.append(answer.request.biases is None)
        assert is_free[-1] == begun.startswith("hell")
    assert is_free[-1]


@pytest.mark.parametrize(
    "values", [{"choices": ("hello there", "fine, thanks")}, {"num_beams": 3, "max_tokens": 6}], ids=str
)
def test_an_answer_that_is_found_as_a_whole_is_whole(chat_bench: Bench, values: dict[str, Any]) -> None:
    """Whatever is set meanwhile, also while its tokens are given out."""
    seeds, batch = count_up(), AnswerBatch(chat_bench.engine)

    def change_seed() -> Settings:
        return Settings(seed=next(seeds), temperature=0, **values)

    batch.add(chat_bench.model.make_answer("hi", settings=change_seed, seed=7))
    found = [record for _, record in drive(batch)]
    assert sum(isinstance(record, Finished) for record in found) == 1
    assert [text_of(found)] == chat_bench.texts("hi", 1, temperature=0, **values)
    assert next(seeds) > 3
    stopped = AnswerBatch(chat_bench.engine, should_stop=lambda: True)
    stopped.add(chat_bench.model.make_answer("hi", settings=lambda: Settings(**values), seed=1))
    assert [type(record) for _, record in drive(stopped)] == [Finished]


def test_choices_hold_from_the_next_answer_on(chat_bench: Bench) -> None:
    current, reasons = Settings(max_tokens=6), list[str]()
    batch = AnswerBatch(chat_bench.engine)
    batch.add(chat_bench.model.make_answer("hi", settings=lambda: current, seed=1))
    for _, record in drive(batch):
        current = Settings(max_tokens=6, choices=("yes", "no"))
        reasons += [record.reason] if isinstance(record, Finished) else []
    assert reasons == ["length"]


def test_what_keeps_an_answer_from_matching_is_told(chat_bench: Bench) -> None:
    (records,) = chat_bench.answer("hi", 1, regex="[^z]{9}", stop=("e", "o", "h", "a"), temperature=1.5, max_tokens=20)
    assert Notice("the answer does not match '[^z]{9}': a stop text ended it") in records
    current = Settings(max_tokens=6)
    answer = chat_bench.model.make_answer("hi", settings=lambda: current, seed=1)
    batch = AnswerBatch(chat_bench.engine)
    batch.add(answer)
    found = list[Record]()
    for _, record in drive(batch, admit=lambda: False):
        found.append(record)
        if isinstance(record, Token):
            current = Settings(max_tokens=6, regex="[0-9]{3}", begin="1")
    assert [one.text for one in found if isinstance(one, Notice)] == [
        "the answer does not begin with '1': /begin holds from the next one on",
        "the answer does not match '[0-9]{3}': it had no tokens left",
    ]


@pytest.mark.slow
def test_matches_come_as_often_as_the_model_says(letters_bench: Bench) -> None:
    """The chance of a text is the product of those of its tokens among the allowed ones: all pairs of a to c."""
    prompt, tokenizer = "b", letters_bench.model.tokenizer
    start = letters_bench.model.make_answer(prompt, settings=lambda: Settings(), seed=0).ids
    expected: dict[str, float] = {}
    for first, second in product("abc", repeat=2):
        chance = 1.0
        for index, char in enumerate((first, second)):
            request = Request(0, [*start, *tokenizer.encode(first)[:index]], index, Settings(), seed=0)
            odds = {one.id: math.exp(one.logprob) for one in letters_bench.engine.probabilities(request)}
            among = {id: odds[id] for one in "abc" for id in tokenizer.encode(one)}
            chance *= among[tokenizer.encode(char)[0]] / sum(among.values())
        expected[first + second] = chance
    texts = letters_bench.texts(prompt, 1000, temperature=1, top_p=1, regex="[abc]{2}")
    assert is_plausible(Counter(texts), expected)


@pytest.mark.parametrize("count", [300, pytest.param(4000, marks=pytest.mark.slow)])
def test_choices_come_as_often_as_the_model_says(chat_bench: Bench, count: int) -> None:
    choices = ("a", "e", "l", "he", "?", "y")
    (records,) = chat_bench.answer("hi", 1, choices=choices, temperature=1, top_p=1)
    (record,) = (one for one in records if isinstance(one, ChoiceProbabilities))
    encode, ends = chat_bench.model.tokenizer.encode, chat_bench.model.prompt_encoder.end_ids
    weights = {one: sum(math.exp(chat_bench.logprob("hi", [*encode(one), end])) for end in ends) for one in choices}
    expected = {text: weight / sum(weights.values()) for text, weight in weights.items()}
    assert {one.text: one.model for one in record.choices} == pytest.approx(expected, rel=1e-4)
    assert {one.text: one.probability for one in record.choices} == pytest.approx(expected, rel=1e-4)
    texts = chat_bench.texts("hi", count, choices=choices, temperature=1, top_p=1)
    assert is_plausible(Counter(texts), expected)
    greedy = max(expected, key=expected.__getitem__)
    assert set(chat_bench.texts("hi", 5, choices=choices, temperature=0)) == {greedy}


def test_a_stop_text_that_the_model_cannot_write_is_no_end_of_a_choice(letters_bench: Bench) -> None:
    def odds(*stop: str) -> list[ChoiceProbabilities]:
        (records,) = letters_bench.answer("a", choices=("a", "ab", "abc"), stop=stop, temperature=1, top_p=1)
        return [one for one in records if isinstance(one, ChoiceProbabilities)]

    assert letters_bench.model.tokenizer.encode("€") == []
    assert odds("b", "€") == odds("b") != odds()
    assert odds("€") == odds()


def test_a_stop_text_that_begins_with_a_space_ends_a_choice_of_words() -> None:
    tokenizer = Tokenizer(train_vocabulary("whitespace", ["yes no not so the end"], 20, []))
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, context_length=8, n_layer=1))
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    engine = TorchEngine(model)

    def odds(*stop: str) -> list[float]:
        settings = Settings(choices=("no", "not so"), stop=stop)
        choices = Choices(Request(slot=0, ids=[0], num_generated=0, settings=settings, seed=0), 1, tokenizer)
        assert choices.weigh(engine)
        return [one.model for one in choices.probabilities]

    assert odds(" end") == odds("end") != odds()


def test_the_best_of_several_is_the_likeliest_of_them(chat_bench: Bench) -> None:
    settings = {"temperature": 1.2, "max_tokens": 8}
    (records,) = chat_bench.answer("hi", 1, best_of=5, **settings)
    (candidates,) = (one for one in records if isinstance(one, Candidates))
    logprobs = [record.logprob for record in records if isinstance(record, Token)]
    assert candidates.answers[0] == (text_of(records), sum(logprobs) / len(logprobs))
    assert [score for _, score in candidates.answers] == sorted(
        (score for _, score in candidates.answers), reverse=True
    )
    assert len(candidates.answers) == 5
    assert isinstance(records[-1], Finished)
    assert records[-1].seed == 7
    assert text_of(chat_bench.answer("hi", 1, **settings)[0]) in {text for text, _ in candidates.answers}
    crowd = chat_bench.answer("hi", 3, best_of=5, **settings)
    assert text_of(crowd[0]) == text_of(records)


def test_beams_may_be_guided(chat_bench: Bench) -> None:
    (text,) = chat_bench.texts("hi", num_beams=3, regex="(hello|fine)!", max_tokens=12)
    assert text in ("hello!", "fine!")
    plain, *others = (chat_bench.answer("hi", 1, num_beams=beams, max_tokens=6)[0] for beams in (4, 4, 16))
    assert text_of(plain) == text_of(others[0])
