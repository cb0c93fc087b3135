"""Transcripts of conversations."""

import itertools
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tinychat.commands.conversation import complete_transcripts
from tinychat.config.settings import Settings
from tinychat.errors import TinychatError
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave, read_transcript, write_transcript
from tinychat.store.paths import list_transcripts


def grown() -> Conversation:
    """Return a tree with two first turns; the first of them has two branches, of which the older is current."""
    conversation = Conversation([Turn("a", saved_text="1"), Turn("b", saved_text="2")])
    conversation.back()
    conversation.add(Turn("c", saved_text="3"))
    conversation.current = None
    conversation.add(Turn("d", saved_text="4"))
    conversation.go_to(2)
    return conversation


def shape(conversation: Conversation) -> list[tuple[str, str, str | None]]:
    return [(turn.prompt, turn.answer, turn.parent and turn.parent.prompt) for turn in conversation.all]


def test_a_file_keeps_every_branch_and_the_current_turn(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    write_transcript(path, "parrot", Settings(), grown())
    read = read_transcript(path)
    assert shape(read) == shape(grown()) == [("a", "1", None), ("b", "2", "a"), ("c", "3", "a"), ("d", "4", None)]
    assert read.current is read.all[1]
    values = json.loads(path.read_text())
    assert [turn["prompt"] for turn in values["turns"]] == ["a", "b"]  # for programs that ignore branches


def test_a_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    write_transcript(path, "parrot", Settings(), grown())
    assert shape(read_transcript(path)) == shape(grown())


def test_the_current_turn_may_be_none(tmp_path: Path) -> None:
    path, conversation = tmp_path / "talk.json", grown()
    conversation.current = None
    write_transcript(path, "parrot", Settings(), conversation)
    read = read_transcript(path)
    assert (read.current, len(read.all)) == (None, 4)


def test_an_older_file_has_turns_in_one_branch(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    turns = [{"prompt": "a", "answer": "1"}, {"prompt": "b", "answer": "2"}]
    path.write_text(json.dumps({"format": 1, "turns": turns}))
    assert shape(read_transcript(path)) == [("a", "1", None), ("b", "2", "a")]


@pytest.mark.parametrize(
    "broken",
    [
        {"turns": [{"prompt": "a"}]},
        {"turns": 3},
        {"turns": [], "branches": [{"prompt": "a", "answer": "1"}]},
        {"turns": [], "branches": [{"prompt": "a", "answer": "1", "number": 1, "parent": 1}]},
        {"turns": [], "branches": [{"prompt": "a", "answer": "1", "number": 1, "parent": 2}]},
        {"turns": [], "branches": [{"prompt": "a", "answer": "1", "number": 3, "parent": 2}]},
    ],
)
def test_other_files_are_refused(tmp_path: Path, broken: Any) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(TinychatError, match="is no transcript"):
        read_transcript(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "is no transcript: it is nested more than 64 deep"),
        ('{"turns": [], "turns": []}', "is no transcript: it has the key 'turns' twice"),
        ('{"turns": [{"prompt": 1' + "0" * 5000 + "}]}", "does not fit in 64 bits"),
        ('{"turns": [], "branches": [{"prompt": "a", "answer": "b", "number": 1, "parent": null}, '
         '{"prompt": "c", "answer": "d", "number": 1, "parent": null}]}', "two turns have the same number"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "talk.json"
    path.write_text(text)
    with pytest.raises(TinychatError, match=why):
        read_transcript(path)


def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "talk.json")
    with pytest.raises(TinychatError, match="cannot be read: it is a named pipe, not a file"):
        read_transcript(tmp_path / "talk.json")


# --- logs: conversations that are saved automatically ---


NOON = datetime(2026, 11, 21, 12)


def saved(conversation: Conversation) -> Conversation:
    """Return a conversation as it is read after one save."""
    session = Session()
    session.conversation = conversation
    autosave = Autosave(session, lambda: NOON)
    autosave.save()
    assert autosave.path is not None
    return read_transcript(autosave.path)


def test_a_log_keeps_every_branch_and_the_current_turn(home: Path) -> None:
    read = saved(grown())
    assert shape(read) == shape(grown())
    assert read.current is read.all[1]


def test_each_save_appends_what_is_new(home: Path) -> None:
    session = Session()
    autosave, conversation = Autosave(session, lambda: NOON), session.conversation
    sizes = [0]
    for prompt in "abcdefgh":
        conversation.add(Turn(prompt, saved_text=prompt.upper()))
        autosave.save()
        assert autosave.path is not None
        sizes.append(autosave.path.stat().st_size)
    assert max(later - earlier for earlier, later in itertools.pairwise(sizes)) < 2 * sizes[1]
    conversation.go_to(3).saved_text = "C and on"
    autosave.save()
    assert autosave.path is not None
    read = read_transcript(autosave.path)
    assert [(turn.prompt, turn.answer) for turn in read.turns] == [("a", "A"), ("b", "B"), ("c", "C and on")]
    assert len(read.all) == 8
    assert [one.about for one in complete_transcripts(session, ["2026"])][:1] == ["a"]
    (path,) = list_transcripts()
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "i", "ans')  # killed at this moment
    assert len(read_transcript(path).all) == 8


def test_turns_that_could_not_be_written_are_written_by_the_next_save(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    autosave, conversation = Autosave(session, lambda: NOON), session.conversation
    conversation.add(Turn("a", saved_text="A"))
    autosave.save()
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: 0)
        conversation.add(Turn("b", saved_text="B"))
        with pytest.raises(TinychatError, match="the disk is full"):
            autosave.save()
    conversation.add(Turn("c", saved_text="C"))
    autosave.save()
    assert autosave.path is not None
    assert shape(read_transcript(autosave.path)) == shape(conversation)


def test_conversations_that_begin_at_the_same_moment_get_a_file_each(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Session(), Session()
    for session, prompt in ((first, "a"), (second, "b")):
        session.conversation.add(Turn(prompt, saved_text=prompt.upper()))
    open_file = os.open

    def open_later(path: Path, flags: int, mode: int = 0o777) -> int:
        monkeypatch.setattr(os, "open", open_file)
        Autosave(second, lambda: NOON).save()
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", open_later)
    Autosave(first, lambda: NOON).save()
    assert sorted(turn.prompt for path in list_transcripts() for turn in read_transcript(path).turns) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["", "[]\n", '{"number": 1}\n', '{"prompt": "a", "answer": "b", "number": 1, "parent": 1}\n']
)
def test_other_lines_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(text)
    with pytest.raises(TinychatError, match="is no transcript"):
        read_transcript(path)
