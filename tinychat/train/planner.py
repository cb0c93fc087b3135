"""The planner: fills in what a recipe leaves open, from the text, the machine's speed and the time.

It chooses the tokenizer first, then the size of the model, then what depends on the number of steps. Needs no torch.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from tinychat.errors import SourceError
from tinychat.events import Planned
from tinychat.generate.engine import window_starts
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig
from tinychat.textutil import count, duration, percent
from tinychat.train.batches import count_windows
from tinychat.train.ending import Ending
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe, Schedule, planned_interval
from tinychat.train.sizes import (
    EVAL_WORK,
    MAX_PARAMETERS_BY_STEPS,
    Measure,
    SplitSize,
    TextFacts,
    apply_size,
    candidate_sizes,
    choose_ngram_order,
    choose_size,
    split_size,
)
from tinychat.train.split import take_fraction

MAX_CHAR_TEXT = 32_000_000
"""Characters; longer texts in words get word pieces, so that more text is seen in the same time."""
CHAR_VOCABULARY, WORDPIECE_VOCABULARIES = 8192, (512, 1024, 2048, 4096, 8192)

MAX_DEFAULT_SECONDS, MIN_DEFAULT_SECONDS = 180.0, 10.0
"""Bounds of the duration of a run whose recipe sets none."""
MIN_SECONDS_TO_COMPILE = 480.0
"""Duration of a run by the clock in which steps that are 10 % faster save twice the half minute that compiling takes.
Runs by steps are not compiled by default: they must not depend on the machine's speed."""

FULL_LR_VIEWS = 12
"""Views of the text up to which the peak learning rate is not lowered."""
MANY_EPOCHS = 20
"""Epochs above which the plan warns of memorization."""
MAX_DROPOUT = 0.3
BASE_MODEL_LR_FACTOR = 0.3
"""Learning rate factor for a run with `--from`: the full rate would undo part of the earlier training first."""
NGRAM_LR_FACTOR = 0.6
"""Learning rate factor of matrices in models with n-grams, which leave less to learn."""
LONG_RUN, LONG_LR_FACTOR, LONG_WEIGHT_DECAY = 1_000, 2 / 3, 0.1
"""Steps from which matrices of models of a running text without n-grams learn more slowly, and decay."""
MIN_LR_FACTOR = 0.05
"""Lower bound of the factor for the number of views."""

EVAL_TOKENS = 250_000
"""Maximum tokens of an evaluation during training in a run by steps."""
EVAL_FRACTION = 0.006
"""Maximum fraction of a run by the clock that one evaluation during training takes."""
MIN_EVAL_WINDOWS = 16
MAX_FINAL_FRACTION = 0.5
"""Maximum fraction of a run by the clock that the final evaluation takes."""
FINAL_SAMPLES = 3
"""Number of samples at the end, unless there are more prompts."""

MIN_COUNTED, MAX_COUNTED, COUNTED_PER_SECOND = 4_000_000, 20_000_000, 100_000
"""Bounds of the tokens whose n-grams are counted, and tokens for each second of a run by the clock: a tenth of it."""
COUNT_MEMORY = 90
"""Bytes for each token whose n-grams are counted."""
PROCESS_MEMORY = 450_000_000
"""Bytes that Python, torch and lightning take without a model."""


# --- the machine -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """Device, precision and processes of a run."""

    device: str
    precision: Literal["f32", "bf16"]
    threads: int
    """CPU threads of all processes on this machine."""
    processes: int = 1
    """Number of processes that train together, on all machines."""

    def __str__(self) -> str:
        processes = f", {self.processes} processes" if self.processes > 1 else ""
        threads = f", {count(self.threads, 'thread')}" if self.device == "cpu" else ""
        return f"{self.device}{processes}{threads}, {self.precision}"


# --- what the text alone decides -------------------------------------------------------------------------------------


def choose_tokenizer(recipe: Recipe, characters: int, sample: str, mode: str) -> tuple[str, int | None]:
    """Return the kind of tokenizer and its maximum vocabulary size; None leaves the size to the tokenizer.

    A tiny model learns fastest from characters, so most texts get them. Text in words with spaces between, as the
    `sample` of its beginning shows, gets word pieces if it is conversations or translations, or too long to be seen in
    the time.
    """
    kind = recipe.tokenizer
    if kind is None:
        has_spaces = sum(map(str.isspace, sample)) > 0.05 * len(sample)
        kind = "wordpiece" if has_spaces and (mode != "completion" or characters > MAX_CHAR_TEXT) else "char"
    if recipe.vocab_size is not None or kind not in ("char", "wordpiece", "bpe"):
        return kind, recipe.vocab_size
    if kind == "char":
        return kind, CHAR_VOCABULARY
    ideal = 3 * characters**0.5  # distinct words grow with the length of a text in this way (Heaps' law)
    return kind, min(WORDPIECE_VOCABULARIES, key=lambda size: abs(size - ideal))


def default_seconds(characters: int) -> float:
    """Return the duration of a run whose recipe sets none: longer texts get more time."""
    seconds = MAX_DEFAULT_SECONDS * math.pow(characters / 2_000_000, 0.45)
    return min(MAX_DEFAULT_SECONDS, max(MIN_DEFAULT_SECONDS, seconds))


PLANNED_FIELDS = (
    "n_layer", "n_head", "d_model", "context_length", "previous_token_embeddings", "bigram_embedding", "ngram_order",
    "qk_norm", "dropout", "attention_dropout",
)  # fmt: skip
"""Fields of the architecture that the planner chooses."""


def count_limit(seconds: float | None) -> int:
    """Return how many tokens' n-grams are counted, at most, in a run of some seconds; None for one by steps."""
    if seconds is None:
        return MAX_COUNTED
    return int(min(MAX_COUNTED, max(MIN_COUNTED, COUNTED_PER_SECOND * seconds)))


# --- the plan --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A recipe with every choice made, and estimates for its run."""

    recipe: Recipe
    config: ModelConfig
    batch_size: int
    available: float | None
    """Seconds from the first step to the end of the process; None for a run by steps or epochs."""
    steps: int
    """Number of steps; an estimate for a run by the clock."""
    step_seconds: float
    splits: tuple[SplitSize, ...]
    eval_windows: int
    """Number of windows, or documents, of an evaluation during training: of one fixed part of the validation split."""
    token_seconds: float = 0.0
    """Seconds to evaluate a token."""
    val_fraction: float = 1.0
    """Fraction of what is held out that measures the model: less than 1 where there is no time for all of it."""
    counted_tokens: int = MAX_COUNTED
    """Tokens of the text whose n-grams are counted, at most."""
    notices: tuple[str, ...] = ()
    document_tokens: float = 0.0
    """Mean number of tokens of a document, if documents are rows; 0 if rows are windows."""
    longest_row: int = 0
    """Number of tokens of the longest document, likewise."""

    @property
    def row_length(self) -> int:
        """Maximum number of tokens of a row: the context length, or less of a text too short to fill it."""
        return min(self.config.context_length, self.longest_row or longest_window(self.splits))

    @property
    def row_tokens(self) -> float:
        """Mean number of tokens of a row."""
        return min(self.document_tokens, self.row_length) or self.row_length

    @property
    def warmup_steps(self) -> int:
        """Warm-up steps of the recipe, at most a tenth of the run."""
        return min(self.recipe.warmup_steps, self.steps // 10)

    @property
    def schedule(self) -> Schedule:
        recipe = self.recipe
        return Schedule(recipe.schedule, self.warmup_steps, recipe.lr_decay_fraction, recipe.min_lr_ratio)

    @property
    def epochs(self) -> float:
        """Number of epochs; of a mix, the mean over its sources, weighted by share."""
        return sum(split.share * epochs for split, epochs in zip(self.splits, self.epochs_per_source, strict=True))

    @property
    def epochs_per_source(self) -> tuple[float, ...]:
        rows = self.steps * self.batch_size
        tokens = rows * self.row_length
        return tuple(
            split.share * rows / split.train_rows if split.train_rows else split.share * tokens / split.train_tokens
            for split in self.splits
        )

    @property
    def epoch_rows(self) -> int:
        return count_rows(self.recipe, self.row_length, self.splits)

    def epoch_after(self, step: int) -> int | None:
        """Return the number of the epoch, from 1, that ends with a step; None if none does."""
        before, after = ((step - past) * self.batch_size // self.epoch_rows for past in (1, 0))
        return after if after > before else None

    @property
    def train_tokens(self) -> int:
        return sum(split.train_tokens for split in self.splits)

    @property
    def val_tokens(self) -> int:
        """Number of tokens that measure the model; of a document, the context holds so many at most."""
        tokens = sum(take_fraction(split.val_tokens, self.val_fraction) for split in self.splits)
        return math.ceil(tokens * self.row_tokens / self.document_tokens) if self.document_tokens else tokens

    @property
    def val_rows(self) -> int:
        return sum(take_fraction(split.val_rows, self.val_fraction) for split in self.splits)

    @property
    def predicted_tokens(self) -> float:
        """Mean number of tokens that a window, or a document, of an evaluation predicts."""
        return self.row_tokens if self.document_tokens else window_starts(0, self.config.context_length).step

    @property
    def final_windows(self) -> int:
        """Number of windows, or documents, of the final evaluation: all of the split."""
        if self.document_tokens:
            return self.val_rows or sum(split.train_rows for split in self.splits)
        return len(window_starts(self.val_tokens or self.train_tokens, self.config.context_length))

    def with_evaluations(self, token_seconds: float) -> Self:
        """Return this plan with sizes of evaluations that suit the seconds that it takes to evaluate a token."""
        plan, eval_tokens = dataclasses.replace(self, token_seconds=token_seconds, val_fraction=1.0), EVAL_TOKENS
        if self.available is not None:
            tokens = self.available / max(token_seconds, 1e-9)  # that an evaluation would take all of the time for
            passes = 1 if self.recipe.from_model is None else 2  # the model that it starts from is measured as well
            eval_tokens, most = int(EVAL_FRACTION * tokens), int(MAX_FINAL_FRACTION * tokens / passes)
            plan = dataclasses.replace(plan, val_fraction=min(1.0, most / (plan.val_tokens or 1)))
        windows = min(plan.final_windows, max(MIN_EVAL_WINDOWS, int(eval_tokens / plan.predicted_tokens)))
        return dataclasses.replace(plan, eval_windows=windows)

    def make_ending(self) -> Ending:
        """Return what follows the last step, by estimates."""
        tokens = self.val_tokens or self.train_tokens
        part = int(min(tokens, self.eval_windows * self.predicted_tokens))
        samples = max(FINAL_SAMPLES, len(self.recipe.sample_prompt or ())) if self.recipe.sample_tokens else 0
        final = tokens if self.eval_windows < self.final_windows else 0
        return Ending(self.available, part, final, self.train_tokens, samples, self.token_seconds)

    def training_seconds(self, ending: Ending) -> float:
        """Return the seconds for training that remain beside the end of the run; at least those of a step."""
        if self.available is None:
            return math.inf
        return max(self.step_seconds, self.available - ending.seconds())


def count_rows(recipe: Recipe, row_length: int, splits: Sequence[SplitSize]) -> int:
    """Return the number of rows of an epoch: documents, or windows of `row_length` tokens."""
    stride = recipe.stride or row_length
    return sum(split.train_rows or count_windows(split.train_tokens, row_length, stride) for split in splits)


def longest_window(splits: Sequence[SplitSize]) -> int:
    """Return the length of the longest windows to cut running texts into, each of which must hold one.

    Of a short text several; the validation split of a long one may be shorter than a window.
    """
    val_tokens, shortest = sum(split.val_tokens for split in splits), min(split.train_tokens for split in splits)
    return min(shortest, max(val_tokens, shortest // 10) if val_tokens else shortest) - 1


def cut_context(config: ModelConfig, row_length: int) -> ModelConfig:
    """Return an architecture for rows of at most `row_length` tokens: what a step with them takes."""
    return dataclasses.replace(config, context_length=min(config.context_length, row_length))


def make_plan(
    recipe: Recipe, facts: TextFacts, machine: Machine, measure: Measure, seconds: float | None, elapsed: float
) -> Plan:
    """Fill in what a recipe leaves open.

    The whole run takes some `seconds`, of which `elapsed` have passed; None if the recipe gives steps or epochs.

    Raises:
        SourceError: If the text is too short to learn anything from.
        ModelError: If two choices of the recipe contradict each other.
    """
    splits = tuple(split_size(source, recipe.validation_fraction) for source in facts.sources)
    for source, split in zip(facts.sources, splits, strict=True):
        if split.train_tokens < 2:
            raise SourceError(f"{source.name} has only {count(source.tokens, 'token')}", "give it more text")
    val_tokens = sum(split.val_tokens for split in splits)
    max_row = facts.longest_row or longest_window(splits)

    def measure_rows(config: ModelConfig, batch_size: int) -> float:
        return measure(cut_context(config, max_row), batch_size)

    sizes = candidate_sizes(facts, ngrams=choose_ngram_order(recipe, facts) > 0)
    if seconds is None:
        available = None
        for size in sizes:  # the largest that gets the steps it needs
            larger, rows = apply_size(recipe, size, facts, max_row)
            if (total := recipe.steps) is None:
                assert recipe.epochs is not None  # else the caller passes a duration
                row_length = min(larger.context_length, max_row)
                total = max(1, math.ceil(recipe.epochs * count_rows(recipe, row_length, splits) / rows))
            if size.steps <= total and size.parameters <= MAX_PARAMETERS_BY_STEPS:
                config, batch_size, steps = larger, rows, total
        step_seconds = measure_rows(config, batch_size)
    else:
        available = max(1.0, seconds - elapsed)
        steps = 1  # `_complete` replaces it
        config, batch_size, step_seconds = choose_size(
            recipe, sizes, facts, max_row, available, measure_rows, val_tokens
        )
    draft = Plan(recipe, config, batch_size, available, steps, step_seconds, splits, eval_windows=0)
    draft = dataclasses.replace(
        draft,
        document_tokens=facts.document_tokens,
        longest_row=facts.longest_row,
        counted_tokens=count_limit(seconds),
    )
    draft = dataclasses.replace(draft, token_seconds=EVAL_WORK * step_seconds / (batch_size * draft.row_tokens))
    return _complete(draft.with_evaluations(draft.token_seconds), facts, machine, seconds)


def _complete(draft: Plan, facts: TextFacts, machine: Machine, seconds: float | None) -> Plan:
    """Fill in what depends on the length of the run: number of steps, dropout, learning rates, evaluations, notices."""
    recipe, config = draft.recipe, draft.config
    if seconds is not None:
        training = draft.training_seconds(draft.make_ending())
        draft = dataclasses.replace(draft, steps=max(1, int(training / draft.step_seconds)))
    every = recipe.evaluate_every
    if every is None and recipe.steps is not None:
        every = planned_interval(draft.steps)
    if recipe.dropout is None:
        config = dataclasses.replace(config, dropout=choose_dropout(draft.epochs))
        if config.ngram_order and recipe.attention_dropout is None:  # it takes a third of a step at a long context
            config = dataclasses.replace(config, attention_dropout=0.0)
    compiles = recipe.compile
    if compiles is None:  # not documents, anew for each length; nor what has not been measured
        suits = machine.device == "cpu" or (machine.device == "cuda" and not config.ngram_order)
        compiles = suits and not facts.rows and (draft.available or 0) >= MIN_SECONDS_TO_COMPILE
    is_long = draft.steps >= LONG_RUN and not facts.rows and recipe.from_model is None
    # Each side of translations has a kind and size of its own, which follow again from what was asked for.
    has_two = facts.source_vocab_size is not None and not recipe.shared_vocab
    values = {
        "tokenizer": recipe.tokenizer or (None if recipe.from_model or has_two else facts.tokenizer),
        "vocab_size": recipe.vocab_size if has_two else facts.vocab_size,
        "packing": not facts.rows,
        "minutes": None if seconds is None else seconds / 60,
        "batch_size": draft.batch_size,
        "evaluate_every": every,
        **_optimization(recipe, config, draft.epochs * facts.characters / facts.tokens, is_long=is_long),
        "device": machine.device,
        "precision": machine.precision,
        "threads": machine.threads,
        "compile": compiles,
        **{name: getattr(config, name) for name in PLANNED_FIELDS},
        "n_encoder_layer": config.n_encoder_layer or None,
    }
    notices = tuple(_notices(draft, facts, machine))
    return dataclasses.replace(draft, recipe=recipe.merged(values), config=config, notices=notices)


def _notices(plan: Plan, facts: TextFacts, machine: Machine) -> Iterator[str]:
    """Yield what a user should know about the plan."""
    if plan.recipe.strategy == "fsdp" and machine.processes == 1:
        yield "nothing is sharded: this process trains alone; --devices 2 makes two share the model"
    requested, context_length = plan.recipe.context_length, plan.row_length
    if requested is not None and context_length < requested and not facts.rows:
        what = "a context" if plan.recipe.from_model is None else "windows"  # the context is the base model's
        yield f"the text is short: {what} of {context_length} tokens, not {requested}"
    shortest, source = min(zip(plan.splits, facts.sources, strict=True), key=lambda pair: pair[0].train_tokens)
    if facts.mix and not facts.rows and requested is None and context_length == shortest.train_tokens - 1:
        yield f"{source.name} is short: a context of {context_length} tokens for all of the mix"
    if not plan.val_tokens:
        part = f"{plan.recipe.validation_fraction * 100:.4g} %"
        yield f"{part} of the text is too little for validation: losses are of the text trained on"
    elif plan.epochs > MANY_EPOCHS:
        yield f"the text is seen {plan.epochs:,.0f} times: the model will know parts of it by heart"


def _optimization(recipe: Recipe, config: ModelConfig, views: float, *, is_long: bool) -> dict[str, float]:
    """Return weight decay and peak learning rates; these are lowered for a text seen many times, soon memorized.

    `views` are epochs × characters per token: the more characters a token has, the sooner it is memorized. A new model
    that learns for long from a running text, `is_long`, has a weight decay if it has no n-grams.
    """
    factor = min(1.0, max(MIN_LR_FACTOR, FULL_LR_VIEWS / views))
    if recipe.from_model is not None:
        factor *= BASE_MODEL_LR_FACTOR
    learning_rate, embedding_learning_rate = (factor * peak for peak in PEAK_LEARNING_RATES[recipe.optimizer])
    weight_decay = 0.0
    if config.ngram_order:
        learning_rate *= NGRAM_LR_FACTOR
    elif is_long and recipe.optimizer == "muon":
        learning_rate *= LONG_LR_FACTOR
        weight_decay = LONG_WEIGHT_DECAY
    return {
        "weight_decay": weight_decay if recipe.weight_decay is None else recipe.weight_decay,
        "learning_rate": recipe.learning_rate or learning_rate,
        "embedding_learning_rate": recipe.embedding_learning_rate or embedding_learning_rate,
    }


def choose_dropout(epochs: float) -> float:
    """Return the dropout for a number of epochs: 0 below 6, and 0.05 more for each doubling."""
    dropout = 0.0
    while epochs >= 6 and dropout < MAX_DROPOUT:
        epochs, dropout = epochs / 2, dropout + 0.05
    return round(min(dropout, MAX_DROPOUT), 2)


def describe_cut(plan: Plan) -> str:
    """Return a notice if less than what is held out measures the model; else an empty text."""
    if plan.val_fraction == 1:
        return ""
    part = f"{percent(plan.val_fraction)} of the text held out"
    return f"there is time to measure the model on {part} only: the rest of it is left out"


# --- the plan in words -----------------------------------------------------------------------------------------------


def estimate_memory(config: ModelConfig, parameters: int, rows: int, tokens: int, shards: int = 1) -> int:
    """Estimate the bytes of memory of a process that trains on `rows` of each batch.

    Counts weights, gradients, Adam's two moments and the best weights in f32, activations, counts of `tokens`, and
    Python. Weights, gradients and moments may be in `shards`; the leader also holds whole weights to evaluate.
    """
    per_parameter = 20 if shards == 1 else 16 / shards + 8
    per_layer = 4 * (12 * config.d_model + 3 * config.feed_forward_width + 3 * config.n_head * config.context_length)
    found = config.ngram_order + len(CONTEXT_LENGTHS) * MAX_RECENT if config.ngram_order else 0
    per_token = config.n_layer * per_layer + 12 * config.vocab_size + 40 * found
    counts = COUNT_MEMORY * tokens if config.ngram_order else 0
    activations = rows * config.context_length * per_token
    return int(per_parameter * parameters) + activations + counts + PROCESS_MEMORY


def summarize_plan(plan: Plan, facts: TextFacts, machine: Machine, parameters: int) -> Planned:
    """Return the plan in words: the three lines that are shown before training starts."""
    config, tokens = plan.config, round(plan.batch_size * plan.row_tokens)
    rows, shards = -(-plan.batch_size // machine.processes), machine.processes if plan.recipe.strategy == "fsdp" else 1
    counted = min(plan.counted_tokens, plan.train_tokens)
    memory = estimate_memory(cut_context(config, plan.row_length), parameters, rows, counted, shards)
    ends = f"the ends of each, {plan.val_tokens:,} in all," if facts.mix else f"the last {plan.val_tokens:,}"
    if facts.rows:
        kind = "pairs" if facts.source_vocab_size else "documents"
        ends = f"{plan.val_rows:,} of {facts.rows:,} {kind}"
    held_out = f"{ends} measure the model" if plan.val_tokens else "none kept for validation"
    times = " and ".join(f"{epochs:,.1f}" for epochs in plan.epochs_per_source)
    times += " times through " + ("them" if facts.mix else "the text")
    by_clock = plan.available is not None
    seconds = plan.steps * plan.step_seconds if plan.available is None else plan.available
    begun = f", begun as {Path(plan.recipe.from_model).name}" if plan.recipe.from_model else ""
    steps = ("about " if by_clock else "") + count(plan.steps, "step")
    if plan.recipe.epochs is not None:
        steps = f"{count(plan.recipe.epochs, 'epoch')}, {steps}"
    different = (f"{facts.source_vocab_size:,} → " if facts.source_vocab_size else "") + f"{facts.vocab_size:,}"
    lines = (
        f"text   {facts.name}: {count(facts.characters, 'character')}, {count(facts.tokens, 'token')} "
        f"({facts.tokenizer}, {different} different); {held_out}",
        f"model  {describe_layers(config)}, {count(config.n_head, 'head')}, "
        f"context {config.context_length}, {count(parameters, 'parameter')}, dropout {config.dropout:g}{begun}",
        f"time   about {duration(seconds)} on {machine}: {steps} of {count(tokens, 'token')}, "
        f"{times}; {memory / 1e6:,.0f} MB of memory{' each' * (machine.processes > 1)}",
    )
    limit = None if by_clock else plan.steps
    return Planned(
        lines, parameters, plan.train_tokens, limit, plan.available, str(machine), memory, plan.recipe.epochs
    )


def describe_layers(config: ModelConfig) -> str:
    """Return a short description: `4 layers of 128`, or `3 + 3 layers of 256` with an encoder."""
    encoder = f"{config.n_encoder_layer} + " if config.encoder_decoder else ""
    return f"{encoder}{count(config.n_layer, 'layer')} of {config.d_model}"
