"""A session with a model that repeats what it hears."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripted import Talk, make_model, open_scripted

from tinychat.events import Event, to_json
from tinychat.session.session import Session
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import Recipe


@pytest.fixture
def talk(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tinychat.generate.loading.open_engine", open_scripted)
    make_model(tmp_path / "models")
    make_model(home / "models", "other", mode="completion")
    session = Session()
    session.open_model("parrot")
    return Talk(session)


@pytest.fixture
def make_run(home: Path) -> Callable[..., RunFolder]:
    """Writes a run: its name, its events, and the fields of its recipe that are no defaults."""

    def make(name: str, *events: Event, **fields: object) -> RunFolder:
        run = RunFolder(home / "runs" / name)
        run.path.mkdir(parents=True)
        run.recipe_file.write_text(Recipe().merged(fields).to_toml())
        run.events_file.write_text("".join(to_json(event) + "\n" for event in events))
        return run

    return make


@pytest.fixture
def spelled(letters: Path) -> Session:
    """A session with a small model of characters that has said something."""
    session = Session()
    session.open_model(str(letters))
    session.settings.set("seed", 1)
    session.settings.set("max_tokens", 12)
    list(session.answer("abc"))
    return session
