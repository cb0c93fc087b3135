"""The toolbar: settings, background runs, and the ruler."""

import threading
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from screens import Screen
from scripted import make_model

from tinychat.commands.registry import prompt_of
from tinychat.corpus.types import Message
from tinychat.events import Ended, Failed, Stepped
from tinychat.repl.completion import strip_block
from tinychat.repl.toolbar import SYNC_LIMIT, Measure, Ruler, describe_run, justify, report_ended, toolbar
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.store.runs import RunFolder


def test_the_progress_and_the_end_of_a_run(session: Session, tmp_path: Path) -> None:
    run, screen = BackgroundRun(RunFolder(tmp_path / "novel")), Screen()
    assert describe_run(run) == "novel is starting"
    run.stepped = Stepped(1480, 0.37, 1.71, 0.01, 0.5, 48_000.0, 60.0, 62.0, 4000)
    assert describe_run(run) == "novel trains: step 1,480/4,000 · loss 1.71 · 1:02 left"
    for last in (
        Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "elsewhere"),
        Ended("stopped", 1500, 1.7, 5.5, 2.5, 60.0, str(session.model.info.folder)),
        Ended("done", 9, 1.7, 5.5, 2.5, 60.0, "elsewhere", overfits_since=5, training_loss=1.25),
        Ended("done", 9, 1.7, 5.5, 2.5, 60.0, "elsewhere", best_step=0, start="old", start_loss=1.7),
        Failed("there is no memory", "`tinychat train --resume novel` goes on"),
    ):
        run.last = last
        report_ended([run], session, screen.terminal())
    assert screen.lines == [
        "novel is done: step 4,000, loss 1.700 · /model novel talks to it",
        "novel is stopped: step 1,500, loss 1.700 · it answers now",
        "novel is done: step 9, loss 1.700 · /model novel talks to it",
        "overfits: yes, since step 5, whose weights are kept: train loss is 1.2500, val",
        "0.45 above it",
        "novel is done: step 9, loss 1.700 · /model novel talks to it",
        "start: old had val 1.7000, and no step made that better: its weights are kept",
        "novel: there is no memory",
        "`/train --resume novel` goes on",
    ]


def test_the_toolbar_shows_the_settings_in_force(session: Session) -> None:
    assert toolbar(session) == "parrot · temp 0.8 · top-p 0.95 · sample · max 256 · seed –"
    for name, value in (("temperature", 0), ("top_k", 40), ("seed", 7), ("stop", "x")):
        session.settings.set(name, value)
    assert toolbar(session) == "parrot · temp 0 · top-k 40 · top-p 0.95 · greedy · max 256 · seed 7 · stop 'x'"
    assert toolbar(Session()).startswith("no model · ")


# --- the ruler ---


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


def test_a_text_that_cannot_be_measured_does_not_end_the_measuring(
    session: Session, waiting: WaitingRuler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    measured = threading.Event()
    ruler = Ruler(session, measured.set)
    with monkeypatch.context() as broken:
        broken.setattr(type(session.model.tokenizer), "encode_array", fail)
        assert ruler.update("hello") is None
        assert measured.wait(60)
    measured.clear()
    ruler.update("hello there")
    assert measured.wait(60)  # in a thread again, which may end before `update` does
    assert ruler.update("hello there") is not None


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
