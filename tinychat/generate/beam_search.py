"""Beam search: the likeliest answer among those that extend the `num_beams` likeliest beginnings of each length.

The search is that of `transformers` with its defaults, against which it is tested: answers are compared by their mean
log-probability per token, the end token included (a length penalty of 1), and the search ends once no beginning is
better than the worst of `num_beams` finished answers.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter

from tinychat.generate.engine import ALL_TOKENS, Request, SampledToken

SLOT_STRIDE = 1 << 20
"""Difference of the slots of two beams of one answer: more than there are answers at once."""

Allows = Callable[[Sequence[int]], bool]
"""Returns whether a sequence of ids may be a beginning of the answer, or all of it."""
Adjust = Callable[[Sequence[int]], "array[float] | None"]
"""Returns the biases of the next token [V] after the ids of a sequence; None if every token is forbidden."""


@dataclass(frozen=True, slots=True)
class _Beam:
    """A beginning of the answer, or all of it."""

    slot: int
    score: float = 0.0
    """Sum of the log-probabilities of its tokens, and of their biases."""
    tokens: tuple[SampledToken, ...] = ()

    @property
    def mean(self) -> float:
        return self.score / max(1, len(self.tokens))


class BeamSearch:
    """The search for the answer of a request; `requests` are to be extended by one token with `top_logprobs` likeliest.

    `adjust` returns biases, which are added to log-probabilities; None: there are none. `allows` tells which sequences
    may be answers; None: all.
    """

    def __init__(
        self,
        request: Request,
        num_beams: int,
        adjust: Adjust | None = None,
        allows: Allows | None = None,
        top_logprobs: int = 0,
    ) -> None:
        self.num_beams = num_beams
        self._request, self._adjust, self._allows = request, adjust, allows
        self._num_kept = max(2, 1 + len(request.end_ids)) * num_beams  # so many may end at once, and as many go on
        self.top_logprobs = ALL_TOKENS if adjust or allows else max(top_logprobs, self._num_kept)
        self._running = [_Beam(request.slot)]
        self._finished: list[_Beam] = []
        self._num_slots = 1
        self.is_over = request.left <= 0

    @property
    def requests(self) -> list[Request]:
        """The requests of all beams."""
        return [
            replace(
                self._request, slot=beam.slot, ids=[*self._request.ids, *(token.id for token in beam.tokens)],
                num_generated=self._request.num_generated + len(beam.tokens), biases=None,
            )
            for beam in self._running
        ]  # fmt: skip

    def advance(self, generated: Sequence[Sequence[SampledToken]]) -> None:
        """Choose the next beams by the likeliest tokens after each, of which the sampled ones do not count."""
        if not all(generated):  # there was no time to read all prompts
            return
        candidates: list[tuple[float, _Beam, int, float]] = []
        for beam, request, (token, *_) in zip(self._running, self.requests, generated, strict=True):
            biases = self._adjust(request.ids) if self._adjust is not None else None
            if self._adjust is not None and biases is None:  # the answer is complete
                self._finished.append(beam)
                continue
            for id, logprob in token.top_logprobs:
                score = beam.score + logprob + (biases[id] if biases is not None else 0.0)
                candidates.append((score, beam, id, logprob))
        candidates = [one for one in candidates if one[0] > float("-inf")]
        candidates = list(islice(filter(self._is_allowed, sorted(candidates, key=lambda one: -one[0])), self._num_kept))
        tops = {beam.slot: token.top_logprobs for beam, (token, *_) in zip(self._running, generated, strict=True)}
        running: list[_Beam] = []
        slots: set[int] = set()
        for rank, (score, beam, id, logprob) in enumerate(candidates):
            tokens = (*beam.tokens, SampledToken(id, logprob, tops[beam.slot]))
            ends = id in self._request.end_ids or len(tokens) >= self._request.left
            if ends and rank < self.num_beams:
                self._finished.append(_Beam(beam.slot, score, tokens))
            elif not ends and len(running) < self.num_beams:
                slot = beam.slot
                if slot in slots:  # a sibling goes on with the keys and values of their parent
                    slot, self._num_slots = self._request.slot + self._num_slots * SLOT_STRIDE, self._num_slots + 1
                slots.add(slot)
                running.append(_Beam(slot, score, tokens))
        self._running = running
        self._finished = sorted(self._finished, key=attrgetter("mean"), reverse=True)[: self.num_beams]
        is_full = len(self._finished) == self.num_beams
        self.is_over = not running or (is_full and max(one.mean for one in running) <= self._finished[-1].mean)

    def _is_allowed(self, candidate: tuple[float, _Beam, int, float]) -> bool:
        _, beam, id, _ = candidate
        return self._allows is None or self._allows([*self._request.ids, *(token.id for token in beam.tokens), id])

    @property
    def best(self) -> list[SampledToken]:
        """The tokens of the best answer so far; of a beginning if none has ended; none if all were rejected."""
        beams = self._finished or self._running or [_Beam(self._request.slot)]
        return list(max(beams, key=attrgetter("mean")).tokens)
