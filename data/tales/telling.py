"""One tale in the making: its people, what is settled about them, and the sentences so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from grammar import Dice, Lines, fill, is_reserved

from tales import cast
from tales.cast import Person
from tales.tables import Row, rows

Item = TypeVar("Item")

HELD_OUT_EVERY = 13
HELD_OUT_NAMES = 0.4
"""how often the held-out part names its people by names that it has for itself"""

SAID = ("said",)
ANSWERED = ("said", "answered", "replied")
ASKED = ("asked",)
CALLED = ("cried", "called", "shouted")


class Tale:
    """The tale so far: paragraphs of sentences, filled in from templates with the tale's words."""

    def __init__(self, dice: Dice, *, held_out: bool) -> None:
        self.dice = dice
        self.is_reserved = False
        self.is_brief = dice.chance(0.6)
        names_of_its_own = held_out and dice.chance(HELD_OUT_NAMES)
        self.is_reserved |= names_of_its_own
        self.of_children = dice.chance(0.45)
        kinds = ["girl", "boy"] if self.of_children else list(cast.ANIMALS)
        others = ["girl", "boy"] if self.of_children else list(cast.NEIGHBOURS)
        self.hero = cast.named(dice, kinds, held_out=names_of_its_own)
        if not self.of_children:
            others.remove(self.hero.kind)
        self.friend = cast.named(dice, others, held_out=names_of_its_own, without=self.hero.name)
        elder, he = dice.choice(cast.ELDERS_OF_CHILDREN if self.of_children else cast.ELDERS_OF_ANIMALS)
        self.elder = Person(elder, "", he)
        self.values = self.hero.slots() | self.friend.slots("f") | self.elder.slots("e")
        self.values["paw"] = "hand" if self.of_children else "paw"
        self.values["the_friend"] = (
            self.friend.name if self.of_children else f"{self.friend.name} the {self.friend.kind}"
        )
        self.values["hero"] = cast.described(dice, self.hero)
        home = dice.choice(cast.HOMES_OF_CHILDREN if self.of_children else cast.HOMES_OF_ANIMALS)
        self.values["home"] = self.filled(home)
        self.values["one_day"] = self.filled(dice.choice(cast.MORNINGS))
        self.values["One_day"] = self.values["one_day"][0].upper() + self.values["one_day"][1:]
        self.paragraphs: list[list[str]] = [[]]

    def filled(self, lines: Lines) -> str:
        """One text from the template or templates, with the tale's words."""
        return fill(self.dice, lines, self.values)

    def let(self, **words: Lines) -> None:
        """Settles words of the tale, each from templates."""
        for slot, lines in words.items():
            self.values[slot] = self.filled(lines)
            self.values[slot.capitalize()] = self.values[slot][:1].upper() + self.values[slot][1:]

    def pick(self, items: Sequence[Item]) -> Item:
        return self.dice.choice(items)

    def draw(self, plot: str, table: str) -> Row:
        """A row of one of the plot's tables, whose slots it settles."""
        row = self.pick(rows(plot, table))
        self.let(**row)
        return row

    def note(self, *words: str) -> None:
        """Tells what is combined in this tale; some combinations are for the held-out part alone."""
        self.is_reserved |= is_reserved(HELD_OUT_EVERY, *words)

    def say(self, *lines: str) -> None:
        """Adds one of the sentences."""
        text = self.filled(lines)
        self.paragraphs[-1].append(text[0].upper() + text[1:])

    def maybe(self, probability: float, *lines: str) -> None:
        """Adds one of the sentences, or none; a brief tale does without."""
        if not self.is_brief and self.dice.chance(probability):
            self.say(*lines)

    def paragraph(self) -> None:
        """What follows stands in a new paragraph."""
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def speaks(self, who: Person, *lines: str, how: Sequence[str] = SAID, alone: bool = True) -> None:
        """Adds what somebody says, and who says it before, after or within; `alone` in a paragraph of its own."""
        line = self.filled(lines)
        line = line[0].upper() + line[1:]
        if line[-1] == "?" and how is SAID:
            how = ASKED
        if line[-1] == "!" and how is SAID and self.dice.chance(0.6):
            how = CALLED
        said = self.dice.choice(how)
        first, _, rest = line.partition(". ")
        ended = line[:-1] + "," if line[-1] == "." else line
        kind = self.dice.weighted((5, 2, 4 if rest else 0))
        if alone:
            self.paragraph()
        if kind == 0:
            text = f'"{ended}" {said} {who.name}.'
        elif kind == 1:
            text = f'{who.name[0].upper()}{who.name[1:]} {said}, "{line}"'
        else:
            text = f'"{first}," {said} {who.name}. "{rest}"'
        self.paragraphs[-1].append(text)
        if alone:
            self.paragraph()

    def text(self) -> str:
        """The whole tale, a line for each paragraph."""
        return "\n".join(" ".join(sentences) for sentences in self.paragraphs if sentences)
