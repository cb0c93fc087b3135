"""Choices: an answer that is one of some texts, each as likely as the model finds it.

The probability of a choice is that of its tokens, as the tokenizer cuts it, and of the end of the answer after them: an
end token, or a stop text. Without either it is that of its tokens alone, which favours short choices. Divided by their
sum, the probabilities are those of one draw, to which temperature and filters apply as to that of a token.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError, Interrupted
from tinychat.events import ChoiceProbabilities, ChoiceProbability
from tinychat.generate.bans import has_banned
from tinychat.generate.engine import Engine, Request, SampledToken, TokenProbability, next_logprobs, uniform
from tinychat.pattern import find_pattern
from tinychat.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Choices:
    """The choices of an answer that go on from its tokens so far, with their probabilities.

    Raises:
        GenerationError: If the tokenizer cannot write a choice, or if it is longer than `max_tokens`.
    """

    ids: list[list[int]]
    """Tokens of each choice, from the beginning of the answer."""
    probabilities: list[ChoiceProbability]
    _tokens: dict[tuple[int, ...], dict[int, float]]
    """The log-probability of each token after the tokens of an answer."""

    @property
    def record(self) -> ChoiceProbabilities:
        """The probabilities, the likeliest choice first."""
        return ChoiceProbabilities(tuple(sorted(self.probabilities, key=lambda one: -one.model)))

    @classmethod
    def weigh(
        cls,
        engine: Engine,
        request: Request,
        start: int,
        tokenizer: Tokenizer,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> "Choices":
        """Compute the probabilities of the choices of a request, whose answer begins at index `start` of its ids.

        Raises:
            Interrupted: If `should_stop`, which is called before each call of the engine, returns true.
        """
        settings, so_far = request.settings, tuple(request.ids[start:])
        encoded = {text: tokenizer.encode(text) for text in settings.choices if _is_asked(text, settings)}
        for text, ids in encoded.items():
            if tokenizer.decode(ids) != text:
                raise GenerationError(f"this model cannot write {text!r}", "it lacks some of the characters")
            if len(ids) > settings.max_tokens:
                problem = f"{text!r} has {len(ids)} tokens, and max-tokens is {settings.max_tokens}"
                raise GenerationError(problem, f"/max-tokens {len(ids)}")
        encoded = {text: ids for text, ids in encoded.items() if tuple(ids[: len(so_far)]) == so_far}
        if not encoded:
            begins = f" begins with {tokenizer.decode(so_far)!r}" if so_far else " is as /begin, /regex and /ban ask"
            raise GenerationError(f"no choice{begins}", "/choices shows them, `/choices none` allows any answer")
        known: dict[tuple[int, ...], dict[int, float]] = {}

        def logprob(ids: Sequence[int], more: Sequence[int]) -> float:
            """Return the log-probability of more tokens after those of an answer."""
            total, before = 0.0, tuple(ids)
            for id in more:
                if before not in known:
                    if should_stop():
                        raise Interrupted("the choices are not weighed: it was stopped")
                    known[before] = next_logprobs(engine, [(request, [*request.ids[:start], *before])])[0]
                total, before = total + known[before][id], (*before, id)
            return total

        ends = [[id] for id in sorted(request.end_ids)] + [tokenizer.encode(stop) for stop in settings.stop]
        logprobs = []
        for ids in sorted(encoded.values()):  # the cache of keys and values holds the beginning that two of them share
            after = [logprob(ids, end) for end in ends]
            logprobs.append(logprob((), ids) + (log_sum(after) if after else 0.0))
        texts = sorted(encoded, key=encoded.__getitem__)
        own = [logprob - log_sum(logprobs) for logprob in logprobs]
        drawn = filter_choices(own, settings)
        probabilities = list(map(ChoiceProbability, texts, map(math.exp, own), drawn))
        return cls([encoded[text] for text in texts], probabilities, known)

    def draw(self, request: Request, start: int, top_logprobs: int = 0) -> list[SampledToken]:
        """Return the tokens of a drawn choice that are not generated yet, and an end token if the model has one."""
        number = uniform(request.seed, request.prompt_index, request.num_generated)
        number *= sum(one.probability for one in self.probabilities)
        index = -1
        while number >= 0 and index < len(self.ids) - 1:
            index += 1
            number -= self.probabilities[index].probability
        so_far, ids = tuple(request.ids[start:]), list(self.ids[index])
        if request.end_ids:
            after = self._tokens[tuple(ids)]
            ids.append(max(request.end_ids, key=after.__getitem__))
        tokens = []
        for id in ids[len(so_far) :]:
            after = self._tokens[so_far]
            tops = sorted(after.items(), key=lambda item: -item[1])[:top_logprobs] if top_logprobs else ()
            tokens.append(SampledToken(id, after[id], tuple(tops)))
            so_far = (*so_far, id)
        return tokens

    def next_tokens(self, request: Request, start: int) -> list[TokenProbability]:
        """Return the probability of each token to come next, the likeliest under the model first."""
        so_far = tuple(request.ids[start:])
        following = dict.fromkeys(self._tokens[so_far], 0.0)
        for ids, one in zip(self.ids, self.probabilities, strict=True):
            ends = sorted(request.end_ids, key=self._tokens[so_far].__getitem__)
            id = ids[len(so_far)] if len(ids) > len(so_far) else ends[-1] if ends else None
            if id is not None:
                following[id] += one.probability
        total = sum(following.values()) or 1.0
        logprobs = self._tokens[so_far]
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
