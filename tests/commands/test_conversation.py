"""Commands on the conversation and on models."""

import json
from pathlib import Path

import pytest
from scripted import Talk

from tinychat.commands.results import Answer, EditPrompt, Export, Message, Table
from tinychat.conversation import Conversation
from tinychat.errors import ModelError, TinychatError, UsageError
from tinychat.store.models import list_bundled_models


def test_retry_answers_the_last_prompt_again(talk: Talk) -> None:
    talk.ask("hello")
    first = talk.session.turns[0].finished
    assert talk.said("/retry") == "you said: hello"
    (turn,) = talk.session.turns
    assert first is not None
    assert turn.finished is not None
    assert turn.finished.seed != first.seed


def test_continue_goes_on_in_the_same_turn_from_its_last_line(talk: Talk) -> None:
    talk.do("/max 3")
    said = talk.ask("count")
    result = talk.do("/continue")
    assert isinstance(result, Answer)
    assert result.before == said
    talk.said("/continue")
    (turn,) = talk.session.turns
    assert turn.answer.startswith(said)
    assert len(turn.answer) > len(said)


def test_undo_takes_back_one_turn_after_the_other(talk: Talk) -> None:
    talk.ask("one")
    talk.ask("two")
    assert talk.do("/undo") == Message(("taken back: 'two'",), ("1 turn is left · /goto 2 returns to it",))
    assert talk.do("/undo") == Message(("taken back: 'one'",), ("0 turns are left · /goto 1 returns to it",))


def test_edit_puts_the_prompt_back_on_the_line(talk: Talk) -> None:
    talk.ask("helo")
    assert talk.do("/edit") == EditPrompt("helo")
    assert talk.session.turns == []


def test_clear_begins_anew(talk: Talk) -> None:
    talk.ask("hello")
    talk.do("/clear")
    assert talk.session.turns == []


@pytest.mark.parametrize(
    "line", ["/retry", "/continue", "/undo", "/edit", "/save x.json", "/export x.md", "/why", "/color", "/tokens"]
)
def test_without_an_answer_there_is_nothing_to_act_on(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError):
        talk.do(line)


def test_a_conversation_is_saved_and_opened_again(talk: Talk, tmp_path: Path) -> None:
    talk.ask("hello there")
    talk.ask("more")
    assert talk.do("/save talk") == Message(("saved 2 turns in talk.json",))
    assert json.loads((tmp_path / "talk.json").read_text(encoding="utf-8"))["model"] == "parrot"
    talk.do("/clear")
    opened = talk.do("/open talk")
    assert isinstance(opened, Message)
    assert opened.lines == ("› hello there", "you said: hello there", "› more", "you said: more")
    assert opened.notes == ("2 turns from talk.json",)
    assert [turn.prompt for turn in talk.session.turns] == ["hello there", "more"]
    assert talk.do('/save "talk.json"') == Message(("saved 2 turns in talk.json",))


def test_a_kept_conversation_is_completed_and_opened_by_its_name(talk: Talk, home: Path, tmp_path: Path) -> None:
    folder = home / "transcripts"
    for name, prompt in (("2026-11-20-090000", "older"), ("2026-11-21-090000", "newer")):
        talk.session.conversation = Conversation()
        talk.ask(prompt)
        talk.do(f"/save {folder / name}.json")
    assert list(talk.offered("open", "2026").items()) == [
        ("2026-11-21-090000", "newer"),
        ("2026-11-20-090000", "older"),
    ]
    talk.do("/open 2026-11-20-090000")
    assert [turn.prompt for turn in talk.session.turns] == ["older"]
    (tmp_path / "2026-11-20-090000.json").write_bytes((folder / "2026-11-21-090000.json").read_bytes())
    talk.do("/open 2026-11-20-090000")  # what lies here comes first
    assert [turn.prompt for turn in talk.session.turns] == ["newer"]


def test_what_is_no_transcript_is_not_written_over(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text("a life's work")
    talk.ask("hello")
    with pytest.raises(UsageError, match=r"novel\.txt exists and is no transcript"):
        talk.do("/save novel.txt")
    assert (tmp_path / "novel.txt").read_text() == "a life's work"
    with pytest.raises(TinychatError):
        talk.do("/open novel.txt")
    with pytest.raises(UsageError):
        talk.do("/save")
    assert len(talk.session.turns) == 1


def test_export_names_a_file_that_is_not_there_yet(talk: Talk, tmp_path: Path) -> None:
    talk.ask("hello")
    assert talk.do("/export talk.html") == Export(Path("talk.html"))
    (tmp_path / "talk.html").write_text("mine")
    with pytest.raises(UsageError, match=r"talk\.html exists already"):
        talk.do("/export talk.html")


def test_a_model_is_opened_by_its_name(talk: Talk) -> None:
    talk.ask("hello")
    result = talk.do("/model other")
    assert isinstance(result, Message)
    assert result.lines == ("other (wordpiece, 3.4M, completion) is open: type how a text begins, and it goes on",)
    assert talk.session.turns == []
    assert talk.ask("abc") == "you said: abc"


def test_a_model_that_is_not_there_leaves_the_one_at_hand(talk: Talk) -> None:
    talk.ask("hello")
    with pytest.raises(ModelError, match="there is no model 'nobody'"):
        talk.do("/model nobody")
    assert talk.session.model.name == "parrot"
    assert talk.session.turns


def test_models_marks_the_one_that_is_open(talk: Talk) -> None:
    table = talk.do("/models")
    assert isinstance(table, Table)
    bundled = [("", info.name) for info in list_bundled_models()]
    assert [(row[0], row[1]) for row in table.rows] == [("›", "parrot"), ("", "other"), *bundled]


def test_model_alone_offers_what_is_bundled_and_what_is_open(talk: Talk) -> None:
    table = talk.do("/model")
    assert isinstance(table, Table)
    assert table.rows[0][:3] == ("›", "parrot", "answers in turns")
    assert [row[1] for row in table.rows[1:]] == [info.name for info in list_bundled_models()]
    assert all(row[3] for row in table.rows[1:])  # each says what it is for
    talk.do("/model smalltalk")
    offered = talk.do("/model")
    assert isinstance(offered, Table)
    assert [row[1] for row in offered.rows if row[0] == "›"] == ["smalltalk"]
    assert "parrot" not in [row[1] for row in offered.rows]
