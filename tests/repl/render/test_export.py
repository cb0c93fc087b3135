"""Export of the conversation to files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from screens import Screen
from scripted import make_model

from tinychat.errors import UsageError
from tinychat.events import Finished, Token
from tinychat.repl.render.export import FORMATS, export
from tinychat.session.conversation import Turn
from tinychat.session.session import Session
from tinychat.session.transcript import read_transcript

HOSTILE = "<script>alert(1)</script>\n```\n[x](javascript:y) \x1b[31m & \ufffe \ud800"


@pytest.fixture
def talked(session: Session) -> Session:
    for prompt, answer in (("hello", "you said: hello"), ("<b>", HOSTILE)):
        tokens = [Token(1, answer, -1.0, 0.0)]
        session.conversation.add(Turn(prompt, [1], tokens, Finished("end", 1, 0.001, 7)))
    return session


def written(session: Session, path: Path) -> str:
    export(session, Screen().terminal(), path)
    return path.read_text(encoding="utf-8")


def test_plain_text_reads_as_the_screen_did(talked: Session, tmp_path: Path) -> None:
    talked.conversation.back()
    assert written(talked, tmp_path / "a.txt") == "› hello\nyou said: hello\n"


@pytest.mark.parametrize(("mode", "mark"), [("completion", "¶"), ("translation", "→")])
def test_the_mark_of_the_mode_stands_before_a_prompt(talked: Session, home: Path, mode: str, mark: str) -> None:
    turns = talked.conversation
    make_model(home / "models", "other", mode=mode)
    talked.open_model("other")
    talked.conversation = turns
    assert written(talked, home / "a.txt").startswith(f"{mark} hello\nyou said: hello\n")
    assert f">{mark} <" in written(talked, home / "a.html")


def test_markdown_quotes_each_text_in_a_fence_that_it_cannot_end(talked: Session, tmp_path: Path) -> None:
    text = written(talked, tmp_path / "a.md")
    assert text.startswith("# A conversation with parrot\n\n**Prompt**\n\n```text\nhello\n```\n\n**Answer**\n\n")
    assert text.endswith("````text\n<script>alert(1)</script>\n```\n[x](javascript:y) ␛[31m & \ufffe ?\n````\n")


def test_json_can_be_opened_again(talked: Session, tmp_path: Path) -> None:
    written(talked, tmp_path / "a.json")
    assert [turn.prompt for turn in read_transcript(tmp_path / "a.json").turns] == ["hello", "<b>"]


def test_json_lines_have_a_turn_each(talked: Session, tmp_path: Path) -> None:
    first, second = map(json.loads, written(talked, tmp_path / "a.jsonl").splitlines())
    assert first == {"prompt": "hello", "completion": "you said: hello", "finish_reason": "end", "seed": 7}
    assert second["completion"].startswith("<script>")


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_pages_look_as_the_screen_did_and_nothing_in_them_acts(talked: Session, tmp_path: Path, ending: str) -> None:
    text = written(talked, tmp_path / f"a.{ending}")
    page = ElementTree.fromstring(text.replace("<!DOCTYPE html>", "").replace('<meta charset="UTF-8">', ""))
    tags = {element.tag.rpartition("}")[2] for element in page.iter()}
    assert not tags & {"script", "a", "img", "b", "image", "foreignObject"}
    assert "url(http" not in text
    shown = "".join(page.itertext()).replace("\N{NO-BREAK SPACE}", " ")
    for words in ("› ", "you said: hello", "<script>alert(1)</script>", "␛[31m & � ?", "stop: end of turn · seed 7"):
        assert words in shown


def test_an_unknown_ending_is_refused(talked: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        export(talked, Screen().terminal(), tmp_path / "a.pdf")
    assert caught.value.remedy == "one of .md .txt .json .jsonl .html .svg"
    assert list(FORMATS) == caught.value.remedy.removeprefix("one of ").split()
    assert not (tmp_path / "a.pdf").exists()
