"""Prompts of several sentences: a translator answers one after the other, and each can be looked into."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tinychat.config.option import Origin
from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.events import Finished, Notice, Token
from tinychat.generate.prompts import split_sentences
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


def test_settings_that_describe_a_whole_text_have_it_translated_at_once(session: Session) -> None:
    session.settings.update({"begin": "te"}, Origin.FLAG)
    notices = [record.text for record in session.answer("let's go\nlove you") if isinstance(record, Notice)]
    assert "\n" not in session.turns[0].answer
    assert session.turns[0].answer.startswith("te")
    assert notices[0].startswith("the 2 sentences are translated as one text")


@pytest.mark.parametrize(
    "values", [{"num_beams": 3}, {"best_of": 2, "temperature": 0.1}, {"ban": ("zebra",)}, {"ban": ("o\n",)}]
)
def test_other_settings_leave_no_sentence_out(session: Session, values: dict[str, object]) -> None:
    session.settings.update(values, Origin.FLAG)
    list(session.answer("let's go\n\nlove you\nlet's go"))
    assert session.turns[0].answer == "ir vamos\n\nte amo\nir vamos"


def test_a_text_banned_while_sentences_are_translated_is_in_none_that_follows() -> None:
    session = Session()
    session.open_model("translate")
    session.settings.update({"temperature": 0}, Origin.FLAG)
    prompt = "The cat is here. The dog is there. The house is big."
    for record in session.answer(prompt):
        if isinstance(record, Token):
            session.settings.update({"ban": ("el perro",)}, Origin.FLAG)
    first, second, third = session.turns[0].answer.split(". ")
    assert (first, third) == ("El gato está aquí", "La casa es grande.")
    assert "perr" in second
    assert "el perro" not in second.lower()
    list(session.answer(prompt))
    assert session.turns[1].answer == session.turns[0].answer


SENTENCES = "The cat is here. The dog is there. The house is big."


@pytest.mark.parametrize(
    "values",
    [{"ban": ("zebra",)}, {"num_beams": 4}, {"regex": "[A-Z]+"}, {"begin": "Una"}, {"choices": ("Sí.", "No.")}],
)
def test_an_answer_goes_on_in_its_sentence_whatever_is_set_meanwhile(values: dict[str, object]) -> None:
    session = Session()
    session.open_model("translate")
    session.settings.update({"temperature": 0}, Origin.FLAG)
    list(session.answer(SENTENCES))
    undisturbed = session.turns[0].answer
    session.settings.update({"max_tokens": 8}, Origin.FLAG)
    list(session.retry())
    assert session.turns[0].answer != undisturbed
    session.settings.update({**values, "max_tokens": 40}, Origin.FLAG)
    assert not [
        record for record in session.continue_answer() if isinstance(record, Notice) and "as one" in record.text
    ]
    assert session.turns[0].answer == undisturbed


def test_a_text_banned_while_beams_search_is_in_no_later_sentence() -> None:
    session = Session()
    session.open_model("translate")
    session.settings.update({"temperature": 0, "num_beams": 3}, Origin.FLAG)
    for record in session.answer(SENTENCES):
        if isinstance(record, Token):
            session.settings.update({"ban": ("perro", "el g")}, Origin.FLAG)
    first, second, third = session.turns[0].answer.split(". ")
    assert (first, third) == ("El gato está aquí", "La casa es grande.")
    assert "perro" not in second


def test_beams_that_are_switched_off_search_no_later_sentence() -> None:
    session = Session()
    session.open_model("translate")
    session.settings.update({"temperature": 0, "num_beams": 3}, Origin.FLAG)
    searched: list[int] = []
    for record in session.answer(SENTENCES):
        if isinstance(record, Token):
            session.settings.update({"num_beams": 1, "ban": ("casa",)}, Origin.FLAG)
            searched.append(len(record.avoided))
    assert "casa" not in session.turns[0].answer
    assert sum(searched) > 0


def test_beams_go_on_behind_a_text_that_was_banned_since() -> None:
    session = Session()
    session.open_model("translate")
    session.settings.update({"temperature": 0, "max_tokens": 9}, Origin.FLAG)
    list(session.answer(SENTENCES))
    before = session.turns[0].answer
    session.settings.update({"ban": (before[-8:],), "num_beams": 3, "max_tokens": 40}, Origin.FLAG)
    list(session.continue_answer())
    assert session.turns[0].answer.startswith(before)
    assert session.turns[0].answer.endswith("La casa es grande.")


@pytest.mark.parametrize(("position", "begin", "max_tokens"), [(1, "ir", 2), (4, "te", 5)])
def test_a_branch_is_continued_with_the_sentences_of_the_answer_that_it_left(
    session: Session, position: int, begin: str, max_tokens: int
) -> None:
    list(session.answer("let's go\nlove you\nlet's go"))
    tokens = session.turns[0].tokens
    session.settings.update({"begin": begin, "max_tokens": max_tokens}, Origin.FLAG)
    list(session.branch(position, [tokens[position].id]))
    session.settings.update({"begin": None, "max_tokens": 50}, Origin.FLAG)
    list(session.continue_answer())
    assert session.turns[0].answer == "ir vamos\nte amo\nir vamos"


@pytest.mark.slow
def test_settings_may_change_at_any_token_of_a_translation() -> None:
    """Changes, answers, continuations and branches, drawn at random; in the end the answer has all sentences."""
    random = Random(1)
    changes: list[dict[str, object]] = [
        {"ban": ("el ",)}, {"ban": ("perro", "está")}, {"ban": ()}, {"num_beams": 3}, {"num_beams": 1},
        {"best_of": 2, "temperature": 0.8}, {"best_of": 1, "temperature": 0}, {"begin": "La"}, {"begin": None},
        {"regex": "[A-Z].*"}, {"regex": None}, {"max_tokens": 5}, {"max_tokens": 30}, {"stop": (". ",)}, {"stop": ()},
    ]  # fmt: skip
    neutral = {name: getattr(Settings(), name) for change in changes for name in change}
    session = Session()
    session.open_model("translate")
    session.settings.update({"seed": 1}, Origin.FLAG)
    for _ in range(40):
        session.settings.update(neutral | {"temperature": 0, "max_tokens": random.randrange(3, 20)}, Origin.FLAG)
        list(session.answer(SENTENCES))
        for _ in range(2):
            ask = session.continue_answer
            if random.random() < 0.4:
                position = random.randrange(len(session.turns[-1].tokens))
                ask = partial(session.branch, position, [session.turns[-1].tokens[position].id])
            with suppress(GenerationError):  # such as a pattern that nothing matches within the limit
                for record in ask():
                    if isinstance(record, Token) and random.random() < 0.2:
                        session.settings.update(random.choice(changes), Origin.FLAG)
        sources = session.model.source_before(session.turns[-1], 0)
        session.settings.update(neutral | {"max_tokens": 90}, Origin.FLAG)
        list(session.continue_answer())
        if sources == session.model.prompt_encoder.encode_sentences(SENTENCES)[0].ids:
            assert len(split_sentences(session.turns[-1].answer)) >= 3


@pytest.mark.parametrize("values", [{}, {"num_beams": 2}, {"best_of": 2}])
def test_white_space_alone_has_no_translation(session: Session, values: dict[str, int]) -> None:
    session.settings.update(values, Origin.FLAG)
    for prompt in ("", " \n"):
        *_, last = session.answer(prompt)
        assert isinstance(last, Finished)
        assert (last.reason, last.tokens) == ("end", 0)
    list(session.answer("let's go"))
    assert [turn.answer for turn in session.turns] == ["", "", "ir vamos"]
