"""Clauses: a subject, a verb and what follows it, in all tenses, affirmed, denied or asked."""

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
    """The Spanish "my", "your" … before a noun."""
    number = max(number, noun.number)
    word = ("mi", "tu", "su", "nuestro", "su")[person]
    return spanish.inflect(word, noun.gender, number) if person == 3 else word + ("s" if number == 2 else "")


COUNTED = ("buy", "have", "need", "eat", "draw", "plant", "see", "send", "break")
"""verbs that may have two, three … objects"""
DESCRIBED = ("buy", "need", "have", "wear", "look for", "find", "see", "sell", "wash")
"""verbs whose object may have an adjective, to say which one"""


def phrase(draft: Draft, subject: Subject, it: Object, verb: Verb) -> tuple[str, str]:
    """The object with an article: its own, or another that fits; and with an adjective where one would say which."""
    dice = draft.dice
    article, noun, number = it
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
            draft.note(adjective.english, noun.english)
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
    """An object or a complement of the verb."""
    if verb.objects:
        it = draft.dice.choice(verb.objects)
        draft.note(verb.base, it.noun.english)
        return phrase(draft, subject, it, verb)
    complement = draft.dice.choice(verb.complements)
    if subject.person != 0 and "my " in complement[0]:
        complement = verb.complements[0]
    draft.note(verb.base, complement[0])
    return complement


def in_general(draft: Draft, subject: Subject, verb: Verb) -> tuple[str, str]:
    """What follows the verb where a habit is meant: "apples", not "an apple"."""
    if not verb.objects:
        return tail(draft, subject, verb)
    it = draft.dice.choice(verb.objects)
    draft.note(verb.base, it.noun.english)
    if it.article == "a":
        return it.noun.in_english(2), it.noun.in_spanish(2)
    if it.article == "0":
        return it.noun.in_english(it.number), it.noun.in_spanish(it.number)
    return phrase(draft, subject, it, verb)


def groups(subject: Subject, verb: Verb, form: str) -> tuple[str, str, str]:
    """The verb of a clause: English auxiliary (or none), the rest of the English verb, the whole Spanish verb."""
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
    """Subject and verb: "Tom ate", "Tom comió"."""
    auxiliary, rest, whole = groups(subject, verb, form)
    simple = {"past": verb.past, "present": verb.present(subject.person)}.get(form)
    return f"{subject.english} {simple or f'{auxiliary} {rest}'}", f"{subject.begins()}{whole}"


def deny(subject: Subject, verb: Verb, form: str) -> tuple[str, str]:
    """Subject and verb with "not"."""
    auxiliary, rest, whole = groups(subject, verb, form)
    return f"{subject.english} {auxiliary} not {rest}", f"{subject.begins()}no {whole}"


def ask(subject: Subject, verb: Verb, form: str, after: str) -> tuple[str, str]:
    """A question but for the English object: Spanish pronouns come first, all else follows the verb and short words."""
    auxiliary, rest, whole = groups(subject, verb, form)
    asked = f"{auxiliary} {subject.english} {rest}"
    return asked, in_question(subject, whole, after)


def in_question(subject: Subject, whole: str, after: str, *, pronoun_first: bool = True) -> str:
    """Spanish verb, subject and what follows, in the order of a question."""
    if subject.english in ("he", "she", "they") and pronoun_first:
        return f"{subject.spanish} {whole} {after}"
    if subject.spanish and len(after.split()) == 1:
        return f"{whole} {after} {subject.spanish}"
    return f"{whole}{subject.ends()} {after}"


def adverb(dice: Dice, form: str, verb: Verb) -> tuple[str, str]:
    """A time that fits the form; often none."""
    unfit = (form == "past" and verb.lasts) or (form == "present" and not verb.habit)
    if unfit or verb.base in ("have", "live", "know") or verb.spanish.endswith("se"):
        return "", ""
    times = {"present": HABITS, "past": PAST, "future": FUTURE, "going": FUTURE, "now": NOW}.get(form, ())
    if not times or dice.chance(0.4 if form != "now" else 0.7):
        return "", ""
    time, cuando = dice.choice(times)
    return f" {time}", f" {cuando}"


def form_for(dice: Dice, verb: Verb) -> str:
    """One of the forms that the verb is used in."""
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
