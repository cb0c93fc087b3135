"""The protocol of engines: token ids and settings in, tokens out. Nothing here or above knows tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tinychat.config.settings import Settings
from tinychat.generate.introspection import Head, LensRow
from tinychat.store.models import ModelInfo


@dataclass(slots=True)
class Request:
    """A sequence to continue.

    The random numbers of an answer depend on `seed`, `prompt_index` and the token's position in the answer, never on
    the batch.
    """

    slot: int
    """names its cache from call to call: the ids that `ids` share with the slot's last ones are not read again"""
    ids: list[int]
    """all tokens so far, prompt and answer"""
    num_generated: int
    """how many of them, at the end, are the answer's"""
    settings: Settings
    seed: int
    prompt_index: int = 0
    """of the prompt in the input"""
    end_ids: frozenset[int] = frozenset()
    """tokens that end the answer"""
    source: tuple[int, ...] | None = None
    """ids that the encoder reads, in an encoder-decoder model"""

    @property
    def left(self) -> int:
        """How many tokens may still be generated."""
        return self.settings.max_tokens - self.num_generated


class SampledToken(NamedTuple):
    """A generated token."""

    id: int
    logprob: float
    """under the model itself, in nats"""
    top_logprobs: tuple[tuple[int, float], ...] = ()
    """the likeliest ids at its position and their log-probabilities, if asked for"""


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token that may come next."""

    id: int
    logprob: float
    """under the model itself, in nats"""
    probability: float
    """of being sampled: after temperature and filters; 0 if these cut the token"""


class Engine(Protocol):
    """Generates tokens with one model."""

    context_length: int
    """number of tokens that the model sees at once; longer sequences continue from their newest part"""
    batch_size: int
    """number of sequences that are fastest to extend together"""
    about: str
    """which engine it is and how it works; and why this one, where a faster one would be expected"""

    def reload(self, info: ModelInfo) -> None:
        """Load the weights of another model of the same architecture.

        Raises:
            ModelError: they are missing, damaged, or do not fit.
        """
        ...

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        """Generate up to n more tokens of each sequence, as many as its settings allow; an end token is its last.

        Args:
            requests: the sequences, extended together.
            n: number of tokens of each, at most.
            top_logprobs: number of likeliest tokens to return at each position.
            seconds: time after which to stop, even if reading the prompts took all of it.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Return every token that may come next, the likeliest first.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def score(self, ids: Sequence[int]) -> list[float]:
        """Return the log-probability (nats) of each token but the first.

        The ids are read in windows of the context that do not overlap, as for a loss.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """Return the entropy (nats) of the prediction of each token but the first, before any filter.

        The ids are read in windows, as in `score`.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def heads(
        self,
        ids: Sequence[int],
        *,
        source: Sequence[int] | None = None,
        layer: int | None = None,
        cross: bool = False,
        cells: int = 16,
    ) -> list[list[Head]]:
        """Summarize the attention heads, layer by layer, while the model reads its window of a sequence.

        Args:
            ids: the sequence; the model sees the newest part of it.
            source: ids that the encoder reads, in an encoder-decoder model.
            layer: index of the only layer to summarize; None: all.
            cross: whether to summarize attention to the encoder instead of self-attention.
            cells: number of rows and columns of each map, at most.

        Raises:
            GenerationError: the engine cannot look inside.
        """
        ...

    def attention(
        self,
        ids: Sequence[int],
        layer: int,
        head: int,
        *,
        source: Sequence[int] | None = None,
        cross: bool = False,
        newest: int = 256,
    ) -> list[list[float]]:
        """Return the weights of one head: one row per query, oldest first, and one number per key.

        Args:
            ids: as in `heads`.
            layer: index of the layer.
            head: index of the head.
            source: as in `heads`.
            cross: as in `heads`.
            newest: number of rows, at most; older queries are left out.

        Raises:
            GenerationError: the engine cannot look inside.
        """
        ...

    def lens(
        self, ids: Sequence[int], token: int, *, source: Sequence[int] | None = None, likeliest: int = 5
    ) -> list[LensRow]:
        """Predict the next token after each layer (nostalgebraist 2020); the last row is the model's own prediction.

        Args:
            ids: the sequence so far.
            token: id of the token in question.
            source: as in `heads`.
            likeliest: number of likeliest tokens in each row.

        Raises:
            GenerationError: the engine cannot look inside.
        """
        ...


def window_start(length: int, context_length: int) -> int:
    """Return the index of the first token that the model sees when it predicts the one after `length` others.

    It depends on the length alone, so that an answer is the same however it is cut into calls. A quarter of the context
    is dropped at a time: dropping single tokens would mean recomputing the whole cache for each.
    """
    if length <= context_length:
        return 0
    stride = max(1, context_length // 4)
    return -(-(length - context_length) // stride) * stride
