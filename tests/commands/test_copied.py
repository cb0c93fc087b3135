"""`/copied`: what of an answer stands in the text of the model."""

import json
import os
from pathlib import Path

import pytest
from scripted import Talk

from tinychat.commands.copied import HOW_TO_READ_SPANS
from tinychat.commands.results import (
    Message,
    Table,
)
from tinychat.corpus.sources import read_sources
from tinychat.errors import SourceError, UsageError
from tinychat.session.conversation import Turn
from tinychat.store import paths

BOOK = (
    "an owl sat still.\nyou said nothing, as owls do; "
    + "the hen went home alone at noon.\n" * 9
    + "end of the book, you see"
)


@pytest.fixture
def book(talk: Talk, tmp_path: Path) -> Path:
    """A text of which nine tenths trained the model at hand."""
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    note(talk, [str(path)], 0.9)
    return path


def note(talk: Talk, sources: list[str], share: float = 1.0, **facts: object) -> None:
    """What training would have written."""
    cache = paths.datasets_folder()
    training = {
        "recipe": {"data": {"sources": sources}},
        "data": {
            "fingerprint": read_sources(sources, cache=cache).fingerprint,
            "tokens": 1000,
            "train_tokens": 1000 * share,
        },
    }
    (talk.session.model.info.folder / "training.json").write_text(json.dumps(training | facts))


def test_copied_spans_come_with_their_places(talk: Talk, book: Path) -> None:
    talk.ask("nothing, as the hen went home alone")
    result = talk.do("/copied")
    assert isinstance(result, Table)
    answer = talk.session.turns[-1].answer
    assert answer == "you said: nothing, as the hen went home alone"
    assert result.title == f"{100 * (24 + 12) / len(answer):.0f} % of the answer stands word for word in book"
    assert result.rows == (
        ("24", "book.txt, line 2", "' the hen went home alone'"),
        ("12", "book.txt, line 2", "' nothing, as'"),
    )
    assert result.notes == (
        f"spans of 12 characters or more · {HOW_TO_READ_SPANS}",
        "looked at: the 90 % of the text that parrot was trained on",
    )


def test_a_span_that_comes_again_is_shown_once(talk: Talk, book: Path) -> None:
    talk.ask("x nothing, as x nothing, as x")
    result = talk.do("/copied")
    assert isinstance(result, Table)
    assert result.rows == (("13", "book.txt, line 2", "' nothing, as ', 2 times"),)


def test_what_the_model_was_not_trained_on_is_not_looked_at(talk: Talk, book: Path) -> None:
    talk.ask("end of the book")
    assert talk.do("/copied") == Message(
        ("no 12 characters in a row stand word for word in book",),
        ("looked at: the 90 % of the text that parrot was trained on",),
    )
    assert isinstance(talk.do(f"/copied {book.name}"), Message)


def test_another_text_may_be_named(talk: Talk, book: Path, tmp_path: Path) -> None:
    (tmp_path / "my other.txt").write_text("Long ago you said: hello there, my friend.")
    talk.ask("hello there")
    result = talk.do("/copied 'my other.txt'")
    assert isinstance(result, Table)
    assert result.rows == (("21", "my other.txt, line 1", "'you said: hello there'"),)
    assert result.notes[1:] == ("this is another text than parrot was trained on",)


def test_a_text_that_has_changed_is_said_to_have(talk: Talk, book: Path) -> None:
    book.write_text("you said: hello")
    talk.ask("hello")
    result = talk.do("/copied")
    assert isinstance(result, Table)
    assert result.notes[1:] == ("the text has changed since parrot was trained on it",)


def test_the_answer_of_an_opened_conversation_is_looked_at(talk: Talk, book: Path, tmp_path: Path) -> None:
    talk.ask("nothing, as the hen went home alone")
    found = talk.do("/copied")
    talk.do(f"/save {tmp_path}/talk")
    talk.do(f"/open {tmp_path}/talk")
    assert talk.do("/copied") == found
    talk.session.conversation.add(Turn("hello"))  # stopped before it began
    assert talk.do("/copied") == found


def test_an_answer_shorter_than_a_span_counts_as_a_whole(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("and you said: a")
    note(talk, [str(tmp_path / "book.txt")])
    talk.ask("a")
    result = talk.do("/copied")
    assert isinstance(result, Table)
    assert result.title == "100 % of the answer stands word for word in book"
    assert result.notes == (f"spans of 11 characters or more · {HOW_TO_READ_SPANS}",)


def test_the_text_may_be_in_the_recipe(talk: Talk) -> None:
    training = {"recipe": {"data": {"sources": [], "texts": ["hello there\tyou said: hello there"], "mode": "chat"}}}
    (talk.session.model.info.folder / "training.json").write_text(json.dumps(training))
    talk.ask("hello there")
    result = talk.do("/copied")
    assert isinstance(result, Table)
    assert result.rows == (("21", "the recipe's own text, conversation 1", "'you said: hello there'"),)


def test_a_model_that_was_begun_from_another_says_so(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("nothing of it")
    note(talk, [str(tmp_path / "book.txt")], **{"from": {"name": "older"}})
    talk.ask("hello")
    result = talk.do("/copied")
    assert isinstance(result, Message)
    assert result.notes == ("parrot was begun from older, whose text was not looked at",)


@pytest.mark.parametrize(
    ("sources", "problem", "remedy"),
    [
        ([], "parrot does not tell what it was trained on", "`/copied FILE` looks in another text"),
        (["gone.txt"], "the text of parrot cannot be read: gone.txt", "`/copied FILE` looks in another text"),
        (["smalltalk.jsonl"], "the text of parrot cannot be read: smalltalk.jsonl",
         "`tinychat data make smalltalk --count 60000 --seed 1 --out corpus` makes it anew; "
         "then `/copied corpus/train.jsonl`"),
        (["tales"], "the data set tales is not here", "`tinychat data make tales` makes it"),
        (["tinyshakespeare"], "the data set tinyshakespeare is not here",
         "`tinychat data get tinyshakespeare` fetches it"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_there(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, sources: list[str], problem: str, remedy: str
) -> None:
    monkeypatch.delenv("TINYCHAT_MIRROR", raising=False)
    training = {"recipe": {"data": {"sources": sources}}, "data": {"documents": 60_000}, "seed": 1}
    (talk.session.model.info.folder / "training.json").write_text(json.dumps(training))
    talk.ask("hello")
    with pytest.raises(UsageError) as caught:
        talk.do("/copied")
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


@pytest.mark.parametrize("source", ["-", "pipe", "pipe:2", "/dev/zero"])
def test_no_stream_that_a_model_names_is_read(talk: Talk, tmp_path: Path, source: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    training = {"recipe": {"data": {"sources": [source]}}}
    (talk.session.model.info.folder / "training.json").write_text(json.dumps(training))
    talk.ask("hello")
    with pytest.raises(UsageError, match=f"the text of parrot cannot be read: {source}"):
        talk.do("/copied")


def test_there_must_be_an_answer_and_a_text_of_that_name(talk: Talk) -> None:
    with pytest.raises(UsageError, match="there is no answer to look into yet"):
        talk.do("/copied")
    talk.session.conversation.add(Turn("hello"))
    with pytest.raises(UsageError, match="the last answer has no text"):
        talk.do("/copied")
    talk.ask("hello")
    with pytest.raises(UsageError, match="parrot does not tell what it was trained on"):
        talk.do("/copied")
    with pytest.raises(SourceError, match="there is no file, folder or known data set 'nothing'"):
        talk.do("/copied nothing")
    with pytest.raises(UsageError, match="a quotation mark stands alone"):
        talk.do("/copied 'nothing")
