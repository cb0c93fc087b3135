"""Whole dialogues, as people of many kinds would hold them: one thing leads to another, and what was told is asked for.

They are in `dialogues/*.txt`: lines in turn of the person and of tinychat, and an empty line after each dialogue.
What fits one message alone is seldom learned, and a model that tries makes up words: most replies keep what many begin
with, and go on as any of their kind.
A slot has the same value all through a dialogue: names, things of a list, numbers. `<joke>`, `<story>` and `<riddle>`
are another one each time; `<hint>` and `<answer>` are those of the last riddle.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from grammar import Dice, Lines, is_reserved, wordings

from smalltalk import fun, messages, numbers, stories, words
from smalltalk.situations import slots_of
from smalltalk.talk import Talk

TOPIC = "a whole dialogue"
HELD_OUT = 25
"""one dialogue in so many is held out"""
PET_NAME = 0.3
"""probability that a second or third name is one of the usual ones of pets"""
CUT = 0.25
"""probability that a dialogue ends before its last turn"""
KEPT, KEPT_WITH_SLOT = 0.1, 0.5
"""probabilities that a reply stays as it is written, and where what comes after its first sentence has a slot"""
SUPPORTED = 0.2
"""probability of a mood, by the words of the last message or two, from which a reply takes a side: see evidence.py"""
COMMON = 4
"""how many replies begin with the same sentence at least, so that a model can learn when"""
ANSWERED = 0.4
"""probability that a rare sentence, which fits one message alone, is the reply to it"""
LARGEST = 50
"""of two numbers to add"""
RECALLING = ("You told me", "You said")
"""beginnings of replies that repeat what the person said, which stay as they are written"""
THINGS = {
    "colour": words.COLOURS,
    "food": words.FOODS,
    "animal": words.ANIMALS,
    "drink": words.DRINKS,
    "sport": words.SPORTS,
    "fruit": words.FRUITS,
    "flower": words.FLOWERS,
    "town": words.TOWNS,
    "job": words.JOBS,
    "thing": words.THINGS,
}
"""slots that take a word of a list"""
NAMES = ("n", "n2", "n3")
MADE = ("joke", "story", "riddle", "hint", "answer", "sum", "difference", "product")
"""slots that replies take and whose values are made"""
SLOTS = frozenset((*THINGS, *NAMES, *MADE, "age", "number", "a", "b", "c", "d"))
_SENTENCES = re.compile(r"(.+?[.!?]) (.+)")
Dialogue = tuple[tuple[str, str], ...]
"""turns, each what the person types and the reply"""


def _read(path: Path) -> list[Dialogue]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [tuple(zip(lines[::2], lines[1::2], strict=True)) for lines in map(str.splitlines, blocks)]


OPENINGS = {opening: name for name, kind in messages.KINDS.items() for opening in sorted(wordings(kind.opening))}
FIRST = {kind: re.compile(like) for kind, like in words.table(__file__)["first"].items()}
DIALOGUES = [dialogue for path in sorted(Path(__file__).with_suffix("").glob("*.txt")) for dialogue in _read(path)]
HELD_OUT_DIALOGUES = [one for one in DIALOGUES if is_reserved(HELD_OUT, one[0][0])]
TRAINED = [one for one in DIALOGUES if not is_reserved(HELD_OUT, one[0][0])]
_FIRST_SENTENCES = Counter(
    found[1] if (found := _SENTENCES.fullmatch(reply)) else reply for dialogue in TRAINED for _, reply in dialogue
)
TRAINED_LINES = {said for dialogue in TRAINED for said, _ in dialogue}


def _values(talk: Talk) -> dict[str, str]:
    """Return values of all slots but those that are made for each turn, as the person types them."""
    dice = talk.dice
    values = {slot: talk.word(dice.choice(things)) for slot, things in THINGS.items()}
    for slot in NAMES:
        name = talk.new_name()
        if slot != "n" and dice.chance(PET_NAME):
            name = talk.word(dice.choice(words.PET_NAMES))
        while name in values.values():
            name = talk.new_name()
        values[slot] = name
    second, first = sorted(dice.sample(range(1, LARGEST + 1), 2))
    factors = dice.between(2, numbers.TABLES), dice.between(2, numbers.TABLES)
    return values | {
        "age": str(dice.between(6, 89)),
        "number": str(dice.between(2, dice.choice((12, 30, 99)))),
        "a": str(first),
        "b": str(second),
        "c": str(factors[0]),
        "d": str(factors[1]),
        "sum": f"{numbers.worked_out(first, 'plus', second)}.",
        "difference": f"{numbers.worked_out(first, 'minus', second)}.",
        "product": f"{factors[0]} times {factors[1]} is {factors[0] * factors[1]}.",
    }


def _kind(first: str) -> str:
    """Return the kind of message to which a reply begins with the sentence, or nothing."""
    return OPENINGS.get(first) or next((kind for kind, like in FIRST.items() if like.fullmatch(first)), "")


def _reply(dice: Dice, before: str, said: str, reply: str) -> Lines:
    """Return what to reply: what was written, or what any message of its kind may hear."""
    found = _SENTENCES.fullmatch(reply)
    first, rest = (found[1], found[2]) if found else (reply, "")
    is_kept = dice.chance(KEPT_WITH_SLOT if slots_of(rest) else KEPT) or reply.startswith(RECALLING)
    if is_kept or (slots_of(first) and not rest):
        return reply
    if kind := _kind(first):
        if kind in messages.MOODS and not slots_of(first):
            support = max(messages.support(text, kind) for text in (said, f"{before} {said}"))
            if support < SUPPORTED:
                return messages.NEUTRAL_REPLIES
        return f"{first} {messages.KINDS[kind].more}"
    if slots_of(first) or _FIRST_SENTENCES[first] >= COMMON or dice.chance(ANSWERED):
        return first
    return messages.answer(said, asks=messages.is_request(said))


def play(talk: Talk) -> None:
    """Add the turns of a dialogue."""
    dice = talk.dice
    dialogue = dice.choice(HELD_OUT_DIALOGUES if talk.held_out else TRAINED)
    talk.length = dice.between(2, len(dialogue) - 1) if dice.chance(CUT) else len(dialogue)
    values = _values(talk)
    before = ""
    for said, reply in dialogue[: talk.length]:
        made = slots_of(reply)
        if "joke" in made:
            joke = fun.new_joke(talk)
            values["joke"] = f"{joke.question} {joke.answer}"
        if "story" in made:
            values["story"] = stories.new_story(talk)
        if "riddle" in made:
            riddle = fun.new_riddle(talk)
            values |= {
                "riddle": fun.RIDDLE.replace("<text>", riddle.text),
                "hint": riddle.hint,
                "answer": f"It is {riddle.answer}.",
            }
        talk.topic = TOPIC
        talk.add_wording(said, _reply(dice, before, said, reply), values, ())
        before = said
        talk.turns[-1] = talk.turns[-1]._replace(is_held_out=talk.held_out and said not in TRAINED_LINES)
