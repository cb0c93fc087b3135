"""Train the bundled models: `python models/bundle.py tales translate`.

Each model is trained by the recipe of the same name on a newly generated corpus, and exported with its layers and
embeddings in int8; `--trained` takes a trained one, `--blend` averages it with another. Its scores on the held-out part
and its answers to fixed prompts are written to its `training.json` and its card; a test compares the answers later.
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

import torch

from tinychat.config.option import Origin
from tinychat.repl.render.plot import plot
from tinychat.session.session import Session
from tinychat.store.models import CARD, TRAINING, WEIGHTS, read_card, read_info, read_training, read_weights
from tinychat.store.weights import pack_weights
from tinychat.textutil import json_text

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
HOME = HERE.parent / "build" / "bundle"
"""Folder for corpora and runs, separate from the user's own."""
GREEDY_TOKENS = 80
SAMPLES, SAMPLE_TOKENS = 10, 350
CURVE = (72, 12)
"""Columns and lines."""


@dataclass(frozen=True)
class Bundled:
    """Settings of one bundled model."""

    corpus: str
    held_out: str
    """File of the corpus used for evaluation."""
    prompts: tuple[str, ...]
    """Prompts answered greedily."""
    openings: tuple[str, ...] = ()
    """Beginnings of the samples, used in turn; empty for no samples."""
    suites: tuple[str, ...] = ()
    """Evaluation suites, paths below data/."""
    sentences: tuple[str, ...] = ()
    """Sentences of which the card shows the translations."""
    conversations: tuple[tuple[str, ...], ...] = ()
    """User messages of sample conversations, turn by turn."""


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

SENTENCES = (
    "Hi, I'm Greta.",
    "Nice to meet you, Tarvo.",
    "Do you have a room for tonight?",
    "we would like to sit outside",
    "What is the soup today?",
    "I'd like the chicken with rice and a beer.",
    "Sorry, I don't eat fish.",
    "How much is it altogether?",
    "Can I pay in cash?",
    "Where can I wash my clothes?",
    "My room is on the fifth floor and the lift doesn't work.",
    "Could you call a taxi for half past six?",
    "Which bus goes to the beach?",
    "is there a train to Valencia on sunday morning",
    "I have to change trains in Zaragoza.",
    "We left our suitcases at the hotel.",
    "I think someone took my camera.",
    "My daughter has a fever and a headache.",
    "He fell off his bike and hurt his arm.",
    "How often should I take these pills?",
    "I've had this cough for a week.",
    "My grandparents have been married for fifty years.",
    "She's the tallest girl in her class.",
    "What are you going to do this summer?",
    "I used to play the violin when I was young.",
    "If I have time, I will visit you tomorrow.",
    "They didn't tell us that the museum was closed.",
    "I don't know what to do.",
    "Nobody came to my party.",
    "There's nothing in the fridge but milk.",
    "She told me that she would be late.",
    "Would you like me to help you?",
    "Please don't park in front of my house.",
    "Have you already seen the film that won the prize?",
    "I gave them your phone number.",
    "This is the best coffee I've ever had.",
    "It's raining, so we can't go to the park.",
    "My cat Whiskers is afraid of the dog next door.",
    "The code for the door is 4071B.",
    "See you next Thursday at a quarter past nine!",
)

SPANISH_SENTENCES = (
    "Hola, soy Greta.",
    "Mucho gusto, Tarvo.",
    "¿Tienen una habitación para esta noche?",
    "nos gustaria sentarnos fuera",
    "¿De qué es la sopa hoy?",
    "Quisiera el pollo con arroz y una cerveza.",
    "Lo siento, no como pescado.",
    "¿Cuánto es todo?",
    "¿Puedo pagar en efectivo?",
    "¿Dónde puedo lavar la ropa?",
    "Mi habitación está en el quinto piso y el ascensor no funciona.",
    "¿Podría llamar a un taxi para las seis y media?",
    "¿Qué autobús va a la playa?",
    "hay un tren a valencia el domingo por la mañana",
    "Tengo que cambiar de tren en Zaragoza.",
    "Dejamos las maletas en el hotel.",
    "Creo que alguien me ha robado la cámara.",
    "Mi hija tiene fiebre y le duele la cabeza.",
    "Se cayó de la bici y se hizo daño en el brazo.",
    "¿Cada cuánto tengo que tomar estas pastillas?",
    "Llevo una semana con esta tos.",
    "Mis abuelos llevan cincuenta años casados.",
    "Es la más alta de su clase.",
    "¿Qué van a hacer ustedes este verano?",
    "De joven tocaba el violín.",
    "Si tengo tiempo, te visitaré mañana.",
    "No nos dijeron que el museo estaba cerrado.",
    "No sé qué hacer.",
    "Nadie vino a mi fiesta.",
    "En la nevera solo hay leche.",
    "Me dijo que llegaría tarde.",
    "¿Quieres que te ayude?",
    "Por favor, no aparque delante de mi casa.",
    "¿Ya has visto la película que ganó el premio?",
    "Les di tu número de teléfono.",
    "Es el mejor café que he tomado en mi vida.",
    "Está lloviendo, así que no podemos ir al parque.",
    "Mi gato Bigotes le tiene miedo al perro de al lado.",
    "El código de la puerta es 4071B.",
    "¡Nos vemos el jueves que viene a las nueve y cuarto!",
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
        suites=("smalltalk/suite.jsonl", "smalltalk/everyday.jsonl", "smalltalk/everyday-kept.jsonl"),
        conversations=CONVERSATIONS,
    ),
    "tales": Bundled(
        "tales",
        "held-out.jsonl",
        ("Once upon a time there was a fox", "One day the dragon", "My grandmother"),
        (
            "One day the dragon",
            "A little girl named Emma",
            "It was raining when Oliver",
            "The old robot",
            "My grandmother",
            "Tom and his dog Rex",
            "In the middle of the night the owl",
            "The zorble",
            "I had a dream",
            '"Where is my hat?" asked the wizard',
        ),
        suites=("tales/suite.jsonl",),
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
        suites=("phrases/everyday.jsonl", "phrases/everyday-kept.jsonl"),
        sentences=SENTENCES,
    ),
    "translate-es-en": Bundled(
        "phrases-es-en",
        "held-out.tsv",
        (
            "Hola.",
            "Estoy cansado.",
            "donde esta la estacion",
            "Mi hermana tiene un coche rojo.",
            "¿Viste ayer a los niños?",
            "Ramona y Hugo no vendrán si llueve.",
            "¿Me trae dos cafés, por favor?",
            "Las casas viejas son muy bonitas.",
        ),
        suites=("phrases/everyday-back.jsonl", "phrases/everyday-back-kept.jsonl"),
        sentences=SPANISH_SENTENCES,
    ),
}


def main() -> None:
    """Parse the command line, then train, export and describe the models."""
    parser = argparse.ArgumentParser(description="Train the bundled models.")
    parser.add_argument("names", nargs="+", choices=MODELS, metavar="NAME", help=" or ".join(MODELS))
    parser.add_argument(
        "--out", type=Path, default=HERE, metavar="FOLDER", help="folder for the models (default: this one)"
    )
    parser.add_argument("--trained", type=Path, metavar="FOLDER", help="use this trained model instead of training one")
    parser.add_argument(
        "--blend", nargs=2, metavar=("FOLDER", "SHARE"), help="average its weights with those of the model it began as"
    )
    args = parser.parse_args()
    if args.trained and len(args.names) > 1:
        parser.error("--trained is one model")
    start, share = (Path(args.blend[0]).resolve(strict=True), float(args.blend[1])) if args.blend else (None, 0.0)
    for name in args.names:
        tinychat("data", "make", MODELS[name].corpus)
        trained = args.trained.resolve() if args.trained else train(name)
        if start:
            trained = blend(trained, start, share)
        exported = HOME / "bundled" / name
        shutil.rmtree(exported, ignore_errors=True)
        tinychat("export", trained, "--to", "tinychat-int8", "--out", exported)
        describe(name, exported)
        shutil.rmtree(args.out / name, ignore_errors=True)
        shutil.move(exported, args.out / name)


def train(name: str) -> Path:
    """Train a model by its recipe, replacing any earlier run, and return the model's folder."""
    for subfolder in ("runs", "models"):
        shutil.rmtree(HOME / subfolder / name, ignore_errors=True)
    folder = HOME / "models" / name
    tinychat("train", "--recipe", name, "--name", name, "--out", folder)  # without --out, the name is taken
    return folder


def blend(trained: Path, start: Path, share: float) -> Path:
    """Average the weights of a model with those that its training began with, and return the folder of the result.

    `share` is that of the start. What was learned last and what was known before often add up so (Wortsman et al. 2022,
    "Robust fine-tuning of zero-shot models"). Counts of n-grams, which are no weights, are those of the trained model.
    """
    blended = HOME / "blended"
    shutil.rmtree(blended, ignore_errors=True)
    shutil.copytree(trained, blended)
    new, old = (read_weights(read_info(folder)) for folder in (trained, start))
    weights = {
        key: torch.lerp(weight, old[key], share) if weight.is_floating_point() else weight
        for key, weight in new.items()
    }
    tied = read_info(trained).architecture["tie_embeddings"]
    (blended / WEIGHTS).write_bytes(pack_weights(weights, tied=tied, precision="f32", step=None))
    return blended


def describe(name: str, folder: Path) -> None:
    """Evaluate a model, collect its answers, and write both to `training.json` and the model card."""
    bundled, training = MODELS[name], read_training(folder)
    source = f"{bundled.corpus}/{bundled.held_out}"
    exact = ["--exact"] if read_info(folder).mode == "translation" else []
    figures = json.loads(tinychat("eval", folder, source, "--split", "all", *exact, "--json"))
    greedy = answer(
        folder, [{"prompt": prompt, "temperature": 0, "max_tokens": GREEDY_TOKENS} for prompt in bundled.prompts]
    )
    openings = (
        [bundled.openings[number % len(bundled.openings)] for number in range(SAMPLES)] if bundled.openings else []
    )
    requests = [
        {"prompt": opening, "seed": seed, "max_tokens": SAMPLE_TOKENS} for seed, opening in enumerate(openings, 1)
    ]
    samples = answer(folder, requests)
    results = measure_suites(folder, bundled.suites)
    training |= {
        "held_out": {"text": source} | figures,
        "suite": results,
        "greedy": {
            "max_tokens": GREEDY_TOKENS,
            "answers": [[result["prompt"], result["completion"]] for result in greedy],
        },
    }
    (folder / TRAINING).write_text(json_text(training) + "\n", encoding="utf-8")
    card = re.split(r"\n## (?:Samples|On held-out)", read_card(folder))[0]
    lines = [
        card.rstrip("\n"),
        *_figures(source, figures),
        *_suites(bundled.suites, results),
        *_curve(training["curve"]),
        *_answers(greedy),
        *_samples(samples),
        *_sentences(folder, bundled.sentences),
        *_conversations(folder, bundled.conversations),
    ]
    (folder / CARD).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _figures(source: str, figures: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## On held-out text", "")
    command = f"tinychat eval NAME {source} --split all"
    yield f"`{command}{' --exact' if figures['exact_match'] is not None else ''}`, layers and embeddings in int8:"
    yield from ("", "| | |", "| --- | --- |")
    if figures["exact_match"] is not None:
        yield f"| exact match | {100 * figures['exact_match']:.1f} % of the pairs, translated greedily |"
    yield f"| perplexity | {figures['perplexity']:.3f}, loss {figures['loss']:.4f} nats per token |"
    yield f"| bits per character | {figures['bits_per_character']:.3f} |"
    yield f"| accuracy | {100 * figures['accuracy']:.1f} % of {figures['tokens']:,} tokens were the likeliest |"


def measure_suites(folder: Path, files: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the results of suites by decoding method and group, named with its suite unless that is called `suite`."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for file in files:
        prefix = "" if Path(file).stem == "suite" else f"{Path(file).stem}: "
        for method, found in json.loads(tinychat("eval", folder, "--suite", DATA / file, "--json")).items():
            groups = {f"{prefix}{group}": tally for group, tally in found["groups"].items()}
            results.setdefault(method, {}).update(groups)
    return results


def _suites(files: Sequence[str], results: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    if not results:
        return
    commands = " and ".join(f"`tinychat eval NAME --suite data/{file}`" for file in files)
    second = "; the second figure is at the model's own temperature" if len(results) > 1 else ""
    yield from ("", "## What it gets right", "")
    yield from (f"{commands}, on wordings, names or beginnings", f"that are held out from training{second}:", "")
    yield f"| | checks | {' | '.join(results)} |"
    yield "| --- " * (2 + len(results)) + "|"
    for group, first in next(iter(results.values())).items():
        shares = (f"{groups[group]['passed']:,} ({100 * groups[group]['share']:.1f} %)" for groups in results.values())
        yield f"| {group} | {first['count']:,} | {' | '.join(shares)} |"


def _sentences(folder: Path, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield from (
            "",
            f"## {len(sentences)} sentences",
            "",
            "Neither chosen nor edited: greedy, with `--precision f32`.",
        )
    for result in answer(folder, [{"prompt": sentence, "temperature": 0} for sentence in sentences]):
        yield from ("", f"    {result['prompt']}", *("    → " + line for line in result["completion"].splitlines()))


def _conversations(folder: Path, conversations: Sequence[Sequence[str]]) -> Iterator[str]:
    if conversations:
        yield from (
            "",
            f"## {len(conversations)} conversations",
            "",
            "Neither chosen nor edited: with the usual settings, seed 1.",
        )
    for prompts in conversations:
        session = Session()
        session.open_model(str(folder))
        session.settings.update({"seed": 1, "precision": "f32"}, Origin.FLAG)
        for prompt in prompts:
            deque(session.answer(prompt), maxlen=0)
        yield ""
        for turn in session.turns:
            yield from (f"    › {turn.prompt}", *("    " + line for line in turn.answer.splitlines()))


def _curve(curve: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Loss by step", "", "Dots: training loss; ◆: validation loss.", "")
    yield from ("    " + line for line in plot(curve["training"], *CURVE, marked=curve["validation"]))


def _answers(greedy: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (
        "",
        "## Greedy answers",
        "",
        f"At most {GREEDY_TOKENS} tokens, with `--precision f32`; a test compares with these.",
    )
    for result in greedy:
        yield from ("", f"    {result['prompt']}", *("    → " + line for line in result["completion"].splitlines()))


def _samples(samples: Sequence[dict[str, Any]]) -> Iterator[str]:
    if samples:
        title = f"Neither chosen nor edited: seeds 1 to {len(samples)}, with `--precision f32`."
        yield from ("", f"## {len(samples)} samples", "", title)
    for seed, sample in enumerate(samples, 1):
        text = sample["prompt"] + sample["completion"]
        yield from ("", f"Seed {seed}, from “{sample['prompt']}”:", "")
        yield from (f"> {line}\n>" for line in text.splitlines())


def answer(folder: Path, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the model's answers to prompts, each with its own settings."""
    if not requests:
        return []
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    return [
        json.loads(line) for line in tinychat("-m", folder, "--jsonl", "--precision", "f32", stdin=lines).splitlines()
    ]


def tinychat(*words: str | Path, stdin: str | None = None) -> str:
    """Run tinychat and return its standard output; its standard error is passed through."""
    command = [sys.executable, "-m", "tinychat", *map(str, words)]
    environment = os.environ | {"TINYCHAT_HOME": str(HOME)}
    completed = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return completed.stdout


if __name__ == "__main__":
    main()
