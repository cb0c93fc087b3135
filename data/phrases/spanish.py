"""Spanish forms: plurals, adjective agreement, articles, and the verb tenses in use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from phrases.irregular import FORMS, FUTURE_STEMS, GERUNDS, IMPERATIVES, PARTICIPLES, STEM_CHANGES, STRONG_PAST

Gender = Literal["m", "f"]
Tense = Literal["present", "past", "imperfect", "future", "conditional", "subjunctive", "past subjunctive"]

VOWELS = "aeiouáéíóú"
STRESSED = str.maketrans("aeiou", "áéíóú")
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
CONDITIONAL = ("ía", "ías", "ía", "íamos", "ían")
SUBJUNCTIVE = {"ar": ("e", "es", "e", "emos", "en"), "er": ("a", "as", "a", "amos", "an")}
STRONG = ("e", "iste", "o", "imos", "ieron")
HAVE = ("he", "has", "ha", "hemos", "han")
REFLEXIVE = ("me", "te", "se", "nos", "se")
SPOKEN_ALIKE = {"car": "qué", "gar": "gué", "zar": "cé"}
"""Spelling changes that keep the sound in the first person of the past."""
FIRST_PERSON = {"guir": "", "acer": "zc", "ecer": "zc", "ocer": "zc", "ucir": "zc", "ger": "j", "gir": "j"}
"""By the ending of the infinitive, what replaces the last letter of the stem before -o and -a."""


def plural(word: str) -> str:
    """Return the plural of a noun or adjective; an adjective that follows the noun agrees, "de …" does not."""
    first, space, rest = word.partition(" ")
    if space:
        is_adjective = rest.split()[0] not in ("a", "con", "de", "del", "en", "para", "por", "que", "sin")
        return f"{plural(first)} {plural(rest) if is_adjective else rest}"
    if word[-1] in "aeiouáéó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word[-1] in "sx" and word[-2] in "aeiou":
        return word
    if word[-1] in "ns" and word[-2] in "áéíóú":
        return word[:-2] + word[-2].translate(PLAIN) + word[-1] + "es"
    return {"buen": "buenos", "examen": "exámenes", "joven": "jóvenes", "imagen": "imágenes"}.get(word, word + "es")


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
    """Contract “a el” to “al” and “de el” to “del”; “y” before the same sound becomes “e”."""
    text = f" {text}".replace(" a el ", " al ").replace(" de el ", " del ")[1:]
    return re.sub(r" y (?=(?:[Ii]|[Hh]i)(?![aeouáéó]))", " e ", text)


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
    if tense in ("future", "conditional"):
        stem = FUTURE_STEMS.get(infinitive, infinitive.replace("ír", "ir"))
        return stem + (FUTURE if tense == "future" else CONDITIONAL)[person]
    if tense == "subjunctive":
        return _subjunctive(infinitive, person)
    if tense == "past subjunctive":
        stem = conjugate(infinitive, "past", 4).removesuffix("ron")
        return (stem[:-1] + stem[-1].translate(STRESSED) if person == 3 else stem) + (
            "ra",
            "ras",
            "ra",
            "ramos",
            "ran",
        )[person]
    if tense == "present" and changed and person != 3:
        stem = change(stem, changed)
    if tense == "present" and person != 3 and infinitive.endswith("uir") and not infinitive.endswith("guir"):
        stem += "y"
    if tense == "present" and person == 0:
        stem = _first_person_stem(infinitive, stem)
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
        if stem.endswith("u") and not stem.endswith(("gu", "qu")) and kind == "ir":
            return stem + ("í", "iste", "yó", "imos", "yeron")[person]
    return stem + ENDINGS[tense][kind][person]


def _first_person_stem(infinitive: str, stem: str) -> str:
    """Return the stem as spelled before -o and -a: “conoc” → “conozc”, “recog” → “recoj”."""
    for ending, spelled in FIRST_PERSON.items():
        if infinitive.endswith(ending):
            return stem[:-1] + spelled
    return stem


def _subjunctive(infinitive: str, person: int) -> str:
    kind = infinitive[-2:].replace("í", "i")
    stem = conjugate(infinitive, "present", 0)[:-1]
    changed, past_change = STEM_CHANGES.get(infinitive, ("", ""))
    if person == 3 and changed:
        stem = infinitive[:-2]
        if kind == "ir":
            stem = _first_person_stem(infinitive, change(stem, past_change) if past_change else stem)
    if kind == "ar" and infinitive[-3:] in SPOKEN_ALIKE:
        stem = stem[:-1] + SPOKEN_ALIKE[infinitive[-3:]][:-1]
    return stem + SUBJUNCTIVE["ar" if kind == "ar" else "er"][person]


@cache
def imperative(infinitive: str) -> str:
    """Return the affirmative order to “tú”: “comer” → “come”."""
    return IMPERATIVES.get(infinitive) or conjugate(infinitive, "present", 2)


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
    in_between = stem.endswith(("a", "e", "o")) or (stem.endswith("u") and not stem.endswith(("gu", "qu")))
    return stem + ("yendo" if in_between else "iendo")


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


def nuclei(word: str) -> list[tuple[int, int]]:
    """Return where the vowels of each syllable start and end: a weak vowel forms a diphthong with its neighbour."""
    found: list[tuple[int, int]] = []
    for index, letter in enumerate(word):
        if letter not in VOWELS or (
            letter == "u" and word[max(0, index - 1) : index + 2] in ("que", "qui", "gue", "gui")
        ):
            continue
        if (
            found
            and found[-1][1] == index
            and not (_is_strong(letter) and any(map(_is_strong, word[slice(*found[-1])])))
        ):
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index, index + 1))
    return found


def _is_strong(letter: str) -> bool:
    return letter in "aeoáéíóú"


def stress(word: str, syllable: int) -> str:
    """Put an accent on a syllable, counted from the end, unless the word has one."""
    if any(letter in "áéíóú" for letter in word):
        return word
    start, end = nuclei(word)[-syllable]
    strong = [index for index in range(start, end) if _is_strong(word[index])]
    index = strong[0] if strong else end - 1
    return word[:index] + word[index].translate(STRESSED) + word[index + 1 :]


def attach(form: str, clitics: Sequence[str]) -> str:
    """Attach pronouns to an infinitive, a gerund or an order: “dar”, “me”, “lo” → “dármelo”."""
    if not clitics:
        return form
    if form.endswith("ndo"):
        form = stress(form, 2)
    elif form.endswith(("r", "d", "l", "z")) or (len(nuclei(form)) == 1):
        form = stress(form, 1) if len(clitics) > 1 else form
    else:
        form = stress(form, 2)
    return form + "".join(clitics)
