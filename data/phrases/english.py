"""English forms: plurals, articles, the third person, and the verbs “be” and “have”."""

from __future__ import annotations

from grammar import a

IRREGULAR_PLURALS = {
    "child": "children",
    "man": "men",
    "woman": "women",
    "fish": "fish",
    "sheep": "sheep",
    "mouse": "mice",
    "knife": "knives",
    "scarf": "scarves",
    "shelf": "shelves",
    "bookshelf": "bookshelves",
    "loaf": "loaves",
    "tomato": "tomatoes",
    "potato": "potatoes",
    "photo": "photos",
    "foot": "feet",
    "tooth": "teeth",
}

WITH_A_AN = {"hour": "an hour", "university": "a university", "uniform": "a uniform", "European": "a European"}


def plural(noun: str) -> str:
    """Return the plural; of several words, only the last changes."""
    first, space, last = noun.rpartition(" ")
    if last in IRREGULAR_PLURALS:
        last = IRREGULAR_PLURALS[last]
    elif last.endswith("man") and last != "german":
        last = last[:-3] + "men"
    elif last.endswith(("s", "sh", "ch", "x")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return first + space + last


def with_a(text: str) -> str:
    """Put “a” or “an” before the noun or the adjective that precedes it."""
    return WITH_A_AN.get(text.split()[0], a(text))


def third(verb: str) -> str:
    """Return the third person singular; of several words, only the first changes."""
    first, space, rest = verb.partition(" ")
    if first in ("have", "be"):
        first = {"have": "has", "be": "is"}[first]
    elif first.endswith(("s", "sh", "ch", "x", "o")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return first + space + rest


BE = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")


def be(person: int) -> str:
    """Return the present of “be” for a person, numbered as in `spanish.conjugate`."""
    return BE[person]


def was(person: int) -> str:
    """Return the past of “be” for a person."""
    return WAS[person]


def have(person: int) -> str:
    """Return “have” or “has”."""
    return "has" if person == 2 else "have"


def do(person: int) -> str:
    """Return “do” or “does”."""
    return "does" if person == 2 else "do"


def capital(text: str) -> str:
    """Capitalize the first letter, after any Spanish opening mark."""
    index = 1 if text[0] in "¿¡" else 0
    return text[:index] + text[index].upper() + text[index + 1 :]
