"""The sizes of model that train well, and the choice among them by time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinychat.model.config import ModelConfig, longest_ngram
from tinychat.train.plan import TextFacts
from tinychat.train.recipe import Recipe


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
    place = min(1, len(sizes) - 1)
    while place not in measured:
        measured[place] = measure(*shapes[place])
        rate = step_work(*shapes[place]) / measured[place]
        fits = [
            other
            for other, size in enumerate(sizes)
            if seconds / measured.get(other, step_work(*shapes[other]) / rate) >= size.steps
        ]
        place = max(fits, default=0)
    return *shapes[place], measured[place]
