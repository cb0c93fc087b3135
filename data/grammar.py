"""The small grammar of the templates, and the dice that choose.

`(this|that|)` chooses one, and may be nested; `<slot>` is filled in; `<a:slot>` puts "a" or "an" before it.
Only `random.Random.random` is used, the one method whose sequence Python promises to keep between versions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeVar

Item = TypeVar("Item")
Lines = str | Sequence[str]
"""A template, or several of which one is chosen."""


class Dice:
    """Random choices from a seed, the same on every machine and Python version."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        """An integer in [0, count)."""
        return int(self.random() * count)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high], both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def weighted(self, weights: Sequence[float]) -> int:
        """An index, drawn in proportion to its weight."""
        point = self.random() * sum(weights)
        for index, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return index
        return len(weights) - 1


_SLOT = re.compile(r"<(a:)?(\w+)>")
_LOOSE_MARK = re.compile(r" ([,.?!])")


@dataclass(frozen=True)
class Choice:
    """One `( | )` of a template: each option is a run of texts and further choices."""

    options: tuple[tuple[str | Choice, ...], ...]


@cache
def parse(template: str) -> Choice:
    """The template as a tree; raises ValueError when a bracket has no partner."""
    tokens = re.findall(r"[(|)]|[^(|)]+", template)
    choice, used = _parse(tokens, 0)
    if used != len(tokens):
        raise ValueError(f"a bracket too many in {template!r}")
    return choice


def _parse(tokens: list[str], at: int) -> tuple[Choice, int]:
    options: list[tuple[str | Choice, ...]] = []
    current: list[str | Choice] = []
    while at < len(tokens) and tokens[at] != ")":
        if tokens[at] == "(":
            inner, at = _parse(tokens, at + 1)
            if at >= len(tokens):
                raise ValueError(f"a bracket is not closed in {''.join(tokens)!r}")
            current.append(inner)
        elif tokens[at] == "|":
            options.append(tuple(current))
            current = []
        else:
            current.append(tokens[at])
        at += 1
    options.append(tuple(current))
    return Choice(tuple(options)), at


def _walk(dice: Dice, choice: Choice) -> str:
    option = choice.options[0] if len(choice.options) == 1 else dice.choice(choice.options)
    return "".join(part if isinstance(part, str) else _walk(dice, part) for part in option)


def is_reserved(every: int, *words: str) -> bool:
    """Whether a combination of words is for the held-out part: one in `every`, whose letters add up to a multiple."""
    return sum(map(ord, " ".join(words))) % every == 0


def listed(text: str, separator: str | None = None) -> list[str]:
    """The items of a list written as one text, apart by spaces or by `separator`."""
    return [item.strip() for item in text.split(separator)]


def a(noun: str) -> str:
    """The noun with "a" or "an"."""
    return ("an " if noun[0].lower() in "aeiou" or noun.startswith(("honest", "hour")) else "a ") + noun


def choose(dice: Dice, lines: Lines) -> str:
    """One wording of the template(s): the choices are made, the slots still open."""
    template = lines if isinstance(lines, str) else dice.choice(lines)
    return " ".join(_walk(dice, parse(template)).split())


@cache
def plainest(template: str) -> str:
    """The wording without anything that may be left out, and else with the first of each choice."""
    return " ".join(_plain(parse(template)).split())


def _plain(choice: Choice) -> str:
    option = () if () in choice.options else choice.options[0]
    return "".join(part if isinstance(part, str) else _plain(part) for part in option)


@cache
def wordings(template: str) -> frozenset[str]:
    """All that its choices can make, the slots still open."""
    return frozenset(" ".join(wording.split()) for wording in _wordings(parse(template)))


def _wordings(choice: Choice) -> list[str]:
    made: list[str] = []
    for option in choice.options:
        parts = [[part] if isinstance(part, str) else _wordings(part) for part in option]
        made += map("".join, product(*parts))
    return made


def insert(wording: str, values: dict[str, str], *, mark: bool = False) -> str:
    """The wording with its slots filled in. With `mark`, values stand in braces (misspellings spare them)."""

    def value(found: re.Match[str]) -> str:
        word = values[found.group(2)]
        marked = f"{{{word}}}" if mark else word
        return a(word).removesuffix(word) + marked if found.group(1) else marked

    return _LOOSE_MARK.sub(r"\1", " ".join(_SLOT.sub(value, wording).split()))


def pattern(lines: Lines, values: dict[str, str]) -> str:
    """A regular expression of all texts that the template(s) can make with these values, however they are written."""
    templates = (lines,) if isinstance(lines, str) else lines
    return "|".join(_pattern(parse(template), values) for template in templates)


def _pattern(choice: Choice, values: dict[str, str]) -> str:
    options = (
        "".join(_literal(part, values) if isinstance(part, str) else _pattern(part, values) for part in option)
        for option in choice.options
    )
    return f"(?:{'|'.join(options)})"


def _literal(text: str, values: dict[str, str]) -> str:
    """The text, its slots filled in, as a regular expression; a space may be missing where a choice is empty."""
    filled = _SLOT.sub(lambda found: a(values[found.group(2)]) if found.group(1) else values[found.group(2)], text)
    return re.escape(filled).replace("\\ ", " ?")


def fill(dice: Dice, lines: Lines, values: dict[str, str], *, mark: bool = False) -> str:
    """One text from the template(s), its slots filled in."""
    return insert(choose(dice, lines), values, mark=mark)
