"""Sentences about things: what they are like, where they are, what they cost; weather, dates, pains, names, codes."""

from __future__ import annotations

import re

from phrases import english, predicates, sentences, spanish, tables
from phrases.calendar import DAYS, MONTHS, NUMBER_WORDS, ORDINALS, SEASONS
from phrases.clauses import PAST
from phrases.draft import Draft, Frames
from phrases.names import odd
from phrases.predicates import Predicate, affirm, ask, deny
from phrases.subjects import YOU, I, Subject
from phrases.tables import WORDINGS, Both

OWNERS = (Subject("he", "él", 2), Subject("we", "", 3), Subject("they", "ellos", 4))
IT = (
    Subject("it", "", 2),
    Subject("it", "", 2),
    Subject("it", "", 2),
    Subject("this", "esto", 2),
    Subject("that", "eso", 2),
)
SHORT = frozenset(
    [
        "big",
        "small",
        "new",
        "old",
        "cheap",
        "long",
        "short",
        "heavy",
        "light",
        "easy",
        "funny",
        "sad",
        "nice",
        "clean",
        "noisy",
        "fast",
        "slow",
        "strong",
        "large",
        "quiet",
        "fresh",
        "sweet",
        "salty",
        "hot",
        "cold",
        "ugly",
        "strange",
        "simple",
        "tall",
        "young",
        "kind",
        "shy",
        "rich",
        "poor",
        "thin",
        "clever",
        "lazy",
        "brave",
        "friendly",
        "wide",
        "dirty",
    ]
)
IRREGULAR = {"good": "better", "bad": "worse"}


def comparative(adjective: str) -> str:
    """Return the English comparative."""
    if adjective in IRREGULAR:
        return IRREGULAR[adjective]
    if adjective not in SHORT:
        return f"more {adjective}"
    if adjective in ("big", "sad", "hot", "thin"):
        return f"{adjective}{adjective[-1]}er"
    return (
        adjective[:-1] + "ier" if adjective.endswith("y") and adjective != "shy" else adjective.removesuffix("e") + "er"
    )


def superlative(adjective: str) -> str:
    """Return the English superlative."""
    better = comparative(adjective)
    return {"better": "best", "worse": "worst"}.get(better) or (
        f"most {adjective}" if better.startswith("more ") else better[:-2] + "est"
    )


def más(adjective: str) -> str:
    """Return the Spanish comparative, in the masculine."""
    return {"bueno": "mejor", "malo": "peor"}.get(adjective, f"más {adjective}")


def _agreeing(adjective: str, subject: Subject) -> str:
    first, _, last = adjective.rpartition(" ")
    return (
        f"{first} {tables.agree(last, subject.gender, subject.number)}".strip()
        if first in ("más", "muy")
        else (tables.agree(adjective, subject.gender, subject.number))
    )


ROWS: tuple[tuple[str, predicates.Row], ...] = tuple(
    (kinds.strip(), predicates.Row(left.strip(), right.strip(), flags.strip()))
    for kinds, left, right, flags in (
        (line.split(":", 1)[0], *line.split(":", 1)[1].partition("#")[0].split(" = "), line.partition("#")[2])
        for line in tables.VERB_PHRASES["things"]["table"].strip().splitlines()
    )
)
_ADJECTIVE = re.compile(r"\{(is|more|most):(\w+)\}")


def subject_of(draft: Draft, kinds: str) -> Subject:
    """Return a thing of one of the kinds as a subject, with an article."""
    if kinds == "it":
        return draft.dice.choice(IT)
    word = tables.draw(draft, kinds)
    if word.is_counted and not word.many and draft.dice.chance(0.15):
        word = word.plural()
    article = draft.dice.choice(("the", "the", "the", "my", "this"))
    if article == "my" and set(kinds.split(",")) & {
        "place",
        "nature",
        "shop",
        "transport",
        "event_c",
        "show",
        "show_v",
        "weather1",
        "opening",
    }:
        article = "the"
    owner = draft.dice.choice((I, I, YOU, *OWNERS))
    en, es = tables.with_article(draft, article, word, owner)
    is_plural = word.number == 2
    return Subject(en, es, 4 if is_plural else 2, word.gender)


def predicate_of(draft: Draft, subject: Subject, row: predicates.Row) -> Predicate:
    """Return a predicate of a thing, with its adjectives in agreement."""
    dice = draft.dice
    left, right = row.english, row.spanish
    if found := _ADJECTIVE.search(left):
        form, kind = found[1], found[2]
        adjective, adjetivo = dice.choice(tables.ADJECTIVES[kind])
        draft.record(kind, adjective, subject.english)
        en = {"is": adjective, "more": comparative(adjective), "most": superlative(adjective)}[form]
        es = _agreeing(adjetivo if form == "is" else más(adjetivo), subject)
        left, right = left.replace(found[0], en), right.replace(f"{{{form}}}", es)
        right = right.replace("{el}", spanish.the(subject.gender, subject.number))
    if "{this2}" in left:
        many = subject.person == 4
        that = "those" if many else "that one"
        if subject.english.split()[0] in ("that", "those"):
            that = "these" if many else "this one"
        table = tables.THAT if that.startswith("th") and that in ("those", "that one") else tables.THIS
        left, right = left.replace("{this2}", that), right.replace("{this2}", table[subject.gender, subject.number])
    if "{mine}" in left:
        mine, mío = dice.choice((("mine", "mío"), ("yours", "tuyo"), ("ours", "nuestro")))
        if subject.english.split()[0] in {"mine": ("my",), "yours": ("your",), "ours": ("our",)}[mine]:
            mine, mío = ("yours", "tuyo") if mine == "mine" else ("mine", "mío")
        el = spanish.the(subject.gender, subject.number)
        left, right = (
            left.replace("{mine}", mine),
            right.replace("{mine}", f"{el} {spanish.inflect(mío, subject.gender, subject.number)}"),
        )
    if "{name}" in left:
        who = draft.name().english
        left, right = left.replace("{name}", who), right.replace("{name}", who)
    if "{when}" in left:
        when, cuando = dice.choice(PAST + sentences.MORE_PAST)
        left, right = left.replace("{when}", when), right.replace("{when}", cuando)
    if "{0:owned}" in left:
        word = tables.draw(draft, "owned")
        left, right = left.replace("{0:owned}", word.english), right.replace("{el0}", word.the())
    return predicates.instantiate(
        draft,
        Subject(subject.english, subject.spanish, subject.person, subject.gender),
        predicates.Row(left, right, row.flags),
    )


def things(draft: Draft) -> Both:
    """The printer does not work. La impresora no funciona. Is the bank open? ¿Está abierto el banco?"""
    dice = draft.dice
    kinds, row = dice.choice(ROWS)
    subject = subject_of(draft, kinds)
    predicate = predicate_of(draft, subject, row)
    if "P" in predicate.flags:
        form = "past"
    elif predicate.is_state:
        form = dice.choice(("present", "present", "present", "present", "imperfect", "future"))
    else:
        form = dice.choice(("present", "past", "past", "future", "perfect", "going"))
    kind = dice.weighted((5, 2, 2.5))
    if kind == 1:
        return deny(subject, predicate, form)
    if kind == 2:
        en, es = ask(subject, predicate, form)
        if subject.english in ("this", "that"):
            head, tail = predicates.spanish_parts(predicate, 2, form)
            es = f"{head} {tail} {subject.spanish}" if len(tail.split()) < 3 else f"{subject.spanish} {head} {tail}"
        return f"{en}?", f"¿{es}?"
    return affirm(subject, predicate, form)


def there_is(draft: Draft) -> Both:
    """There are thirty people in the room. Hay treinta personas en la habitación."""
    dice = draft.dice
    kind = dice.below(7)
    word = tables.draw(draft, "thing,animal,fruit,furniture,place,person,dish,document")
    where, donde = _place(draft)
    draft.record("there", word.english, where)
    past = dice.chance(0.25)
    if kind < 3:
        en, es = tables.with_article(draft, "a", word, I)
        be, hay = ("was", "había") if past else ("is", "hay")
        if dice.chance(0.3):
            return f"{be} there {en} {where}?", f"¿{hay} {es} {donde}?"
        return f"there {be} {en} {where}", f"{hay} {es} {donde}"
    word = tables.draw(draft, "counted_s,person_s,counted")
    be, hay = ("were", "había") if past else ("are", "hay")
    if kind == 3:
        quantity = dice.choice(
            (
                ("a lot of", "mucho"),
                ("many", "mucho"),
                ("too many", "demasiado"),
                ("some", ""),
                ("a few", "alguno"),
                ("very few", "muy poco"),
            )
        )
        cuantos = spanish.inflect(quantity[1].split()[-1], word.gender, 2) if quantity[1] else ""
        cuantos = f"muy {cuantos}" if quantity[1].startswith("muy ") else cuantos
        return f"there {be} {quantity[0]} {word.english} {where}", f"{hay} {cuantos} {word.spanish} {donde}"
    if word.spanish == "hijos":
        word = word._replace(spanish="niños")
    number, cuantos = tables.amount(draft, feminine=word.gender == "f")
    if dice.chance(0.3):
        number = cuantos = str(dice.between(2, 500))
    if kind == 4:
        return f"there {be} {number} {word.english} {where}", f"{hay} {cuantos} {word.spanish} {donde}"
    more, más_de = dice.choice(
        (
            ("more than", "más de"),
            ("about", "unas" if word.gender == "f" else "unos"),
            ("only", "solo"),
            ("less than", "menos de"),
            ("almost", "casi"),
        )
    )
    if kind == 5:
        holder = tables.draw(draft, "place,home,event_p")
        has, tiene = ("had", "tenía") if past else ("has", "tiene")
        return (
            f"the {holder.english} {has} {more} {number} {word.english}",
            f"{holder.the()} {tiene} {más_de} {cuantos} {word.spanish}",
        )
    return f"there {be} {more} {number} {word.english} {where}", f"{hay} {más_de} {cuantos} {word.spanish} {donde}"


def _place(draft: Draft) -> Both:
    dice = draft.dice
    preposition, en = dice.choice(
        (
            ("in", "en"),
            ("in", "en"),
            ("near", "cerca de"),
            ("behind", "detrás de"),
            ("in front of", "delante de"),
            ("on", "en"),
            ("under", "debajo de"),
            ("next to", "al lado de"),
            ("above", "encima de"),
            ("inside", "dentro de"),
            ("around", "alrededor de"),
            ("opposite", "enfrente de"),
            ("", ""),
        )
    )
    if not preposition:
        return dice.choice(
            (
                ("here", "aquí"),
                ("there", "allí"),
                ("near here", "cerca de aquí"),
                ("outside", "fuera"),
                ("at home", "en casa"),
                ("on the left", "a la izquierda"),
                ("in this street", "en esta calle"),
                ("over there", "allí"),
            )
        )
    kinds = {
        "on": "furniture",
        "under": "furniture",
        "above": "furniture,nature",
        "inside": "container,home",
        "in": "home,place,container,nature",
    }.get(preposition, "place,nature,home")
    word = tables.draw(draft, kinds)
    return f"{preposition} the {word.english}", f"{en} {word.the()}"


def pains(draft: Draft) -> Both:
    """My feet hurt. Me duelen los pies. Does your back hurt? ¿Te duele la espalda?"""
    dice = draft.dice
    owner = dice.choice((I, I, I, YOU, YOU, *OWNERS)) if dice.chance(0.8) else draft.name()
    word = tables.draw(draft, "body,body_s")
    side = (
        dice.choice((("left", "izquierdo"), ("right", "derecho")))
        if word.english in ("leg", "arm", "hand", "foot", "knee", "ear", "shoulder", "ankle", "eye", "elbow")
        and dice.chance(0.3)
        else None
    )
    el = word.the()
    name = word.english
    if side:
        name, el = f"{side[0]} {name}", f"{el} {spanish.inflect(side[1], word.gender)}"
    mine = f"{owner.english}'s" if owner.person == 2 and owner.english != "he" else owner.possessive
    draft.record("hurt", name, mine)
    to = f"a {owner.spanish} " if owner.person == 2 and owner.english != "he" else ""
    to_me, n = owner.reflexive, "n" if word.number == 2 else ""
    much, mucho = dice.choice(
        (("", ""), ("", ""), (" a lot", " mucho"), (" very much", " mucho"), (" a little", " un poco"))
    )
    kind = dice.below(8)
    hurts = "hurt" if n else "hurts"
    time, cuando = dice.choice(
        (("", ""), ("", ""), (" today", " hoy"), (" when I walk", " cuando ando"), (" all the time", " todo el tiempo"))
    )
    if kind == 0:
        return f"{mine} {name} {'do' if n else 'does'} not hurt", f"{to}no {to_me} duele{n} {el}"
    if kind == 1 and owner is not I:
        return f"{'do' if n else 'does'} {mine} {name} hurt?", f"¿{to}{to_me} duele{n} {el}?"
    if kind == 2:
        return f"{mine} {name} hurt yesterday", f"ayer {to}{to_me} dolía{n} {el}"
    if kind == 3 and owner in (I, YOU):
        return (
            f"{owner.english} {'have' if owner.person != 2 else 'has'} a pain in {mine} {name}",
            f"{spanish.conjugate('tener', 'present', owner.person)} un dolor en {el}",
        )
    return f"{mine} {name} {hurts}{much}{time}", f"{to}{to_me} duele{n}{mucho} {el}{cuando}"


WEATHER = WORDINGS["weather"]
SEASONAL = WORDINGS["seasonal"]
RAIN = (("rain", "rained", "llover"), ("snow", "snowed", "nevar"))


def weather(draft: Draft) -> Both:
    """It was very cold last night. Anoche hacía mucho frío."""
    dice = draft.dice
    (season, estación), (month, mes), (city, ciudad) = dice.choice(SEASONS), dice.choice(MONTHS), tables.city(draft)
    where, donde = dice.choice(SEASONAL)
    where, donde = where.format(en=season, city=city, month=month), donde.format(es=estación, ciudad=ciudad, mes=mes)
    if dice.chance(0.3):
        rain, rained, llover = dice.choice(RAIN)
        kind = dice.below(6)
        much, mucho = dice.choice(
            (("", ""), ("a lot", "mucho"), ("all day", "todo el día"), ("all night", "toda la noche"))
        )
        if kind == 0:
            return f"it {rained} {much} yesterday", f"ayer {spanish.conjugate(llover, 'past', 2)} {mucho}"
        if kind == 1:
            return f"will it {rain} tomorrow?", f"¿{spanish.conjugate(llover, 'future', 2)} mañana?"
        if kind == 2:
            return f"it will {rain} {where}", f"{spanish.conjugate(llover, 'future', 2)} {donde}"
        if kind == 3:
            return f"it {rain}s a lot {where}", f"{spanish.conjugate(llover, 'present', 2)} mucho {donde}"
        if kind == 4:
            return f"it is not going to {rain} {where}", f"no va a {llover} {donde}"
        return f"it {rained} {much} last night", f"anoche {spanish.conjugate(llover, 'past', 2)} {mucho}"
    en, es = dice.choice(WEATHER)
    if dice.chance(0.3):
        time, cuando = dice.choice(
            (
                ("yesterday", "ayer"),
                ("last night", "anoche"),
                ("last week", "la semana pasada"),
                ("this morning", "esta mañana"),
                ("on Sunday", "el domingo"),
                ("last winter", "el invierno pasado"),
            )
        )
        es = es.format(está="estaba", hace="hacía", hay="había")
        return f"{en.format(**{'is': 'was'})} {time}", f"{cuando} {es}"
    if dice.chance(0.2):
        return (
            f"{en.format(**{'is': 'will be'})} tomorrow",
            f"mañana {es.format(está='estará', hace='hará', hay='habrá')}"
            if "getting" not in en
            else "mañana será otro día",
        )
    es = es.format(está="está", hace="hace", hay="hay")
    en = en.format(**{"is": "is"})
    kind = dice.below(6)
    if kind == 0:
        return re.sub(r"^(it|the weather|there) is", r"is \1", en) + f" {where}?", f"¿{es} {donde}?"
    if kind == 1:
        return en.replace(" is ", " is not ") + f" {where}", f"no {es} {donde}"
    return f"{en} {where}", f"{es} {donde}"


def prices(draft: Draft) -> Both:
    """How much does this cost? It costs fifteen euros."""
    dice = draft.dice
    word = tables.draw(draft, "thing,clothes,dish,fruit,furniture,device,drink,clothes_s,vehicle")
    if word.is_counted and dice.chance(0.25):
        word = word.plural()
    en, es = tables.with_article(
        draft, dice.choice(("the", "this", "this", "a") if not word.many else ("the", "this")), word, I
    )
    draft.record("price", en)
    n = word.number == 2
    does, cuesta = ("do" if word.many else "does"), ("cuestan" if n else "cuesta")
    sum_, suma = tables.price(draft)
    kind = dice.below(9)
    if kind < 2:
        return f"how much {does} {en} cost?", f"¿cuánto {cuesta} {es}?"
    if kind == 2:
        return f"how much {'are' if word.many else 'is'} {en}?", f"¿cuánto {cuesta} {es}?"
    if kind < 5:
        return f"{en} {'cost' if word.many else 'costs'} {sum_}", f"{es} {cuesta} {suma}"
    if kind == 5:
        return f"how much did {en} cost?", f"¿cuánto {'costaron' if n else 'costó'} {es}?"
    if kind == 6:
        return f"{en} cost me {sum_}", f"{es} me {'costaron' if n else 'costó'} {suma}"
    if kind == 7:
        return f"{en} {'cost' if word.many else 'costs'} {sum_} a kilo", f"{es} {cuesta} {suma} el kilo"
    cheaper, barato = dice.choice(
        (
            ("something cheaper", "algo más barato"),
            ("a bigger one", "uno más grande"),
            ("a smaller one", "uno más pequeño"),
            ("another one", "otro"),
            ("the cheapest one", "el más barato"),
        )
    )
    return f"do you have {cheaper}?", f"¿tienes {barato}?"


def named(draft: Draft) -> Both:
    """Names, codes and addresses, which are copied to the letter."""
    dice = draft.dice
    name = odd(dice) if dice.chance(0.6) else draft.name().english
    surname, lower, brand = odd(dice), odd(dice).lower(), odd(dice)
    if dice.chance(0.25):
        brand = tables.code(draft)[0]
    values = {
        "name": name,
        "surname": surname,
        "lower": lower,
        "brand": brand,
        "code": tables.code(draft)[0],
        "email": tables.address(draft)[0],
        "number": str(dice.between(1, 9999)),
        "digits": " ".join(str(dice.between(100, 9999)) for _ in range(dice.between(1, 3))),
        "year": tables.year(draft)[0],
        "age": str(dice.between(1, 99)),
        "hour": str(dice.between(2, 12)),
        "other": draft.name().english,
    }
    first = tables.ordinal(draft)
    en, es = dice.choice(NAMED)
    en = en.replace(" a {lower}", f" {english.with_a(lower)}")
    return en.format(floor=first[0], **values), es.format(floor=first[1], **values)


NAMED = WORDINGS["named"]


def dates(draft: Draft) -> Both:
    """Dates, days and times of day."""
    dice = draft.dice
    (day, dia), (month, mes) = dice.choice(DAYS), dice.choice(MONTHS)
    count = dice.between(1, 28)
    written = (
        f"the {ORDINALS[count - 1]} of {month}",
        f"el {'uno' if count == 1 else NUMBER_WORDS[count][1]} de {mes}",
    )
    if dice.chance(0.5):
        written = (dice.choice((f"{count} {month}", f"{month} {count}")), f"el {count} de {mes}")
    time, hora = tables.clock(draft)
    is_one = hora.startswith("la ")
    word = tables.draw(draft, "event_c")
    whole, entera = tables.day(draft)
    rows = (
        (f"today is {day}", f"hoy es {dia}"),
        (f"tomorrow is {written[0]}", f"mañana es {written[1]}"),
        (f"today is {written[0]}", f"hoy es {written[1]}"),
        (f"my birthday is on {written[0]}", f"mi cumpleaños es {written[1]}"),
        (f"her birthday is in {month}", f"su cumpleaños es en {mes}"),
        (f"it is {time}", f"{'es' if is_one else 'son'} {hora}"),
        (f"it is already {time}", f"ya {'es' if is_one else 'son'} {hora}"),
        (f"at {time}", f"a {hora}"),
        (f"the {word.english} is {whole} at {time}", f"{word.the()} es {entera} a {hora}"),
        (f"the {word.english} is at {time}", f"{word.the()} es a {hora}"),
        (f"what time is the {word.english}?", f"¿a qué hora es {word.the()}?"),
        (f"when is the {word.english}?", f"¿cuándo es {word.the()}?"),
        (f"are you free {whole}?", f"¿estás libre {entera}?"),
        (f"see you {whole}", f"nos vemos {entera}"),
        (f"see you {whole} at {time}", f"nos vemos {entera} a {hora}"),
        (f"see you at {time}", f"nos vemos a {hora}"),
        (f"I was born on {written[0]}", f"nací {written[1]}"),
        (f"I was born in {month}", f"nací en {mes}"),
        (f"I am busy {whole}", f"estoy ocupado {entera}"),
        (f"what are you doing {whole}?", f"¿qué haces {entera}?"),
        (f"is it {time} already?", f"¿ya {'es' if is_one else 'son'} {hora}?"),
        (f"we close at {time}", f"cerramos a {hora}"),
        (f"until {day}", f"hasta el {dia}"),
        (f"from {day} to Friday", f"de {dia} a viernes"),
        (f"the first {day} of {month}", f"el primer {dia} de {mes}"),
        (f"I cannot come {whole}", f"no puedo venir {entera}"),
        (f"how about {day} at {time}?", f"¿qué tal el {dia} a {hora}?"),
        (f"wake me up at {time}", f"despiértame a {hora}"),
        (f"I will be back at {time}", f"volveré a {hora}"),
        (f"I will be back in {NUMBER_WORDS[dice.between(2, 40)][0]} minutes", ""),
    )
    en, es = dice.choice(rows)
    draft.record("date", en)
    if not es:
        number, cuantos = tables.amount(draft)
        unit, unidad = dice.choice((("minutes", "minutos"), ("days", "días"), ("hours", "horas"), ("weeks", "semanas")))
        cuantos = (
            cuantos
            if unidad not in ("horas", "semanas")
            else re.sub(r"(?<=ciento)s$|un$", "una", cuantos)
            if cuantos.endswith("un")
            else cuantos.replace("ientos", "ientas")
        )
        return f"I will be back in {number} {unit}", f"volveré en {cuantos} {unidad}"
    return en, es


def compared(draft: Draft) -> Both:
    """My brother is taller than me. Mi hermano es más alto que yo."""
    dice = draft.dice
    subject = draft.third_person()
    adjective, adjetivo = dice.choice(tables.ADJECTIVES["trait"])
    who, quien = dice.choice(
        (
            ("me", "yo"),
            ("you", "tú"),
            ("us", "nosotros"),
            ("them", "ellos"),
            ("his brother", "su hermano"),
            ("my sister", "mi hermana"),
            ("I am", "yo"),
            ("I thought", "pensaba"),
        )
    )
    more, más_ = comparative(adjective), f"más {tables.agree(adjetivo, subject.gender, 1)}"
    draft.record("than", subject.english, adjective)
    kind = dice.below(6)
    if quien == "pensaba":
        return f"{subject.english} is {more} than I thought", f"{subject.begins()}es {más_} de lo que pensaba"
    if kind == 0:
        return (
            f"{subject.english} is not as {adjective} as {who}",
            f"{subject.begins()}no es tan {tables.agree(adjetivo, subject.gender, 1)} como {quien}",
        )
    if kind == 1:
        return f"{subject.english} is much {more} than {who}", f"{subject.begins()}es mucho {más_} que {quien}"
    if kind == 2:
        return (
            f"{subject.english} is less {adjective} than {who}",
            f"{subject.begins()}es menos {tables.agree(adjetivo, subject.gender, 1)} que {quien}",
        )
    if kind == 3 and who != "I am":
        well, bien = dice.choice(
            (("better", "mejor"), ("more", "más"), ("faster", "más rápido"), ("less", "menos"), ("worse", "peor"))
        )
        verb = dice.choice(
            (
                ("cook", "cocinar"),
                ("sing", "cantar"),
                ("dance", "bailar"),
                ("work", "trabajar"),
                ("run", "correr"),
                ("swim", "nadar"),
                ("drive", "conducir"),
                ("eat", "comer"),
                ("sleep", "dormir"),
                ("write", "escribir"),
                ("study", "estudiar"),
                ("read", "leer"),
            )
        )
        return (
            f"{subject.english} {english.third(verb[0])} {well} than {who}",
            f"{subject.begins()}{spanish.conjugate(verb[1], 'present', 2)} {bien} que {quien}",
        )
    return f"{subject.english} is {more} than {who}", f"{subject.begins()}es {más_} que {quien}"


FRAMES: Frames = (
    (22.0, things),
    (6.0, there_is),
    (2.5, pains),
    (3.5, weather),
    (3.5, prices),
    (14.0, named),
    (4.5, dates),
    (2.5, compared),
)
