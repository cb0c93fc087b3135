"""Automatic saving of conversations."""

import os
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from screens import Person, answered

from tinychat.session.conversation import Conversation
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave, read_transcript
from tinychat.store.paths import list_transcripts

NOON = datetime(2026, 11, 21, 12)


@pytest.fixture
def autosave(session: Session) -> Autosave:
    return Autosave(session, lambda: NOON)


def ask(session: Session, autosave: Autosave, prompt: str) -> None:
    list(session.answer(prompt))
    autosave.save()


def prompts(path: Path) -> list[str]:
    return [turn.prompt for turn in read_transcript(path).turns]


def test_nothing_is_written_before_the_first_answer(autosave: Autosave, home: Path) -> None:
    autosave.save()
    assert autosave.path is None
    assert not (home / "transcripts").exists()


def test_each_conversation_is_a_file_that_grows_with_each_answer(session: Session, autosave: Autosave) -> None:
    ask(session, autosave, "one")
    ask(session, autosave, "two")
    (first,) = list_transcripts()
    assert (first.name, prompts(first)) == ("2026-11-21-120000.json", ["one", "two"])
    session.conversation = Conversation()
    autosave.save()
    ask(session, autosave, "three")
    assert {path.name: prompts(path) for path in list_transcripts()} == {
        "2026-11-21-120000.json": ["one", "two"],
        "2026-11-21-120000-2.json": ["three"],
    }


@pytest.mark.skipif(os.name != "posix", reason="files have no modes")
def test_only_the_owner_can_read_a_saved_conversation(session: Session, autosave: Autosave) -> None:
    ask(session, autosave, "one")
    ask(session, autosave, "two")
    assert autosave.path is not None
    assert stat.S_IMODE(autosave.path.stat().st_mode) == 0o600


def test_the_oldest_are_deleted_and_other_files_stay(
    session: Session, autosave: Autosave, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinychat.session.transcript.MAX_SAVED", 2)
    folder = home / "transcripts"
    folder.mkdir(parents=True)
    for name in ("2026-11-19-090000", "2026-11-20-090000", "mine"):
        (folder / f"{name}.json").write_text("{}")
    ask(session, autosave, "one")
    left = ["2026-11-20-090000.json", "2026-11-21-120000.json", "mine.json"]
    assert sorted(path.name for path in folder.iterdir()) == left


def test_a_saved_conversation_can_be_opened(sit_down: Callable[..., Person]) -> None:
    person = sit_down()
    person.type("hello there", "\r")
    person.sees(answered)
    person.type("/quit", "\r")
    assert person.wait_for_exit() == 0
    (path,) = list_transcripts()
    assert f"kept: /open {path.stem}".encode() in person.raw
    person = sit_down()
    person.type(f"/open {path.stem}", "\r")
    person.sees(
        "› hello there", "you said: hello there", lambda lines: any(line.startswith("1 turn from ") for line in lines)
    )


def test_an_unwritable_folder_is_reported_once(sit_down: Callable[..., Person], home: Path) -> None:
    (home / "transcripts").write_text("no folder")
    person = sit_down()
    for prompt in ("one", "two"):
        person.type(prompt, "\r")
        person.sees(f"you said: {prompt}", lambda lines: [line for line in lines if line][-2] == "›")
    person.type("/quit", "\r")
    assert person.wait_for_exit() == 0
    assert person.raw.count(b"cannot be written") == 1
