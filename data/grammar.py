"""Template grammar and seeded random choices.

`(this|that|)` chooses one option and may be nested; `<slot>` is filled in; `<a:slot>` puts “a” or “an” before it.
Only `random.Random.random` is used, the one method whose sequence Python guarantees across versions.
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
"""A template, or several from which one is chosen."""


class Dice:
    """Seeded random choices, the same on every machine and Python version."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        """Return an integer in [0, count)."""
        return int(self.random() * count)

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high], both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Return a random item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return `count` different items in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def weighted(self, weights: Sequence[float]) -> int:
        """Return an index drawn in proportion to its weight."""
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
    """One `( | )` of a template; each option is a sequence of texts and nested choices."""

    options: tuple[tuple[str | Choice, ...], ...]


@cache
def parse(template: str) -> Choice:
    """Parse a template into a tree.

    Args:
        template: the template.

    Returns:
        The outermost choice.

    Raises:
        ValueError: a bracket is not balanced.
    """
    tokens = re.findall(r"[(|)]|[^(|)]+", template)
    choice, used = _parse(tokens, 0)
    if used != len(tokens):
        raise ValueError(f"unmatched closing bracket in {template!r}")
    return choice


def _parse(tokens: list[str], index: int) -> tuple[Choice, int]:
    options: list[tuple[str | Choice, ...]] = []
    current: list[str | Choice] = []
    while index < len(tokens) and tokens[index] != ")":
        if tokens[index] == "(":
            inner, index = _parse(tokens, index + 1)
            if index >= len(tokens):
                raise ValueError(f"unclosed bracket in {''.join(tokens)!r}")
            current.append(inner)
        elif tokens[index] == "|":
            options.append(tuple(current))
            current = []
        else:
            current.append(tokens[index])
        index += 1
    options.append(tuple(current))
    return Choice(tuple(options)), index


def _walk(dice: Dice, choice: Choice) -> str:
    option = choice.options[0] if len(choice.options) == 1 else dice.choice(choice.options)
    return "".join(part if isinstance(part, str) else _walk(dice, part) for part in option)


def is_reserved(every: int, *words: str) -> bool:
    """Return whether a combination of words is reserved for the held-out split.

    One in `every` is: those whose code points add up to a multiple of it.
    """
    return sum(map(ord, " ".join(words))) % every == 0


def listed(text: str, separator: str | None = None) -> list[str]:
    """Split a text into items at whitespace or at `separator`."""
    return [item.strip() for item in text.split(separator)]


def a(noun: str) -> str:
    """Return the noun with “a” or “an”."""
    is_vowel = noun[0].lower() in "aeiou" and not noun.lower().startswith(("uni", "uku", "use", "eu"))
    return ("an " if is_vowel or noun.startswith(("honest", "hour")) else "a ") + noun


def choose(dice: Dice, lines: Lines) -> str:
    """Return a random wording of the template or templates, with its slots still open."""
    template = lines if isinstance(lines, str) else dice.choice(lines)
    return " ".join(_walk(dice, parse(template)).split())


@cache
def plainest(template: str) -> str:
    """Return the shortest standard wording: optional parts omitted, otherwise the first of each choice."""
    return " ".join(_plain(parse(template)).split())


def _plain(choice: Choice) -> str:
    option = () if () in choice.options else choice.options[0]
    return "".join(part if isinstance(part, str) else _plain(part) for part in option)


@cache
def wordings(template: str) -> frozenset[str]:
    """Return all wordings that the template can generate, with their slots still open."""
    return frozenset(" ".join(wording.split()) for wording in _wordings(parse(template)))


def _wordings(choice: Choice) -> list[str]:
    results: list[str] = []
    for option in choice.options:
        parts = [[part] if isinstance(part, str) else _wordings(part) for part in option]
        results += map("".join, product(*parts))
    return results


def insert(wording: str, values: dict[str, str], *, mark: bool = False) -> str:
    """Fill in the slots of a wording; with `mark`, values are put in braces to protect them from misspelling."""

    def value(found: re.Match[str]) -> str:
        word = values[found.group(2)]
        marked = f"{{{word}}}" if mark else word
        return a(word).removesuffix(word) + marked if found.group(1) else marked

    return _LOOSE_MARK.sub(r"\1", " ".join(_SLOT.sub(value, wording).split()))


def pattern(lines: Lines, values: dict[str, str]) -> str:
    """Return a regular expression for all texts that the template or templates can generate with these values."""
    templates = (lines,) if isinstance(lines, str) else lines
    return "|".join(_pattern(parse(template), values) for template in templates)


def _pattern(choice: Choice, values: dict[str, str]) -> str:
    options = (
        "".join(_literal(part, values) if isinstance(part, str) else _pattern(part, values) for part in option)
        for option in choice.options
    )
    return f"(?:{'|'.join(options)})"


def _literal(text: str, values: dict[str, str]) -> str:
    """Return the filled-in text as a regular expression, in which spaces are optional, as a choice may be empty."""
    filled = _SLOT.sub(lambda found: a(values[found.group(2)]) if found.group(1) else values[found.group(2)], text)
    return re.escape(filled).replace("\\ ", " ?")


def fill(dice: Dice, lines: Lines, values: dict[str, str], *, mark: bool = False) -> str:
    """Return a random text from the template or templates, with its slots filled in."""
    return insert(choose(dice, lines), values, mark=mark)
