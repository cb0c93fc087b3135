"""Makes bundled models anew: `python models/bundle.py tales translate`.

Each is trained by the recipe of its name on a corpus that is written anew, too, and handed on in half precision. Then
it is measured on the part of the corpus that it was not trained on, and answers what its test will ask again: both go
to its `training.json` and its card.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinychat.origins import Origin
from tinychat.repl.plot import plot
from tinychat.session import Session
from tinychat.store.models import CARD, TRAINING, read_card, read_training

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
HOME = HERE.parent / "build" / "bundle"
"""where corpora and runs are put, apart from those of the user"""
GREEDY_TOKENS = 80
SAMPLES, SAMPLE_TOKENS = 10, 1000
CURVE = (72, 12)
"""columns and lines"""


@dataclass(frozen=True)
class Bundled:
    """What is particular to a bundled model."""

    corpus: str
    held_out: str
    """the file of the corpus that it is measured on"""
    prompts: tuple[str, ...]
    """what it is asked, greedily"""
    begins: tuple[str, ...] = ()
    """what its samples begin with, where it has some: one after the other, over again"""
    suite: str = ""
    """the checks that it is to pass, in data/"""
    conversations: tuple[tuple[str, ...], ...] = ()
    """what people say to it, turn by turn"""


CONVERSATIONS = (
    ("hi", "how are you", "what can you do?"),
    ("hello!!", "who made u", "are you chatgpt?"),
    ("hey whats up", "im bored", "tell me a joke"),
    ("test", "ok it works", "what is 2+2", "and 9 + 8?"),
    ("Hello, my name is Katarina.", "I have a cat called Momo.", "What's my name?", "and what is my cat called?"),
    ("hi im jorvik", "my favorite color is teal", "tell me a riddle", "i dont know", "whats my favourite color?"),
    ("what is the capital of spain", "and of japan?", "captial of norway", "population of norway?"),
    ("tell me a story", "another one please", "thx"),
    ("i had a bad day", "my boss yelled at me", "thank you"),
    ("you are stupid", "sorry", "do you like me?"),
    ("how do i make you more random?", "and less random", "your answers are too long"),
    ("how do i train my own model", "can i use my own text", "how long does it take?"),
    ("help", "what settings are there", "how do i quit"),
    ("count to ten", "now backwards", "what comes after thursday"),
    ("oposite of hot", "plural of mouse", "spell banana", "what does a duck say?"),
    ("explain quantum physics", "who is the president?", "ok what do you know then"),
    ("remember the number 42", "say hello world", "what number did i give you?"),
    ("good morning", "do you dream?", "where do you live", "whats the weather like"),
    ("wat is ur favorit food", "do you like pizza", "which is bigger a mouse or a horse"),
    ("knock knock", "lettuce", "lettuce in, it's cold out here", "bye"),
)

MODELS = {
    "smalltalk": Bundled(
        "smalltalk",
        "held-out.jsonl",
        (
            "hello there",
            "what is 7 plus 5?",
            "capital of france?",
            "what does a cow say",
            "i feel sad today",
            "what can you do?",
            "how do i make you more random?",
        ),
        suite="smalltalk/suite.jsonl",
        conversations=CONVERSATIONS,
    ),
    "tales": Bundled(
        "tales",
        "held-out.jsonl",
        ("Once upon a time there was a fox", "In a village by the sea lived a girl", "Tarek wanted to learn to"),
        (
            "Once upon a time there was",
            "This is the story of",
            "In a hollow tree",
            "More than anything in the world,",
            "",
        ),
    ),
    "translate": Bundled(
        "phrases",
        "held-out.tsv",
        (
            "Hello.",
            "I am tired.",
            "where is the station",
            "My sister has a red car.",
            "Did you see the children yesterday?",
            "Ramona and Hugo will not come if it rains.",
            "We would like two coffees, please.",
            "The old houses are very beautiful.",
        ),
    ),
}


def main() -> None:
    """Reads the command line, makes the models and describes them."""
    options = argparse.ArgumentParser(description="Makes bundled models anew.")
    options.add_argument("names", nargs="+", choices=MODELS, metavar="NAME", help=" or ".join(MODELS))
    options.add_argument("--out", type=Path, default=HERE, metavar="FOLDER", help="where their folders are put (here)")
    options.add_argument("--trained", type=Path, metavar="FOLDER", help="the model, trained already")
    chosen = options.parse_args()
    for name in chosen.names:
        tinychat("data", "make", MODELS[name].corpus)
        trained = chosen.trained.resolve() if chosen.trained else train(name)
        made = HOME / "bundled" / name
        shutil.rmtree(made, ignore_errors=True)
        tinychat("export", trained, "--to", "tinychat", "--out", made)
        describe(name, made)
        shutil.rmtree(chosen.out / name, ignore_errors=True)
        shutil.move(made, chosen.out / name)


def train(name: str) -> Path:
    """Trains it by its recipe; where the model is then. What an earlier call made is given up."""
    for kept in ("runs", "models"):
        shutil.rmtree(HOME / kept / name, ignore_errors=True)
    tinychat("train", "--recipe", name, "--name", name)
    return HOME / "models" / name


def describe(name: str, folder: Path) -> None:
    """Measures it, lets it answer, and writes both down."""
    bundled, training = MODELS[name], read_training(folder)
    source = f"{bundled.corpus}/{bundled.held_out}"
    exact = ["--exact"] if training["recipe"]["data"]["mode"] == "translation" else []
    figures = json.loads(tinychat("eval", folder, source, "--split", "all", *exact, "--json"))
    greedy = answer(
        folder, [{"prompt": prompt, "temperature": 0, "max_tokens": GREEDY_TOKENS} for prompt in bundled.prompts]
    )
    begins = [bundled.begins[number % len(bundled.begins)] for number in range(SAMPLES)] if bundled.begins else []
    asked = [{"prompt": begin, "seed": seed, "max_tokens": SAMPLE_TOKENS} for seed, begin in enumerate(begins, 1)]
    told = answer(folder, asked)
    passed = suite(folder, bundled.suite) if bundled.suite else {}
    training |= {
        "held_out": {"text": source} | figures,
        "suite": passed,
        "greedy": {"max_tokens": GREEDY_TOKENS, "answers": [[one["prompt"], one["completion"]] for one in greedy]},
    }
    (folder / TRAINING).write_text(json.dumps(training, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    card = re.split(r"\n## (?:Samples|On what)", read_card(folder))[0]
    lines = [
        card.rstrip("\n"),
        *_figures(source, figures),
        *_suite(bundled.suite, passed),
        *_curve(training["curve"]),
        *_answers(greedy),
        *_samples(told),
        *_conversations(folder, bundled.conversations),
    ]
    (folder / CARD).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _figures(source: str, figures: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## On what it was never trained on", "")
    command = f"tinychat eval NAME {source} --split all"
    yield f"`{command}{' --exact' if figures['exact_match'] is not None else ''}`, weights in bf16:"
    yield from ("", "| | |", "| --- | --- |")
    if figures["exact_match"] is not None:
        yield f"| exact match | {100 * figures['exact_match']:.1f} % of the pairs, translated greedily |"
    yield f"| perplexity | {figures['perplexity']:.3f}, loss {figures['loss']:.4f} nats per token |"
    yield f"| bits per character | {figures['bits_per_character']:.3f} |"
    yield f"| accuracy | {100 * figures['accuracy']:.1f} % of {figures['tokens']:,} tokens were the likeliest |"


def suite(folder: Path, file: str) -> dict[str, dict[str, dict[str, float]]]:
    """How many checks of each group it passes: by the way to answer, then by group."""
    ways = json.loads(tinychat("eval", folder, "--suite", DATA / file, "--json"))
    return {way: found["groups"] for way, found in ways.items()}


def _suite(file: str, passed: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    if not passed:
        return
    yield from (
        "",
        "## What it gets right",
        "",
        f"`tinychat eval NAME --suite data/{file}`, on wordings and names that",
    )
    yield from ("it was never trained on; the second figure is at the usual temperature:", "")
    yield f"| | checks | {' | '.join(passed)} |"
    yield "| --- " * (2 + len(passed)) + "|"
    for group, first in next(iter(passed.values())).items():
        shares = (f"{groups[group]['passed']:,} ({100 * groups[group]['share']:.1f} %)" for groups in passed.values())
        yield f"| {group} | {first['count']:,} | {' | '.join(shares)} |"


def _conversations(folder: Path, conversations: Sequence[Sequence[str]]) -> Iterator[str]:
    if conversations:
        yield from (
            "",
            f"## {len(conversations)} conversations",
            "",
            "Not chosen and not edited: with the usual settings, seed 1.",
        )
    for said in conversations:
        session = Session()
        session.open_model(str(folder))
        session.settings.update({"seed": 1, "precision": "f32"}, Origin.FLAG)
        for prompt in said:
            deque(session.answer(prompt), maxlen=0)
        yield ""
        for turn in session.turns:
            yield from (f"    › {turn.prompt}", *("    " + line for line in turn.answer.splitlines()))


def _curve(curve: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Loss by step", "", "Dots are the loss of training, ◆ that of the part that measures it.", "")
    yield from ("    " + line for line in plot(curve["training"], *CURVE, marked=curve["validation"]))


def _answers(greedy: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (
        "",
        "## Greedily",
        "",
        f"At most {GREEDY_TOKENS} tokens, with `--precision f32`; a test holds it to these.",
    )
    for one in greedy:
        yield from ("", f"    {one['prompt']}", *("    → " + line for line in one["completion"].splitlines()))


def _samples(told: Sequence[dict[str, Any]]) -> Iterator[str]:
    if told:
        yield from ("", "## Ten samples", "", "Not chosen and not edited: seeds 1 to 10, with `--precision f32`.")
    for seed, one in enumerate(told, 1):
        text = one["prompt"] + one["completion"]
        yield from ("", f"Seed {seed}, from “{one['prompt']}”:", "")
        yield from (f"> {line}\n>" for line in text.splitlines())


def answer(folder: Path, asked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What it answers to prompts, each with its settings."""
    if not asked:
        return []
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    return [
        json.loads(line) for line in tinychat("-m", folder, "--jsonl", "--precision", "f32", stdin=lines).splitlines()
    ]


def tinychat(*words: str | Path, stdin: str | None = None) -> str:
    """Runs the program; what it writes to the standard output. What it has to say meanwhile is shown."""
    command = [sys.executable, "-m", "tinychat", *map(str, words)]
    environment = os.environ | {"TINYCHAT_HOME": str(HOME)}
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
