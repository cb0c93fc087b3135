"""What the loop of the REPL says and asks, and conversations that are saved automatically."""

import json
import signal
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from prompt_toolkit.application.current import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from screens import Person, Screen, answered

from tinychat.commands.results import Message, Question
from tinychat.repl.app import confirms, greet, run_in_shell
from tinychat.repl.keys import Keyboard
from tinychat.session.conversation import Conversation
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave, read_transcript
from tinychat.store.paths import list_transcripts


def test_the_greeting_wraps_at_words(session: Session, home: Path) -> None:
    for columns in range(26, 60):
        screen = Screen(columns)
        greet(screen.terminal(), session, first=False)
        rows = [row.rstrip() for row in screen.lines]
        assert " ".join(rows) == "tinychat 0.1 · parrot (wordpiece, 3.4M, chat) · cpu · /help"


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="there are no real-time signals")
def test_a_command_of_the_shell_may_end_by_a_signal_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    screen = Screen()
    for number in (signal.SIGTERM, signal.SIGRTMIN + 2):
        with create_pipe_input() as input:
            run_in_shell(f"kill -{number:d} $$", screen.terminal(), Keyboard(input))
    assert [line for line in screen.lines if line] == ["ended by SIGTERM", f"ended by signal {signal.SIGRTMIN + 2}"]


@pytest.mark.parametrize(
    ("keys", "answer"), [("y\r", True), (" Yes \r", True), ("\r", False), ("n\r", False), ("\x04", False)]
)
def test_a_question_needs_a_yes(keys: str, answer: bool) -> None:
    question = Question("remove it?", Message, "nothing is removed")
    with create_pipe_input() as input, create_app_session(input=input, output=DummyOutput()):
        input.send_text(keys)
        assert confirms(question, Screen().terminal()) == answer


def test_a_question_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda text: "y" if text == "remove it? [y/N] " else "")
    assert confirms(Question("remove it?", Message, ""), Screen().terminal(dumb=True))


# --- automatic saving ---

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
    assert (first.name, prompts(first)) == ("2026-11-21-120000.jsonl", ["one", "two"])
    session.conversation = Conversation()
    autosave.save()
    ask(session, autosave, "three")
    assert {path.name: prompts(path) for path in list_transcripts()} == {
        "2026-11-21-120000.jsonl": ["one", "two"],
        "2026-11-21-120000-2.jsonl": ["three"],
    }


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
        (folder / f"{name}.jsonl").write_text("{}")
    ask(session, autosave, "one")
    left = ["2026-11-20-090000.jsonl", "2026-11-21-120000.jsonl", "mine.jsonl"]
    assert sorted(path.name for path in folder.iterdir()) == left


@pytest.mark.slow
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
        "› hello there", "you said: hello there", lambda lines: any(line.startswith("1 turn from") for line in lines)
    )


@pytest.mark.slow
def test_a_picked_answer_is_saved_at_once(sit_down: Callable[..., Person]) -> None:
    person = sit_down()
    person.type("/samples 2 hello there\r")
    person.sees(lambda lines: any("/pick N goes on from one" in line for line in lines) and "›" in lines)
    for number in ("2", "2", "1"):
        person.type(f"/pick {number}\r")
    person.type("/clear\r")
    person.sees("a new conversation", "›")
    (path,) = list_transcripts()
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [1, 2]
    person.type("/quit\r")
    assert person.wait_for_exit() == 0
    assert f"kept: /open {path.stem}".encode() in person.raw


@pytest.mark.slow
def test_an_unwritable_folder_is_reported_once(sit_down: Callable[..., Person], home: Path) -> None:
    (home / "transcripts").write_text("no folder")
    person = sit_down()
    for prompt in ("one", "two"):
        person.type(prompt, "\r")
        person.sees(f"you said: {prompt}", lambda lines: [line for line in lines if line][-2] == "›")
    person.type("/quit", "\r")
    assert person.wait_for_exit() == 0
    assert person.raw.count(b"nothing is kept from now on") == 1
