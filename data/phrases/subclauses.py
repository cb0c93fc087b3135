"""Sentences of two clauses: wishes, thoughts, reports, questions in them; conjunctions; relative clauses."""

from __future__ import annotations

from phrases import english, predicates, spanish, subjects, tables
from phrases.draft import Draft, Frames
from phrases.predicates import Predicate, affirm, deny, present
from phrases.sentences import WHAT, action, event, form_of, personal
from phrases.subjects import HE, SHE, THEY, WE, YOU, I, Subject
from phrases.tables import WORDINGS, Both


def wishes(draft: Draft) -> Both:
    """I want you to help me. Quiero que me ayudes. Tell him to wait. Dile que espere."""
    dice = draft.dice
    other = dice.choice((YOU, YOU, HE, SHE, THEY, WE)) if dice.chance(0.7) else draft.third_person()
    predicate = action(draft, other)
    him = {"you": "you", "he": "him", "she": "her", "they": "them", "we": "us"}.get(other.english, other.english)
    head, tail = predicates.spanish_parts(predicate, other.person, "subjunctive")
    past_head, past_tail = predicates.spanish_parts(predicate, other.person, "past subjunctive")
    que = f"{other.begins()}{head} {tail}".strip()
    drop, drop_past = f"{head} {tail}".strip(), f"{past_head} {past_tail}".strip()
    me = ("me", "te", "le", "nos", "les")[other.person]
    named = f" a {other.spanish}" if other.spanish and other not in (HE, SHE) and other.english != "they" else ""
    kind = dice.below(9)
    if kind < 2 and other.person != 0:
        return f"I want {him} to {predicate.english}", f"quiero que {que}"
    if kind == 2 and other.english != "you":
        return f"do you want {him} to {predicate.english}?", f"¿quieres que {que}?"
    if kind == 3:
        predicate = action(draft, I)
        head, tail = predicates.spanish_parts(predicate, 0, "subjunctive")
        return f"do you want me to {predicate.english}?", f"¿quieres que {head} {tail}?"
    if kind == 4 and other.person in (2, 4):
        return f"tell {him} to {predicate.english}", f"{'diles' if other.person == 4 else 'dile'}{named} que {drop}"
    if kind == 5:
        who = dice.choice((HE, SHE, draft.name(), subjects.FAMILY[0], subjects.FAMILY[1], subjects.OTHERS[5]))
        if other.english not in ("he", "she") and other.english != who.english:
            verb, dijo = dice.choice((("told", "dijo"), ("asked", "pidió")))
            return (
                f"{who.english} {verb} {him} to {predicate.english}",
                f"{who.spanish} {me} {dijo}{named} que {drop_past}",
            )
    if kind == 6:
        return f"it is important that {other.english} {present(other, predicate)}", f"es importante que {que}"
    if kind == 7:
        return f"I hope {other.english} {present(other, predicate)}", f"espero que {que}"
    en, es = dice.choice(
        (
            ("I hope that {}", "espero que {}"),
            ("it is possible that {}", "es posible que {}"),
            ("maybe {} will", ""),
            ("I do not think that {}", "no creo que {}"),
            ("I don't think {}", "no creo que {}"),
        )
    )
    if not es:
        will, later = predicates.spanish_parts(predicate, other.person, "future")
        return f"maybe {other.english} will {predicate.english}", f"quizás {other.begins()}{will} {later}"
    return en.format(f"{other.english} {present(other, predicate)}"), es.format(que)


def not_think(draft: Draft) -> Both:
    """I don't think he is right. No creo que tenga razón; with states."""
    dice = draft.dice
    other = dice.choice((YOU, HE, SHE, THEY, WE)) if dice.chance(0.7) else draft.third_person()
    predicate = predicates.draw(draft, other)
    while not predicate.is_state:
        predicate = predicates.draw(draft, other)
    clause = f"{other.english} {present(other, predicate)}"
    que = " ".join(filter(None, (other.spanish, *predicates.spanish_parts(predicate, other.person, "subjunctive"))))
    en, es = dice.choice(
        (
            ("I do not think that {}", "no creo que {}"),
            ("I don't think {}", "no creo que {}"),
            ("I hope {}", "espero que {}"),
            ("I am glad that {}", "me alegro de que {}"),
            ("I'm sorry that {}", "siento que {}"),
            ("it is strange that {}", "es raro que {}"),
            ("it is good that {}", "es bueno que {}"),
            ("maybe {}", "quizás {}"),
        )
    )
    return en.format(clause), es.format(que)


SAYS = WORDINGS["says"]
SAID = WORDINGS["said"]


def reports(draft: Draft) -> Both:
    """He said that he was tired. Él dijo que estaba cansado."""
    dice = draft.dice
    subject = personal(draft)
    predicate = predicates.draw(draft, subject)
    is_past = dice.chance(0.45)
    said, dijo = dice.choice(SAID if is_past else SAYS)
    if is_past:
        form = "imperfect" if predicate.is_state else dice.choice(("would", "pluperfect"))
    else:
        form = form_of(draft, predicate)
        while form in ("pluperfect", "was", "could"):
            form = form_of(draft, predicate)
    drops = (subject in (HE, SHE) and said.split()[0] == subject.english) or (
        subject is THEY and said.startswith("they")
    )
    en, es = affirm(subject, predicate, form, drops=drops)
    if not is_past and dice.chance(0.25) and form not in ("would", "must"):
        en, es = deny(subject, predicate, form, drops=drops)
    mark = "?" if dijo.startswith("¿") else ""
    return f"{said} {en}{mark}", f"{dijo} {es}{mark}"


KNOWS = WORDINGS["knows"]


def knows(draft: Draft) -> Both:
    """I don't know where she is. No sé dónde está ella."""
    dice = draft.dice
    know, saber = dice.choice(KNOWS)
    subject = personal(draft)
    kind = dice.below(10)
    mark = "?" if saber.startswith("¿") else ""
    if kind < 2:
        if dice.chance(0.5):
            word = tables.draw(draft, "place,thing,animal,device,vehicle")
            en, es = tables.with_article(draft, dice.choice(("the", "my")), word, dice.choice((I, YOU)))
            draft.record("know where", en)
            is_, esta = ("are" if word.many else "is"), ("están" if word.number == 2 else "está")
        else:
            en, es, is_ = subject.english, subject.spanish, english.be(subject.person)
            esta = spanish.conjugate("estar", "present", subject.person)
        if dice.chance(0.25) and know not in ("ask him", "tell me"):
            is_, esta = (
                ("were" if is_ == "are" else "was"),
                {"está": "estaba", "están": "estaban", "estoy": "estaba", "estás": "estabas", "estamos": "estábamos"}[
                    esta
                ],
            )
        return f"{know} where {en} {is_}{mark}", f"{saber} dónde {esta} {es}{mark}"
    if kind < 4:
        predicate = action(draft, subject)
        how, cómo = dice.choice((("how to", "cómo"), ("where to", "dónde"), ("when to", "cuándo")))
        if predicate.is_reflexive:
            return f"{know} if it is true{mark}", f"{saber} si es verdad{mark}"
        return f"{know} {how} {predicate.english}{mark}", f"{saber} {cómo} {predicate.bound(0)}{mark}"
    if kind == 4:
        verb, infinitive = dice.choice(WHAT)
        predicate = Predicate(verb, "", infinitive, "", flags="s" if verb in ("want", "need", "know", "think") else "")
        form = "present" if predicate.is_state else dice.choice(("past", "going", "now", "future"))
        what, que = "what", "qué"
    elif kind < 7:
        predicate = predicates.draw(draft, subject)
        form = (
            "present"
            if predicate.is_state
            else dice.choice(("past", "future", "now" if predicate.may_progress else "past", "going"))
        )
        what, que = ("why", "por qué") if predicate.is_state or dice.chance(0.5) else ("when", "cuándo")
        if form == "now":
            what, que = "why", "por qué"
    elif kind == 7:
        predicate = predicates.draw(draft, HE)
        form = "present" if predicate.is_state else dice.choice(("past", "future", "going"))
        en, es = affirm(Subject("who", "quién", 2), predicate, form)
        return f"{know} {en}{mark}", f"{saber} {es}{mark}"
    else:
        predicate = predicates.draw(draft, subject)
        form = "present" if predicate.is_state else dice.choice(("past", "future", "can", "going"))
        if "o" in predicate.flags and form == "can":
            form = "future"
        en, es = affirm(subject, predicate, form)
        return f"{know} if {en}{mark}", f"{saber} si {es}{mark}"
    auxiliary, rest, whole = predicates.english_parts(predicate, subject.person, form)
    head, tail = predicates.spanish_parts(predicate, subject.person, form)
    after = (
        f"{head}{subject.ends()} {tail}" if subject.spanish and form != "going" else f"{subject.begins()}{head} {tail}"
    )
    return f"{know} {what} {subject.english} {whole or f'{auxiliary} {rest}'}{mark}", f"{saber} {que} {after}{mark}"


def _clause(draft: Draft, subject: Subject, forms: tuple[str, ...], *, drops: bool = False) -> Both:
    predicate = predicates.draw(draft, subject)
    while predicate.is_state and not {"present", "imperfect"} & set(forms):
        predicate = predicates.draw(draft, subject)
    fitting = [
        form
        for form in forms
        if (form in ("present", "imperfect")) == predicate.is_state or (form == "present" and not predicate.is_state)
    ]
    form = draft.dice.choice(fitting or list(forms))
    make = deny if draft.dice.chance(0.2) and subject.english not in tables.INDEFINITE else affirm
    return make(subject, predicate, form, drops=drops)


def joined(draft: Draft) -> Both:
    """Two clauses with because, but, and, so, when, while, if, before, after."""
    dice = draft.dice
    first, second = personal(draft), personal(draft)
    if dice.chance(0.5):
        second = first
    drops = second == first
    he = {"m": HE, "f": SHE}[first.gender] if first.person == 2 else THEY if first.person == 4 else first
    same = he if drops else second
    kind = dice.weighted((3, 2, 2, 2, 3, 2, 2, 2, 1.5))
    if kind == 0:
        a, b = (("past",), ("imperfect", "past")) if dice.chance(0.5) else (("present", "future", "now"), ("present",))
        one, two = _clause(draft, first, a), _clause(draft, same, b, drops=drops)
        return f"{one[0]} because {two[0]}", f"{one[1]} porque {two[1]}"
    if kind == 1:
        forms = dice.choice((("past", "imperfect"), ("present",), ("future", "going")))
        one, two = _clause(draft, first, forms), _clause(draft, same, forms, drops=drops)
        return f"{one[0]}, but {two[0]}", f"{one[1]}, pero {two[1]}"
    if kind == 2:
        forms = dice.choice((("past",), ("present",), ("future", "going")))
        one, two = _clause(draft, first, forms), _clause(draft, same, forms, drops=drops)
        word, palabra = dice.choice((("and", "y"), ("and then", "y luego"), (", so", ", así que")))
        return f"{one[0]} {word} {two[0]}".replace(" ,", ","), f"{one[1]} {palabra} {two[1]}".replace(" ,", ",")
    if kind == 3:
        one = affirm(first, event(draft, first), "past")
        predicate = predicates.draw(draft, same)
        while not (predicate.is_state or predicate.may_progress):
            predicate = predicates.draw(draft, same)
        two = affirm(same, predicate, "imperfect" if predicate.is_state else "was", drops=drops)
        word, palabra = dice.choice((("when", "cuando"), ("while", "mientras")))
        if word == "when" and (drops or dice.chance(0.5)):
            return f"when {one[0]}, {two[0]}", f"cuando {one[1]}, {two[1]}"
        if word == "when":
            return f"{two[0]} when {one[0]}", f"{two[1]} cuando {one[1]}"
        return f"{one[0]} while {two[0]}", f"{one[1]} {palabra} {two[1]}"
    if kind == 4:
        condition = _clause(draft, first, ("present",))
        predicate = event(draft, same)
        form = dice.choice(("future", "future", "can")) if predicate.may_be_asked else "future"
        result = (deny if dice.chance(0.25) else affirm)(same, predicate, form, drops=drops)
        return f"if {condition[0]}, {result[0]}", f"si {condition[1]}, {result[1]}"
    if kind == 5:
        predicate = event(draft, first)
        when_ = f"{first.english} {predicates.present(first, predicate)}"
        cuando = f"{first.begins()}{predicates.spanish_whole(predicate, first.person, 'subjunctive')}"
        word, palabra = dice.choice(
            (
                ("when", "cuando"),
                ("when", "cuando"),
                ("as soon as", "en cuanto"),
                ("before", "antes de que"),
                ("until", "hasta que"),
            )
        )
        drops = False
        result = affirm(same, event(draft, same), "future", drops=same is first and word in ("when", "as soon as"))
        if word in ("before", "until") and same.person == first.person:
            word, palabra = "when", "cuando"
        if dice.chance(0.4):
            return f"{word} {when_}, {result[0]}", f"{palabra} {cuando}, {result[1]}"
        return f"{result[0]} {word} {when_}", f"{result[1]} {palabra} {cuando}"
    if kind == 6:
        one = _clause(draft, first, dice.choice((("past",), ("future", "going"), ("present",))))
        predicate = action(draft, first)
        word, palabra = dice.choice(
            (("before", "antes de"), ("after", "después de"), ("without", "sin"), ("instead of", "en vez de"))
        )
        return f"{one[0]} {word} {predicate.english_gerund}", f"{one[1]} {palabra} {predicate.bound(first.person)}"
    if kind == 7:
        predicate, goal = action(draft, first), action(draft, first)
        one = affirm(first, predicate, dice.choice(("past", "going", "present", "future")))
        return f"{one[0]} to {goal.english}", f"{one[1]} para {goal.bound(first.person)}"
    predicate = predicates.draw(draft, first)
    auxiliary, rest, whole = predicates.english_parts(predicate, first.person, "past subjunctive")
    past = whole or f"{auxiliary} {rest}"
    si = f"{first.begins()}{predicates.spanish_whole(predicate, first.person, 'past subjunctive')}"
    result = affirm(same, event(draft, same), "would", drops=drops)
    if dice.chance(0.5):
        return f"if {first.english} {past}, {result[0]}", f"si {si}, {result[1]}"
    result = affirm(first, event(draft, first), "would")
    si = predicates.spanish_whole(predicate, first.person, "past subjunctive")
    return f"{result[0]} if {he.english} {past}", f"{result[1]} si {si}"


RELATIVE = (
    Subject("the man", "el hombre", 2),
    Subject("the woman", "la mujer", 2, "f"),
    Subject("the boy", "el chico", 2),
    Subject("the girl", "la chica", 2, "f"),
    Subject("the people", "las personas", 4, "f"),
    Subject("the children", "los niños", 4),
    Subject("the teacher", "el profesor", 2),
    Subject("the doctor", "el médico", 2),
    Subject("the friend", "el amigo", 2),
    Subject("the neighbour", "el vecino", 2),
    Subject("the lady", "la señora", 2, "f"),
)


def relative(draft: Draft) -> Both:
    """The man who lives here is my uncle. El hombre que vive aquí es mi tío. The book that I bought is new."""
    dice = draft.dice
    if dice.chance(0.5):
        head = dice.choice(RELATIVE)
        empty = Subject("who", "que", head.person, head.gender)
        predicate = predicates.draw(draft, head)
        form = form_of(draft, predicate)
        while form in ("would", "pluperfect", "could", "should", "must"):
            form = form_of(draft, predicate)
        en, es = (deny if dice.chance(0.12) else affirm)(empty, predicate, form)
        if dice.chance(0.15):
            en = en.replace("who ", "that ", 1)
        whole = f"{head.english} {en}", f"{head.spanish} {es}"
        kind = dice.below(4)
        if kind == 0:
            know, conozco = dice.choice(
                (
                    ("I know", "conozco a"),
                    ("do you know", "¿conoces a"),
                    ("we saw", "vimos a"),
                    ("I am looking for", "busco a"),
                )
            )
            mark = "?" if conozco[0] == "¿" else ""
            return f"{know} {whole[0]}{mark}", f"{conozco} {whole[1]}{mark}"
        rest = predicates.draw(draft, head)
        while rest.verb != "be":
            rest = predicates.draw(draft, head)
        said = affirm(Subject("", "", head.person, head.gender), rest, "present")
        return f"{whole[0]} {said[0]}", f"{whole[1]} {said[1]}"
    subject = personal(draft)
    kinds, verb, infinitive = dice.choice(
        (
            ("thing,clothes", "buy", "comprar"),
            ("thing,clothes", "lose", "perder"),
            ("show", "see", "ver"),
            ("dish", "eat", "comer"),
            ("thing", "find", "encontrar"),
            ("document", "write", "escribir"),
            ("reading", "read", "leer"),
            ("thing,clothes", "sell", "vender"),
            ("thing", "look for", "buscar"),
            ("dish", "make", "hacer"),
            ("clothes", "wear", "llevar"),
            ("place", "visit", "visitar"),
            ("document", "send", "enviar"),
        )
    )
    word = tables.draw(draft, kinds)
    draft.record("that", verb, word.english)
    predicate = Predicate(verb, "", infinitive, "")
    form = dice.choice(("past", "past", "future", "now", "perfect", "want"))
    if form == "want":
        predicate, form = predicate.under("want", "to", "querer", "", subject.person), "present"
    en, es = affirm(subject, predicate, form)
    that = dice.choice(("that ", "that ", "which ", ""))
    one = f"the {word.english} {that}{en}", f"{word.the()} que {es}"
    kind = dice.below(3)
    if kind == 0:
        return (
            f"where is {one[0]}?" if not word.many else f"where are {one[0]}?",
            f"¿dónde {'están' if word.number == 2 else 'está'} {one[1]}?",
        )
    if kind == 1:
        this = "this is" if not word.many else "these are"
        return (
            f"{this} {one[0]}",
            f"{(tables.THIS)[word.gender, word.number]} {'son' if word.number == 2 else 'es'} {one[1]}",
        )
    adjective, adjetivo = tables.adjective(draft, "thing")
    return (
        f"{one[0]} {'are' if word.many else 'is'} {adjective}",
        f"{one[1]} {'son' if word.number == 2 else 'es'} {tables.agree(adjetivo, word.gender, word.number)}",
    )


def might(draft: Draft) -> Both:
    """She might be late. Puede que ella llegue tarde."""
    dice = draft.dice
    subject = personal(draft)
    predicate = predicates.draw(draft, subject)
    que = f"{subject.begins()}{predicates.spanish_whole(predicate, subject.person, 'subjunctive')}"
    no = dice.chance(0.2)
    might = dice.choice(("might", "may"))
    if no:
        head, tail = predicates.spanish_parts(predicate, subject.person, "subjunctive")
        que = f"{subject.begins()}no {head} {tail}"
    return f"{subject.english} {might} {'not ' if no else ''}{predicate.english}", f"puede que {que}"


PAST_MODALS = ("should", "should", "could", "would", "must")


def should_have(draft: Draft) -> Both:
    """You should have told me. Deberías habérmelo dicho. If I had known, I would have come."""
    dice = draft.dice
    subject = personal(draft)
    predicate = event(draft, subject)
    if dice.chance(0.3):
        condition, who = predicates.draw(draft, subject), subject.person
        had = " ".join(condition.pronouns(who)) + f" {spanish.conjugate('haber', 'past subjunctive', who)}"
        si = f"{had} {spanish.participle(condition.infinitive)} {condition.after}"
        head = " ".join(predicate.pronouns(who)) + f" {spanish.conjugate('haber', 'conditional', who)}"
        then = f"{head} {spanish.participle(predicate.infinitive)} {predicate.after}"
        if_ = f"{subject.english} had {english.participle(f'{condition.verb} {condition.rest}')}"
        he = {"m": HE, "f": SHE}[subject.gender] if who == 2 else THEY if who == 4 else subject
        return (
            f"if {if_}, {he.english} would {predicate.english_past}",
            f"si {subject.begins()}{si}, {then}",
        )
    modal = dice.choice(PAST_MODALS)
    no = dice.chance(0.25) and modal != "must"
    negation, nada = (" not", "no ") if no else ("", "")
    en = f"{subject.english} {modal}{negation} {predicate.english_past}"
    if modal == "would":
        head = (
            " ".join(predicate.pronouns(subject.person))
            + f" {spanish.conjugate('haber', 'conditional', subject.person)}"
        )
        done = f"{head} {spanish.participle(predicate.infinitive)} {predicate.after}"
        return en, f"{subject.begins()}{nada}{done}"
    form = spanish.conjugate(
        "poder" if modal == "could" else "deber", "present" if modal == "must" else "conditional", subject.person
    )
    return (
        en,
        f"{subject.begins()}{nada}{form}{' de' if modal == 'must' else ''} {predicate.bound_past(subject.person)}",
    )


FRAMES: Frames = (
    (2.0, might),
    (2.5, should_have),
    (4.5, wishes),
    (1.5, not_think),
    (6.0, reports),
    (5.5, knows),
    (12.0, joined),
    (5.5, relative),
)
