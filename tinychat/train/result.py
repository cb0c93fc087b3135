"""What a run leaves: the model's folder, with all that is needed to make it again, and a card for people."""

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

import tinychat
from tinychat.events import Ended
from tinychat.settings import Settings
from tinychat.store.models import ModelInfo, save_model
from tinychat.textutil import count, duration, percent
from tinychat.train.announcing import layers
from tinychat.train.data import TrainingText
from tinychat.train.evaluation import Evaluation
from tinychat.train.plan import Machine, Plan
from tinychat.train.report import report, told_samples

LIBRARIES = ("torch", "lightning", "tokenizers", "numpy")
KEPT_TOKENS = 2_000
"""of the validation text that go with the model: what it loses in a coarser precision is measured on them"""
ON_THE_CARD = ("overfits", "copies", "time")
"""rows of the report at the end; the card has the others in its own words"""


@dataclass(frozen=True)
class Figures:
    """How far the weights that are saved have come."""

    step: int
    seconds: float
    evaluation: Evaluation | None
    """None: there has been none yet"""
    curve: dict[str, Any]
    ended: Ended | None = None
    """how the run ended; None: it goes on"""


@dataclass(frozen=True)
class ModelWriter:
    """Writes the folder of a model in training, and of the one that it becomes."""

    name: str
    plan: Plan
    text: TrainingText
    machine: Machine
    parameters: int

    def write(self, folder: Path, weights: dict[str, Tensor], figures: Figures) -> None:
        """Writes it, whole or not at all."""
        text = self.text
        info = ModelInfo(
            self.name,
            folder,
            text.mode,
            self.plan.config.to_dict(),
            text.tokenizer.kind,
            self.parameters,
            text.template,
            self._settings,
            self.plan.recipe.purpose or f"{self._begun}trained on {text.facts.name}",
        )
        training, card = self._training(figures), self._card(figures)
        save_model(info, weights, text.tokenizer, text.reader, training=training, card=card, step=figures.step)

    @property
    def _settings(self) -> dict[str, float]:
        """What suits the model better than the defaults: how samples are drawn, and their length where it is more."""
        recipe = self.plan.recipe
        temperature = {} if recipe.sample_temperature is None else {"temperature": recipe.sample_temperature}
        longer = recipe.sample_tokens > Settings().max_tokens
        return temperature | ({"max_tokens": recipe.sample_tokens} if longer else {})

    @property
    def _begun(self) -> str:
        """What the model was before it was trained on this text."""
        return f"first {self.text.start.info.name}, then " if self.text.start else ""

    def _training(self, figures: Figures) -> dict[str, Any]:
        """All that is needed to make the model again, and how it went."""
        facts, result = self.text.facts, figures.evaluation
        return {
            "run": self.name,
            "recipe": self.plan.recipe.to_dict(),
            "seed": self.plan.recipe.seed,
            "data": {
                "name": facts.name,
                "fingerprint": self.text.fingerprint,
                "characters": facts.characters,
                "documents": facts.documents,
                "tokens": facts.tokens,
                "train_tokens": self.plan.train_tokens,
                "val_tokens": self.plan.val_tokens,
                **({"mix": [asdict(source) for source in facts.mix]} if facts.mix else {}),
            },
            "from": self.text.start.to_dict() if self.text.start else None,
            "tokenizer": {
                "kind": facts.tokenizer,
                "vocab_size": facts.vocab_size,
                "fingerprint": self.text.tokenizer.fingerprint,
            },
            "machine": str(self.machine),
            "versions": {
                "tinychat": tinychat.__version__,
                "python": platform.python_version(),
                **{library: version(library) for library in LIBRARIES},
            },
            "step": figures.step,
            "seconds": round(figures.seconds, 3),
            **({"validation_ids": self.text.beginning(KEPT_TOKENS)} if self.text.split == "val" else {}),
            "split": self.text.split,
            "loss": result.loss if result else None,
            "perplexity": result.perplexity if result else None,
            "bits_per_character": result.bits_per_character(self.text.characters_per_token) if result else None,
            "accuracy": result.accuracy if result else None,
            "curve": figures.curve,
            **(self._end(figures.ended) if figures.ended else {}),
        }

    @staticmethod
    def _end(ended: Ended) -> dict[str, Any]:
        """What is known only when a run is over."""
        return {
            "reason": ended.reason,
            "training_loss": ended.training_loss,
            "last": {"step": ended.step, "loss": ended.last_loss, "training_loss": ended.last_training_loss},
            "overfits_since": ended.overfits_since,
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

    def _card(self, figures: Figures) -> str:
        """The model card: Markdown."""
        config, facts, recipe, result = self.plan.config, self.text.facts, self.plan.recipe, figures.evaluation
        measured = "the text it was trained on"
        if self.plan.val_tokens:
            part = "the last parts of each" if facts.mix else "its last part"
            part = "documents from all over it" if facts.rows else part
            measured = f"{part}, which it was not trained on"
        source = f"; {facts.source_vocab_size:,} of what is translated" if facts.source_vocab_size else ""
        feed_forward = "no feed-forward" if config.feed_forward == "none" else config.feed_forward
        position = "no" if config.position == "none" else config.position
        step = f"{self.plan.batch_size} × {config.context} tokens"
        if facts.rows:
            step = f"{count(self.plan.batch_size, 'document')} of {self.plan.row_tokens:.0f} tokens on average"
        lines = [
            f"# {self.name}",
            "",
            f"A tiny language model, {self._begun}trained with tinychat {tinychat.__version__} on {facts.name}.",
            "",
            f"    tinychat -m {self.name}",
            "",
            "| | |",
            "| --- | --- |",
            f"| for | {self.text.mode}{f': {recipe.purpose}' if recipe.purpose else ''} |",
            f"| parameters | {self.parameters:,} |",
            f"| architecture | {layers(config)}, {count(config.n_head, 'head')}, "
            f"{feed_forward}, {position} positions"
            f"{f', mixed with n-grams up to {config.ngram_order} and matches' if config.ngram_order else ''} |",
            f"| context | {config.context} tokens |",
            f"| tokenizer | {facts.tokenizer}, {facts.vocab_size:,} tokens{source} |",
            f"| text | {facts.characters:,} characters in {count(facts.documents, 'document')} |",
            f"| training | {figures.step:,} steps of {step} with "
            f"{recipe.optimizer}, {duration(figures.seconds)} on {self.machine} |",
        ]
        if self.text.start:
            start = self.text.start
            lines += [f"| begun from | {start.info.name}, weights {start.fingerprint[:16]}… (SHA-256) |"]
        if result:
            lines += [
                f"| loss | {result.loss:.4f} nats per token, over {measured} |",
                f"| perplexity | {result.perplexity:.2f} |",
                f"| bits per character | {result.bits_per_character(self.text.characters_per_token):.3f} |",
            ]
            if result.accuracy is not None:
                lines += [f"| accuracy | {percent(result.accuracy)} of the tokens were the likeliest |"]
        if figures.ended:
            told = [(about, text.replace("|", "\\|")) for about, text in report(figures.ended)]  # a bar ends a cell
            lines += [f"| {about} | {text} |" for about, text in told if about in ON_THE_CARD]
        lines += [
            "",
            "It knows its text and nothing else: what it says is made up, in the manner of that text, and may repeat "
            "parts of it word for word. `training.json` holds the recipe, the fingerprint of the text, the seed and "
            "the versions, with which it can be made again.",
            "",
            "## To make it again",
            "",
            "Save this as recipe.toml, then run `tinychat train --recipe recipe.toml`.",
            "",
            *("    " + line for line in recipe.to_toml().splitlines()),
        ]
        samples = told_samples(figures.ended) if figures.ended else []
        if samples:
            lines += ["", "## Samples", "", "As they came, not chosen."]
        for sample in samples:
            # Indented, and not fenced: a sample may hold anything, fences too.
            lines += ["", *("    " + line for line in sample.splitlines()), "", "---"]
        return "\n".join(lines).removesuffix("\n---") + "\n"
