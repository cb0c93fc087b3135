"""Facts that people tell of others, of their things and of their days, and ask for later: tables in `others.toml`.

Several facts of a conversation are alike in form, so that only whom or what a question names tells them apart.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from grammar import Lines, listed

from smalltalk import situations, words
from smalltalk.situations import slots_of
from smalltalk.talk import Scene, Scenes, Talk


class Fact(NamedTuple):
    """A fact: how it is told and asked for, and what is replied."""

    tell: tuple[str, ...]
    reply: tuple[str, ...]
    ask: tuple[str, ...]
    answer: tuple[str, ...]
    unknown: tuple[str, ...]
    correct: tuple[str, ...] = ()
    is_also_memory: bool = False
    """whether `memory` tells such facts, too"""


class Told(NamedTuple):
    """A fact with the values that it was told with."""

    fact: Fact
    values: dict[str, str]


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SLOTS = situations.SLOTS | {name: tuple(listed(items, ",")) for name, items in _TABLES["slots"].items()}
SLOTS["instrument"] = tuple(words.INSTRUMENTS)
FACTS = tuple(
    Fact(
        tell=tuple(entry["tell"]),
        reply=tuple(entry["reply"]),
        ask=tuple(entry["ask"]),
        answer=tuple(entry["answer"]),
        unknown=tuple(entry["unknown"]),
        correct=tuple(entry.get("correct", ())),
        is_also_memory=entry.get("is_also_memory", False),
    )
    for entry in _TABLES["fact"]
)
MOST_FACTS = 3
BETWEEN, CORRECTED = 0.35, 0.4
"""probabilities that something else is said before the question, and that a fact which can be corrected is"""
NAME_TOLD = ("i'm <n>", "my name is <n>", "(hi|hello), i'm <n>", "call me <n>")
NAME_REPLIES = ("Nice to meet you, <n>!", "Hello, <n>! (How are you|What is new)?", "Pleased to meet you, <n>!")
NAME_ASKED = ("what's my name( again|)?", "who am i?", "(and|so) what's my name?", "do you know my name?")
NAME_ANSWERS = ("Your name is <n>.", "You are <n>.")
NAME_UNKNOWN = ("You have not told me your name( yet|).", "I don't know your name( yet|). What is it?")


def _value(slot: str, talk: Talk, used: set[str]) -> str:
    while True:
        value = talk.new_name() if slot in ("n", "m") else talk.word(talk.dice.choice(SLOTS[slot]))
        if value not in used:
            used.add(value)
            return value


def _say(talk: Talk, said: Lines, replies: Lines, values: dict[str, str]) -> set[str] | None:
    """Add a turn whose reply has only slots with a value; return the slots that were said, or None if there is none."""
    possible_said = [line for line in said if slots_of(line) <= set(values)]
    possible = [line for line in replies if slots_of(line) <= set(values)]
    if not possible_said or not possible:
        return None
    lines = (talk.dice.choice(possible_said),)
    wording = talk.draw_wording(lines)
    talk.add_wording(wording, possible, values, lines)
    return slots_of(wording)


def tell(talk: Talk, fact: Fact, used: set[str]) -> Told:
    """Add a turn in which a fact is told, and perhaps one in which it is corrected."""
    talk.topics_told.add(fact.ask[0])
    line = talk.dice.choice(fact.tell)
    wording = talk.draw_wording((line,))
    values = {slot: _value(slot, talk, used) for slot in sorted(slots_of(wording))}
    talk.add_wording(wording, [reply for reply in fact.reply if slots_of(reply) <= set(values)], values, (line,))
    if fact.correct and talk.left > 1 and talk.dice.chance(CORRECTED):
        slot = min(slots_of(fact.correct[0]))
        values = values | {slot: _value(slot, talk, used)}
        _say(talk, fact.correct, ("(Ah|Oh), <" + slot + ">, (noted|I see)!", "All right: <" + slot + ">."), values)
    return Told(fact, values)


def facts(talk: Talk) -> None:
    """Tell up to three facts, and ask for one of them, or for the person's name."""
    used: set[str] = set(talk.facts.values())
    has_name = "name" in talk.facts
    if not has_name and talk.left > 2 and talk.dice.chance(0.3):
        name = _value("n", talk, used)
        _say(talk, NAME_TOLD, NAME_REPLIES, {"n": name})
        talk.facts["name"], has_name = name, True
    possible = [fact for fact in FACTS if not fact.is_also_memory or not set(talk.facts) - {"name"}]
    if talk.left == 1 or talk.dice.chance(0.12):
        fact = talk.dice.choice([fact for fact in possible if fact.ask[0] not in talk.topics_told])
        slots = sorted({slot for line in fact.ask for slot in slots_of(line)})
        _say(talk, fact.ask, fact.unknown, {slot: _value(slot, talk, used) for slot in slots})
        return
    first = talk.dice.choice(possible)
    same_kind = talk.dice.chance(0.5)
    told: list[Told] = []
    while len(told) < MOST_FACTS and talk.left > 1 and (not told or talk.dice.chance(0.5)):
        told.append(tell(talk, first if same_kind else talk.dice.choice(possible), used))
    if talk.left > 1 and talk.dice.chance(BETWEEN):
        situations.play(talk.dice.choice(list(situations.SITUATIONS.values())), talk)
    if talk.left and talk.dice.chance(0.2):
        if has_name:
            _say(talk, NAME_ASKED, NAME_ANSWERS, {"n": talk.facts["name"]})
        else:
            _say(talk, NAME_ASKED, NAME_UNKNOWN, {})
    if talk.left:
        asked = talk.dice.choice(told)
        # Of facts that a question does not tell apart, the newest is meant.
        ambiguous = [one for one in told if one.fact is asked.fact]
        named = [line for line in asked.fact.ask if slots_of(line)]
        if len(ambiguous) > 1 and not named:
            asked = ambiguous[-1]
        lines = named if len(ambiguous) > 1 and named else asked.fact.ask
        _say(talk, [line for line in lines if slots_of(line) <= set(asked.values)] or asked.fact.ask, asked.fact.answer,
             asked.values)  # fmt: skip


SCENES: Scenes = (Scene("facts about others", 26.0, facts),)
