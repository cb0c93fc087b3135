"""One pair in the making: the dice, what part it is for, and the combinations of words that it uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from grammar import Dice, is_reserved

from phrases import english, spanish, subjects
from phrases.subjects import Subject

HELD_OUT_EVERY = 17
HELD_OUT_NAMES = 0.3
"""how often the held-out part draws its people from the names that it has for itself"""
TYPED = 0.1
"""how often a sentence is as people type it"""
TOGETHER = 0.05
"""how often two sentences come together"""

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
        """One sentence after the other."""
        return Pair(f"{self.english} {other.english}", f"{self.spanish} {other.spanish}")

    def as_typed(self) -> Pair:
        """In small letters, without the last mark; the translation is as it was."""
        return Pair(self.english.lower().rstrip(".?"), self.spanish)


class Draft:
    """What one pair is made with; with `held_out`, names may come from those that training never sees."""

    def __init__(self, dice: Dice, *, held_out: bool) -> None:
        self.dice = dice
        self.held_out = held_out and dice.chance(HELD_OUT_NAMES)
        self.is_reserved = False

    def note(self, *words: str) -> None:
        """Tells which words of the sentence are combined: some combinations are for the held-out part alone."""
        self.is_reserved |= is_reserved(HELD_OUT_EVERY, *words)

    def anyone(self) -> Subject:
        return subjects.anyone(self.dice, self.held_out)

    def one(self) -> Subject:
        """A third person."""
        return subjects.one(self.dice, self.held_out)

    def name(self, gender: str = "") -> Subject:
        return subjects.name(self.dice, self.held_out, gender)


Frame = Callable[[Draft], tuple[str, str]]
Frames = tuple[tuple[float, Frame], ...]
"""A kind of sentence, and how often it is drawn."""


def finish(dice: Dice, sentence: str, translation: str) -> Pair:
    """Both with capitals, a full stop where nothing else ends them, and what Spanish contracts."""
    sentence = english.capital(" ".join(sentence.split()))
    translation = english.capital(spanish.contract(" ".join(translation.split())))
    if dice.chance(0.45):
        for pattern, short in CONTRACTIONS:
            sentence = re.sub(pattern, short, sentence)
    if sentence[-1] not in ".?!":
        sentence, translation = sentence + ".", translation + "."
    return Pair(sentence, translation)
