"""The ruler: number of tokens typed, room left in the context, and unknown characters."""

import threading
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from scripted import make_model

from tinychat.commands.registry import prompt_of
from tinychat.corpus.types import Message
from tinychat.repl.keys import strip_block
from tinychat.repl.prompt import SYNC_LIMIT, Measure, Ruler, justify
from tinychat.session.session import Session


class WaitingRuler:
    """A ruler whose measures from a thread are waited for."""

    def __init__(self, session: Session) -> None:
        self._measured = threading.Event()
        self.ruler = Ruler(session, self._measured.set)

    def measure(self, text: str) -> Measure:
        self._measured.clear()
        measure = self.ruler.update(text)
        if measure is None or len(text) > SYNC_LIMIT:
            assert self._measured.wait(60)
            measure = self.ruler.update(text)
        assert measure is not None
        return measure


@pytest.fixture
def waiting(session: Session) -> WaitingRuler:
    return WaitingRuler(session)


def test_tokens_of_the_text_and_room_left(session: Session, waiting: WaitingRuler) -> None:
    measure = waiting.measure("hello there")
    template, tokenizer = session.model.prompt_encoder.template, session.model.tokenizer
    assert template is not None
    whole = template.encode([Message("user", "hello there")], tokenizer, for_answer=True)
    assert measure.tokens == len(tokenizer.encode("hello there"))
    assert measure.left == 512 - len(whole)
    assert not measure.drops_turns


def test_the_conversation_takes_room_until_its_oldest_turns_are_dropped(
    session: Session, waiting: WaitingRuler
) -> None:
    alone = waiting.measure("hello")
    list(session.answer("hello"))
    assert waiting.measure("hello").left == alone.left  # the conversation is measured once for each prompt
    waiting.ruler.reset()
    after = waiting.measure("hello")
    assert after.left < alone.left
    assert not after.drops_turns
    assert waiting.measure("hello " * 280).drops_turns


def test_a_text_that_is_too_long(session: Session, waiting: WaitingRuler) -> None:
    assert waiting.measure("hello " * 1000).text.endswith(" too many")


@pytest.mark.parametrize("mode", ["completion", "translation"])
def test_modes_without_turns_count_no_conversation(session: Session, home: Path, mode: str) -> None:
    session.open_model(str(make_model(home / "models", mode, mode=mode)))
    waiting = WaitingRuler(session)
    measure = waiting.measure("hello")
    assert measure.left == 512 - measure.tokens - 1  # the end token, before or after it


def test_unknown_characters_are_listed_and_highlighted(session: Session, home: Path) -> None:
    folder = make_model(home / "models", "letters", mode="completion")
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    Tokenizer(train_vocabulary("char", ["abc"], None, ["<|end|>"])).save(folder / "tokenizer.json")
    session.open_model(str(folder))
    waiting = WaitingRuler(session)
    measure = waiting.measure("abжc\nλ")
    assert measure.text == "3 tokens · 508 left · unknown: \\n λ ж"
    line = TransformationInput(
        BufferControl(Buffer()), Document("abжc\nλ"), 0, lambda index: index, [("", "abжc")], 80, 24
    )
    assert waiting.ruler.apply_transformation(line).fragments == [("", "ab"), (" class:unknown", "ж"), ("", "c")]


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [("hello", "hello"), ("/temp 1", ""), ("//x", "/x"), ('"""\n/a\n"""', "/a"), ("", ""), ('"""/help', "/help")],
)
def test_only_a_prompt_is_measured(typed: str, prompt: str) -> None:
    assert prompt_of(strip_block(typed)) == prompt


def test_a_long_text_is_measured_in_a_thread(
    session: Session, waiting: WaitingRuler, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.measure("hello")
    threads: list[str] = []
    encode = type(session.model.tokenizer).encode_array

    def record(self: object, text: str) -> object:
        threads.append(threading.current_thread().name)
        return encode(self, text)  # type: ignore[arg-type]

    monkeypatch.setattr(type(session.model.tokenizer), "encode_array", record)
    waiting.measure("hello " * 20)
    waiting.measure("hello " * 20_000)
    assert threads == ["MainThread", "ruler"]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (40, "parrot · temp 0.8 · seed –        2 left"),
        (26, "parrot · temp 0.8   2 left"),
        (12, "      2 left"),
        (4, "2 left"),
    ],
)
def test_justify_drops_the_last_parts_on_the_left(width: int, line: str) -> None:
    assert justify("parrot · temp 0.8 · seed –", "2 left", width) == line
