"""State of one conversation while it is generated: turns, typing style, and facts told by the person."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from grammar import Dice, Lines, choose, fill, insert, is_reserved, plainest, wordings

from smalltalk import words
from smalltalk.typing_style import AFTER, BEFORE, STYLES, WEIGHTS, typed, write

HELD_OUT_WORDINGS = ((60, 12), (8, 5))
"""Pairs (least, every): with at least so many wordings, one in `every` is held out; with fewer, none."""
SHORTEST_HELD_OUT = 4
"""In words; shorter wordings always belong to the training split."""
REDRAWN = 6
"""How often a reply is drawn again whose last sentence tinychat has said before in the conversation."""
TRIES = 30
ASKS_BACK = 0.25
"""Probability that people ask for something that they said, unless they try how much is kept."""
LED_IN, ENDED = 0.24, 0.1
"""Probabilities that something stands before a question, and after it."""
PLAINEST = 0.15
"""Probability of the plainest wording of a template, since people say it most often."""
_ASKS_FOR_NAME = re.compile(r"(?<=tinychat\.) (What is yours|Who are you)\?")
_MARK = re.compile(r"[^\w<>:'/ ]|(?<=\w):(?!\w)")


@cache
def bare(wording: str) -> str:
    """Return the wording without punctuation, which people may omit."""
    return " ".join(_MARK.sub(" ", wording).split())


def is_held_out(lines: Lines, wording: str) -> bool:
    """Return whether a user wording belongs to the held-out split."""
    return bare(wording) in _held_out((lines,) if isinstance(lines, str) else tuple(lines))


@cache
def _held_out(templates: tuple[str, ...]) -> frozenset[str]:
    """Return the held-out wordings, without punctuation, chosen by their letters.

    The plainest wording and those of fewer than four words always belong to the training split. Every word of a
    held-out wording also occurs in some training wording: the held-out split tests new combinations of known words,
    not unknown words.
    """
    all_wordings = {bare(wording) for template in templates for wording in wordings(template)}
    every = next((every for least, every in HELD_OUT_WORDINGS if len(all_wordings) >= least), 0)
    if not every:
        return frozenset()
    plain = bare(plainest(templates[0]))
    long_enough = {
        wording for wording in all_wordings if len(wording.split()) >= SHORTEST_HELD_OUT and wording != plain
    }
    reserved = {wording for wording in long_enough if is_reserved(every, wording)}
    known = {word for wording in all_wordings - reserved for word in wording.split()}
    return frozenset(wording for wording in reserved if known.issuperset(wording.split()))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with their marks."""
    return re.split(r"(?<=[.!?]) ", text)


def last_sentence(reply: str) -> str:
    """Return the last sentence of a reply, or all of one that quotes."""
    return reply if '"' in reply else sentences(reply)[-1]


class Turn(NamedTuple):
    """A user message and its reply."""

    user: str
    assistant: str
    topic: str
    is_held_out: bool
    """Whether the user's wording belongs to the held-out split."""
    wording: str
    """The user's wording, with its slots open."""
    replies: Lines
    """Templates from which the reply was drawn."""
    values: dict[str, str]
    """Values of the slots."""
    kind: str = ""
    """Of a message: see `messages`."""


class Asked(NamedTuple):
    """A question to be asked at a later turn."""

    topic: str
    question: str
    part: str
    """The quote that answers it."""


class Talk:
    """A conversation so far: turns, random source, typing style and facts.

    `length` is the target number of turns. With `held_out`, names come only from the held-out split, and so do wordings
    wherever a template has any. `asks_back` is the probability that the person asks for something that they said, at
    each turn at which they can.
    """

    def __init__(self, dice: Dice, length: int, *, held_out: bool = False, asks_back: float = ASKS_BACK) -> None:
        self.dice = dice
        self.length = length
        self.held_out = held_out
        self.style = STYLES[dice.weighted(WEIGHTS)]
        self.topic = ""
        self.turns: list[Turn] = []
        self.facts: dict[str, str] = {}
        self.told_in: dict[str, str] = {}
        """The messages that told facts, but for those that `others` told."""
        self.aside = ""
        """What stands before the next message, in the same line."""
        self.asks_back = asks_back
        self.to_ask: list[Asked] = []
        """Questions of `recall`."""
        self.asked_later: list[str] = []
        """Quotes that a dialogue asks for by itself at later turns."""
        self.topics_told: set[str] = set()
        """What `others` has told of."""

    @property
    def left(self) -> int:
        """Number of turns still to come."""
        return self.length - len(self.turns)

    def turn(self, user: Lines, assistant: Lines, **values: str) -> None:
        """Add one turn from the templates of both sides."""
        self.add_wording(self.draw_wording(user), assistant, values, user)

    def ask(self, user: Lines, assistant: Lines, **values: str) -> None:
        """Add one turn in which the user may add a lead-in or an ending."""
        wording = self.draw_wording(user)
        text = insert(wording, values, mark=True)
        if self.dice.chance(LED_IN):
            text = self.dice.choice(BEFORE) + text
        if self.dice.chance(ENDED):
            end = text[-1] if text[-1] in "?!." else ""
            text = text.removesuffix(end) + self.dice.choice(AFTER) + end if end else text + self.dice.choice(AFTER)
        self._add(text, assistant, values, wording, user)

    def add_wording(
        self, wording: str, assistant: Lines, values: dict[str, str], user: Lines, *, lead: str = "", end: str = ""
    ) -> None:
        """Add one turn from a wording that was drawn from the templates of the user."""
        self._add(lead + insert(wording, values, mark=True) + end, assistant, values, wording, user)

    def add_message(self, text: str, assistant: Lines, *, kind: str = "", **values: str) -> None:
        """Add one turn from a message that is of the split of this conversation, and no template."""
        self._add(text, assistant, values, text, ())
        self.turns[-1] = self.turns[-1]._replace(is_held_out=self.held_out, kind=kind)

    def add_typed(self, text: str, reply: Lines, values: dict[str, str]) -> None:
        """Add one turn from a message that is written as this person types it, and a reply to it."""
        self._append(insert(text, values), reply, values, text, ())

    def draw_wording(self, lines: Lines) -> str:
        """Return a wording from this conversation's split, or from the other if the template has no more."""
        if not self.held_out and self.dice.chance(PLAINEST):
            templates = (lines,) if isinstance(lines, str) else lines
            wording = plainest(self.dice.choice(templates))
            if not is_held_out(lines, wording):
                return wording
        for _ in range(TRIES):
            wording = choose(self.dice, lines)
            if is_held_out(lines, wording) == self.held_out:
                break
        return wording

    def _add(self, text: str, assistant: Lines, values: dict[str, str], wording: str, lines: Lines) -> None:
        text = text.lstrip(", ") or text  # a first option of a wording may be empty
        text = write(self.dice, self.style, f"{self.aside} {text}" if self.aside else text)
        self.aside = ""
        value = values.get("v", "")
        if value and text.startswith(capital := value[0].upper() + value[1:]) and wording.startswith("<v>"):
            values = values | {"v": capital}  # as the person typed it, so that the model learns to copy
        self._append(text, assistant, values, wording, lines)

    def _append(self, text: str, assistant: Lines, values: dict[str, str], wording: str, lines: Lines) -> None:
        said = {last_sentence(turn.assistant) for turn in self.turns}
        for _ in range(REDRAWN):
            reply = fill(self.dice, assistant, values)
            if "name" in self.facts:
                reply = _ASKS_FOR_NAME.sub("", reply)
            if last_sentence(reply) not in said:
                break
        if not reply.startswith("tinychat"):
            reply = reply[0].upper() + reply[1:]
        self.turns.append(Turn(text, reply, self.topic, is_held_out(lines, wording), wording, assistant, values))

    def word(self, value: str) -> str:
        """Return the value as this person types it."""
        return typed(self.style, value)

    def new_name(self) -> str:
        """Return a first name as this person types it, either from the list or invented."""
        while True:
            name = self.dice.choice(words.NAMES) if self.dice.chance(0.4) else words.invent(self.dice).capitalize()
            if words.is_held_out(name) == self.held_out:
                return self.word(name)

    def new_word(self) -> str:
        """Return an invented word in lower case."""
        while True:
            word = words.invent(self.dice)
            if words.is_held_out(word) == self.held_out:
                return word


class Scene(NamedTuple):
    """A topic: its weight in the mix, and a function that adds one turn or a few related ones.

    `play` checks `talk.left` before it adds further turns.
    """

    topic: str
    weight: float
    play: Callable[[Talk], None]


Scenes = tuple[Scene, ...]
