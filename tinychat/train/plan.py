"""What a plan is, and what is known when it is made: of the text, and of the machine. Needs no torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tinychat.model.config import ModelConfig
from tinychat.textutil import count
from tinychat.train.recipe import Recipe
from tinychat.train.rows import count_windows

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


class Portion(NamedTuple):
    """What of a text is trained on."""

    share: float
    """of what is drawn from a mix"""
    tokens: int
    rows: int = 0
    """documents, a row each; 0: it is cut into windows"""


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
    texts: tuple[Portion, ...]
    """of each text of a mix what is trained on; else one"""
    val_tokens: int
    """0: the text is too short to keep a part of it"""
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
    def epochs(self) -> float:
        """How often the text is seen; of a mix, how often what is seen was seen, on average."""
        return sum(text.share * epochs for text, epochs in zip(self.texts, self.epochs_of_each, strict=True))

    @property
    def epochs_of_each(self) -> tuple[float, ...]:
        """How often each text is seen."""
        rows = self.steps * self.batch_size
        tokens = rows * self.config.context
        return tuple(
            share * rows / documents if documents else share * tokens / length
            for share, length, documents in self.texts
        )

    @property
    def epoch_rows(self) -> int:
        """The rows of an epoch: all that there are, each once."""
        return count_rows(self.recipe, self.config, self.texts)

    def epoch_after(self, step: int) -> int | None:
        """The epoch that ends with a step, from 1; None where none does."""
        before, after = ((step - past) * self.batch_size // self.epoch_rows for past in (1, 0))
        return after if after > before else None

    @property
    def train_tokens(self) -> int:
        """Of all texts."""
        return sum(text.tokens for text in self.texts)

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


def count_rows(recipe: Recipe, config: ModelConfig, texts: Sequence[Portion]) -> int:
    """The rows of an epoch: windows, or documents."""
    stride = recipe.stride or config.context
    return sum(text.rows or count_windows(text.tokens, config.context, stride) for text in texts)
