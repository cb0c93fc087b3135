"""Generate pairs in the other direction: Spanish as people say and type it, with its English translation.

Three fifths are made from the sentences of `written.py`; the rest are drawn from the frames of `make.py`, and from
what spoken.toml adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from grammar import Dice

from phrases import everyday, patterns, spoken, written
from phrases import make as forward
from phrases.draft import TOGETHER, Draft, Pair, finish
from phrases.spanish import PLAIN

SUITES = ("everyday-back.jsonl", "everyday-back-kept.jsonl")
FIXED, WRITTEN, SPOKEN_PATTERNS = 0.03, 0.6, 0.1
"""Shares of what people say all the time, of other whole sentences, of those with open places; the rest is grammar."""
_EVERYDAY = [Pair(*pair) for pair in everyday.fixed() if pair[0][-1] in ".?!"]
WHOLE = tuple({pair.spanish: pair for pair in (*spoken.FIXED, *reversed(_EVERYDAY))}.values())
"""Whole sentences, each with the first of its translations."""


def plain(said: str) -> str:
    """Return the words of a sentence in lower case, without accents and marks."""
    return " ".join(re.findall(r"\w+", said.lower().translate(PLAIN)))


@cache
def kept_apart() -> frozenset[str]:
    """Return the sentences of both suites, which no part of the corpus has, as compared by `plain`."""
    return frozenset(map(plain, forward.asked(SUITES)))


def _is_kept_apart(sentence: str) -> bool:
    return not kept_apart().isdisjoint((plain(sentence), plain(forward.ADDRESSED.sub("", sentence))))


@cache
def _written() -> tuple[Pair, ...]:
    return tuple(pair for pair in written.pairs() if not _is_kept_apart(pair.spanish))


def pairs(count: int, seed: int, *, held_out: bool = False) -> Iterator[Pair]:
    """Yield `count` pairs. With `held_out`, each has a name or a combination of words that the other part never has."""
    dice = Dice(f"phrases-es-en {'held-out' if held_out else 'train'} {seed}")
    seen: set[str] = set()
    whole = frozenset(pair.spanish for pair in (*WHOLE, *written.pairs()))
    while count > 0:
        draft = Draft(dice, held_out=held_out)
        drawn = [draw(dice, draft, held_out=held_out) for _ in range(2 if dice.chance(TOGETHER) else 1)]
        pair = drawn[0] if len(drawn) == 1 else drawn[0].with_next(drawn[1])
        is_kept_apart = any(_is_kept_apart(one.spanish) for one in drawn)
        said = pair.spanish if forward.COPIED.search(pair.spanish) else spoken.as_typed(dice, pair.spanish)
        is_new = said not in seen or pair.spanish in whole  # whole sentences may come again
        if is_new and not is_kept_apart and forward.belongs(pair, draft, held_out=held_out):
            seen.add(said)
            count -= 1
            yield Pair(pair.english, said)


def draw(dice: Dice, draft: Draft, *, held_out: bool) -> Pair:
    """Return a pair of any kind, in Spanish as somebody would say it."""
    whole = (0.0, 0.0) if held_out else (FIXED, WRITTEN)
    part = dice.weighted((*whole, SPOKEN_PATTERNS, 1 - FIXED - WRITTEN - SPOKEN_PATTERNS))
    if part == 1:  # their English was brought to one wording by hand
        return written.draw(dice, _written())
    if part == 0:
        pair = dice.choice(WHOLE)
    elif part == 2:
        pair = spoken.as_said(dice, finish(dice, *patterns.fill(draft, *dice.choice(spoken.PATTERNS))))
    else:
        pair = spoken.as_said(dice, forward.draw(dice, draft))
    return Pair(spoken.in_one_wording(pair.english), pair.spanish)


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the pairs as lines, with a tab between the languages."""
    for english, spanish in pairs(count, seed, held_out=held_out):
        yield f"{spanish}\t{english}\n"
