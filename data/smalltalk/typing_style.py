"""Typing styles: careful, lowercase, sloppy or shouting. They apply only to the user's side."""

from __future__ import annotations

import re

from grammar import Dice

from smalltalk import words

STYLES = ("careful", "lower", "sloppy", "shout")
WEIGHTS = (48, 38, 12, 2)

_FILE = words.table(__file__)
HABITS, PHRASES = words.named(_FILE["habits"]), words.named(_FILE["phrases"])
"""Misspellings of hurried people, the replies show the right spelling; and abbreviations of phrases."""
SYNONYMS = {
    source: others
    for sources, others in words.named(words.table("synonyms")["groups"]).items()
    for source in ([sources] if sources in others else sources.split())
}
"""What may stand for a word or for some words."""
SYNONYM_RATE = 0.15
NEAR: dict[str, str] = dict(_FILE["near"].split())
"""Neighbouring keys, for slips."""
BEFORE, AFTER = _FILE["before"], _FILE["after"]
"""Lead-ins and endings of questions."""
LEADS: dict[bool, tuple[list[str], list[str]]] = {
    False: (_FILE["leads"], _FILE["endings"]),
    True: (_FILE["talk_leads"], _FILE["talk_endings"]),
}
"""Lead-ins and endings of what people tell, and of what they say of the talk itself."""
FACES = words.named(_FILE["faces"])
"""What people add, by the mood."""
STRETCH, STRETCHED = 0.03, (3, 12)
"""Probability that a careless person stretches a word, and how often a letter is repeated then."""
_WORD = re.compile(r"\{[^}]*\}|[\w']+")
_SYNONYM = re.compile(rf"\{{[^}}]*\}}|(?<![\w'-])(?:{'|'.join(sorted(SYNONYMS, key=len, reverse=True))})(?![\w'-])")
_PHRASE = re.compile(rf"\{{[^}}]*\}}|\b(?:{'|'.join(PHRASES)})\b")
_DROPPED = {"apostrophe": re.compile(r"\{[^}]*\}|(?<=\w)'(?=\w)"), "comma": re.compile(r"\{[^}]*\}|,(?= )")}
"""What hurried people leave out, outside braces."""


def slip(dice: Dice, word: str) -> str:
    """Return the word with one typing slip: letters swapped, one lost, doubled or replaced by a neighbouring key."""
    index = dice.between(1, len(word) - 2)
    kind = dice.below(4)
    if kind == 0:
        return word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    if kind == 1:
        return word[:index] + word[index + 1 :]
    if kind == 2:
        return word[:index] + word[index] + word[index:]
    return word[:index] + NEAR.get(word[index], word[index]) + word[index + 1 :]


def stretch(dice: Dice, text: str) -> str:
    """Repeat the last letter or a vowel of a word outside braces: “hiiii”, “sooo”."""
    words_outside = [found for found in _WORD.finditer(text) if found[0].isalpha()]
    if not words_outside:
        return text
    found = dice.choice(words_outside)
    vowels = [at for at, letter in enumerate(found[0]) if letter in "aeiouy"]
    at = found.start() + (dice.choice(vowels) if vowels and dice.chance(0.6) else len(found[0]) - 1)
    return text[:at] + text[at] * dice.between(*STRETCHED) + text[at + 1 :]


def reword(dice: Dice, text: str, rate: float = SYNONYM_RATE) -> str:
    """Put a synonym for about `rate` of the words outside braces that have any."""

    def change(found: re.Match[str]) -> str:
        word = found.group(0)
        return word if word.startswith("{") or not dice.chance(rate) else dice.choice(SYNONYMS[word])

    return _SYNONYM.sub(change, text)


def misspell(dice: Dice, text: str, rate: float) -> str:
    """Apply habits and slips to about `rate` of the words outside braces."""

    def change(found: re.Match[str]) -> str:
        word = found.group(0)
        if word.startswith("{") or not dice.chance(rate):
            return word
        if word in HABITS:
            return dice.choice(HABITS[word])
        return slip(dice, word) if len(word) >= 4 and word.isalpha() else word

    def shorten(found: re.Match[str]) -> str:
        phrase = found.group(0)
        return phrase if phrase.startswith("{") or not dice.chance(2 * rate) else dice.choice(PHRASES[phrase])

    return _WORD.sub(change, _PHRASE.sub(shorten, text))


def capitalise(text: str) -> str:
    """Capitalize sentence beginnings and “I”."""
    text = re.sub(r"\bi\b(?!\.)", "I", text)
    return re.sub(r"(^|[.?!] )(\{?)([a-z])", lambda m: m.group(1) + m.group(2) + m.group(3).upper(), text)


def write(dice: Dice, style: str, text: str) -> str:
    """Return the user's text (lower case, values in braces) as a person of that style types it."""
    text = reword(dice, text)
    if style == "careful":
        if text[-1] not in ".?!)" and dice.chance(0.6):
            text += dice.choice((".", ".", ".", "!")) if len(text.split()) > 1 else ""
        elif text[-1] in ".?" and dice.chance(0.15):
            text = text[:-1].rstrip() or text
        text = capitalise(text) if dice.chance(0.93) else text
        return text.replace("{", "").replace("}", "")
    if style == "sloppy":
        text = misspell(dice, text, 0.12)
    if dice.chance(STRETCH):
        text = stretch(dice, text)
    text = text.upper() if style == "shout" else text.lower()
    for mark, rate in (("apostrophe", 0.55), ("comma", 0.6)):
        if dice.chance(rate):
            text = _DROPPED[mark].sub(lambda found: found[0] if found[0].startswith("{") else "", text)
    text = text.replace("{", "").replace("}", "")
    if text[-1] in "?!." and dice.chance(0.6):
        text = text.rstrip("?!. ") or text
    elif text[-1] in "?!" and dice.chance(0.12):
        text += text[-1] * dice.between(1, 2)
    return text


def typed(style: str, value: str) -> str:
    """Return a value as this person writes it and the bot repeats it; values are never shouted."""
    return value if style == "careful" else value.lower()
