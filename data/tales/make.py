"""Generate the tales.

A tale depends only on the seed and its index, so any longer output begins with the shorter one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from grammar import Dice

from tales import plots_of_deeds, plots_of_people, plots_of_things
from tales.telling import Tale

PLOTS: tuple[Callable[[Tale], None], ...] = plots_of_things.PLOTS + plots_of_people.PLOTS + plots_of_deeds.PLOTS

SHORTEST, LONGEST = 60, 150
"""length of a tale in words"""


def tell(dice: Dice, *, held_out: bool) -> str:
    """Generate tales until one has the right length, its hero at the end, and the requested split; return that one."""
    while True:
        tale = Tale(dice, held_out=held_out)
        dice.choice(PLOTS)(tale)
        text = tale.text()
        fits = SHORTEST <= len(text.split()) <= LONGEST and tale.hero.name in text.rpartition("\n")[2]
        if fits and tale.is_reserved == held_out:
            return text


def tales(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield `count` tales; with `held_out`, their names or combinations are reserved for the held-out split."""
    part = "held-out" if held_out else "train"
    for index in range(count):
        yield tell(Dice(f"tales {part} {seed} {index}"), held_out=held_out)


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the tales as lines of JSON."""
    for text in tales(count, seed, held_out=held_out):
        yield json.dumps({"text": text}, ensure_ascii=False) + "\n"
