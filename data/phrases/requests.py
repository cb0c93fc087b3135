"""Requests, commands and prohibitions, and suggestions."""

from __future__ import annotations

from phrases import spanish, subjects, verbs
from phrases.clauses import phrase, tail
from phrases.draft import Draft, Frames
from phrases.verbs import Verb

IMPERATIVES = {
    "hacer": "haz",
    "tener": "ten",
    "poner": "pon",
    "venir": "ven",
    "salir": "sal",
    "decir": "di",
    "ir": "ve",
}


UNASKED = ("have", "need", "lose", "see", "understand", "live", "break", "forget", "arrive", "find", "remember", "sell")


def imperative(infinitive: str) -> str:
    """Return the informal imperative: “abre”."""
    return IMPERATIVES.get(infinitive, spanish.conjugate(infinitive, "present", 1)[:-1])


def do_not(infinitive: str) -> str:
    """Return the informal negative imperative: “no abras”."""
    if infinitive == "ir":
        return "no vayas"
    stem = spanish.conjugate(infinitive, "present", 0)[:-1]
    if infinitive.endswith("ar"):
        for ending, spelled in (("car", "qu"), ("gar", "gu"), ("zar", "c")):
            if infinitive.endswith(ending):
                stem = stem[:-1] + spelled
        return f"no {stem}es"
    return f"no {stem}as"


def _verb(draft: Draft) -> Verb:
    """Return a random verb that a person may be asked to do."""
    while True:
        verb = draft.dice.choice(verbs.TRANSITIVE if draft.dice.chance(0.75) else verbs.INTRANSITIVE)
        if verb.base not in UNASKED and not verb.spanish.endswith("se"):
            return verb


def command(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Water the garden, please.” → “Riega el jardín, por favor.”"""
    dice = draft.dice
    verb = _verb(draft)
    complement, after = tail(draft, subjects.YOU, verb)
    end, final = dice.choice((("", ""), (", please", ", por favor"), (" now", " ahora"), ("!", "!")))
    if end == "!":
        return f"{verb.base} {complement}!", f"¡{imperative(verb.spanish)} {after}!"
    return f"{verb.base} {complement}{end}", f"{imperative(verb.spanish)} {after}{final}"


def forbid(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Do not water the garden.” → “No riegues el jardín.”"""
    dice = draft.dice
    verb = _verb(draft)
    if verb.objects:
        obj = dice.choice(verb.objects)
        draft.record(verb.base, obj.noun.english)
        article = "the" if obj.article == "a" else obj.article
        complement, after = phrase(draft, subjects.YOU, obj._replace(article=article), verb)
    else:
        complement, after = tail(draft, subjects.YOU, verb)
    end, final = dice.choice((("", ""), (", please", ", por favor"), (" today", " hoy")))
    return f"do not {verb.base} {complement}{end}", f"{do_not(verb.spanish)} {after}{final}"


def can_you(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Could you close the door, please?” → “¿Podrías cerrar la puerta, por favor?”"""
    dice = draft.dice
    verb = _verb(draft)
    request, pides = dice.choice(
        (("can you", "puedes"), ("could you", "podrías"), ("would you like to", "te gustaría"),
        ("do you want to", "quieres"),
         ("can I", "puedo"), ("may I", "puedo"), ("should I", "debería"), ("can we", "podemos"),
         ("should we", "deberíamos"))
    )  # fmt: skip
    speaker = subjects.I if request.endswith(" I") else subjects.WE if request.endswith("we") else subjects.YOU
    complement, after = tail(draft, speaker, verb)
    please = request in ("can you", "could you", "can I", "may I") and dice.chance(0.4)
    return (
        f"{request} {verb.base} {complement}{', please' if please else ''}?",
        f"¿{pides} {verb.spanish} {after}{', por favor' if please else ''}?",
    )


def should(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “You should study more.” → “Deberías estudiar más.”"""
    dice = draft.dice
    subject = draft.anyone()
    verb = _verb(draft)
    complement, after = tail(draft, subject, verb)
    es = ("debería", "deberías", "debería", "deberíamos", "deberían")[subject.person]
    if dice.chance(0.3):
        return (
            f"{subject.english} should not {verb.base} {complement}",
            f"{subject.begins()}no {es} {verb.spanish} {after}",
        )
    return f"{subject.english} should {verb.base} {complement}", f"{subject.begins()}{es} {verb.spanish} {after}"


def suggest(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Let's eat in the garden.” → “Vamos a comer en el jardín.”"""
    dice = draft.dice
    verb = _verb(draft)
    complement, after = tail(draft, subjects.WE, verb)
    if verb.spanish == "ir":
        return f"let's go {complement}", f"vamos {after}"
    if dice.chance(0.25):
        return (
            f"why don't we {verb.base} {complement}?",
            f"¿por qué no {spanish.conjugate(verb.spanish, 'present', 3)} {after}?",
        )
    return f"let's {verb.base} {complement}", f"vamos a {verb.spanish} {after}"


FRAMES: Frames = ((3.5, command), (2.5, forbid), (5.0, can_you), (3.0, should), (2.5, suggest))
