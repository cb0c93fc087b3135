"""Word lists shared by several topics."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from grammar import Dice, listed


def table(name: str) -> dict[str, Any]:
    """Return what the TOML file of that name holds; `name` may be the Python file beside it."""
    return tomllib.loads(Path(__file__).with_name(f"{Path(name).stem}.toml").read_text(encoding="utf-8"))


def lines(name: str) -> dict[str, Any]:
    """Return such a table, in which `lines` are entries [name, line, …]."""
    found = table(name)
    return found | {key: entry for key, *entry in found["lines"]}


def named(entries: list[str]) -> dict[str, list[str]]:
    """Return lists by their names, from entries `name: thing, thing, …`."""
    return {name: listed(things, ",") for name, things in (entry.split(": ", 1) for entry in entries)}


LISTS = named(table(__file__)["lists"])
NAMES, SYLLABLES, NAME_ENDS = (LISTS[name] for name in ("names", "syllables", "name_ends"))
ONSETS, VOWELS, CODAS = (LISTS[name] for name in ("onsets", "vowels", "codas"))
"""Beginnings, middles and ends of syllables, for words of any shape."""
LONGEST_INVENTED = 9
"""In letters."""


def invent(dice: Dice) -> str:
    """Return an invented lowercase word, of regular syllables or of any that English allows."""
    if dice.chance(0.4):
        count = 2 if dice.chance(0.75) else 3
        return "".join(dice.choice(SYLLABLES) for _ in range(count)) + dice.choice(NAME_ENDS)
    word = ""
    while not 3 <= len(word) <= LONGEST_INVENTED:
        word = dice.choice(VOWELS) if dice.chance(0.1) else ""
        for _ in range(1 + dice.weighted((2, 5, 2))):
            word += dice.choice(ONSETS) + dice.choice(VOWELS) + (dice.choice(CODAS) if dice.chance(0.6) else "")
    return word


PETS, PET_NAMES, ANIMALS, COLOURS = (LISTS[name] for name in ("pets", "pet_names", "animals", "colours"))
FOODS, DRINKS, FRUITS, FLOWERS = (LISTS[name] for name in ("foods", "drinks", "fruits", "flowers"))
SPORTS, HOBBIES, GAMES, MUSIC = (LISTS[name] for name in ("sports", "hobbies", "games", "music"))
BOOKS, INSTRUMENTS, SUBJECTS, TOWNS = (LISTS[name] for name in ("books", "instruments", "subjects", "towns"))
SEASONS, DAYS, MONTHS, JOBS = (LISTS[name] for name in ("seasons", "days", "months", "jobs"))
THINGS, ADJECTIVES, VERBS = (LISTS[name] for name in ("things", "adjectives", "verbs"))
EVERYDAY = Path(__file__).with_name("spelling.txt").read_text(encoding="utf-8").split()
"""Words to spell and to say back: those of this corpus, and more that people use often."""
TABLES, GROUPS = (named(table("fact_tables")[name]) for name in ("tables", "groups"))
"""Tables of small facts, mostly of `x=y`, and examples of kinds."""


@cache
def plurals() -> dict[str, str]:
    """Return each noun with its plural."""
    regular = (entry.partition(":") for entry in TABLES["regular"])
    return {word: word + (ending or "s") for word, _, ending in regular} | dict(
        entry.split("=") for entry in TABLES["irregular"]
    )


def plural(noun: str) -> str:
    """Return the plural of a noun: that of the tables, or a regular one."""
    if known := plurals().get(noun):
        return known
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(s|x|z|ch|sh)$", noun) else "s")


def is_held_out(name: str) -> bool:
    """Return whether a name belongs to the tenth reserved for the held-out split."""
    return sum(ord(letter) * (at + 1) for at, letter in enumerate(name.lower())) % 10 == 3
