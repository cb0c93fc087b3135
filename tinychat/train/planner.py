"""A plan: the recipe with every choice made, what the planner knew when it made them, and the plan in words.

Needs no torch.

The planner decides what a recipe leaves open, from the text, the machine's speed and the time: arithmetic alone.

The order is: the tokenizer, from a first look at the text; then the size of the model, from the time and how long a
step takes (`measure`, which trains a few real ones); then what follows from the number of steps.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinychat.errors import SourceError
from tinychat.events import Planned
from tinychat.model.config import LARGEST_TABLE, ModelConfig, longest_ngram
from tinychat.textutil import count, duration
from tinychat.train.recipe import RATES, Recipe
from tinychat.train.rows import FOLDS, count_kept, count_windows
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
        return min(self.documents_tokens, self.config.context_length) or self.config.context_length

    @property
    def warmup_steps(self) -> int:
        """As the recipe says, and no more than a tenth of the run."""
        return min(self.recipe.warmup_steps, self.steps // 10)

    @property
    def schedule(self) -> Schedule:
        """The learning rate's schedule."""
        return Schedule(
            self.recipe.schedule, self.warmup_steps, self.recipe.lr_decay_fraction, self.recipe.min_lr_ratio
        )

    @property
    def epochs(self) -> float:
        """How often the text is seen; of a mix, how often what is seen was seen, on average."""
        return sum(split.share * epochs for split, epochs in zip(self.splits, self.epochs_of_each, strict=True))

    @property
    def epochs_of_each(self) -> tuple[float, ...]:
        """How often each text is seen."""
        rows = self.steps * self.batch_size
        tokens = rows * self.config.context_length
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
    stride = recipe.stride or config.context_length
    return sum(split.train_rows or count_windows(split.train_tokens, config.context_length, stride) for split in splits)


def estimate_memory(config: ModelConfig, parameters: int, rows: int, tokens: int, shards: int = 1) -> int:
    """Bytes of a process: weights, gradients, two moments and the best weights in f32; activations; n-grams; itself.

    Args:
        rows: of a batch, that the process learns from.
        tokens: that are trained on.
        shards: that weights, gradients and moments are cut into; the leader has whole weights too, to look at them.
    """
    per_parameter = 20 if shards == 1 else 16 / shards + 8
    per_layer = 4 * (12 * config.d_model + 3 * config.feed_forward_width + 3 * config.n_head * config.context_length)
    per_token = config.n_layer * per_layer + 12 * config.vocab_size * (1 + config.ngram_order)
    counts = min(LARGEST_TABLE, tokens * config.vocab_size) if config.ngram_order else 0
    activations = rows * config.context_length * per_token
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
        f"context {config.context_length}, {count(parameters, 'parameter')}, dropout {config.dropout:g}{begun}",
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


# ---- from tinychat.train.planner ----


CHAR_TEXT = 20_000_000
"""characters; a longer text in words is cut into word pieces, so that more of it is seen in the same time"""
CHAR_VOCABULARY, WORDPIECE_VOCABULARIES = 8192, (512, 1024, 2048, 4096, 8192)
LONGEST_DEFAULT, SHORTEST_DEFAULT = 180.0, 10.0
"""seconds of a run that nobody gave a time"""
LONGEST_DROPOUT = 0.3
FEW_VIEWS, MANY_EPOCHS = 12, 20
CONTINUED_RATE = 0.3
"""of the usual learning rate for a model that is gone on with: the whole of it would first undo what is known"""
NGRAM_RATE = 0.6
"""of the usual learning rate of matrices where n-grams leave less to learn"""
LEAST_RATE = 0.05
"""the smallest share of an optimizer's usual learning rate that is chosen"""

GLANCE_TOKENS = 250_000
"""at most, of an evaluation on the way in a run by steps; ten times as many at the end"""
GLANCE_SHARE, FINAL_SHARE = 0.012, 0.2
"""of the time of a run by the clock, at most, for one evaluation on the way and for the one at the end"""
FEWEST_WINDOWS = 16


# --- the tokenizer -----------------------------------------------------------------------------------------------


def choose_tokenizer(recipe: Recipe, characters: int, sample: str, mode: str) -> tuple[str, int | None]:
    """The kind of tokenizer and the most tokens that it may have.

    Characters for most texts: a tiny model learns quickest from them. Word pieces for conversations and translations,
    and for texts so long that time is shorter than text, where words are written with spaces between them.

    Args:
        characters: of the whole text.
        sample: its beginning.
        mode: of the model.
    """
    if recipe.tokenizer is not None:
        kind = recipe.tokenizer
    else:
        spaced = sum(map(str.isspace, sample)) > 0.05 * len(sample)
        kind = "wordpiece" if spaced and (mode != "completion" or characters > CHAR_TEXT) else "char"
    if recipe.vocab_size is not None or kind not in ("char", "wordpiece"):
        return kind, recipe.vocab_size
    if kind == "char":
        return kind, CHAR_VOCABULARY
    wanted = 3 * characters**0.5  # grows as the number of different words in a text does (Heaps' law)
    return kind, min(WORDPIECE_VOCABULARIES, key=lambda size: abs(size - wanted))


# --- time --------------------------------------------------------------------------------------------------------


def default_seconds(characters: int) -> float:
    """How long a run takes, all included, where nobody says: longer texts are worth more time."""
    return min(LONGEST_DEFAULT, max(SHORTEST_DEFAULT, LONGEST_DEFAULT * math.pow(characters / 2_000_000, 0.45)))


# --- the size of the model ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """A size of model that trains well, and how many steps it needs at least to be better than a smaller one."""

    n_layer: int
    d_model: int
    context_length: int
    batch_size: int
    steps: int


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
COUNTED_SIZES = (
    Size(2, 64, 256, 8, 0),
    Size(2, 128, 512, 4, 40),
    Size(3, 128, 512, 4, 80),
    Size(4, 128, 512, 4, 180),
    Size(4, 128, 1024, 2, 280),
    Size(4, 128, 2048, 1, 550),
    Size(6, 192, 2048, 1, 4_000),
    Size(6, 256, 2048, 2, 6_000),
    Size(6, 384, 2048, 4, 10_000),
    Size(8, 512, 2048, 8, 20_000),
)
"""of models with n-grams: a longer context, in which they look for what matches, is worth more to them than layers"""
SIZES_BY_STEPS = 4
"""so many of them come into question where the length is given in steps: there the machine's speed must not matter"""

NGRAM_ORDER, NGRAM_VOCABULARY = 8, 256
"""n-grams up to this n are counted, for vocabularies up to this size"""
Measure = Callable[[ModelConfig, int], float]
"""(architecture, batch size) → seconds of one step on this machine"""


def step_work(config: ModelConfig, batch_size: int) -> float:
    """Floating-point operations of a step: forward, and twice as much backward (Kaplan et al. 2020, §2.1)."""
    weights = block_parameters(config) + config.d_model * config.vocab_size
    attention = config.n_layer * config.context_length * config.d_model
    return 6.0 * batch_size * config.context_length * (weights + attention)


def block_parameters(config: ModelConfig) -> int:
    """The parameters of the matrices in the layers."""
    matrices = {"none": 0, "swiglu": 3}.get(config.feed_forward, 2)
    attention = 2 * config.d_model * config.d_head * (config.n_head + config.kv_heads)
    return config.n_layer * (attention + matrices * config.d_model * config.feed_forward_width)


def sizes_for(characters: int, *, counted: bool) -> Sequence[Size]:
    """The sizes that a text of so many characters has enough to teach.

    Args:
        counted: the model has n-grams.
    """
    most, sizes = 200_000 + 8 * characters, COUNTED_SIZES if counted else SIZES
    return [size for size in sizes if 12 * size.n_layer * size.d_model**2 <= most] or sizes[:1]


def shape(recipe: Recipe, size: Size, facts: TextFacts, longest: int) -> tuple[ModelConfig, int]:
    """The architecture and the batch size that a size makes of a recipe: what the recipe says comes first.

    Args:
        longest: context that the text has rows for.
    """
    d_model = recipe.d_model or size.d_model
    context_length = min(recipe.context_length or size.context_length, longest)
    if facts.rows and recipe.context_length:
        context_length = recipe.context_length  # rows are padded: none need be as long
    ngram_order = choose_ngram_order(recipe, facts)
    # Tables for earlier tokens pay where a token says little, unless n-grams say as much and more.
    previous_token_embeddings = (
        0 if ngram_order else 3 if facts.vocab_size <= 1024 else 1 if facts.vocab_size <= 8192 else 0
    )
    values = {
        "n_layer": size.n_layer if recipe.n_layer is None else recipe.n_layer,
        "d_model": d_model,
        "n_head": recipe.n_head or _heads(d_model),
        "context_length": context_length,
        "previous_token_embeddings": previous_token_embeddings
        if recipe.previous_token_embeddings is None
        else recipe.previous_token_embeddings,
        "ngram_order": ngram_order,
        "bigram_embedding": bool(recipe.bigram_embedding),
        "qk_norm": recipe.norm != "none" if recipe.qk_norm is None else recipe.qk_norm,
    }
    # A short context takes more windows, so that a step learns from as many tokens.
    batch_size = recipe.batch_size or max(
        1, int(size.batch_size * size.context_length // (facts.row_tokens or context_length))
    )
    return recipe.merged(values).model_config(facts.vocab_size, facts.source_vocab_size), batch_size


def choose_ngram_order(recipe: Recipe, facts: TextFacts) -> int:
    """As the recipe says; else counting pays for small vocabularies, where most contexts come again, in a long text."""
    if recipe.ngram_order is not None:
        return recipe.ngram_order
    small = facts.vocab_size <= NGRAM_VOCABULARY and not facts.rows
    return min(NGRAM_ORDER, longest_ngram(facts.vocab_size)) if small else 0


def _heads(d_model: int) -> int:
    """As many heads of about 64 as divide the width into even parts."""
    return next(heads for heads in range(max(1, d_model // 64), 0, -1) if d_model % heads == 0)


def choose_size(
    recipe: Recipe, sizes: Sequence[Size], facts: TextFacts, longest: int, seconds: float, measure: Measure
) -> tuple[ModelConfig, int, float]:
    """The largest size that gets the steps that it needs in the time, by measuring those that come into question.

    Returns:
        The architecture, the batch size and the seconds of a step.
    """
    shapes = [shape(recipe, size, facts, longest) for size in sizes]
    measured: dict[int, float] = {}
    index = min(1, len(sizes) - 1)
    while index not in measured:
        measured[index] = measure(*shapes[index])
        rate = step_work(*shapes[index]) / measured[index]
        fits = [
            other
            for other, size in enumerate(sizes)
            if seconds / measured.get(other, step_work(*shapes[other]) / rate) >= size.steps
        ]
        index = max(fits, default=0)
    return *shapes[index], measured[index]


# --- the plan ----------------------------------------------------------------------------------------------------


def make_plan(
    recipe: Recipe, facts: TextFacts, machine: Machine, measure: Measure, seconds: float | None, elapsed: float
) -> Plan:
    """Decides what the recipe leaves open.

    Args:
        seconds: for the whole run, from its first moment to its last; None: the recipe says how many steps.
        elapsed: seconds of them that are gone.

    Raises:
        SourceError: the text is too short to learn anything from.
        ModelError: two choices of the recipe do not fit each other.
    """
    splits = tuple(split_size(source, recipe.validation_fraction) for source in facts.sources)
    for source, split in zip(facts.sources, splits, strict=True):
        if split.train_tokens < 2:
            raise SourceError(f"{source.name} has only {count(source.tokens, 'token')}", "give it more text")
    train_tokens, val_tokens = sum(split.train_tokens for split in splits), sum(split.val_tokens for split in splits)
    shortest = min(split.train_tokens for split in splits)  # of a mix, each must hold a window
    longest = facts.longest_row or min(shortest, val_tokens or shortest) - 1
    sizes = sizes_for(facts.characters, counted=choose_ngram_order(recipe, facts) > 0)
    if seconds is None:
        available = None
        for size in sizes[:SIZES_BY_STEPS]:  # the largest that gets the steps that it needs
            larger, rows = shape(recipe, size, facts, longest)
            if (most := recipe.steps) is None:
                assert recipe.epochs is not None  # else the caller gives a time
                most = max(1, math.ceil(recipe.epochs * count_rows(recipe, larger, splits) / rows))
            if size.steps <= most:
                config, batch_size, steps = larger, rows, most
        step_seconds = measure(config, batch_size)
        row_tokens = facts.row_tokens or config.context_length
        glance, final = GLANCE_TOKENS, int(max(10 * GLANCE_TOKENS, steps * batch_size * row_tokens))
    else:
        available = max(1.0, seconds - elapsed)
        steps = 1  # until it is known how much of the time is left for them
        config, batch_size, step_seconds = choose_size(recipe, sizes, facts, longest, 0.9 * available, measure)
        row_tokens = facts.row_tokens or config.context_length
        tokens = available / step_seconds * batch_size * row_tokens  # that could be trained on in the time
        glance, final = int(GLANCE_SHARE * tokens / 0.6), int(FINAL_SHARE * tokens / 0.6)
    windows = (val_tokens or train_tokens) // config.context_length + 1
    if facts.rows:
        windows = sum(split.val_rows for split in splits) or sum(split.train_rows for split in splits)
    draft = Plan(
        recipe=recipe,
        config=config,
        batch_size=batch_size,
        available=available,
        steps=steps,
        step_seconds=step_seconds,
        splits=splits,
        glance_windows=min(windows, max(FEWEST_WINDOWS, int(glance / row_tokens))),
        final_windows=min(windows, max(FEWEST_WINDOWS, int(final / row_tokens))),
        documents_tokens=facts.row_tokens,
    )
    return _complete(draft, facts, machine, seconds)


def _complete(draft: Plan, facts: TextFacts, machine: Machine, seconds: float | None) -> Plan:
    """Adds what follows from how long the run is: the number of steps, dropout, evaluations, notices."""
    recipe, config = draft.recipe, draft.config
    if seconds is not None:
        training = draft.training_seconds(draft.token_seconds, SAMPLE_SECONDS)
        draft = dataclasses.replace(draft, steps=max(1, int(training / draft.step_seconds)))
    every = recipe.evaluate_every
    if recipe.steps is not None and every is None:
        every = max(25, -(-draft.steps // 8))
    if recipe.dropout is None:
        config = dataclasses.replace(config, dropout=choose_dropout(draft.epochs))
        if config.ngram_order and recipe.attention_dropout is None:  # over a long context it takes a third of a step
            config = dataclasses.replace(config, attention_dropout=0.0)
    filled = {
        "tokenizer": recipe.tokenizer or (None if recipe.from_model else facts.tokenizer),
        "vocab_size": facts.vocab_size,
        "packing": not facts.rows,
        "minutes": None if seconds is None else seconds / 60,
        "batch_size": draft.batch_size,
        "evaluate_every": every,
        **_rates(recipe, config, draft.epochs * facts.characters / facts.tokens),
        "device": machine.device,
        "precision": machine.precision,
        "threads": machine.threads,
        "compile": draft.compiling_pays(machine) if recipe.compile is None else recipe.compile,
        **{name: getattr(config, name) for name in CHOSEN},
        "n_encoder_layer": config.n_encoder_layer or None,
    }
    notices = tuple(_notices(draft, facts, machine))
    return dataclasses.replace(draft, recipe=recipe.merged(filled), config=config, notices=notices)


def _notices(plan: Plan, facts: TextFacts, machine: Machine) -> Iterator[str]:
    """What a person should know of the plan."""
    if plan.recipe.strategy == "fsdp" and machine.processes == 1:
        yield "nothing is sharded: this process trains alone; --devices 2 makes two share the model"
    asked = plan.recipe.context_length
    if asked is not None and plan.config.context_length < asked:
        yield f"the text is short: a context of {plan.config.context_length} tokens, not {asked}"
    shortest, source = min(zip(plan.splits, facts.sources, strict=True), key=lambda each: each[0].train_tokens)
    if facts.mix and not facts.rows and asked is None and plan.config.context_length == shortest.train_tokens - 1:
        yield f"{source.name} is short: a context of {plan.config.context_length} tokens for all of the mix"
    if not plan.val_tokens:
        yield "the text is too short to keep a part for validation: losses are of the text trained on"
    elif plan.epochs > MANY_EPOCHS:
        yield f"the text is seen {plan.epochs:,.0f} times: the model will know parts of it by heart"


CHOSEN = (
    "n_layer",
    "n_head",
    "d_model",
    "context_length",
    "previous_token_embeddings",
    "bigram_embedding",
    "ngram_order",
    "qk_norm",
    "dropout",
    "attention_dropout",
)
"""the parts of an architecture that the planner decides"""


def _rates(recipe: Recipe, config: ModelConfig, views: float) -> dict[str, float]:
    """The highest learning rates: lower where a text is seen many times, or it would be known by heart too soon.

    Args:
        views: of the text, times the characters of a token: the more a token says, the sooner it is known.
    """
    share = min(1.0, max(LEAST_RATE, FEW_VIEWS / views))
    if recipe.from_model is not None:
        share *= CONTINUED_RATE
    rate, embedding_rate = (share * rate for rate in RATES[recipe.optimizer])
    if config.ngram_order:
        rate *= NGRAM_RATE
    return {
        "learning_rate": recipe.learning_rate or rate,
        "embedding_learning_rate": recipe.embedding_learning_rate or embedding_rate,
    }


def choose_dropout(epochs: float) -> float:
    """More, the more often the text is seen; none where it is seen once or twice."""
    dropout = 0.0
    while epochs >= 3 and dropout < LONGEST_DROPOUT:
        epochs, dropout = epochs / 2, dropout + 0.05
    return round(min(dropout, LONGEST_DROPOUT), 2)
