"""Generate the pairs: everyday phrases first, then sentences drawn from the frames; each English sentence is unique."""

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
    """Yield `count` pairs.

    With `held_out`, each has a name or a combination of words that the training split never contains.
    """
    dice = Dice(f"phrases {'held-out' if held_out else 'train'} {seed}")
    fixed = [Pair(*pair) for pair in everyday.fixed()]
    seen = {pair.english for pair in fixed}
    if not held_out:
        yield from fixed[:count]
        count -= len(fixed)
    while count > 0:
        draft = Draft(dice, held_out=held_out)
        pair = _draw(dice, draft)
        if dice.chance(TOGETHER):
            pair = pair.with_next(_draw(dice, draft))
        is_reserved = draft.is_reserved or not HELD_OUT_NAMES.isdisjoint(re.findall(r"\w+", pair.english))
        pair = pair.as_typed() if dice.chance(TYPED) else pair
        if is_reserved == held_out and pair.english not in seen:
            seen.add(pair.english)
            count -= 1
            yield pair


def _draw(dice: Dice, draft: Draft) -> Pair:
    return finish(dice, *TOPICS[dice.weighted(WEIGHTS)][1](draft))


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the pairs as lines, with a tab between the languages."""
    for english, spanish in pairs(count, seed, held_out=held_out):
        yield f"{english}\t{spanish}\n"
