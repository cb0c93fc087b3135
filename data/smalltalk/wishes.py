"""Requests that a setting or command fulfils; the bot names it, as it can't change its settings itself.

The requests are in `wishes.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from grammar import listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

_FILE = words.table(__file__)
WEIGHTS = {"settings": 0.66, "talking": 0.66, "models": 0.66, "looking": 0.64, "program": 1.0}
"""Tables, and the weight of each of their topics."""


class Wish(NamedTuple):
    """A request and the command that fulfils it; `<v>` is a value that the person names."""

    topic: str
    weight: float
    questions: tuple[str, ...]
    replies: Sequence[str]
    value: Sequence[str]


def _questions(line: str) -> str:
    if not line.startswith("ABOUT /"):
        return next((_FILE[name] + line[len(name) :] for name in ("HOW", "MAKE", "CAN") if line.startswith(name)), line)
    name, *also = line.removeprefix("ABOUT ").split()
    named = name.lstrip("/").replace("-", " ")
    return (
        f"what does {{{name}}} do?|what is {{{name}}}( for|)?"
        f"|(explain|tell me about|what about|and|how do i use) {{{name}}}(?|)"
        f"|what does (the command|the setting) ({'|'.join((named, *also))}) do?|what is the command {named} for?"
    )


def _wish(entry: dict[str, Any], weight: float) -> Wish:
    reply = entry["reply"]
    if isinstance(reply, str):
        reply = (f"Type {reply}.", f"Use {reply}.", f"(Try|You type|That is) {reply}.")
    value = listed(entry.get("value", ""), ",")
    return Wish(entry["topic"], weight, tuple(map(_questions, entry["say"])), reply, value)


WISHES = tuple(_wish(entry, weight) for name, weight in WEIGHTS.items() for entry in _FILE[name])


def play(wish: Wish, talk: Talk) -> None:
    """Add a request for a feature; the bot names the command."""
    talk.ask(wish.questions, wish.replies, v=talk.dice.choice(wish.value))


SCENES: Scenes = tuple(Scene(wish.topic, wish.weight, partial(play, wish)) for wish in WISHES)
