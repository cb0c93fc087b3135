"""Locations of things and people: estar and hay, directions through a town, coming and going."""

from __future__ import annotations

from phrases import english, nouns, spanish
from phrases.calendar import NUMBER_WORDS, of_years
from phrases.clauses import possessive
from phrases.draft import Draft, Frames
from phrases.nouns import BY_NAME, Noun
from phrases.subjects import YOU

ON = tuple(BY_NAME[name] for name in ["table", "chair", "bed", "sofa", "desk", "bookshelf", "armchair", "carpet"])
IN = tuple(BY_NAME[name] for name in ["box", "bag", "suitcase", "backpack", "kitchen", "room", "office", "basket"])
UNDER = tuple(BY_NAME[name] for name in ["table", "bed", "chair", "sofa", "desk", "tree"])
AROUND = tuple(BY_NAME[name] for name in ["house", "church", "tree", "school", "bridge"])
ROOMS = tuple(BY_NAME[name] for name in ["kitchen", "garden", "house", "room", "office", "garage"])

_SMALL_IN = tuple(noun for noun in nouns.SMALL if noun.english not in ("bag", "box", "suitcase", "backpack", "basket"))


def _spot(draft: Draft, noun: Noun) -> tuple[str, str, Noun]:
    dice = draft.dice
    animal = noun in nouns.ANIMALS
    kind = dice.weighted((0, 1, 3, 3) if animal else (4, 3, 0, 0) if noun in nouns.FRUIT else (4, 3, 2, 1))
    if kind == 0:
        place = dice.choice(ON)
        return f"on the {place.english}", f"en {place.the()}" if place.english != "table" else "sobre la mesa", place
    if kind == 1:
        place = dice.choice(ROOMS if animal else IN)
        return f"in the {place.english}", f"en {place.the()}", place
    if kind == 2:
        place = dice.choice(UNDER)
        return f"under the {place.english}", f"debajo de {place.the()}", place
    place = dice.choice(AROUND if animal else nouns.LARGE[:5] + nouns.OPENINGS[:1])
    word, palabra = dice.choice((("behind", "detrás de"), ("in front of", "delante de"), ("next to", "al lado de")))
    return f"{word} the {place.english}", f"{palabra} {place.the()}", place


def lies(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “The spoons are under the basket.” → “Las cucharas están debajo de la cesta.”"""
    dice = draft.dice
    animal = dice.chance(0.25)
    noun = dice.choice(nouns.ANIMALS[:6] if animal else _SMALL_IN + nouns.CLOTHES)
    number = 2 if dice.chance(0.3) else 1
    where, donde, place = _spot(draft, noun)
    draft.record(noun.english, where.split()[0], place.english)
    be, es = ("are", "están") if number == 2 else ("is", "está")
    if dice.chance(0.35) and not animal:
        owner = dice.choice((("my", 0), ("your", 1), ("our", 3)))
        it, eso = (
            f"{owner[0]} {noun.in_english(number)}",
            f"{possessive(owner[1], noun, number)} {noun.in_spanish(number)}",
        )
    else:
        it, eso = f"the {noun.in_english(number)}", noun.the(number)
    kind = dice.weighted((5, 1.4, 2))
    if kind == 1:
        return f"{it} {be} not {where}", f"{eso} no {es} {donde}"
    if kind == 2:
        return f"{be} {it} {where}?", f"¿{es} {eso} {donde}?"
    return f"{it} {be} {where}", f"{eso} {es} {donde}"


def there_is(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “There are three books on the chair.” → “Hay tres libros en la silla.”"""
    dice = draft.dice
    animal = dice.chance(0.3)
    noun = dice.choice(nouns.ANIMALS if animal else _SMALL_IN + nouns.FRUIT)
    where, donde, place = _spot(draft, noun)
    draft.record("there", noun.english, place.english)
    count = dice.choice((1, 1, 1, 2, 3, 4, 5, 6))
    un = "una" if noun.gender == "f" else "un"
    past = dice.chance(0.2)
    es = "había" if past else "hay"
    if count == 1:
        be = "was" if past else "is"
        what, que = english.with_a(noun.english), f"{un} {noun.spanish}"
        if dice.chance(0.25):
            return f"{be} there {what} {where}?", f"¿{es} {que} {donde}?"
        return f"there {be} {what} {where}", f"{es} {que} {donde}"
    be = "were" if past else "are"
    if dice.chance(0.2):
        return f"how many {noun.in_english(2)} {be} there {where}?", (
            f"¿{'cuántas' if noun.gender == 'f' else 'cuántos'} {noun.in_spanish(2)} {es} {donde}?"
        )
    what = f"{NUMBER_WORDS[count][0]} {noun.in_english(2)}"
    return f"there {be} {what} {where}", f"{es} {of_years(count)} {noun.in_spanish(2)} {donde}"


def is_there_any(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “There is no milk in the fridge.” → “No hay leche en la nevera.”"""
    dice = draft.dice
    noun = dice.choice(nouns.FOOD + nouns.DRINKS[:6])
    where, donde = dice.choice((("in the fridge", "en la nevera"), ("on the table", "en la mesa"), ("", ""),
                                ("in the kitchen", "en la cocina"), ("at home", "en casa")))  # fmt: skip
    draft.record("any", noun.english)
    kind = dice.below(4)
    if kind == 0:
        return f"there is no {noun.english} {where}", f"no hay {noun.spanish} {donde}"
    if kind == 1:
        return f"is there any {noun.english} {where}".strip() + "?", f"¿hay {noun.spanish} {donde}".strip() + "?"
    if kind == 2:
        return f"there is a little {noun.english} {where}", f"hay un poco de {noun.spanish} {donde}"
    mucho = spanish.inflect("mucho", noun.gender)
    return f"there is a lot of {noun.english} {where}", f"hay {mucho} {noun.spanish} {donde}"


def in_town(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “The bank is next to the hotel.” → “El banco está al lado del hotel.”"""
    dice = draft.dice
    places = [noun for noun in nouns.TOWN if noun.english not in ("shop", "beach")]
    one, other = dice.sample(places, 2)
    draft.record(one.english, other.english)
    word, palabra = dice.choice(
        (("next to", "al lado de"), ("opposite", "enfrente de"), ("near", "cerca de"), ("far from", "lejos de"),
         ("behind", "detrás de"), ("in front of", "delante de"))
    )  # fmt: skip
    kind = dice.weighted((5, 1.5, 2.5))
    if kind == 1:
        return f"the {one.english} is not {word} the {other.english}", f"{one.the()} no está {palabra} {other.the()}"
    if kind == 2:
        return f"is the {one.english} {word} the {other.english}?", f"¿está {one.the()} {palabra} {other.the()}?"
    return f"the {one.english} is {word} the {other.english}", f"{one.the()} está {palabra} {other.the()}"


def find_way(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Excuse me, where is the station?” → “Perdona, ¿dónde está la estación?”"""
    dice = draft.dice
    place = dice.choice([noun for noun in nouns.TOWN if noun.english != "shop"])
    the = place.the()
    un = "una" if place.gender == "f" else "un"
    questions = (
        (f"where is the {place.english}?", f"¿dónde está {the}?"),
        (
            f"where is the nearest {place.english}?",
            f"¿dónde está {the} más {spanish.inflect('cercano', place.gender)}?",
        ),
        (f"is there {english.with_a(place.english)} near here?", f"¿hay {un} {place.spanish} cerca de aquí?"),
        (f"how do I get to the {place.english}?", f"¿cómo llego a {the}?"),
        (f"is the {place.english} far from here?", f"¿está lejos de aquí {the}?"),
        (f"I am looking for the {place.english}", f"estoy buscando {the}"),
        (f"can you tell me where the {place.english} is?", f"¿puedes decirme dónde está {the}?"),
        (f"does this bus go to the {place.english}?", f"¿este autobús va a {the}?"),
        (f"the {place.english} is on the left", f"{the} está a la izquierda"),
        (f"the {place.english} is on the right", f"{the} está a la derecha"),
        (f"the {place.english} is at the end of the street", f"{the} está al final de la calle"),
        (f"the {place.english} is not far", f"{the} no está lejos"),
        (f"the {place.english} is in the centre", f"{the} está en el centro"),
        (f"the {place.english} is five minutes from here", f"{the} está a cinco minutos de aquí"),
        (f"how far is the {place.english}?", f"¿a qué distancia está {the}?"),
        (f"there is {english.with_a(place.english)} in this street", f"hay {un} {place.spanish} en esta calle"),
    )
    en, es = dice.choice(questions)
    draft.record(en.split()[0], place.english)
    before, antes = dice.choice((("", ""), ("", ""), ("excuse me, ", "perdona, "), ("please, ", "por favor, ")))
    return (before + en, antes + es) if en.endswith("?") else (en, es)


def goes(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Tom went to the bank.” → “Tom fue al banco.”"""
    dice = draft.dice
    subject = draft.anyone()
    place = dice.choice(
        [noun for noun in nouns.TOWN if noun.english not in ("bus stop", "shop", "town hall", "church")]
    )
    draft.record(subject.english, place.english)
    person = subject.person
    to, a = f"to the {place.english}", f"a {place.the()}"
    kind = dice.below(6)
    past, fue = spanish.conjugate("ir", "past", person), "went"
    now, future = spanish.conjugate("ir", "present", person), spanish.conjugate("ir", "future", person)
    if kind == 0:
        time, cuando = dice.choice(
            (("yesterday", "ayer"), ("this morning", "esta mañana"), ("last week", "la semana pasada"))
        )
        return f"{subject.english} {fue} {to} {time}", f"{subject.begins()}{past} {a} {cuando}"
    if kind == 1:
        return f"{subject.english} {english.be(person)} going {to}", f"{subject.begins()}{now} {a}"
    if kind == 2:
        time, cuando = dice.choice(
            (("tomorrow", "mañana"), ("on Monday", "el lunes"), ("next week", "la semana que viene"))
        )
        return f"{subject.english} will go {to} {time}", f"{subject.begins()}{future} {a} {cuando}"
    if kind == 3:
        at = "on" if place.english == "beach" else "at"
        be, es = english.be(person), spanish.conjugate("estar", "present", person)
        where = f"{at} the {place.english}"
        if dice.chance(0.3) and subject.english not in ("I", "we"):
            first = subject.english in ("he", "she", "they")
            question = f"{subject.spanish} {es}" if first else f"{es}{subject.ends()}"
            return f"{be} {subject.english} {where}?", f"¿{question} en {place.the()}?"
        return f"{subject.english} {be} {where}", f"{subject.begins()}{es} en {place.the()}"
    if kind == 4 and subject.english not in ("I", "we"):
        if subject.english in ("he", "she", "they"):
            return f"did {subject.english} go {to}?", f"¿{subject.spanish} {past} {a}?"
        return f"did {subject.english} go {to}?", f"¿{past}{subject.ends()} {a}?"
    came = spanish.conjugate("venir", "past", person)
    return f"{subject.english} came from the {place.english}", f"{subject.begins()}{came} de {place.the()}"


def where_is(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Where is your umbrella?” → “¿Dónde está tu paraguas?”"""
    dice = draft.dice
    if dice.chance(0.25):
        who = draft.name()
        return dice.choice(
            ((f"where is {who.english}?", f"¿dónde está {who.spanish}?"),
             (f"where does {who.english} live?", f"¿dónde vive {who.spanish}?"),
             (f"is {who.english} at home?", f"¿está {who.spanish} en casa?"),
             (f"{who.english} is not here", f"{who.spanish} no está aquí"),
             (f"where was {who.english} yesterday?", f"¿dónde estaba {who.spanish} ayer?"),
             (f"where did {who.english} go?", f"¿adónde fue {who.spanish}?"))
        )  # fmt: skip
    noun = dice.choice(nouns.SMALL + nouns.CLOTHES + nouns.PAIRS + nouns.VEHICLES[:1] + nouns.LARGE[5:6])
    number = 2 if noun.number == 2 or dice.chance(0.25) else 1
    draft.record("where", noun.english)
    word, en = dice.choice((("is", "my"), ("is", "your"), ("is", "the"), ("was", "my"), ("was", "your")))
    person = {"my": 0, "your": 1}.get(en, 0)
    owned = noun.the(number) if en == "the" else f"{possessive(person, noun, number)} {noun.in_spanish(number)}"
    be = {"is": "are", "was": "were"}[word] if number == 2 else word
    tense: spanish.Tense = "imperfect" if word == "was" else "present"
    es = spanish.conjugate("estar", tense, 4 if number == 2 else 2)
    if dice.chance(0.25):
        at = YOU.person
        return f"where did you put {en} {noun.in_english(number)}?", (
            f"¿dónde {spanish.conjugate('poner', 'past', at)} {owned}?"
        )
    return f"where {be} {en} {noun.in_english(number)}?", f"¿dónde {es} {owned}?"


FRAMES: Frames = (
    (6.0, lies), (5.0, there_is), (1.4, is_there_any), (4.5, in_town), (4.0, find_way), (5.0, goes), (3.0, where_is),
)  # fmt: skip
