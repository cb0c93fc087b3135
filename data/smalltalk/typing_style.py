"""Typing styles: careful, lowercase, sloppy or shouting. They apply only to the user's side."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from grammar import Dice, listed

STYLES = ("careful", "lower", "sloppy", "shout")
WEIGHTS = (42, 36, 20, 2)

# Misspellings of hurried people; the replies show the right spelling.
HABITS: dict[str, tuple[str, ...]] = {
    "you": ("u", "yuo", "yu"),
    "your": ("ur", "you're", "yor"),
    "are": ("r", "ar"),
    "please": ("pls", "plz", "pleas"),
    "thanks": ("thx", "thanx", "tanks"),
    "thank": ("thnk", "tank"),
    "what": ("wat", "waht", "wut"),
    "what's": ("whats", "wats"),
    "who": ("hoo", "woh"),
    "how": ("hwo", "hw"),
    "where": ("wher", "were"),
    "which": ("wich", "whcih"),
    "the": ("teh", "te", "th"),
    "because": ("cuz", "becuase", "bc"),
    "with": ("wiht", "wth"),
    "favourite": ("favorite", "fav", "favrite"),
    "colour": ("color", "colur"),
    "friend": ("freind",),
    "tomorrow": ("tommorow", "tmrw"),
    "opposite": ("oposite", "oppposite", "opposit"),
    "capital": ("captial", "capitol", "capitel"),
    "animal": ("aminal", "animl"),
    "remember": ("remeber", "rember"),
    "story": ("storry", "stroy"),
    "joke": ("jok", "jkoe"),
    "riddle": ("ridle", "riddel"),
    "spell": ("spel",),
    "temperature": ("temprature", "temperture", "temp"),
    "random": ("randum", "rnadom"),
    "model": ("modle", "modl"),
    "number": ("numbr", "nubmer"),
    "name": ("nmae", "naem"),
    "called": ("caled", "calld"),
    "tell": ("tel", "tlel"),
    "hello": ("helo", "hllo"),
    "goodbye": ("godbye", "goodby"),
    "know": ("no", "kno", "konw"),
    "want": ("wnat",),
    "really": ("realy", "rly"),
    "though": ("tho",),
    "going": ("goin",),
    "about": ("abt", "abuot"),
    "people": ("ppl", "poeple"),
    "before": ("befor", "bfore"),
    "tonight": ("tonite",),
    "don't": ("dont", "dnt"),
    "can't": ("cant",),
    "i'm": ("im", "i am"),
    "feel": ("feal", "fel"),
    "and": ("n", "adn"),
    "does": ("dose", "dos"),
    "again": ("agian", "agen"),
    "something": ("smth", "somthing"),
}

# Abbreviations of phrases.
PHRASES: dict[str, tuple[str, ...]] = {
    "want to": ("wanna",),
    "going to": ("gonna",),
    "got to": ("gotta",),
    "have to": ("hafta", "gotta"),
    "give me": ("gimme",),
    "let me": ("lemme",),
    "kind of": ("kinda",),
    "i don't know": ("idk", "dunno"),
    "do you": ("d'you", "do u", "u"),
    "are you": ("r u", "are u"),
    "you are": ("ur", "u r", "youre"),
    "what is": ("whats", "wats"),
    "what are": ("whatre", "wat r"),
    "how do i": ("how i", "how do u"),
    "can you": ("can u", "cud u"),
    "tell me": ("tell", "tel me"),
    "thank you": ("ty", "thank u"),
    "by the way": ("btw",),
    "to be honest": ("tbh",),
    "right now": ("rn",),
    "see you": ("cya", "see ya"),
}

SYNONYMS = {
    source: tuple(listed(others, ","))
    for group in tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))["groups"]
    for sources, others in [group.split(": ")]
    for source in ([sources] if sources in others.split(", ") else sources.split())
}
"""what may stand for a word or for some words"""
SYNONYM_RATE = 0.15

# Neighbouring keys, for slips.
NEAR = {
    "a": "s", "b": "v", "c": "x", "d": "f", "e": "r", "f": "g", "g": "h", "h": "j", "i": "o", "j": "k", "k": "l",
    "l": "k", "m": "n", "n": "m", "o": "p", "p": "o", "q": "w", "r": "t", "s": "d", "t": "y", "u": "i", "v": "b",
    "w": "e", "x": "c", "y": "u", "z": "x",
}  # fmt: skip


_WORD = re.compile(r"\{[^}]*\}|[\w']+")
_SYNONYM = re.compile(rf"\{{[^}}]*\}}|(?<![\w'-])(?:{'|'.join(sorted(SYNONYMS, key=len, reverse=True))})(?![\w'-])")
_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b")


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
        return dice.choice(PHRASES[found.group(0)]) if dice.chance(2 * rate) else found.group(0)

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
            text = text[:-1]
        text = capitalise(text) if dice.chance(0.93) else text
        return text.replace("{", "").replace("}", "")
    if style == "sloppy":
        text = misspell(dice, text, 0.18)
    text = text.replace("{", "").replace("}", "")
    text = text.upper() if style == "shout" else text.lower()
    if dice.chance(0.55):
        text = re.sub(r"(?<=\w)'(?=\w)", "", text)
    if dice.chance(0.6):
        text = text.replace(", ", " ")
    if text[-1] in "?!." and dice.chance(0.6):
        text = text.rstrip("?!.") or text
    elif text[-1] in "?!" and dice.chance(0.12):
        text += text[-1] * dice.between(1, 2)
    return text


def typed(style: str, value: str) -> str:
    """Return a value as this person writes it and the bot repeats it; values are never shouted."""
    return value if style == "careful" else value.lower()
