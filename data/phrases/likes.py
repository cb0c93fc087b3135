"""Likes, interests and pain: gustar, encantar, interesar, doler."""

from __future__ import annotations

from phrases import english, nouns, spanish, verbs
from phrases.clauses import in_general
from phrases.draft import Draft, Frames
from phrases.nouns import Noun
from phrases.subjects import Subject

_KINDS: tuple[tuple[tuple[Noun, ...], int], ...] = (
    (nouns.FOOD + nouns.DRINKS, 1), (nouns.FRUIT, 2), (nouns.DISHES, 2), (nouns.ANIMALS, 2), (nouns.SHOWS[:6], 2),
    (nouns.PAIRS[:1], 2), (nouns.NATURE[:4], 2), (nouns.VEHICLES[:6], 2),
)  # fmt: skip
_THINGS = nouns.CLOTHES + nouns.HOMES + nouns.SHOWS + nouns.LARGE + nouns.TOWN[1:7]
_SUBJECTS = (
    ("football", "el fútbol"), ("music", "la música"), ("winter", "el invierno"), ("summer", "el verano"),
    ("this city", "esta ciudad"), ("the sea", "el mar"), ("chess", "el ajedrez"), ("mathematics", "las matemáticas"),
    ("Spanish", "el español"), ("spring", "la primavera"), ("snow", "la nieve"), ("history", "la historia"),
    ("rain", "la lluvia"), ("poetry", "la poesía"), ("art", "el arte"), ("tennis", "el tenis"),
)  # fmt: skip
_VERBS = (("like", "gustar", ""), ("like", "gustar", ""), ("love", "encantar", ""), ("really like", "gustar", " mucho"))


def _pleases(subject: Subject, denied: bool, verb: str, plural: bool) -> str:
    """Return the Spanish clause without the thing liked: “a Tom no le gustan”."""
    form = spanish.conjugate(verb, "present", 4 if plural else 2)
    return f"{subject.to_whom} {'no ' if denied else ''}{subject.reflexive} {form}".strip()


def _said(draft: Draft, subject: Subject, what: str, que: str, plural: bool) -> tuple[str, str]:
    dice = draft.dice
    verb, gustar, much = dice.choice(_VERBS)
    kind = dice.weighted((5, 2.2, 2.6))
    if kind == 1:
        doing = f"{subject.english} {english.do(subject.person)} not like {what}"
        return doing, f"{_pleases(subject, True, 'gustar', plural)} {que}"
    if kind == 2 and subject.english not in ("I", "we"):
        question = f"{english.do(subject.person)} {subject.english} like {what}?"
        return question, f"¿{_pleases(subject, False, 'gustar', plural)} {que}?"
    verb_form = verb.removesuffix("like") + english.third("like") if verb.endswith("like") else english.third(verb)
    verb_form = verb_form if subject.person == 2 else verb
    return f"{subject.english} {verb_form} {what}", f"{_pleases(subject, False, gustar, plural)}{much} {que}"


def likes_kind(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom likes apples.” → “A Tom le gustan las manzanas.”"""
    subject = draft.anyone()
    if draft.dice.chance(0.2):
        what, que = draft.dice.choice(_SUBJECTS)
        draft.record("like", what)
        return _said(draft, subject, what, que, que.startswith("las "))
    group, number = draft.dice.choice(_KINDS)
    noun = draft.dice.choice(group)
    draft.record("like", noun.english)
    return _said(draft, subject, noun.in_english(number), noun.the(number), number == 2)


def likes_this(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I do not like these shoes.” → “No me gustan estos zapatos.”"""
    dice = draft.dice
    subject, noun = draft.anyone(), dice.choice(_THINGS + nouns.PAIRS)
    number = max(noun.number, 2 if dice.chance(0.2) else 1)
    this, este = dice.choice((("this", THIS), ("that", THAT), ("the", None), ("your", "tu")))
    if this == "your" and (subject.english == "you" or noun in nouns.SHOWS + nouns.TOWN):
        return likes_kind(draft)
    if este is None:
        que = noun.the(number)
    elif isinstance(este, str):
        que = f"{este}{'s' if number == 2 else ''} {noun.in_spanish(number)}"
    else:
        que = f"{este[noun.gender, number]} {noun.in_spanish(number)}"
    if number == 2 and this in ("this", "that"):
        this = {"this": "these", "that": "those"}[this]
    draft.record("this", noun.english)
    return _said(draft, subject, f"{this} {noun.in_english(number)}", que, number == 2)


THIS = {("m", 1): "este", ("f", 1): "esta", ("m", 2): "estos", ("f", 2): "estas"}
THAT = {("m", 1): "ese", ("f", 1): "esa", ("m", 2): "esos", ("f", 2): "esas"}


def likes_doing(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “We like to swim in the sea.” → “Nos gusta nadar en el mar.”"""
    dice = draft.dice
    subject = draft.anyone()
    plain = [verb for verb in verbs.INTRANSITIVE if verb.now and not verb.spanish.endswith("se")]
    verb = dice.choice(plain) if dice.chance(0.6) else dice.choice([v for v in verbs.TRANSITIVE if v.habit])
    what, que = in_general(draft, subject, verb)
    doing = f"to {verb.base}" if dice.chance(0.6) else verb.gerund
    return _said(draft, subject, f"{doing} {what}", f"{verb.spanish} {que}", False)


def hurts(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Anna's feet hurt.” → “A Anna le duelen los pies.”"""
    dice = draft.dice
    subject, noun = draft.anyone(), dice.choice(nouns.BODY + nouns.PLURAL_BODY)
    if subject.english == "they" or subject.person == 4:
        subject = draft.third_person()
    plural = noun.number == 2
    owner = subject.possessive if subject.english in ("I", "you", "he", "she", "we", "they") else f"{subject.english}'s"
    if owner == "our" and not plural:
        noun, plural = nouns.PLURAL_BODY[0], True
    draft.record(subject.english, noun.english, "hurt")
    hurt = spanish.conjugate("doler", "present", 4 if plural else 2)
    to = f"{subject.to_whom} {subject.reflexive} {hurt}".strip()
    if dice.chance(0.2) and subject.english != "I":
        return f"{'do' if plural else 'does'} {owner} {noun.english} hurt?", f"¿{to} {noun.the()}?"
    return f"{owner} {noun.english} {'hurt' if plural else 'hurts'}", f"{to} {noun.the()}"


FRAMES: Frames = ((7.0, likes_kind), (4.5, likes_this), (6.0, likes_doing), (1.2, hurts))
