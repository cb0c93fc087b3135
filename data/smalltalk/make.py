"""Makes the smalltalk conversations out of scenes.

A conversation depends on the seed and its number alone, so the first thousand of any longer output are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grammar import Dice

from smalltalk import (
    commands,
    facts,
    feelings,
    fun,
    greetings,
    identity,
    memory,
    numbers_to_twenty,
    stories,
    unknown,
)
from smalltalk.talk import Scenes, Talk

TOPICS: Scenes = (
    greetings.SCENES
    + feelings.SCENES
    + identity.SCENES
    + facts.SCENES
    + numbers_to_twenty.SCENES
    + fun.SCENES
    + stories.SCENES
    + memory.SCENES
    + commands.SCENES
    + unknown.SCENES
)
WEIGHTS = [weight for weight, _ in TOPICS]

# How likely 1, 2, … 8 turns are.
LENGTHS = (12, 14, 17, 17, 14, 11, 8, 7)


class Promise:
    """A fact to be told at one turn and asked for at later ones."""

    def __init__(self, dice: Dice, length: int, talk: Talk) -> None:
        self.kind = memory.choose(talk)
        gap = dice.between(1, 5)
        self.tell_at = dice.below(max(1, length - gap))
        self.ask_at = [self.tell_at + gap]
        if dice.chance(0.2):
            self.ask_at.append(self.ask_at[0] + dice.between(1, 3))
        self.told = False


def converse(dice: Dice, *, held_out: bool = False) -> list[tuple[str, str]]:
    """One conversation: its turns as (user, bot)."""
    length = 1 + dice.weighted(LENGTHS)
    talk = Talk(dice, length, held_out=held_out)
    promises = []
    if length > 1 and dice.chance(0.55):
        promises = [Promise(dice, length, talk) for _ in range(dice.between(1, 1 + length // 3))]
    if dice.chance(0.1 if length == 1 else 0.28):
        dice.choice(
            (greetings.hello, greetings.hello, greetings.time_of_day, greetings.back_again, greetings.how_are_you)
        )(talk)
    closing = length > 2 and dice.chance(0.22)
    while talk.left:
        at = len(talk.turns)
        if closing and talk.left == 1:
            greetings.goodbye(talk)
            break
        asked = next(
            (promise for promise in promises if promise.told and promise.ask_at and promise.ask_at[0] <= at), None
        )
        told = next((promise for promise in promises if not promise.told and promise.tell_at <= at), None)
        if asked:
            asked.ask_at.pop(0)
            memory.ask(talk, asked.kind)
        elif told:
            told.told = True
            memory.tell(talk, told.kind)
        else:
            TOPICS[dice.weighted(WEIGHTS)][1](talk)
    return talk.turns


def conversations(count: int, seed: int, *, held_out: bool = False) -> Iterator[list[tuple[str, str]]]:
    """`count` conversations; with `held_out`, other ones, whose invented and listed names training never sees."""
    part = "held-out" if held_out else "train"
    for number in range(count):
        yield converse(Dice(f"smalltalk {part} {seed} {number}"), held_out=held_out)


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """The conversations, each a line of JSON."""
    for turns in conversations(count, seed, held_out=held_out):
        messages = []
        for user, bot in turns:
            messages += [{"role": "user", "content": user}, {"role": "bot", "content": bot}]
        yield json.dumps({"messages": messages}, ensure_ascii=False) + "\n"
