"""Generate pairs in the other direction: Spanish as people say and type it, with its English translation.

They are drawn from the same frames as those of `make.py`, and from what spoken.toml adds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from grammar import Dice

from phrases import everyday, patterns, spoken
from phrases import make as forward
from phrases.draft import TOGETHER, Draft, Pair, finish
from phrases.spanish import PLAIN

HERE = Path(__file__).resolve().parent
SUITES = ("everyday-back.jsonl", "everyday-back-kept.jsonl")
FIXED, SPOKEN_PATTERNS = 0.04, 0.16
"""shares of whole sentences, and of sentences with open places, that Spanish has beside the grammar"""
WHOLE = tuple(Pair(*pair) for pair in everyday.fixed() if pair[0][-1] in ".?!") + spoken.FIXED


def plain(said: str) -> str:
    """Return the words of a sentence in lower case, without accents and marks."""
    return " ".join(re.findall(r"\w+", said.lower().translate(PLAIN)))


@cache
def kept_apart() -> frozenset[str]:
    """Return the sentences of both suites, which no part of the corpus has, as compared by `plain`."""
    lines = chain.from_iterable((HERE / name).read_text(encoding="utf-8").splitlines() for name in SUITES)
    return frozenset(plain(check["say"]) for check in map(json.loads, lines) if "say" in check)


def pairs(count: int, seed: int, *, held_out: bool = False) -> Iterator[Pair]:
    """Yield `count` pairs. With `held_out`, each has a name or a combination of words that the other part never has."""
    dice = Dice(f"phrases-es-en {'held-out' if held_out else 'train'} {seed}")
    seen: set[str] = set()
    while count > 0:
        draft = Draft(dice, held_out=held_out)
        pair, is_whole = draw(dice, draft, held_out=held_out)
        is_kept_apart = plain(pair.spanish) in kept_apart()
        if dice.chance(TOGETHER):
            pair, is_whole = pair.with_next(draw(dice, draft, held_out=held_out)[0]), False
        if is_kept_apart or not forward.belongs(pair, draft, held_out=held_out):
            continue
        said = pair.spanish
        if not forward.COPIED.search(said):
            said = spoken.as_typed(dice, said)
        if is_whole or said not in seen:  # what people say all the time may come again
            seen.add(said)
            count -= 1
            yield Pair(spoken.in_one_wording(pair.english), said)


def draw(dice: Dice, draft: Draft, *, held_out: bool) -> tuple[Pair, bool]:
    """Return a pair of any kind, in Spanish as somebody would say it, and whether it is a whole sentence of a list."""
    part = dice.weighted((0.0 if held_out else FIXED, SPOKEN_PATTERNS, 1 - FIXED - SPOKEN_PATTERNS))
    if part == 0:
        return dice.choice(WHOLE), True
    if part == 1:
        pair = finish(dice, *patterns.fill(draft, *dice.choice(spoken.PATTERNS)))
    else:
        pair = forward.draw(dice, draft)
    return spoken.as_said(dice, pair), False


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the pairs as lines, with a tab between the languages."""
    for english, spanish in pairs(count, seed, held_out=held_out):
        yield f"{spanish}\t{english}\n"
