"""Descriptions of people: ser and estar, tener, age, work, origin, comparisons."""

from __future__ import annotations

from phrases import english, spanish, subjects
from phrases.calendar import NUMBER_WORDS, of_years
from phrases.clauses import in_question
from phrases.draft import Draft, Frames
from phrases.people_words import COUNTRIES, FEELINGS, FEELS, TRAITS, WORK
from phrases.spanish import Tense
from phrases.subjects import Subject

TENSES: tuple[Tense, ...] = ("present", "imperfect", "future")
ANY = (6.0, 2.2, 0.8)
NOT_FUTURE = (6.0, 2.0, 0.0)
PRESENT = (1.0, 0.0, 0.0)
A_LITTLE = [
    "tired",
    "sad",
    "ill",
    "angry",
    "busy",
    "worried",
    "nervous",
    "bored",
    "confused",
    "disappointed",
    "surprised",
]
TOO = ["tired", "busy", "nervous", "worried", "ill"]
NO_DEGREE = ("ready", "alone", "married", "asleep", "awake", "lost", "in love", "sure")


def _said(
    draft: Draft, subject: Subject, what: str, verb: str, rest: str, tenses: tuple[float, float, float]
) -> tuple[str, str]:
    """Return a predication with “is”, “was” or “will be”, affirmative, negative or as a question.

    The tenses are drawn by their weights.
    """
    dice = draft.dice
    tense = TENSES[dice.weighted(tenses)]
    whole = spanish.conjugate(verb, tense, subject.person)
    auxiliary = {
        "present": english.be(subject.person),
        "imperfect": english.was(subject.person),
        "future": "will",
    }[tense]
    be = " be" if tense == "future" else ""
    kind = dice.weighted((5, 2, 2.6))
    if kind == 1:
        return f"{subject.english} {auxiliary} not{be} {what}", f"{subject.begins()}no {whole} {rest}"
    if kind == 2 and subject.english not in ("I", "we"):
        return f"{auxiliary} {subject.english}{be} {what}?", f"¿{in_question(subject, whole, rest)}?"
    return f"{subject.english} {auxiliary}{be} {what}", f"{subject.begins()}{whole} {rest}"


def feels(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Anna is tired.” → “Anna está cansada.”"""
    dice = draft.dice
    subject = draft.anyone()
    en, es = dice.choice(FEELS)
    draft.record(subject.english, en)
    rest = spanish.inflect(es, subject.gender, subject.number)
    degrees = [("", ""), ("", "")]
    degrees += [("very ", "muy ")] if en not in NO_DEGREE else []
    degrees += [("a little ", "un poco ")] if en in A_LITTLE else []
    degrees += [("too ", "demasiado ")] if en in TOO else []
    how, como = dice.choice(degrees)
    return _said(draft, subject, how + en, "estar", como + rest, ANY)


def is_like(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “The new neighbour is quite shy.” → “El vecino nuevo es bastante tímido.”"""
    dice = draft.dice
    subject = draft.anyone()
    en, es, _ = dice.choice(TRAITS)
    draft.record(subject.english, en)
    how, como = dice.choice((("", ""), ("", ""), ("very ", "muy "), ("so ", "tan ")))
    rest = como + spanish.inflect(es, subject.gender, subject.number)
    return _said(draft, subject, how + en, "ser", rest, NOT_FUTURE)


def compares(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom is taller than Anna.” → “Tom es más alto que Anna.”"""
    dice = draft.dice
    subject, other = draft.third_person(), draft.third_person()
    while other.english == subject.english or other.english in ("he", "she"):
        other = draft.name()
    en, es, more = dice.choice(TRAITS)
    draft.record("than", subject.english, en)
    fitting = spanish.inflect(es, subject.gender)
    kind = dice.below(4)
    if kind == 0:
        return (
            f"{subject.english} is as {en} as {other.english}",
            f"{subject.begins()}es tan {fitting} como {other.spanish}",
        )
    if kind == 1:
        who, quien = dice.choice((("me", "yo"), ("you", "tú"), ("us", "nosotros"), ("them", "ellos")))
        return f"{subject.english} is {more} than {who}", f"{subject.begins()}es más {fitting} que {quien}"
    if kind == 2:
        where, donde = dice.choice((("in the class", "de la clase"), ("in the family", "de la familia"),
                                    ("of all", "de todos"), ("in the village", "del pueblo")))  # fmt: skip
        most = more[:-1] + "st" if not more.startswith("more ") else more.replace("more ", "most ", 1)
        return (
            f"{subject.english} is the {most} {where}",
            f"{subject.begins()}es {spanish.the(subject.gender)} más {fitting} {donde}",
        )
    return (
        f"{subject.english} is {more} than {other.english}",
        f"{subject.begins()}es más {fitting} que {other.spanish}",
    )


def has_feeling(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I am very hungry.” → “Tengo mucha hambre.”"""
    dice = draft.dice
    subject = draft.anyone()
    en, es, gender = dice.choice(FEELINGS)
    draft.record(subject.english, en)
    if en not in ("right", "in a hurry") and dice.chance(0.25):
        return _said(draft, subject, f"very {en}", "tener", f"{'mucha' if gender == 'f' else 'mucho'} {es}", ANY)
    return _said(draft, subject, en, "tener", es, NOT_FUTURE)


def works_as(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “My uncle is a baker.” → “Mi tío es panadero.”"""
    dice = draft.dice
    subject = draft.anyone()
    en, man, woman = dice.choice(WORK)
    draft.record(subject.english, en)
    if subject.number == 2:
        rest = spanish.plural(woman if subject.gender == "f" else man)
        return _said(draft, subject, english.plural(en), "ser", rest, NOT_FUTURE)
    rest = woman if subject.gender == "f" else man
    if dice.chance(0.2):
        want = spanish.conjugate("querer", "present", subject.person)
        wants = "wants" if subject.person == 2 else "want"
        return f"{subject.english} {wants} to be {english.with_a(en)}", f"{subject.begins()}{want} ser {rest}"
    return _said(draft, subject, english.with_a(en), "ser", rest, NOT_FUTURE)


def comes_from(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “She is from Italy.” → “Ella es de Italia.”"""
    dice = draft.dice
    subject = draft.anyone()
    country, pais, people, gente = dice.choice(COUNTRIES)
    draft.record(subject.english, country)
    kind = dice.below(4)
    if kind == 0:
        return _said(draft, subject, f"from {country}", "ser", f"de {pais}", PRESENT)
    if kind == 1:
        return _said(draft, subject, people, "ser", spanish.inflect(gente, subject.gender, subject.number), PRESENT)
    if kind == 2:
        live = spanish.conjugate("vivir", "present", subject.person)
        lives = "lives" if subject.person == 2 else "live"
        return f"{subject.english} {lives} in {country}", f"{subject.begins()}{live} en {pais}"
    go = spanish.conjugate("ir", "present", subject.person)
    return (
        f"{subject.english} {english.be(subject.person)} going to travel to {country}",
        f"{subject.begins()}{go} a viajar a {pais}",
    )


def age(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom is twelve years old.” → “Tom tiene doce años.”"""
    dice = draft.dice
    subject = draft.anyone()
    if subject.english == "you":
        subject = subjects.I
    count = dice.between(5, 60)
    years, anos = NUMBER_WORDS[count][0], of_years(count)
    if subject.english != "I" and dice.chance(0.15):
        draft.record("how old", subject.english)
        has = spanish.conjugate("tener", "present", subject.person)
        return f"how old {english.be(subject.person)} {subject.english}?", f"¿cuántos años {has}{subject.ends()}?"
    draft.record(subject.english, years)
    has = spanish.conjugate("tener", "present", subject.person)
    return f"{subject.english} {english.be(subject.person)} {years} years old", f"{subject.begins()}{has} {anos} años"


def relatives(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I have two sisters.” → “Tengo dos hermanas.”"""
    dice = draft.dice
    subject = draft.anyone()
    en, es, gender = dice.choice((("brother", "hermano", "m"), ("sister", "hermana", "f"), ("son", "hijo", "m"),
                                  ("daughter", "hija", "f"), ("cousin", "primo", "m"), ("uncle", "tío", "m"),
                                  ("aunt", "tía", "f"), ("friend", "amigo", "m")))  # fmt: skip
    count = dice.between(1, 6)
    draft.record(subject.english, en, str(count))
    number, cuantos = NUMBER_WORDS[count]
    if count == 1:
        number, cuantos = english.with_a(en).split()[0], "una" if gender == "f" else "un"
    has = spanish.conjugate("tener", "present", subject.person)
    many = 1 if count == 1 else 2
    en = en if many == 1 else english.plural(en)
    es = es if many == 1 else spanish.plural(es)
    if dice.chance(0.2) and subject.english not in ("I", "we"):
        question = f"{english.do(subject.person)} {subject.english} have {number} {en}?"
        return question, f"¿{in_question(subject, has, f'{cuantos} {es}')}?"
    return f"{subject.english} {english.have(subject.person)} {number} {en}", f"{subject.begins()}{has} {cuantos} {es}"


FRAMES: Frames = (
    (7.0, feels), (6.0, is_like), (3.0, compares), (2.5, has_feeling), (4.5, works_as), (4.5, comes_from), (2.5, age),
    (1.5, relatives),
)  # fmt: skip
