"""Commands on the conversation: once more, to and from files, repeated in a shell, and as a tree."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import torch
from scripted import Talk, make_model

from tinychat.cli.options import load_settings
from tinychat.commands import COMMANDS
from tinychat.commands.results import (
    EditPrompt,
    Export,
    Message,
    Question,
    StreamAnswer,
    Table,
    TokenBrowser,
    Tree,
    Turns,
)
from tinychat.errors import TinychatError, UsageError
from tinychat.events import Finished, Notice, Token
from tinychat.generate.engine import Request, SampledToken
from tinychat.model.loading import load_model
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave


def test_retry_answers_the_last_prompt_again(talk: Talk) -> None:
    talk.ask("hello")
    first = talk.session.turns[0].finished
    assert talk.generate("/retry") == "you said: hello"
    (turn,) = talk.session.turns
    assert first is not None
    assert turn.finished is not None
    assert turn.finished.seed != first.seed


def test_continue_goes_on_in_the_same_turn_from_its_last_line(talk: Talk) -> None:
    talk.do("/max 3")
    said = talk.ask("count")
    result = talk.do("/continue")
    assert isinstance(result, StreamAnswer)
    assert result.before == said
    talk.generate("/continue")
    (turn,) = talk.session.turns
    assert turn.answer.startswith(said)
    assert len(turn.answer) > len(said)


def test_where_nothing_follows_continue_says_so_and_leaves_the_turn(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.ask("hello")
    end = min(talk.session.model.prompt_encoder.end_ids)
    monkeypatch.setattr(
        talk.session.model.engine, "extend", lambda requests, *_, **__: [[SampledToken(end, 0.0)] for _ in requests]
    )
    before, repeated = replace(talk.session.turns[0]), talk.do("/repeat")
    talk.do("/temp 0.3")
    result = talk.do("/continue")
    assert isinstance(result, StreamAnswer)
    notice, finished = result.start(lambda: False)
    assert notice == Notice("the answer is finished: /retry gives another one, /branch forces other words")
    assert isinstance(finished, Finished)
    talk.do("/reset temp")
    assert talk.session.turns == [before]
    assert talk.do("/repeat") == repeated
    result = talk.do("/continue")
    assert isinstance(result, StreamAnswer)
    assert [type(record) for record in result.start(lambda: True)] == [Finished]  # stopped before the first token
    assert talk.session.turns == [before]


def test_undo_takes_back_one_turn_after_the_other(talk: Talk) -> None:
    talk.ask("one")
    talk.ask("two")
    assert talk.do("/undo") == Message(("taken back: 'two'",), ("1 turn is left · /goto 2 returns to it",))
    assert talk.do("/undo") == Message(("taken back: 'one'",), ("0 turns are left · /goto 1 returns to it",))


def test_undo_takes_back_several_turns(talk: Talk) -> None:
    for line in ("one", "two", "three"):
        talk.ask(line)
    for number in ("0", "4", "x", "1.5"):
        problem = f"/undo takes a number of turns, from 1 to 3, not '{number}'"
        with pytest.raises(UsageError, match=re.escape(problem)):
            talk.do(f"/undo {number}")
    told = ("taken back: 'three'", "taken back: 'two'")
    assert talk.do("/undo 2") == Message(told, ("1 turn is left · /goto 3 returns to them",))
    assert [turn.prompt for turn in talk.session.turns] == ["one"]


def test_edit_puts_the_prompt_back_on_the_line(talk: Talk) -> None:
    talk.ask("helo")
    assert talk.do("/edit") == EditPrompt("helo")
    assert talk.session.turns == []
    talk.ask("!ls")
    assert talk.do("/edit") == EditPrompt("//!ls")  # still a prompt


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


def test_share_writes_the_open_model_as_a_page(talk: Talk, chatter: Path, tmp_path: Path) -> None:
    talk.session.open_model(str(chatter))
    written = talk.do("/share")
    assert isinstance(written, Message)
    assert re.fullmatch(r"chatter\.html: \d+\.\d [kM]B; whoever opens it talks to chatter", written.lines[0])
    assert (tmp_path / "chatter.html").read_text("utf-8").startswith("<!doctype html>")
    (tmp_path / "chatter.html").write_text("mine")
    question = talk.do("/share chatter.html")
    assert isinstance(question, Question)
    assert (tmp_path / "chatter.html").read_text() == "mine"
    question.act()
    assert (tmp_path / "chatter.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="is no file"):
        talk.do("/share .")
    with pytest.raises(UsageError, match=r"x\.pdf: \.pdf cannot be written"):
        talk.do("/share x.pdf")
    talk.do("/share page")
    assert (tmp_path / "page.html").is_file()


def test_share_writes_the_conversation_where_that_is_wanted(talk: Talk, chatter: Path, tmp_path: Path) -> None:
    talk.session.open_model(str(chatter))
    with pytest.raises(UsageError, match="nothing has been said yet"):
        talk.do("/share --chat")
    with pytest.raises(UsageError, match="/share has no --cat"):
        talk.do("/share --cat x.html")
    talk.ask("hello there")
    note = "`/share --chat` lets it begin with this conversation"
    assert getattr(talk.do("/share without it.html"), "notes", ()) == (note,)
    for line in ("/share --chat with it.html", "/share with it too.html --chat"):
        written = talk.do(line)
        assert isinstance(written, Message)
        assert written.lines[0].endswith("talks to chatter; it begins with this conversation of 1 turn")
    pages = [(tmp_path / f"{name}.html").read_text("utf-8") for name in ("without it", "with it", "with it too")]
    assert pages[0] != pages[1] == pages[2]


def test_a_conversation_is_saved_and_opened_again(talk: Talk, tmp_path: Path) -> None:
    talk.ask("hello there")
    talk.ask("more")
    assert talk.do("/save talk") == Message(("saved 2 turns in talk.json",))
    assert json.loads((tmp_path / "talk.json").read_text(encoding="utf-8"))["model"] == "parrot"
    talk.do("/clear")
    opened = talk.do("/open talk")
    turns = (("hello there", "you said: hello there"), ("more", "you said: more"))
    assert opened == Turns("chat", turns, ("2 turns from talk.json",))
    assert [turn.prompt for turn in talk.session.turns] == ["hello there", "more"]
    assert talk.do('/save "talk.json"') == Message(("saved 2 turns in talk.json",))


@pytest.mark.parametrize("name", [".", "..", "/", "~", "folder"])
def test_a_conversation_is_not_saved_as_a_folder(talk: Talk, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    talk.ask("hello there")
    with pytest.raises(UsageError, match="is a folder"):
        talk.do(f"/save {name}")


def test_a_conversation_of_another_model_is_told(talk: Talk, home: Path) -> None:
    talk.ask("hello there")
    talk.do("/save talk")
    talk.session.open_model("other")
    opened = talk.do("/open talk")
    assert isinstance(opened, Turns)
    goes_on = "`/model parrot`, then /open again, goes on with it"
    assert opened.notes == ("1 turn from talk.json", f"parrot answered last, and other is open: {goes_on}")


@pytest.mark.parametrize("line", ["/why", "/color", "/lens", "/attention", "/steps", "/branch 1 a"])
def test_the_tokens_of_an_opened_conversation_are_gone(spelled: Session, tmp_path: Path, line: str) -> None:
    COMMANDS.dispatch(spelled, f"/save {tmp_path}/talk")
    COMMANDS.dispatch(spelled, f"/open {tmp_path}/talk")
    with pytest.raises(UsageError, match="the tokens of an opened conversation are not kept"):
        COMMANDS.dispatch(spelled, line)
    list(spelled.retry())
    COMMANDS.dispatch(spelled, "/color")


@pytest.mark.parametrize("line", ["/undo", "/retry", "/continue", "/edit", "/save x", "/why", "/branch 1 a"])
def test_before_the_first_turn_there_are_others(talk: Talk, line: str) -> None:
    talk.ask("hello")
    talk.do("/goto 0")
    with pytest.raises(UsageError) as caught:
        talk.do(line)
    told = ("this is before the first turn", "/tree shows the turns, /goto N returns to one")
    assert (caught.value.problem, caught.value.remedy) == told


def test_a_kept_conversation_is_completed_and_opened_by_its_name(talk: Talk) -> None:
    for name, prompt in (("2026-11-20-090000", "older"), ("2026-11-21-090000", "newer")):
        talk.session.conversation = Conversation()
        talk.ask(prompt)
        Autosave(talk.session, lambda name=name: datetime.strptime(name, "%Y-%m-%d-%H%M%S")).save()  # type: ignore[misc]
    assert list(talk.completions("open", "2026").items()) == [
        ("2026-11-21-090000", "newer"),
        ("2026-11-20-090000", "older"),
    ]
    talk.do("/open 2026-11-20-090000")
    assert [turn.prompt for turn in talk.session.turns] == ["older"]
    listed = talk.do("/open")
    assert isinstance(listed, Table)
    assert listed.rows == (("1", "2026-11-21-090000", "newer"), ("2", "2026-11-20-090000", "older"))
    talk.do("/open 1")
    assert [turn.prompt for turn in talk.session.turns] == ["newer"]
    for number in ("0", "3"):
        with pytest.raises(UsageError, match=f"there is no conversation {number}"):
            talk.do(f"/open {number}")
    talk.session.conversation = Conversation()
    talk.ask("mine")
    talk.do("/save 2026-11-20-090000")
    talk.do("/open 2026-11-20-090000")  # what lies here comes first
    assert [turn.prompt for turn in talk.session.turns] == ["mine"]


def test_a_file_of_another_conversation_is_replaced_after_a_question(talk: Talk, tmp_path: Path) -> None:
    talk.ask("a long talk")
    talk.do("/save talk.json")
    talk.ask("with more")
    assert talk.do("/save talk.json") == Message(("saved 2 turns in talk.json",))
    before = (tmp_path / "talk.json").read_text("utf-8")
    talk.do("/clear")
    talk.ask("another")
    question = talk.do("/save talk.json")
    assert isinstance(question, Question)
    assert question.text == "talk.json exists: replace it?"
    assert (tmp_path / "talk.json").read_text("utf-8") == before
    assert question.act() == Message(("saved 1 turn in talk.json",))
    assert talk.do(f"/save {tmp_path}/talk.json") == Message((f"saved 1 turn in {tmp_path}/talk.json",))


@pytest.mark.parametrize(
    "text", ['{"turns": 1}', '{"format": 1, "turns": ["left", "right"]}', '{"turns": [{"prompt": "", "answer": ""}]}']
)
def test_json_of_other_programs_is_not_written_over(talk: Talk, tmp_path: Path, text: str) -> None:
    (tmp_path / "drive.json").write_text(text)
    talk.ask("hello")
    with pytest.raises(UsageError, match=r"drive\.json exists and is no transcript"):
        talk.do("/save drive.json")
    assert (tmp_path / "drive.json").read_text() == text


def test_what_is_saved_is_named_json(talk: Talk, tmp_path: Path) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError, match=r"/save writes JSON, and notes\.md would end in \.md") as caught:
        talk.do("/save notes.md")
    assert caught.value.remedy == "`/save notes.json`; /export writes a conversation to read"
    assert not (tmp_path / "notes.md").exists()


def test_what_is_no_transcript_is_not_written_over(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "novel.json").write_text("a life's work")
    talk.ask("hello")
    with pytest.raises(UsageError, match=r"novel\.json exists and is no transcript"):
        talk.do("/save novel.json")
    assert (tmp_path / "novel.json").read_text() == "a life's work"
    with pytest.raises(TinychatError):
        talk.do("/open novel.json")
    with pytest.raises(UsageError):
        talk.do("/save")
    assert len(talk.session.turns) == 1


def test_export_asks_before_it_replaces_a_file(talk: Talk, tmp_path: Path) -> None:
    talk.ask("hello")
    assert talk.do("/export talk.html") == Export(Path("talk.html"))
    (tmp_path / "talk.html").write_text("mine")
    question = talk.do("/export talk.html")
    assert isinstance(question, Question)
    assert question.text == "talk.html exists: replace it?"
    assert question.act() == Export(Path("talk.html"))
    with pytest.raises(UsageError, match="models exists and is no file"):
        talk.do("/export models")


# --- the command that `/repeat` prints, run in a shell ---------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `tinychat` is this one."""
    program = tmp_path / "bin" / "tinychat"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tinychat "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def open_session(model: Path) -> Session:
    session = Session()
    session.open_model(str(model))
    session.settings.set("max_tokens", 12)
    return session


def ask(session: Session, prompt: str) -> str:
    list(session.answer(prompt))
    return session.turns[-1].answer


def repeated(session: Session, line: str = "/repeat") -> str:
    result = COMMANDS.dispatch(session, line)
    assert isinstance(result, Message)
    return result.lines[0]


def run(command: str) -> bytes:
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True).stdout


@pytest.mark.usefixtures("shell")
@pytest.mark.slow
def test_the_command_makes_the_answer_again_to_the_byte(letters: Path) -> None:
    session = open_session(letters)
    for line in ("/temp 1.3", "/top-k 9", "/seed 3", r"/stop q\n", "/stop none", "/seed none"):
        COMMANDS.dispatch(session, line)
    prompt = '-it\'s "a\\nb"\n $HOME  '
    ask(session, "before")
    said = ask(session, prompt)
    for line in ("/reset", "/greedy"):  # what is set now is another matter
        COMMANDS.dispatch(session, line)
    ask(session, "after")
    assert run(repeated(session, "/repeat 2")) == said.encode() + b"\n"


@pytest.mark.slow
@pytest.mark.usefixtures("shell")
def test_an_answer_in_a_chat_comes_with_its_conversation(chatter: Path, tmp_path: Path) -> None:
    session = open_session(chatter)
    ask(session, "hello")
    COMMANDS.dispatch(session, "/temp 1.5")
    ask(session, "how are\nyou, 'dear'?")
    COMMANDS.dispatch(session, "/seed 5")
    said = ask(session, "thanks")
    COMMANDS.dispatch(session, f"/save {tmp_path}/talk.json")
    COMMANDS.dispatch(session, f"/open {tmp_path}/talk.json")
    lines = run(repeated(session)).decode().splitlines()
    assert [json.loads(line)["completion"] for line in lines] == [turn.answer for turn in session.turns]
    assert json.loads(lines[-1])["completion"] == said
    first = run(repeated(session, "/repeat 1"))
    assert first == session.turns[0].answer.encode() + b"\n"


def test_the_command_is_short_and_quoted_for_the_shell(letters: Path) -> None:
    session = open_session(letters)
    for line in ("/seed 7", r"/stop it's\n"):
        COMMANDS.dispatch(session, line)
    ask(session, "hello there")
    call = f"tinychat -m {letters} -p 'hello there' --temperature 0.8 --top-p 0.95 --max-tokens 12"
    assert repeated(session) == call + """ --stop 'it'"'"'s\\n' --seed 7"""


def test_texts_between_commas_are_one_flag(letters: Path) -> None:
    session = open_session(letters)
    session.settings.set("ban", ["a, b", "c\n", "q"])
    ask(session, "hello there")
    words = shlex.split(repeated(session))
    again = load_settings({"ban": (words[words.index("--ban") + 1],)})[0]
    assert again.current.ban == session.settings.current.ban == ("a, b", "c\n", "q")


def test_a_setting_that_is_changed_now_is_named(letters: Path) -> None:
    session = open_session(letters)
    ask(session, "a")
    COMMANDS.dispatch(session, "/top-k 5")
    COMMANDS.dispatch(session, "/stop x")
    assert "--top-k none" in repeated(session)
    assert "--stop none" in repeated(session)


def test_an_answer_that_no_command_makes_is_said_to_be_so(chatter: Path, tmp_path: Path) -> None:
    session = open_session(chatter)
    COMMANDS.dispatch(session, "/seed 1")  # an answer of several tokens: one that ends at once has no time to change
    changing = session.answer("hello")
    next(changing)
    COMMANDS.dispatch(session, "/temp 1.5")
    list(changing)
    ask(session, "more")
    with pytest.raises(UsageError, match="no command makes answer 1 again: its settings changed meanwhile"):
        COMMANDS.dispatch(session, "/repeat 1")
    with pytest.raises(UsageError, match="answer 2 again: it follows answer 1: its settings changed meanwhile"):
        COMMANDS.dispatch(session, "/repeat")
    session.conversation = Conversation()
    ask(session, "hello")
    list(session.continue_answer())
    with pytest.raises(UsageError, match="answer 1 again: it was continued"):
        COMMANDS.dispatch(session, "/repeat")
    list(session.answer("hello", should_stop=lambda: True))
    with pytest.raises(UsageError, match="answer 2 again: it was stopped"):
        COMMANDS.dispatch(session, "/repeat")
    session.conversation = Conversation([Turn("hello", saved_text="of an older transcript")])
    with pytest.raises(UsageError, match="answer 1 again: it is not known how it was made"):
        COMMANDS.dispatch(session, "/repeat")


@pytest.mark.parametrize("number", ["0", "2", "-1", "x"])
def test_a_number_of_no_answer_is_refused(letters: Path, number: str) -> None:
    session = open_session(letters)
    with pytest.raises(UsageError, match="nothing has been said yet"):
        COMMANDS.dispatch(session, f"/repeat {number}")
    ask(session, "a")
    with pytest.raises(UsageError, match="the number of an answer, from 1 to 1, not"):
        COMMANDS.dispatch(session, f"/repeat {number}")


# --- the conversation as a tree: `/branch`, `/tree`, `/goto`, and going on from a token that `/why` shows ------------


def said(session: Session, line: str) -> str:
    """What the model says to a command, the tokens chosen for it included."""
    result = COMMANDS.dispatch(session, line)
    assert isinstance(result, StreamAnswer)
    return result.before + "".join(record.text for record in result.start(lambda: False) if isinstance(record, Token))


def tree(session: Session) -> list[str]:
    outline = COMMANDS.dispatch(session, "/tree")
    assert isinstance(outline, Tree)
    return [f"{'›' if row.is_here else ' '}{row.prefix}{row.text}" for row in outline.rows]


def test_what_follows_one_another_stands_flat_and_what_has_siblings_branches(talk: Talk) -> None:
    for line in ("a", "b", "/retry", "c", "/goto 1", "d"):
        talk.do(line) if line.startswith("/goto") else talk.generate(line) if line.startswith("/") else talk.ask(line)
    assert tree(talk.session) == [
        " 1  a → you said: a",
        " ├─ 2  b → you said: b",
        " ├─ 3  b → you said: b",
        " │  4  c → you said: c",
        "›└─ 5  d → you said: d",
    ]
    assert talk.do("/goto 4") == Turns("chat", (("c", "you said: c"),), ("turn 4, after 2 others",))
    assert [turn.prompt for turn in talk.session.turns] == ["a", "b", "c"]
    assert talk.do("/goto 1") == Turns("chat", (("a", "you said: a"),), ("turn 1, at the beginning",))
    assert talk.do("/goto 0") == Message(("before the first turn",))
    talk.ask("e")
    assert tree(talk.session)[-1] == "›└─ 6  e → you said: e"


@pytest.mark.parametrize("mode", ["completion", "translation"])
def test_turns_have_the_mode_of_the_open_model(talk: Talk, tmp_path: Path, mode: str) -> None:
    make_model(tmp_path / "models", "marked", mode=mode)
    conversation = talk.session.conversation
    conversation.add(Turn("a", saved_text="b"))
    talk.session.open_model("marked")
    talk.session.conversation = conversation
    talk.do("/save talk.json")
    for line in ("/goto 1", "/open talk.json"):
        shown = talk.do(line)
        assert isinstance(shown, Turns)
        assert (shown.mode, shown.turns) == (mode, (("a", "b"),))


def test_a_conversation_is_opened_without_a_model(talk: Talk) -> None:
    talk.session.conversation.add(Turn("a", saved_text="b"))
    talk.do("/save talk.json")
    opened = Talk(Session()).do("/open talk.json")
    assert isinstance(opened, Turns)
    assert (opened.mode, opened.turns) == ("chat", (("a", "b"),))


@pytest.mark.parametrize("line", ["/tree", "/goto 1", "/branch 1 a"])
def test_before_anything_is_said_there_is_no_tree(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError):
        talk.do(line)


@pytest.mark.parametrize("line", ["/goto 2", "/goto x", "/goto", "/branch", "/branch 99 a", "/branch 1", "/branch x y"])
def test_what_is_not_there_is_refused(talk: Talk, line: str) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError):
        talk.do(line)
    assert len(talk.session.conversation.all) == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/goto", "/goto needs the number of a turn"),
        ("/goto x", "/goto needs the number of a turn, not 'x'"),
        ("/branch", "/branch needs the number of a token and a text"),
        ("/branch 1", "/branch needs the number of a token and a text, not '1'"),
    ],
)
def test_what_was_typed_instead_is_named_if_anything_was(talk: Talk, line: str, problem: str) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError) as caught:
        talk.do(line)
    assert caught.value.problem == problem


def test_a_branch_says_the_answer_anew_as_far_as_a_token(spelled: Session) -> None:
    (old,) = spelled.turns
    text = said(spelled, '/branch 4 "xyz"')
    (new,) = spelled.turns
    assert text == new.answer
    assert new.answer.startswith(old.answer[:3] + "xyz")
    assert (len(new.tokens), new.finished and new.finished.reason) == (12, "length")
    assert spelled.conversation.all == [old, new]
    assert new.why_not_reproducible  # no call makes it again


def test_the_tokens_of_a_branch_have_the_odds_that_the_model_gave_them(spelled: Session) -> None:
    said(spelled, "/branch 4 xyz")
    (turn,) = spelled.turns
    model = load_model(spelled.model.info)
    ids = torch.tensor([[*turn.prompt_ids, *(token.id for token in turn.tokens)]])
    with torch.inference_mode():
        logprobs = model(ids)[0].log_softmax(-1)
    begin = len(turn.prompt_ids)
    for index, token in enumerate(turn.tokens):
        assert token.logprob == pytest.approx(logprobs[begin + index - 1, token.id].item(), abs=1e-4)


def test_the_same_token_with_the_same_seed_says_what_was_said(spelled: Session) -> None:
    answer = spelled.turns[0].answer
    assert said(spelled, f"/branch 5 {answer[4]}") == answer


@pytest.mark.parametrize(
    ("typed", "said_then"),
    [
        ("hello", "you hello"), ('"hello"', "youhello"), ('" hello"', "you hello"), ("' hello'", "you hello"),
        (":", "you:"),
    ],
)  # fmt: skip
def test_a_word_gets_the_space_of_the_word_that_it_replaces(talk: Talk, typed: str, said_then: str) -> None:
    talk.ask("hello")
    assert said(talk.session, f"/branch 2 {typed}").startswith(said_then)


def test_a_word_that_replaces_no_word_is_taken_as_it_is(talk: Talk) -> None:
    talk.ask("hello")
    assert [token.text for token in talk.session.turns[0].tokens[:3]] == ["you", " said", ":"]
    assert said(talk.session, "/branch 3 hello").startswith("you saidhello")


def test_a_branch_in_a_chat_is_of_the_last_answer_of_the_path(talk: Talk) -> None:
    talk.ask("one")
    talk.ask("two")
    said(talk.session, "/branch 3 -2")
    assert [turn.prompt for turn in talk.session.turns] == ["one", "two"]
    assert len(talk.session.conversation.all) == 3


def test_characters_that_the_model_does_not_know_cannot_be_said(spelled: Session) -> None:
    with pytest.raises(UsageError, match="letters does not know '★'"):
        COMMANDS.dispatch(spelled, "/branch 2 ★")


def test_another_token_that_why_shows_is_gone_on_from(spelled: Session) -> None:
    (old,) = spelled.turns
    browser = COMMANDS.dispatch(spelled, "/why 3")
    assert isinstance(browser, TokenBrowser)
    bars = browser.bars_at(browser.index).bars
    other = next(index for index, bar in enumerate(bars) if not bar.marked)
    records = list(browser.branch_from(browser.index, other).start(lambda: False))
    (turn,) = spelled.turns
    assert turn.tokens[:2] == old.tokens[:2]
    assert repr(turn.tokens[2].text) == bars[other].label
    assert isinstance(records[-1], Finished)
    list(browser.branch_from(0, 0).start(lambda: False))  # branches off the browsed answer, not the newest
    assert spelled.conversation.all[:2] == [old, turn]


def test_a_token_that_ends_the_answer_ends_the_branch(talk: Talk) -> None:
    talk.ask("hello")
    end = talk.session.model.tokenizer.special("end")
    assert end is not None
    name = talk.session.model.tokenizer.token_text(end)
    result = talk.do(f"/branch 2 {name}")
    assert isinstance(result, StreamAnswer)
    (record,) = result.start(lambda: False)
    assert isinstance(record, Finished)
    assert (record.reason, talk.session.turns[-1].answer) == ("end", "you")


def test_what_the_model_saw_at_a_place_is_told(spelled: Session) -> None:
    (turn,) = spelled.turns
    ids = spelled.model.ids_before(turn, 3)
    assert ids == turn.prompt_ids + [token.id for token in turn.tokens[:3]]
    best = spelled.model.engine.probabilities(Request(0, ids, 3, spelled.settings.current, seed=0))[0]
    assert best.logprob <= 0
