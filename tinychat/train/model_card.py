"""The records beside a model's weights: `training.json` for programs, and a model card for people."""

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import tinychat
from tinychat.events import Ended
from tinychat.store.models import MAX_VALIDATION_IDS, RECIPE_HEADING, VALIDATION_IDS
from tinychat.store.names import typed
from tinychat.textutil import count, duration, percent
from tinychat.train.data import TrainingText
from tinychat.train.evaluation import Evaluation
from tinychat.train.planner import Machine, Plan, describe_layers
from tinychat.train.report import format_samples, report

LIBRARIES = ("torch", "lightning-fabric", "tokenizers", "numpy")
CARD_ROWS = ("start", "overfits", "mixture", "copies", "time")
"""Rows of the final report that go on the card, which words the others itself."""


@dataclass(frozen=True)
class Figures:
    """Progress and quality of the weights that are saved."""

    step: int
    seconds: float
    evaluation: Evaluation | None
    """of the whole split once the run has ended; the best on a part of it before that, maybe of other weights; None
    before the first evaluation"""
    curve: dict[str, Any]
    ended: Ended | None = None
    """Last event of the run; None while it goes on."""


@dataclass(frozen=True)
class ModelFacts:
    """The facts about a model that are known from the first step on."""

    name: str
    plan: Plan
    text: TrainingText
    machine: Machine
    parameters: int

    @property
    def origin(self) -> str:
        """`first MODEL, then ` for a model that started from another one; else empty."""
        return f"first {self.text.base.info.name}, then " if self.text.base else ""

    def bits_per_character(self, result: Evaluation) -> float:
        """Return the loss of an evaluation in bits per character."""
        return result.bits_per_character(self.text.characters_per_token(self.plan.config.context_length))


def training_record(model: ModelFacts, figures: Figures) -> dict[str, Any]:
    """Return the contents of `training.json`: all that is needed to train the model again, and how training went."""
    plan, text, result = model.plan, model.text, figures.evaluation
    facts, tokenizer = text.facts, text.tokenizer
    record = {
        "run": model.name,
        "recipe": plan.recipe.to_dict(),
        "seed": plan.recipe.seed,
        "data": {
            "name": facts.name,
            "fingerprint": text.fingerprint,
            "characters": facts.characters,
            "documents": facts.documents,
            "tokens": facts.tokens,
            "train_tokens": plan.train_tokens,
            "val_tokens": plan.val_tokens,
            "val_fraction": plan.val_fraction,
            **({"mix": [asdict(source) for source in facts.mix]} if facts.mix else {}),
        },
        "from": text.base.to_dict() if text.base else None,
        "tokenizer": {"kind": facts.tokenizer, "vocab_size": facts.vocab_size, "fingerprint": tokenizer.fingerprint},
        "machine": str(model.machine),
        "versions": {
            "tinychat": tinychat.__version__,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
        },
        "step": figures.step,
        "seconds": round(figures.seconds, 3),
        **({VALIDATION_IDS: text.first_eval_ids(MAX_VALIDATION_IDS)} if text.split == "val" else {}),
        "split": text.split,
        "curve": figures.curve,
    }
    measured = None
    if result is not None:
        measured = {
            "loss": result.loss,
            "perplexity": result.perplexity,
            "bits_per_character": model.bits_per_character(result),
            "accuracy": result.accuracy,
            "tokens": result.tokens,
        }
    if (ended := figures.ended) is None:
        return record | {"best_so_far": measured}
    return (
        record
        | (measured or {})
        | {
            "reason": ended.reason,
            "training_loss": ended.training_loss,
            "last": {
                "step": ended.step,
                "part_loss": ended.last_part_loss,
                "best_part_loss": ended.best_part_loss,
                "part_tokens": ended.part_tokens,
                "training_loss": ended.last_training_loss,
            },
            "overfits_since": ended.overfits_since,
            **({"mixture": ended.mixture | {"tokens": ended.mixture_tokens}} if ended.mixture else {}),
            **({} if ended.start_loss is None else {"start_loss": ended.start_loss}),
            "copied": {
                "text": ended.copied,
                "characters": len(ended.copied),
                "position": round(ended.copied_position, 6),
                "searched": round(ended.copied_searched, 6),
            },
            "times": {
                "start": round(ended.start_seconds, 3),
                "steps": round(ended.step_seconds, 3),
                "evaluations": round(ended.evaluation_seconds, 3),
            },
            "samples": list(ended.samples),
            "prompts": list(ended.prompts),
        }
    )


def model_card(model: ModelFacts, figures: Figures) -> str:
    """Return the model card in Markdown."""
    plan, text, result = model.plan, model.text, figures.evaluation
    config, facts, recipe = plan.config, text.facts, plan.recipe
    evaluated_on = "the text it was trained on"
    if plan.val_tokens:
        part = (
            "documents from all over it" if facts.rows else "the last parts of each" if facts.mix else "its last part"
        )
        evaluated_on = f"{part}, which it was not trained on"
    source = f"; {facts.source_vocab_size:,} of what is translated" if facts.source_vocab_size else ""
    feed_forward = "no feed-forward" if config.feed_forward == "none" else config.feed_forward
    position = "no" if config.position == "none" else config.position
    step = f"{plan.batch_size} × {plan.row_length} tokens"
    if facts.rows:
        step = f"{count(plan.batch_size, 'document')} of {plan.row_tokens:.0f} tokens on average"
    taken = figures.ended.step if figures.ended else figures.step
    kept = "" if taken == figures.step else f"; the weights are those of step {figures.step:,}, the best"
    rows = [
        ("for", f"{text.mode}{f': {recipe.description}' if recipe.description else ''}"),
        ("parameters", f"{model.parameters:,}"),
        (
            "architecture",
            f"{describe_layers(config)}, {count(config.n_head, 'head')}, {feed_forward}, {position} positions"
            f"{f', mixed with n-grams up to {config.ngram_order} and of the context' if config.ngram_order else ''}",
        ),
        ("context", f"{config.context_length} tokens"),
        ("tokenizer", f"{facts.tokenizer}, {facts.vocab_size:,} tokens{source}"),
        ("text", f"{facts.characters:,} characters in {count(facts.documents, 'document')}"),
        (
            "training",
            f"{taken:,} steps of {step} with {recipe.optimizer}, {duration(figures.seconds)} on {model.machine}{kept}",
        ),
    ]
    if text.base:
        rows += [("begun from", f"{text.base.info.name}, weights {text.base.fingerprint[:16]}… (SHA-256)")]
    if result and not figures.ended:
        part = f"{count(result.tokens, 'token')} of {evaluated_on}"
        rows += [("best loss so far", f"{result.loss:.4f} nats per token, over {part}")]
    elif result:
        rows += [
            ("loss", f"{result.loss:.4f} nats per token, over {evaluated_on}"),
            ("perplexity", f"{result.perplexity:.2f}"),
            ("bits per character", f"{model.bits_per_character(result):.3f}"),
        ]
        if result.accuracy is not None:
            rows += [("accuracy", f"{percent(result.accuracy)} of the tokens were the likeliest")]
    if figures.ended:
        rows += [row for row in report(figures.ended) if row[0] in CARD_ROWS]
    lines = [
        f"# {model.name}\n",
        f"A tiny language model, {model.origin}trained with tinychat {tinychat.__version__} on {facts.name}.\n",
        f"    tinychat -m {typed(model.name)}\n",
        "| | |",
        "| --- | --- |",
        *(_table_row(*row) for row in rows),
        "\nIt knows its text and nothing else: it makes up what it says in the manner of that text, and may repeat "
        "parts of it word for word. `training.json` holds the recipe, the fingerprint of the text, the seed and "
        "the versions needed to train it again.\n",
        f"{RECIPE_HEADING}\n",
        "Save this as recipe.toml, then run `tinychat train --recipe recipe.toml`.\n",
        *("    " + line for line in recipe.to_toml().splitlines()),
    ]
    samples = format_samples(figures.ended) if figures.ended else []
    if samples:
        lines += ["\n## Samples\n", "Neither chosen nor edited."]
    for sample in samples:
        # Indented rather than fenced, as a sample may contain fences.
        lines += ["", *("    " + line for line in sample.splitlines()), "", "---"]
    return "\n".join(lines).removesuffix("\n---") + "\n"


def _table_row(about: str, cell: str) -> str:
    """Return a row of a table in Markdown, in which a bar would end the cell, and a line break the row."""
    shown = " ".join(cell.splitlines()).replace("|", "\\|")
    return f"| {about} | {shown} |"
