"""Spanish forms: plurals, adjective agreement, articles, and the verb tenses in use."""

from __future__ import annotations

from functools import cache
from typing import Literal

from phrases.irregular import FORMS, FUTURE_STEMS, GERUNDS, PARTICIPLES, STEM_CHANGES, STRONG_PAST

Gender = Literal["m", "f"]
Tense = Literal["present", "past", "imperfect", "future"]

VOWELS = "aeiouáéíóú"
PLAIN = str.maketrans("áéíóú", "aeiou")

ENDINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "present": {
        "ar": ("o", "as", "a", "amos", "an"),
        "er": ("o", "es", "e", "emos", "en"),
        "ir": ("o", "es", "e", "imos", "en"),
    },
    "past": {
        "ar": ("é", "aste", "ó", "amos", "aron"),
        "er": ("í", "iste", "ió", "imos", "ieron"),
        "ir": ("í", "iste", "ió", "imos", "ieron"),
    },
    "imperfect": {
        "ar": ("aba", "abas", "aba", "ábamos", "aban"),
        "er": ("ía", "ías", "ía", "íamos", "ían"),
        "ir": ("ía", "ías", "ía", "íamos", "ían"),
    },
}
FUTURE = ("é", "ás", "á", "emos", "án")
STRONG = ("e", "iste", "o", "imos", "ieron")
HAVE = ("he", "has", "ha", "hemos", "han")
REFLEXIVE = ("me", "te", "se", "nos", "se")
SPOKEN_ALIKE = {"car": "qué", "gar": "gué", "zar": "cé"}
"""spelling changes that keep the sound in the first person of the past"""


def plural(word: str) -> str:
    """Return the plural of a noun or adjective; of several words, only the first changes."""
    first, space, rest = word.partition(" ")
    if space:
        return f"{plural(first)} {rest}"
    if word[-1] in "aeiouáéó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word[-1] in "sx" and word[-2] in "aeiou":
        return word
    if word[-1] in "ns" and word[-2] in "áéíóú":
        return word[:-2] + word[-2].translate(PLAIN) + word[-1] + "es"
    return {"examen": "exámenes", "joven": "jóvenes", "imagen": "imágenes"}.get(word, word + "es")


def inflect(adjective: str, gender: Gender, number: int = 1) -> str:
    """Return the adjective, given in the masculine, in agreement with a noun."""
    if gender == "f":
        if adjective.endswith("o"):
            adjective = adjective[:-1] + "a"
        elif adjective.endswith(("or", "ol")) and adjective not in ("mejor", "peor", "mayor", "menor"):
            adjective += "a"
        elif adjective[-2:] in ("és", "án"):
            adjective = adjective[:-2] + adjective[-2].translate(PLAIN) + adjective[-1] + "a"
    return adjective if number == 1 else plural(adjective)


def the(gender: Gender, number: int = 1) -> str:
    """Return the definite article."""
    return {("m", 1): "el", ("f", 1): "la", ("m", 2): "los", ("f", 2): "las"}[gender, number]


def contract(text: str) -> str:
    """Contract “a el” to “al” and “de el” to “del”; the pronoun “él” stays."""
    return f" {text}".replace(" a el ", " al ").replace(" de el ", " del ")[1:]


def change(stem: str, into: str) -> str:
    """Change the last matching vowel of the stem: “cerr”, “ie” → “cierr”."""
    vowel = {"ie": "e", "ue": "o", "i": "e", "u": "o", "ú": "u", "í": "i"}[into]
    if into == "ue" and "o" not in stem:
        vowel = "u"
    index = stem.rindex(vowel)
    return stem[:index] + into + stem[index + 1 :]


@cache
def conjugate(infinitive: str, tense: Tense, person: int) -> str:
    """Return a verb form; `person` is 0 for yo, 1 tú, 2 él or ella, 3 nosotros, 4 ellos."""
    if infinitive.endswith("se"):
        return f"{REFLEXIVE[person]} {conjugate(infinitive.removesuffix('se'), tense, person)}"
    forms = FORMS.get((infinitive, tense))
    if forms:
        return forms.split()[person]
    stem, kind = infinitive[:-2], infinitive[-2:].replace("í", "i")
    changed, past_change = STEM_CHANGES.get(infinitive, ("", ""))
    if tense == "future":
        return FUTURE_STEMS.get(infinitive, infinitive) + FUTURE[person]
    if tense == "present" and changed and person != 3:
        stem = change(stem, changed)
    if tense == "past":
        if infinitive in STRONG_PAST:
            ending = STRONG[person]
            strong = STRONG_PAST[infinitive]
            return strong + ("eron" if strong.endswith("j") and person == 4 else ending)
        if person in (2, 4) and past_change:
            stem = change(stem, past_change)
        if person == 0 and infinitive[-3:] in SPOKEN_ALIKE:
            return infinitive[:-3] + SPOKEN_ALIKE[infinitive[-3:]]
        if stem.endswith(("a", "e", "o")) and kind != "ar":
            return stem + ("í", "íste", "yó", "ímos", "yeron")[person]
    return stem + ENDINGS[tense][kind][person]


@cache
def gerund(infinitive: str) -> str:
    """Return the gerund: “comer” → “comiendo”."""
    if infinitive in GERUNDS:
        return GERUNDS[infinitive]
    stem, kind = infinitive[:-2], infinitive[-2:]
    if STEM_CHANGES.get(infinitive, ("", ""))[1]:
        stem = change(stem, STEM_CHANGES[infinitive][1])
    if kind == "ar":
        return stem + "ando"
    return stem + ("yendo" if stem.endswith(("a", "e", "o")) else "iendo")


@cache
def participle(infinitive: str) -> str:
    """Return the past participle: “comer” → “comido”."""
    if infinitive in PARTICIPLES:
        return PARTICIPLES[infinitive]
    stem, kind = infinitive[:-2], infinitive[-2:]
    if kind == "ar":
        return stem + "ado"
    return stem + ("ído" if stem.endswith(("a", "e", "o")) else "ido")


def perfect(infinitive: str, person: int) -> str:
    """Return the present perfect: “comer”, 0 → “he comido”."""
    if infinitive.endswith("se"):
        return f"{REFLEXIVE[person]} {perfect(infinitive.removesuffix('se'), person)}"
    return f"{HAVE[person]} {participle(infinitive)}"


def progressive(infinitive: str, person: int) -> str:
    """Return the present progressive: “comer”, 0 → “estoy comiendo”."""
    if infinitive.endswith("se"):
        return f"{REFLEXIVE[person]} {progressive(infinitive.removesuffix('se'), person)}"
    return f"{conjugate('estar', 'present', person)} {gerund(infinitive)}"


def bound(infinitive: str, person: int) -> str:
    """Return the infinitive with a reflexive pronoun for the person: “levantarse”, 0 → “levantarme”."""
    return infinitive.removesuffix("se") + REFLEXIVE[person] if infinitive.endswith("se") else infinitive
