"""Sentences with open places, read from patterns.toml."""

from __future__ import annotations

import re

from phrases import english, everyday, predicates, spanish, tables
from phrases.calendar import DAYS, MONTHS, NUMBER_WORDS, SEASONS
from phrases.clauses import PAST
from phrases.draft import Draft, Frames
from phrases.names import odd
from phrases.people_words import WORK
from phrases.sentences import MORE_PAST, action
from phrases.subjects import HE, SHE, WE, YOU, I
from phrases.tables import WORDINGS, Both, Word

LINES = tuple(tuple(line.split(" = ", 1)) for line in tables.PATTERNS["table"].strip().splitlines())
SLOT = re.compile(r"\{([^}]+)\}")
PREDICATES = {"do": I, "doing": I, "you do": YOU, "you doing": YOU, "we do": WE}
KNOWN = WORDINGS["known"]
FAMILY = (
    ("parents", "padres", 2),
    ("children", "hijos", 2),
    ("brothers", "hermanos", 2),
    ("sisters", "hermanas", 2),
    ("friends", "amigos", 2),
    ("grandparents", "abuelos", 2),
)
FAMILY1 = WORDINGS["family"]
KIN = (
    (("son", "hijo"), ("daughter", "hija")),
    (("brother", "hermano"), ("sister", "hermana")),
    (("neighbour", "vecino"), ("neighbour", "vecina")),
    (("friend", "amigo"), ("friend", "amiga")),
    (("cousin", "primo"), ("cousin", "prima")),
    (("teacher", "profesor"), ("teacher", "profesora")),
    (("father", "padre"), ("mother", "madre")),
    (("uncle", "tío"), ("aunt", "tía")),
    (("boss", "jefe"), ("boss", "jefa")),
)
TIMES = (("once", "una vez"), ("twice", "dos veces"), ("three times", "tres veces"), ("four times", "cuatro veces"))


def pattern(draft: Draft) -> Both:
    """Return a line with its places filled in."""
    left, right = draft.dice.choice(LINES)
    return fill(draft, left, right)


def fill(draft: Draft, left: str, right: str) -> Both:
    """Return the sides of a line with their places filled in."""
    dice = draft.dice
    ours: dict[str, str] = {}
    theirs: dict[str, str] = {}
    drawn: list[str] = []
    first: Word | None = None
    predicate: predicates.Predicate | None = None
    for slot in SLOT.findall(left):
        tag, _, kinds = slot.partition(":")
        article = tag.rstrip("23")
        if tag.startswith("adj"):
            en, es = dice.choice(tables.ADJECTIVES[kinds])
            ours[slot], theirs["adj"] = en, es
            drawn.append(en)
        elif tag.startswith("your"):
            if kinds.startswith("family"):
                en, es = dice.choice(FAMILY)[:2] if kinds == "family" else dice.choice(FAMILY1)
                ours[slot], theirs[tag] = f"your {en}", f"{'tus' if kinds == 'family' else 'tu'} {es}"
            else:
                word = tables.draw(draft, kinds)
                ours[slot], theirs[tag] = f"your {word.english}", tables.possessed(1, word)
                drawn.append(word.english)
        elif kinds == "kin" and first:
            man, woman = dice.choice(KIN)
            ours[slot], theirs["kin"] = woman if first.gender == "f" else man
        elif kinds:
            word = tables.draw(draft, kinds)
            if article == "pl":
                word = word.plural()
            drawn.append(word.english)
            if article == "n":
                ours[slot] = word.english
            else:
                ours[slot], theirs[tag] = tables.with_article(draft, article, word, I)
            theirs.setdefault(f"the{tag[-1] if tag[-1] in '23' else ''}", word.the())
            if tag[-1] == "2":
                theirs["del2"] = f"de {word.the()}"
            elif first is None:
                first = word
                theirs = _forms(word, theirs)
        elif slot in PREDICATES or slot.startswith(("used", "know")):
            who = {"used we": WE, "used she": SHE, "know": HE}.get(slot) or PREDICATES.get(slot, I)
            predicate = action(draft, who)
            if slot.startswith("used"):
                predicate = predicates.draw(draft, who)
                past = predicates.english_parts(predicate, who.person, "past")
                ours[slot] = past[2] or f"{past[0]} {past[1]}"
                if not predicate.is_state and dice.chance(0.5):
                    ours[slot] = f"used to {predicate.english}"
                theirs[slot] = predicates.spanish_whole(predicate, who.person, "imperfect")
            elif slot == "know":
                is_one = left.startswith(("none", "neither", "one of"))
                while "his" in predicate.english:
                    predicate = action(draft, who)
                parts = predicates.english_parts(predicate, 2 if is_one else 4, "present")
                ours[slot] = parts[2]
                for name, person in (("sabe", 2), ("saben", 4), ("sabemos", 3)):
                    theirs[name] = predicates.spanish_whole(predicate, person, "present")
            else:
                ours[slot] = predicate.english_gerund if slot.endswith("doing") else predicate.english
                is_general = who is I and left.startswith(("it ", "is it", "how long", "{doing}"))
                theirs[slot.replace("doing", "do")] = predicate.bound(2 if is_general else who.person)
                theirs["gerund"] = (
                    f"{spanish.attach(spanish.gerund(predicate.infinitive), predicate.pronouns(1))} {predicate.after}"
                )
                for name, person, form in (
                    ("subj", 1, "subjunctive"),
                    ("present", 0, "present"),
                    ("we pres", 3, "present"),
                ):
                    theirs[name] = predicates.spanish_whole(predicate, person, form)
        elif slot in ("I2", "I3", "W2", "W4", "W", "P"):
            _people(draft, slot, left, ours, theirs)
        else:
            _others(draft, slot, ours, theirs)
    if first and "adj" in theirs:
        agreeing = tables.agree(theirs["adj"], first.gender, first.number)
        theirs |= {
            "adjn": f"{first.spanish} {agreeing}",
            "adjpl": agreeing,
            "adj2": agreeing,
            "adj1": tables.agree(theirs["adj"], first.gender, 1),
        }
    if drawn:
        draft.record(left, *drawn)
    en = SLOT.sub(lambda found: ours[found[1]], left)
    es = SLOT.sub(lambda found: theirs[found[1]], right)
    en = re.sub(r"\b(a|A) (?=[aeio]|u(?!n[ai]|s[eu]))", r"\1n ", en) if "{adj" in left else en
    es = (
        es.replace("con mí", "conmigo").replace("con ti", "contigo")
        if re.search(r"con (mí|ti)\b", es) and "mío" not in es and "mía" not in es
        else es
    )
    if "“" in en and dice.chance(0.5):
        en, es = (text.replace("“", '"').replace("”", '"') for text in (en, es))
    return en, es


def _forms(word: Word, values: dict[str, str]) -> dict[str, str]:
    """Return the forms of a noun that a pattern may use."""
    gender, number = word.gender, word.number
    ending = {("m", 1): "o", ("f", 1): "a", ("m", 2): "os", ("f", 2): "as"}[gender, number]
    un = word.a().split()[0]
    article = word.the().split()[0]
    plural = word.plural()
    return {
        "uno": "una" if gender == "f" else "uno",
        "estos": "estas" if gender == "f" else "estos",
        "o1": "a" if gender == "f" else "o",
        "bare": word.spanish,
        "un": word.a(),
        "un_": un,
        "el": article,
        "o": ending,
        "os": {"m": "os", "f": "as"}[gender],
        "cercano": spanish.inflect("cercano", gender, number),
        "best": f"{article} mejor {word.spanish}",
        "ese": f"{tables.THAT[gender, number]} {word.spanish}",
        "esos": tables.THAT[gender, 2],
        "thepl": plural.the(),
        "this": f"{tables.THIS[gender, number]} {word.spanish}",
        "the": word.the(),
        "the0": word.the(),
    } | values


def _people(draft: Draft, slot: str, left: str, ours: dict[str, str], theirs: dict[str, str]) -> None:
    dice = draft.dice
    if slot in ("I2", "I3"):
        en, es, who = dice.choice(
            tables.OBJECTS if slot == "I2" else tuple(row for row in tables.OBJECTS if row[2] in (2, 4))
        )
        ours[slot] = en
        theirs |= {"se": ("me", "te", "se", "nos", "se")[who], "le2": tables.TO_WHOM[who]}
        return
    other = predicates.person(draft)
    if slot == "P" or (slot in ("W", "W4") and dice.chance(0.4)):
        ours[slot], theirs[slot] = other.english, other.spanish
        return
    is_mine = "I " in left or " I" in left
    is_yours = not is_mine and not left.startswith(
        ("this", "with", "for", "it ", "they", "she", "he ", "nobody", "{this")
    )
    en, es, who = dice.choice(
        [
            row
            for row in tables.AFTER_PREPOSITION
            if not (is_mine and row[2] in (0, 3)) and not (is_yours and row[2] == 1)
        ]
    )
    ours[slot], theirs[slot] = en, es
    theirs["lo"] = {"me": "me", "you": "te", "him": "lo", "her": "la", "us": "nos", "them": "los"}[en]
    if slot == "W4":
        theirs[slot] = {"mí": "yo", "ti": "tú"}.get(es, es)


def _others(draft: Draft, slot: str, ours: dict[str, str], theirs: dict[str, str]) -> None:
    dice = draft.dice
    if slot in ("two", "three", "five", "five2", "six"):
        if slot == "two":
            two, three = dice.between(10, 50), dice.between(2, 9)
            digits = dice.chance(0.4)
            for name, value in (
                ("two", two),
                ("three", three),
                ("five", two + three),
                ("five2", two - three),
                ("six", two * three),
            ):
                en, es = (str(value), str(value)) if digits or value > 99 else NUMBER_WORDS[value]
                ours[name], theirs[name] = en, es
        return
    if slot in ("season", "month"):
        en, es = dice.choice(SEASONS if slot == "season" else MONTHS)
        theirs["la season"] = f"{'la' if es == 'primavera' else 'el'} {es}"
    elif slot == "city2":
        en, es = tables.city(draft)
    elif slot == "when":
        en, es = dice.choice(PAST + MORE_PAST)
    elif slot == "dayname":
        en, es = dice.choice(DAYS)
    elif slot == "times":
        en, es = dice.choice(TIMES)
    elif slot == "what":
        en, es = dice.choice(KNOWN)
    elif slot == "odd":
        en = es = odd(dice).lower()
    elif slot == "name":
        en = es = draft.name().english
    elif slot == "colour":
        en, es = dice.choice(tables.ADJECTIVES["colour"])
    elif slot == "trait":
        en, es = dice.choice(tables.ADJECTIVES["trait"])
    elif slot in ("job", "jobf"):
        name, man, woman = dice.choice(WORK)
        en, es = english.with_a(name), man if slot == "job" else woman
    else:
        en, es = tables.SLOTS[slot](draft)
    ours[slot], theirs[slot] = en, es


FIXED = tuple(pair for pair in everyday.fixed() if pair[0][-1] in ".?!" and not re.search(r"[.?!,] ", pair[0])) + tuple(
    (left, right) for left, right in LINES if "{" not in left
)


def addressed(draft: Draft) -> Both:
    """Return a fixed sentence with somebody’s name: “Help yourself, Anna.”"""
    left, right = draft.dice.choice(FIXED)
    name = draft.name().english

    def add(text: str) -> str:
        end = re.search(r"[.?!]*$", text)
        index = end.start() if end else len(text)
        return f"{text[:index]}, {name}{text[index:]}"

    return add(left), add(right)


FRAMES: Frames = ((85.0, pattern), (15.0, addressed))
