"""Sizes of texts, and the sizes of models that suit them. Needs no torch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinychat.errors import UsageError
from tinychat.model.config import ModelConfig
from tinychat.store.packed_counts import longest_ngram
from tinychat.train.recipe import Recipe
from tinychat.train.split import count_val_rows, count_val_tokens

EVAL_WORK = 0.6
"""Time to evaluate a token, of that to train on it: forward in f32 takes about half the time of a step in bf16."""
MAX_TRAINING_FRACTION = 0.9
"""Fraction of a run by the clock that its steps take at most."""
FINAL_FRACTION = 0.3
"""Maximum fraction of a run by the clock that the final evaluation of any size but the smallest takes."""


# --- texts -----------------------------------------------------------------------------------------------------------


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
    measured: tuple[SourceFacts, ...] = ()
    """Sources, each with its own held-out part as it is; empty for an estimate of a single one."""
    rows: int = 0
    longest_row: int = 0
    """Number of tokens of the longest document, if documents are rows."""
    source_vocab_size: int | None = None
    """Size of the encoder's vocabulary; None without an encoder."""
    turn_tokens: tuple[int, int] | None = None
    """Ids of the tokens that begin a turn of a conversation and its reply; None if there are none."""

    @property
    def mix(self) -> tuple[SourceFacts, ...]:
        """Sources of a mix; empty for a single source."""
        return self.measured if len(self.measured) > 1 else ()

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """Sources of a mix, or the single source."""
        alone = SourceFacts(self.name, 1.0, self.characters, self.documents, self.tokens, rows=self.rows)
        return self.measured or (alone,)

    @property
    def document_tokens(self) -> float:
        """Mean number of tokens of a document, if documents are rows; 0 if rows are windows."""
        return sum(source.share * source.tokens / source.rows for source in self.sources) if self.rows else 0.0

    def row_tokens(self, context_length: int) -> float:
        """Return the mean number of tokens of a row; of a longer document, the context holds no more."""
        return min(self.document_tokens, context_length) or context_length


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


# --- models ----------------------------------------------------------------------------------------------------------


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


def apply_size(recipe: Recipe, size: Size, facts: TextFacts, max_row: int) -> tuple[ModelConfig, int]:
    """Return the architecture and the batch size of a recipe at a size; values of the recipe come first.

    The context is no longer than `max_row`, the longest row that the text has, unless the recipe asks for more and
    documents are rows, which are padded, or it starts from a model, whose context stays.
    """
    d_model = recipe.d_model or size.d_model
    row_length = context_length = min(recipe.context_length or size.context_length, max_row)
    if recipe.context_length and (facts.rows or recipe.from_model):
        context_length = recipe.context_length
    if recipe.turn_attention and facts.turn_tokens is None:
        raise UsageError("--turn-attention needs tokens that begin turns", "train on conversations, with role tokens")
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
        facts.vocab_size, facts.source_vocab_size, facts.turn_tokens
    )
    # Shorter rows make larger batches, so that a step has as many tokens.
    tokens = size.batch_size * size.context_length
    return config, recipe.batch_size or max(1, int(tokens // facts.row_tokens(row_length)))


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
    facts = TextFacts("", 1, 1, 1, vocab_size=2, tokenizer="", source_vocab_size=source_vocab_size, turn_tokens=(0, 1))
    apply_size(recipe, SIZES[0], facts, SIZES[0].context_length)


def choose_size(
    recipe: Recipe, sizes: Sequence[Size], facts: TextFacts, max_row: int, seconds: float, measure: Measure,
    val_tokens: int = 0,
) -> tuple[ModelConfig, int, float]:  # fmt: skip
    """Choose the largest size that gets the steps it needs in some seconds, measuring as few as possible.

    The seconds are for training and a final evaluation of `val_tokens`. What is chosen is measured again, until that
    changes nothing: a machine that is busy for a moment would choose too small a size. Return its architecture, batch
    size and seconds per step.
    """
    candidates = [apply_size(recipe, size, facts, max_row) for size in sizes]
    measured: dict[int, float] = {}
    again: set[int] = set()

    def is_suitable(index: int, step_seconds: float) -> bool:
        config, batch_size = candidates[index]
        rows = val_tokens / (facts.document_tokens or config.context_length)
        evaluation = EVAL_WORK * step_seconds * rows / batch_size
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
