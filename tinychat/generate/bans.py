"""Banned texts: `BanWatch` finds them in an answer as it grows, `Redraw` draws the tokens that made one again.

The text is compared, in either case of letters, so that it does not matter how a text is cut into tokens. Tokens in
which a banned text may have begun are held back. Once one is complete, the answer goes back to the token in which it
began, and is drawn again from there, by the model's odds (after all filters) under the condition that no banned text
follows there: continuations that led to one are excluded, and the probabilities of the others keep their
proportions. If nothing is left of what the filters allow, or without sampling, the likeliest other way is taken.
"""

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from tinychat.events import AvoidedText
from tinychat.generate.engine import SampledToken, TokenProbability

NOTHING = 1e-9
"""Probability up to which nothing is left: rounding may leave that much of 1."""


class TextMatcher:
    """Finds texts in a text that comes a character at a time, in either case (Aho and Corasick 1975).

    A state stands for the longest end of the text so far with which one of the texts begins; 0 is that of no such end.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._shorter, self.length = [0], [0]
        """By state: that of the next shorter such end; and the number of characters of its own."""
        self._found = [0]
        """By state: the length of the longest text that is complete; 0 if none is."""
        for text in texts:
            state = 0
            for char in text.casefold():
                if char not in self._next[state]:
                    self._next[state][char] = len(self._next)
                    self._next.append({})
                    self._shorter.append(0)
                    self.length.append(self.length[state] + 1)
                    self._found.append(0)
                state = self._next[state][char]
            self._found[state] = self.length[state]
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for char, longer in self._next[state].items():
                self._shorter[longer] = self._step(self._shorter[state], char)
                self._found[longer] = self._found[longer] or self._found[self._shorter[longer]]
                waiting.append(longer)

    def advance(self, state: int, folded: str) -> tuple[int, int, int]:
        """Return the state after a text in folded case, and 0, 0.

        Where a text is complete, return the state there, the text's length, and the number of characters after it.
        """
        for left, char in enumerate(folded, start=1 - len(folded)):
            state = self._step(state, char)
            if self._found[state]:
                return state, self._found[state], -left
        return state, 0, 0

    def _step(self, state: int, char: str) -> int:
        while (follower := self._next[state].get(char)) is None:
            if state == 0:
                return 0
            state = self._shorter[state]
        return follower


class BanWatch:
    """Watches the tokens of an answer that are held back for banned texts; `before` is the text before them."""

    def __init__(self, texts: tuple[str, ...], before: str = "") -> None:
        self.texts = texts
        self._matcher = TextMatcher(texts)
        self._state = 0
        for char in before.casefold():  # one by one: a banned text that was complete before does not count
            self._state, _, _ = self._matcher.advance(self._state, char)
        self._held: list[tuple[int, int]] = []  # of each token the state after it, and its number of characters

    def push(self, text: str) -> int | None:
        """Hold a token's text; return the index of the held token in which a banned text begins, if one is complete."""
        folded = text.casefold()
        state, length, after = self._matcher.advance(self._held[-1][0] if self._held else self._state, folded)
        self._held.append((state, len(folded)))
        return self._index_back(length + after) if length else None

    def completes(self, text: str) -> bool:
        """Return whether a banned text would be complete with a token of this text."""
        state = self._held[-1][0] if self._held else self._state
        return self._matcher.advance(state, text.casefold())[1] > 0

    @property
    def num_free(self) -> int:
        """The number of first tokens held in which no banned text may have begun."""
        if not self._held:
            return 0
        pending = self._matcher.length[self._held[-1][0]]
        return self._index_back(pending) if pending else len(self._held)

    def pop(self, count: int) -> None:
        """Forget the first tokens held, which are shown."""
        if count:
            self._state = self._held[count - 1][0]
            del self._held[:count]

    def truncate(self, count: int) -> None:
        """Forget all but the first tokens held."""
        del self._held[count:]

    def _index_back(self, characters: int) -> int:
        """Return the index of the token that holds the character that many before the end, or of the first one.

        Tokens without text before it belong to it: they may be the first bytes of its first character.
        """
        index = len(self._held)
        while index and characters > 0:
            index -= 1
            characters -= self._held[index][1]
        while index and self._held[index - 1][1] == 0:
            index -= 1
        return index


def has_banned(text: str, bans: Sequence[str]) -> bool:
    """Return whether a text holds a banned one, in either case of letters."""
    folded = text.casefold()
    return any(ban.casefold() in folded for ban in bans)


class _Node:
    """The odds of the next token after one way that the answer may go, and what is known to lead to a banned text."""

    def __init__(self, tokens: Sequence[TokenProbability], banned: frozenset[int], tops: int) -> None:
        self.probabilities = array("d", bytes(8 * len(tokens)))
        self.logprobs = array("d", bytes(8 * len(tokens)))
        for one in tokens:
            self.probabilities[one.id], self.logprobs[one.id] = one.probability, one.logprob
        self.top_logprobs = tuple((one.id, one.logprob) for one in tokens[:tops])
        self.followed: set[int] = set()
        """Tokens after which the odds are known too."""
        self.removed = dict.fromkeys(banned, 1.0)
        """By token: the fraction of its probability that is known to lead to a banned text."""

    @property
    def lost(self) -> float:
        """The probability that is known to lead to a banned text."""
        return math.fsum(self.probabilities[id] * fraction for id, fraction in self.removed.items())

    def draw(self, uniform: float) -> int | None:
        """Draw a token; None if nothing is left."""
        weights = array("d", self.probabilities)
        for id, fraction in self.removed.items():
            weights[id] *= max(0.0, 1 - fraction)
        *_, total = sums = list(accumulate(weights))
        if total < NOTHING:
            return None
        return next(id for id, reached in enumerate(sums) if reached > uniform * total)


Way = tuple[int, ...]
"""Ids from the beginning of an answer."""


class Redraw:
    """Draws tokens again, without the ways that led to a banned text.

    Args:
        odds: returns the probabilities of the token after a way, the likeliest first; with true, those before
            temperature and filters, of which no token is left out.
        decode: returns the text of tokens.
        banned: ids of tokens whose own texts hold a banned one.
        greedy: whether the likeliest other way is taken.
        top_logprobs: number of likeliest tokens to report with each.
    """

    def __init__(
        self,
        odds: Callable[[Way, bool], list[TokenProbability]],
        decode: Callable[[Sequence[int]], str],
        banned: frozenset[int],
        *,
        greedy: bool,
        top_logprobs: int,
    ) -> None:
        self._odds, self._decode = odds, decode
        self._banned, self._greedy, self._tops = banned, greedy, top_logprobs
        self._rejected: list[tuple[Way, int]] = []
        self._nodes: dict[Way, _Node] = {}
        self._unfiltered: dict[Way, array[float]] = {}

    def reject(self, way: Way, start: int) -> None:
        """Remove a way that led to a banned text, which began in the token at index `start` of the way."""
        self._rejected.append((way, start))
        for length in range(start, len(way)):
            if way[:length] not in self._nodes:
                self._nodes[way[:length]] = _Node(self._odds(way[:length], False), self._banned, self._tops)
            if length > start:
                self._nodes[way[: length - 1]].followed.add(way[length - 1])
        self._nodes[way[:-1]].removed[way[-1]] = 1.0
        for length in range(len(way) - 2, start - 1, -1):
            self._nodes[way[:length]].removed[way[length]] = self._nodes[way[: length + 1]].lost

    def forget(self, length: int) -> None:
        """Forget what is known after ways shorter than `length`: they are shown by now."""
        self._rejected = [(way, start) for way, start in self._rejected if len(way) > length]
        for way in [way for way in self._nodes if len(way) < length]:
            del self._nodes[way]
            self._unfiltered.pop(way, None)

    def avoided(self, way: Way) -> tuple[AvoidedText, ...]:
        """Return the texts after a way that were drawn and rejected."""
        found = []
        for rejected, start in self._rejected:
            ids = rejected[len(way) :]
            if ids and start <= len(way) and rejected[: len(way)] == way:
                nodes = [self._nodes[rejected[:length]] for length in range(len(way), len(rejected))]
                probability = math.prod(node.probabilities[id] for node, id in zip(nodes, ids, strict=True))
                found.append(AvoidedText(self._decode(ids), ids[0], probability))
        return tuple(found)

    def draw(self, way: Way, uniform: Callable[[int], float]) -> list[SampledToken]:
        """Draw the tokens after a way, up to one after which nothing is known; none if no other way is left.

        `uniform` returns the random number of the token at an index of the answer.
        """
        tokens = None if self._greedy else self._sample(way, uniform)
        if tokens is None:
            tokens = self._take_likeliest(way)
        sampled = []
        for id in tokens:
            node = self._nodes[way]
            sampled.append(SampledToken(id, node.logprobs[id], node.top_logprobs))
            way = (*way, id)
        return sampled

    def _sample(self, way: Way, uniform: Callable[[int], float]) -> Way | None:
        """Sample tokens; None if nothing is left of what the filters allow."""
        tokens: Way = ()
        while (node := self._nodes.get(way + tokens)) is not None:
            id = node.draw(uniform(len(way) + len(tokens)))
            if id is None:
                return None
            tokens += (id,)
        return tokens

    def _take_likeliest(self, way: Way) -> Way:
        """Return the way on that costs least: the sum, over its tokens, of how much likelier another would have been.

        That is the way of greedy decoding but for one token, and the limit of sampling at falling temperatures.
        """
        ways = min(self._ways(way, (), 0.0), default=(0.0, 0, ()))
        return ways[-1]

    def _ways(self, way: Way, tokens: Way, cost: float) -> Iterator[tuple[float, int, Way]]:
        """Yield the costs and tokens of the likeliest token at each known node that leaves what is known."""
        node = self._nodes[way + tokens]
        if way + tokens not in self._unfiltered:
            logprobs = array("d", bytes(8 * len(node.logprobs)))
            for one in self._odds(way + tokens, True):
                logprobs[one.id] = math.log(one.probability) if one.probability else -math.inf
            self._unfiltered[way + tokens] = logprobs
        logprobs = self._unfiltered[way + tokens]
        highest, best = max(logprobs), -1
        for id, logprob in enumerate(logprobs):
            if id in node.followed:
                yield from self._ways(way, (*tokens, id), cost + highest - logprob)
            elif node.removed.get(id, 0.0) < 1 and logprob > (logprobs[best] if best >= 0 else -math.inf):
                best = id
        if best >= 0:
            yield cost + highest - logprobs[best], len(tokens), (*tokens, best)
