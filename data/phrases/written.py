"""Sentences that were written one by one, each with its translation: the words and turns that the grammar lacks.

written/*.txt holds them, one a line: `Spanish = English`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from grammar import Dice

from phrases import names
from phrases.draft import Pair

RENAMED = 0.7
"""probability that another name stands in for that of a person"""
INVENTED = 0.15
"""probability that this is an invented one"""
OPENED, ADDRESSED, JOINED = 0.08, 0.05, 0.04
"""probabilities that words come before a sentence, that somebody is addressed behind it, and that two form one"""
BEFORE_STATEMENTS = (
    ("pero", "but"), ("y", "and"), ("creo que", "I think"), ("dice que", "he says"), ("ya sé que", "I know"),
    ("me parece que", "I think"), ("es verdad que", "it's true that"), ("porque", "because"),
    ("es que", "it's just that"),
    ("la verdad es que", "the truth is that"), ("mi madre dice que", "my mother says"), ("así que", "so"),
)  # fmt: skip
BEFORE_QUESTIONS = (
    ("oye,", "hey,"), ("perdón,", "excuse me,"), ("disculpe,", "excuse me,"), ("bueno,", "well,"), ("entonces,", "so"),
)  # fmt: skip
BETWEEN = (("y", "and"), ("pero", "but"), ("así que", "so"), ("porque", "because"))
PRONOUN = "(?: (?:I|you|he|she|it|we|they)\\b)"
IN_FULL = tuple(
    (re.compile(pattern, re.IGNORECASE), whole)
    for pattern, whole in (
        (r"\b(I)'m\b", r"\1 am"),
        (r"\b(you|we|they)'re\b", r"\1 are"),
        (r"\b(I|you|we|they)'ve\b", r"\1 have"),
        (r"\b(I|you|he|she|it|we|they)'ll\b", r"\1 will"),
        (rf"\b(w)on't\b(?!{PRONOUN})", r"\1ill not"),
        (rf"\b(ca)n't\b(?!{PRONOUN})", r"\1nnot"),
        (rf"\b(do|does|did|is|are|was|were|has|have|had|would|could|should)n't\b(?!{PRONOUN})", r"\1 not"),
    )
)
"""unambiguous contractions and their full forms: 's and 'd are not among them"""
STATEMENT = re.compile(r"(?:The|My|Your|His|Her|Our|He|She|It|We|You|They|There|This|That|These|Those|I)\b[^?!]*\.")
"""an English sentence before which other words may stand"""


@cache
def pairs() -> tuple[Pair, ...]:
    """Return all sentences, each once."""
    files = sorted(Path(__file__).with_suffix("").glob("*.txt"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return tuple(dict.fromkeys(Pair(right, left) for left, right in (line.split(" = ") for line in lines)))


@cache
def _gender_of() -> dict[str, str]:
    women = dict.fromkeys((*names.WOMEN, *names.HELD_OUT_WOMEN), "f")
    return women | dict.fromkeys((*names.MEN, *names.HELD_OUT_MEN), "m")


def draw(dice: Dice) -> Pair:
    """Return a sentence, sometimes with other names, opened, addressed to somebody, or joined to another."""
    pair = _renamed(dice, dice.choice(pairs()))
    if dice.chance(OPENED):
        return _opened(dice, pair)
    if dice.chance(ADDRESSED) and "," not in pair.spanish:
        name = _another(dice, dice.choice("mf"))
        return Pair(*(f"{side[:-1]}, {name}{side[-1]}" for side in pair))
    if dice.chance(JOINED) and _is_short_statement(pair):
        other = _renamed(dice, dice.choice(pairs()))
        if _is_short_statement(other):
            between, in_english = dice.choice(BETWEEN)
            return Pair(
                f"{pair.english[:-1]}, {in_english} {_lowered(other).english}",
                f"{pair.spanish[:-1]}, {between} {_lowered(other).spanish}",
            )
    return pair


def in_full(pair: Pair) -> Pair:
    """Return a pair whose English side has no contractions, as far as these stand for one thing only."""
    english = pair.english
    if re.match(r"\w+n't .*\?", english):  # Didn't Ana come?
        return pair
    for pattern, whole in IN_FULL:
        english = pattern.sub(whole, english)
    return Pair(english, pair.spanish)


def _another(dice: Dice, gender: str) -> str:
    if dice.chance(INVENTED):
        return names.invented(dice, gender)
    return dice.choice(names.WOMEN if gender == "f" else names.MEN)


def _renamed(dice: Dice, pair: Pair) -> Pair:
    """Return a pair with other names of people, of the same gender; names of the held-out part never stay."""
    for word in dict.fromkeys(re.findall(r"\b[A-ZÁÉÍÓÚ]\w+", pair.english)):
        gender = _gender_of().get(word)
        pattern = rf"\b{word}\b"
        if gender is None or not re.search(pattern, pair.spanish):
            continue
        is_reserved = word in (*names.HELD_OUT_MEN, *names.HELD_OUT_WOMEN)
        if is_reserved or dice.chance(RENAMED):
            name = _another(dice, gender)
            pair = Pair(*(re.sub(pattern, name, side) for side in pair))
    return pair


def _opened(dice: Dice, pair: Pair) -> Pair:
    """Return a statement or a question with words before it."""
    if STATEMENT.fullmatch(pair.english) and pair.spanish.endswith("."):
        before, in_english = dice.choice(BEFORE_STATEMENTS)
        after = _lowered(pair)
        return Pair(_begun(in_english, after.english), _begun(before, after.spanish))
    if re.fullmatch(r"¿[^¿?]+\?", pair.spanish) and re.match(
        r"(?:[WH]\w+|Do|Does|Did|Are|Is|Can|Could|Have)\b", pair.english
    ):
        before, in_english = dice.choice(BEFORE_QUESTIONS)
        english = pair.english[0].lower() + pair.english[1:]
        return Pair(_begun(in_english, english), _begun(before, f"¿{pair.spanish[1].lower()}{pair.spanish[2:]}"))
    return pair


def _begun(first: str, rest: str) -> str:
    return f"{first[0].upper()}{first[1:]} {rest}"


def _is_short_statement(pair: Pair) -> bool:
    return STATEMENT.fullmatch(pair.english) is not None and pair.spanish[-1] == "." and len(pair.spanish.split()) < 7


def _lowered(pair: Pair) -> Pair:
    """Return a statement as it stands behind other words; names stay as they are."""
    english = pair.english if re.match(r"I\b", pair.english) else pair.english[0].lower() + pair.english[1:]
    first = re.match(r"\w+", pair.spanish)
    is_name = first is not None and first[0] in pair.english
    return Pair(english, pair.spanish if is_name else pair.spanish[0].lower() + pair.spanish[1:])
