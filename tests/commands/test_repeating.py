"""The command that `/repeat` prints, run in a shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinychat.commands import COMMANDS
from tinychat.commands.results import Message
from tinychat.conversation import Conversation, Turn
from tinychat.errors import UsageError
from tinychat.session import Session


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


def test_a_setting_that_is_changed_now_is_named(letters: Path) -> None:
    session = open_session(letters)
    ask(session, "a")
    COMMANDS.dispatch(session, "/top-k 5")
    COMMANDS.dispatch(session, "/stop x")
    assert "--top-k none" in repeated(session)
    assert "--stop none" in repeated(session)


def test_an_answer_that_no_command_makes_is_said_to_be_so(chatter: Path, tmp_path: Path) -> None:
    session = open_session(chatter)
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
    session.conversation = Conversation([Turn("hello", given="of an older transcript")])
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
