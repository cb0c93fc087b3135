"""What a recipe leaves open is decided here, from the text, the machine's speed and the time: arithmetic alone.

The order is: the tokenizer, from a first look at the text; then the size of the model, from the time and how long a
step takes (`measure`, which trains a few real ones); then what follows from the number of steps.
"""

import dataclasses
import math
from collections.abc import Iterator

from tinychat.errors import SourceError
from tinychat.model.config import LARGEST_TABLE, ModelConfig
from tinychat.textutil import count
from tinychat.tokenizer.rows import count_kept
from tinychat.train.plan import SAMPLE_SECONDS, Machine, Plan, Portion, SourceFacts, TextFacts, count_rows
from tinychat.train.recipe import RATES, Recipe
from tinychat.train.rows import FOLDS
from tinychat.train.sizes import SIZES_BY_STEPS, Measure, choose_ngram_order, choose_size, shape, sizes_for

CHAR_TEXT = 20_000_000
"""characters; a longer text in words is cut into word pieces, so that more of it is seen in the same time"""
CHAR_VOCABULARY, WORDPIECE_VOCABULARIES = 8192, (512, 1024, 2048, 4096, 8192)
LONGEST_DEFAULT, SHORTEST_DEFAULT = 180.0, 10.0
"""seconds of a run that nobody gave a time"""
LONGEST_DROPOUT = 0.3
PROCESS_MEMORY = 450_000_000
"""bytes that Python, torch and lightning take before there is a model"""
SHORTEST_CONTEXT = 8
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


# --- the plan ----------------------------------------------------------------------------------------------------


def split_tokens(recipe: Recipe, tokens: int) -> tuple[int, int]:
    """How many tokens are trained on and kept; none are kept of a text too short for it."""
    val_tokens = tokens - int(tokens * (1 - recipe.validation_fraction))
    if val_tokens <= SHORTEST_CONTEXT:
        return tokens, 0
    return tokens - val_tokens, val_tokens


def split_source(recipe: Recipe, source: SourceFacts) -> tuple[Portion, int, int]:
    """What of a source is trained on, and the tokens and the documents that are kept."""
    if not source.rows:
        train_tokens, val_tokens = split_tokens(recipe, source.tokens)
        return Portion(source.share, train_tokens), val_tokens, 0
    val_rows = count_kept(source.rows, recipe.validation_fraction)
    val_tokens = source.tokens * val_rows // source.rows  # or nearly so
    return Portion(source.share, source.tokens - val_tokens, source.rows - val_rows), val_tokens, val_rows


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
    parts = [split_source(recipe, source) for source in facts.sources]
    texts = tuple(text for text, _, _ in parts)
    val_tokens, val_rows = sum(tokens for _, tokens, _ in parts), sum(rows for _, _, rows in parts)
    for source, text in zip(facts.sources, texts, strict=True):
        if text.tokens < 2:
            raise SourceError(f"{source.name} has only {count(source.tokens, 'token')}", "give it more text")
    train_tokens = sum(text.tokens for text in texts)
    shortest = min(text.tokens for text in texts)  # of a mix, each must hold a window
    longest = facts.longest_row or min(shortest, val_tokens or shortest) - 1
    sizes = sizes_for(facts.characters, counted=choose_ngram_order(recipe, facts) > 0)
    if seconds is None:
        available = None
        for size in sizes[:SIZES_BY_STEPS]:  # the largest that gets the steps that it needs
            larger, rows = shape(recipe, size, facts, longest)
            if (most := recipe.steps) is None:
                assert recipe.epochs is not None  # else the caller gives a time
                most = max(1, math.ceil(recipe.epochs * count_rows(recipe, larger, texts) / rows))
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
        windows = val_rows or sum(text.rows for text in texts)
    draft = Plan(
        recipe=recipe,
        config=config,
        batch_size=batch_size,
        available=available,
        steps=steps,
        step_seconds=step_seconds,
        texts=texts,
        val_tokens=val_tokens,
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
    shortest = min(range(len(plan.texts)), key=lambda place: plan.texts[place].tokens)
    if facts.mix and not facts.rows and asked is None and plan.config.context == plan.texts[shortest].tokens - 1:
        yield f"{facts.mix[shortest].name} is short: a context of {plan.config.context} tokens for all of the mix"
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
