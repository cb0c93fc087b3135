"""What a recipe leaves open is decided here, from the text, the machine's speed and the time: arithmetic alone.

The order is: the tokenizer, from a first look at the text; then the size of the model, from the time and how long a
step takes (`measure`, which trains a few real ones); then what follows from the number of steps.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tinychat.errors import SourceError
from tinychat.model.config import LARGEST_TABLE, ModelConfig
from tinychat.train.folds import FOLDS
from tinychat.train.recipe import RATES, Recipe
from tinychat.train.sizes import SIZES_BY_STEPS, Limits, Measure, choose_ngram_order, choose_size, shape, sizes_for
from tinychat.train.windows import count_windows

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
SAMPLE_SECONDS, LEAVING = 0.4, 2.0
"""seconds: a sample, estimated; writing the model, and the end of the process"""
COMPILING_PAYS = 480.0
"""seconds of a run in which steps that are a tenth quicker win back twice the half minute that compiling takes"""
COPY_SECONDS, LONGEST_COPY = 40e-9, 1.0
"""seconds of looking for what samples copied, of a token of the text; and at most"""


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

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """The texts of a mix, or the one text."""
        return self.mix or (SourceFacts(self.name, 1.0, self.characters, self.documents, self.tokens),)


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
    texts: tuple[tuple[float, int], ...]
    """of each text of a mix, its share of what is drawn and the tokens of it that are trained on; else one"""
    val_tokens: int
    """0: the text is too short to keep a part of it"""
    glance_windows: int
    """windows of an evaluation on the way"""
    final_windows: int
    """windows of the evaluation at the end"""
    notices: tuple[str, ...] = ()

    @property
    def warmup_steps(self) -> int:
        """As the recipe says, and no more than a tenth of the run."""
        return min(self.recipe.warmup_steps, self.steps // 10)

    @property
    def epochs(self) -> float:
        """How often the text is seen; of a mix, how often what is seen was seen, on average."""
        return sum(share * epochs for (share, _), epochs in zip(self.texts, self.epochs_of_each, strict=True))

    @property
    def epochs_of_each(self) -> tuple[float, ...]:
        """How often each text is seen."""
        tokens = self.steps * self.batch_size * self.config.context
        return tuple(share * tokens / length for share, length in self.texts)

    @property
    def epoch_windows(self) -> int:
        """The windows of an epoch: all that there are, each once."""
        lengths = [length for _, length in self.texts]
        return _count_windows(self.recipe, self.config, lengths)

    def epoch_after(self, step: int) -> int | None:
        """The epoch that ends with a step, from 1; None where none does."""
        before, after = ((step - past) * self.batch_size // self.epoch_windows for past in (1, 0))
        return after if after > before else None

    @property
    def train_tokens(self) -> int:
        """Of all texts."""
        return sum(length for _, length in self.texts)

    @property
    def token_seconds(self) -> float:
        """Of evaluating a token, estimated: forward in f32 takes about half the time of a step in bf16."""
        return 0.6 * self.step_seconds / (self.batch_size * self.config.context)

    def compiling_pays(self, machine: Machine) -> bool:
        """Whether the layers are compiled where nobody says: for long runs by the clock, on a CPU.

        In a run by steps the machine's speed must not matter; and how much a GPU gains nobody has measured.
        """
        return machine.device == "cpu" and self.available is not None and self.available >= COMPILING_PAYS

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
        ending = 1.3 * windows * self.config.context * token_seconds + 1.5 * sample_seconds + LEAVING
        ending += min(LONGEST_COPY, COPY_SECONDS * self.train_tokens)
        return max(self.step_seconds, self.available - ending)


# --- the tokenizer -----------------------------------------------------------------------------------------------


def choose_tokenizer(recipe: Recipe, characters: int, sample: str, mode: str) -> tuple[str, int | None]:
    """The kind of tokenizer and the most tokens that it may have.

    Characters for most texts: a tiny model learns quickest from them. Word pieces for conversations, and for texts so
    long that time is shorter than text, where words are written with spaces between them.

    Args:
        characters: of the whole text.
        sample: its beginning.
        mode: of the model.
    """
    if recipe.tokenizer is not None:
        kind = recipe.tokenizer
    else:
        spaced = sum(map(str.isspace, sample)) > 0.05 * len(sample)
        kind = "wordpiece" if spaced and (mode == "chat" or characters > CHAR_TEXT) else "char"
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


def count_steps(recipe: Recipe, config: ModelConfig, batch_size: int, lengths: Sequence[int]) -> int:
    """The steps of a run that the clock does not end.

    Args:
        lengths: the tokens of each text that is trained on.
    """
    if recipe.steps is not None:
        return recipe.steps
    assert recipe.epochs is not None  # else the caller gives a time
    return max(1, math.ceil(recipe.epochs * _count_windows(recipe, config, lengths) / batch_size))


def _count_windows(recipe: Recipe, config: ModelConfig, lengths: Sequence[int]) -> int:
    return sum(count_windows(length, config.context, recipe.stride or config.context) for length in lengths)


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
    parts = [split_tokens(recipe, source.tokens) for source in facts.sources]
    train_tokens, val_tokens = map(sum, zip(*parts, strict=True))
    for source, (length, _) in zip(facts.sources, parts, strict=True):
        if length < 2:
            raise SourceError(f"{source.name} has only {count(source.tokens, 'token')}", "give it more text")
    limits = Limits(facts.vocab_size, train_tokens, val_tokens, shortest=min(length for length, _ in parts))
    sizes = sizes_for(facts.characters, counted=choose_ngram_order(recipe, limits) > 0)
    if seconds is None:
        available = None
        lengths = [length for length, _ in parts]
        for size in sizes[:SIZES_BY_STEPS]:  # the largest that gets the steps that it needs
            larger, rows = shape(recipe, size, limits)
            most = count_steps(recipe, larger, rows, lengths)
            if size.steps <= most:
                config, batch_size, steps = larger, rows, most
        step_seconds = measure(config, batch_size)
        glance, final = GLANCE_TOKENS, max(10 * GLANCE_TOKENS, steps * batch_size * config.context)
    else:
        available = max(1.0, seconds - elapsed)
        steps = 1  # until it is known how much of the time is left for them
        config, batch_size, step_seconds = choose_size(recipe, sizes, limits, 0.9 * available, measure)
        tokens = available / step_seconds * batch_size * config.context  # that could be trained on in the time
        glance, final = int(GLANCE_SHARE * tokens / 0.6), int(FINAL_SHARE * tokens / 0.6)
    windows = (val_tokens or train_tokens) // config.context + 1
    draft = Plan(
        recipe=recipe,
        config=config,
        batch_size=batch_size,
        available=available,
        steps=steps,
        step_seconds=step_seconds,
        texts=tuple((source.share, length) for source, (length, _) in zip(facts.sources, parts, strict=True)),
        val_tokens=val_tokens,
        glance_windows=min(windows, max(FEWEST_WINDOWS, glance // config.context)),
        final_windows=min(windows, max(FEWEST_WINDOWS, final // config.context)),
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
        "minutes": None if seconds is None else seconds / 60,
        "batch_size": draft.batch_size,
        "evaluate_every": every,
        **_rates(recipe, config, draft.epochs * facts.characters / facts.tokens),
        "device": machine.device,
        "precision": machine.precision,
        "threads": machine.threads,
        "compile": draft.compiling_pays(machine) if recipe.compile is None else recipe.compile,
        **{name: getattr(config, name) for name in CHOSEN},
    }
    notices = tuple(_notices(draft, facts))
    return dataclasses.replace(draft, recipe=recipe.merged(filled), config=config, notices=notices)


def _notices(plan: Plan, facts: TextFacts) -> Iterator[str]:
    """What a person should know of the plan."""
    asked = plan.recipe.context
    if asked is not None and plan.config.context < asked:
        yield f"the text is short: a context of {plan.config.context} tokens, not {asked}"
    shortest = min(range(len(plan.texts)), key=lambda place: plan.texts[place][1])
    if facts.mix and asked is None and plan.config.context == plan.texts[shortest][1] - 1:
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


def estimate_memory(config: ModelConfig, parameters: int, batch_size: int, tokens: int) -> int:
    """Bytes: weights, gradients, two moments and the best weights in f32; activations; n-grams; the process itself.

    Args:
        tokens: that are trained on.
    """
    per_layer = 4 * (12 * config.d_model + 3 * config.feed_forward_width + 3 * config.n_head * config.context)
    per_token = config.n_layer * per_layer + 12 * config.vocab_size * (1 + config.ngram_order)
    counts = min(LARGEST_TABLE, tokens * config.vocab_size) if config.ngram_order else 0
    return 20 * parameters + batch_size * config.context * per_token + (2 + FOLDS) * counts + PROCESS_MEMORY


def count(number: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
