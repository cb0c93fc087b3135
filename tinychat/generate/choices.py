"""Choices: an answer that is one of some texts, each as likely as the model finds it.

The probability of a choice is that of its tokens, as the tokenizer cuts it, and of the end of the answer after them: an
end token, or a stop text that the tokenizer can write. Without either it is that of its tokens alone, which favours
short choices. Divided by their sum, the probabilities are those of one draw, to which temperature and filters apply as
to that of a token.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import nlargest

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.events import ChoiceProbabilities, ChoiceProbability
from tinychat.generate.bans import has_banned
from tinychat.generate.engine import Engine, Request, SampledToken, TokenProbability, next_logprobs, uniform
from tinychat.pattern import find_pattern
from tinychat.tokenizer.tokenizer import Tokenizer


class _Node:
    """A token of some choices, or of the end of an answer after them, in a tree: its children are what may follow."""

    __slots__ = ("children", "logprob", "top_logprobs")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.logprob = 0.0
        """Log-probability of this token after those before it."""
        self.top_logprobs: tuple[tuple[int, float], ...] = ()
        """Those of what may follow."""

    def add(self, ids: Sequence[int]) -> None:
        """Add the tokens that follow this one."""
        node = self
        for id in ids:
            node = node.children.setdefault(id, _Node())

    def follow(self, ids: Sequence[int]) -> "_Node":
        """Return the node of the last of some tokens after this one."""
        node = self
        for id in ids:
            node = node.children[id]
        return node

    def sum_logprobs(self, ids: Sequence[int]) -> float:
        """Return the log-probability of all of some tokens after this one."""
        node, total = self, 0.0
        for id in ids:
            node = node.children[id]
            total += node.logprob
        return total


class Choices:
    """The choices of a request, whose answer begins at index `start` of its ids: those that go on from its tokens.

    They have their probabilities once they are weighed, which takes a call of the engine for each of their tokens. Each
    token drawn comes with the `top_logprobs` likeliest.

    Raises:
        GenerationError: If the tokenizer cannot write a choice, if it is longer than `max_tokens`, or if none is left.
    """

    def __init__(self, request: Request, start: int, tokenizer: Tokenizer, top_logprobs: int = 0) -> None:
        self._request = replace(request, ids=list(request.ids))
        self._before, self._top_logprobs = request.ids[:start], top_logprobs
        settings, so_far = request.settings, request.ids[start:]
        encoded = {text: tokenizer.encode(text) for text in settings.choices if _is_asked(text, settings)}
        for text, ids in encoded.items():
            if tokenizer.decode(ids) != text:
                raise GenerationError(f"this model cannot write {text!r}", "it lacks some of the characters")
            if len(ids) > settings.max_tokens:
                problem = f"{text!r} has {len(ids)} tokens, and max-tokens is {settings.max_tokens}"
                raise GenerationError(problem, f"`--max-tokens {len(ids)}`")
        encoded = {text: ids for text, ids in encoded.items() if ids[: len(so_far)] == so_far}
        if not encoded:
            begins = f" begins with {tokenizer.decode(so_far)!r}" if so_far else " agrees with begin, regex and ban"
            raise GenerationError(f"no choice{begins}", "`--choices none` allows any answer")
        self.texts = sorted(encoded, key=encoded.__getitem__)
        self.ids = [encoded[text] for text in self.texts]
        """Tokens of each choice, from the beginning of the answer."""
        self.probabilities: list[ChoiceProbability] = []
        """Those of each choice, once all are weighed."""
        stops = [
            ids for stop in settings.stop if stop in tokenizer.decode(ids := tokenizer.encode(stop), begins_text=False)
        ]
        self._ends = [[id] for id in sorted(request.end_ids)] + stops
        self._root = _Node()
        for ids in self.ids:
            self._root.add(ids)
            for end in self._ends:
                self._root.follow(ids).add(end)
        self._waiting: list[tuple[_Node, list[int]]] = [(self._root, [])]  # to weigh, each with its ids

    def weigh(self, engine: Engine, should_pause: Callable[[], bool] = lambda: False) -> bool:
        """Go on weighing until `should_pause`, called after each call of the engine; return whether it is done.

        Raises:
            GenerationError: If the model gave NaN or infinite logits.
        """
        while self._waiting:
            node, ids = self._waiting.pop()
            (logprobs,) = next_logprobs(engine, [(self._request, [*self._before, *ids])])
            for id, child in node.children.items():
                child.logprob = logprobs[id]
            if self._top_logprobs:
                node.top_logprobs = tuple(nlargest(self._top_logprobs, logprobs.items(), key=lambda item: item[1]))
            # Depth first: the cache of keys and values holds the beginning that two choices share.
            following = reversed(node.children.items())
            self._waiting += [(child, [*ids, id]) for id, child in following if child.children]
            if self._waiting and should_pause():
                return False
        if not self.probabilities:
            self.probabilities = self._compute_probabilities()
        return True

    def _compute_probabilities(self) -> list[ChoiceProbability]:
        logprobs: list[float] = []
        for ids in self.ids:
            last = self._root.follow(ids)
            after = [last.sum_logprobs(end) for end in self._ends]
            logprobs.append(self._root.sum_logprobs(ids) + (log_sum(after) if after else 0.0))
        own = [logprob - log_sum(logprobs) for logprob in logprobs]
        drawn = filter_choices(own, self._request.settings)
        return list(map(ChoiceProbability, self.texts, map(math.exp, own), drawn))

    @property
    def record(self) -> ChoiceProbabilities:
        """The probabilities, the likeliest choice first."""
        return ChoiceProbabilities(tuple(sorted(self.probabilities, key=lambda one: -one.model)))

    def draw(self, request: Request, start: int) -> list[SampledToken]:
        """Return the tokens of a drawn choice that are not generated yet, and an end token if the model has one."""
        number = uniform(request.seed, request.prompt_index, request.num_generated)
        number *= sum(one.probability for one in self.probabilities)
        index = -1
        while number >= 0 and index < len(self.ids) - 1:
            index += 1
            number -= self.probabilities[index].probability
        so_far, ids = request.ids[start:], list(self.ids[index])
        if request.end_ids:
            after = {id: node.logprob for id, node in self._root.follow(ids).children.items()}
            ids.append(max(request.end_ids, key=after.__getitem__))
        node, tokens = self._root.follow(so_far), list[SampledToken]()
        for id in ids[len(so_far) :]:
            tokens.append(SampledToken(id, node.children[id].logprob, node.top_logprobs))
            node = node.children[id]
        return tokens

    def next_tokens(self, engine: Engine) -> list[TokenProbability]:
        """Return the probability of each token to come next, the likeliest under the model first."""
        request = self._request
        (logprobs,) = next_logprobs(engine, [(request, request.ids)])
        following = dict.fromkeys(logprobs, 0.0)
        num_generated = len(request.ids) - len(self._before)
        for ids, one in zip(self.ids, self.probabilities, strict=True):
            ends = sorted(request.end_ids, key=logprobs.__getitem__)
            id = ids[num_generated] if len(ids) > num_generated else ends[-1] if ends else None
            if id is not None:
                following[id] += one.probability
        total = sum(following.values()) or 1.0
        tokens = [TokenProbability(id, logprobs[id], weight / total) for id, weight in following.items()]
        return sorted(tokens, key=lambda one: -one.logprob)


def filter_choices(logprobs: Sequence[float], settings: Settings) -> list[float]:
    """Return the probabilities of being drawn: after temperature, top-k, top-p and min-p, as in `sampling`."""
    if settings.greedy:
        best = max(range(len(logprobs)), key=logprobs.__getitem__)
        return [float(index == best) for index in range(len(logprobs))]
    highest = max(logprobs)
    weights = [math.exp((logprob - highest) / settings.temperature) for logprob in logprobs]
    order = sorted(range(len(weights)), key=lambda index: -weights[index])
    kept: list[int] = []
    within, likelier = sum(weights[index] for index in order[: settings.top_k]), 0.0
    for index in order[: settings.top_k]:
        is_within = not kept or likelier < settings.top_p * within
        if is_within and weights[index] >= settings.min_p:  # the highest weight is 1
            kept.append(index)
        likelier += weights[index]
    total = sum(weights[index] for index in kept)
    return [weights[index] / total if index in kept else 0.0 for index in range(len(weights))]


def _is_asked(text: str, settings: Settings) -> bool:
    """Return whether a choice is as `begin`, `regex` and `ban` ask, too."""
    if has_banned(text, settings.ban):
        return False
    is_match = settings.regex is None or find_pattern(settings.regex).matches(text)
    return is_match and text.startswith(settings.begin or "")


def log_sum(logarithms: Sequence[float]) -> float:
    """Return the logarithm of the sum of numbers given by their logarithms; −∞ of none."""
    highest = max(logarithms, default=-math.inf)
    return highest if highest == -math.inf else highest + math.log(sum(math.exp(one - highest) for one in logarithms))
