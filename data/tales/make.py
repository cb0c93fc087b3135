"""Makes the tales: each from its seed and number alone, so that a longer output begins with the shorter one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from grammar import Dice

from tales import plots_of_deeds, plots_of_people, plots_of_things
from tales.telling import Tale

PLOTS: tuple[Callable[[Tale], None], ...] = plots_of_things.PLOTS + plots_of_people.PLOTS + plots_of_deeds.PLOTS

SHORTEST, LONGEST = 60, 150
"""words of a tale"""


def tell(dice: Dice, *, held_out: bool) -> str:
    """One tale: drawn until its length is right, its hero is there at the end, and it is one of its own part."""
    while True:
        tale = Tale(dice, held_out=held_out)
        dice.choice(PLOTS)(tale)
        text = tale.text()
        fits = SHORTEST <= len(text.split()) <= LONGEST and tale.hero.name in text.rpartition("\n")[2]
        if fits and tale.is_reserved == held_out:
            return text


def tales(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """`count` tales; with `held_out`, others, whose names or combinations training never sees."""
    part = "held-out" if held_out else "train"
    for number in range(count):
        yield tell(Dice(f"tales {part} {seed} {number}"), held_out=held_out)


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """The tales, each a line of JSON."""
    for text in tales(count, seed, held_out=held_out):
        yield json.dumps({"text": text}, ensure_ascii=False) + "\n"
