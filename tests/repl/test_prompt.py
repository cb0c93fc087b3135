"""The prompt: marks, keys, history; and the REPL in plain lines."""

import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput
from prompt_toolkit.output import DummyOutput
from screens import Person, Screen, answered
from scripted import make_model

from tinychat.commands.results import MARKS, PLAIN_MARKS
from tinychat.repl.prompt import Prompt, QuietHistory, mark
from tinychat.repl.toolbar import toolbar
from tinychat.session.lesson import Block, Lesson, LessonLine, LessonPlayer, Question, Step
from tinychat.session.session import Session
from tinychat.store.models import MODES

SitDown = Callable[..., Person]
CTRL_C, CTRL_D, ENTER, BACKSPACE = "\x03", "\x04", "\r", "\x7f"


def test_each_mode_has_its_own_mark() -> None:
    assert set(MARKS) == set(PLAIN_MARKS) == set(MODES)
    assert len(set(MARKS.values())) == len(set(PLAIN_MARKS.values())) == len(MODES)
    assert all(text.isascii() for text in PLAIN_MARKS.values())


def test_without_a_model_the_mark_is_that_of_a_chat() -> None:
    assert (mark(Session()), mark(Session(), plain=True)) == ("› ", "> ")


@pytest.mark.slow
@pytest.mark.parametrize(("facts", "there", "back"), [({}, "¶", "›"), ({"TERM": "dumb"}, "text>", ">")])
def test_the_mark_changes_with_the_model(
    sit_down: SitDown, home: Path, facts: dict[str, str], there: str, back: str
) -> None:
    make_model(home / "models", "other", mode="completion")
    person = sit_down(**facts)
    person.type("/model other", ENTER)
    person.sees(there)
    person.type("/model parrot", ENTER)
    person.sees(back)


@pytest.fixture
def ask(session: Session, tmp_path: Path, input: PipeInput) -> Callable[..., str]:
    prompt = Prompt(session, Screen().terminal(), tmp_path / "new" / "history", input=input, output=DummyOutput())

    def ask(keys: str, text: str = "") -> str:
        input.send_text(keys)
        return prompt.ask(text)

    return ask


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\r", "hello"),
        ("  unstripped \r", "  unstripped "),
        ("one\ntwo\r", "one\ntwo"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        ("\x1b[200~one\rtwo\x1b[201~\r", "one\ntwo"),
        ('"""one\rtwo"""\r', "one\ntwo"),
        ('"""\rone\r\r"""\r', "one\n"),
        ('"""/help"""\r', "///help"),
        ('"""/x"""\r', "//x"),
        ('"""help"""\r', "//help"),
        ("nonsense\x03sense\r", "sense"),
        ("\x1b/temperature 1\r", "/temperature 1"),
        ("\x1b15\r", "15"),
        ("\x1b#\x1b-\x1b*\x1b\\\x1b_\x1bae\r", "#-*\\_ae"),
        ("\x1bbut\x1b.\r", "but"),
        ("one two\x1bb/\x1b/\r", "one //two"),
    ],
)
def test_keys_edit_the_prompt(ask: Callable[..., str], keys: str, text: str) -> None:
    assert ask(keys) == text


def test_the_initial_text_can_be_edited(ask: Callable[..., str]) -> None:
    assert ask("\x7f!\r", "hello") == "hell!"


def test_ctrl_d_and_ctrl_c_on_an_empty_line_raise(ask: Callable[..., str]) -> None:
    with pytest.raises(EOFError):
        ask("\x04")
    with pytest.raises(KeyboardInterrupt):
        ask("\x03")


def test_f2_toggles_greedy_decoding(ask: Callable[..., str], session: Session) -> None:
    assert ask("a\x1bOQb\r") == "ab"
    assert session.settings.current.greedy


def test_the_history_file_is_created_when_needed(ask: Callable[..., str], tmp_path: Path) -> None:
    assert not (tmp_path / "new").exists()
    ask("one\ntwo\r")
    assert list(QuietHistory(tmp_path / "new" / "history").load_history_strings()) == ["one\ntwo"]


def test_the_history_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "history"
    QuietHistory(path).append_string("one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_private_session_adds_nothing_to_the_history(tmp_path: Path) -> None:
    QuietHistory(tmp_path / "history").append_string("one")
    history = QuietHistory(tmp_path / "history", private=True)
    history.append_string("two")
    assert list(history.load_history_strings()) == ["one"]


def test_an_unwritable_history_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = QuietHistory(tmp_path / "file" / "history")
    history.append_string("one")
    assert history.get_strings() == ["one"]
    assert list(QuietHistory(tmp_path).load_history_strings()) == []


# --- plain lines, for screen readers, slow lines and dumb terminals ---


@pytest.mark.parametrize(
    "facts", [{"TINYCHAT_PLAIN": "1"}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.slow)], ids=["plain", "dumb"]
)
@pytest.mark.slow
def test_only_plain_text_is_written(sit_down: SitDown, facts: dict[str, str]) -> None:
    person = sit_down(**facts)
    person.type("helo", BACKSPACE, "lo", ENTER)
    person.sees("> hello", "you said: hello", lambda lines: any("stop: end of turn" in line for line in lines))
    person.type("/temp 2", ENTER)
    person.sees("temperature 0.8 → 2")
    person.type('"""one', ENTER, 'two"""', ENTER)
    person.sees("you said: one", "two")
    person.type("/samples 2 count", ENTER)
    person.sees(lambda lines: any("/pick N goes on from one" in line for line in lines))
    ends = {
        "/help": "/help COMMAND says more", "/settings": "theme: dark", "/models": "/model NAME opens",
        "/why": "before sampling, then after temp 2",
        "/color": "perplexity", "/tokens one": "characters",
    }  # fmt: skip
    for command, end in ends.items():
        person.type(command, ENTER)
        person.sees(lambda lines, end=end: any(end in line for line in lines), lambda lines: ">" in lines[-3:])
    person.type(CTRL_C)
    person.sees("Ctrl-D or /quit leaves")
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0
    assert b"\x1b" not in person.raw
    assert re.search("[─━│┃▇▁]", person.raw.decode()) is None


@pytest.mark.slow
def test_completion_and_history_search(sit_down: SitDown) -> None:
    first = sit_down(TINYCHAT_PLAIN="1")
    first.type("remember me", ENTER)
    first.sees("you said: remember me", answered)
    first.type(CTRL_D)
    first.wait_for_exit()
    second = sit_down(TINYCHAT_PLAIN="1")
    second.type("\x12memb")
    # all four letters, as Ctrl-C discards what readline has not read yet, and is not seen while it reads
    second.sees("(reverse-i-search)`memb': remember me")
    second.type(CTRL_C)
    second.sees("Ctrl-D or /quit leaves")
    second.type("/tempe\t ", "\t\t")
    second.sees(lambda lines: any(line.startswith("0.8: now") for line in lines), "> /temperature")


@pytest.mark.slow
def test_keys_still_act_during_an_answer_and_typed_lines_are_kept(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1", TINYCHAT_TEST_DELAY="0.03")
    person.type("temp", ENTER)
    person.sees(lambda lines: any("<0.8>" in line for line in lines))
    person.type("up", "another one", ENTER, "half")
    person.sees(lambda lines: re.search("⟨temp 0.9⟩.*<0.9>", "".join(lines)) is not None)  # the note may split a <0.8>
    person.type(CTRL_C)
    person.sees("> another one", "you said: another one", "> half")


@pytest.mark.slow
def test_a_pasted_line_longer_than_the_screen_is_complete(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1")
    person.type("hello " * 30 + "there", ENTER)
    person.sees(lambda lines: any(line.endswith("there") and "hello" in line for line in lines))


def test_enter_alone_sends_the_line_of_a_lesson_and_tab_types_it(session: Session, ask: Callable[..., str]) -> None:
    lesson = Lesson("own", "Own", "", (Step("", (LessonLine("/tokens hello", 1), Block("paragraph", "Look."))),))
    session.lesson = LessonPlayer(lesson, 0, {}, None)
    assert ask("\r") == "/tokens hello"
    assert ask("\t there\r") == "/tokens hello there"
    assert ask("my own\r") == "my own"
    session.lesson.item = 2
    assert ask("\r") == ""
    assert toolbar(session).startswith("Own, step 1 of 1 │ parrot · ")


def test_the_mark_says_that_a_lesson_waits_for_an_answer(session: Session) -> None:
    lesson = Lesson("own", "Own", "", (Step("", (Question("Why?", (Block("paragraph", "So."),)),)),))
    session.lesson = LessonPlayer(lesson, 0, {}, None)
    assert (mark(session), mark(session, plain=True)) == ("? ", "answer> ")
