"""Days, dates, hours, sums and the weather."""

from __future__ import annotations

from phrases import english, nouns, spanish
from phrases.calendar import DAYS, MONTHS, NUMBER_WORDS, ORDINALS, SEASONS, clock
from phrases.draft import Draft, Frames

EVENTS = (
    ("the class", "la clase"), ("the concert", "el concierto"), ("the film", "la película"), ("the party", "la fiesta"),
    ("the match", "el partido"), ("the exam", "el examen"), ("the meeting", "la reunión"), ("the lesson", "la lección"),
)  # fmt: skip
_WEATHER = (
    ("it is hot", "hace calor", "it was hot", "hacía calor"), ("it is cold", "hace frío", "it was cold", "hacía frío"),
    ("it is sunny", "hace sol", "it was sunny", "hacía sol"),
    ("it is windy", "hace viento", "it was windy", "hacía viento"),
    ("it is raining", "está lloviendo", "it was raining", "estaba lloviendo"),
    ("it is snowing", "está nevando", "it was snowing", "estaba nevando"),
    ("it is cloudy", "está nublado", "it was cloudy", "estaba nublado"),
    ("the weather is nice", "hace buen tiempo", "the weather was nice", "hacía buen tiempo"),
    ("the weather is bad", "hace mal tiempo", "the weather was bad", "hacía mal tiempo"),
)  # fmt: skip
CITIES = (
    ("Madrid", "Madrid"), ("London", "Londres"), ("Paris", "París"), ("Barcelona", "Barcelona"), ("Seville", "Sevilla"),
    ("Rome", "Roma"), ("Berlin", "Berlín"), ("Lisbon", "Lisboa"), ("New York", "Nueva York"),
    ("Mexico City", "Ciudad de México"),
)  # fmt: skip


def _hours(draft: Draft) -> tuple[str, str, int]:
    hours = draft.dice.between(1, 12)
    en, es = clock(hours, 5 * draft.dice.below(12) if draft.dice.chance(0.6) else 30 * draft.dice.below(2))
    draft.record("clock", en)
    return en, es, 1 if es.startswith("la una") else 2


def o_clock(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “It is half past three.” → “Son las tres y media.”"""
    en, es, number = _hours(draft)
    return draft.dice.choice(
        ((f"it is {en}", f"{'es' if number == 1 else 'son'} {es}"),
         (f"it is already {en}", f"ya {'es' if number == 1 else 'son'} {es}"),
         (f"it is almost {en}", f"{'es' if number == 1 else 'son'} casi {es}"),
         (f"is it {en}?", f"¿{'es' if number == 1 else 'son'} {es}?"))
    )  # fmt: skip


def day_number(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “The ferry leaves at ten to six.” → “El ferri sale a las seis menos diez.”"""
    dice = draft.dice
    en, es, _ = _hours(draft)
    kind = dice.below(6)
    if kind == 0:
        vehicle = dice.choice(nouns.VEHICLES[1:5])
        verb, salir = dice.choice((("leaves", "sale"), ("arrives", "llega")))
        return f"the {vehicle.english} {verb} at {en}", f"{vehicle.the()} {salir} a {es}"
    if kind == 1:
        shop = dice.choice(nouns.SHOPS)
        verb, abrir = dice.choice((("opens", "abre"), ("closes", "cierra")))
        return f"the {shop.english} {verb} at {en}", f"{shop.the()} {abrir} a {es}"
    if kind == 2:
        event, acto = dice.choice(EVENTS)
        verb, empezar = dice.choice((("begins", "empieza"), ("ends", "termina")))
        return f"{event} {verb} at {en}", f"{acto} {empezar} a {es}"
    if kind == 3:
        subject = draft.anyone()
        verb, past, infinitive = dice.choice((("get up", "got up", "levantarse"),
        ("go to bed", "went to bed", "acostarse"),
                                              ("wake up", "woke up", "despertarse"), ("arrive", "arrived", "llegar"),
                                              ("have dinner", "had dinner", "cenar")))  # fmt: skip
        if dice.chance(0.5):
            return f"{subject.english} {past} at {en}", (
                f"{subject.begins()}{spanish.conjugate(infinitive, 'past', subject.person)} a {es}"
            )
        verb = english.third(verb) if subject.person == 2 else verb
        return f"{subject.english} {verb} at {en}", (
            f"{subject.begins()}{spanish.conjugate(infinitive, 'present', subject.person)} a {es}"
        )
    day, dia = dice.choice(
        (*((f"on {day}", f"el {dia}") for day, dia in DAYS), ("tomorrow", "mañana"), ("today", "hoy"))
    )
    if kind == 4:
        return f"see you {day} at {en}", f"nos vemos {dia} a {es}"
    event, acto = dice.choice(EVENTS)
    return f"{event} is {day} at {en}", f"{acto} es {dia} a {es}"


def what_day(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Today is Monday, the third of May.” → “Hoy es lunes, tres de mayo.”"""
    dice = draft.dice
    day, dia = dice.choice(DAYS)
    month, mes = dice.choice(MONTHS)
    day_number = dice.between(1, len(ORDINALS))
    on, numero = ORDINALS[day_number - 1], "uno" if day_number == 1 else NUMBER_WORDS[day_number][1]
    kind = dice.below(7)
    who = draft.anyone()
    if kind not in (4, 6):
        draft.record(month, str(day_number))
    if kind == 0:
        return f"today is {day}, the {on} of {month}", f"hoy es {dia}, {numero} de {mes}"
    if kind == 1:
        if who.number == 2 or who.english == "you":
            who = draft.name()
        owner = who.possessive if who.english in ("I", "he", "she") else f"{who.english}'s"
        mine = "mi" if who.english == "I" else "su"
        birthday = f"{mine} cumpleaños" if who.english in ("I", "he", "she") else f"el cumpleaños de {who.spanish}"
        return f"{owner} birthday is on the {on} of {month}", f"{birthday} es el {numero} de {mes}"
    if kind == 2:
        event, acto = dice.choice(EVENTS)
        return f"{event} is on {day}, the {on} of {month}", f"{acto} es el {dia}, {numero} de {mes}"
    if kind == 3:
        event, acto = dice.choice(EVENTS)
        return f"is {event} on the {on} of {month}?", f"¿{acto} es el {numero} de {mes}?"
    if kind == 4:
        draft.record("born", who.english, month)
        born = spanish.conjugate("nacer", "past", who.person)
        return f"{who.english} {english.was(who.person)} born in {month}", f"{who.begins()}{born} en {mes}"
    if kind == 5:
        past = spanish.conjugate("llegar", "future", who.person)
        return f"{who.english} will arrive on the {on} of {month}", f"{who.begins()}{past} el {numero} de {mes}"
    season, estacion = dice.choice(SEASONS)
    go = spanish.conjugate("ir", "present", who.person)
    city, ciudad = dice.choice(CITIES)
    draft.record(city, season)
    going = f"{who.english} {english.be(who.person)} going to travel to {city} in {season}"
    return going, f"{who.begins()}{go} a viajar a {ciudad} en {estacion}"


def weather(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “It was cold in Madrid yesterday.” → “Ayer hacía frío en Madrid.”"""
    dice = draft.dice
    now, ahora, before, antes = dice.choice(_WEATHER)
    city, ciudad = dice.choice(CITIES)
    where, donde = (f" in {city}", f" en {ciudad}") if dice.chance(0.75) else (" here", " aquí")
    draft.record(where, now)
    kind = dice.below(4)
    if kind == 0:
        return f"{now}{where}", f"{ahora}{donde}"
    if kind == 1:
        return f"{before}{where} yesterday", f"ayer {antes}{donde}"
    if kind == 2:
        subject, rest = (now.removesuffix(" nice").removesuffix(" bad"), now.split()[-1])
        if subject.startswith("the weather"):
            return f"is the weather {rest}{where}?", f"¿{ahora}{donde}?"
        return f"is it {now.removeprefix('it is ')}{where}?", f"¿{ahora}{donde}?"
    month, mes = dice.choice(MONTHS)
    if now.startswith("it is ") and "ing" not in now and now != "it is cloudy":
        return f"{now}{where} in {month}", f"en {mes} {ahora}{donde}"
    return f"{now}{where} today", f"hoy {ahora}{donde}"


def sum_of(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Two plus three is five.” → “Dos más tres son cinco.”"""
    dice = draft.dice
    one = dice.between(1, 40)
    other = dice.between(1, 40)
    draft.record(str(one), str(other))
    if one > other and dice.chance(0.4):
        result = NUMBER_WORDS[one - other]
        son = "es" if one - other == 1 else "son"
        return (
            f"{NUMBER_WORDS[one][0]} minus {NUMBER_WORDS[other][0]} is {result[0]}",
            f"{NUMBER_WORDS[one][1]} menos {NUMBER_WORDS[other][1]} {son} {result[1]}",
        )
    result = NUMBER_WORDS[one + other]
    return (
        f"{NUMBER_WORDS[one][0]} plus {NUMBER_WORDS[other][0]} is {result[0]}",
        f"{NUMBER_WORDS[one][1]} más {NUMBER_WORDS[other][1]} son {result[1]}",
    )


FRAMES: Frames = ((2.5, o_clock), (4.0, day_number), (3.5, what_day), (1.8, weather), (0.8, sum_of))
