"""Several answers to one prompt, made by models, and one of them chosen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tinychat.config.precedence import Origin
from tinychat.errors import UsageError
from tinychat.events import Finished, Notice, Record, Token
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.conversation import Conversation
from tinychat.session.session import Session


@pytest.fixture
def session(letters: Path) -> Session:
    session = Session()
    session.settings.update({"seed": 5, "max_tokens": 12}, Origin.FLAG)
    session.open_model(str(letters))
    return session


def samples(session: Session, prompt: str, seeds: tuple[int, ...], index: int = 0) -> Comparison:
    settings = session.settings.current
    variants = [Variant(str(seed), session.model, settings, seed) for seed in seeds]
    session.comparison = Comparison(session.conversation, prompt, index, variants, session.runs)
    return session.comparison


def texts_of(records: Iterator[tuple[int, Record]], count: int) -> list[str]:
    texts = [""] * count
    for index, record in records:
        if isinstance(record, Token):
            texts[index] += record.text
    return texts


def test_answers_in_one_batch_are_those_of_their_seeds_alone(session: Session) -> None:
    comparison = samples(session, "abc", (5, 6, 7))
    together = texts_of(comparison.answer(), 3)
    assert session.turns == []
    for seed, text in zip((5, 6, 7), together, strict=True):
        session.settings.set("seed", seed)
        list(session.answer("abc"))
        assert session.turns[-1].answer == text
    assert [turn.answer for turn in comparison.turns] == together


def test_answers_grow_at_the_same_time(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.generate.stream.MAX_CALL_SECONDS", 0.0)  # a token of each, and the next
    indices = [index for index, record in samples(session, "abc", (5, 6)).answer() if isinstance(record, Token)]
    assert sorted(set(indices[: len(indices) // 2])) == [0, 1]


def test_a_chosen_answer_is_a_turn_that_can_go_on_and_another_takes_its_place(session: Session) -> None:
    list(session.answer("first"))
    comparison = samples(session, "abc", (5, 6), index=1)
    one, two = texts_of(comparison.answer(), 2)
    session.pick(2)
    assert [turn.answer for turn in session.turns][1:] == [two]
    session.pick(1)
    assert [turn.answer for turn in session.turns][1:] == [one]
    list(session.continue_answer())
    assert session.turns[1].answer.startswith(one)
    assert len(session.turns[1].tokens) == 24


def test_answering_the_last_prompt_again_the_chosen_one_takes_its_place(session: Session) -> None:
    list(session.answer("abc"))
    comparison = samples(session, "abc", (6, 7), index=0)
    two = texts_of(comparison.answer(), 2)[1]
    session.pick(2)
    assert [turn.answer for turn in session.turns] == [two]


def test_what_has_been_said_since_becomes_a_branch(session: Session) -> None:
    comparison = samples(session, "abc", (5, 6))
    list(comparison.answer())
    list(session.answer("more"))
    more = session.turns[-1]
    session.pick(1)
    assert session.turns == comparison.turns[:1]
    assert session.conversation.all == [more, comparison.turns[0]]
    session.pick(2)
    session.pick(1)
    assert session.turns == comparison.turns[:1]
    assert session.conversation.all == [more, *comparison.turns]
    with pytest.raises(UsageError, match="there is no answer 3"):
        session.pick(3)
    session.conversation = Conversation()
    with pytest.raises(UsageError, match="another conversation has begun since"):
        session.pick(1)


def test_stopping_keeps_what_is_there(session: Session) -> None:
    session.settings.set("max_tokens", 10_000)
    comparison = samples(session, "abc", (5, 6))
    seen: list[Record] = []
    begun: set[int] = set()
    for index, record in comparison.answer(lambda: len(begun) == 2):  # each call of the engine may make many tokens
        seen.append(record)
        begun.add(index)
    assert [record.reason for record in seen if isinstance(record, Finished)] == ["interrupted"] * 2
    assert all(0 < len(turn.tokens) < 10_000 for turn in comparison.turns)


def test_stopping_before_a_model_has_loaded_ends_all(session: Session) -> None:
    comparison = samples(session, "abc", (5, 6))
    records = [record for _, record in comparison.answer(lambda: True)]
    assert [record.reason for record in records if isinstance(record, Finished)] == ["interrupted"] * 2
    with pytest.raises(UsageError, match="answer 1 is empty"):
        session.pick(1)


def test_models_answer_together_and_the_chosen_one_speaks(session: Session, chatter: Path) -> None:
    other = Session()
    other.settings.update({"seed": 5, "max_tokens": 12}, Origin.FLAG)
    other.open_model(str(chatter))
    variants = [Variant(one.model.name, one.model, one.settings.current, 5) for one in (session, other)]
    comparison = session.comparison = Comparison(session.conversation, "hello", 0, variants, session.runs)
    texts = texts_of(comparison.answer(), 2)
    list(session.answer("hello"))
    assert session.conversation.back()
    other.conversation = Conversation()
    list(other.answer("hello"))
    assert texts[1] == other.turns[0].answer
    session.pick(2)
    assert (session.model.name, session.turns[0].answer) == ("chatter", texts[1])
    session.pick(1)
    assert (session.model.name, session.turns[0].answer) == ("letters", texts[0])


def test_unknown_characters_are_named(session: Session) -> None:
    records = [record for _, record in samples(session, "★", (5, 6)).answer()]
    assert Notice("unknown to this model, left out: '★'") in records
