"""A session with a model that repeats what it hears."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripted import Talk, make_model, open_scripted

from tinychat.session import Session


@pytest.fixture
def talk(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tinychat.generate.opening.open_engine", open_scripted)
    make_model(tmp_path / "models")
    make_model(home / "models", "other", mode="completion")
    session = Session()
    session.open_model("parrot")
    return Talk(session)


@pytest.fixture
def spelled(letters: Path) -> Session:
    """A session with a small model of characters that has said something."""
    session = Session()
    session.open_model(str(letters))
    session.settings.set("seed", 1)
    session.settings.set("max_tokens", 12)
    list(session.answer("abc"))
    return session
