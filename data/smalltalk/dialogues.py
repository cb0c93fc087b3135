"""Whole dialogues, as people of many kinds would hold them: one thing leads to another, and what was told is asked for.

They are in `dialogues/*.txt`: lines in turn of the person and of tinychat, and an empty line after each dialogue. What
fits one message alone is seldom learned, and a model that tries makes up words: so replies say in few common words how
it feels, and repeat words of what was said.
A slot has the same value all through a dialogue: names, things of a list, numbers. `<joke>`, `<story>` and `<riddle>`
are another one each time; `<hint>` and `<answer>` are those of the last riddle.
"""

from __future__ import annotations

import re
from pathlib import Path

from grammar import is_reserved

from smalltalk import fun, numbers, stories, words
from smalltalk.situations import slots_of
from smalltalk.talk import Talk

TOPIC = "a whole dialogue"
HELD_OUT = 25
"""one dialogue in so many is held out"""
PET_NAME = 0.3
"""probability that a second or third name is one of the usual ones of pets"""
CUT = 0.25
"""probability that a dialogue ends before its last turn"""
AFTER_OTHER, LONGEST_OTHER = 0.15, 3
"""probability that a dialogue comes after the first turns of another one, and how many of these at most"""
LOWERED = 0.4
"""probability that a person writes no capitals, even if the dialogue has some"""
LARGEST = 50
"""of two numbers to add"""
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
PLURALS = {"animals": "animal", "fruits": "fruit", "flowers": "flower"}
"""slots that take the plural of another one"""
NAMES = ("n", "n2", "n3")
_BEGINNING = re.compile(r"(?<=[^.][.!?] )[a-z](?=[a-z])")
"""of a sentence; none of a letter of “r-h-u”, nor behind “…”"""
MADE = ("joke", "story", "riddle", "hint", "answer", "sum", "difference", "product")
"""slots that replies take and whose values are made"""
SLOTS = frozenset((*THINGS, *PLURALS, *NAMES, *MADE, "age", "number", "a", "b", "c", "d"))
Dialogue = tuple[tuple[str, str], ...]
"""turns, each what the person types and the reply"""


def _read(path: Path) -> list[Dialogue]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [tuple(zip(lines[::2], lines[1::2], strict=True)) for lines in map(str.splitlines, blocks)]


DIALOGUES = [dialogue for path in sorted(Path(__file__).with_suffix("").glob("*.txt")) for dialogue in _read(path)]
HELD_OUT_DIALOGUES = [one for one in DIALOGUES if is_reserved(HELD_OUT, one[0][0])]
TRAINED = [one for one in DIALOGUES if not is_reserved(HELD_OUT, one[0][0])]
TRAINED_LINES = {said.lower() for dialogue in TRAINED for said, _ in dialogue}


def values_of(talk: Talk) -> dict[str, str]:
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
    smaller, larger = sorted(dice.sample(range(1, LARGEST + 1), 2))
    factors = dice.between(2, numbers.TABLES), dice.between(2, numbers.TABLES)
    values |= {slot: words.plural(values[one]) for slot, one in PLURALS.items()}
    return values | {
        "age": str(dice.between(6, 89)),
        "number": str(dice.between(2, dice.choice((12, 30, 99)))),
        "a": str(smaller),
        "b": str(larger),
        "c": str(factors[0]),
        "d": str(factors[1]),
        "sum": f"{numbers.worked_out(smaller, 'plus', larger)}.",
        "difference": f"{numbers.worked_out(larger, 'minus', smaller)}.",
        "product": f"{factors[0]} times {factors[1]} is {factors[0] * factors[1]}.",
    }


def play(talk: Talk) -> None:
    """Add the turns of a dialogue."""
    dice = talk.dice
    dialogues = HELD_OUT_DIALOGUES if talk.held_out else TRAINED
    talk.style = "lower" if dice.chance(LOWERED) else "careful"
    if dice.chance(AFTER_OTHER):
        other = dice.choice(dialogues)
        _add(talk, other, dice.between(1, min(LONGEST_OTHER, len(other))))
    dialogue = dice.choice(dialogues)
    _add(talk, dialogue, dice.between(2, len(dialogue) - 1) if dice.chance(CUT) else len(dialogue))
    talk.length = len(talk.turns)


def _add(talk: Talk, dialogue: Dialogue, length: int) -> None:
    """Add the first `length` turns."""
    values = values_of(talk)
    for said, reply in dialogue[:length]:
        made = slots_of(reply)
        if "joke" in made:
            joke = fun.new_joke(talk)
            values = values | {"joke": f"{joke.question} {joke.answer}"}
        if "story" in made:
            values = values | {"story": stories.new_story(talk)}
        if "riddle" in made:
            riddle = fun.new_riddle(talk)
            values = values | {
                "riddle": fun.RIDDLE.replace("<text>", riddle.text),
                "hint": riddle.hint,
                "answer": f"It is {riddle.answer}.",
            }
        talk.topic = TOPIC
        talk.add_typed(said if talk.style == "careful" else said.lower(), reply, values)
        turn = talk.turns[-1]
        talk.turns[-1] = turn._replace(
            assistant=_BEGINNING.sub(lambda found: found[0].upper(), turn.assistant),
            is_held_out=talk.held_out and said.lower() not in TRAINED_LINES,
        )
