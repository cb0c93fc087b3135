"""The bundled model: there, small, and the same as when it was made."""

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.config.option import Origin
from tinychat.config.settings import Settings
from tinychat.generate.engine import Request
from tinychat.generate.loading import open_engine
from tinychat.generate.prompts import PromptEncoder
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import read_info, read_tokenizer, read_training

SMALLTALK = paths.bundled_models() / "smalltalk"

GOLDEN: dict[str, str] = dict(read_training(SMALLTALK)["greedy"]["answers"])
"""what it said, greedily, on the day that it was made: see test_golden.py"""


def test_it_is_found_by_name_and_is_small() -> None:
    session = Session()
    assert session.open_model("smalltalk").info.folder.resolve() == SMALLTALK.resolve()
    assert session.model.info.mode == "chat"
    assert sum(path.stat().st_size for path in SMALLTALK.iterdir()) < 7_500_000


def test_it_says_how_it_was_made() -> None:
    training = read_training(SMALLTALK)
    assert training["recipe"]["data"]["sources"] == ["smalltalk"]
    everyday = [group for name, group in training["suite"]["greedy"].items() if name.startswith("everyday")]
    assert sum(group["passed"] for group in everyday) / sum(group["count"] for group in everyday) > 0.8
    assert "trained with tinychat" in (SMALLTALK / "README.md").read_text(encoding="utf-8")


def talk(*prompts: str) -> list[str]:
    """What it answers, greedily, turn by turn."""
    session = Session()
    session.open_model("smalltalk")
    session.settings.update({"temperature": 0, "max_tokens": 60}, Origin.FLAG)
    for prompt in prompts:
        list(session.answer(prompt))
    return [turn.answer for turn in session.turns]


def test_it_remembers_a_name_within_the_conversation() -> None:
    assert "zorina" in talk("hi my name is zorina", "what is 2 plus 2?", "what is my name?")[-1]
    assert "zorina" in talk("zorina is my best friend", "what is my friend called?")[-1]


@pytest.mark.slow
def test_who_shouts_is_understood() -> None:
    assert talk("WHAT IS THE CAPITAL OF FRANCE?") == talk("what is the capital of france?")
    assert "Paris" in talk("CAPITAL OF FRANCE")[0]


def test_no_path_of_a_machine_is_in_it() -> None:
    for path in SMALLTALK.iterdir():
        if path.suffix in (".json", ".md"):
            text = path.read_text(encoding="utf-8")
            assert "/tmp" not in text
            assert "/home" not in text


@pytest.mark.slow
def test_it_answers_from_another_folder(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "tinychat", "-p", "hello there", "--greedy", "--precision", "f32"]
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
def test_both_engines_say_the_same_to_hundreds_of_prompts() -> None:
    info, settings = read_info(SMALLTALK), Settings(temperature=0, max_tokens=40, precision="f32")
    prompt_encoder = PromptEncoder(read_tokenizer(SMALLTALK), int(info.architecture["context_length"]), info.template)
    prompts = [" ".join(words) for words in itertools.product(GREETINGS, NAMES, QUESTIONS)][::4]
    requests = [
        Request(
            slot,
            prompt_encoder.encode(prompt, (), 40),
            0,
            settings,
            seed=1,
            prompt_index=slot,
            end_ids=prompt_encoder.end_ids,
        )
        for slot, prompt in enumerate(prompts)
    ]
    engines = [open_engine(info, replace(settings, device="cpu", engine=name)) for name in ("torch", "native")]
    for begin in range(0, len(requests), 50):
        told = [engine.extend(requests[begin : begin + 50], 40) for engine in engines]
        ids = [[[token.id for token in drawn] for drawn in answers] for answers in told]
        assert ids[0] == ids[1]
