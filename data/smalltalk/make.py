"""Generate the smalltalk conversations from scenes.

A conversation depends only on the seed and its index, so any longer output begins with the shorter one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grammar import Dice

from smalltalk import (
    chatter,
    commands,
    facts,
    feelings,
    fun,
    greetings,
    identity,
    memory,
    numbers,
    others,
    personal,
    reactions,
    settings,
    situations,
    small_words,
    stories,
    unknown,
    word_games,
)
from smalltalk.talk import Scene, Scenes, Talk, Turn

SCENES: Scenes = (
    greetings.SCENES
    + small_words.SCENES
    + feelings.SCENES
    + situations.SCENES
    + identity.SCENES
    + personal.SCENES
    + facts.SCENES
    + numbers.SCENES
    + fun.SCENES
    + word_games.SCENES
    + stories.SCENES
    + memory.SCENES
    + others.SCENES
    + settings.SCENES
    + commands.SCENES
    + unknown.SCENES
    + chatter.SCENES
)
WEIGHTS = [scene.weight for scene in SCENES]
OPENINGS = ("hello", "hello", "time of day", "back again", "how are you")

# Weights of 1, 2, … 8 turns.
LENGTHS = (12, 14, 17, 17, 14, 11, 8, 7)


class Promise:
    """A fact to tell at one turn and to ask for at later ones."""

    def __init__(self, dice: Dice, length: int, talk: Talk) -> None:
        self.kind = memory.choose(talk)
        gap = dice.between(1, 5)
        self.tell_at = dice.below(max(1, length - gap))
        self.ask_at = [self.tell_at + gap]
        if dice.chance(0.2):
            self.ask_at.append(self.ask_at[0] + dice.between(1, 3))
        self.is_told = False


def topics() -> list[str]:
    """Return the names of all topics."""
    return [*(scene.topic for scene in SCENES), *(f"memory: {kind.key}" for kind in memory.KINDS), reactions.TOPIC]


def converse(dice: Dice, *, held_out: bool = False) -> list[Turn]:
    """Generate one conversation."""
    length = 1 + dice.weighted(LENGTHS)
    talk = Talk(dice, length, held_out=held_out)
    promises = []
    if length > 1 and dice.chance(0.6):
        promises = [Promise(dice, length, talk) for _ in range(dice.between(1, 1 + length // 3))]
    if dice.chance(0.1 if length == 1 else 0.28):
        opening = dice.choice(OPENINGS)
        _play(talk, next(scene for scene in greetings.SCENES if scene.topic == opening))
    closing = length > 2 and dice.chance(0.17)
    while talk.left:
        index = len(talk.turns)
        if closing and talk.left == 1:
            talk.topic = "goodbye"
            greetings.goodbye(talk)
            break
        to_ask = next(
            (promise for promise in promises if promise.is_told and promise.ask_at and promise.ask_at[0] <= index), None
        )
        to_tell = next((promise for promise in promises if not promise.is_told and promise.tell_at <= index), None)
        if to_ask:
            to_ask.ask_at.pop(0)
            talk.topic = f"memory: {to_ask.kind.key}"
            memory.ask(talk, to_ask.kind)
        elif to_tell:
            to_tell.is_told = True
            talk.topic = f"memory: {to_tell.kind.key}"
            memory.tell(talk, to_tell.kind)
        elif not reactions.react(talk):
            _play(talk, SCENES[dice.weighted(WEIGHTS)])
    return talk.turns


def _play(talk: Talk, scene: Scene) -> None:
    talk.topic = scene.topic
    scene.play(talk)


def conversations(count: int, seed: int, *, held_out: bool = False) -> Iterator[list[Turn]]:
    """Yield `count` conversations.

    With `held_out`, names come from the held-out split alone, and so do wordings wherever a template has any.
    """
    part = "held-out" if held_out else "train"
    for index in range(count):
        yield converse(Dice(f"smalltalk {part} {seed} {index}"), held_out=held_out)


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the conversations as lines of JSON."""
    for turns in conversations(count, seed, held_out=held_out):
        messages = []
        for turn in turns:
            messages += [{"role": "user", "content": turn.user}, {"role": "assistant", "content": turn.assistant}]
        yield json.dumps({"messages": messages}, ensure_ascii=False) + "\n"
