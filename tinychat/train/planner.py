"""The planner decides what a recipe leaves open, from the text, the machine's speed and the time: arithmetic alone.

The order is: the tokenizer, from a first look at the text; then the size of the model, from the time and how long a
step takes (`measure`, which trains a few real ones); then what follows from the number of steps.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tinychat.errors import SourceError
from tinychat.model.config import ModelConfig, longest_ngram
from tinychat.textutil import count
from tinychat.train.plan import SAMPLE_SECONDS, Machine, Plan, TextFacts, count_rows, split_size
from tinychat.train.recipe import RATES, Recipe

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
    context: int
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
    attention = config.n_layer * config.context * config.d_model
    return 6.0 * batch_size * config.context * (weights + attention)


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
    context = min(recipe.context or size.context, longest)
    if facts.rows and recipe.context:
        context = recipe.context  # rows are padded: none need be as long
    ngram_order = choose_ngram_order(recipe, facts)
    # Tables for earlier tokens pay where a token says little, unless n-grams say as much and more.
    earlier_tokens = 0 if ngram_order else 3 if facts.vocab_size <= 1024 else 1 if facts.vocab_size <= 8192 else 0
    values = {
        "n_layer": size.n_layer if recipe.n_layer is None else recipe.n_layer,
        "d_model": d_model,
        "n_head": recipe.n_head or _heads(d_model),
        "context": context,
        "earlier_tokens": earlier_tokens if recipe.earlier_tokens is None else recipe.earlier_tokens,
        "ngram_order": ngram_order,
        "token_pairs": bool(recipe.token_pairs),
        "qk_norm": recipe.norm != "none" if recipe.qk_norm is None else recipe.qk_norm,
    }
    # A short context takes more windows, so that a step learns from as many tokens.
    batch_size = recipe.batch_size or max(1, int(size.batch_size * size.context // (facts.row_tokens or context)))
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
        row_tokens = facts.row_tokens or config.context
        glance, final = GLANCE_TOKENS, int(max(10 * GLANCE_TOKENS, steps * batch_size * row_tokens))
    else:
        available = max(1.0, seconds - elapsed)
        steps = 1  # until it is known how much of the time is left for them
        config, batch_size, step_seconds = choose_size(recipe, sizes, facts, longest, 0.9 * available, measure)
        row_tokens = facts.row_tokens or config.context
        tokens = available / step_seconds * batch_size * row_tokens  # that could be trained on in the time
        glance, final = int(GLANCE_SHARE * tokens / 0.6), int(FINAL_SHARE * tokens / 0.6)
    windows = (val_tokens or train_tokens) // config.context + 1
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
        "rows": "documents" if facts.rows else "windows",
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
    asked = plan.recipe.context
    if asked is not None and plan.config.context < asked:
        yield f"the text is short: a context of {plan.config.context} tokens, not {asked}"
    shortest, source = min(zip(plan.splits, facts.sources, strict=True), key=lambda each: each[0].train_tokens)
    if facts.mix and not facts.rows and asked is None and plan.config.context == shortest.train_tokens - 1:
        yield f"{source.name} is short: a context of {plan.config.context} tokens for all of the mix"
    if not plan.val_tokens:
        yield "the text is too short to keep a part for validation: losses are of the text trained on"
    elif plan.epochs > MANY_EPOCHS:
        yield f"the text is seen {plan.epochs:,.0f} times: the model will know parts of it by heart"


CHOSEN = (
    "n_layer",
    "n_head",
    "d_model",
    "context",
    "earlier_tokens",
    "token_pairs",
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
