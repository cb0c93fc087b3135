"""Sentences of everyday life made of one predicate: statements, questions, orders, requests, tastes."""

from __future__ import annotations

from phrases import english, predicates, spanish, tables
from phrases.clauses import FUTURE, HABITS, NOW, PAST
from phrases.draft import Draft, Frames
from phrases.predicates import Predicate, affirm, ask, deny, forbid, order, past_of
from phrases.subjects import HE, SHE, THEY, WE, YOU, I, Subject
from phrases.tables import WORDINGS, Both

NOBODY, SOMEONE = Subject("nobody", "nadie", 2), Subject("someone", "alguien", 2)
EVERYONE = Subject("everyone", "todo el mundo", 2)

MORE_HABITS = WORDINGS["habits"]
MORE_PAST = WORDINGS["past"]
MORE_FUTURE = WORDINGS["future"]
DURATION = WORDINGS["duration"]
MANNER = WORDINGS["manner"]
OPENINGS = WORDINGS["openings"]
QUESTION_WORDS = (("when", "cuándo"), ("why", "por qué"), ("where", "dónde"), ("how", "cómo"))


def subject_for(draft: Draft) -> Subject:
    """Return a subject: pronouns most often."""
    kind = draft.dice.weighted((62, 30, 8))
    if kind == 0:
        return draft.dice.choice((I, I, I, YOU, YOU, HE, SHE, WE, WE, THEY))
    return draft.anyone() if kind == 1 else draft.dice.choice((NOBODY, SOMEONE, EVERYONE))


def personal(draft: Draft) -> Subject:
    """Return a subject that is no indefinite pronoun."""
    subject = subject_for(draft)
    return I if subject.english in tables.INDEFINITE else subject


def when(draft: Draft, predicate: Predicate, form: str) -> Both:
    """Return an adverb of time that fits the form, often an empty one."""
    dice = draft.dice
    if (
        predicate.is_state
        or dice.chance(0.55)
        or any(word in predicate.english for word in (" at ", " on ", "every", "for ", "o'clock"))
    ):
        return "", ""
    if dice.chance(0.12) and form in ("past", "future", "going", "can") and " with " not in f" {predicate.english} ":
        return dice.choice(MANNER)
    if form in ("past", "was") and dice.chance(0.2) and not any(word in predicate.flags for word in "p"):
        return dice.choice(DURATION)
    rows = {
        "present": HABITS + MORE_HABITS,
        "past": PAST + MORE_PAST,
        "future": FUTURE + MORE_FUTURE,
        "going": FUTURE + MORE_FUTURE,
        "now": NOW,
        "can": FUTURE + MORE_FUTURE,
        "must": FUTURE + MORE_FUTURE,
    }
    return dice.choice(rows[form]) if form in rows else ("", "")


def form_of(draft: Draft, predicate: Predicate) -> str:
    """Return a random form that the predicate can have."""
    if predicate.is_state:
        return draft.dice.choice(("present", "present", "present", "imperfect", "imperfect", "future", "would"))
    forms = [
        "past",
        "past",
        "past",
        "present",
        "present",
        "future",
        "future",
        "going",
        "perfect",
        "pluperfect",
        "would",
    ]
    if predicate.may_progress:
        forms += ["now", "now", "was"]
    if predicate.may_be_asked:
        forms += ["can", "can", "should", "must", "could"]
    return draft.dice.choice(forms)


WRAPPERS = (
    # English verb, link, Spanish infinitive, its link, flags: s a state, n only its own sense
    ("want", "to", "querer", "", "s", 14),
    ("have", "to", "tener", "que", "", 14),
    ("need", "to", "necesitar", "", "s", 9),
    ("try", "to", "intentar", "", "", 6),
    ("start", "-ing", "empezar", "a", "p", 4),
    ("begin", "to", "empezar", "a", "p", 2),
    ("stop", "-ing", "dejar", "de", "p", 4),
    ("forget", "to", "olvidar", "", "p", 4),
    ("learn", "to", "aprender", "a", "", 2),
    ("decide", "to", "decidir", "", "p", 3),
    ("prefer", "to", "preferir", "", "s", 4),
    ("hope", "to", "esperar", "", "s", 2),
    ("promise", "to", "prometer", "", "p", 2),
    ("finish", "-ing", "terminar", "de", "p", 2),
    ("plan", "to", "pensar", "", "s", 2),
    ("hate", "-ing", "odiar", "", "s", 2),
    ("know", "how to", "saber", "", "s", 2),
    ("be", "able to", "poder", "", "s", 4),
    ("feel", "like -ing", "tener", "ganas de", "s", 3),
    ("remember", "to", "acordarse", "de", "p", 2),
    ("be", "afraid to", "tener", "miedo de", "s", 1.5),
    ("refuse", "to", "negarse", "a", "p", 1.5),
    ("manage", "to", "conseguir", "", "p", 1.5),
    ("be", "about to", "estar", "a punto de", "s", 2),
    ("be", "ready to", "estar", "listo* para", "s", 1.5),
    ("be", "too tired to", "estar", "demasiado cansado* para", "s", 1.5),
    ("be", "happy to", "alegrarse", "de", "s", 1),
    ("have", "time to", "tener", "tiempo para", "s", 2),
    ("come", "to", "venir", "a", "", 2),
    ("go", "to the park to", "ir", "al parque para", "", 1),
    ("stay at home", "to", "quedarse", "en casa para", "", 1),
)


def wrapped(draft: Draft, subject: Subject, predicate: Predicate) -> Predicate:
    """Return a predicate that has this one as its infinitive: “wants to eat”, “tiene que comer”."""
    dice = draft.dice
    verb, link, infinitive, then, flags, _ = WRAPPERS[dice.weighted([row[-1] for row in WRAPPERS])]
    if link == "like -ing":
        under = predicate.under(f"{verb} like", "-ing", infinitive, then, subject.person, flags)
    elif verb == "stay at home":
        under = predicate.under("stay", "at home to", infinitive, then, subject.person, flags)
    else:
        under = predicate.under(verb, link, infinitive, then, subject.person, flags)
    agreeing = (
        spanish.inflect("listo", subject.gender, subject.number),
        spanish.inflect("cansado", subject.gender, subject.number),
    )
    after = under.after.replace("listo*", agreeing[0]).replace("cansado*", agreeing[1])
    first, *rest = under.verb.split()
    return Predicate(
        first, " ".join([*rest, under.rest]), under.infinitive, after, under.clitics, under.is_reflexive, flags
    )


def form_of_wrapped(draft: Draft, predicate: Predicate) -> str:
    """Return a random form that fits a predicate with an infinitive."""
    past = past_of(predicate)
    if predicate.verb == "be" and predicate.rest.startswith("able"):
        return draft.dice.choice(("future", "future", "would"))
    if predicate.infinitive == "tener" and predicate.rest.startswith("to "):
        return draft.dice.choice(("present", "present", "past", "future", "would"))
    if predicate.infinitive in ("olvidar", "decidir", "negar", "conseguir"):
        return "past"
    return draft.dice.choice(
        ("present", "present", past, past, "future") if predicate.verb not in ("prefer", "feel") else ("present",)
    )


def _said(draft: Draft, subject: Subject, predicate: Predicate, form: str) -> Both:
    """Return a statement, a denial or a question."""
    dice = draft.dice
    time, cuando = when(draft, predicate, form)
    kind = dice.weighted((5, 2.4, 2.4))
    if kind == 1 and subject.english not in tables.INDEFINITE:
        if form == "would" or form == "must":
            form = "should"
        en, es = deny(subject, predicate, form)
        return (f"no, {en} {time}", f"no, {es} {cuando}") if dice.chance(0.05) else (f"{en} {time}", f"{es} {cuando}")
    if kind == 2 and subject.english not in ("I", "we", "nobody") and form not in ("must", "should", "pluperfect"):
        if subject is SOMEONE:
            subject = Subject("anyone", "alguien", 2)
        en, es = ask(subject, predicate, form)
        return f"{en} {time}?", f"¿{es} {cuando}?"
    en, es = affirm(subject, predicate, form)
    if time and dice.chance(0.12) and form != "now" and (time, cuando) not in MANNER:
        return f"{time} {en}", f"{cuando} {es}"
    extra = dice.below(25)
    if extra == 0:
        return f"yes, {en} {time}", f"sí, {es} {cuando}"
    if extra == 1:
        return f"{en} {time}, right?", f"{es} {cuando}, ¿verdad?"
    if extra < 4 and form in ("past", "future", "imperfect"):
        opening, primero = dice.choice(OPENINGS)
        return f"{opening} {en} {time}", f"{primero} {es} {cuando}"
    return f"{en} {time}", f"{es} {cuando}"


def statement(draft: Draft) -> Both:
    """We have chosen the novel. Hemos elegido la novela."""
    subject = subject_for(draft)
    predicate = predicates.draw(draft, subject)
    form = form_of(draft, predicate)
    return _said(draft, subject, predicate, form)


def with_infinitive(draft: Draft) -> Both:
    """I have to go home. Tengo que ir a casa."""
    subject = subject_for(draft)
    predicate = wrapped(draft, subject, action(draft, subject))
    return _said(draft, subject, predicate, form_of_wrapped(draft, predicate))


def action(draft: Draft, subject: Subject) -> Predicate:
    """Return a predicate that one can do on purpose."""
    predicate = predicates.draw(draft, subject, without="o")
    while predicate.is_state:
        predicate = predicates.draw(draft, subject, without="o")
    return predicate


def event(draft: Draft, subject: Subject) -> Predicate:
    """Return a predicate that is no state."""
    predicate = predicates.draw(draft, subject)
    while predicate.is_state:
        predicate = predicates.draw(draft, subject)
    return predicate


def would_like(draft: Draft) -> Both:
    """I would like to visit the museum. Me gustaría visitar el museo."""
    subject = personal(draft)
    predicate = action(draft, subject)
    bound = predicate.bound(subject.person)
    if draft.dice.chance(0.3) and subject.english not in ("I", "we"):
        return (
            f"would {subject.english} like to {predicate.english}?",
            f"¿{subject.to_whom} {subject.reflexive} gustaría {bound}?",
        )
    if draft.dice.chance(0.15):
        return (
            f"{subject.english} would not like to {predicate.english}",
            f"{subject.to_whom} no {subject.reflexive} gustaría {bound}",
        )
    if draft.dice.chance(0.2):
        return (
            f"{subject.english} would love to {predicate.english}",
            f"{subject.to_whom} {subject.reflexive} encantaría {bound}",
        )
    return (
        f"{subject.english} would like to {predicate.english}",
        f"{subject.to_whom} {subject.reflexive} gustaría {bound}",
    )


def likes_doing(draft: Draft) -> Both:
    """She likes swimming. A ella le gusta nadar."""
    dice = draft.dice
    subject = personal(draft)
    predicate = action(draft, subject)
    bound = predicate.bound(subject.person)
    verb, gusta = dice.choice((("like", "gusta"), ("like", "gusta"), ("love", "encanta")))
    to = "" if subject.english in ("I", "you", "we") else subject.to_whom + " "
    doing = predicate.english_gerund if dice.chance(0.6) else f"to {predicate.english}"
    if verb == "like" and dice.chance(0.3):
        return (
            f"{subject.english} {english.do(subject.person)} not like {doing}",
            f"{to}no {subject.reflexive} gusta {bound}",
        )
    if verb == "like" and dice.chance(0.3) and subject.english not in ("I", "we"):
        return (
            f"{english.do(subject.person)} {subject.english} like {doing}?",
            f"¿{to}{subject.reflexive} gusta {bound}?",
        )
    likes = english.third(verb) if subject.person == 2 else verb
    return f"{subject.english} {likes} {doing}", f"{to}{subject.reflexive} {gusta} {bound}"


def likes_thing(draft: Draft) -> Both:
    """I like this song. Me gusta esta canción."""
    dice = draft.dice
    subject = subject_for(draft)
    subject = EVERYONE if subject in (SOMEONE, NOBODY) else subject
    if dice.chance(0.5):
        en, es, number = tables.hobby(draft)
    else:
        word = tables.draw(draft, "show,drink_m,food_m,animal,clothes,place,thing,food_s,fruit")
        article = dice.choice(("the", "this", "my")) if word.is_counted else dice.choice(("0", "the"))
        if word.is_counted and dice.chance(0.3):
            word, article = word.plural(), "0"
        en, es = tables.with_article(draft, article, word, dice.choice((I, YOU)))
        es, number = (word.the() if article == "0" else es), word.number
    draft.record("likes", subject.english, en)
    to = "" if subject.english in ("I", "you", "we") else subject.to_whom + " "
    to_me, n = subject.reflexive, "n" if number == 2 else ""
    who, person = subject.english, subject.person
    kind = dice.below(10)
    likes = english.third("like") if person == 2 else "like"
    much, mucho = dice.choice((("", ""), ("", ""), (" very much", " mucho"), (" a lot", " mucho")))
    if kind < 2:
        return f"{who} {english.do(person)} not like {en}{much}", f"{to}no {to_me} gusta{n}{mucho} {es}"
    if kind < 4 and who not in ("I", "we"):
        return f"{english.do(person)} {who} like {en}?", f"¿{to}{to_me} gusta{n} {es}?"
    if kind == 4:
        return (
            f"{who} liked {en}{much}",
            f"{to}{to_me} gustó{mucho} {es}" if not n else f"{to}{to_me} gustaron{mucho} {es}",
        )
    if kind == 5 and who not in ("I", "we"):
        return f"did {who} like {en}?", f"¿{to}{to_me} {'gustaron' if n else 'gustó'} {es}?"
    if kind == 6:
        return f"{who} {'loves' if person == 2 else 'love'} {en}", f"{to}{to_me} encanta{n} {es}"
    if kind == 7:
        return f"{who} did not like {en}", f"{to}no {to_me} {'gustaron' if n else 'gustó'} {es}"
    return f"{who} {likes} {en}{much}", f"{to}{to_me} gusta{n}{mucho} {es}"


def everyone_likes(draft: Draft) -> Both:
    """Do you like him? ¿Te gusta él? What do you like? What kind of music do you like?"""
    dice = draft.dice
    subject = dice.choice((YOU, YOU, YOU, HE, SHE, THEY, draft.name()))
    to = f" {subject.to_whom}" if subject.spanish else ""
    kinds = (
        ("kind of music", "tipo de música"),
        ("sport", "deporte"),
        ("kind of films", "tipo de películas"),
        ("colour", "color"),
        ("color", "color"),
        ("kind of food", "tipo de comida"),
        ("kind of books", "tipo de libros"),
        ("animal", "animal"),
        ("film", "película"),
        ("one", ""),
        ("song", "canción"),
        ("fruit", "fruta"),
    )
    en, es = dice.choice(kinds)
    draft.record("what kind", en, subject.english)
    do, word = english.do(subject.person), "which" if en == "one" or dice.chance(0.25) else "what"
    if dice.chance(0.4):
        prefer = spanish.conjugate("preferir", "present", subject.person)
        return (
            f"{word} {en} {do} {subject.english} prefer?",
            f"¿{'cuál' if en == 'one' else f'qué {es}'} {prefer}{subject.ends()}?",
        )
    if en == "one":
        return f"which one {do} {subject.english} like?", f"¿cuál {subject.reflexive} gusta{to}?"
    return f"{word} {en} {do} {subject.english} like?", f"¿qué {es} {subject.reflexive} gusta{to}?"


def asks(draft: Draft) -> Both:
    """Questions with when, why, where, how, what time, how often, with whom, since when."""
    dice = draft.dice
    subject = personal(draft)
    predicate = predicates.draw(draft, subject, without="o") if dice.chance(0.3) else action(draft, subject)
    form = form_of(draft, predicate)
    while form in ("perfect", "pluperfect", "would", "could", "must") or (form == "should" and subject is not I):
        form = form_of(draft, predicate)
    word, palabra = dice.choice(QUESTION_WORDS[:2])
    busy = any(
        at in predicate.english for at in (" at ", " in ", " on ", " to ", "home", "here", "every", "early", "late")
    )
    kind = dice.below(10)
    if kind == 0 and not busy:
        word, palabra = "where", "dónde"
    elif kind == 1 and not predicate.is_state and not busy:
        word, palabra = "what time", "a qué hora"
    elif kind == 2 and not busy and form in ("now", "present", "past", "going", "future"):
        word, palabra = "with whom" if dice.chance(0.5) else "who", "con quién"
        if " with " in f" {predicate.english} ":
            word, palabra = "why", "por qué"
    elif kind == 3 and not predicate.is_state:
        word, palabra, form = "how often", "con qué frecuencia", "present"
    elif kind == 4:
        word, palabra = "why", "por qué"
        if form != "should":
            return _why_not(draft, subject, predicate, form)
    elif kind == 5 and form in ("can", "past", "future"):
        word, palabra = "how", "cómo"
    if predicate.is_state:
        word, palabra = "why", "por qué"
    en, es = ask(subject, predicate, form, pronoun_first=False)
    if word == "who":
        return f"who {en} with?", f"¿con quién {es}?"
    return f"{word} {en}?", f"¿{palabra} {es}?"


def _why_not(draft: Draft, subject: Subject, predicate: Predicate, form: str) -> Both:
    auxiliary, rest, _ = predicates.english_parts(predicate, subject.person, form)
    head, tail = predicates.spanish_parts(predicate, subject.person, form, is_denied=True)
    if auxiliary in ("am", "can"):
        en = f"why {auxiliary} {subject.english} not {rest}?"
    else:
        auxiliary = {"will": "won't", "would": "wouldn't"}.get(auxiliary, f"{auxiliary} not")
        en = (
            f"why {auxiliary} {subject.english} {rest}?"
            if "'" in auxiliary
            else f"why {auxiliary[:-4]}n't {subject.english} {rest}?"
        )
    if subject.spanish and not (subject in (HE, SHE) or subject.english == "they"):
        return en, f"¿por qué no {head} {subject.spanish} {tail}?" if form not in (
            "going",
        ) else f"¿por qué {subject.spanish} no {head} {tail}?"
    return en, f"¿por qué {subject.begins()}no {head} {tail}?"


WHAT = WORDINGS["what"]


def what(draft: Draft) -> Both:
    """What are you doing here? ¿Qué estás haciendo aquí? What do you want to eat? ¿Qué quieres comer?"""
    dice = draft.dice
    subject = dice.choice((YOU, YOU, YOU, YOU, I, WE, HE, SHE, THEY)) if dice.chance(0.75) else draft.anyone()
    verb, infinitive = dice.choice(WHAT)
    is_state = verb in ("want", "need", "know", "think")
    predicate = Predicate(verb, "", infinitive, "", flags="s" if is_state else "")
    kind = dice.below(9)
    if kind < 3 and not is_state and verb not in ("lose", "find", "hear", "see"):
        modal = dice.choice(
            (
                ("want", "to", "querer", ""),
                ("want", "to", "querer", ""),
                ("have", "to", "tener", "que"),
                ("need", "to", "necesitar", ""),
            )
        )
        predicate = predicate.under(*modal, subject.person)
        form = dice.choice(("present", "present", "present", "imperfect"))
        if modal[0] == "have" and form == "imperfect":
            form = "past"
    elif kind == 3 and not is_state:
        form = dice.choice(("can", "should"))
    else:
        form = (
            dice.choice(("present", "past", "past", "future", "going", "now", "was"))
            if not is_state
            else dice.choice(("present", "imperfect"))
        )
        if verb in ("lose", "find", "hear", "see", "say"):
            form = dice.choice(("past", "past", "future", "going"))
    place, donde = dice.choice(
        (
            ("", ""),
            ("", ""),
            ("", ""),
            ("here", "aquí"),
            ("there", "allí"),
            ("for dinner", "para cenar"),
            ("today", "hoy"),
            ("tomorrow", "mañana"),
            ("now", "ahora"),
            ("last weekend", "el fin de semana pasado"),
            ("yesterday", "ayer"),
            ("this afternoon", "esta tarde"),
            ("at the market", "en el mercado"),
            ("at school", "en la escuela"),
        )
    )
    is_past = form in ("past", "was", "imperfect")
    if place in ("last weekend", "yesterday") and not is_past:
        place, donde = "", ""
    if place in ("tomorrow", "now", "this afternoon", "today") and (is_past or (place == "now" and form != "now")):
        place, donde = "", ""
    if place == "tomorrow" and form in ("now", "present"):
        place, donde = "", ""
    if place == "for dinner" and verb not in ("eat", "buy", "cook", "order", "prepare", "bring"):
        place, donde = "", ""
    draft.record("what", verb, subject.english)
    en, es = ask(subject, predicate, form, pronoun_first=False)
    return f"what {en} {place}?", f"¿qué {es} {donde}?"


def who(draft: Draft) -> Both:
    """Who ate my sandwich? ¿Quién comió mi bocadillo?"""
    predicate = predicates.draw(draft, HE)
    while " his " in f" {predicate.english} ":
        predicate = predicates.draw(draft, HE)
    form = form_of(draft, predicate)
    while form in ("would", "pluperfect", "could", "should", "must"):
        form = form_of(draft, predicate)
    en, es = affirm(Subject("who", "quién", 2), predicate, form)
    return f"{en}?", f"¿{es}?"


POLITE = WORDINGS["polite"]
MAY_I = WORDINGS["may_i"]
TOGETHER = WORDINGS["together"]


def polite(draft: Draft) -> Both:
    """Can I pay by card? ¿Puedo pagar con tarjeta?"""
    dice = draft.dice
    rows, subject = ((POLITE, YOU), (MAY_I, I), (TOGETHER, WE))[dice.weighted((4, 4, 2))]
    predicate = action(draft, subject)
    en, es = dice.choice(rows)
    plain = predicates.spanish_whole(predicate, subject.person, "present")
    es = es.replace("{1}", plain).replace("{}", predicate.bound(subject.person))
    return en.replace("{}", predicate.english).replace("{ing}", predicate.english_gerund), es


def orders(draft: Draft) -> Both:
    """Come with me. Ven conmigo. Do not touch it. No lo toques."""
    dice = draft.dice
    predicate = action(draft, YOU)
    en, es = forbid(predicate) if dice.chance(0.33) else order(predicate)
    kind = dice.below(12)
    if kind == 0:
        return f"please {en}", f"por favor, {es}"
    if kind == 1:
        return f"{en}, please", f"{es}, por favor"
    if kind == 2:
        who = draft.name()
        return (
            (f"{who.english}, {en}", f"{who.spanish}, {es}")
            if dice.chance(0.5)
            else (f"{en}, {who.english}", f"{es}, {who.spanish}")
        )
    if kind == 3:
        return f"{en}!", f"¡{es}!"
    if kind == 4 and not en.startswith("do not"):
        return f"you can {en} now", f"ahora puedes {predicate.bound(1)}"
    return en, es


FRAMES: Frames = (
    (16.0, statement),
    (10.0, with_infinitive),
    (3.0, would_like),
    (3.0, likes_doing),
    (4.0, likes_thing),
    (0.8, everyone_likes),
    (7.0, asks),
    (3.0, what),
    (3.0, who),
    (9.0, polite),
    (6.0, orders),
)
