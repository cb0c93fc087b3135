"""A model that repeats what it hears, a session on it, and people who talk to it at terminals."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.input.typeahead import clear_typeahead

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

from screens import Person
from scripted import make_model, open_scripted

from tinychat.session.session import Session


@pytest.fixture
def model(home: Path) -> Path:
    return make_model(home / "models")


@pytest.fixture
def session(model: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr("tinychat.generate.loading.open_engine", open_scripted)
    session = Session()
    session.open_model(str(model))
    return session


@pytest.fixture
def input() -> Iterator[PipeInput]:
    """Keys to press without a terminal."""
    with create_pipe_input() as pipe:
        yield pipe
        clear_typeahead(pipe)


@pytest.fixture
def sit_down(model: Path, home: Path) -> Iterator[Callable[..., Person]]:
    """Somebody sits down at a terminal of their own, and sees the prompt."""
    people: list[Person] = []

    def sit(**facts: object) -> Person:
        person = Person(model, home, **facts)  # type: ignore[arg-type]
        people.append(person)
        person.sees(">" if facts.get("TERM") == "dumb" or "TINYCHAT_PLAIN" in facts else "›")
        return person

    yield sit
    for person in people:
        person.is_gone()
