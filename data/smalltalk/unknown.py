"""Questions outside the bot's knowledge, answered by an honest, short “I don't know that” that takes up the topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from phrases import english

from smalltalk import situations, words
from smalltalk.chatter import turned
from smalltalk.talk import Scene, Scenes, Talk

_FILE = words.table(__file__)
ASKED: list[dict[str, Any]] = _FILE["ask"]
ITEMS = words.named(_FILE["items"])
ITEMS["any"] = [
    *situations.SLOTS["xm"],
    *(english.plural(noun) for slot in ("xa", "xt", "xp", "xl", "xf") for noun in situations.SLOTS[slot]),
]
"""What questions are about, by slot."""
GENERAL = 0.22
"""Probability of a reply that does not take up what was asked about."""

_SLOT = re.compile(r"<(\w+)>")


def _value(talk: Talk, slot: str) -> str:
    """Return something to ask about, with its own slots filled in, as the person types it."""
    if slot == "made":
        return talk.new_word()
    if slot == "name":
        return talk.new_name()
    if slot == "year":
        return str(talk.dice.between(1066, 2024))
    item = talk.word(_item(talk, ITEMS[slot]))
    return _SLOT.sub(lambda found: _value(talk, found[1]), item)


def unknown(talk: Talk) -> None:
    """Add a question that the bot can't answer, and the reply that says so; perhaps the person insists."""
    asked = talk.dice.choice(ASKED)
    slots = {slot for line in (*asked["say"], *asked["reply"]) for slot in situations.slots_of(line)}
    values = {slot: _value(talk, slot) for slot in sorted(slots - {"turned", "offer"})}
    if asked["about"]:
        values["turned"] = turned(values[asked["about"]])
    replies = asked["reply"]
    if not replies or talk.dice.chance(GENERAL):
        replies = _FILE["replies"]
    talk.ask(asked["say"], [line.replace("<offer>", f"({_FILE['offers']})") for line in replies], **values)
    if talk.left and talk.dice.chance(0.12):
        talk.turn(_FILE["insisted"], _FILE["modest"])


def _item(talk: Talk, items: Sequence[str]) -> str:
    """Return the item to ask about; some items are reserved for the held-out split, where a list has enough of them."""
    possible = [item for item in items if words.is_held_out(item) == talk.held_out]
    return talk.dice.choice(possible or items)


SCENES: Scenes = (Scene("what it does not know", 40.0, unknown),)
