"""Requests that a command fulfils; the bot names the command, as it can't change settings itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from grammar import Lines

from smalltalk.talk import Scene, Scenes, Talk

HOW = (
    "(how do i|how can i|how could i|how would i|how should i|how to|can i|is there a way to|i want to|i'd like to|what"
    " do i type to|which command can|what command lets me|help me|where do i|is it possible to|i need to|show me how"
    " to)"
)
MAKE = (
    "(how do i make you|how can i make you|can you be|be|i want you to be|make yourself|please be|could you be|you"
    " should"
    " be|how do i get you to be|i'd like you to be|what makes you|how to make you|can i make you|what do i type to make"
    " you)"
)
CAN = (
    "(how do i|how can i|how to|i want to|i need to|what do i type to|which command lets me|can i|what must i type to"
    "|is"
    " it possible to|what is the command to|command to|is there a command to|please help me to|i'd like to|where can i"
    "|show me how to|how would i)"
)


class Wish(NamedTuple):
    """A request and the command that fulfils it; `<v>` is a value that the person names."""

    topic: str
    questions: Lines
    replies: Sequence[str]
    value: Sequence[str] = ("",)


def command(name: str, effect: str) -> tuple[str, ...]:
    """Return the usual answers that name one command."""
    return (f"Type {name} {effect}.", f"Use {name} {effect}.", f"(Try|You type|That is) {name} {effect}.")


def about(name: str, *, also: str = "") -> str:
    """Return questions that ask what a feature is, by its name."""
    words = name.lstrip("/").replace("-", " ")
    also = f"|{also}" if also else ""
    return (
        f"what (does|is) {{{name}}}( do| for|)?|(explain|tell me about|what about|and|how do i use) {{{name}}}(?|)"
        f"|what does (the command|the setting) ({words}{also}) do?|what is the command {words} for?"
    )


def play(wish: Wish, talk: Talk) -> None:
    """Add a request for a feature; the bot names the command."""
    talk.ask(wish.questions, wish.replies, v=talk.dice.choice(wish.value))


def scenes(wishes: Sequence[Wish], weight: float) -> Scenes:
    """Return each wish as a topic of its own."""
    return tuple(Scene(wish.topic, weight, partial(play, wish)) for wish in wishes)
