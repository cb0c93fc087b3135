"""One conversation in the making: what was said, how this person types, and what they told about themselves."""

from __future__ import annotations

from collections.abc import Callable

from grammar import Dice, Lines, fill

from smalltalk import words
from smalltalk.typing_style import STYLES, WEIGHTS, typed, write

# What people put before and after a question.
BEFORE = (
    "hey, ", "ok, ", "ok so ", "so, ", "so ", "tinychat, ", "hey tinychat, ", "hi, ", "quick question: ", "question: ",
    "well, ", "um, ", "hmm, ", "and ", "now ", "alright, ", "next question: ", "i wonder, ", "say, ",
    "please tell me, ",
    "can you tell me, ", "help me here: ", "my little brother asks, ", "my daughter asks, ", "just curious, ", "oh, ",
    "another thing: ", "let me test you: ", "for my homework, ", "tell me, ", "listen, ", "let me see. ", "yes. ",
    "cool. ", "nice. ", "great. ", "haha ok. ", "right, ", "here is one: ", "wait, ", "sorry, ", "tiny one, ",
    "little bot, ",
    "before i forget, ", "maybe you know: ",
)  # fmt: skip
AFTER = (
    " please", ", please", ", tinychat", " i forgot", ", do you know", ", if you know", ", quickly", " then",
    " by the way",
    ", my friend", ", can you say", ", any idea", " for me", ", little one", ", just asking", " again", " lol",
    ", buddy",
)  # fmt: skip


class Talk:
    """The turns so far, with the dice and the person's style and facts.

    `length` is the number of turns to reach, `held_out` draws names only from the part that training never sees.
    """

    def __init__(self, dice: Dice, length: int, *, held_out: bool = False) -> None:
        self.dice = dice
        self.length = length
        self.held_out = held_out
        self.style = STYLES[dice.weighted(WEIGHTS)]
        self.turns: list[tuple[str, str]] = []
        self.facts: dict[str, str] = {}

    @property
    def left(self) -> int:
        """How many turns are still to come."""
        return self.length - len(self.turns)

    def turn(self, user: Lines, bot: Lines, **values: str) -> None:
        """One turn from the templates of both sides."""
        said = fill(self.dice, user, values, mark=True)
        self._add(said, bot, values)

    def ask(self, user: Lines, bot: Lines, **values: str) -> None:
        """One turn, where the user may lead in or end in some way of their own."""
        said = fill(self.dice, user, values, mark=True)
        if self.dice.chance(0.24):
            said = self.dice.choice(BEFORE) + said
        if self.dice.chance(0.10):
            end = said[-1] if said[-1] in "?!." else ""
            said = said.removesuffix(end) + self.dice.choice(AFTER) + end if end else said + self.dice.choice(AFTER)
        self._add(said, bot, values)

    def _add(self, said: str, bot: Lines, values: dict[str, str]) -> None:
        reply = fill(self.dice, bot, values)
        if not reply.startswith("tinychat"):
            reply = reply[0].upper() + reply[1:]
        self.turns.append((write(self.dice, self.style, said), reply))

    def word(self, value: str) -> str:
        """The value as this person types it."""
        return typed(self.style, value)

    def new_name(self) -> str:
        """A first name, as this person types it: from the list, or made of syllables that make no known name."""
        while True:
            if self.dice.chance(0.45):
                name = self.dice.choice(words.NAMES)
            else:
                count = 2 if self.dice.chance(0.75) else 3
                name = "".join(self.dice.choice(words.SYLLABLES) for _ in range(count))
                name = (name + self.dice.choice(words.NAME_ENDS)).capitalize()
            if words.is_held_out(name) == self.held_out:
                return self.word(name)


Scene = Callable[[Talk], None]
"""Adds one turn or a few that belong together; looks at `talk.left` before it goes on."""

Scenes = tuple[tuple[float, Scene], ...]
"""Scenes with their weights in the mix."""
