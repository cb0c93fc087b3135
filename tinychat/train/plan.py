"""A plan: the recipe with every choice made, what the planner knew when it made them, and the plan in words.

Needs no torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinychat.events import Planned
from tinychat.model.config import LARGEST_TABLE, ModelConfig
from tinychat.textutil import count, duration
from tinychat.tokenizer.rows import count_kept
from tinychat.train.recipe import Recipe
from tinychat.train.rows import FOLDS, count_windows
from tinychat.train.schedule import Schedule

SAMPLE_SECONDS, LEAVING = 0.4, 2.0
"""seconds: a sample, estimated; writing the model, and the end of the process"""
COMPILING_PAYS = 480.0
"""seconds of a run in which steps that are a tenth quicker win back twice the half minute that compiling takes"""
COPY_SECONDS, LONGEST_COPY = 40e-9, 1.0
"""seconds of looking for what samples copied, of a token of the text; and at most"""
PROCESS_MEMORY = 450_000_000
"""bytes that Python, torch and lightning take before there is a model"""
SHORTEST_CONTEXT = 8


@dataclass(frozen=True)
class SourceFacts:
    """One text of a mix."""

    name: str
    share: float
    """of all windows that are drawn"""
    characters: int
    documents: int
    tokens: int
    fingerprint: str = ""
    rows: int = 0
    """documents, a row each; 0: it is cut into windows"""


@dataclass(frozen=True)
class TextFacts:
    """What the planner knows of a text."""

    name: str
    characters: int
    documents: int
    tokens: int
    """in all, of which the last `validation_fraction` is kept for validation"""
    vocab_size: int
    tokenizer: str
    mix: tuple[SourceFacts, ...] = ()
    """the texts of a mix; each ends with a part of its own for validation"""
    rows: int = 0
    """documents, a row each; 0: it is cut into windows"""
    longest_row: int = 0
    """the most tokens of a row"""
    source_vocab_size: int | None = None
    """different tokens of what an encoder reads; None: there is no encoder"""

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """The texts of a mix, or the one text."""
        one = SourceFacts(self.name, 1.0, self.characters, self.documents, self.tokens, rows=self.rows)
        return self.mix or (one,)

    @property
    def row_tokens(self) -> float:
        """Of documents, a row each: tokens on average; 0: rows are windows."""
        return sum(source.share * source.tokens / source.rows for source in self.sources) if self.rows else 0.0


@dataclass(frozen=True)
class SplitSize:
    """How much of one text is trained on, and how much is held out for validation."""

    share: float
    """of the text in all that is drawn from a mix"""
    train_tokens: int
    val_tokens: int
    """0: the text is too short to hold out a part of it; of documents, an estimate"""
    train_rows: int = 0
    """documents, a row each; 0: the text is cut into windows"""
    val_rows: int = 0


def split_size(source: SourceFacts, validation_fraction: float) -> SplitSize:
    """Return how much of a text is trained on and held out; nothing is held out of a text too short for it."""
    if source.rows:
        val_rows = count_kept(source.rows, validation_fraction)
        val_tokens = source.tokens * val_rows // source.rows
        return SplitSize(source.share, source.tokens - val_tokens, val_tokens, source.rows - val_rows, val_rows)
    val_tokens = source.tokens - int(source.tokens * (1 - validation_fraction))
    if val_tokens <= SHORTEST_CONTEXT:
        val_tokens = 0
    return SplitSize(source.share, source.tokens - val_tokens, val_tokens)


@dataclass(frozen=True)
class Machine:
    """What the planner knows of where it trains."""

    device: str
    precision: Literal["f32", "bf16"]
    threads: int
    """of all processes on this machine"""
    processes: int = 1
    """that train together"""

    def __str__(self) -> str:
        processes = f", {self.processes} processes" if self.processes > 1 else ""
        threads = f", {count(self.threads, 'thread')}" if self.device == "cpu" else ""
        return f"{self.device}{processes}{threads}, {self.precision}"


@dataclass(frozen=True)
class Plan:
    """A recipe in which nothing is left open, and what is expected of it."""

    recipe: Recipe
    config: ModelConfig
    batch_size: int
    available: float | None
    """seconds from the first step to the end of the process; None: by steps"""
    steps: int
    """in all; estimated where the clock decides"""
    step_seconds: float
    splits: tuple[SplitSize, ...]
    """of each text of a mix; else one"""
    glance_windows: int
    """windows of an evaluation on the way"""
    final_windows: int
    """windows of the evaluation at the end"""
    notices: tuple[str, ...] = ()
    documents_tokens: float = 0.0
    """of documents, a row each: tokens of a row on average; 0: rows are windows"""

    @property
    def row_tokens(self) -> float:
        """Tokens of a row, on average."""
        return min(self.documents_tokens, self.config.context) or self.config.context

    @property
    def warmup_steps(self) -> int:
        """As the recipe says, and no more than a tenth of the run."""
        return min(self.recipe.warmup_steps, self.steps // 10)

    @property
    def schedule(self) -> Schedule:
        """The learning rate's schedule."""
        return Schedule(self.recipe.schedule, self.warmup_steps, self.recipe.decay, self.recipe.final_rate)

    @property
    def epochs(self) -> float:
        """How often the text is seen; of a mix, how often what is seen was seen, on average."""
        return sum(split.share * epochs for split, epochs in zip(self.splits, self.epochs_of_each, strict=True))

    @property
    def epochs_of_each(self) -> tuple[float, ...]:
        """How often each text is seen."""
        rows = self.steps * self.batch_size
        tokens = rows * self.config.context
        return tuple(
            split.share * rows / split.train_rows if split.train_rows else split.share * tokens / split.train_tokens
            for split in self.splits
        )

    @property
    def epoch_rows(self) -> int:
        """The rows of an epoch: all that there are, each once."""
        return count_rows(self.recipe, self.config, self.splits)

    def epoch_after(self, step: int) -> int | None:
        """The epoch that ends with a step, from 1; None where none does."""
        before, after = ((step - past) * self.batch_size // self.epoch_rows for past in (1, 0))
        return after if after > before else None

    @property
    def train_tokens(self) -> int:
        """Tokens of all texts that are trained on."""
        return sum(split.train_tokens for split in self.splits)

    @property
    def val_tokens(self) -> int:
        """Tokens of all texts that are held out; 0: the text is too short to hold out a part of it."""
        return sum(split.val_tokens for split in self.splits)

    @property
    def token_seconds(self) -> float:
        """Of evaluating a token, estimated: forward in f32 takes about half the time of a step in bf16."""
        return 0.6 * self.step_seconds / (self.batch_size * self.row_tokens)

    def compiling_pays(self, machine: Machine) -> bool:
        """Whether the layers are compiled where nobody says: for long runs by the clock, on a CPU.

        In a run by steps the machine's speed must not matter; how much a GPU gains nobody has measured; and documents
        differ in length, for each of which all would be compiled again.
        """
        return (
            not self.documents_tokens
            and machine.device == "cpu"
            and self.available is not None
            and self.available >= COMPILING_PAYS
        )

    def training_seconds(self, token_seconds: float, sample_seconds: float) -> float:
        """What is left for training when the end is provided for: evaluations, samples, writing the model, leaving.

        Args:
            token_seconds: of evaluating a token.
            sample_seconds: of a sample.
        """
        if self.available is None:
            return math.inf
        # Where all is looked at on the way too, the last look on the way is the final one.
        windows = self.final_windows + (self.glance_windows if self.glance_windows < self.final_windows else 0)
        windows += self.glance_windows if self.val_tokens else 0  # the text that was trained on is looked at too
        ending = 1.3 * windows * self.row_tokens * token_seconds + 1.5 * sample_seconds + LEAVING
        ending += min(LONGEST_COPY, COPY_SECONDS * self.train_tokens)
        return max(self.step_seconds, self.available - ending)


def count_rows(recipe: Recipe, config: ModelConfig, splits: Sequence[SplitSize]) -> int:
    """Return the rows of an epoch: windows, or documents."""
    stride = recipe.stride or config.context
    return sum(split.train_rows or count_windows(split.train_tokens, config.context, stride) for split in splits)


def estimate_memory(config: ModelConfig, parameters: int, rows: int, tokens: int, shards: int = 1) -> int:
    """Bytes of a process: weights, gradients, two moments and the best weights in f32; activations; n-grams; itself.

    Args:
        rows: of a batch, that the process learns from.
        tokens: that are trained on.
        shards: that weights, gradients and moments are cut into; the leader has whole weights too, to look at them.
    """
    per_parameter = 20 if shards == 1 else 16 / shards + 8
    per_layer = 4 * (12 * config.d_model + 3 * config.feed_forward_width + 3 * config.n_head * config.context)
    per_token = config.n_layer * per_layer + 12 * config.vocab_size * (1 + config.ngram_order)
    counts = min(LARGEST_TABLE, tokens * config.vocab_size) if config.ngram_order else 0
    activations = rows * config.context * per_token
    return int(per_parameter * parameters) + activations + (2 + FOLDS) * counts + PROCESS_MEMORY


def summarize_plan(plan: Plan, facts: TextFacts, machine: Machine, parameters: int) -> Planned:
    """Return the plan in words: the three lines that are shown before training starts."""
    config, tokens = plan.config, round(plan.batch_size * plan.row_tokens)
    rows, shards = -(-plan.batch_size // machine.processes), machine.processes if plan.recipe.strategy == "fsdp" else 1
    memory = estimate_memory(config, parameters, rows, plan.train_tokens, shards)
    ends = f"the ends of each, {plan.val_tokens:,} in all," if facts.mix else f"the last {plan.val_tokens:,}"
    if facts.rows:
        kind = "pairs" if facts.source_vocab_size else "documents"
        ends = f"{sum(split.val_rows for split in plan.splits):,} of {facts.rows:,} {kind}"
    kept = f"{ends} measure the model" if plan.val_tokens else "none kept for validation"
    times = " and ".join(f"{epochs:,.1f}" for epochs in plan.epochs_of_each)
    through = "through them" if facts.mix else "through the text"
    by_clock = plan.available is not None
    seconds = plan.available if plan.available is not None else plan.steps * plan.step_seconds
    begun = f", begun as {Path(plan.recipe.from_model).name}" if plan.recipe.from_model else ""
    steps = ("about " if by_clock else "") + count(plan.steps, "step")
    if plan.recipe.epochs is not None:
        steps = f"{count(plan.recipe.epochs, 'epoch')}, {steps}"
    different = f"{facts.vocab_size:,}"
    if facts.source_vocab_size:
        different = f"{facts.source_vocab_size:,} → {different}"
    lines = (
        f"text   {facts.name}: {count(facts.characters, 'character')}, {count(facts.tokens, 'token')} "
        f"({facts.tokenizer}, {different} different); {kept}",
        f"model  {layers(config)}, {count(config.n_head, 'head')}, "
        f"context {config.context}, {count(parameters, 'parameter')}, dropout {config.dropout:g}{begun}",
        f"time   about {duration(seconds)} on {machine}: {steps} of {count(tokens, 'token')}, "
        f"{times} times {through}; {memory / 1e6:,.0f} MB of memory{' each' * (machine.processes > 1)}",
    )
    return Planned(
        lines=lines,
        parameters=parameters,
        tokens=plan.train_tokens,
        steps=None if by_clock else plan.steps,
        seconds=plan.available,
        device=str(machine),
        memory=memory,
        epochs=plan.recipe.epochs,
    )


def layers(config: ModelConfig) -> str:
    """`4 layers of 128`; `3 + 3 layers of 256` with an encoder."""
    number = count(config.n_layer, "layer")
    return f"{f'{config.n_encoder_layer} + ' if config.encoder_decoder else ''}{number} of {config.d_model}"
