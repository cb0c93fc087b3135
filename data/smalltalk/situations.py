"""Turns about people's lives and about tinychat, and replies that fit the mood and take up a word.

The tables are in `situations/`; `situations/slots.toml` says how they are read.
"""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import NamedTuple

from grammar import Lines, listed

from smalltalk.talk import Scene, Scenes, Talk

LEADS = (
    "hey, ", "hi, ", "well, ", "you know, ", "btw ", "guess what, ", "ok, ", "oh, ", "so ", "tinychat, ", "yes, ",
    "hey ", "hi! ", "hello, ", "omg ", "wow, ", "ugh, ", "hmm, ", "lol ", "yo ", "listen, ", "um, ", "haha ", "ok so ",
    "and ", "sometimes ", "today ", "actually ", "honestly, ", "sorry, ", "anyway, ",
)  # fmt: skip
ENDINGS = (
    "!!",
    "!",
    "...",
    " lol",
    " haha",
    " :)",
    " tbh",
    " you know",
    " btw",
    " and stuff",
    " i guess",
    " right now",
)
FACES = {
    "sorrow": ("😢", "😭", "😞", "💔", "😔", ":(", "🥺", ":'("),
    "worry": ("😬", "😰", "😟", "🤞", "😱", "😩", ":/"),
    "ailment": ("🤒", "😷", "🤧", "😩", ":(", "😫"),
    "gladness": ("😄", "🎉", "😊", "❤️", "🥳", "😀", "😍", ":)", ":D", "😁", "🙌", "👍", "😂"),
    "news": ("🙂", "😊", ":)", "😅", "👍", "🤔", "😂", "😄"),
    "short": ("😂", "😅", "🙄", ":)", ";)", "🤔", "😜", "😎", "🤣", ":P", "❤️", "😡", "👍"),
    "despair": ("😢", "😭", "💔", "😞"),
}
"""what people add, by the mood"""
ECHO, LEAD, ENDING, FACE = 0.8, 0.14, 0.1, 0.12
"""probabilities that a reply takes up a word of what was said, if one does, and of what people add"""
GO_ON, MOST_TURNS = 0.6, 4
"""probability that the person goes on, and the most turns that one situation takes"""
MISTAKEN = 0.07
"""probability that a reply misses the point, and the person says so"""
AGAIN = (
    "(no|nope|no no|what|huh|hey|but|um|lol no|uh no), ( |i said|i meant|i mean)",
    "(i said|i meant|i mean|read again:|listen:|once more:|again:)",
    "(that's not what i (said|meant)|you misunderstood( me|)|you got (that|me) wrong|wrong|not that|that's not it).",
    "(what|huh|are you listening|did you read it|are you even listening to me)?",
)
OBJECTIONS = (
    "(no|nope|what|huh|wtf|um|sorry|lol|hm|but|), (that's not what i (said|meant)|that makes no sense"
    "|you (didn't|don't) understand( me|)|what do you mean|what are you talking about|why do you say that"
    "|that's (wrong|not right|nonsense)|you are not listening|are you (even |)listening( to me|)"
    "|that has nothing to do with it|i didn't say that|what)(!||)",
)
"""what people say of a reply that misses the point: before they say it again, and alone"""
APOLOGIES = (
    "(Oh, sorry|Sorry|I'm sorry|Oops|Oh dear), I (misread that|misunderstood|got that wrong|mixed that up).",
    "(My mistake|You are right, sorry|Sorry, let me try again)!",
)
WRONG = ("I see. (And then|How was it)?",)
_SLOT = re.compile(r"<(?:a:)?(\w+)>")


class Exchange(NamedTuple):
    """Lines that a person may say, and replies."""

    say: tuple[str, ...]
    reply: tuple[str, ...]


class Situation(NamedTuple):
    """Something that people say, and how they may go on once tinychat replied."""

    exchange: Exchange
    then: tuple[Exchange, ...]
    mood: str


def _exchanges(entries: list[dict[str, list[str]]]) -> tuple[Exchange, ...]:
    return tuple(Exchange(tuple(entry["say"]), tuple(entry["reply"])) for entry in entries)


def slots_of(template: str) -> set[str]:
    """Return the names of the slots of a template."""
    return set(_SLOT.findall(template))


_TABLES = [
    tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(__file__).with_suffix("").glob("*.toml"))
]
SLOTS = {name: tuple(listed(items, ",")) for table in _TABLES for name, items in table.get("slots", {}).items()}
MOODS = {mood["name"]: _exchanges(mood["then"]) for table in _TABLES for mood in table.get("mood", ())}
_ENTRIES = [entry for table in _TABLES for entry in table.get("situation", ())]
SITUATIONS = {
    entry["topic"]: Situation(
        Exchange(tuple(entry["say"]), tuple(entry["reply"])),
        _exchanges(entry.get("then", [])) * 2 + MOODS[entry["mood"]],
        entry["mood"],
    )
    for entry in _ENTRIES
}


def play(situation: Situation, talk: Talk) -> None:
    """Add a turn in which the person tells something, and perhaps others in which they go on."""
    values: dict[str, str] = {}
    if talk.left > 1 and talk.dice.chance(MISTAKEN):
        mistake(situation, talk, values)
        said = [situation.exchange]
    else:
        said = [add(situation.exchange, talk, values, situation.mood)]
    while talk.left and len(said) < MOST_TURNS and talk.dice.chance(GO_ON):
        possible = [then for then in situation.then if then not in said]
        if not possible:
            break
        said.append(add(talk.dice.choice(possible), talk, values, situation.mood))


def mistake(situation: Situation, talk: Talk, values: dict[str, str]) -> None:
    """Add a turn with a reply that has nothing to do with it, and one in which the person says so.

    Such replies are many, and each is rare: a model learns what to say afterwards, but none of them.
    """
    say, reply = situation.exchange
    wrong = talk.dice.choice(list(SITUATIONS.values())).exchange.reply
    add(Exchange(say, tuple(line for line in wrong if not slots_of(line)) or WRONG), talk, values, situation.mood)
    objection = talk.draw_wording(AGAIN if talk.dice.chance(0.6) else OBJECTIONS)
    again = talk.turns[-1].wording if objection.endswith((",", ":", ".", "?", "said", "meant", "mean")) else ""
    right = [f"{apology} {line}" for apology in APOLOGIES for line in reply if slots_of(line) <= values.keys()]
    talk.add_wording(f"{objection} {again}".strip(), right, dict(values), say)


def add(exchange: Exchange, talk: Talk, values: dict[str, str], mood: str) -> Exchange:
    """Add a turn and return its exchange; `values` are those of the slots said so far, and stay what they are.

    The reply uses only slots that have a value, and usually one of what was just said.
    """
    lines: Lines = (talk.dice.choice(exchange.say),)
    wording = talk.draw_wording(lines)
    said = slots_of(wording)
    values.update({slot: _draw(slot, talk) for slot in sorted(said) if slot not in values})
    possible = [reply for reply in exchange.reply if slots_of(reply) <= values.keys()]
    echoes = [reply for reply in possible if slots_of(reply) & said]
    replies = echoes if echoes and talk.dice.chance(ECHO) else possible
    lead = talk.dice.choice(LEADS) if talk.dice.chance(LEAD) else ""
    end = talk.dice.choice(ENDINGS) if talk.dice.chance(ENDING) else ""
    if talk.dice.chance(FACE):
        end += " " + talk.dice.choice(FACES[mood]) * (2 if talk.dice.chance(0.2) else 1)
    talk.add_wording(wording, replies, dict(values), lines, lead=lead, end=end)
    return exchange


def _draw(slot: str, talk: Talk) -> str:
    return talk.new_name() if slot == "n" else talk.word(talk.dice.choice(SLOTS[slot]))


SCENES: Scenes = tuple(
    Scene(entry["topic"], entry.get("weight", 1.0), partial(play, SITUATIONS[entry["topic"]])) for entry in _ENTRIES
)
