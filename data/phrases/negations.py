"""Sentences with adverbs of frequency, negations and indefinites: never, nothing, nobody, any, many, enough."""

from __future__ import annotations

from functools import partial

from phrases import english, predicates, spanish, tables
from phrases.draft import Draft, Frames
from phrases.predicates import Predicate, affirm, ask, deny, past_of, present
from phrases.sentences import personal
from phrases.subjects import HE, SHE, THEY, YOU, I, Subject
from phrases.tables import WORDINGS, Both

NEVER = WORDINGS["never"]


def adverbs(draft: Draft) -> Both:
    """I have never seen snow. Nunca he visto nieve. She no longer works here. Ella ya no trabaja aquí."""
    dice = draft.dice
    subject = personal(draft)
    predicate = predicates.draw(draft, subject)
    if predicate.is_state and predicate.verb == "be":
        en, es = dice.choice(NEVER[:8])
        head, tail = predicates.spanish_parts(predicate, subject.person, "present")
        return (
            f"{subject.english} {english.BE[subject.person]} {en} {predicate.rest}",
            f"{subject.begins()}{es} {head} {tail}",
        )
    kind = dice.below(10)
    whole = partial(predicates.spanish_whole, predicate, subject.person)
    have = english.have(subject.person)
    if kind < 3 and not predicate.is_state:
        done = english.participle(f"{predicate.verb} {predicate.rest}")
        row = dice.below(6)
        if row < 3:
            return (
                f"{subject.english} {have} never {done}",
                f"{subject.begins()}nunca {whole('perfect')}",
            )
        if row == 3:
            return (
                f"{subject.english} {have} already {done}",
                f"{subject.begins()}ya {whole('perfect')}",
            )
        if row == 4:
            return (
                f"{subject.english} {have} not {done} yet",
                f"{subject.begins()}todavía no {whole('perfect')}",
            )
        if subject.english in ("I", "we"):
            return (
                f"{subject.english} had never {done}",
                f"{subject.begins()}nunca {whole('pluperfect')}",
            )
        ha, _ = predicates.spanish_parts(predicate, subject.person, "perfect")
        return (
            f"{have} {subject.english} ever {done}?",
            f"¿{_first(subject)}{ha}{_last(subject)} alguna vez {predicate.after}?",
        )
    if kind == 3 and not predicate.is_state:
        done = english.participle(f"{predicate.verb} {predicate.rest}")
        just = f"{spanish.conjugate('acabar', 'present', subject.person)} de {predicate.bound(subject.person)}"
        return f"{subject.english} {have} just {done}", f"{subject.begins()}{just}"
    if kind == 4:
        do = english.do(subject.person)
        return f"{subject.english} {do} not {predicate.english} any more", f"{subject.begins()}ya no {whole('present')}"
    if kind == 5:
        used = spanish.conjugate("soler", "imperfect", subject.person)
        if not predicate.is_state:
            return (
                f"{subject.english} used to {predicate.english}",
                f"{subject.begins()}{used} {predicate.bound(subject.person)}",
            )
    if kind == 6 and not predicate.is_state and predicate.may_progress:
        count, cuantos = dice.choice(
            (
                ("an hour", "una hora"),
                ("two hours", "dos horas"),
                ("three years", "tres años"),
                ("a week", "una semana"),
                ("ten minutes", "diez minutos"),
                ("five years", "cinco años"),
                ("a long time", "mucho tiempo"),
                ("half an hour", "media hora"),
                ("six months", "seis meses"),
            )
        )
        lleva = spanish.conjugate("llevar", "present", subject.person)
        doing = spanish.attach(spanish.gerund(predicate.infinitive), predicate.pronouns(subject.person))
        doing = f"{doing} {predicate.after}"
        if not any(word in predicate.english for word in ("for ", "at ", " on ")):
            return (
                f"{subject.english} {have} been {predicate.english_gerund} for {count}",
                f"{subject.begins()}{lleva} {cuantos} {doing}",
            )
    if kind == 7 and not predicate.is_state:
        return f"{subject.english} will never {predicate.english}", f"{subject.begins()}nunca {whole('future')}"
    en, es = dice.choice(NEVER[:10])
    return f"{subject.english} {en} {present(subject, predicate)}", f"{subject.begins()}{es} {whole('present')}"


def _first(subject: Subject) -> str:
    return f"{subject.spanish} " if subject in (HE, SHE) or subject.english == "they" else ""


def _last(subject: Subject) -> str:
    return "" if _first(subject) else subject.ends()


NOTHING = WORDINGS["nothing"]
NO_ONE = WORDINGS["no_one"]
SOMETHING = WORDINGS["something"]


def nothing(draft: Draft) -> Both:
    """I do not understand anything. No entiendo nada. There is nothing to eat. No hay nada que comer."""
    dice = draft.dice
    subject = personal(draft)
    kind = dice.below(8)
    if kind < 3:
        verb, infinitive = dice.choice(NOTHING)
        predicate = Predicate(
            verb,
            "",
            infinitive,
            "",
            flags="s" if verb in ("understand", "know", "want", "need", "have", "believe") else "",
        )
        form = dice.choice(
            ("present", past_of(predicate), "future", "can") if not predicate.is_state else ("present", "imperfect")
        )
        if verb in ("eat", "hear", "see", "find", "say", "do", "buy") and form == "present" and dice.chance(0.5):
            form = "past"
        draft.record("nothing", verb, subject.english)
        en, es = deny(subject, predicate, form)
        if dice.chance(0.15) and form in ("present", "past", "imperfect"):
            _, _, whole = predicates.english_parts(predicate, subject.person, form)
            return f"{subject.english} {whole} nothing", f"{es} nada"
        return f"{en} anything", f"{es} nada"
    if kind == 3:
        verb, infinitive = dice.choice(NO_ONE)
        predicate = Predicate(verb, "", infinitive, "", flags="s" if verb in ("know", "understand", "love") else "")
        en, es = deny(
            subject,
            predicate,
            dice.choice(("present", "past", "future"))
            if not predicate.is_state
            else dice.choice(("present", "imperfect")),
        )
        return f"{en} {dice.choice(('anyone', 'anybody'))}", f"{es} a nadie"
    what, que = dice.choice(SOMETHING)
    if kind == 4:
        return f"there is nothing {what}", f"no hay nada {que}"
    if kind == 5:
        en, es = deny(
            subject,
            Predicate("have", "anything " + what, "tener", "nada " + que, flags="s"),
            dice.choice(("present", "imperfect")),
        )
        return en, es if "ponerme" not in es or subject is I else es.replace(
            "ponerme", "ponerse" if subject.person in (2, 4) else "ponerte" if subject.person == 1 else "ponernos"
        )
    if kind == 6:
        en, es = affirm(subject, Predicate("have", "something " + what, "tener", "algo " + que, flags="s"), "present")
        return en, es if "ponerme" not in es or subject is I else es.replace(
            "ponerme", "ponerse" if subject.person in (2, 4) else "ponerte" if subject.person == 1 else "ponernos"
        )
    who = dice.choice((YOU, YOU, YOU, THEY, HE, SHE))
    word, algo = dice.choice((("anything", "algo"), ("something", "algo")))
    verb, querer = dice.choice(
        (("have", "tener"), ("want", "querer"), ("need", "necesitar"), ("see", "ver"), ("know", "saber"))
    )
    if verb in ("see", "know"):
        what, que = "", ""
    if "ponerme" in que:
        what, que = "to eat", "de comer" if verb != "have" else "que comer"
    en, es = ask(who, Predicate(verb, f"{word} {what}", querer, f"{algo} {que}", flags="s"), "present")
    return f"{en}?", f"¿{es}?"


def any_(draft: Draft) -> Both:
    """I have no money. No tengo dinero. Do you have any questions? ¿Tienes alguna pregunta? There isn't any milk."""
    dice = draft.dice
    subject = personal(draft)
    is_mass = dice.chance(0.4)
    word = (
        tables.draw(draft, "nothing_m,food_m,drink_m")
        if is_mass
        else tables.draw(draft, "thing,idea,counted_s,place,fruit").plural()
    )
    draft.record("any", word.english, subject.english)
    single = next(
        (one for kind in ("thing", "idea", "place", "fruit") for one in tables.WORDS[kind] if one.plural() == word),
        None,
    )
    kind = dice.below(9)
    have = Predicate("have", "", "tener", "", flags="s")
    where, donde = dice.choice(
        (
            ("here", "aquí"),
            ("in the fridge", "en la nevera"),
            ("on the table", "en la mesa"),
            ("in the kitchen", "en la cocina"),
            ("near here", "cerca de aquí"),
            ("", ""),
        )
    )
    some = word.spanish
    if single:
        some = f"{'algún' if single.gender == 'm' else 'alguna'} {single.spanish}"
    if kind == 0:
        en, es = deny(subject, have, "present")
        return f"{en} any {word.english}", f"{es} {word.spanish}"
    if kind == 1:
        has = "has" if subject.person == 2 else "have"
        return (
            f"{subject.english} {has} no {word.english}",
            f"{subject.begins()}no {spanish.conjugate('tener', 'present', subject.person)} {word.spanish}",
        )
    if kind == 2:
        return (
            f"there is no {word.english} {where}" if is_mass else f"there are no {word.english} {where}"
        ), f"no hay {word.spanish} {donde}"
    if kind == 3:
        return (
            f"there isn't any {word.english} {where}" if is_mass else f"there aren't any {word.english} {where}"
        ), f"no hay {word.spanish} {donde}"
    if kind == 4:
        return (
            f"is there any {word.english} {where}?" if is_mass else f"are there any {word.english} {where}?"
        ), f"¿hay {word.spanish if is_mass else some} {donde}?"
    if kind == 5:
        who = dice.choice((YOU, YOU, THEY))
        return (
            f"do {who.english} have any {word.english}?",
            f"¿{who.begins()}{spanish.conjugate('tener', 'present', who.person)} {word.spanish if is_mass else some}?",
        )
    if kind == 6:
        mucho = spanish.inflect(dice.choice(("mucho",)), word.gender, word.number)
        much = "much" if is_mass else "many"
        en, es = deny(subject, have, "present")
        return f"{en} {much} {word.english}", f"{es} {mucho} {word.spanish}"
    if kind == 7:
        cuanto = spanish.inflect("cuánto", word.gender, word.number)
        many = "how much" if is_mass else "how many"
        if dice.chance(0.4):
            there = "is there" if is_mass else "are there"
            return f"{many} {word.english} {there} {where}?", f"¿{cuanto} {word.spanish} hay {donde}?"
        who = subject if subject.english not in ("I", "we") else YOU
        verb, tener = dice.choice((("have", "tener"), ("need", "necesitar"), ("want", "querer"), ("have", "tener")))
        return (
            f"{many} {word.english} {english.do(who.person)} {who.english} {verb}?",
            f"¿{cuanto} {word.spanish} {spanish.conjugate(tener, 'present', who.person)}{who.ends()}?",
        )
    more, mas = dice.choice(
        (
            ("more", "más"),
            ("enough", "suficiente"),
            ("a little more" if is_mass else "some more", "un poco más de" if is_mass else "más"),
        )
    )
    if mas == "suficiente":
        mas = "suficiente" if is_mass else "suficientes"
    needs = dice.choice((("need", "necesitar"), ("have", "tener"), ("want", "querer")))
    en, es = affirm(
        subject, Predicate(needs[0], f"{more} {word.english}", needs[1], f"{mas} {word.spanish}", flags="s"), "present"
    )
    return en, es


FRAMES: Frames = (
    (6.0, adverbs),
    (3.0, nothing),
    (4.0, any_),
)
