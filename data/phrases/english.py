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


_FORMS = """be was been, become became become, begin began begun, break broke broken, bring brought, build built, buy
bought, catch caught, choose chose chosen, come came come, cost cost, cut cut, do did done, draw drew drawn,
drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find
found, fly flew flown, forget forgot forgotten, get got, give gave given, go went gone, grow grew grown, have
had, hear heard, hide hid hidden, hit hit, hold held, keep kept, know knew known, leave left, lend lent, let
let, light lit, lose lost, make made, mean meant, meet met, pay paid, put put, read read, ride rode ridden, ring
rang rung, run ran run, say said, see saw seen, sell sold, send sent, set set, show showed shown, shut shut,
sing sang sung, sit sat, sleep slept, speak spoke spoken, spend spent, stand stood, steal stole stolen, swim
swam swum, take took taken, teach taught, tell told, think thought, throw threw thrown, understand understood,
wake woke woken, wear wore worn, win won, write wrote written"""
IRREGULAR_VERBS = {forms[0]: (forms[1], forms[-1]) for forms in map(str.split, _FORMS.split(","))}
"""Past tenses and past participles."""
DOUBLED = frozenset(
    (
        "cut",
        "forget",
        "get",
        "hit",
        "hug",
        "let",
        "plan",
        "put",
        "rob",
        "run",
        "set",
        "shut",
        "shop",
        "sit",
        "stop",
        "swim",
        "win",
        "begin",
        "travel",
        "cancel",
    )
)


def past(verb: str) -> str:
    """Return the simple past; of several words, only the first changes."""
    if verb.startswith("lie down"):
        return verb.replace("lie", "lay", 1)  # unlike "he lied to me"
    first, space, rest = verb.partition(" ")
    return (IRREGULAR_VERBS[first][0] if first in IRREGULAR_VERBS else _with_ed(first)) + space + rest


def participle(verb: str) -> str:
    """Return the past participle."""
    if verb.startswith("lie down"):
        return verb.replace("lie", "lain", 1)
    first, space, rest = verb.partition(" ")
    return (IRREGULAR_VERBS[first][1] if first in IRREGULAR_VERBS else _with_ed(first)) + space + rest


def gerund(verb: str) -> str:
    """Return the form in -ing."""
    first, space, rest = verb.partition(" ")
    if first in DOUBLED:
        first += first[-1]
    elif first.endswith("ie"):
        first = first[:-2] + "y"
    elif first.endswith("e") and first not in ("be", "see", "agree"):
        first = first[:-1]
    return f"{first}ing{space}{rest}"


def _with_ed(verb: str) -> str:
    if verb in DOUBLED:
        return f"{verb}{verb[-1]}ed"
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "ed"
