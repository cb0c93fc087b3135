"""A scripted model, a session with it, and simulated people who use the REPL at pseudo-terminals."""

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
from tinychat.store.runs import RunFolder


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
    """Input to send keys to without a terminal."""
    with create_pipe_input() as pipe:
        yield pipe
        clear_typeahead(pipe)


@pytest.fixture
def sit_down(model: Path, home: Path) -> Iterator[Callable[..., Person]]:
    """Function that starts the REPL at a new pseudo-terminal and waits for the prompt."""
    people: list[Person] = []

    def sit(**options: object) -> Person:
        person = Person(model, home, **options)  # type: ignore[arg-type]
        people.append(person)
        person.sees(">" if options.get("TERM") == "dumb" or "TINYCHAT_PLAIN" in options else "›")
        return person

    yield sit
    for person in people:
        person.kill()
    for run in map(RunFolder, (home / "runs").glob("*")):
        if run.is_running():
            run.send("stop")  # left in the background, it would take a core from the tests that follow
