"""Token healing: an answer may finish the word that its prompt ends within, with the tokens of the whole word.

"a ti" is cut into other tokens than "a time", so a model has never seen what goes on after them. Therefore the first
token of an answer may replace the last ones of the prompt, whose text it begins with ("Prompt boundaries and token
healing", guidance 2023). The ways of writing on are weighed as a whole: chosen token by token, the first would be
likely by words that the prompt rules out (Vieira et al. 2024, "From language models over tokens to language models over
characters").
"""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from tinychat.config.settings import Settings
from tinychat.generate.choices import filter_choices, log_sum
from tinychat.generate.vocabulary import Vocabulary

MIN_WHOLE = 0.05
"""Probability of ending where the prompt ends from which its last word is whole: people rarely stop within one.

`tales` finds each of the 196 whole words at the ends of `data/tales/suite.jsonl` that likely, and 6 of 238 cut ones,
such as "monk" of "monkey".
"""
DRAW = -1
"""Position of the random number that draws a way of writing on; those of the tokens of an answer begin at 0."""


class HealedStart(NamedTuple):
    """A way of writing on from a prompt."""

    num_replaced: int
    """Number of tokens at the end of the prompt that the first token of the answer replaces."""
    num_bytes: int
    """Number of bytes of their text, with which the first token begins."""
    allowed: frozenset[int]
    """Ids that the first token may have."""


class Healing:
    """The ways of writing on from a prompt, and the choice of one by what the model finds likely.

    `ids` are the tokens after which the log-probabilities of the next one are to be given to `advance`; None once all
    are known.
    """

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int]) -> None:
        pieces, index = vocabulary.pieces, vocabulary.remember(_PieceIndex)
        self._prompt = prompt
        self._longer: dict[int, HealedStart] = {}  # by number of tokens replaced
        text = b""
        for number, id in enumerate(reversed(prompt[1:]), start=1):
            text = pieces[id] + text
            if not pieces[id] or len(text) >= index.longest:
                break
            if found := index.find_longer(text):
                self._longer[number] = HealedStart(number, len(text), found)
        end = b"".join(pieces[id] for id in prompt[-4:]).decode("utf-8", "ignore")[-1:]
        within = index.by_kind.get(_kind(end), frozenset()) if end else frozenset()
        self._within = HealedStart(0, 0, within) if within else None
        self._whole = HealedStart(0, 0, frozenset(range(vocabulary.size)) - within) if within else None
        self._weights: dict[HealedStart, float] = {}  # log-probabilities of all ways but the whole word
        self._typed = 0.0  # log-probability of the prompt's last tokens so far, at last with the word's end after them
        self._left: int | None = max(self._longer, default=0) if self._longer or within else None

    @property
    def ids(self) -> list[int] | None:
        """The ids after which log-probabilities are wanted next; None if no more are."""
        return None if self._left is None else list(self._prompt[: len(self._prompt) - self._left])

    def advance(self, logprobs: Mapping[int, float]) -> None:
        """Weigh the ways of writing on after `ids`, with the log-probability of each token there."""

        def weigh(allowed: frozenset[int]) -> float:
            return self._typed + log_sum([logprobs[id] for id in allowed if id in logprobs])

        assert self._left is not None
        if start := self._longer.get(self._left):
            self._weights[start] = weigh(start.allowed)
        if self._left:
            self._typed += logprobs.get(self._prompt[-self._left], -math.inf)
            self._left -= 1
            if self._left or self._within:
                return
        elif self._within and self._whole:
            self._weights[self._within] = weigh(self._within.allowed)
            self._typed = weigh(self._whole.allowed)
        self._left = None

    def choose(self, settings: Settings, number: float) -> HealedStart | None:
        """Return the way of writing on that a random number in [0, 1) draws; None if the answer begins as it likes.

        Temperature and filters apply as they do to tokens. A word that may well be whole is kept.
        """
        weights = [*self._weights.values()]
        total = log_sum([self._typed, *weights])
        if not weights or total == -math.inf or self._typed - total >= math.log(MIN_WHOLE):
            return self._whole
        if settings.num_beams > 1:
            settings = replace(settings, temperature=0.0)
        sums = [*accumulate(filter_choices(weights, settings))]
        return [*self._weights][min(bisect_right(sums, number * sums[-1]), len(sums) - 1)]

    def find(self, num_replaced: int, id: int) -> HealedStart | None:
        """Return the way of writing on in which the first token has an id and replaces that many; None if none does."""
        starts = (self._longer.get(num_replaced),) if num_replaced else (self._within, self._whole)
        return next((start for start in starts if start is not None and id in start.allowed), None)


class _PieceIndex:
    """The texts of a vocabulary's tokens, in order."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = sorted((piece, id) for id, piece in enumerate(vocabulary.pieces) if piece)
        self.longest = max((len(piece) for piece, _ in self._pieces), default=0)
        """Number of bytes of the longest text."""
        kinds = [(_kind(piece.decode("utf-8", "ignore")[:1]), id) for piece, id in self._pieces]
        self.by_kind = {one: frozenset(id for kind, id in kinds if kind == one) for one in ("letter", "digit")}
        """Ids of the tokens that go on with a word, or with a number."""

    def find_longer(self, text: bytes) -> frozenset[int]:
        """Return the ids of the tokens whose texts begin with a text, and go on."""
        ids = list[int]()
        for piece, id in self._pieces[bisect_right(self._pieces, text, key=itemgetter(0)) :]:
            if not piece.startswith(text):
                break
            ids.append(id)
        return frozenset(ids)


def _kind(char: str) -> str:
    """Return `letter` or `digit`; nothing of a character that neither words nor numbers are made of."""
    category = unicodedata.category(char) if char else ""
    return {"L": "letter", "M": "letter", "N": "digit"}.get(category[:1], "")
