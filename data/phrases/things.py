"""Descriptions of things: adjectives in agreement, comparisons, possession, prices."""

from __future__ import annotations

from functools import cache

from phrases import adjectives, english, nouns, spanish
from phrases.adjectives import Adjective
from phrases.calendar import NUMBER_WORDS, of_years
from phrases.draft import Draft, Frames
from phrases.likes import THAT, THIS
from phrases.nouns import Noun

MINE = (("mine", "mío"), ("yours", "tuyo"), ("his", "suyo"), ("ours", "nuestro"))
OWNERS = (
    ("my", "mi", 0),
    ("your", "tu", 1),
    ("his", "su", 2),
    ("her", "su", 2),
    ("our", "nuestro", 3),
    ("their", "su", 4),
)


def _adjective(draft: Draft) -> tuple[Adjective, str, Noun, int]:
    """Return an adjective, “ser” or “estar”, a noun that the adjective fits, and the number."""
    dice = draft.dice
    kind = dice.weighted((3, 5, 3))
    adjective = dice.choice((adjectives.COLOURS, adjectives.SER, adjectives.ESTAR)[kind])
    noun = dice.choice(adjective.nouns)
    draft.record(adjective.english, noun.english)
    uncounted = noun in nouns.FOOD + nouns.DRINKS
    number = 2 if noun.number == 2 or (dice.chance(0.3) and not uncounted) else 1
    return adjective, "estar" if kind == 2 else "ser", noun, number


def _determined(draft: Draft, noun: Noun, number: int) -> tuple[str, str]:
    """Return the noun with “the”, “this”, “that” or an owner."""
    dice = draft.dice
    kind = dice.weighted((5, 3, 1.5, 3.5))
    word, palabra = noun.in_english(number), noun.in_spanish(number)
    if kind == 1:
        return f"{'these' if number == 2 else 'this'} {word}", f"{THIS[noun.gender, number]} {palabra}"
    if kind == 2:
        return f"{'those' if number == 2 else 'that'} {word}", f"{THAT[noun.gender, number]} {palabra}"
    public = noun in nouns.TOWN + nouns.NATURE or noun.english in ("taxi", "bus", "train", "plane")
    if kind == 3 and not public:
        if dice.chance(0.3):
            who = draft.name()
            return f"{who.english}'s {word}", f"{noun.the(number)} de {who.spanish}"
        en, es, person = dice.choice(OWNERS)
        es = spanish.inflect(es, noun.gender, number) if person == 3 else es + ("s" if number == 2 else "")
        return f"{en} {word}", f"{es} {palabra}"
    return f"the {word}", noun.the(number)


def is_so(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “The windows are dirty.” → “Las ventanas están sucias.”"""
    dice = draft.dice
    adjective, verb, noun, number = _adjective(draft)
    it, eso = _determined(draft, noun, number)
    person = 4 if number == 2 else 2
    past = dice.chance(0.22)
    be = (english.was if past else english.be)(person)
    es = spanish.conjugate(verb, "imperfect" if past else "present", person)
    fitting = spanish.inflect(adjective.spanish, noun.gender, number)
    plain = adjective in adjectives.COLOURS or adjective.english in ("broken", "full", "empty", "open", "closed",
        "occupied",
                                                                     "delicious", "famous")  # fmt: skip
    how, como = "", ""
    if not plain and dice.chance(0.5):
        how, como = dice.choice((("very ", "muy "), ("too ", "demasiado "), ("very ", "muy "), ("so ", "tan ")))
    if how == "too " and adjective.english in ("beautiful", "interesting", "comfortable", "useful", "clean",
        "modern", "dry",
                                               "funny", "important", "easy"):  # fmt: skip
        how, como = "very ", "muy "
    kind = dice.weighted((5, 2, 2.3))
    if kind == 1:
        return f"{it} {be} not {how}{adjective.english}", f"{eso} no {es} {como}{fitting}"
    if kind == 2:
        return f"{be} {it} {how}{adjective.english}?", f"¿{es} {como}{fitting} {eso}?"
    return f"{it} {be} {how}{adjective.english}", f"{eso} {es} {como}{fitting}"


def compared(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “This bridge is older than that one.” → “Este puente es más viejo que ese.”"""
    dice = draft.dice
    adjective = dice.choice(adjectives.SER)
    noun = dice.choice([noun for noun in adjective.nouns if noun not in nouns.FOOD + nouns.DRINKS])
    draft.record("more", adjective.english, noun.english)
    number = noun.number
    person = 4 if number == 2 else 2
    fitting = spanish.inflect(adjective.spanish, noun.gender, number)
    be, es = english.be(person), spanish.conjugate("ser", "present", person)
    word, palabra = noun.in_english(number), noun.in_spanish(number)
    this = "these" if number == 2 else "this"
    public = noun in nouns.TOWN + nouns.NATURE + nouns.SHOWS + nouns.STUDY + nouns.FOOD
    if public or dice.chance(0.4):
        that = "those" if number == 2 else "that one"
        return (
            f"{this} {word} {be} {adjective.comparative} than {that}",
            f"{THIS[noun.gender, number]} {palabra} {es} más {fitting} que {THAT[noun.gender, number]}",
        )
    mine, yours = dice.choice(((0, 1), (1, 0), (0, 3), (3, 1)))
    en, own, person = OWNERS[mine] if mine < 3 else OWNERS[4]
    own = spanish.inflect(own, noun.gender, number) if person == 3 else own + ("s" if number == 2 else "")
    word_for, suyo = MINE[yours]
    return (
        f"{en} {word} {be} {adjective.comparative} than {word_for}",
        f"{own} {palabra} {es} más {fitting} que {spanish.the(noun.gender, number)} "
        f"{spanish.inflect(suyo, noun.gender, number)}",
    )


def whose(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “This umbrella is mine.” → “Este paraguas es mío.”"""
    dice = draft.dice
    noun = dice.choice(nouns.CLOTHES + nouns.PAIRS + nouns.SMALL + nouns.LARGE[:7] + nouns.VEHICLES[:1])
    number = 2 if noun.number == 2 or dice.chance(0.2) else 1
    draft.record("whose", noun.english)
    this, este = (("these" if number == 2 else "this"), THIS) if dice.chance(0.6) else (
        ("those" if number == 2 else "that"), THAT)  # fmt: skip
    word, palabra = noun.in_english(number), f"{este[noun.gender, number]} {noun.in_spanish(number)}"
    be, es = ("are", "son") if number == 2 else ("is", "es")
    kind = dice.below(4)
    mine, mio = dice.choice(MINE)
    fitting = spanish.inflect(mio, noun.gender, number)
    if kind == 0:
        return f"{this} {word} {be} {mine}", f"{palabra} {es} {fitting}"
    if kind == 1:
        return f"{be} {this} {word} {mine}?", f"¿{es} {fitting} {palabra}?"
    if kind == 2:
        who = draft.name()
        return f"{this} {word} {be} {who.english}'s", f"{palabra} {es} de {who.spanish}"
    return f"whose {word} {be} {this}?", f"¿de quién {es} {palabra}?"


def which(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I want the red shirt, not the blue one.” → “Quiero la camisa roja, no la azul.”"""
    dice = draft.dice
    noun = dice.choice([noun for noun in adjectives.COLOURS[0].nouns if noun not in nouns.VEHICLES])
    number = noun.number
    one, other = dice.sample(adjectives.COLOURS, 2)
    draft.record(one.english, noun.english)
    draft.record(other.english, noun.english)
    the = spanish.the(noun.gender, number)
    first = f"{the} {noun.in_spanish(number)} {spanish.inflect(one.spanish, noun.gender, number)}"
    second = f"{the} {spanish.inflect(other.spanish, noun.gender, number)}"
    word, ones = noun.in_english(number), "ones" if number == 2 else "one"
    kind = dice.below(4)
    if kind == 0:
        want, quiero = dice.choice((("I want", "quiero"), ("I prefer", "prefiero"), ("she bought", "ella compró"),
                                    ("I need", "necesito"), ("he chose", "él eligió")))  # fmt: skip
        return f"{want} the {one.english} {word}, not the {other.english} {ones}", f"{quiero} {first}, no {second}"
    if kind == 1:
        like = spanish.conjugate("gustar", "present", 4 if number == 2 else 2)
        return (
            f"I like the {one.english} {word} more than the {other.english} {ones}",
            f"me {like} más {first} que {second}",
        )
    if kind == 2:
        return f"do you want the {one.english} {word} or the {other.english} {ones}?", f"¿quieres {first} o {second}?"
    be, es = ("are", "son") if number == 2 else ("is", "es")
    return (
        f"the {one.english} {word} {be} mine and the {other.english} {ones} {be} yours",
        f"{first} {es} {spanish.inflect('mío', noun.gender, number)} y {second} {es} "
        f"{spanish.inflect('tuyo', noun.gender, number)}",
    )


@cache
def _owned(adjective: Adjective) -> list[Noun]:
    """Return the single things that the adjective fits and that people own."""
    others = nouns.TOWN + nouns.NATURE + nouns.FOOD + nouns.DRINKS
    vehicles = ("bus", "train", "plane", "taxi")
    return [
        noun for noun in adjective.nouns if noun not in others and noun.number == 1 and noun.english not in vehicles
    ]


def has_such(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Anna has a white cat.” → “Anna tiene un gato blanco.”"""
    dice = draft.dice
    subject = draft.anyone()
    colours = adjectives.COLOURS
    adjective = dice.choice(colours + adjectives.SER[:7])
    noun = dice.choice(_owned(adjective))
    draft.record(adjective.english, noun.english)
    fitting = spanish.inflect(adjective.spanish, noun.gender)
    what = english.with_a(f"{adjective.english} {noun.english}")
    que = f"{'una' if noun.gender == 'f' else 'un'} {noun.spanish} {fitting}"
    kind = dice.weighted((4, 2, 2))
    person = subject.person
    if kind == 1:
        want = "wants" if person == 2 else "want"
        return (
            f"{subject.english} {want} {what}",
            f"{subject.begins()}{spanish.conjugate('querer', 'present', person)} {que}",
        )
    if kind == 2 and noun not in nouns.ANIMALS:
        return (
            f"{subject.english} bought {what}",
            f"{subject.begins()}{spanish.conjugate('comprar', 'past', person)} {que}",
        )
    has = spanish.conjugate("tener", "present", person)
    return f"{subject.english} {english.have(person)} {what}", f"{subject.begins()}{has} {que}"


def price(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “How much do these shoes cost?” → “¿Cuánto cuestan estos zapatos?”"""
    dice = draft.dice
    noun = dice.choice(nouns.PRICED + nouns.FRUIT[:5] + nouns.DISHES)
    number = 2 if noun.number == 2 or noun in nouns.FRUIT or dice.chance(0.2) else 1
    draft.record("cost", noun.english)
    this, este = dice.choice((("the", ""), ("these" if number == 2 else "this", "este")))
    word = f"{this} {noun.in_english(number)}"
    palabra = f"{THIS[noun.gender, number]} {noun.in_spanish(number)}" if este else noun.the(number)
    cost = spanish.conjugate("costar", "present", 4 if number == 2 else 2)
    if dice.chance(0.45):
        verb = "do" if number == 2 else "does"
        if dice.chance(0.4):
            return f"how much {'are' if number == 2 else 'is'} {word}?", f"¿cuánto {cost} {palabra}?"
        return f"how much {verb} {word} cost?", f"¿cuánto {cost} {palabra}?"
    amount = dice.between(2, 9 if noun in nouns.FRUIT + nouns.DISHES else 90)
    euros = f"{of_years(amount)} euros"
    verb = "cost" if number == 2 else "costs"
    return f"{word} {verb} {NUMBER_WORDS[amount][0]} euros", f"{palabra} {cost} {euros}"


def gift(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I gave Anna a ring.” → “Le di un anillo a Anna.”"""
    dice = draft.dice
    subject, other = draft.anyone(), draft.third_person()
    while other.english in ("he", "she") or other.english == subject.english:
        other = draft.name()
    noun = dice.choice(nouns.SMALL + nouns.CLOTHES)
    draft.record("give", noun.english)
    past, infinitive = dice.choice((("gave", "dar"), ("sent", "enviar"), ("showed", "mostrar"), ("brought", "traer")))
    did = spanish.conjugate(infinitive, "past", subject.person)
    un = "una" if noun.gender == "f" else "un"
    name = f"a {other.spanish}"
    return (
        f"{subject.english} {past} {other.english} {english.with_a(noun.english)}",
        f"{subject.begins()}le {did} {un} {noun.spanish} {name}",
    )


FRAMES: Frames = (
    (11.0, is_so), (5.0, compared), (4.0, whose), (4.0, which), (4.0, has_such), (3.0, price), (3.0, gift),
)  # fmt: skip
