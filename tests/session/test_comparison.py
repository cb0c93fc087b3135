"""Comparisons: several answers to one prompt, generated together, and one of them picked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tinychat.config.option import Origin
from tinychat.errors import UsageError
from tinychat.events import Finished, Notice, Record, Token
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.conversation import Conversation
from tinychat.session.inspection import probabilities_at
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


def test_answers_of_a_batch_equal_single_answers_with_their_seeds(session: Session) -> None:
    comparison = samples(session, "abc", (5, 6, 7))
    together = texts_of(comparison.answer(), 3)
    assert session.turns == []
    for seed, text in zip((5, 6, 7), together, strict=True):
        session.settings.set("seed", seed)
        list(session.answer("abc"))
        assert session.turns[-1].answer == text
    assert [turn.answer for turn in comparison.turns] == together


def test_answers_are_generated_in_turns(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.generate.stream.MAX_CALL_SECONDS", 0.0)  # a call generates one token
    indices = [index for index, record in samples(session, "abc", (5, 6)).answer() if isinstance(record, Token)]
    assert sorted(set(indices[: len(indices) // 2])) == [0, 1]


def test_a_picked_answer_becomes_a_turn_that_can_be_continued_or_replaced_by_another(session: Session) -> None:
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


def test_a_picked_answer_to_the_last_prompt_replaces_the_last_turn(session: Session) -> None:
    list(session.answer("abc"))
    comparison = samples(session, "abc", (6, 7), index=0)
    two = texts_of(comparison.answer(), 2)[1]
    session.pick(2)
    assert [turn.answer for turn in session.turns] == [two]


def test_turns_since_the_comparison_become_a_branch(session: Session) -> None:
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


def test_stopping_keeps_the_tokens_generated_so_far(session: Session) -> None:
    session.settings.set("max_tokens", 10_000)
    comparison = samples(session, "abc", (5, 6))
    seen: list[Record] = []
    begun: set[int] = set()
    for index, record in comparison.answer(lambda: len(begun) == 2):  # each call of the engine may generate many tokens
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


def test_models_answer_together_and_the_model_of_the_picked_answer_opens(session: Session, chatter: Path) -> None:
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
    session.conversation.go_to(2)  # chatter's, whose tokens are other ids
    with pytest.raises(UsageError, match=r"chatter gave this answer, and .*letters is open"):
        probabilities_at(session.model, session.turns[0], 0)
    with pytest.raises(UsageError, match="chatter gave this answer"):
        session.continue_answer()
    session.pick(2)
    assert probabilities_at(session.model, session.turns[0], 0)


def test_unknown_characters_are_named(session: Session) -> None:
    records = [record for _, record in samples(session, "★", (5, 6)).answer()]
    assert Notice("unknown to this model, left out: '★'") in records
