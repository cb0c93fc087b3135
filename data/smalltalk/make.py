"""Generate the smalltalk conversations from scenes.

A conversation depends only on the seed and its index, so any longer output begins with the shorter one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grammar import Dice

from smalltalk import (
    chatter,
    dialogues,
    facts,
    fun,
    memory,
    messages,
    numbers,
    others,
    reactions,
    recall,
    situations,
    small_words,
    stories,
    tastes,
    unknown,
    wishes,
    word_games,
)
from smalltalk.talk import ASKS_BACK, Scene, Scenes, Talk, Turn

SHARES = {
    small_words: 6.0,
    tastes: 1.5,
    facts: 3.8,
    numbers: 2.2,
    fun: 1.5,
    word_games: 1.5,
    others: 1.3,
    wishes: 3.2,
    unknown: 4.8,
    chatter: 0.15,
}
"""Modules, and by how much the weights of their scenes are multiplied, if they are."""
MODULES = (
    small_words,
    messages,
    situations,
    tastes,
    facts,
    numbers,
    fun,
    word_games,
    stories,
    memory,
    others,
    recall,
    wishes,
    unknown,
)
SCENES: Scenes = tuple(
    scene._replace(weight=SHARES.get(module, 1.0) * scene.weight)
    for module in (*MODULES, chatter)
    for scene in module.SCENES
)
WEIGHTS = [scene.weight for scene in SCENES]
LIGHT = ("agreement", "laughter", "doubt", "hesitation", "yes and no")
"""Topics whose replies fit no sad talk: see moods.toml for what people say there."""
OPENINGS = ("hello", "hello", "hello", "time of day", "time of day", "how are you", "how are you", "back again")
DIALOGUES = 0.25
"""Probability that a conversation is one of those written as a whole."""
QUIZZES = 0.15
"""Probability that another one is a quiz for what was just told."""
TESTING, LONGEST_TEST, ASKS_OFTEN = 0.3, 14, 0.5
"""Probability that the person tests how much is remembered; then the conversation has up to so many turns, and at each
they ask back with the last probability."""

ASIDES, ASIDES_TOLD = 0.12, 0.08
"""Probabilities that a word on the last reply stands before what is said next, and something told before a request."""
REQUESTED = frozenset(
    scene.topic for module in (fun, word_games, numbers, facts, unknown, wishes, stories) for scene in module.SCENES
)
"""Topics of which the person's turns are questions and requests."""

TELLS_FACTS, GREETS_ALONE, GREETS, CLOSES, LEAVES_WITH_REASON = 0.16, 0.1, 0.28, 0.3, 0.6
"""Probabilities that the person tells facts to be asked for, says no more than a greeting, begins with one, ends with a
farewell, and that this is one in many words."""

# Weights of 1, 2, … 8 turns.
LENGTHS = (12, 14, 17, 17, 14, 11, 8, 7)


class Promise:
    """A fact to tell at one turn and to ask for at later ones."""

    def __init__(self, talk: Talk) -> None:
        dice = talk.dice
        self.kind = memory.choose(talk)
        gap = dice.between(1, 5)
        self.tell_at = dice.below(max(1, talk.length - gap))
        self.ask_at = [self.tell_at + gap]
        if dice.chance(0.2):
            self.ask_at.append(self.ask_at[0] + dice.between(1, 3))
        self.is_told = False


def topics() -> list[str]:
    """Return the names of all topics."""
    return [
        *(scene.topic for scene in SCENES),
        *recall.TOPICS.values(),
        *(f"memory: {kind.key}" for kind in memory.KINDS),
        reactions.TOPIC,
        reactions.FOLLOW_UP_TOPIC,
        dialogues.TOPIC,
    ]


def converse(dice: Dice, *, held_out: bool = False) -> list[Turn]:
    """Generate one conversation."""
    if dice.chance(DIALOGUES):
        talk = Talk(dice, 1, held_out=held_out)
        dialogues.play(talk)
        return talk.turns
    if dice.chance(QUIZZES):
        talk = Talk(dice, 1, held_out=held_out)
        recall.quiz(talk)
        return talk.turns
    length, asks_back = 1 + dice.weighted(LENGTHS), ASKS_BACK
    if dice.chance(TESTING):
        length, asks_back = dice.between(4, LONGEST_TEST), ASKS_OFTEN
    talk = Talk(dice, length, held_out=held_out, asks_back=asks_back)
    promises = []
    if length > 1 and dice.chance(TELLS_FACTS):
        promises = [Promise(talk) for _ in range(dice.between(1, 1 + length // 3))]
    if dice.chance(GREETS_ALONE if length == 1 else GREETS):
        opening = dice.choice(OPENINGS)
        _play(talk, next(scene for scene in SCENES if scene.topic == opening))
    closing = length > 2 and dice.chance(CLOSES)
    while talk.left:
        index = len(talk.turns)
        if closing and talk.left == 1:
            recall.ask_the_rest(talk)
            talk.topic = "goodbye"
            (messages.leave if dice.chance(LEAVES_WITH_REASON) else small_words.goodbye)(talk)
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
        else:
            if talk.turns and dice.chance(ASIDES):
                talk.aside = messages.aside(talk)
            if not recall.ask(talk) and not reactions.react(talk):
                scene = SCENES[dice.weighted(WEIGHTS)]
                while scene.topic in LIGHT and situations.mood_of(talk) in situations.SAD:
                    scene = SCENES[dice.weighted(WEIGHTS)]
                if scene.topic in REQUESTED and dice.chance(ASIDES_TOLD):
                    talk.aside = messages.statement(talk)
                _play(talk, scene)
            talk.aside = ""
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
