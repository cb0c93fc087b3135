"""Spanish as people of many countries say and type it: usted, no pronouns, words of America, no accents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from grammar import Dice

from phrases import tables, verbs
from phrases.draft import CONTRACTIONS, Pair
from phrases.english import capital, plural, with_a
from phrases.nouns import BY_NAME
from phrases.spanish import PLAIN, Tense, conjugate
from phrases.tables import read_pairs

_TABLES = tables.read_table(Path(__file__).stem)
FIXED = tuple(Pair(right, left) for left, right in read_pairs(_TABLES["fixed"]))
"""what Spanish speakers say that the grammar of sentences lacks"""
PATTERNS = tuple(
    (left, right) for left, right in (line.split(" = ") for line in _TABLES["patterns"].strip().splitlines())
)
"""sentences with open places, as in patterns.toml"""
AMERICAN = dict(read_pairs(_TABLES["american"]))
"""words of Spain, and one of the same gender and number that is said in America"""

FORMAL = 0.3
"""probability that what is said to a person is said with usted or ustedes"""
PLURAL = 0.4
"""probability that it is ustedes"""
NAMED = 0.6
"""probability that a question then names usted or ustedes; a statement always does"""
DROPPED = 0.5
"""probability that a pronoun that the grammar writes is left out: él trabaja, trabaja"""
ADDED = 0.08
"""probability that one is written that the grammar leaves out: trabajo, yo trabajo"""
FROM_AMERICA = 0.35
"""probability that words of America stand in for those of Spain"""
WITHOUT_OPENING, IN_LOWER_CASE, IN_PLAIN_LETTERS = 0.1, 0.22, 0.5
"""probabilities that a sentence lacks ¿ and ¡; that it is in lower case, without marks; that it then has no accents"""

PLAIN_OPENING = str.maketrans("", "", "¿¡")
FAMILIAR = re.compile(r"\b(te|ti|tus?|contigo|tuy[oa]s?)\b", re.IGNORECASE)
"""what stays of tú when its verb is that of usted"""
NOT_AFTER = "".join(
    rf"(?<!\b{word} )" for word in ("a", "de", "con", "para", "por", "sin", "en", "que", "como", "ni", "y")
)
"""words behind which a pronoun cannot be left out"""
PARTICIPLE = r"\w+(?:[aeií]do|to|cho)"
FIRST_VERBS = re.compile(r"(?!(?:[AÁ]|[Mm]e|[Tt]e|[Nn]os|No|Que|Ojalá|Quizás|Hay|Es|Hace|Está)\b)\w")
"""a beginning before which a pronoun may stand"""


class Formal(NamedTuple):
    """What usted and ustedes have in place of a form of tú."""

    singular: str
    plural: str


@cache
def _infinitives() -> frozenset[str]:
    found = {verb.spanish for verb in (*verbs.TRANSITIVE, *verbs.INTRANSITIVE, *verbs.PEOPLE)}
    for line in tables.VERB_PHRASES["phrases"]["table"].strip().splitlines():
        found.add(line.partition(" = ")[2].split()[0])
    found |= {"ser", "estar", "haber", "ir", "tener", "poder", "querer", "saber", "deber", "necesitar", "soler"}
    return frozenset(one for one in (one.removesuffix("se") for one in found) if one.endswith(("ar", "er", "ir", "ír")))


@cache
def formal_forms() -> Mapping[str, Formal]:
    """Return the forms of verbs that are of tú and of nothing else, and what usted and ustedes have in their place."""
    found: dict[str, Formal] = {}
    others = {noun.spanish for noun in BY_NAME.values()}
    others |= {word.spanish for words in tables.WORDS.values() for word in words}
    others |= {f"{noun}{ending}" for noun in others for ending in ("s", "es")}
    for infinitive in sorted(_infinitives()):
        for tense in get_args(Tense):
            forms = [conjugate(infinitive, tense, person) for person in range(5)]
            found[forms[1]] = Formal(forms[2], forms[4])
            others |= {form for person, form in enumerate(forms) if person != 1}
    return {form: formal for form, formal in found.items() if form not in others}


@cache
def _first_words() -> Mapping[str, str]:
    """Return the first of two English words for one thing, by the second, unless that has another meaning, too."""
    firsts: dict[str, str] = {}
    meanings: dict[str, set[str]] = {name: {noun.spanish.split()[0]} for name, noun in BY_NAME.items()}
    for words, right in tables.ROWS:
        firsts |= dict.fromkeys(words[1:], words[0])
        for word in words:
            meanings.setdefault(word, set()).update(right.split()[:1])
    one = {
        second: first
        for second, first in firsts.items()
        if first not in firsts and meanings[second] <= meanings[first] and first not in second and second not in first
    }
    return one | {plural(second): plural(first) for second, first in one.items() if not second.endswith("s")}


@cache
def _second_words() -> re.Pattern[str]:
    words = sorted(_first_words(), key=lambda word: (-len(word), word))
    return re.compile(rf"\b(an? )?({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


@cache
def _of_spain() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(AMERICAN, key=lambda words: (-len(words), words)))})\b")


def in_one_wording(english: str) -> str:
    """Return the sentence as it is always written: contracted, and in the first of two words for one thing."""

    def first(found: re.Match[str]) -> str:
        word = _first_words().get(found[2]) or _first_words()[found[2].lower()]
        word = with_a(word) if found[1] else word
        return capital(word) if found[0][0].isupper() else word

    english = _second_words().sub(first, english)
    for pattern, short in CONTRACTIONS:
        english = re.sub(pattern, short, english)
    return english.replace("Do not ", "Don't ")


def as_said(dice: Dice, pair: Pair) -> Pair:
    """Return a pair whose Spanish side is as somebody, somewhere, would say it."""
    said = pair.spanish
    if re.search(r"\byou\b", pair.english, re.IGNORECASE) and dice.chance(FORMAL):
        said = _to_usted(dice, said)
    elif dice.chance(DROPPED):
        said = _without_pronoun(said)
    elif dice.chance(ADDED):
        said = _with_pronoun(said, pair.english)
    if dice.chance(FROM_AMERICA):
        said = _of_spain().sub(lambda found: AMERICAN[found[0]], said)
    return Pair(pair.english, said)


def _to_usted(dice: Dice, said: str) -> str:
    """Return what is said to tú as it is said to usted or ustedes, if only verbs and reflexives tell these apart."""
    number = dice.chance(PLURAL)
    forms = formal_forms()
    said = re.sub(r"(?<=¿)Te (?=gustan?\b|gustaría\b|duelen?\b|interesan?\b)", "Les " if number else "Le ", said)
    found = [word for word in re.findall(r"\w+", said) if word.lower() in forms]
    if not found:
        return said

    def exchange(word: re.Match[str]) -> str:
        form = forms.get(word[2].lower())
        if form is None:
            return word[0]
        text = f"{'se ' if word[1] else ''}{form[number]}"
        return capital(text) if word[0][0].isupper() else text

    formal = re.sub(r"\b([Tt]e )?(\w+)", exchange, said)
    formal = re.sub(r"\b(\w+)te((?:l[aeo]s?)?)\b", _with_se, formal)
    formal = re.sub(r"\b([Tt])u(s?)\b", lambda word: f"{'S' if word[1] == 'T' else 's'}u{word[2]}", formal)
    if FAMILIAR.search(formal):
        return said
    name = "ustedes" if number else "usted"
    first = forms[found[0].lower()][number]
    if "¿" not in formal:
        if not re.match(rf"(No |Se )?{first}\b", formal, re.IGNORECASE):
            return formal
        return f"{capital(name)} {formal[0].lower()}{formal[1:]}"
    if dice.chance(NAMED):
        verb = rf"{first} {PARTICIPLE}" if first in ("ha", "han", "había", "habían") else first
        return re.sub(rf"\b({verb})\b", rf"\1 {name}", formal, count=1, flags=re.IGNORECASE)
    return formal


def _with_se(found: re.Match[str]) -> str:
    """Return levantarse for levantarte, and poniéndoselo for poniéndotelo."""
    base = found[1].lower().translate(PLAIN)
    return f"{found[1]}se{found[2]}" if base in _infinitives() or base.endswith("ndo") else found[0]


def _without_pronoun(said: str) -> str:
    """Return a statement without its only él or ellos."""
    if "?" in said or len(re.findall(r"\b(?:él|ellos|ella|ellas)\b", said, re.IGNORECASE)) != 1:
        return said
    shorter = re.sub(rf"{NOT_AFTER}\b(?:él|ellos) ", "", said, flags=re.IGNORECASE)
    return capital(shorter)


def _with_pronoun(said: str, english: str) -> str:
    """Return a statement with yo, tú or nosotros before it."""
    pronoun = {"I": "Yo", "You": "Tú", "We": "Nosotros"}.get(re.split(r"\W", english)[0])
    if pronoun is None or "?" in said or "!" in said or not FIRST_VERBS.match(said):
        return said
    return f"{pronoun} {said[0].lower()}{said[1:]}"


def as_typed(dice: Dice, said: str) -> str:
    """Return Spanish as people type it: some of it without the marks before it, in lower case, or without accents."""
    if dice.chance(WITHOUT_OPENING):
        return said.translate(PLAIN_OPENING)
    if dice.chance(IN_LOWER_CASE):
        said = said.translate(PLAIN_OPENING).lower().rstrip(".?!")
        return said.translate(PLAIN) if dice.chance(IN_PLAIN_LETTERS) else said
    return said
