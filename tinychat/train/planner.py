"""The planner: fills in what a recipe leaves open, from the text, the machine's speed and the time.

It chooses the tokenizer first, then the size of the model, then what depends on the number of steps. Needs no torch.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from tinychat.errors import SourceError
from tinychat.events import Planned
from tinychat.generate.engine import window_starts
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig, longest_ngram
from tinychat.textutil import count, duration, percent
from tinychat.train.batches import count_windows
from tinychat.train.ending import Ending
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe, Schedule
from tinychat.train.split import count_val_rows, count_val_tokens, take_fraction

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
EVAL_FRACTION = 0.012
"""Maximum fraction of a run by the clock that one evaluation during training takes."""
MIN_EVAL_WINDOWS = 16
EVAL_WORK = 0.6
"""Time to evaluate a token, of that to train on it: forward in f32 takes about half the time of a step in bf16."""
MAX_TRAINING_FRACTION = 0.9
"""Fraction of a run by the clock that its steps take at most."""
FINAL_FRACTION, MAX_FINAL_FRACTION = 0.3, 0.5
"""Maximum fraction of a run by the clock that the final evaluation takes: of any size but the smallest, and in all."""
FINAL_SAMPLES = 3
"""Number of samples at the end, unless there are more prompts."""

MIN_COUNTED, MAX_COUNTED, COUNTED_PER_SECOND = 4_000_000, 20_000_000, 100_000
"""Bounds of the tokens whose n-grams are counted, and tokens for each second of a run by the clock: a tenth of it."""
COUNT_MEMORY = 90
"""Bytes for each token whose n-grams are counted."""
PROCESS_MEMORY = 450_000_000
"""Bytes that Python, torch and lightning take without a model."""


# --- the text and the machine ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceFacts:
    """Sizes of one source."""

    name: str
    share: float
    """Fraction of all training rows that are drawn from this source."""
    characters: int
    documents: int
    tokens: int
    fingerprint: str = ""
    rows: int = 0
    """Number of documents, if each is a row; 0 if the text is cut into windows."""
    val_tokens: int | None = None
    val_rows: int | None = None
    """Tokens or rows that are held out; None for an estimate by the fraction."""


@dataclass(frozen=True)
class TextFacts:
    """Sizes of the whole text, for training and validation together."""

    name: str
    characters: int
    documents: int
    tokens: int
    vocab_size: int
    tokenizer: str
    mix: tuple[SourceFacts, ...] = ()
    """Sources of a mix, each with its own held-out part; empty for a single source."""
    rows: int = 0
    longest_row: int = 0
    """Number of tokens of the longest document, if documents are rows."""
    source_vocab_size: int | None = None
    """Size of the encoder's vocabulary; None without an encoder."""

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """Sources of a mix, or the single source."""
        return self.mix or (SourceFacts(self.name, 1.0, self.characters, self.documents, self.tokens, rows=self.rows),)

    @property
    def document_tokens(self) -> float:
        """Mean number of tokens of a document, if documents are rows; 0 if rows are windows."""
        return sum(source.share * source.tokens / source.rows for source in self.sources) if self.rows else 0.0


@dataclass(frozen=True)
class SplitSize:
    """Sizes of the training and validation splits of one source; `share` and rows are those of `SourceFacts`."""

    share: float
    train_tokens: int
    val_tokens: int
    """0 if the text is too short to hold anything out; an estimate if documents are rows."""
    train_rows: int = 0
    val_rows: int = 0


def split_size(source: SourceFacts, validation_fraction: float) -> SplitSize:
    """Return the sizes of a source's splits; nothing is held out of a source too short for it."""
    if source.rows:
        estimated_rows = count_val_rows(source.rows, validation_fraction)
        val_rows = estimated_rows if source.val_rows is None else source.val_rows
        val_tokens = source.tokens * val_rows // source.rows
        return SplitSize(source.share, source.tokens - val_tokens, val_tokens, source.rows - val_rows, val_rows)
    estimate = count_val_tokens(source.tokens, validation_fraction)
    val_tokens = estimate if source.val_tokens is None else source.val_tokens
    return SplitSize(source.share, source.tokens - val_tokens, val_tokens)


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


# --- the size of the model -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """Size of a model that trains well, and the number of steps from which it beats smaller ones."""

    n_layer: int
    d_model: int
    context_length: int
    batch_size: int
    steps: int

    @property
    def parameters(self) -> int:
        """Number of parameters of the layers, whose feed-forward is four times as wide."""
        return 12 * self.n_layer * self.d_model**2

    def model_parameters(self, vocab_size: int) -> int:
        """Return the number of parameters of the layers, the embedding and the head."""
        return self.parameters + 2 * vocab_size * self.d_model


SIZES = (
    Size(2, 64, 64, 16, 0),
    Size(2, 128, 128, 16, 40),
    Size(3, 128, 256, 8, 80),
    Size(4, 128, 256, 8, 200),
    Size(5, 160, 256, 8, 450),
    Size(6, 192, 256, 8, 700),
    Size(6, 256, 256, 16, 1_200),
    Size(6, 384, 256, 32, 2_500),
    Size(8, 512, 512, 32, 6_000),
    Size(12, 768, 512, 48, 12_000),
)
"""Sizes of models of documents, which a context should hold as a whole."""
WINDOW_SIZES = (
    *SIZES[:2],
    Size(3, 128, 128, 16, 80),
    Size(4, 128, 128, 16, 200),
    Size(5, 160, 128, 16, 700),
    Size(6, 192, 192, 12, 1_200),
    *SIZES[6:],
)
"""Sizes of models of a running text without n-grams: short windows make quicker steps, and hardly a worse model."""
NGRAM_SIZES = (
    *(Size(n_layer, d_model, 256, 8, 0) for n_layer, d_model in ((1, 16), (1, 32), (2, 32), (2, 48), (2, 64))),
    Size(3, 64, 512, 4, 60),
    Size(3, 96, 512, 4, 400),
    Size(4, 96, 512, 4, 500),
    Size(4, 128, 512, 4, 1_200),
    Size(6, 192, 512, 4, 4_000),
    Size(6, 256, 512, 8, 6_000),
    Size(6, 384, 512, 16, 10_000),
    Size(8, 512, 512, 32, 20_000),
)
"""Sizes of models with n-grams, which leave less to layers, and see what precedes a window: it may be short."""
MAX_PARAMETERS_BY_STEPS = 800_000
"""Parameters of the layers of the largest size that runs by steps choose: it must not depend on the machine's speed."""

PLANNED_FIELDS = (
    "n_layer", "n_head", "d_model", "context_length", "previous_token_embeddings", "bigram_embedding", "ngram_order",
    "qk_norm", "dropout", "attention_dropout",
)  # fmt: skip
"""Fields of the architecture that the planner chooses."""
PAIR_VOCABULARY = 128
"""Largest vocabulary whose pairs of tokens are embedded by default, in models of a running text without n-grams."""
MODEL_BYTES, COUNT_BYTES, TOKEN_BYTES, OTHER_BYTES = 4.0, 1.35, 16, 30_000
"""Most bytes of a model with n-grams for each character of its text; those that counts take; those of its tokenizer for
each token; and those of its other files and weights. Layers and embeddings, in two bytes each, have the rest."""
NGRAM_ORDER, NGRAM_VOCABULARY = 8, 8192
"""Default order of n-grams, and the largest vocabulary for which they are counted by default."""
Measure = Callable[[ModelConfig, int], float]
"""(architecture, batch size) → seconds per step on this machine."""


def step_work(config: ModelConfig, batch_size: int) -> float:
    """Return the FLOPs of a step; the backward pass takes twice the forward pass (Kaplan et al. 2020, §2.1)."""
    matrices = {"none": 0, "swiglu": 3}.get(config.feed_forward, 2)
    projections = 2 * config.head_width * (config.n_head + config.kv_heads) + matrices * config.feed_forward_width
    weights = config.n_layer * (projections + config.context_length) + config.vocab_size  # each times d_model
    return 6.0 * batch_size * config.context_length * (config.d_model * weights)


def candidate_sizes(facts: TextFacts, *, ngrams: bool) -> Sequence[Size]:
    """Return the sizes that a text is long enough for, with or without n-grams."""
    most = 200_000 + 8 * facts.characters
    sizes: Sequence[Size] = NGRAM_SIZES if ngrams else SIZES if facts.rows else WINDOW_SIZES
    long_enough = [size for size in sizes if size.parameters <= most]
    if ngrams:
        others = OTHER_BYTES + TOKEN_BYTES * facts.vocab_size
        room = ((MODEL_BYTES - COUNT_BYTES) * facts.characters - others) / 2
        long_enough = [size for size in long_enough if size.model_parameters(facts.vocab_size) <= room]
        smallest = sum(not size.steps for size in long_enough) - 1
        long_enough = long_enough[max(0, smallest) :]  # smaller ones are for texts without room for it
    return long_enough or sizes[:1]


def choose_heads(d_model: int) -> int:
    """Return the most heads of an even width of at least 64 that divide the width; two from a width of 96 on.

    Rotary positions turn pairs of numbers, so that a head of an odd width has none.
    """
    most = max(2 if d_model >= 96 else 1, d_model // 64)
    return next((heads for heads in range(most, 0, -1) if d_model % (2 * heads) == 0), 1)


def apply_size(recipe: Recipe, size: Size, facts: TextFacts, max_context: int) -> tuple[ModelConfig, int]:
    """Return the architecture and the batch size of a recipe at a size; values of the recipe come first.

    The context length is at most `max_context`, the longest that the text has rows for.
    """
    d_model = recipe.d_model or size.d_model
    context_length = min(recipe.context_length or size.context_length, max_context)
    if facts.rows and recipe.context_length:
        context_length = recipe.context_length  # documents are padded: they may all be shorter
    ngram_order = choose_ngram_order(recipe, facts)
    defaults = {
        "n_layer": size.n_layer,
        "d_model": d_model,
        "n_head": choose_heads(d_model),
        # They help if a token carries little information, unless n-grams already provide it.
        "previous_token_embeddings": 0
        if ngram_order or facts.vocab_size > 8192
        else 1
        if facts.vocab_size > 1024
        else 3,
        "ngram_order": ngram_order,
        "bigram_embedding": not ngram_order and not facts.rows and facts.vocab_size <= PAIR_VOCABULARY,
        "qk_norm": recipe.norm != "none",
    }
    values = {name: default for name, default in defaults.items() if getattr(recipe, name) is None}
    config = recipe.merged({**values, "context_length": context_length}).model_config(
        facts.vocab_size, facts.source_vocab_size
    )
    # Shorter rows make larger batches, so that a step has as many tokens.
    tokens = size.batch_size * size.context_length
    return config, recipe.batch_size or max(1, int(tokens // (facts.document_tokens or context_length)))


def count_limit(seconds: float | None) -> int:
    """Return how many tokens' n-grams are counted, at most, in a run of some seconds; None for one by steps."""
    if seconds is None:
        return MAX_COUNTED
    return int(min(MAX_COUNTED, max(MIN_COUNTED, COUNTED_PER_SECOND * seconds)))


def choose_ngram_order(recipe: Recipe, facts: TextFacts) -> int:
    """Return the order of n-grams; by default, only running texts get them, whose contexts come again."""
    if recipe.ngram_order is not None:
        return recipe.ngram_order
    suits = facts.vocab_size <= NGRAM_VOCABULARY and not facts.rows
    return min(NGRAM_ORDER, longest_ngram(facts.vocab_size)) if suits else 0


def check_architecture(recipe: Recipe) -> None:
    """Check that the choices of an architecture fit each other, before the text and its vocabulary are known.

    Raises:
        ModelError: If two of them contradict each other.
    """
    source_vocab_size = 2 if recipe.mode == "translation" else None
    facts = TextFacts("", 1, 1, 1, vocab_size=2, tokenizer="", source_vocab_size=source_vocab_size)
    apply_size(recipe, SIZES[0], facts, SIZES[0].context_length)


def choose_size(
    recipe: Recipe, sizes: Sequence[Size], facts: TextFacts, max_context: int, seconds: float, measure: Measure,
    val_tokens: int = 0,
) -> tuple[ModelConfig, int, float]:  # fmt: skip
    """Choose the largest size that gets the steps it needs in some seconds, measuring as few as possible.

    The seconds are for training and a final evaluation of `val_tokens`. What is chosen is measured again, until that
    changes nothing: a machine that is busy for a moment would choose too small a size. Return its architecture, batch
    size and seconds per step.
    """
    candidates = [apply_size(recipe, size, facts, max_context) for size in sizes]
    measured: dict[int, float] = {}
    again: set[int] = set()

    def is_suitable(index: int, step_seconds: float) -> bool:
        config, batch_size = candidates[index]
        row_tokens = min(facts.document_tokens, config.context_length) or config.context_length
        evaluation = EVAL_WORK * step_seconds * val_tokens / (batch_size * row_tokens)
        training = min(MAX_TRAINING_FRACTION * seconds, seconds - evaluation)
        return training / step_seconds >= sizes[index].steps and evaluation <= FINAL_FRACTION * seconds

    def estimate(index: int, flops: float) -> float:
        """Return the seconds per step: a single measurement is not believed if others were of more FLOPS."""
        estimated = step_work(*candidates[index]) / flops
        return measured[index] if index in again else min(estimated, measured.get(index, math.inf))

    index = min(1, len(sizes) - 1)
    while index not in again:
        if index in measured:
            again.add(index)
        measured[index] = min(measure(*candidates[index]), measured.get(index, math.inf))
        flops = max(step_work(*candidates[other]) / taken for other, taken in measured.items())
        suitable = (other for other in range(len(sizes)) if is_suitable(other, estimate(other, flops)))
        index = max(suitable, default=0)
    return *candidates[index], measured[index]


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

    @property
    def row_tokens(self) -> float:
        """Mean number of tokens of a row."""
        return min(self.document_tokens, self.config.context_length) or self.config.context_length

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
        tokens = rows * self.config.context_length
        return tuple(
            split.share * rows / split.train_rows if split.train_rows else split.share * tokens / split.train_tokens
            for split in self.splits
        )

    @property
    def epoch_rows(self) -> int:
        return count_rows(self.recipe, self.config, self.splits)

    def epoch_after(self, step: int) -> int | None:
        """Return the number of the epoch, from 1, that ends with a step; None if none does."""
        before, after = ((step - past) * self.batch_size // self.epoch_rows for past in (1, 0))
        return after if after > before else None

    @property
    def train_tokens(self) -> int:
        return sum(split.train_tokens for split in self.splits)

    @property
    def val_tokens(self) -> int:
        return sum(take_fraction(split.val_tokens, self.val_fraction) for split in self.splits)

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


def count_rows(recipe: Recipe, config: ModelConfig, splits: Sequence[SplitSize]) -> int:
    """Return the number of rows of an epoch: windows or documents."""
    stride = recipe.stride or config.context_length
    return sum(split.train_rows or count_windows(split.train_tokens, config.context_length, stride) for split in splits)


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
    shortest = min(split.train_tokens for split in splits)  # every source of a mix must hold a window
    max_context = facts.longest_row or min(shortest, val_tokens or shortest) - 1
    sizes = candidate_sizes(facts, ngrams=choose_ngram_order(recipe, facts) > 0)
    if seconds is None:
        available = None
        for size in sizes:  # the largest that gets the steps it needs
            larger, rows = apply_size(recipe, size, facts, max_context)
            if (total := recipe.steps) is None:
                assert recipe.epochs is not None  # else the caller passes a duration
                total = max(1, math.ceil(recipe.epochs * count_rows(recipe, larger, splits) / rows))
            if size.steps <= total and size.parameters <= MAX_PARAMETERS_BY_STEPS:
                config, batch_size, steps = larger, rows, total
        step_seconds = measure(config, batch_size)
    else:
        available = max(1.0, seconds - elapsed)
        steps = 1  # `_complete` replaces it
        config, batch_size, step_seconds = choose_size(
            recipe, sizes, facts, max_context, available, measure, val_tokens
        )
    draft = Plan(recipe, config, batch_size, available, steps, step_seconds, splits, eval_windows=0)
    draft = dataclasses.replace(draft, document_tokens=facts.document_tokens, counted_tokens=count_limit(seconds))
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
        every = max(25, -(-draft.steps // 8))
    if recipe.dropout is None:
        config = dataclasses.replace(config, dropout=choose_dropout(draft.epochs))
        if config.ngram_order and recipe.attention_dropout is None:  # it takes a third of a step at a long context
            config = dataclasses.replace(config, attention_dropout=0.0)
    compiles = recipe.compile
    if compiles is None:  # not documents, anew for each length; nor what has not been measured
        suits = machine.device == "cpu" or (machine.device == "cuda" and not config.ngram_order)
        compiles = suits and not facts.rows and (draft.available or 0) >= MIN_SECONDS_TO_COMPILE
    is_long = draft.steps >= LONG_RUN and not facts.rows and recipe.from_model is None
    values = {
        "tokenizer": recipe.tokenizer or (None if recipe.from_model else facts.tokenizer),
        "vocab_size": facts.vocab_size,
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
    requested, context_length = plan.recipe.context_length, plan.config.context_length
    if requested is not None and context_length < requested:
        yield f"the text is short: a context of {context_length} tokens, not {requested}"
    shortest, source = min(zip(plan.splits, facts.sources, strict=True), key=lambda pair: pair[0].train_tokens)
    if facts.mix and not facts.rows and requested is None and context_length == shortest.train_tokens - 1:
        yield f"{source.name} is short: a context of {context_length} tokens for all of the mix"
    if not plan.val_tokens:
        yield "the text is too short to keep a part for validation: losses are of the text trained on"
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
    memory = estimate_memory(config, parameters, rows, min(plan.counted_tokens, plan.train_tokens), shards)
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
