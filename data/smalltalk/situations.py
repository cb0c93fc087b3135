"""Turns about people's lives, and replies that fit the mood and take up a word: tables in `situations.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import NamedTuple

from grammar import listed

from smalltalk.talk import Scene, Scenes, Talk

LEADS = ("hey, ", "hi, ", "well, ", "you know, ", "btw ", "guess what, ", "ok, ", "oh, ", "so ", "tinychat, ", "yes, ")
ECHO, GO_ON = 0.8, 0.45
"""probabilities that a reply takes up a word of what was said, if one does, and that the person goes on"""
_SLOT = re.compile(r"<(?:a:)?(\w+)>")


class Exchange(NamedTuple):
    """Lines that a person may say, and replies."""

    say: tuple[str, ...]
    reply: tuple[str, ...]


class Situation(NamedTuple):
    """Something that happens to people, and how they may go on once tinychat replied."""

    exchange: Exchange
    then: tuple[Exchange, ...]


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SLOTS = {name: tuple(listed(items, ",")) for name, items in _TABLES["slots"].items()}


def _exchanges(entries: list[dict[str, list[str]]]) -> tuple[Exchange, ...]:
    return tuple(Exchange(tuple(entry["say"]), tuple(entry["reply"])) for entry in entries)


def slots_of(template: str) -> set[str]:
    """Return the names of the slots of a template."""
    return set(_SLOT.findall(template))


MOODS = {mood["name"]: _exchanges(mood["then"]) for mood in _TABLES["mood"]}
SITUATIONS = {
    entry["topic"]: Situation(
        Exchange(tuple(entry["say"]), tuple(entry["reply"])),
        _exchanges(entry.get("then", [])) * 2 + MOODS[entry["mood"]],
    )
    for entry in _TABLES["situation"]
}


def play(situation: Situation, talk: Talk) -> None:
    """Add a turn in which the person tells something, and perhaps another in which they go on."""
    _add(situation.exchange, talk)
    if talk.left and talk.dice.chance(GO_ON):
        _add(talk.dice.choice(situation.then), talk)


def _add(exchange: Exchange, talk: Talk) -> None:
    """Add a turn; the reply uses only slots of what is said, and usually one of them."""
    lines = (talk.dice.choice(exchange.say),)
    wording = talk.draw_wording(lines)
    possible = [reply for reply in exchange.reply if slots_of(reply) <= slots_of(wording)]
    echoes = [reply for reply in possible if slots_of(reply)]
    replies = echoes if echoes and talk.dice.chance(ECHO) else possible
    values = {slot: _draw(slot, talk) for slot in sorted(slots_of(wording))}
    lead = talk.dice.choice(LEADS) if talk.dice.chance(0.12) else ""
    talk.add_wording(wording, replies, values, lines, lead=lead)


def _draw(slot: str, talk: Talk) -> str:
    return talk.new_name() if slot == "n" else talk.word(talk.dice.choice(SLOTS[slot]))


SCENES: Scenes = tuple(
    Scene(entry["topic"], entry.get("weight", 1.0), partial(play, SITUATIONS[entry["topic"]]))
    for entry in _TABLES["situation"]
)
