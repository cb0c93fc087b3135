"""`/samples`, `/compare` and `/pick`, as they are typed."""

import pytest
from scripted import Talk

from tinychat.commands.results import Message, ParallelAnswers
from tinychat.errors import ModelError, UsageError
from tinychat.events import Token


def texts(talk: Talk, line: str) -> tuple[tuple[str, ...], list[str]]:
    """The heads, and the answer under each."""
    result = talk.do(line)
    assert isinstance(result, ParallelAnswers)
    answers = [""] * len(result.labels)
    for index, record in result.start(lambda: False):
        if isinstance(record, Token):
            answers[index] += record.text
    return result.labels, answers


def test_samples_have_seeds_of_their_own_and_are_no_turns(talk: Talk) -> None:
    talk.do("/seed 7")
    labels, answers = texts(talk, "/samples 3 hello")
    assert labels == ("1 · seed 7", "2 · seed 8", "3 · seed 9")
    assert answers == ["you said: hello"] * 3
    assert talk.session.turns == []
    talk.do("/seed none")
    assert len(set(texts(talk, "/samples 8 hello")[0])) == 8


def test_without_a_prompt_the_last_one_is_answered_at_its_place(talk: Talk) -> None:
    talk.ask("one")
    talk.ask("two")
    assert texts(talk, "/samples 2")[1] == ["you said: two"] * 2
    talk.do("/pick 1")
    assert [turn.prompt for turn in talk.session.turns] == ["one", "two"]


def test_values_of_settings_are_heads_and_take_effect_in_their_column_alone(talk: Talk) -> None:
    talk.do("/max 6")
    labels, answers = texts(talk, "/compare temperature=0.2,1.4 top-p=0.5 greedy temp")
    assert labels == ("1 · temp 0.2", "2 · temp 1.4", "3 · top-p 0.5", "4 · greedy")
    shown = ("<0.2>", "<1.4>", "<0.8>", "<0>")
    assert all(text.startswith(start) for text, start in zip(answers, shown, strict=True))
    assert talk.session.settings.current.temperature == 0.8


def test_all_columns_have_one_seed(talk: Talk) -> None:
    texts(talk, "/compare temp=0.5,1 hello")
    assert talk.session.comparison is not None
    assert len({turn.finished.seed for turn in talk.session.comparison.turns if turn.finished}) == 1


def test_a_prompt_may_hold_what_looks_like_a_value(talk: Talk) -> None:
    assert texts(talk, "/compare temp=0.5,1 a=b is")[1] == ["you said: a=b is"] * 2
    assert texts(talk, '/compare temp=0.5,1 "greedy is"')[1] == ["you said: greedy is"] * 2


def test_spaces_may_stand_around_the_commas_between_values(talk: Talk) -> None:
    labels, answers = texts(talk, "/compare temp=0.2,0.5, 0.8 , 1.1 hi")
    assert labels == ("1 · temp 0.2", "2 · temp 0.5", "3 · temp 0.8", "4 · temp 1.1")
    assert answers == ["you said: hi"] * 4
    labels, answers = texts(talk, "/compare temp=0.2, top-p=0.5, greedy hi")
    assert labels == ("1 · temp 0.2", "2 · top-p 0.5", "3 · greedy")
    assert answers == ["you said: hi"] * 3
    assert texts(talk, "/compare model=parrot, other hi")[0] == ("1 · parrot", "2 · other")


@pytest.mark.parametrize("values", ["0.2,greedy", "0.2, greedy", "0.2 greedy", "greedy,0.2"])
def test_greedy_may_be_one_of_the_values(talk: Talk, values: str) -> None:
    labels, answers = texts(talk, f"/compare temp={values} hi")
    assert labels == ("1 · temp 0.2", "2 · greedy")
    assert answers == ["you said: hi"] * 2


def test_models_answer_in_columns_and_the_chosen_one_goes_on(talk: Talk) -> None:
    labels, answers = texts(talk, "/compare model=parrot,other hello")
    assert (labels, answers) == (("1 · parrot", "2 · other"), ["you said: hello"] * 2)
    assert talk.session.model.name == "parrot"
    assert talk.do("/pick 2") == Message(
        ("the conversation goes on from answer 2: other",), ("other answers from now on",)
    )
    assert talk.session.model.name == "other"
    assert [turn.answer for turn in talk.session.turns] == ["you said: hello"]


def test_pick_makes_an_answer_the_turn_to_go_on_from(talk: Talk) -> None:
    texts(talk, "/compare temp=0.5,1 hello")
    assert talk.do("/pick 2") == Message(("the conversation goes on from answer 2: temp 1",))
    assert [(turn.prompt, turn.answer) for turn in talk.session.turns] == [("hello", "you said: hello")]
    talk.do("/clear")
    with pytest.raises(UsageError, match="another conversation has begun since"):
        talk.do("/pick 1")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/samples", "/samples needs a number of answers from 2 to 8"),
        ("/samples 9 hello", "/samples needs a number of answers from 2 to 8, not '9'"),
        ("/samples hello", "/samples needs a number of answers from 2 to 8, not 'hello'"),
        ("/samples 4", "there is no prompt yet"),
        ("/compare", "/compare needs what to compare"),
        ("/compare hello", "/compare needs what to compare"),
        ("/compare temp=1 hello", "/compare takes 2 to 8 values, not 1"),
        ("/compare tmp=1,2 hello", "there is no setting 'tmp'"),
        ("/compare temp=1,hot hello", "temperature takes a number from 0 to 100, not 'hot'"),
        ("/compare temp=1,2, hello", "temperature takes a number from 0 to 100, not 'hello'"),
        ("/compare max-tokens=1,2 hello", "max-tokens does not say how tokens are chosen"),
        ("/compare model=parrot hello", "/compare takes 2 to 3 different models, not 'parrot'"),
        ("/compare model=parrot,parrot hello", "/compare takes 2 to 3 different models, not 'parrot,parrot'"),
        ("/compare model=parrot,other temp=1,2 hello", "models and settings are compared one after the other"),
        ("/pick 1", "there are no answers to choose from"),
    ],
)
def test_what_is_wrong_is_said(talk: Talk, line: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        talk.do(line)
    assert caught.value.problem == problem


def test_greedy_answers_would_be_the_same(talk: Talk) -> None:
    talk.do("/greedy")
    for line in ("/samples 2 hello", "/compare top-p=0.5,0.9 hello"):
        with pytest.raises(UsageError, match="at temperature 0 all answers are the same"):
            talk.do(line)


def test_a_model_that_is_not_there_changes_nothing(talk: Talk) -> None:
    with pytest.raises(ModelError):
        talk.do("/compare model=parrot,nobody hello")
    assert talk.session.model.name == "parrot"
    assert talk.session.comparison is None


def test_what_can_be_compared_is_completed(talk: Talk) -> None:
    assert list(talk.completions("compare", ""))[:2] == ["temperature=", "top-k="]
    assert list(talk.completions("compare", "model=parrot,"))[:2] == [
        "model=parrot,other",
        "model=parrot,smalltalk",
    ]
    assert list(talk.completions("compare", "temperature=0.8,"))[:2] == [
        "temperature=0.8,0",
        "temperature=0.8,0.5",
    ]
    assert talk.completions("compare", "temp=1,2", "tell", "me") == {}


@pytest.mark.parametrize("number", ["", "x", "0", "3"])
def test_pick_needs_a_number_that_is_there(talk: Talk, number: str) -> None:
    texts(talk, "/samples 2 hello")
    with pytest.raises(UsageError):
        talk.do(f"/pick {number}")
