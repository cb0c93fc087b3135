"""Makes the pairs: the phrases of every day first, then sentences drawn from the frames, each English one only once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grammar import Dice

from phrases import actions, everyday, joined, likes, people, places, requests, things, times
from phrases.draft import TOGETHER, TYPED, Draft, Frames, Pair, finish
from phrases.names import HELD_OUT_MEN, HELD_OUT_WOMEN

TOPICS: Frames = (
    actions.FRAMES
    + requests.FRAMES
    + people.FRAMES
    + likes.FRAMES
    + things.FRAMES
    + places.FRAMES
    + times.FRAMES
    + joined.FRAMES
    + everyday.FRAMES
)
HELD_OUT_NAMES = frozenset(HELD_OUT_MEN + HELD_OUT_WOMEN)
WEIGHTS = [weight for weight, _ in TOPICS]


def pairs(count: int, seed: int, *, held_out: bool = False) -> Iterator[Pair]:
    """`count` pairs; with `held_out`, others, each with a name or a combination of words that training never sees."""
    dice = Dice(f"phrases {'held-out' if held_out else 'train'} {seed}")
    fixed = [Pair(*pair) for pair in everyday.fixed()]
    seen = {pair.english for pair in fixed}
    if not held_out:
        yield from fixed[:count]
        count -= len(fixed)
    while count > 0:
        draft = Draft(dice, held_out=held_out)
        made = _draw(dice, draft)
        if dice.chance(TOGETHER):
            made = made.with_next(_draw(dice, draft))
        is_reserved = draft.is_reserved or not HELD_OUT_NAMES.isdisjoint(re.findall(r"\w+", made.english))
        made = made.as_typed() if dice.chance(TYPED) else made
        if is_reserved == held_out and made.english not in seen:
            seen.add(made.english)
            count -= 1
            yield made


def _draw(dice: Dice, draft: Draft) -> Pair:
    return finish(dice, *TOPICS[dice.weighted(WEIGHTS)][1](draft))


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """The pairs, a line each, with a tab between both languages."""
    for english, spanish in pairs(count, seed, held_out=held_out):
        yield f"{english}\t{spanish}\n"
