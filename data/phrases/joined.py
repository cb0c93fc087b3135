"""Longer sentences: two clauses joined by and, but, because, when or if, and reported speech."""

from __future__ import annotations

from phrases import english, spanish, verbs
from phrases.clauses import affirm, deny, in_general, phrase, tail
from phrases.draft import Draft, Frames
from phrases.people_words import FEELS
from phrases.subjects import HE, SHE, THEY, Subject
from phrases.verbs import Verb

REASONS = ("tired", "ill", "busy")
EASY = ("go to bed", "get up", "wake up", "arrive", "leave", "sleep", "rest", "understand", "have fun", "find",
    "pay for",
        "sit down", "think about", "remember", "hide", "see")  # fmt: skip
"""Actions possible even if tired or busy."""

WHILES = (
    ("when I was a child", "cuando era niño"), ("before the lesson", "antes de la clase"),
    ("after dinner", "después de la cena"), ("before breakfast", "antes del desayuno"),
    ("during the holidays", "durante las vacaciones"), ("after work", "después del trabajo"),
    ("before the exam", "antes del examen"), ("after lunch", "después del almuerzo"),
)  # fmt: skip


def again(subject: Subject) -> str:
    """Return the English pronoun for a subject that has already been named."""
    if subject.english in ("I", "you", "we", "they"):
        return subject.english
    return THEY.english if subject.number == 2 else HE.english if subject.gender == "m" else SHE.english


def _verb(draft: Draft, *, habit: bool = False) -> Verb:
    while True:
        verb = draft.dice.choice(verbs.TRANSITIVE if draft.dice.chance(0.55) else verbs.INTRANSITIVE)
        if not verb.lasts and verb.base not in ("lose", "break", "forget", "live") and (verb.habit or not habit):
            return verb


def because(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Anna cannot come to the party because she is ill.” → “Anna no puede venir a la fiesta
    porque está enferma.”
    """
    dice = draft.dice
    subject, verb = draft.anyone(), _verb(draft)
    while verb.base in EASY:
        verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    person, she = subject.person, again(subject)
    if dice.chance(0.5):
        reason, razon = dice.choice([row for row in FEELS if row[0] in REASONS])
        why = f"{she} {english.be(person)} {reason}"
        porque = (
            f"{spanish.conjugate('estar', 'present', person)} {spanish.inflect(razon, subject.gender, subject.number)}"
        )
    else:
        reason, razon = dice.choice((("do not have time", "no {} tiempo"), ("have to work", "{} que trabajar"),
                                     ("have to study", "{} que estudiar"), ("do not have money",
                                      "no {} dinero")))  # fmt: skip
        if "money" in reason and verb.base not in ("buy", "pay for", "travel", "go", "repair"):
            reason, razon = "do not have time", "no {} tiempo"
        if person == 2:
            reason = (
                reason.replace("do not", "does not") if reason.startswith("do") else reason.replace("have", "has", 1)
            )
        why, porque = f"{she} {reason}", razon.format(spanish.conjugate("tener", "present", person))
    return (
        f"{subject.english} cannot {verb.base} {complement} because {why}",
        f"{subject.begins()}no {spanish.conjugate('poder', 'present', person)} {spanish.bound(verb.spanish, person)} "
        f"{after} porque {porque}",
    )


NEEDS = (
    ("hungry", "hambre", ("eat", "cook")), ("thirsty", "sed", ("drink",)),
    ("sleepy", "sueño", ("go to bed", "sleep", "rest")),
    ("cold", "frío", ("wear",)), ("bored", "", ("play", "watch", "read")),
    ("tired", "", ("rest", "sleep", "go to bed")),
)  # fmt: skip
OUTSIDE = ("go", "walk", "run", "swim", "play", "dance", "travel", "come")


def wants_because(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom wants to drink milk because he is thirsty.” → “Tom quiere beber leche porque tiene
    sed.”
    """
    dice = draft.dice
    subject = draft.anyone()
    person, she = subject.person, again(subject)
    feeling, hambre, bases = dice.choice(NEEDS)
    denied = dice.chance(0.35)
    possible = [
        v
        for v in verbs.TRANSITIVE + verbs.INTRANSITIVE
        if v.base in (OUTSIDE if denied else bases) and v.spanish != "tocar"
    ]
    verb = dice.choice(possible)
    complement, after = tail(draft, subject, verb)
    if denied:
        why, porque = dice.choice((("it is raining", "está lloviendo"), ("it is late", "es tarde"),
        ("it is cold", "hace frío"),
                                   ("it is hot", "hace calor"), ("it is snowing", "está nevando")))  # fmt: skip
    else:
        why = f"{she} {english.be(person)} {feeling}"
        if hambre:
            porque = f"{spanish.conjugate('tener', 'present', person)} {hambre}"
        else:
            state = next(es for en, es in FEELS if en == feeling)
            fitting = spanish.inflect(state, subject.gender, subject.number)
            porque = f"{spanish.conjugate('estar', 'present', person)} {fitting}"
    want = f"{english.do(person)} not want to" if denied else "wants to" if person == 2 else "want to"
    return (
        f"{subject.english} {want} {verb.base} {complement} because {why}",
        f"{subject.begins()}{'no ' if denied else ''}{spanish.conjugate('querer', 'present', person)} "
        f"{spanish.bound(verb.spanish, person)} {after} porque {porque}",
    )


def both(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom is washing the car and I am reading a book.” → “Tom está lavando el coche y yo estoy
    leyendo un libro.”
    """
    dice = draft.dice
    one, other = draft.anyone(), draft.anyone()
    while again(other) == again(one) or {again(one), again(other)} in ({"I", "we"}, {"you", "we"}):
        other = draft.anyone()
    form = dice.choice(("now", "past", "future"))
    parts = []
    for subject in (one, other):
        verb = _verb(draft)
        while form == "now" and not verb.now:
            verb = _verb(draft)
        complement, after = tail(draft, subject, verb)
        en, es = affirm(subject, verb, form)
        said_first = {"I": "yo ", "you": "tú ", "we": "nosotros "}.get(subject.english, "")
        parts.append((f"{en} {complement}", f"{said_first}{es} {after}"))
    link, y = dice.choice((("and", "y"), ("while", "mientras"))) if form == "now" else ("and", "y")
    return f"{parts[0][0]} {link} {parts[1][0]}", f"{parts[0][1]} {y} {parts[1][1]}"


def but(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I ate an apple, but I did not eat bread.” → “Comí una manzana, pero no comí pan.”"""
    dice = draft.dice
    subject = draft.anyone()
    verb = dice.choice([verb for verb in verbs.TRANSITIVE if verb.habit and len(verb.objects) > 4 and not verb.lasts])
    one, other = dice.sample(verb.objects, 2)
    if one.noun.english == other.noun.english:
        one, other = verb.objects[:2]
    draft.record(verb.base, one.noun.english)
    draft.record(verb.base, other.noun.english)
    form = dice.choice(("past", "future", "going", "perfect"))
    first = phrase(draft, subject, one._replace(article="the" if one.article == "a" else one.article), verb)
    second = phrase(draft, subject, other._replace(article="the" if other.article == "a" else other.article), verb)
    en, es = affirm(subject, verb, form)
    en_not, es_not = deny(Subject(again(subject), "", subject.person, subject.gender), verb, form)
    if form == "perfect":
        return f"{en} {first[0]}, but not {second[0]}", f"{es} {first[1]}, pero no {second[1]}"
    return f"{en} {first[0]}, but {en_not} {second[0]}", f"{es} {first[1]}, pero {es_not} {second[1]}"


GOOD_WEATHER = (("it is sunny", "hace sol"), ("it is hot", "hace calor"), ("the weather is nice", "hace buen tiempo"),
                ("it does not rain", "no llueve"))  # fmt: skip
BAD_WEATHER = (("it rains", "llueve"), ("it snows", "nieva"), ("it is cold", "hace frío"),
               ("the weather is bad", "hace mal tiempo"))  # fmt: skip
INSIDE = ("read", "cook", "clean", "watch", "write", "listen to", "study", "draw", "make", "repair", "paint")
OPEN_AIR = (*OUTSIDE, "plant", "visit", "sell")


def if_so(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “If it rains, we will not go to the beach.” → “Si llueve, no iremos a la playa.”"""
    dice = draft.dice
    subject = draft.anyone()
    good, inside = dice.chance(0.5), dice.chance(0.4)
    bases = INSIDE if inside and not good else OPEN_AIR
    verb = dice.choice(
        [verb for verb in verbs.TRANSITIVE + verbs.INTRANSITIVE if verb.base in bases and verb.spanish != "tocar"]
    )
    complement, after = tail(draft, subject, verb)
    when, cuando = dice.choice(GOOD_WEATHER if good else BAD_WEATHER)
    en, es = (affirm if good or inside else deny)(subject, verb, "future")
    if dice.chance(0.6):
        return f"if {when}, {en} {complement}", f"si {cuando}, {es} {after}"
    return f"{en} {complement} if {when}", f"{es} {after} si {cuando}"


def says(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom says that he is reading the newspaper.” → “Tom dice que está leyendo el periódico.”"""
    dice = draft.dice
    subject, verb = draft.third_person(), _verb(draft)
    complement, after = tail(draft, subject, verb)
    form = dice.choice(("now" if verb.now else "past", "past", "future", "perfect"))
    if dice.chance(0.5):
        en, es = affirm(Subject(again(subject), "", 2, subject.gender), verb, form)
        return f"{subject.english} says that {en} {complement}", f"{subject.begins()}dice que {es} {after}"
    speaker = draft.name()
    while speaker.english == subject.english:
        speaker = draft.name()
    says, dice_que = dice.choice((("thinks", "cree"), ("knows", "sabe"), ("said", "dijo")))
    if says == "said":
        form = "past"
    en, es = affirm(subject, verb, form)
    return f"{speaker.english} {says} that {en} {complement}", f"{speaker.spanish} {dice_que} que {es} {after}"


UNPLANNED = ("eat", "get up", "wake up", "go to bed", "understand", "find", "remember")
"""Actions that nobody schedules after lunch or before an exam."""


def before_and_after(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “After dinner we played chess.” → “Después de la cena jugamos al ajedrez.”"""
    dice = draft.dice
    subject, verb = draft.anyone(), _verb(draft)
    while verb.base in UNPLANNED or verb.base.startswith("have "):
        verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    when, cuando = dice.choice(WHILES[1:])
    form = dice.choice(("past", "future"))
    en, es = affirm(subject, verb, form)
    if dice.chance(0.5):
        return f"{when} {en} {complement}", f"{cuando} {es} {after}"
    return f"{en} {complement} {when}", f"{es} {after} {cuando}"


CHILDISH = ("play", "eat", "read", "draw", "sleep", "swim", "run", "walk", "listen to", "sing", "dance", "help",
            "watch", "get up", "go to bed", "wake up", "go")  # fmt: skip


def as_a_child(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “When I was young, I played in the garden every day.” → “Cuando era joven, jugaba en el
    jardín todos los días.”
    """
    dice = draft.dice
    subject, verb = draft.anyone(), _verb(draft, habit=True)
    complement, after = in_general(draft, subject, verb)
    person = subject.person
    was = english.was(person)
    little = verb.base in CHILDISH and dice.chance(0.6)
    age, edad = ("little", "pequeño") if little else ("young", "joven")
    edad = spanish.inflect(edad, subject.gender, subject.number)
    used = f"{again(subject)} used to {verb.base} {complement}"
    return (
        f"when {subject.english} {was} {age}, {used}",
        f"cuando {subject.begins()}{spanish.conjugate('ser', 'imperfect', person)} {edad}, "
        f"{spanish.conjugate(verb.spanish, 'imperfect', person)} {after}",
    )


FRAMES: Frames = (
    (4.0, because), (3.0, wants_because), (4.0, both), (3.0, but), (3.5, if_so), (3.0, says),
    (2.5, before_and_after), (2.5, as_a_child),
)  # fmt: skip
