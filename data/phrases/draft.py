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
"""Probability that held-out sentences draw people from names reserved for that split."""
TYPED = {"train": 0.25, "held-out": 0.1}
"""Probability that a sentence appears as people type it; training has more: lower case is harder to copy."""
TOGETHER = 0.05
"""Probability that two sentences form one pair."""

CONTRACTIONS = (
    (r"\b(I) am\b(?= \w)", r"\1'm"),
    (r"\b([Yy]ou|[Ww]e|[Tt]hey) are\b(?= \w)", r"\1're"),
    (r"\b([Hh]e|[Ss]he|[Ii]t) is\b(?= \w)", r"\1's"),
    (r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should|must) not\b", r"\1n't"),
    (r"\bwill not\b", "won't"),
    (r"\b(I|[Yy]ou|[Hh]e|[Ss]he|[Ww]e|[Tt]hey) will\b(?= \w)", r"\1'll"),
    (r"\b(I|[Yy]ou|[Hh]e|[Ss]he|[Ww]e|[Tt]hey) would\b(?= \w)", r"\1'd"),
    (r"\bcannot\b", "can't"),
    (r"\b([Ww]hat|[Ww]here|[Ww]ho|[Hh]ow|[Tt]hat|[Tt]here) is\b(?= \w)", r"\1's"),
    (r"\b(I|[Yy]ou|[Ww]e|[Tt]hey) have\b(?= (?:been|never|already|just|not yet|lost|seen|known)\b)", r"\1've"),
)


class Pair(NamedTuple):
    """An English sentence and its translation."""

    english: str
    spanish: str

    def with_next(self, other: Pair) -> Pair:
        """Append another pair."""
        return Pair(f"{self.english} {other.english}", f"{self.spanish} {other.spanish}")

    def as_typed(self, *, without_apostrophes: bool = False) -> Pair:
        """Lowercase the English sentence and drop its final mark; the translation stays as it is."""
        typed = self.english.lower().rstrip(".?")
        return Pair(typed.replace("'", "") if without_apostrophes else typed, self.spanish)


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
"""Weights and functions of sentence kinds."""


def finish(dice: Dice, sentence: str, translation: str) -> Pair:
    """Return the finished pair: capitalized, contracted, and with a full stop where no other mark ends it."""
    sentence = english.capital(_joined(sentence))
    translation = english.capital(spanish.contract(_joined(translation)))
    if dice.chance(0.45):
        for pattern, short in CONTRACTIONS:
            sentence = re.sub(pattern, short, sentence)
    if sentence[-1] not in ".?!":
        sentence += "."
    if translation[-1] not in ".?!":
        translation += "."
    return Pair(sentence, translation)


def _joined(text: str) -> str:
    """Return a text without superfluous spaces, as empty parts leave them."""
    return re.sub(r" (?=[,.?!])|(?<=[¿¡]) ", "", " ".join(text.split()))
