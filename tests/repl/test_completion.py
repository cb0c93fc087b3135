"""Completion of commands and their arguments; blocks."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from tinychat.commands import COMMANDS
from tinychat.config.settings import SETTINGS
from tinychat.repl import completion
from tinychat.repl.completion import CommandCompleter, complete, shorten_description, strip_block
from tinychat.session.session import Session


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("/tem", ["/temperature"]),
        ("/temperature ", ["0.8", "0"]),
        ("/set top-p ", ["0.95", "0.5"]),
        ("/model p", ["parrot"]),
        ("/help tok", ["token-healing", "tokens"]),
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
    offered = CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent())
    assert [one.text for one in offered][: len(some) or None] == some


def test_what_cannot_be_read_has_no_completion(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(session: Session, line: str) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(completion, "complete", fail)
    completer = CommandCompleter(session, lambda: 80)
    assert list(completer.get_completions(Document("/attach "), CompleteEvent())) == []


@pytest.mark.parametrize("line", ["/", "/help ", "/set ", "/reset ", *(f"/{name} " for name in SETTINGS)])
def test_a_menu_cuts_nothing_at_80_columns(session: Session, line: str) -> None:
    offered = list(CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent()))
    longest = max(len(one.display_text) for one in offered)
    for one in offered:
        assert len(one.display_meta_text) <= 80 - 1 - (longest + 2) - 2  # prompt_toolkit's scroll bar and spaces
        assert not one.display_meta_text.endswith("…")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "Take one, two or all of them: the first, or more (or fewer)."),
        (59, "Take one, two or all of them: the first, or more"),
        (40, "Take one, two or all of them"),
        (20, "Take one"),
        (7, "some"),
    ],
)
def test_a_description_ends_at_a_clause(width: int, shown: str) -> None:
    about = "Take one, two or all of them: the first, or more (or fewer)."
    assert shorten_description(about, "some", width) == shown


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
    (offered,) = CommandCompleter(session, lambda: 80).get_completions(Document(line), CompleteEvent())
    assert offered.text == typed
    assert line[: len(line) + offered.start_position].endswith(" ")


@pytest.mark.parametrize("name", ["stop", "begin", "ban"])
@pytest.mark.parametrize("value", ['"x"', "a b", "it's", " b ", '"', "'", "a 'b'"])
def test_a_value_that_completion_offers_is_typed_as_it_is(session: Session, name: str, value: str) -> None:
    before = session.settings.set(name, [value] if SETTINGS[name].kind is tuple else value)
    session.settings.set(name, before)
    for line in (f"/{name} ", f"/set {name} "):
        (typed, _), *_ = complete(session, line)[1]
        session.settings.reset()
        COMMANDS.dispatch(session, line + typed)
        assert getattr(session.settings.current, name) == before


def test_an_unclosed_block_is_its_text() -> None:
    assert strip_block('"""a\nb') == "a\nb"
