"""Prompts of several sentences: a translator answers one after the other, and each can be looked into."""

from pathlib import Path

import pytest

from tinychat.config.option import Origin
from tinychat.events import Finished, Notice, Token
from tinychat.session.inspection import ids_before, probabilities_at
from tinychat.session.session import Session

TOY = Path(__file__).parents[1] / "toys" / "translation"


@pytest.fixture
def session() -> Session:
    session = Session()
    session.open_model(str(TOY))
    return session


def test_sentences_are_translated_one_by_one_and_their_space_is_kept(session: Session) -> None:
    records = list(session.answer("let's go\n\nlove you\nlet's go"))
    assert session.turns[0].answer == "ir vamos\n\nte amo\nir vamos"
    assert [record.text for record in records if isinstance(record, Token)][2] == "\n\n"
    assert [record for record in records if isinstance(record, Notice)] == []


def test_a_token_of_a_later_sentence_has_the_odds_that_it_has_there_alone(session: Session) -> None:
    list(session.answer("love you"))
    list(session.answer("let's go\nlove you"))
    alone, together = session.turns
    assert [token.id for token in together.tokens[3:]] == [token.id for token in alone.tokens]
    for index in range(2):
        assert ids_before(session.model, together, 3 + index) == ids_before(session.model, alone, index)
        assert probabilities_at(session.model, together, 3 + index) == probabilities_at(session.model, alone, index)
    assert ids_before(session.model, together, 2)[1] != ids_before(session.model, together, 3)[1]


def test_an_answer_that_stopped_in_a_sentence_goes_on_there(session: Session) -> None:
    session.settings.update({"max_tokens": 4}, Origin.FLAG)
    list(session.answer("let's go\nlove you\nlet's go"))
    assert session.turns[0].answer == "ir vamos\nte"
    session.settings.update({"max_tokens": 50}, Origin.FLAG)
    list(session.continue_answer())
    assert session.turns[0].answer == "ir vamos\nte amo\nir vamos"
    list(session.branch(4, [session.turns[0].tokens[3].id]))
    assert session.turns[0].answer == "ir vamos\nte te amo\nir vamos"


def test_a_sentence_longer_than_the_context_is_named(session: Session) -> None:
    records = list(session.answer(f"love you\n{'go ' * 20}\nlet's go"))
    (notice,) = [record.text for record in records if isinstance(record, Notice)]
    assert notice.startswith("longer than the context, so that its end is left out: go go go")
    assert session.turns[0].answer.endswith("\nir vamos")


def test_settings_that_ask_for_a_whole_text_have_it_translated_at_once(session: Session) -> None:
    session.settings.update({"num_beams": 2}, Origin.FLAG)
    list(session.answer("let's go\nlove you"))
    assert "\n" not in session.turns[0].answer


@pytest.mark.parametrize("values", [{}, {"num_beams": 2}, {"best_of": 2}])
def test_white_space_alone_has_no_translation(session: Session, values: dict[str, int]) -> None:
    session.settings.update(values, Origin.FLAG)
    for prompt in ("", " \n"):
        *_, last = session.answer(prompt)
        assert isinstance(last, Finished)
        assert (last.reason, last.tokens) == ("end", 0)
    list(session.answer("let's go"))
    assert [turn.answer for turn in session.turns] == ["", "", "ir vamos"]
