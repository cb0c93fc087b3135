"""Sentences about actions in all tenses, with questions that ask what, where, who, when and why."""

from __future__ import annotations

from phrases import english, spanish, subjects, verbs
from phrases.clauses import PAST, adverb, affirm, ask, deny, form_for, groups, in_general, in_question, phrase, tail
from phrases.draft import Draft, Frames
from phrases.subjects import Subject
from phrases.verbs import Verb

MODALS = (
    # English modal, whether it takes "do" in negations and questions, Spanish verb, what precedes the infinitive
    ("want to", True, "querer", ""), ("have to", True, "tener", "que "), ("need to", True, "necesitar", ""),
    ("can", False, "poder", ""), ("must", False, "deber", ""), ("prefer to", True, "preferir", ""),
)  # fmt: skip


TOO_SLIGHT = ("lose", "break", "forget", "see", "find", "understand", "remember", "arrive")
"""Verbs excluded after modals, since nobody prefers, wants or has to do these things."""


def _verb(draft: Draft) -> Verb:
    return draft.dice.choice(verbs.TRANSITIVE if draft.dice.chance(0.62) else verbs.INTRANSITIVE)


def _without_article(subject: Subject, verb: Verb, translation: str, after: str) -> str:
    """Drop the indefinite article after “tener”: “no tengo un coche” → “no tengo coche”."""
    return after.removeprefix("un ").removeprefix("una ") if verb.spanish == "tener" else after


def doing(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom is reading a book.” → “Tom está leyendo un libro.”"""
    subject, verb = draft.anyone(), _verb(draft)
    form = form_for(draft.dice, verb)
    complement, after = tail(draft, subject, verb)
    kind = draft.dice.weighted((5, 2.2, 2.8))
    time, cuando = adverb(draft.dice, form, verb)
    if kind == 1:
        en, es = deny(subject, verb, form)
        if len(after.split()) == 2:
            after = _without_article(subject, verb, es, after)
        return f"{en} {complement}{time}", f"{es} {after}{cuando}"
    if kind == 2 and subject.english not in ("I", "we"):
        en, es = ask(subject, verb, form, after)
        return f"{en} {complement}{time}?", f"¿{es}{cuando}?"
    en, es = affirm(subject, verb, form)
    return f"{en} {complement}{time}", f"{es} {after}{cuando}"


def always(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “We never drink wine.” → “Nunca bebemos vino.”"""
    subject = draft.anyone()
    verb = draft.dice.choice([verb for verb in verbs.TRANSITIVE + verbs.INTRANSITIVE if verb.habit and not verb.lasts])
    complement, after = in_general(draft, subject, verb)
    often, cuando = draft.dice.choice(
        (("always", "siempre"), ("never", "nunca"), ("almost always", "casi siempre"), ("sometimes", "a veces"),
         ("almost never", "casi nunca"), ("usually", "normalmente"))
    )  # fmt: skip
    doing = spanish.conjugate(verb.spanish, "present", subject.person)
    return (
        f"{subject.english} {often} {verb.present(subject.person)} {complement}",
        f"{subject.begins()}{cuando} {doing} {after}",
    )


def with_modal(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “She has to wash the car.” → “Ella tiene que lavar el coche.”"""
    dice = draft.dice
    subject, verb = draft.anyone(), _verb(draft)
    while (verb.lasts and verb.base != "wear") or verb.base in TOO_SLIGHT[:3]:
        verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    modal, takes_do, poder, link = dice.choice(MODALS)
    while modal not in ("can", "want to") and verb.base in TOO_SLIGHT:
        modal, takes_do, poder, link = dice.choice(MODALS)
    whole = (
        spanish.conjugate(poder, "present", subject.person) + f" {link}{spanish.bound(verb.spanish, subject.person)}"
    )
    kind = dice.weighted((5, 2, 2.4))
    if modal == "prefer to" or (modal == "must" and kind == 2):
        kind = 0
    time, cuando = adverb(dice, "future", verb) if modal not in ("prefer to", "must") and dice.chance(0.5) else ("", "")
    if kind == 1:
        no = f"{english.do(subject.person)} not {modal}" if takes_do else "cannot" if modal == "can" else "must not"
        return f"{subject.english} {no} {verb.base} {complement}{time}", f"{subject.begins()}no {whole} {after}{cuando}"
    if kind == 2 and subject.english not in ("I", "we"):
        question = (
            f"{english.do(subject.person)} {subject.english} {modal}" if takes_do else f"{modal} {subject.english}"
        )
        pronoun = subject.english in ("he", "she", "they")
        es = f"{subject.spanish} {whole} {after}" if pronoun else f"{whole} {after}"
        if subject.spanish and not pronoun:
            first, rest = whole.split(" ", 1)
            es = f"{first}{subject.ends()} {rest} {after}" if not link else f"{subject.spanish} {whole} {after}"
        return f"{question} {verb.base} {complement}{time}?", f"¿{es}{cuando}?"
    does = english.third(modal) if takes_do and subject.person == 2 else modal
    return f"{subject.english} {does} {verb.base} {complement}{time}", f"{subject.begins()}{whole} {after}{cuando}"


def would_like(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I would like to visit the museum.” → “Me gustaría visitar el museo.”"""
    subject, verb = draft.anyone(), _verb(draft)
    while verb.lasts or verb.spanish.endswith("se") or verb.base in TOO_SLIGHT[:3]:
        verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    if subject.english == "you":
        return f"would you like to {verb.base} {complement}?", f"¿te gustaría {verb.spanish} {after}?"
    en = f"{subject.english} would like to {verb.base} {complement}"
    return en, f"{subject.to_whom} {subject.reflexive} gustaría {verb.spanish} {after}"


def someone(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I am waiting for Anna.” → “Estoy esperando a Anna.”"""
    dice = draft.dice
    subject, other = draft.anyone(), draft.third_person()
    if other.english in ("he", "she"):
        other = draft.name()
    if other.english == subject.english:
        other = subjects.FAMILY[3]
    verb = dice.choice(verbs.PEOPLE)
    draft.record(verb.base, other.english)
    form = form_for(dice, verb)
    if verb.base == "know":
        form = dice.choice(("present", "present", "past"))
    time, cuando = adverb(dice, form, verb)
    kind = dice.weighted((5, 2, 2.5))
    name = f"{other.english}{time}", f"a {other.spanish}{cuando}"
    if kind == 2 and subject.english not in ("I", "we"):
        en, es = ask(subject, verb, form, name[1])
        return f"{en} {name[0]}?", f"¿{es}?"
    en, es = (deny if kind == 1 else affirm)(subject, verb, form)
    return f"{en} {name[0]}", f"{es} {name[1]}"


def whom(draft: Draft) -> tuple[str, str]:
    """He sees me. Él me ve."""
    dice = draft.dice
    subject = draft.anyone()
    them = (("me", "me", 0), ("you", "te", 1), ("him", "lo", 2), ("her", "la", 2), ("us", "nos", 3), ("them", "los", 4))
    en, es, person = dice.choice([row for row in them if row[2] != subject.person])
    if {person, subject.person} == {0, 3}:
        en, es = "you", "te"
    verb = dice.choice(verbs.PEOPLE)
    draft.record(verb.base, en, subject.english)
    form = dice.choice(("present", "past") if verb.lasts else ("past", "future", "present")[: 2 + verb.habit])
    whole = groups(subject, verb, form)[2]
    if dice.chance(0.3):
        auxiliary, rest, _ = groups(subject, verb, form)
        return f"{subject.english} {auxiliary} not {rest} {en}", f"{subject.begins()}no {es} {whole}"
    return f"{affirm(subject, verb, form)[0]} {en}", f"{subject.begins()}{es} {whole}"


def question_word(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “When did Tom buy the car?” → “¿Cuándo compró Tom el coche?”"""
    dice = draft.dice
    subject, verb = draft.anyone(), _verb(draft)
    while verb.lasts:
        verb = _verb(draft)
    word, palabra = dice.choice((("when", "cuándo"), ("why", "por qué"), ("where", "dónde"), ("how", "cómo")))
    if word in ("where", "how"):
        verb = dice.choice([verb for verb in verbs.TRANSITIVE if verb.base in ("buy", "find", "lose", "cook", "hide",
            "repair",
                            "make", "learn", "prepare", "draw")])  # fmt: skip
        if word == "how" and verb.base in ("buy", "lose", "hide"):
            word, palabra = "where", "dónde"
    complement, after = tail(draft, subject, verb)
    form = form_for(dice, verb)
    while form == "perfect" or (word in ("when", "how") and form == "now"):
        form = form_for(dice, verb)
    en, _ = ask(subject, verb, form, after)
    es = in_question(subject, groups(subject, verb, form)[2], after, pronoun_first=False)
    return f"{word} {en} {complement}?", f"¿{palabra} {es}?"


def what(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “What is Tom reading?” → “¿Qué está leyendo Tom?”"""
    dice = draft.dice
    subject, verb = draft.anyone(), dice.choice(verbs.TRANSITIVE)
    draft.record("what", verb.base, subject.english)
    form = form_for(dice, verb)
    auxiliary, rest, whole = groups(subject, verb, form)
    time, cuando = adverb(dice, form, verb)
    return f"what {auxiliary} {subject.english} {rest}{time}?", f"¿qué {whole}{subject.ends()}{cuando}?"


def who(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Who opened the window?” → “¿Quién abrió la ventana?”"""
    dice = draft.dice
    verb = _verb(draft)
    while verb.base in ("have", "leave", "return"):
        verb = _verb(draft)
    nobody = subjects.HE
    complement, after = tail(draft, nobody, verb)
    form = form_for(dice, verb)
    if "his" in complement.split():
        complement, after = complement.replace("his ", "my "), after.replace("su ", "mi ").replace("sus ", "mis ")
    en, es = affirm(subjects.Subject("", "", 2), verb, form)
    question, pregunta = dice.choice(
        (
            ("who", "¿quién"),
            ("who", "¿quién"),
            ("nobody", "nadie"),
            ("someone", "alguien"),
            ("everyone", "todo el mundo"),
        )
    )
    mark = "?" if question == "who" else ""
    return f"{question}{en} {complement}{mark}", f"{pregunta} {es} {after}{mark}"


def already(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I have already read the book.” → “Ya he leído el libro.”"""
    dice = draft.dice
    subject = draft.anyone()
    verb = dice.choice([verb for verb in verbs.TRANSITIVE if not verb.lasts])
    obj = dice.choice(verb.objects)
    draft.record(verb.base, obj.noun.english)
    complement, after = phrase(draft, subject, obj._replace(article="my" if obj.article == "my" else "the"), verb)
    has, whole = english.have(subject.person), spanish.perfect(verb.spanish, subject.person)
    if dice.chance(0.4):
        en = f"{subject.english} {has} not {verb.participle} {complement} yet"
        return en, f"{subject.begins()}todavía no {whole} {after}"
    if dice.chance(0.4) and subject.english not in ("I", "we"):
        es = f"{subject.spanish} ya {whole} {after}" if subject.spanish else f"ya {whole} {after}"
        return f"{has} {subject.english} already {verb.participle} {complement}?", f"¿{es}?"
    return f"{subject.english} {has} already {verb.participle} {complement}", f"{subject.begins()}ya {whole} {after}"


def ago(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Yesterday Tom bought a hat.” → “Ayer Tom compró un sombrero.”"""
    subject, verb = draft.anyone(), _verb(draft)
    while verb.lasts:
        verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    time, cuando = draft.dice.choice(PAST)
    en, es = affirm(subject, verb, "past")
    return f"{time} {en} {complement}", f"{cuando} {es} {after}"


FRAMES: Frames = (
    (26.0, doing), (5.0, always), (11.0, with_modal), (4.0, would_like), (6.0, someone), (1.5, whom),
    (6.0, question_word),
    (2.5, what), (3.5, who), (4.0, already), (3.0, ago),
)  # fmt: skip
