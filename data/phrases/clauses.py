"""Clauses: a subject, a verb and its complement, in all tenses, affirmative, negative or as a question."""

from __future__ import annotations

from grammar import Dice

from phrases import adjectives, english, spanish
from phrases.draft import Draft
from phrases.nouns import Noun
from phrases.subjects import Subject
from phrases.verbs import Object, Verb

NUMBERS = (("two", "dos"), ("three", "tres"), ("four", "cuatro"), ("five", "cinco"), ("ten", "diez"))

HABITS = (
    ("every day", "todos los días"), ("every morning", "todas las mañanas"), ("on Saturdays", "los sábados"),
    ("every week", "todas las semanas"), ("on weekends", "los fines de semana"), ("often", "a menudo"),
    ("on Mondays", "los lunes"), ("every evening", "todas las noches"), ("on Sundays", "los domingos"),
    ("in summer", "en verano"), ("in winter", "en invierno"), ("in the afternoon", "por la tarde"),
)  # fmt: skip
PAST = (
    ("yesterday", "ayer"), ("last night", "anoche"), ("last week", "la semana pasada"), ("this morning", "esta mañana"),
    ("two days ago", "hace dos días"), ("on Sunday", "el domingo"), ("last month", "el mes pasado"),
    ("a week ago", "hace una semana"), ("last Friday", "el viernes pasado"),
    ("yesterday afternoon", "ayer por la tarde"),
    ("an hour ago", "hace una hora"), ("last year", "el año pasado"),
)  # fmt: skip
FUTURE = (
    ("tomorrow", "mañana"), ("next week", "la semana que viene"), ("tonight", "esta noche"),
    ("on Friday", "el viernes"),
    ("this afternoon", "esta tarde"), ("soon", "pronto"), ("tomorrow morning", "mañana por la mañana"),
    ("next month", "el mes que viene"), ("on Saturday", "el sábado"), ("this weekend", "este fin de semana"),
    ("after school", "después de la escuela"), ("later", "más tarde"),
)  # fmt: skip
NOW = (("now", "ahora"), ("right now", "ahora mismo"), ("at the moment", "en este momento"))

FORMS = ("present", "now", "past", "future", "going", "perfect")


def possessive(person: int, noun: Noun, number: int) -> str:
    """Return the Spanish possessive (“my”, “your” …) that stands before a noun."""
    number = max(number, noun.number)
    word = ("mi", "tu", "su", "nuestro", "su")[person]
    return spanish.inflect(word, noun.gender, number) if person == 3 else word + ("s" if number == 2 else "")


COUNTED = ("buy", "have", "need", "eat", "draw", "plant", "see", "send", "break")
"""Verbs whose object may be counted: two, three … of them."""
DESCRIBED = ("buy", "need", "have", "wear", "look for", "find", "see", "sell", "wash")
"""Verbs whose object may have a distinguishing adjective."""


def phrase(draft: Draft, subject: Subject, obj: Object, verb: Verb) -> tuple[str, str]:
    """Return the object with its own article or another that fits, and with an adjective where the verb allows one."""
    dice = draft.dice
    article, noun, number = obj
    if article in ("a", "0") and verb.base != "have" and dice.chance(0.3):
        article = "the"
    elif article == "a" and verb.base in COUNTED and dice.chance(0.2) and noun.number == 1:
        count, cuenta = dice.choice(NUMBERS)
        return f"{count} {noun.in_english(2)}", f"{cuenta} {noun.in_spanish(2)}"
    elif article == "the" and dice.chance(0.18):
        article = "this"
    word, palabra = noun.in_english(number), noun.in_spanish(number)
    if article == "a" and verb.base in DESCRIBED and dice.chance(0.3):
        fitting = [color for color in adjectives.COLOURS + adjectives.SER[:7] if noun in color.nouns]
        if fitting:
            adjective = dice.choice(fitting)
            draft.record(adjective.english, noun.english)
            word = f"{adjective.english} {word}"
            palabra = f"{palabra} {spanish.inflect(adjective.spanish, noun.gender, number)}"
    many = number == 2
    if article == "a":
        return english.with_a(word), f"{'una' if noun.gender == 'f' else 'un'} {palabra}"
    if article == "the":
        return f"the {word}", f"{spanish.the(noun.gender, number)} {palabra}"
    if article == "this":
        this = {("m", False): "este", ("f", False): "esta", ("m", True): "estos", ("f", True): "estas"}[
            noun.gender, many
        ]
        return f"{'these' if many else 'this'} {word}", f"{this} {palabra}"
    if article == "my":
        return f"{subject.possessive} {word}", f"{possessive(subject.person, noun, number)} {palabra}"
    return word, palabra


def tail(draft: Draft, subject: Subject, verb: Verb) -> tuple[str, str]:
    """Return a random object or complement of the verb in both languages."""
    if verb.objects:
        obj = draft.dice.choice(verb.objects)
        draft.record(verb.base, obj.noun.english)
        return phrase(draft, subject, obj, verb)
    complement = draft.dice.choice(verb.complements)
    if subject.person != 0 and "my " in complement[0]:
        complement = verb.complements[0]
    draft.record(verb.base, complement[0])
    return complement


def in_general(draft: Draft, subject: Subject, verb: Verb) -> tuple[str, str]:
    """Return a complement for a habit: “apples” rather than “an apple”."""
    if not verb.objects:
        return tail(draft, subject, verb)
    obj = draft.dice.choice(verb.objects)
    draft.record(verb.base, obj.noun.english)
    if obj.article == "a":
        return obj.noun.in_english(2), obj.noun.in_spanish(2)
    if obj.article == "0":
        return obj.noun.in_english(obj.number), obj.noun.in_spanish(obj.number)
    return phrase(draft, subject, obj, verb)


def groups(subject: Subject, verb: Verb, form: str) -> tuple[str, str, str]:
    """Return the parts of the verb: English auxiliary (or none), rest of the English verb, whole Spanish verb."""
    person = subject.person
    if form == "now":
        return english.be(person), verb.gerund, spanish.progressive(verb.spanish, person)
    if form == "past":
        tense: spanish.Tense = "imperfect" if verb.lasts else "past"
        return "did", verb.base, spanish.conjugate(verb.spanish, tense, person)
    if form == "future":
        return "will", verb.base, spanish.conjugate(verb.spanish, "future", person)
    if form == "going":
        go = spanish.conjugate("ir", "present", person)
        return english.be(person), f"going to {verb.base}", f"{go} a {spanish.bound(verb.spanish, person)}"
    if form == "perfect":
        return english.have(person), verb.participle, spanish.perfect(verb.spanish, person)
    return english.do(person), verb.base, spanish.conjugate(verb.spanish, "present", person)


def affirm(subject: Subject, verb: Verb, form: str) -> tuple[str, str]:
    """Return the subject and verb: “Tom ate”, “Tom comió”."""
    auxiliary, rest, whole = groups(subject, verb, form)
    simple = {"past": verb.past, "present": verb.present(subject.person)}.get(form)
    return f"{subject.english} {simple or f'{auxiliary} {rest}'}", f"{subject.begins()}{whole}"


def deny(subject: Subject, verb: Verb, form: str) -> tuple[str, str]:
    """Return the subject and negated verb."""
    auxiliary, rest, whole = groups(subject, verb, form)
    return f"{subject.english} {auxiliary} not {rest}", f"{subject.begins()}no {whole}"


def ask(subject: Subject, verb: Verb, form: str, after: str) -> tuple[str, str]:
    """Return a question without the English object.

    In Spanish, pronouns come first; everything else follows the verb and short complements.
    """
    auxiliary, rest, whole = groups(subject, verb, form)
    question = f"{auxiliary} {subject.english} {rest}"
    return question, in_question(subject, whole, after)


def in_question(subject: Subject, whole: str, after: str, *, pronoun_first: bool = True) -> str:
    """Join the Spanish verb, subject and complement in question order."""
    if subject.english in ("he", "she", "they") and pronoun_first:
        return f"{subject.spanish} {whole} {after}"
    if subject.spanish and len(after.split()) == 1:
        return f"{whole} {after} {subject.spanish}"
    return f"{whole}{subject.ends()} {after}"


def adverb(dice: Dice, form: str, verb: Verb) -> tuple[str, str]:
    """Return a time adverb that fits the form, often an empty one."""
    unfit = (form == "past" and verb.lasts) or (form == "present" and not verb.habit)
    if unfit or verb.base in ("have", "live", "know") or verb.spanish.endswith("se"):
        return "", ""
    times = {"present": HABITS, "past": PAST, "future": FUTURE, "going": FUTURE, "now": NOW}.get(form, ())
    if not times or dice.chance(0.4 if form != "now" else 0.7):
        return "", ""
    time, cuando = dice.choice(times)
    return f" {time}", f" {cuando}"


def form_for(dice: Dice, verb: Verb) -> str:
    """Return a random form among those in which the verb is used."""
    fitting = [form for form in FORMS if not (form == "now" and not verb.now)]
    if not verb.habit and (verb.objects or verb.complements) and not verb.lasts:
        fitting = [form for form in fitting if form != "present"]
    if verb.spanish.endswith("se"):
        fitting.remove("perfect")
    if verb.base in ("lose", "break", "forget"):
        return dice.choice(("past", "past", "perfect"))
    if verb.lasts:
        fitting = [form for form in fitting if form not in ("perfect", "going")]
    return dice.choice(fitting)
