"""The protocol of engines: token ids and settings in, tokens out, without tensors."""

import math
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate.computation import Computation
from tinychat.store.models import ModelInfo

OVERLAP = 32
"""Tokens that a window in which a text is scored shares with the one before, and that only serve as context: the first
ones of a window would be predicted from little. More of them gain nothing (tests/bench/EXPERIMENTS.md)."""


class Steering(NamedTuple):
    """A direction to add to the residual stream: from one text to another, times a strength, after a layer (from 1)."""

    toward: tuple[int, ...]
    away: tuple[int, ...]
    strength: float
    layer: int | None = None
    """The middle one if it is None."""


@dataclass(slots=True)
class Request:
    """A sequence to continue.

    The random numbers of an answer depend on `seed`, `prompt_index` and the token's index in the answer, never on the
    batch.
    """

    slot: int
    """Identifies the KV cache of the sequence: a prefix of `ids` that the slot has read before is not read again."""
    ids: list[int]
    """Ids of all tokens so far, prompt and answer."""
    num_generated: int
    """Number of ids, at the end, that belong to the answer."""
    settings: Settings
    seed: int
    prompt_index: int = 0
    """Index of the prompt in the input."""
    end_ids: frozenset[int] = frozenset()
    """Ids of tokens that end the answer."""
    source: tuple[int, ...] | None = None
    """Ids that the encoder reads, in an encoder-decoder model."""
    biases: "array[float] | None" = None
    """Added to the logits [V] of the very next token, before temperature and filters; −∞ masks a token."""

    steering: Steering | None = None
    """Direction to steer in, at all positions."""

    @property
    def left(self) -> int:
        """The number of tokens that may still be generated."""
        return self.settings.max_tokens - self.num_generated


class SampledToken(NamedTuple):
    """A generated token."""

    id: int
    logprob: float
    """Log-probability (nats) under the model, steered if it is, before temperature and filters."""
    top_logprobs: tuple[tuple[int, float], ...] = ()
    """Likeliest ids at its position and their log-probabilities, if requested."""


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token that may come next."""

    id: int
    logprob: float
    """Log-probability (nats) under the model, not steered, before temperature and filters."""
    probability: float
    """Probability of being sampled, after steering, temperature and filters; 0 if they mask the token."""


@dataclass(frozen=True, slots=True)
class Head:
    """A summary of one attention head: weights are averaged over all queries but the first ones of a sequence."""

    first: float
    """Weight on the first token."""
    entropy: float
    """Entropy of a query's weights, in bits."""
    cells: tuple[tuple[float, ...], ...]
    """[rows][columns], all queries: neighbouring keys are summed to a column, neighbouring queries averaged."""
    previous: float = 0.0
    """Weight on the token before; this and the fields below are for self-attention only."""
    itself: float = 0.0
    """Weight on the query's own token."""
    same: float = 0.0
    """Weight on earlier tokens equal to the query's, over the queries that have any."""
    followed: float = 0.0
    """Weight on the tokens after those: high for an induction head (Olsson et al. 2022)."""
    distance: float = 0.0
    """Mean distance back, in tokens."""


@dataclass(frozen=True, slots=True)
class LensRow:
    """The next token as one part of a model predicts it."""

    part: str
    """`embeddings`, `layer 1` and so on; then `counts`, `matches` and `mixture`, if the model mixes these."""
    likeliest: tuple[tuple[int, float], ...]
    """Ids and probabilities; empty if the part predicts nothing."""
    probability: float
    """Probability of the token in question."""
    rank: int
    """Rank of that token; 1 is the likeliest."""
    share: float | None = None
    """Share of the part in the mixture; None if it is not a component of one."""


class Engine(Protocol):
    """Generates tokens with one model.

    Its methods raise `GenerationError` if the model gave NaN or infinite logits; `heads`, `attention`, `lens` and
    `trace`, also if the engine does not support introspection.
    """

    context_length: int
    """Number of tokens that the model sees at once; longer sequences continue from their newest part."""
    batch_size: int
    """Number of sequences at which a batch has the highest throughput."""
    can_steer: bool
    """Whether it can add the direction of a request's steering."""
    about: str
    """Name of the engine and how it runs, and the reason for this engine if a faster one would be expected."""

    def reload(self, info: ModelInfo) -> None:
        """Load the weights of another model of the same architecture.

        Raises:
            ModelError: If the weights are missing, damaged, or of another architecture.
        """

    def check(self, request: Request) -> None:
        """Check that the engine can extend a sequence as its request asks.

        If it cannot, `extend` fails for all sequences of a call.

        Raises:
            GenerationError: If the model cannot be steered in the direction of the request.
        """

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        """Generate up to `n` more tokens of each sequence, with the `top_logprobs` likeliest ids at each position.

        Return one list for each request, in their order; a list may be empty. The requests stay unchanged.

        A sequence gets at most `Request.left` tokens, one if it has biases, and none after an end token of its own,
        which is returned too. The time limit is checked after each token and each part of a prompt; reading the prompts
        may exceed it, and the call may then return no token.
        """

    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Return the probability of every token of the vocabulary to come next, the likeliest under the model first."""

    def score(self, ids: Sequence[int]) -> list[float]:
        """Return the log-probability (nats) of each token but the first, read in the windows of `window_starts`."""

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """Return the entropy (nats) of the prediction of each token but the first, before any filter; see `score`."""

    def heads(
        self,
        ids: Sequence[int],
        *,
        source: Sequence[int] | None = None,
        layer: int | None = None,
        cross: bool = False,
        cells: int = 16,
    ) -> list[list[Head]]:
        """Summarize the attention heads of each layer while the model reads the newest window of a sequence.

        Args:
            ids: the sequence.
            source: ids that the encoder reads, in an encoder-decoder model.
            layer: index of the only layer to summarize; default: all layers.
            cross: whether to summarize cross-attention to the encoder instead of self-attention.
            cells: maximum number of rows and columns of each map.
        """

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
        """Return the attention weights of one head, [queries][keys], oldest first; each row sums to 1.

        All queries but the `newest` are left out; the other arguments are as in `heads`.
        """

    def lens(
        self, ids: Sequence[int], token: int, *, source: Sequence[int] | None = None, likeliest: int = 5
    ) -> list[LensRow]:
        """Predict the next token from the hidden state after each layer (logit lens, nostalgebraist 2020).

        There is one row for the embeddings, one for each layer and, if the model mixes n-grams in, one for each part of
        the mixture; the last row is the model's own prediction. Each reports the probability of `token`.
        """

    def trace(
        self,
        request: Request,
        label: Callable[[int], str],
        source_label: Callable[[int], str],
        *,
        uniform: float | None = None,
        drawn: int | None = None,
        precision: str | None = None,
    ) -> Computation:
        """Compute the next token of a request as a list of operations; see `trace` in `tracing.py`.

        Args:
            request: the sequence.
            label: returns the text of a token.
            source_label: returns that of a token of the encoder.
            uniform: the random number that draws the token; None if it is not known.
            drawn: id of the token that was drawn; None if it is not known.
            precision: the one that another engine drew the token in; None if it was this engine.
        """


def nonfinite_error() -> GenerationError:
    """Return the error that an engine raises if the model gave NaN or infinite logits."""
    return GenerationError(
        "the model gave NaN or infinite logits", "its weights are damaged: train it again at a lower rate"
    )


ALL_TOKENS = 1 << 30
"""Number of likeliest tokens to ask for where all are wanted."""


def next_logprobs(engine: Engine, requests: Sequence[tuple[Request, list[int]]]) -> list[dict[int, float]]:
    """Return the log-probability of every token after some ids, in the place of those of each request."""
    asked = [replace(request, ids=ids, num_generated=0, biases=None) for request, ids in requests]
    return [dict(token.top_logprobs) for (token,) in engine.extend(asked, 1, top_logprobs=ALL_TOKENS)]


def window_start(length: int, context_length: int) -> int:
    """Return the index of the first token that the model sees when it predicts the next token after `length` others.

    The index depends on the length alone, so that an answer does not depend on the sizes of the engine's calls. A
    quarter of the context is dropped at a time: with single tokens, each one would invalidate the whole KV cache.
    """
    if length <= context_length:
        return 0
    stride = window_stride(context_length)
    return -(-(length - context_length) // stride) * stride


def window_starts(tokens: int, context_length: int, overlap: int = OVERLAP) -> range:
    """Return where the windows start in which each token of a text but the first is scored once.

    Two windows share `overlap` inputs, or half the context length if that is less: what follows them was scored in the
    window before.
    """
    overlap = min(overlap, context_length // 2)
    return range(0, max(min(1, tokens - 1), tokens - 1 - overlap), context_length - overlap)


def score_windows(ids: Sequence[int], context_length: int) -> Iterator[tuple[Sequence[int], int]]:
    """Yield the ids of each window, and how many of those that follow its first one the window before has scored."""
    for start in window_starts(len(ids), context_length):
        yield ids[start : start + context_length + 1], min(OVERLAP, context_length // 2) if start else 0


def window_stride(context_length: int) -> int:
    """Return the number of tokens that the window of a long sequence moves by at once."""
    return max(1, context_length // 4)


_MASK = (1 << 64) - 1


def uniform(seed: int, prompt_index: int, position: int) -> float:
    """Return a uniform random number in [0, 1) for a token by its position in the answer: 53 bits of a hash.

    It is counter-based, so that it depends neither on the batch nor on the engine.
    """
    state = _mix(_mix(_mix(seed) ^ prompt_index) ^ position)
    return float(state >> 11) * 2.0**-53


def derive_seed(seed: int, index: int) -> int:
    """Return the seed of the prompt at an index of the input: `seed` itself at 0, a hash of 53 bits elsewhere.

    With it, the prompt alone gets the same answer.
    """
    return _mix(_mix(seed) ^ index) >> 11 if index else seed


def fresh_seed() -> int:
    """Return a random seed, short enough to type."""
    return int.from_bytes(os.urandom(4)) >> 1


def next_seed(seed: int, attempt: int) -> int:
    """Return the seed of the random numbers with which the rest of an answer is drawn again, by number of attempts."""
    return _mix(_mix(seed) ^ ~attempt & _MASK)


def _mix(x: int) -> int:
    """Advance a SplitMix64 state and return its output (Steele, Lea, Flood 2014, fig. 14)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
