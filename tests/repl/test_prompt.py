"""The prompt: its marks, keys, completion, history and toolbar; and the line editor."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput
from screens import Person, Screen
from scripted import make_model

from tinychat.errors import UsageError
from tinychat.events import Ended, Failed, Stepped
from tinychat.repl.keys import LineEditor, find_editor, is_open_block, strip_block, wants_vi
from tinychat.repl.prompt import (
    MARKS,
    PLAIN_MARKS,
    CommandCompleter,
    Prompt,
    QuietHistory,
    describe_run,
    mark,
    report_ended,
    toolbar,
)
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.store.models import MODES
from tinychat.store.runs import RunFolder

ENTER = "\r"


def test_each_mode_has_its_own_mark() -> None:
    assert set(MARKS) == set(PLAIN_MARKS) == set(MODES)
    assert len(set(MARKS.values())) == len(set(PLAIN_MARKS.values())) == len(MODES)
    assert all(text.isascii() for text in PLAIN_MARKS.values())


def test_without_a_model_the_mark_is_that_of_a_chat() -> None:
    assert (mark(Session()), mark(Session(), plain=True)) == ("› ", "> ")


@pytest.mark.parametrize(("facts", "there", "back"), [({}, "¶", "›"), ({"TERM": "dumb"}, "text>", ">")])
def test_the_mark_changes_with_the_model(
    sit_down: Callable[..., Person], home: Path, facts: dict[str, str], there: str, back: str
) -> None:
    make_model(home / "models", "other", mode="completion")
    person = sit_down(**facts)
    person.type("/model other", ENTER)
    person.sees(there)
    person.type("/model parrot", ENTER)
    person.sees(back)


def test_the_progress_and_the_end_of_a_run(session: Session, tmp_path: Path) -> None:
    run, screen = BackgroundRun(RunFolder(tmp_path / "novel")), Screen()
    assert describe_run(run) == "novel is starting"
    run.stepped = Stepped(1480, 0.37, 1.71, 0.01, 0.5, 48_000.0, 60.0, 62.0, 4000)
    assert describe_run(run) == "novel trains: step 1,480/4,000 · loss 1.71 · 1:02 left"
    for last in (
        Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "elsewhere"),
        Ended("stopped", 1500, 1.7, 5.5, 2.5, 60.0, str(session.model.info.folder)),
        Failed("there is no memory", "take less"),
    ):
        run.last = last
        report_ended([run], session, screen.terminal())
    assert screen.lines == [
        "novel is done: step 4,000, loss 1.700 · /model novel talks to it",
        "novel is stopped: step 1,500, loss 1.700 · it answers now",
        "novel: there is no memory",
        "take less",
    ]


def press(*keys: Keys | str, previous: str = "") -> LineEditor:
    editor = LineEditor(previous)
    for key in keys:
        for one in [key] if isinstance(key, Keys) else key:
            editor.press(KeyPress(one))
    return editor


@pytest.mark.parametrize(
    ("keys", "text", "view"),
    [
        (["king"], "king", "king▏"),
        (["king", Keys.Left, Keys.Left, "x", Keys.Backspace], "king", "ki▏ng"),
        (["king", Keys.Home, Keys.Left, Keys.Delete, Keys.End, "s", Keys.Right], "ings", "ings▏"),
        (["the king", Keys.ControlW], "the ", "the ▏"),
        (["the king", Keys.ControlA, "O ", Keys.ControlK], "O ", "O ▏"),
        (["the king", Keys.ControlU, Keys.ControlW, Keys.Backspace], "", "▏"),
        (["ROMEO:", Keys.ControlJ, Keys.F1], "ROMEO:\n", "ROMEO:↵▏"),
    ],
)
def test_keys_type_delete_and_move(keys: list[Keys | str], text: str, view: str) -> None:
    editor = press(*keys)
    assert editor.text == text
    assert editor.view(40) == view


def test_up_recalls_the_previous_text() -> None:
    assert press("x", Keys.Up, "!", previous="ROMEO:").text == "ROMEO:!"


def test_a_pasted_text_keeps_its_lines() -> None:
    editor = LineEditor()
    editor.press(KeyPress(Keys.BracketedPaste, "one\r\ntwo\rq\x1b[31m"))
    assert editor.text == "one\ntwo\nq\x1b[31m"
    assert "\x1b" not in editor.view(40)


def test_a_long_line_scrolls_to_its_cursor() -> None:
    editor = press("abcdefghij", *[Keys.Left] * 3)
    assert editor.view(6) == "defg▏h"
    assert press("王" * 10).view(9) == "王" * 4 + "▏"
    assert press(*["abcdefghij", Keys.Home]).view(4) == "▏abc"


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
        ('"""/help"""\r', "//help"),
        ("nonsense\x03sense\r", "sense"),
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


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("/tem", ["/temperature"]),
        ("/temperature ", ["0.8", "0"]),
        ("/set top-p ", ["0.95", "0.5"]),
        ("/model p", ["parrot"]),
        ("/help tok", ["tokens"]),
        ("/device cu", ["cuda"]),
        ("tem", []),
        ("//tem", []),
        ("/nonsense x", []),
        ("/model parrot x", []),
        ("/undo ", []),
        ("/quit now ", []),
    ],
)
def test_completion(session: Session, line: str, some: list[str]) -> None:
    offered = CommandCompleter(session).get_completions(Document(line), CompleteEvent())
    assert [one.text for one in offered][: len(some) or None] == some


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("/train my", r"my\ novel.txt"),
        (r"/train my\ n", r"my\ novel.txt"),
        ('/train "my n', '"my novel.txt"'),
        ("/train 'my ", "'my novel.txt'"),
        ("/train it", '"it\'s.txt"'),
        ('/save "texts ', '"texts of mine/'),
        ("/open plain.txt texts", r"texts\ of\ mine/"),
    ],
)
def test_names_with_spaces_are_quoted_as_begun(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts of mine").mkdir()
    for name in ("my novel.txt", "it's.txt", "plain.txt"):
        (tmp_path / name).touch()
    (offered,) = CommandCompleter(session).get_completions(Document(line), CompleteEvent())
    assert offered.text == typed
    assert line[: len(line) + offered.start_position].endswith(" ")


@pytest.mark.parametrize(
    ("text", "open"), [('"""', True), ('"""a', True), ('"""a"""', False), ('""""""', False), ("", False)]
)
def test_blocks_open_and_close(text: str, open: bool) -> None:
    assert is_open_block(text) is open


def test_an_unclosed_block_is_its_text() -> None:
    assert strip_block('"""a\nb') == "a\nb"


def test_vi_keys_follow_the_inputrc(tmp_path: Path) -> None:
    file = tmp_path / "inputrc"
    assert not wants_vi("auto", {"INPUTRC": str(file)})
    file.write_text("# set editing-mode vi\nset bell-style none\n")
    assert not wants_vi("auto", {"INPUTRC": str(file)})
    file.write_text("set editing-mode vi\n")
    assert wants_vi("auto", {"INPUTRC": str(file)})
    assert not wants_vi("emacs", {"INPUTRC": str(file)})
    assert wants_vi("vi", {})


def test_a_missing_editor_is_an_error() -> None:
    assert find_editor({"VISUAL": "sh -e", "EDITOR": "nowhere"}) == "sh -e"
    with pytest.raises(UsageError, match="EDITOR is 'nowhere -x', which is no program here"):
        find_editor({"EDITOR": "nowhere -x"})


def test_the_toolbar_shows_the_settings_in_force(session: Session) -> None:
    assert toolbar(session) == "parrot · temp 0.8 · top-p 0.95 · sample · max 256 · seed –"
    for name, value in (("temperature", 0), ("top_k", 40), ("seed", 7), ("stop", "x")):
        session.settings.set(name, value)
    assert toolbar(session) == "parrot · temp 0 · top-k 40 · top-p 0.95 · greedy · max 256 · seed 7 · stop 'x'"
    assert toolbar(Session()).startswith("no model · ")
