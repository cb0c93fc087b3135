"""Whole dialogues, as people of many kinds would hold them: one thing leads to another, and what was told is asked for.

They are in `dialogues/*.txt`: lines in turn of the person and of tinychat, and an empty line after each dialogue.
Free replies are seldom learned, and a model that tries makes up words. So the corpus keeps the kind of a written reply:
an answer to a question for what was told becomes a quote, as in `recall`; another reply keeps its first sentence, and
goes on as any of its kind, or takes no side where the words of the message do not bear out a mood. Jokes, sums and what
is often written stay as they are; a question that none of this answers is left out.
A slot has the same value all through a dialogue: names, things of a list, numbers. `<joke>`, `<story>` and `<riddle>`
are another one each time; `<hint>` and `<answer>` are those of the last riddle.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from grammar import Dice, Lines, insert, is_reserved, listed, wordings

from smalltalk import fun, messages, numbers, quotes, recall, stories, words
from smalltalk.evidence import Evidence
from smalltalk.situations import slots_of
from smalltalk.talk import Talk, sentences

TOPIC = "a whole dialogue"
HELD_OUT = 25
"""One dialogue in so many is held out."""
PET_NAME = 0.3
"""Probability that a second or third name is one of the usual ones of pets."""
CUT = 0.25
"""Probability that a dialogue ends before its last turn."""
AFTER_OTHER, LONGEST_OTHER = 0.15, 3
"""Probability that a dialogue comes after the first turns of another one, and how many of these at most."""
LOWERED = 0.4
"""Probability that a person writes no capitals, even if the dialogue has some."""
FIRST_ONLY = 0.4
"""Probability that a reply goes on with nothing."""
LEAST_SUPPORT = 0.42
"""Probability of a mood, or of a kind of question, by the words of the last message or two, from which a reply takes a
side: see evidence.py."""
KEPT_FROM = 8
"""A sentence that is written at least so often is kept as it is."""
LARGEST = 50
"""Of two numbers to add."""
LONGEST_ANSWER, ANSWERING = 14, 0.6
"""Of an answer to what was told before: in words; and the least share of its words that were told."""
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
"""Slots that take a word of a list."""
PLURALS = {"animals": "animal", "fruits": "fruit", "flowers": "flower"}
"""Slots that take the plural of another one."""
NAMES = ("n", "n2", "n3")
LEANING = 3
"""In words: what is as short as this may lean on the turn before."""
_LEAD = re.compile(
    r"(?i)^\W*((and|so|ok|okay|now|but|well|hey|wait|yes|no|haha|lol|then|oh|hm+|in|at|on|with|by|from|for)\b\W*)*"
)
"""What may stand before the word that asks."""
_BEGINNING = re.compile(r"(?<=[^.][.!?] )[a-z](?=[a-z])")
"""Of a sentence; none of a letter of “r-h-u”, nor behind “…”."""
MADE = ("joke", "story", "riddle", "hint", "answer", "sum", "difference", "product")
"""Slots that replies take and whose values are made."""
SLOTS = frozenset((*THINGS, *PLURALS, *NAMES, *MADE, "age", "number", "a", "b", "c", "d"))
Dialogue = tuple[tuple[str, str], ...]
"""Turns, each what the person types and the reply."""


def _read(path: Path) -> list[Dialogue]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [tuple(zip(lines[::2], lines[1::2], strict=True)) for lines in map(str.splitlines, blocks)]


_TABLES = words.table(__file__)
_OPENINGS = {opening: name for name, kind in messages.KINDS.items() for opening in wordings(kind.opening)}
_FIRST = {kind: re.compile(like) for kind, like in _TABLES["first"].items()}
_CLEAR = re.compile(_TABLES["clear"])
MORE: dict[str, str] = {name: kind.more for name, kind in messages.KINDS.items()} | _TABLES["more"]
_SMALL = frozenset(listed(_TABLES["small"]))
"""Words that answer nothing."""
NEUTRAL = "neutral"
"""Kind of replies that take no side."""
DIALOGUES = [dialogue for path in sorted(Path(__file__).with_suffix("").glob("*.txt")) for dialogue in _read(path)]
HELD_OUT_DIALOGUES = [one for one in DIALOGUES if is_reserved(HELD_OUT, one[0][0])]
TRAINED = [one for one in DIALOGUES if not is_reserved(HELD_OUT, one[0][0])]
TRAINED_LINES = {said.lower() for dialogue in TRAINED for said, _ in dialogue}


_COUNTS = Counter(sentence for dialogue in TRAINED for _, reply in dialogue for sentence in sentences(reply))


def _kind(first: str) -> str:
    """Return the kind of message to which a reply begins with the sentence, or nothing."""
    return _OPENINGS.get(first) or next((kind for kind, like in _FIRST.items() if like.fullmatch(first)), "")


def _asks(said: str) -> bool:
    """Return whether a message asks for something, with or without a mark."""
    return any(messages.is_request(_LEAD.sub("", one)) for one in sentences(said))


@cache
def _evidence() -> Evidence:
    """Return what the words of messages and of dialogues tell."""
    written = [(message.text, message.kind) for message in messages.TRAINED]
    met = [(said, kind) for dialogue in TRAINED for said, reply in dialogue if (kind := _kind(sentences(reply)[0]))]
    return Evidence([*written, *met])


@cache
def _support(text: str, kind: str) -> float:
    return messages.odds(_evidence().of(text, kind), kind)


def _stems(text: str) -> set[str]:
    """Return the words of a text that mean something, without their endings."""
    found = (word.lower() for word in re.findall(r"<\w+>|[\w'-]+", text))
    return {re.sub(r"(?<=...)(ing|ed|es|'s|s)$", "", word) for word in found if word not in _SMALL}


@cache
def recalled(dialogue: Dialogue, at: int) -> str:
    """Return the part of an earlier message that answers the one at `at`, or nothing if it does not ask for one."""
    said, reply = dialogue[at]
    is_short = len(reply.split()) <= LONGEST_ANSWER
    if not is_short or not _asks(said) or _kind(sentences(reply)[0]) or slots_of(reply) & set(MADE):
        return ""
    asked = _stems(said)
    answer = _stems(reply) - asked
    found = [
        ((len(answer & _stems(part)), len(asked & _stems(part)), turn), part)
        for turn, (earlier, _) in enumerate(dialogue[:at])
        for part in quotes.parts(earlier)
        if '"' not in part
    ]
    (shared, _, _), part = max(found, default=((0, 0, 0), ""))
    return part if answer and shared / len(answer) >= ANSWERING else ""


def _reply(dice: Dice, dialogue: Dialogue, at: int) -> Lines:
    """Return what to reply: what was written, or what any message of its kind may hear; nothing, if neither will do."""
    said, reply = dialogue[at]
    first, *rest = sentences(reply)
    kind = _kind(first)
    if slots_of(reply) & set(MADE) or (not kind and all(_COUNTS[one] >= KEPT_FROM for one in (first, *rest))):
        return reply
    if not kind:
        return messages.answer(said) if not _asks(said) else _answer_question(said)
    before = dialogue[at - 1][0] if at else ""
    is_clear = kind not in messages.MOODS or _CLEAR.match(first)
    if kind == NEUTRAL or not (
        is_clear or max(_support(said, kind), _support(f"{before} {said}", kind)) >= LEAST_SUPPORT
    ):
        return messages.NEUTRAL_REPLIES
    return first if dice.chance(FIRST_ONLY) else f"{first} {MORE[kind]}"


def _answer_question(said: str) -> Lines:
    """Return what a question of the likeliest kind hears, or nothing if none is likely enough."""
    found = {kind: odds for kind, odds in messages.kinds_of(said).items() if kind in messages.ASKED}
    kind = max(sorted(found), key=found.__getitem__)
    return messages.replies_to(said, kind) if found[kind] >= LEAST_SUPPORT else ""


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
    """Add the turns of a dialogue, and perhaps questions for what was told between them."""
    dice = talk.dice
    dialogues = HELD_OUT_DIALOGUES if talk.held_out else TRAINED
    talk.style = "lower" if dice.chance(LOWERED) else "careful"
    if dice.chance(AFTER_OTHER):
        other = dice.choice(dialogues)
        _add(talk, other, dice.between(1, min(LONGEST_OTHER, len(other))))
    dialogue = dice.choice(dialogues)
    _add(talk, dialogue, dice.between(2, len(dialogue) - 1) if dice.chance(CUT) else len(dialogue))
    if not talk.turns:  # all of a short one were left out
        play(talk)
    talk.length = len(talk.turns)


def _add(talk: Talk, dialogue: Dialogue, length: int) -> None:
    """Add the first `length` turns, and perhaps questions for what was told between them."""
    values = values_of(talk)
    for at, (said, reply) in enumerate(dialogue[:length]):
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
        is_lowered = talk.style == "lower"
        typed = said.lower() if is_lowered else said
        if part := recalled(dialogue, at):
            quoted = insert(part.lower() if is_lowered else part, values)
            if not any(quoted in turn.user for turn in talk.turns) or quotes.is_quoted(quoted, talk):
                continue  # it answers by a message that was left out, or was asked for before
            talk.add_typed(typed, quotes.ANSWER, values | {"v": quoted})
        elif stock := _reply(talk.dice, dialogue, at):
            talk.add_typed(typed, stock, values)
            talk.turns[-1] = talk.turns[-1]._replace(
                assistant=_BEGINNING.sub(lambda found: found[0].upper(), talk.turns[-1].assistant)
            )
        else:
            continue  # what leans on it may still be understood
        is_held_out = talk.held_out and said.lower() not in TRAINED_LINES
        kind = "" if _asks(said) else "told"
        talk.turns[-1] = talk.turns[-1]._replace(is_held_out=is_held_out, kind=kind)
        follows = dialogue[at + 1][0] if at + 1 < length else ""
        later = (part for turn in range(at + 1, length) if (part := recalled(dialogue, turn)))
        talk.asked_later = [insert(part.lower() if is_lowered else part, values) for part in later]
        is_farewell = _kind(sentences(reply)[0]) == "bye"
        if not is_farewell and (not follows or len(follows.split()) > LEANING):
            recall.ask(talk)
