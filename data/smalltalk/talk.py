"""One conversation in the making: what was said, how this person types, and what they told about themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from grammar import Dice, Lines, choose, fill, insert, is_reserved, plainest, wordings

from smalltalk import words
from smalltalk.typing_style import STYLES, WEIGHTS, typed, write

# What people put before and after a question.
BEFORE = (
    "hey, ", "ok, ", "ok so ", "so, ", "so ", "tinychat, ", "hey tinychat, ", "hi, ", "quick question: ", "question: ",
    "well, ", "um, ", "hmm, ", "and ", "now ", "alright, ", "next question: ", "i wonder, ", "say, ",
    "please tell me, ", "ok next, ", "yo, ", "hey bot, ", "one more: ", "next: ", "uh, ", "wow. ", "thanks. ",
    "can you tell me, ", "help me here: ", "my little brother asks, ", "my daughter asks, ", "just curious, ", "oh, ",
    "another thing: ", "let me test you: ", "for my homework, ", "tell me, ", "listen, ", "let me see. ", "yes. ",
    "cool. ", "nice. ", "great. ", "haha ok. ", "right, ", "here is one: ", "wait, ", "sorry, ", "tiny one, ",
    "little bot, ", "before i forget, ", "maybe you know: ", "lol ok. ", "i forgot, ", "my teacher asks, ",
    "something else: ", "serious question: ", "dumb question: ", "back to you: ", "ok cool, ", "hello, ", "good. ",
)  # fmt: skip
AFTER = (
    " please", ", please", ", tinychat", " i forgot", ", do you know", ", if you know", ", quickly", " then",
    " by the way", ", my friend", ", can you say", ", any idea", " for me", ", little one", ", just asking", " again",
    " lol", ", buddy", " thanks", " ty", ", i need to know", " dude", " bro", ", thank you", " pls", " haha",
)  # fmt: skip

HELD_OUT_WORDINGS = ((60, 12), (8, 5))
"""Of so many wordings or more, one in so many is for the held-out part; of fewer, none is."""
SHORTEST_HELD_OUT = 4
"""words: what is shorter belongs to everybody, and is trained on"""
TRIES = 30
PLAINEST = 0.15
"""how often a wording is the plainest of its template: people say that more often than anything with frills"""
_MARK = re.compile(r"[^\w<>:'/ ]|(?<=\w):(?!\w)")


@cache
def bare(wording: str) -> str:
    """A wording without its marks, which people type or not."""
    return " ".join(_MARK.sub(" ", wording).split())


def is_held_out(lines: Lines, wording: str) -> bool:
    """Whether a wording of the person's belongs to the part that training never sees."""
    return bare(wording) in _held_out((lines,) if isinstance(lines, str) else tuple(lines))


@cache
def _held_out(templates: tuple[str, ...]) -> frozenset[str]:
    """Which wordings, without their marks, belong to the part that training never sees: some, by their letters.

    The plainest one is always trained on, and so is what has less than four words. And each word of one stands in some
    other that is trained on: what is held out is a new way to put known words together, as nobody can know a word that
    was never told.
    """
    made = {bare(wording) for template in templates for wording in wordings(template)}
    every = next((every for least, every in HELD_OUT_WORDINGS if len(made) >= least), 0)
    if not every:
        return frozenset()
    plain = bare(plainest(templates[0]))
    long_enough = {wording for wording in made if len(wording.split()) >= SHORTEST_HELD_OUT and wording != plain}
    reserved = {wording for wording in long_enough if is_reserved(every, wording)}
    known = {word for wording in made - reserved for word in wording.split()}
    return frozenset(wording for wording in reserved if known.issuperset(wording.split()))


class Turn(NamedTuple):
    """What was said and answered, in which topic."""

    user: str
    bot: str
    topic: str
    is_held_out: bool
    """whether training never sees what the person says worded so"""
    wording: str
    """of the person, with its slots open"""
    replies: Lines
    """the templates that the answer was one of"""
    values: dict[str, str]
    """what their slots hold"""


class Talk:
    """The turns so far, with the dice and the person's style and facts.

    `length` is the number of turns to reach. `held_out` draws names only from the part that training never sees, and
    wordings from theirs where a template has any.
    """

    def __init__(self, dice: Dice, length: int, *, held_out: bool = False) -> None:
        self.dice = dice
        self.length = length
        self.held_out = held_out
        self.style = STYLES[dice.weighted(WEIGHTS)]
        self.topic = ""
        self.turns: list[Turn] = []
        self.facts: dict[str, str] = {}

    @property
    def left(self) -> int:
        """How many turns are still to come."""
        return self.length - len(self.turns)

    def turn(self, user: Lines, bot: Lines, **values: str) -> None:
        """One turn from the templates of both sides."""
        wording = self._word(user)
        self._add(insert(wording, values, mark=True), bot, values, wording, user)

    def ask(self, user: Lines, bot: Lines, **values: str) -> None:
        """One turn, where the user may lead in or end in some way of their own."""
        wording = self._word(user)
        said = insert(wording, values, mark=True)
        if self.dice.chance(0.24):
            said = self.dice.choice(BEFORE) + said
        if self.dice.chance(0.10):
            end = said[-1] if said[-1] in "?!." else ""
            said = said.removesuffix(end) + self.dice.choice(AFTER) + end if end else said + self.dice.choice(AFTER)
        self._add(said, bot, values, wording, user)

    def _word(self, lines: Lines) -> str:
        """A wording of this conversation's part; of the other one only where a template has no more to say."""
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

    def _add(self, said: str, bot: Lines, values: dict[str, str], wording: str, lines: Lines) -> None:
        said = write(self.dice, self.style, said)
        told = values.get("v", "")
        if told and said.startswith(capital := told[0].upper() + told[1:]) and wording.startswith("<v>"):
            values = values | {"v": capital}  # as the person typed it: to remember is to copy
        reply = fill(self.dice, bot, values)
        if not reply.startswith("tinychat"):
            reply = reply[0].upper() + reply[1:]
        self.turns.append(Turn(said, reply, self.topic, is_held_out(lines, wording), wording, bot, values))

    def word(self, value: str) -> str:
        """The value as this person types it."""
        return typed(self.style, value)

    def new_name(self) -> str:
        """A first name, as this person types it: from the list, or made up so that nobody can know it by heart."""
        while True:
            name = self.dice.choice(words.NAMES) if self.dice.chance(0.4) else words.invent(self.dice).capitalize()
            if words.is_held_out(name) == self.held_out:
                return self.word(name)

    def new_word(self) -> str:
        """A word that nobody has heard before, in lower case."""
        while True:
            word = words.invent(self.dice)
            if words.is_held_out(word) == self.held_out:
                return word


class Scene(NamedTuple):
    """A topic: its weight in the mix, and what adds one turn of it or a few that belong together.

    `play` looks at `talk.left` before it goes on.
    """

    topic: str
    weight: float
    play: Callable[[Talk], None]


Scenes = tuple[Scene, ...]
