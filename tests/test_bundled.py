"""The bundled model: there, small, and the same as when it was made."""

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.generate.engine import Request
from tinychat.generate.opening import open_engine
from tinychat.generate.prompts import Prompting
from tinychat.origins import Origin
from tinychat.session import Session
from tinychat.settings import Settings
from tinychat.store import places
from tinychat.store.models import read_info, read_tokenizer, read_training

SMALLTALK = places.bundled_models() / "smalltalk"

GOLDEN = {
    "hello there": "Hello! I am all ears, though I have none.",
    "what is 7 plus 5?": "7 plus 5 is 12.",
    "capital of france?": "The capital of France is Paris.",
    "what does a cow say": "A cow says moo.",
    "i feel sad today": "That is hard. I wish I had arms for a hug.",
}
"""what it said, greedily, on the day that it was made"""


def test_it_is_found_by_name_and_is_small() -> None:
    session = Session()
    assert session.open_model("smalltalk").folder.resolve() == SMALLTALK.resolve()
    assert session.model.mode == "chat"
    assert sum(path.stat().st_size for path in SMALLTALK.iterdir()) < 5_000_000


def test_it_says_how_it_was_made() -> None:
    training = read_training(SMALLTALK)
    assert training["recipe"]["data"]["sources"] == ["smalltalk.jsonl"]
    assert training["loss"] < 0.8
    assert "trained with tinychat" in (SMALLTALK / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("prompt", GOLDEN)
def test_it_says_what_it_said_when_it_was_made(prompt: str) -> None:
    session = Session()
    session.open_model("smalltalk")
    session.settings.update({"temperature": 0, "max_tokens": 60}, Origin.FLAG)
    list(session.answer(prompt))
    assert session.turns[0].answer == GOLDEN[prompt]


def test_it_remembers_a_name_within_the_conversation() -> None:
    session = Session()
    session.open_model("smalltalk")
    session.settings.update({"temperature": 0, "max_tokens": 60}, Origin.FLAG)
    for prompt in ("hi my name is zorina", "what is 2 plus 2?", "what is my name?"):
        list(session.answer(prompt))
    assert "zorina" in session.turns[-1].answer


def test_no_path_of_a_machine_is_in_it() -> None:
    for path in SMALLTALK.iterdir():
        if path.suffix in (".json", ".md"):
            text = path.read_text(encoding="utf-8")
            assert "/tmp" not in text
            assert "/home" not in text


@pytest.mark.slow
def test_it_answers_from_another_folder(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "tinychat", "-p", "hello there", "--greedy"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == GOLDEN["hello there"] + "\n"
    assert done.stderr == ""


def test_the_engine_reads_half_precision_weights_as_f32() -> None:
    import torch

    engine = open_engine(read_info(SMALLTALK), Settings(device="cpu", engine="torch"))
    assert engine.model.head.weight.dtype is torch.float32  # type: ignore[attr-defined]


GREETINGS = ("hello", "hi there", "good morning", "hey", "Good evening!", "oh", "well", "so", "please", "my friend")
NAMES = ("zorina", "Tamsin", "otto", "quill", "Bea", "marlow", "ines", "Pip", "rufus", "odette")
QUESTIONS = (
    "how are you?", "what is 3 plus 4", "tell me a story", "what colour is snow", "i am called that, remember it",
    "count to five", "what comes after tuesday", "make yourself more random", "are you alive", "the opposite of hot?",
)  # fmt: skip


@pytest.mark.slow
def test_both_engines_say_the_same_to_a_thousand_prompts() -> None:
    info, settings = read_info(SMALLTALK), Settings(temperature=0, max_tokens=40)
    prompting = Prompting(read_tokenizer(SMALLTALK), int(info.architecture["context"]), info.template)
    prompts = [" ".join(words) for words in itertools.product(GREETINGS, NAMES, QUESTIONS)]
    requests = [
        Request(slot, prompting.ids(prompt, (), 40), 0, settings, seed=1, place=slot, end_ids=prompting.end_ids)
        for slot, prompt in enumerate(prompts)
    ]
    engines = [open_engine(info, replace(settings, device="cpu", engine=name)) for name in ("torch", "native")]
    for begin in range(0, len(requests), 50):
        told = [engine.extend(requests[begin : begin + 50], 40) for engine in engines]
        ids = [[[token.id for token in drawn] for drawn in answers] for answers in told]
        assert ids[0] == ids[1]
