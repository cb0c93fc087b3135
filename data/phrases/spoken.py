"""Spanish as people of many countries say and type it: usted, no pronouns, words of America, no accents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from grammar import Dice

from phrases import tables, usted
from phrases.draft import CONTRACTIONS, Pair
from phrases.english import capital, plural, with_a
from phrases.nouns import BY_NAME
from phrases.spanish import PLAIN
from phrases.tables import read_pairs

_TABLES = tables.read_table(Path(__file__).stem)
FIXED = tuple(Pair(right, left) for left, right in read_pairs(_TABLES["fixed"]))
"""Whole sentences, many of which are not said word by word."""
PATTERNS = tuple(
    (left, right) for left, right in (line.split(" = ") for line in _TABLES["patterns"].strip().splitlines())
)
"""Sentences with open places, as in patterns.toml."""
AMERICAN = dict(read_pairs(_TABLES["american"]))
"""Words of Spain, and those that are said in America in their place."""

FORMAL = 0.45
"""Probability that what is said to a person is said with usted or ustedes, where only forms of verbs tell."""
PLURAL = 0.4
"""Probability that it is ustedes."""
NAMED = 0.6
"""Probability that a question then names usted or ustedes; a statement always does."""
DROPPED = 0.5
"""Probability that a pronoun that the grammar writes is left out: él trabaja, trabaja."""
ADDED = 0.08
"""Probability that one is written that the grammar leaves out: trabajo, yo trabajo."""
FROM_AMERICA = 0.35
"""Probability that words of America stand in for those of Spain."""
WITHOUT_OPENING, IN_LOWER_CASE, IN_PLAIN_LETTERS = 0.1, 0.22, 0.5
"""Probabilities that a sentence lacks ¿ and ¡; that it is in lower case, without marks; that it then has no accents."""

PLAIN_OPENING = str.maketrans("", "", "¿¡")
NOT_AFTER = (
    "a", "con", "como", "contra", "de", "en", "entre", "es", "hacia", "ni", "o", "para", "por", "según", "sin", "sobre",
    "son", "todos", "y",
)  # fmt: skip
PRONOUN = (
    "".join(rf"(?<!\b{word} )" for word in NOT_AFTER)
    + r"\b(?:él|ellos) (?!mismo|y |o |dos|quien|sol)"
    + rf"(?={usted.BEFORE_VERB}(\w+))"
)
"""Él and ellos where they may be left out, and the verb behind them."""
INTERROGATIVES = re.compile(
    r"\b(?:qué|quién(?:es)?|cómo|cuándo|cuánt[oa]s?|cuál(?:es)?|d[óo]nde|adónde)\b", re.IGNORECASE
)


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
    return re.compile(rf"(?<![\w@.-])(an? )?({'|'.join(map(re.escape, words))})(?![\w@-]|\.\w)", re.IGNORECASE)


@cache
def _of_spain() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(AMERICAN, key=lambda words: (-len(words), words)))})\b")


def in_one_wording(english: str) -> str:
    """Return the sentence as it is always written: contracted, and in the first of two words for one thing."""

    def first(found: re.Match[str]) -> str:
        word = _first_words().get(found[2]) or _first_words()[found[2].lower()]
        word = with_a(word) if found[1] else word
        return (
            capital(word) if found.start() == 0 or found.string[: found.start()].endswith((". ", "? ", "! ")) else word
        )

    english = _second_words().sub(first, english)
    for pattern, short in CONTRACTIONS:
        english = re.sub(pattern, short, english)
    english = re.sub(r"\b(\w+)'s (it|he|she|this|that)(?=[.?!])", r"\1 is \2", english)  # who is it?
    return english.replace("Do not ", "Don't ").replace("can not", "can't")


def as_said(dice: Dice, pair: Pair) -> Pair:
    """Return a pair whose Spanish side is as somebody, somewhere, would say it."""
    said = pair.spanish
    if re.search(r"\byou\b", pair.english, re.IGNORECASE) and dice.chance(FORMAL):
        said = usted.to_usted(said, plural=dice.chance(PLURAL), named=dice.chance(NAMED))
    elif dice.chance(DROPPED):
        said = _without_pronoun(said)
    elif dice.chance(ADDED):
        said = _with_pronoun(said, pair.english)
    if dice.chance(FROM_AMERICA):
        said = _of_spain().sub(lambda found: AMERICAN[found[0]], said)
    return Pair(pair.english, said)


def _without_pronoun(said: str) -> str:
    """Return a statement without its only él or ellos, unless its verb could be that of yo, too."""
    if "?" in said or len(re.findall(r"\b(?:él|ellos|ella|ellas)\b", said, re.IGNORECASE)) != 1:
        return said

    def drop(found: re.Match[str]) -> str:
        return found[0] if found[1] in usted.forms(0) else ""

    return capital(re.sub(PRONOUN, drop, said, flags=re.IGNORECASE))


def _with_pronoun(said: str, english: str) -> str:
    """Return a statement with yo, tú or nosotros before its verb."""
    pronoun, person = {"I": ("Yo", 0), "You": ("Tú", 1), "We": ("Nosotros", 3)}.get(
        re.split(r"\W", english)[0], ("", 0)
    )
    verb = re.match(r"(?:No )?(?:(?:Me|Te|Nos) )?(\w+)", said, re.IGNORECASE)
    if not pronoun or "?" in said or "!" in said or verb is None or verb[1].lower() not in usted.forms(person):
        return said
    return f"{pronoun} {said[0].lower()}{said[1:]}"


def as_typed(dice: Dice, said: str) -> str:
    """Return Spanish as people type it: some of it without the marks before it, in lower case, or without accents."""
    if dice.chance(WITHOUT_OPENING):
        return said.translate(PLAIN_OPENING)
    if dice.chance(IN_LOWER_CASE):
        # Without such a word, only the mark tells that it is a question.
        is_told = "?" not in said or INTERROGATIVES.search(said)
        said = said.translate(PLAIN_OPENING).lower().rstrip(".?!" if is_told else ".!")
        return said.translate(PLAIN) if dice.chance(IN_PLAIN_LETTERS) else said
    return said
