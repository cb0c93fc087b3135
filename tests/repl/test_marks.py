"""The mark before what is typed: which says what becomes of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from screens import Person
from scripted import make_model

from tinychat.repl.marks import MARKS, PLAIN_MARKS, mark
from tinychat.session import Session
from tinychat.store.models import MODES

ENTER = "\r"


def test_each_mode_has_its_own() -> None:
    assert set(MARKS) == set(PLAIN_MARKS) == set(MODES)
    assert len(set(MARKS.values())) == len(set(PLAIN_MARKS.values())) == len(MODES)
    assert all(text.isascii() for text in PLAIN_MARKS.values())


def test_without_a_model_it_is_that_of_a_chat() -> None:
    assert (mark(Session()), mark(Session(), plain=True)) == ("› ", "> ")


@pytest.mark.parametrize(("facts", "there", "back"), [({}, "¶", "›"), ({"TERM": "dumb"}, "text>", ">")])
def test_it_changes_with_the_model(
    sit_down: Callable[..., Person], home: Path, facts: dict[str, str], there: str, back: str
) -> None:
    make_model(home / "models", "other", mode="completion")
    person = sit_down(**facts)
    person.type("/model other", ENTER)
    person.sees(there)
    person.type("/model parrot", ENTER)
    person.sees(back)
