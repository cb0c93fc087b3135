"""Answers as records: tokens, stop strings, ends and limits, with an engine that generates a given text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.config.option import Origin
from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import GenerationError
from tinychat.events import Finished, Notice, Record, SettingsChanged, Token
from tinychat.generate.answer import Answer
from tinychat.generate.engine import Engine, Request, SampledToken
from tinychat.generate.stream import MAX_CALL_SECONDS, MIXED_CALL_SECONDS, AnswerBatch, drive, stream
from tinychat.generate.vocabulary import Vocabulary
from tinychat.session.open_model import OpenModel
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

LETTERS = Tokenizer(train_vocabulary("char", ["abcdefgh \n"], None, ["<|end|>"]))
BYTES = Tokenizer(train_vocabulary("wordpiece", ["naïve café 你好 " * 9], 300, []))
END = LETTERS.special("end")
assert END is not None


class Script:
    """An engine that generates the tokens of a text, one in the first call, then three in each."""

    def __init__(self, ids: Sequence[int], context_length: int = 1000) -> None:
        self.ids, self.context_length = list(ids), context_length
        self.requested: list[int] = []

    def check(self, request: Request) -> None:
        pass

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = 0
    ) -> list[list[SampledToken]]:
        most = min(n, 3 if self.requested else 1)
        self.requested.append(n)
        tops = ((1, -1.0), (2, -2.0))[:top_logprobs]
        return [
            [SampledToken(id, -0.5, tops) for id in self.ids[one.num_generated : one.num_generated + most]]
            for one in requests
        ]


def answer(tokenizer: Tokenizer = LETTERS, prompt: str = "a", top_logprobs: int = 0, **settings: object) -> Answer:
    fixed = Settings(**settings)  # type: ignore[arg-type]
    ends = frozenset([END]) if tokenizer is LETTERS else frozenset()
    ids = tokenizer.encode(prompt)
    return Answer(tokenizer, ids, lambda: fixed, seed=3, end_ids=ends, top_logprobs=top_logprobs)


def run(text: str, **settings: object) -> list[Record]:
    return list(stream(Script([*LETTERS.encode(text), END]), answer(**settings)))  # type: ignore[arg-type, list-item]


def text_of(records: Sequence[Record]) -> str:
    return "".join(record.text for record in records if isinstance(record, Token))


def last(records: Sequence[Record]) -> Finished:
    assert [isinstance(record, Finished) for record in records].count(True) == 1
    assert isinstance(records[-1], Finished)
    return records[-1]


def test_an_answer_ends_before_its_end_token() -> None:
    records = run("bad cafe")
    assert text_of(records) == "bad cafe"
    assert (last(records).reason, last(records).tokens, last(records).seed) == ("end", 8, 3)


def test_an_answer_ends_at_its_maximum_length() -> None:
    records = run("bad cafe", max_tokens=3)
    assert (text_of(records), last(records).reason, last(records).tokens) == ("bad", "length", 3)


@pytest.mark.parametrize(
    ("stop", "shown"),
    [
        ("c", "bad "),
        ("ca", "bad "),
        ("d c", "ba"),
        ("bad", ""),
        ("fe", "bad ca"),
        ("ff", "bad cafe"),
        (r"\n", "bad cafe"),
    ],
)
def test_an_answer_ends_before_a_stop_string(stop: str, shown: str) -> None:
    records = run("bad cafe", stop=stop)
    assert text_of(records) == shown
    assert last(records).reason == ("end" if shown == "bad cafe" else "stop")
    assert last(records).tokens == len(shown)


def test_the_first_of_several_stop_strings_counts() -> None:
    assert text_of(run("abcdefgh", stop=["fg", "cd", "zz"])) == "ab"


@given(text=st.text("abc", min_size=1, max_size=30), stop=st.text("abc", min_size=1, max_size=4))
def test_stop_strings_cut_exactly_where_str_find_finds_them(text: str, stop: str) -> None:
    if stop in ("none", "off"):
        return
    assert text_of(run(text, stop=[stop])) == text.split(stop)[0]


@given(st.text(min_size=1, max_size=20))
def test_the_texts_of_tokens_join_to_the_text_without_splitting_characters(text: str) -> None:
    ids = BYTES.encode(text)
    records = list(stream(Script(ids), answer(BYTES, max_tokens=len(ids))))
    assert text_of(records) == text
    assert last(records).tokens == len(ids)


def test_an_incomplete_character_at_the_end_is_shown_as_one() -> None:
    half = BYTES.encode("\U0001f600")[0]
    records = list(stream(Script([half]), answer(BYTES, max_tokens=1)))
    assert text_of(records) == "\ufffd"
    assert last(records).tokens == 1


def test_stopping_keeps_the_tokens_so_far() -> None:
    calls = iter([False, False, True])
    records = list(stream(Script(LETTERS.encode("abc")), answer(), lambda: next(calls)))
    assert (text_of(records), last(records).reason) == ("a", "interrupted")


@pytest.mark.parametrize("shown", [1, 2, 3, 4, 7])
def test_tokens_generated_ahead_are_discarded_when_it_is_stopped(shown: int) -> None:
    records: list[Record] = []
    one = answer()
    engine = Script([*LETTERS.encode("bad cafe"), END])
    for record in stream(engine, one, lambda: len(records) >= shown):  # type: ignore[arg-type]
        records.append(record)
    assert text_of(records) == "bad cafe"[:shown]
    assert (last(records).reason, last(records).tokens) == ("interrupted", shown)
    assert LETTERS.decode(one.ids) == "a" + "bad cafe"[:shown]


def test_stopping_while_choices_are_weighed_ends_the_answer(letters: Path) -> None:
    model, asked = OpenModel(str(letters), SettingStore()), iter(range(9))
    settings = Settings(choices=("abc", "abd", "xyz"))
    weighed = model.make_answer("a", settings=lambda: settings, seed=1)
    records = list(stream(model.engine, weighed, lambda: next(asked) > 2))
    assert [type(record) for record in records] == [Finished]
    assert last(records).reason == "interrupted"


def test_other_answers_go_on_while_choices_are_weighed(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.generate.stream.MAX_CALL_SECONDS", 0.0)  # one token of each a step
    model, asked = OpenModel(str(letters), SettingStore()), list[int]()
    settings, few = Settings(choices=("abc", "abd", "xyz", "xyyy"), temperature=0), Settings(max_tokens=5)
    extend = model.engine.extend

    def watched(requests: Sequence[Request], *values: Any, **named: Any) -> list[list[SampledToken]]:
        asked.append(requests[0].slot)
        return extend(requests, *values, **named)

    monkeypatch.setattr(model.engine, "extend", watched)
    batch = AnswerBatch(model.engine)
    for seed in range(3):
        batch.add(model.make_answer("a", settings=lambda: settings, seed=seed))
    batch.add(model.make_answer("a", settings=lambda: few, seed=1))
    ends = [answer.request.slot for answer, record in drive(batch) if isinstance(record, Finished)]
    assert sorted(ends) == [0, 1, 2, 3]
    assert asked == [0, 0, 0, 3, 0, 0, 0, 3, 3, 3, 3]  # one beginning of the choices for each of the three, by turns
    assert not batch._choices


def test_settings_are_read_before_each_call() -> None:
    current = [Settings(max_tokens=8)]
    one = Answer(LETTERS, [0], lambda: current[0], seed=1)
    batch = AnswerBatch(Script(LETTERS.encode("abcdefgh")))
    batch.add(one)
    shown = text_of([record for _, records in batch.step() for record in records])
    current[0] = Settings(max_tokens=2, temperature=0)
    while batch.answers:
        shown += text_of([record for _, records in batch.step() for record in records])
    assert shown == "ab"
    assert one.request.settings.greedy


def test_a_change_of_settings_acts_on_the_very_next_token_and_is_reported_there() -> None:
    current = [Settings(max_tokens=8)]
    script = Script(LETTERS.encode("abcdefgh"))
    one = Answer(LETTERS, [0], lambda: current[0], seed=1)
    seen = ""
    for record in stream(script, one):
        seen += record.text if isinstance(record, Token | SettingsChanged) else ""
        if seen == "abc":  # the engine is ahead of it
            current[0] = Settings(max_tokens=8, temperature=1.3, top_k=5)
        elif seen.endswith("e"):
            current[0] = Settings(max_tokens=8, temperature=0, top_k=5)
    assert max(script.requested) > 1
    assert seen == "abctemp 1.3 · top-k 5detemp 0 · greedyfgh"


def test_a_change_of_settings_does_not_depend_on_how_far_the_engine_is_ahead(letters: Path) -> None:
    """Tokens that the engine has generated ahead are discarded, and removed from its cache."""
    from tinychat.generate.loading import open_engine
    from tinychat.store.models import read_info, read_tokenizer

    info, tokenizer = read_info(letters), read_tokenizer(letters)
    first, second = (Settings(max_tokens=24, temperature=temperature) for temperature in (1.5, 0.3))

    def generate(engine: Engine, most: int) -> list[int]:
        """Return the ids of an answer whose settings change after six tokens."""
        current = [first]
        one = Answer(tokenizer, tokenizer.encode("ab"), lambda: current[0], seed=4)
        ids = []
        for record in stream(engine, one):
            ids += [record.id] if isinstance(record, Token) else []
            current[0] = first if len(ids) < most else second
        return ids

    engine = open_engine(info, first)

    class Slow:  # generates one token a call, so that it is never ahead
        context_length = engine.context_length
        check = engine.check

        def extend(
            self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = 0
        ) -> list[list[SampledToken]]:
            return engine.extend(requests, 1, top_logprobs)

    assert generate(engine, 6) == generate(Slow(), 6) != generate(engine, 24)  # type: ignore[arg-type]


def test_exceeding_the_context_is_reported_once() -> None:
    records = list(stream(Script(LETTERS.encode("abcdefgh"), context_length=4), answer(max_tokens=8)))
    assert [record.text for record in records if isinstance(record, Notice)] == [
        "prompt and answer are longer than the model's context of 4 tokens: it sees only their newest part"
    ]


def test_top_logprobs_are_recorded_if_requested() -> None:
    first = next(iter(stream(Script(LETTERS.encode("ab")), answer(top_logprobs=2))))
    assert isinstance(first, Token)
    assert [(other.id, other.logprob) for other in first.top] == [(1, -1.0), (2, -2.0)]
    assert first.top[0].text == LETTERS.token_text(1)


def test_answers_of_a_batch_end_independently() -> None:
    batch = AnswerBatch(Script([*LETTERS.encode("abcdefgh"), END]))  # type: ignore[list-item]
    answers = [answer(max_tokens=count) for count in (2, 9, 5)]
    for one in answers:
        batch.add(one)
    texts = {id(one): "" for one in answers}
    order = []
    while batch.answers:
        for one, records in batch.step():
            texts[id(one)] += text_of(records)
            order += [answers.index(one)] * (one.finished is not None)
    assert [texts[id(one)] for one in answers] == ["ab", "abcdefgh", "abcde"]
    assert order == [0, 2, 1]


def test_answers_that_get_one_token_a_call_do_not_wait_long_for_others() -> None:
    seconds: list[float] = []

    class Timed(Script):
        def extend(self, requests: Sequence[Request], n: int, top_logprobs: int = 0, limit: float = 0) -> Any:
            seconds.append(limit)
            return super().extend(requests, n, top_logprobs)

    vocabulary = Vocabulary(LETTERS, LETTERS.vocab_size, frozenset([END]))  # type: ignore[list-item]

    def one(penalty: float) -> Answer:
        settings = Settings(presence_penalty=penalty, max_tokens=2)
        return Answer(LETTERS, [1], lambda: settings, seed=1, vocabulary=vocabulary)

    for penalties in ((0.0, 0.0), (0.5, 0.5), (0.5, 0.0)):
        batch = AnswerBatch(Timed(LETTERS.encode("abcd")))
        for penalty in penalties:
            batch.add(one(penalty))
        for _, records in batch.step():
            list(records)
    assert seconds == [MAX_CALL_SECONDS, MAX_CALL_SECONDS, MIXED_CALL_SECONDS]


@pytest.mark.parametrize("settings", [{}, {"best_of": 2}, {"num_beams": 2}], ids=str)
def test_an_answer_that_is_removed_ends_with_what_there_is_and_leaves_the_others(
    letters: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinychat.generate.stream.MAX_CALL_SECONDS", 0.0)  # a call generates one token
    model = OpenModel(str(letters), store := SettingStore())
    store.update({"max_tokens": 40, **settings}, Origin.COMMAND)
    alone, removed, other = (model.make_answer("abc", seed=seed) for seed in (5, 4, 5))
    expected = text_of(list(stream(model.engine, alone)))
    batch = AnswerBatch(model.engine)
    for one in (removed, other):
        batch.add(one)
    texts = {removed: "", other: ""}
    for _ in range(3):
        for one, records in batch.step():
            texts[one] += text_of(list(records))
    records = batch.remove(removed)
    assert last(records).reason == "interrupted"
    assert removed.finished is records[-1]
    assert text_of(records) or texts[removed]
    for one, record in drive(batch):
        assert one is other
        texts[one] += record.text if isinstance(record, Token) else ""
    assert texts[other] == expected


def test_an_answer_may_be_removed_during_a_step() -> None:
    batch = batch_of("abcdefgh", 9, 9)
    first, second = batch.answers
    for one, records in batch.step():
        if one is first and first.finished is None:
            batch.remove(second)
        assert one is first
        list(records)
    assert batch.answers == [first]


def batch_of(text: str, *counts: int) -> AnswerBatch:
    """Return a batch of answers with the same text, each cut to one of the counts."""
    batch = AnswerBatch(Script([*LETTERS.encode(text), END]))  # type: ignore[arg-type, list-item]
    for count in counts:
        batch.add(answer(max_tokens=count))
    return batch


def test_batches_of_several_engines_take_turns_until_every_answer_is_finished() -> None:
    batches = batch_of("abcdefgh", 2, 9), batch_of("hgfedcba", 3)
    answers = [one for batch in batches for one in batch.answers]
    records: dict[Answer, list[Record]] = {one: [] for one in answers}
    order = []
    for one, record in drive(*batches):
        records[one].append(record)
        order.append(answers.index(one))
    assert [text_of(records[one]) for one in answers] == ["ab", "abcdefgh", "hgf"]
    assert [last(records[one]).reason for one in answers] == ["length", "end", "length"]
    assert [last(records[one]) for one in answers] == [one.finished for one in answers]
    assert order[:3] == [0, 1, 2]


def test_answers_are_admitted_while_others_are_generated_and_after_all_are_finished() -> None:
    batch, waiting = batch_of("abcd"), [2, 9, None, 1]
    texts: dict[Answer, str] = {}
    joined_beside: list[int] = []

    def admit() -> bool:
        if not waiting or (len(batch.answers) == 2 and waiting[0] is None):
            return False
        if (count := waiting.pop(0)) is not None:
            joined_beside.append(len(batch.answers))
            batch.add(answer(max_tokens=count))
        return True

    for one, record in drive(batch, admit=admit):
        texts[one] = texts.get(one, "") + (record.text if isinstance(record, Token) else "")
    assert list(texts.values()) == ["ab", "abcd", "a"]
    assert joined_beside[:2] == [0, 1]


def test_an_answer_that_joins_during_a_step_is_finished_too() -> None:
    batch, joined = batch_of("abcd", 2), answer(max_tokens=3)
    texts = {joined: ""}
    for one, record in drive(batch):
        if isinstance(record, Token):
            texts[one] = texts.get(one, "") + record.text
        elif one is not joined:
            batch.add(joined)
    assert texts[joined] == "abc"


@pytest.mark.parametrize("stop", [(), ("zz",)])
@pytest.mark.parametrize("taken", [1, 2, 3, 9])
def test_closing_early_finishes_every_answer_once(taken: int, stop: tuple[str, ...]) -> None:
    batch = AnswerBatch(Script([*LETTERS.encode("abcdefgh"), END]))  # type: ignore[arg-type, list-item]
    answers = [answer(max_tokens=count, stop=stop) for count in (1, 9)]
    for one in answers:
        batch.add(one)
    records = drive(batch)
    seen = [next(records) for _ in range(taken)]
    records.close()  # type: ignore[attr-defined]
    finished = {one: record for one, record in seen if isinstance(record, Finished)}
    for one in answers:
        assert one.finished is not None
        assert one.finished == finished[one] if one in finished else one.finished.reason == "interrupted"
    assert batch.answers == []


def test_an_error_finishes_every_answer_and_is_raised_after_their_records() -> None:
    class Failing(Script):
        def extend(
            self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = 0
        ) -> list[list[SampledToken]]:
            if len(self.requested) == 2:
                raise GenerationError("the model gave NaN")
            return super().extend(requests, n, top_logprobs, seconds)

    batch = AnswerBatch(Failing(LETTERS.encode("abcdefgh")))  # type: ignore[arg-type]
    one = answer()
    batch.add(one)
    records: list[Record] = []
    with pytest.raises(GenerationError, match="NaN"):
        records.extend(record for _, record in drive(batch))
    assert text_of(records) == "abcd"
    assert not any(isinstance(record, Finished) for record in records)
    assert one.finished is not None
    assert (one.finished.reason, one.finished.tokens) == ("interrupted", 4)


def test_an_error_in_admit_finishes_every_answer() -> None:
    batch = batch_of("abcdefgh", 9)
    (one,) = batch.answers
    rounds = iter([False])

    def admit() -> bool:
        if next(rounds, None) is None:
            raise GenerationError("no")
        return False

    with pytest.raises(GenerationError, match="no"):
        list(drive(batch, admit=admit))
    assert one.finished is not None
    assert one.finished.reason == "interrupted"
