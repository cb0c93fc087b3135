"""Predicates: a verb with its objects in both languages, its forms, and clauses made of a subject and a predicate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from phrases import english, spanish, tables
from phrases.draft import Draft
from phrases.people_words import COUNTRIES
from phrases.spanish import REFLEXIVE, Tense
from phrases.subjects import FAMILY, HE, OTHERS, SHE, Subject

PRONOUN = 0.45
"""Probability that a person who is an object is a pronoun."""
IT = 0.12
"""Probability that a thing is “it” or “them”."""


@dataclass(frozen=True)
class Predicate:
    """A verb and what follows it, for one subject.

    `verb` and `infinitive` are the base forms; `clitics` are the Spanish pronouns besides that of a reflexive verb.
    """

    verb: str
    rest: str
    infinitive: str
    after: str
    clitics: tuple[str, ...] = ()
    is_reflexive: bool = False
    flags: str = ""

    def pronouns(self, person: int) -> tuple[str, ...]:
        return ((REFLEXIVE[person],) if self.is_reflexive else ()) + self.clitics

    def bound(self, person: int) -> str:
        """Return the Spanish infinitive with its pronouns and what follows."""
        return f"{spanish.attach(self.infinitive, self.pronouns(person))} {self.after}".strip()

    def bound_past(self, person: int) -> str:
        """Return the Spanish perfect infinitive: “haberlo comido”."""
        done = spanish.participle(self.infinitive)
        return f"{spanish.attach('haber', self.pronouns(person))} {done} {self.after}".strip()

    @property
    def english_past(self) -> str:
        """The English perfect infinitive: “have eaten it”."""
        return f"have {english.participle(f'{self.verb} {self.rest}')}".strip()

    @property
    def english(self) -> str:
        return f"{self.verb} {self.rest}".strip()

    @property
    def english_gerund(self) -> str:
        return f"{english.gerund(self.verb)} {self.rest}".strip()

    @property
    def is_state(self) -> bool:
        return "s" in self.flags

    @property
    def may_progress(self) -> bool:
        return not set("sp") & set(self.flags)

    @property
    def may_be_asked(self) -> bool:
        """Whether one may ask somebody to do it."""
        return "o" not in self.flags

    def under(
        self, verb: str, link: str, infinitive: str, spanish_link: str, person: int, flags: str = "s"
    ) -> Predicate:
        """Return a predicate whose infinitive complement is this one: “want to eat”, “querer comer”."""
        rest = self.english_gerund if link == "-ing" else f"{link} {self.english}"
        is_reflexive = infinitive.endswith("se")
        return Predicate(
            verb,
            rest,
            infinitive.removesuffix("se"),
            f"{spanish_link} {self.bound(person)}".strip(),
            (),
            is_reflexive,
            flags,
        )


class Row(NamedTuple):
    """A line of verb_phrases.toml."""

    english: str
    spanish: str
    flags: str


def _rows() -> tuple[Row, ...]:
    rows = []
    for line in tables.VERB_PHRASES["phrases"]["table"].strip().splitlines():
        pair, _, flags = line.partition("#")
        left, right = pair.split(" = ")
        if "it" not in flags:
            rows.append(Row(left.strip(), right.strip(), flags.strip()))
    return tuple(rows)


ROWS = _rows()
_SLOT = re.compile(r"\{([^}]+)\}")


def person(draft: Draft) -> Subject:
    """Return a person who is an object: a name, a relative, somebody by occupation."""
    kind = draft.dice.weighted((50, 35, 15))
    if kind == 0:
        return draft.name()
    return draft.dice.choice(FAMILY[:32] if kind == 1 else OTHERS)


def instantiate(draft: Draft, subject: Subject, row: Row) -> Predicate:
    """Fill in the slots of a row for a subject."""
    dice = draft.dice
    english_values: dict[str, str] = {}
    spanish_values: dict[str, str] = {}
    words: dict[str, tables.Word] = {}
    clitics: dict[str, str] = {}
    drawn: list[str] = []
    slots = _SLOT.findall(row.english)
    has_thing_pronoun = dice.chance(IT)
    for slot in slots:
        tag, _, kinds = slot.partition(":")
        article = tag.rstrip("2")
        if slot in ("P", "I", "W"):
            other = person(draft)
            table = tables.AFTER_PREPOSITION if slot == "W" else tables.OBJECTS
            fitting = [one for one in table if one[2] != subject.person and {one[2], subject.person} != {0, 3}]
            if dice.chance(PRONOUN) or other.english == subject.english:
                en, es, who = dice.choice(fitting)
                if slot == "I":
                    es = tables.TO_WHOM[who]
                english_values[slot] = en
                spanish_values[slot] = es if slot == "W" else ""
                if slot != "W":
                    clitics[slot] = es
            else:
                english_values[slot], spanish_values[slot] = other.english, other.spanish
                if slot == "I":
                    clitics[slot] = "les" if other.number == 2 else "le"
        elif slot in tables.SLOTS:
            english_values[slot], spanish_values[slot] = tables.SLOTS[slot](draft)
            drawn.append(english_values[slot])
        elif slot in ("mood", "mood2", "trait"):
            en, es = tables.adjective(draft, slot)
            english_values[slot] = en
            spanish_values[slot] = tables.agree(es, subject.gender, subject.number)
            drawn.append(en)
        elif slot == "job":
            en, es = tables.job(draft, subject)
            english_values[slot] = en
            spanish_values["job"] = spanish_values["jobn"] = es
            drawn.append(en)
        elif slot == "nationality":
            _, _, en, es = dice.choice(COUNTRIES)
            english_values[slot], spanish_values[slot] = en, spanish.inflect(es, subject.gender, subject.number)
            drawn.append(en)
        elif slot == "hobby":
            english_values[slot], spanish_values[slot], _ = tables.hobby(draft)
            drawn.append(english_values[slot])
        elif slot == "inf:skill":
            english_values[slot], spanish_values["inf"] = tables.SLOTS["skill"](draft)
        else:
            word = tables.draw(draft, kinds)
            drawn.append(word.english)
            words[tag] = word
            if article == "O":
                if has_thing_pronoun and word.is_counted:
                    english_values[slot] = "them" if word.many else "it"
                    clitics["O"] = "los" if word.many else "lo"
                    spanish_values["O"] = ""
                    continue
                article = dice.choice(("a", "a", "a", "the", "the", "the", "my", "my", "this"))
                if kinds.startswith(("nature", "place", "show")) and article == "my":
                    article = "the"
            if article == "pl":
                word = word.plural()
            english_values[slot], spanish_values[tag] = tables.with_article(draft, article, word, subject)
            if article == "pl":
                spanish_values["thepl"] = word.the()
            spanish_values.setdefault("the", word.the())
            if tag == "the0":
                spanish_values["the0"] = word.the()
    if drawn:
        draft.record(row.english, *drawn)
    en = _SLOT.sub(lambda found: english_values[found[1]], row.english)
    en = en.replace("one's", "their" if subject.english in tables.INDEFINITE else subject.possessive)
    es = row.spanish
    for tag in ("P", "I"):
        if tag in spanish_values and not spanish_values[tag]:
            es = es.replace(f" a {{{tag}}}", "")
    solo = spanish.inflect("solo", subject.gender, subject.number)
    es = _SLOT.sub(lambda found: solo if found[1] == "solo" else spanish_values[found[1]], es)
    es = _agree(es, words, subject)
    infinitive, _, after = es.partition(" ")
    after = " ".join(after.split())
    after = re.sub(r"\bcon mí\b", "conmigo", re.sub(r"\bcon ti\b", "contigo", after))
    is_reflexive = infinitive.endswith("se")
    own: tuple[str, ...] = ()
    if infinitive.endswith(("arlo", "erlo", "irlo")):
        infinitive, own = infinitive[:-2], ("lo",)
    pronouns = [clitics[tag] for tag in ("I", "P", "O") if tag in clitics]
    if len(pronouns) == 2 and pronouns[0] in ("le", "les"):
        pronouns[0] = "se"
    verb, _, rest = en.partition(" ")
    return Predicate(verb, rest, infinitive.removesuffix("se"), after, (*pronouns, *own), is_reflexive, row.flags)


def _agree(es: str, words: dict[str, tables.Word], subject: Subject) -> str:
    """Make the words marked by a star agree, quantities with their noun, others with the subject; and possessives."""
    quantified = words.get("0")
    for stem in ("mucho", "demasiado"):
        if f"{stem}*" in es and quantified:
            es = es.replace(f"{stem}*", spanish.inflect(stem, quantified.gender, quantified.number))
    es = re.sub(r"(\w+)\*", lambda found: spanish.inflect(found[1], subject.gender, subject.number), es)
    mine, ours = tables.POSSESSIVES[subject.person], subject.person == 3
    own = {
        "sus.f": "nuestras" if ours else f"{mine}s",
        "su.f": "nuestra" if ours else mine,
        "sus": "nuestros" if ours else f"{mine}s",
        "su": mine,
    }
    if "one's" in es or "su" in es:
        es = re.sub(r"(?<!\w)(sus\.f|su\.f|sus|su)(?![\w.])", lambda found: own[found[1]], es)
    return es


@cache
def _fitting(flag: str) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if flag not in row.flags)


def draw(draft: Draft, subject: Subject, *, without: str = "") -> Predicate:
    """Return a random predicate for a subject; `without` is a flag that it must not have."""
    return instantiate(draft, subject, draft.dice.choice(_fitting(without) if without else ROWS))


SIMPLE: dict[str, Tense] = {
    "present": "present",
    "past": "past",
    "imperfect": "imperfect",
    "future": "future",
    "would": "conditional",
    "subjunctive": "subjunctive",
    "past subjunctive": "past subjunctive",
}
MODALS = {"can": "present", "could": "conditional", "should": "conditional", "must": "present"}
BE_FORMS = {"present": english.BE, "past": english.WAS, "imperfect": english.WAS}
CONTRARY = {"past subjunctive": "past", "subjunctive": "present"}


def english_parts(predicate: Predicate, who: int, form: str) -> tuple[str, str, str]:
    """Return an English form as its auxiliary, the rest with it, and the whole without one where that differs."""
    verb, rest = predicate.verb, predicate.rest
    form = CONTRARY.get(form, form)
    if form == "now":
        return english.BE[who], f"{english.gerund(verb)} {rest}", ""
    if form == "was":
        return english.WAS[who], f"{english.gerund(verb)} {rest}", ""
    if form == "going":
        return english.BE[who], f"going to {verb} {rest}", ""
    if form == "perfect":
        return english.have(who), english.participle(f"{verb} {rest}"), ""
    if form == "pluperfect":
        return "had", english.participle(f"{verb} {rest}"), ""
    if verb == "be" and form in BE_FORMS:
        return BE_FORMS[form][who], rest, ""
    if form == "present":
        return english.do(who), f"{verb} {rest}", f"{english.third(verb) if who == 2 else verb} {rest}"
    if form in ("past", "imperfect"):
        return "did", f"{verb} {rest}", english.past(f"{verb} {rest}")
    return {"future": "will"}.get(form, form), f"{verb} {rest}", ""


def spanish_parts(predicate: Predicate, who: int, form: str, *, is_denied: bool = False) -> tuple[str, str]:
    """Return a Spanish form as its finite verb with pronouns, and what follows it."""
    pronouns = " ".join(predicate.pronouns(who)) + " " if predicate.pronouns(who) else ""
    if form in MODALS:
        verb = {"should": "deber", "must": "deber"}.get(form, "poder")
        tense: Tense = "past" if form == "could" and is_denied else MODALS[form]  # type: ignore[assignment]
        return spanish.conjugate(verb, tense, who), predicate.bound(who)
    if form == "going":
        return f"{spanish.conjugate('ir', 'present', who)} a", predicate.bound(who)
    if form in ("now", "was"):
        aux = spanish.conjugate("estar", "present" if form == "now" else "imperfect", who)
        return f"{pronouns}{aux} {spanish.gerund(predicate.infinitive)}", predicate.after
    if form in ("perfect", "pluperfect"):
        aux = spanish.conjugate("haber", "present" if form == "perfect" else "imperfect", who)
        return f"{pronouns}{aux} {spanish.participle(predicate.infinitive)}", predicate.after
    return f"{pronouns}{spanish.conjugate(predicate.infinitive, SIMPLE[form], who)}", predicate.after


def spanish_whole(predicate: Predicate, who: int, form: str) -> str:
    """Return a Spanish form without its subject."""
    return " ".join(filter(None, spanish_parts(predicate, who, form)))


def past_of(predicate: Predicate) -> str:
    """Return the form that the English simple past becomes: states are in the imperfect."""
    return "imperfect" if predicate.is_state else "past"


def present(subject: Subject, predicate: Predicate) -> str:
    """Return the English simple present without its subject."""
    auxiliary, rest, whole = english_parts(predicate, subject.person, "present")
    return whole or f"{auxiliary} {rest}"


def affirm(subject: Subject, predicate: Predicate, form: str, *, drops: bool = False) -> tables.Both:
    """Return an affirmative clause; with `drops`, a Spanish subject pronoun is left out."""
    auxiliary, rest, whole = english_parts(predicate, subject.person, form)
    head, tail = spanish_parts(predicate, subject.person, form)
    return (
        f"{subject.english} {whole or f'{auxiliary} {rest}'}".strip(),
        f"{_named(subject, drops)}{head} {tail}".strip(),
    )


def deny(subject: Subject, predicate: Predicate, form: str, *, drops: bool = False) -> tables.Both:
    """Return a negative clause."""
    auxiliary, rest, _ = english_parts(predicate, subject.person, form)
    head, tail = spanish_parts(predicate, subject.person, form, is_denied=True)
    no = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return f"{subject.english} {no} {rest}".strip(), f"{_named(subject, drops)}no {head} {tail}".strip()


def ask(subject: Subject, predicate: Predicate, form: str, *, pronoun_first: bool = True) -> tables.Both:
    """Return a question without its marks; Spanish subjects but pronouns follow the verb and short complements."""
    auxiliary, rest, _ = english_parts(predicate, subject.person, form)
    head, tail = spanish_parts(predicate, subject.person, form)
    question = f"{auxiliary} {subject.english} {rest}".strip()
    if subject in (HE, SHE) or subject.english == "they":
        if pronoun_first:
            return question, f"{subject.spanish} {head} {tail}".strip()
        if form in MODALS and len(tail.split()) == 1:
            return question, f"{head} {tail} {subject.spanish}"
    elif subject.spanish and len(tail.split()) == 1:
        return question, f"{head} {tail} {subject.spanish}"
    if form == "going" and subject.spanish:
        return question, f"{head.removesuffix(' a')} {subject.spanish} a {tail}".strip()
    return question, f"{head}{subject.ends()} {tail}".strip()


def _named(subject: Subject, drops: bool) -> str:
    return "" if drops and subject.spanish in ("él", "ella", "ellos") else subject.begins()


def order(predicate: Predicate) -> tables.Both:
    """Return an order to “tú”."""
    return (
        predicate.english,
        f"{spanish.attach(spanish.imperative(predicate.infinitive), predicate.pronouns(1))} {predicate.after}".strip(),
    )


def forbid(predicate: Predicate) -> tables.Both:
    """Return a negative order to “tú”."""
    head, tail = spanish_parts(predicate, 1, "subjunctive")
    return f"do not {predicate.english}", f"no {head} {tail}".strip()
