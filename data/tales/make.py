"""Generate the tales.

A tale depends only on the seed and its index, so any longer output begins with the shorter one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grammar import Dice

from tales.telling import Tale

SHORTEST, LONGEST = 50, 140
"""Length of a tale in words."""


@cache
def beginnings() -> tuple[str, ...]:
    """Return the beginnings that models are checked with: no tale begins so."""
    lines = Path(__file__).with_name("suite.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple({json.loads(line)["say"]: None for line in lines})


def is_checked(text: str) -> bool:
    """Return whether the tale begins with one of the beginnings, as whole words."""
    return text.startswith(beginnings()) and any(
        text.startswith(beginning) and not text[len(beginning)].isalpha() for beginning in beginnings()
    )


def tell(dice: Dice, *, held_out: bool) -> str:
    """Generate tales until one has the right length and belongs to the requested split; return that one."""
    while True:
        tale = Tale(dice, held_out=held_out)
        text = tale.tell()
        if SHORTEST <= len(text.split()) <= LONGEST and tale.is_reserved == held_out and not is_checked(text):
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
