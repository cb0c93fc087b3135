"""Small facts: animals, colours, opposites, plurals, capitals, days, months, letters and what things are for.

Each kind of fact is a table with its questions and answers; a follow-up (“and <x>?”) may ask for another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from grammar import Lines

from smalltalk import messages, words
from smalltalk.talk import Scene, Scenes, Talk

Row = dict[str, str]


class Fact(NamedTuple):
    """One kind of fact; follow-up questions name the `x` of a row."""

    topic: str
    weight: float
    rows: Sequence[Row]
    questions: Lines
    answers: Sequence[str]
    follow_ups: bool = True


def pairs(name: str) -> list[Row]:
    """Return the rows of a table, which are written “x=y”."""
    return [dict(zip("xy", entry.split("="), strict=True)) for entry in words.TABLES[name]]


def following(names: Sequence[str], step: int) -> list[Row]:
    """Pair each name with the one `step` positions later, wrapping around."""
    return [{"x": name, "y": names[(at + step) % len(names)]} for at, name in enumerate(names)]


KNOWLEDGE = words.table("knowledge")
SAID: dict[str, Lines] = KNOWLEDGE["said"]
_SOUNDS = [row["y"] for row in pairs("sounds")]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

ROWS: dict[str, Sequence[Row]] = {
    "which animal says it": [row for row in pairs("sounds") if _SOUNDS.count(row["y"]) == 1],
    "opposites": pairs("opposites") + [{"x": row["y"], "y": row["x"]} for row in pairs("opposites")],
    "plurals": [{"x": word, "y": plural} for word, plural in words.plurals().items()],
    "the next day": following(words.DAYS, 1),
    "the day before": following(words.DAYS, -1),
    "the next month": following(words.MONTHS, 1),
    "the month before": following(words.MONTHS, -1),
    "seasons": following(words.SEASONS, 1),
    "capitals": pairs("capitals") + pairs("other_names"),
    "capitals it never learned": [{"x": country, "y": ""} for country in words.TABLES["other_countries"]],
    "the next letter": following(_LETTERS, 1)[:-1],
    "the letter before": following(_LETTERS, -1)[1:],
}
"""Rows that are computed."""


def _facts() -> tuple[Fact, ...]:
    """Return the tables; those of one topic are put together."""
    facts: dict[str, Fact] = {}
    for table in (*KNOWLEDGE["known"], *KNOWLEDGE["table"]):
        topic, weight, say, reply = (table[name] for name in ("topic", "weight", "say", "reply"))
        if "rows" in table:
            rows: Sequence[Row] = [
                dict(zip("xy", row.strip().split("="), strict=True)) for row in table["rows"].split(",")
            ]
        else:
            rows = pairs(table["list"]) if "list" in table else ROWS[topic]
        if known := facts.get(topic):
            rows = [row for row in known.rows if row["x"] not in {new["x"] for new in rows}] + list(rows)
            say, reply = (*known.questions, *say), (*known.answers, *reply)
        facts[topic] = Fact(topic, weight, rows, tuple(say), reply, "alone" not in table or known is not None)
    return tuple(facts.values())


FACTS = _facts()


def play_fact(fact: Fact, talk: Talk) -> None:
    """Add a question about one row of a table, and perhaps follow-ups about other rows."""
    row = talk.dice.choice(fact.rows)
    talk.ask(fact.questions, fact.answers, **row)
    while fact.follow_ups and talk.left and talk.dice.chance(0.22):
        row = talk.dice.choice(fact.rows)
        talk.turn(SAID["follow_up"], fact.answers, **row)
    insist(talk, fact.answers, row)


def single(talk: Talk) -> None:
    """Add a question that has one answer."""
    question, reply = talk.dice.choice(KNOWLEDGE["single"])
    talk.ask((question,), (reply,))
    insist(talk, (reply,), {})


def insist(talk: Talk, answers: Sequence[str], row: Row) -> None:
    """Perhaps add that the person doubts a fact, asks where it comes from, or gives thanks."""
    if not talk.left or not talk.dice.chance(0.16):
        return
    kind = talk.dice.below(3)
    if kind == 0:
        again = [option for answer in answers for option in ([answer] if "(" in answer else answer.split("|"))]
        sure = [
            f"Yes, I'm sure. {answer}"
            if answer[0] != "<" or answer == "<y>."
            else f"Yes, (quite sure|I am sure): {answer}"
            for answer in again
        ]
        talk.turn(SAID["sure"], sure, **row)
    elif kind == 1:
        talk.turn(SAID["how_known"], SAID["from_texts"])
    else:
        talk.turn(SAID["thanked"], SAID["welcome"])


def true_colour(talk: Talk) -> None:
    """Add a question with a wrong colour: “Is the sky green?” “No, it is blue.”"""
    row = talk.dice.choice([row for row in pairs("colours") if " or " not in row["y"]])
    others = ("red", "blue", "green", "yellow", "white", "black", "pink")
    guess = row["y"] if talk.dice.chance(0.5) else talk.dice.choice(others)
    yes = guess == row["y"]
    replies = (
        ("Yes, <x> is <y>.", "(Right|True): <x> is <y>.") if yes else ("No, <x> is <y>.", "(Not so|False): <x> is <y>.")
    )
    talk.ask(SAID["is_it"], replies, guess=guess, **row)


def some(talk: Talk) -> None:
    """Add a request for three examples of a kind."""
    kind = talk.dice.choice(tuple(words.GROUPS))
    one, two, three = talk.dice.sample(words.GROUPS[kind], 3)
    values = {"kind": kind, "one": one, "two": two, "three": three, "One": one.capitalize()}
    talk.ask(SAID["some"], SAID["three"], count=talk.dice.choice(("three", "3", "some", "a few")), **values)


def about(talk: Talk) -> None:
    """Add a request for a fact about something, which gets any of those there are."""
    thing = talk.dice.choice(
        (*map(words.plural, words.ANIMALS), *words.THINGS, *words.FOODS, *words.SPORTS, *words.TOWNS)
    )
    reply = f"I know nothing about <about>, but here is something else. {messages.KINDS['want_fact'].opening}"
    talk.ask(SAID["about"], reply, about=thing)


WHOLE: tuple[tuple[Sequence[str], str], ...] = (
    (words.DAYS, "days of the week"),
    (words.SEASONS, "seasons"),
    (words.MONTHS[:6], "first six months"),
    (words.MONTHS[6:], "last six months"),
    (("red", "orange", "yellow", "green", "blue", "violet"), "colours of the rainbow"),
    ("aeiou", "vowels"),
)


def whole(talk: Talk) -> None:
    """Add a request for all days, seasons or months in order."""
    names, kind = talk.dice.choice(WHOLE)
    replies = ("The <kind> are <list>.", "Here they are: <list>.")
    talk.ask(SAID["all"], replies, kind=kind, list=", ".join(names[:-1]) + " and " + names[-1])


SCENES: Scenes = (
    *(Scene(fact.topic, 1.4 * fact.weight, partial(play_fact, fact)) for fact in FACTS),
    Scene("is it that colour?", 0.8, true_colour),
    Scene("why and how", 18.0, single),
    Scene("three of a kind", 1.2, some),
    Scene("a fact about something", 1.2, about),
    Scene("all in order", 0.6, whole),
)
