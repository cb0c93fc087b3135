"""What an engine is: token ids and settings in, tokens out. Nothing here or above it knows tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tinychat.generate.looking import Head, Voice
from tinychat.settings import Settings
from tinychat.store.models import ModelInfo


@dataclass(slots=True)
class Request:
    """One sequence that is to go on.

    `ids` are all its tokens so far, prompt and answer, of which the last `made` are the answer's. A `slot` keeps its
    cache from call to call: what `ids` share with the slot's last ones is not computed again. The random numbers of
    an answer depend on `seed`, `place` (that of the prompt in the input) and the token's own place alone, never on
    the batch.
    """

    slot: int
    ids: list[int]
    made: int
    settings: Settings
    seed: int
    place: int = 0
    end_ids: frozenset[int] = frozenset()
    source: tuple[int, ...] | None = None
    """what the encoder reads, in an encoder-decoder model"""

    @property
    def left(self) -> int:
        """How many tokens may still come."""
        return self.settings.max_tokens - self.made


class Drawn(NamedTuple):
    """A token, its log-probability under the model itself (nats), and the likeliest ids at its place with theirs."""

    id: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Odds:
    """A token that could come next: its log-probability under the model itself (nats), and that of being drawn.

    `drawn` is a probability, by the settings: after temperature and filters, 0 where these cut the token.
    """

    id: int
    logprob: float
    drawn: float


class Engine(Protocol):
    """Makes tokens."""

    context: int
    """the most that the model sees at once; what is longer goes on from its newest part"""
    batch_size: int
    """how many sequences are extended together quickest"""
    about: str
    """which engine it is, and how it works; where a quicker one would be expected, why it is this one"""

    def reload(self, info: ModelInfo) -> None:
        """Takes the weights anew of a model of the same architecture.

        Raises:
            ModelError: they are missing, damaged, or do not fit.
        """
        ...

    def extend(
        self, requests: Sequence[Request], n: int, alternatives: int = 0, seconds: float = math.inf
    ) -> list[list[Drawn]]:
        """Makes up to n more tokens of each sequence, as many as its settings allow; an end token is its last.

        Args:
            requests: what is to go on, together.
            n: the most tokens of each.
            alternatives: how many of the likeliest tokens to tell at each place.
            seconds: after which it stops, even where all of them went by with reading what is there.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def odds(self, request: Request) -> list[Odds]:
        """Every token that could come next, the likeliest first.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def score(self, ids: Sequence[int]) -> list[float]:
        """The log-probability (nats) of each token but the first.

        In windows of the context that do not overlap, as a loss is measured.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        ...

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """The entropy (nats) of what could have come in the place of each token but the first, before any filter.

        In windows, as `score`.

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
        """What the heads of attention look at, by layer, while the model reads what it sees of a sequence.

        Args:
            ids: the sequence; as much of it as the model sees at its end.
            source: what the encoder reads, in an encoder-decoder model.
            layer: whose heads alone are asked for, from 0; None: all.
            cross: how the decoder looks at what the encoder made, and not at itself.
            cells: the most rows and columns of each map.
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
        """The weights of one head: a row for each of the newest queries, oldest first, in it one for each key.

        Args:
            newest: the most rows. The others are those of `heads`.
        """
        ...

    def lens(
        self, ids: Sequence[int], token: int, *, source: Sequence[int] | None = None, likeliest: int = 5
    ) -> list[Voice]:
        """What would be said next after each layer (nostalgebraist 2020); the last one is what the model says.

        Args:
            ids: what stands before.
            token: id of the token that is asked about.
            source: what the encoder reads, in an encoder-decoder model.
            likeliest: how many of each.
        """
        ...


def window_start(length: int, context: int) -> int:
    """Where the part of a sequence begins that the model sees when it makes the token after `length` others.

    A function of the length alone, so that an answer is the same however it was cut into calls. A quarter of the
    context is dropped at a time: dropping single tokens would mean computing the whole cache anew for each.
    """
    if length <= context:
        return 0
    stride = max(1, context // 4)
    return -(-(length - context) // stride) * stride
