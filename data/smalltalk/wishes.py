"""How people ask for a command, and how the bot names it. It can't turn its own knobs."""

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
    """What a person wants, and the command that does it. `<v>` is a value that the person names."""

    topic: str
    questions: Lines
    replies: Sequence[str]
    value: Sequence[str] = ("",)


def command(name: str, effect: str) -> tuple[str, ...]:
    """The usual forms of an answer that names one command."""
    return (f"Type {name} {effect}.", f"Use {name} {effect}.", f"(Try|You type|That is) {name} {effect}.")


def about(name: str, *, also: str = "") -> str:
    """What it is, asked by its name."""
    words = name.lstrip("/").replace("-", " ")
    also = f"|{also}" if also else ""
    return (
        f"what (does|is) {{{name}}}( do| for|)?|(explain|tell me about|what about|and|how do i use) {{{name}}}(?|)"
        f"|what does (the command|the setting) ({words}{also}) do?|what is the command {words} for?"
    )


def play(it: Wish, talk: Talk) -> None:
    """The person wants something of the program; the bot names the command."""
    talk.ask(it.questions, it.replies, v=talk.dice.choice(it.value))


def scenes(wishes: Sequence[Wish], weight: float) -> Scenes:
    """Each wish as a topic of its own."""
    return tuple(Scene(it.topic, weight, partial(play, it)) for it in wishes)
