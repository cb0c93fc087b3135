"""Sentences that were written one by one, each with its translation: the words and turns that the grammar lacks.

written/*.txt holds them, one a line: `Spanish = English`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from grammar import Dice

from phrases import names
from phrases.draft import Pair

RENAMED = 0.7
"""Probability that another name stands in for that of a person."""
INVENTED = 0.15
"""Probability that this is an invented one."""
OPENED, ADDRESSED, JOINED = 0.08, 0.05, 0.04
"""Probabilities that words come before a sentence, that somebody is addressed behind it, and that two form one."""
BEFORE_STATEMENTS = (
    ("pero", "but"), ("y", "and"), ("creo que", "I think"), ("dice que", "he says"), ("ya sé que", "I know"),
    ("me parece que", "I think"), ("es verdad que", "it's true that"), ("porque", "because"),
    ("es que", "it's just that"),
    ("la verdad es que", "the truth is that"), ("mi madre dice que", "my mother says"), ("así que", "so"),
)  # fmt: skip
BEFORE_QUESTIONS = (("perdón,", "excuse me,"), ("a ver,", "let's see,"), ("bueno,", "well,"), ("entonces,", "so"))
BETWEEN = (("y", "and"), ("pero", "but"), ("así que", "so"), ("porque", "because"))
PRONOUN = "(?: (?:I|you|he|she|it|we|they|there|this|that)\\b)"
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
"""Unambiguous contractions and their full forms: 's and 'd are not among them."""
NEGATIVE_QUESTION = re.compile(r"(?:.*\b(?:why|how|and|but|so|well|hey|see|me),? )?\w+n't .*\?", re.IGNORECASE)
"""A question whose contraction cannot be undone: Didn't Ana come? Why isn't the lift working?"""
STATEMENT = re.compile(r"(?:The|My|Your|His|Her|Our|He|She|It|We|You|They|There|This|That|These|Those|I)\b[^?!]*\.")
QUESTION = re.compile(
    r"(?:What|When|Where|Who|Whose|Which|Why|How|Do|Does|Did|Are|Is|Can|Could|Have|Has|Will)\b[^?]*\?"
)
STANDS_FIRST = re.compile(
    r"(?:ojalá|que|qué|pues|sí|no,|ay|venga|claro|menos mal|\w*[áéíóú]\w*(?:[mts]e|l[aeo]s?|nos))\b", re.IGNORECASE
)
"""Beginnings of Spanish sentences, such as those of orders, before which no other words stand."""
PLURAL = re.compile(
    r"\b(?:vosotr[oa]s|ustedes|os|\w+(?:[áé]is|[aei]d))\b|^\W*\w+n(?:[ms]e|l[aeo]s?|nos)?\b", re.IGNORECASE
)
"""Words that are said to more than one."""
OF_GENDER = re.compile(r"\b(?:es|está|eres|estás|eras|estabas|sola?) (?:\w+ )?\w+[ao]\b", re.IGNORECASE)
"""Words that may agree with who is addressed."""
ONE = re.compile(r"\b(?:te|ti|t[uú]s?|contigo|usted)\b", re.IGNORECASE)
"""Words that are said to one."""
PLACES = frozenset(("Domingo", "Florida", "Mercedes", "Rosario", "Salvador", "Santiago", "Victoria"))
"""Names of people and of places, which stay."""


@cache
def pairs() -> tuple[Pair, ...]:
    """Return all sentences."""
    return tuple(pair for file in sorted(Path(__file__).with_suffix("").glob("*.txt")) for pair in _read(file))


@cache
def _phrases() -> frozenset[Pair]:
    """Return what is no sentence, but written as one: My desk."""
    return frozenset(_read(Path(__file__).with_suffix("") / "phrases.txt"))


def _read(file: Path) -> list[Pair]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Pair(right, left) for left, right in (line.split(" = ") for line in lines)]


@cache
def _gender_of() -> dict[str, str]:
    women = dict.fromkeys((*names.WOMEN, *names.HELD_OUT_WOMEN), "f")
    return women | dict.fromkeys((*names.MEN, *names.HELD_OUT_MEN), "m")


def draw(dice: Dice, pairs: Sequence[Pair]) -> Pair:
    """Return one of the pairs, sometimes with other names, opened, addressed to somebody, or joined to another."""
    written = dice.choice(pairs)
    pair = _renamed(dice, written)
    if written in _phrases():
        return pair
    if dice.chance(OPENED):
        return _opened(dice, pair)
    if dice.chance(ADDRESSED) and _may_be_said_to_one(pair):
        name = _another(dice, dice.choice("mf"))
        return Pair(*(f"{side[:-1]}, {name}{side[-1]}" for side in pair))
    if dice.chance(JOINED) and _is_short_statement(pair):
        other = dice.choice(pairs)
        if other not in _phrases() and _is_short_statement(other):
            between, in_english = dice.choice(BETWEEN)
            after = _lowered(_renamed(dice, other))
            return Pair(
                f"{pair.english[:-1]}, {in_english} {after.english}",
                _with_e(f"{pair.spanish[:-1]}, {between} {after.spanish}"),
            )
    return pair


def in_full(pair: Pair) -> Pair:
    """Return a pair whose English side has no contractions, as far as these stand for one thing only."""
    english = pair.english
    if NEGATIVE_QUESTION.match(english):
        return pair
    for pattern, whole in IN_FULL:
        english = pattern.sub(whole, english)
    return Pair(english, pair.spanish)


def _another(dice: Dice, gender: str) -> str:
    if dice.chance(INVENTED):
        return names.invented(dice, gender)
    return dice.choice(names.WOMEN if gender == "f" else names.MEN)


def _renamed(dice: Dice, pair: Pair) -> Pair:
    """Return a pair with other names of people, of the same gender; those of the held-out part are always replaced."""
    for word in dict.fromkeys(re.findall(r"\b[A-ZÁÉÍÓÚ]\w+", pair.english)):
        gender = _gender_of().get(word)
        if gender is None or word in PLACES or not all(re.search(rf"\b{word}\b", side) for side in pair):
            continue
        of_a_place = rf"\b(?:San|Santa|Santo|Saint|El|La|Las|Los) {word}\b|\b{word} [A-ZÁÉÍÓÚ]"
        if any(re.search(of_a_place, side) for side in pair):
            continue
        if word in names.HELD_OUT_MEN or word in names.HELD_OUT_WOMEN or dice.chance(RENAMED):
            name = _another(dice, gender)
            pair = Pair(*(re.sub(rf"\b{word}\b", name, side) for side in pair))
    return pair._replace(spanish=_with_e(pair.spanish))


def _opened(dice: Dice, pair: Pair) -> Pair:
    """Return a statement or a question with words before it."""
    if _is_statement(pair):
        before, in_english = dice.choice(BEFORE_STATEMENTS)
        after = _lowered(pair)
        return Pair(_begun(in_english, after.english), _with_e(_begun(before, after.spanish)))
    if QUESTION.fullmatch(pair.english) and re.fullmatch(r"¿[^¿?]+\?", pair.spanish):
        before, in_english = dice.choice(BEFORE_QUESTIONS)
        after = _lowered(pair)
        return Pair(_begun(in_english, after.english), _begun(before, after.spanish))
    return pair


def _begun(first: str, rest: str) -> str:
    return f"{first[0].upper()}{first[1:]} {rest}"


def _is_statement(pair: Pair) -> bool:
    """Return whether words may stand before both sides: neither is an order, an exclamation or a set phrase."""
    return (
        STATEMENT.fullmatch(pair.english) is not None
        and pair.spanish[-1] == "."
        and not pair.spanish.endswith("..")
        and STANDS_FIRST.match(pair.spanish) is None
        and len(pair.english.split()) > 2
        and len(pair.spanish.split()) > 1
    )


def _is_short_statement(pair: Pair) -> bool:
    return _is_statement(pair) and len(pair.spanish.split()) < 7


def _may_be_said_to_one(pair: Pair) -> bool:
    """Return whether a man or a woman may be addressed behind a sentence."""
    is_to_you = re.search(r"\byou(?:rs?|rself)?\b", pair.english, re.IGNORECASE) is not None
    return (
        "," not in pair.english + pair.spanish
        and not pair.spanish.endswith("..")
        and not PLURAL.search(pair.spanish)
        and not OF_GENDER.search(pair.spanish)
        and (not is_to_you or ONE.search(pair.spanish) is not None)
    )


def _lowered(pair: Pair) -> Pair:
    """Return a sentence as it stands behind other words; names stay as they are."""
    english = pair.english if re.match(r"I\b", pair.english) else pair.english[0].lower() + pair.english[1:]
    first = re.search(r"\w+", pair.spanish)
    if first is None or re.search(rf"\b{first[0]}\b", pair.english):
        return Pair(english, pair.spanish)
    at = first.start()
    return Pair(english, pair.spanish[:at] + pair.spanish[at].lower() + pair.spanish[at + 1 :])


def _with_e(said: str) -> str:
    """Return Spanish with e in place of y before the sound of i: padre e hijo, but agua y hielo."""
    return re.sub(
        r"\b([yY]) (?=h?[ií](?![aeoáéó]))", lambda found: "e " if found[1] == "y" else "E ", said, flags=re.IGNORECASE
    )
