"""State of one pair while it is generated: random source, target split, and combinations of words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from grammar import Dice, is_reserved

from phrases import english, spanish, subjects
from phrases.subjects import Subject

HELD_OUT_EVERY = 17
HELD_OUT_NAMES = 0.3
"""probability that held-out sentences draw people from names reserved for that split"""
TYPED = 0.1
"""probability that a sentence appears as people type it"""
TOGETHER = 0.05
"""probability that two sentences form one pair"""

CONTRACTIONS = (
    (r"\b(I) am\b(?= \w)", r"\1'm"),
    (r"\b([Yy]ou|[Ww]e|[Tt]hey) are\b(?= \w)", r"\1're"),
    (r"\b([Hh]e|[Ss]he|[Ii]t) is\b(?= \w)", r"\1's"),
    (r"\b(do|does|did|is|are|was|were|has|have|should|must) not\b", r"\1n't"),
    (r"\bwill not\b", "won't"),
    (r"\b(I|[Yy]ou|[Hh]e|[Ss]he|[Ww]e|[Tt]hey) will\b(?= \w)", r"\1'll"),
    (r"\b(I|[Yy]ou|[Hh]e|[Ss]he|[Ww]e|[Tt]hey) would\b(?= \w)", r"\1'd"),
    (r"\bcannot\b", "can't"),
)


class Pair(NamedTuple):
    """An English sentence and its translation."""

    english: str
    spanish: str

    def with_next(self, other: Pair) -> Pair:
        """Append another pair."""
        return Pair(f"{self.english} {other.english}", f"{self.spanish} {other.spanish}")

    def as_typed(self) -> Pair:
        """Lowercase the English sentence and drop its final mark; the translation stays as it is."""
        return Pair(self.english.lower().rstrip(".?"), self.spanish)


class Draft:
    """State shared by the functions that generate one pair.

    With `held_out`, names may come from the list reserved for the held-out split.
    """

    def __init__(self, dice: Dice, *, held_out: bool) -> None:
        self.dice = dice
        self.held_out = held_out and dice.chance(HELD_OUT_NAMES)
        self.is_reserved = False

    def record(self, *words: str) -> None:
        """Record a combination of words; some combinations are reserved for the held-out split."""
        self.is_reserved |= is_reserved(HELD_OUT_EVERY, *words)

    def anyone(self) -> Subject:
        return subjects.anyone(self.dice, self.held_out)

    def third_person(self) -> Subject:
        """Return a random third-person subject."""
        return subjects.third_person(self.dice, self.held_out)

    def name(self, gender: str = "") -> Subject:
        return subjects.name(self.dice, self.held_out, gender)


Frame = Callable[[Draft], tuple[str, str]]
Frames = tuple[tuple[float, Frame], ...]
"""weights and functions of sentence kinds"""


def finish(dice: Dice, sentence: str, translation: str) -> Pair:
    """Return the finished pair: capitalized, contracted, and with a full stop where no other mark ends it."""
    sentence = english.capital(" ".join(sentence.split()))
    translation = english.capital(spanish.contract(" ".join(translation.split())))
    if dice.chance(0.45):
        for pattern, short in CONTRACTIONS:
            sentence = re.sub(pattern, short, sentence)
    if sentence[-1] not in ".?!":
        sentence, translation = sentence + ".", translation + "."
    return Pair(sentence, translation)
