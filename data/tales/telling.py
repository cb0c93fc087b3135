"""State of one tale while it is generated: characters, settled words, and sentences."""

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
"""probability that held-out tales draw people from names reserved for that split"""

SAID = ("said",)
ANSWERED = ("said", "answered", "replied")
ASKED = ("asked",)
CALLED = ("cried", "called", "shouted")


class Tale:
    """A tale so far: paragraphs of sentences, generated from templates with the tale's words."""

    def __init__(self, dice: Dice, *, held_out: bool) -> None:
        self.dice = dice
        self.is_reserved = False
        self.is_brief = dice.chance(0.6)
        has_reserved_names = held_out and dice.chance(HELD_OUT_NAMES)
        self.is_reserved |= has_reserved_names
        self.is_about_children = dice.chance(0.45)
        kinds = ["girl", "boy"] if self.is_about_children else list(cast.ANIMALS)
        others = ["girl", "boy"] if self.is_about_children else list(cast.NEIGHBOURS)
        self.hero = cast.draw_person(dice, kinds, held_out=has_reserved_names)
        if not self.is_about_children:
            others.remove(self.hero.kind)
        self.friend = cast.draw_person(dice, others, held_out=has_reserved_names, without=self.hero.name)
        elder, pronoun = dice.choice(cast.ELDERS_OF_CHILDREN if self.is_about_children else cast.ELDERS_OF_ANIMALS)
        self.elder = Person(elder, "", pronoun)
        self.values = self.hero.slots() | self.friend.slots("f") | self.elder.slots("e")
        self.values["paw"] = "hand" if self.is_about_children else "paw"
        self.values["the_friend"] = (
            self.friend.name if self.is_about_children else f"{self.friend.name} the {self.friend.kind}"
        )
        self.values["hero"] = cast.describe(dice, self.hero)
        home = dice.choice(cast.HOMES_OF_CHILDREN if self.is_about_children else cast.HOMES_OF_ANIMALS)
        self.values["home"] = self.fill_in(home)
        self.values["one_day"] = self.fill_in(dice.choice(cast.MORNINGS))
        self.values["One_day"] = self.values["one_day"][0].upper() + self.values["one_day"][1:]
        self.paragraphs: list[list[str]] = [[]]

    def fill_in(self, lines: Lines) -> str:
        """Return a text from the template or templates, with the tale's words filled in."""
        return fill(self.dice, lines, self.values)

    def let(self, **words: Lines) -> None:
        """Set words of the tale, each from templates."""
        for slot, lines in words.items():
            self.values[slot] = self.fill_in(lines)
            self.values[slot.capitalize()] = self.values[slot][:1].upper() + self.values[slot][1:]

    def pick(self, items: Sequence[Item]) -> Item:
        return self.dice.choice(items)

    def draw(self, plot: str, table: str) -> Row:
        """Draw a row of one of the plot's tables, set its slots, and return the row."""
        row = self.pick(rows(plot, table))
        self.let(**row)
        return row

    def record(self, *words: str) -> None:
        """Record a combination of words; some combinations are reserved for the held-out split."""
        self.is_reserved |= is_reserved(HELD_OUT_EVERY, *words)

    def say(self, *lines: str) -> None:
        """Add a sentence from one of the templates."""
        text = self.fill_in(lines)
        self.paragraphs[-1].append(text[0].upper() + text[1:])

    def maybe(self, probability: float, *lines: str) -> None:
        """Add a sentence with some probability; brief tales omit it."""
        if not self.is_brief and self.dice.chance(probability):
            self.say(*lines)

    def paragraph(self) -> None:
        """Start a new paragraph."""
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def speaks(self, speaker: Person, *lines: str, how: Sequence[str] = SAID, alone: bool = True) -> None:
        """Add direct speech, with the speaker named before, after or within it.

        Args:
            speaker: the person who speaks.
            lines: templates of the speech.
            how: verbs of saying.
            alone: whether the speech forms its own paragraph.
        """
        line = self.fill_in(lines)
        line = line[0].upper() + line[1:]
        if line[-1] == "?" and how is SAID:
            how = ASKED
        if line[-1] == "!" and how is SAID and self.dice.chance(0.6):
            how = CALLED
        verb = self.dice.choice(how)
        first, _, rest = line.partition(". ")
        with_comma = line[:-1] + "," if line[-1] == "." else line
        kind = self.dice.weighted((5, 2, 4 if rest else 0))
        if alone:
            self.paragraph()
        if kind == 0:
            text = f'"{with_comma}" {verb} {speaker.name}.'
        elif kind == 1:
            text = f'{speaker.name[0].upper()}{speaker.name[1:]} {verb}, "{line}"'
        else:
            text = f'"{first}," {verb} {speaker.name}. "{rest}"'
        self.paragraphs[-1].append(text)
        if alone:
            self.paragraph()

    def text(self) -> str:
        """Return the whole tale, one line per paragraph."""
        return "\n".join(" ".join(sentences) for sentences in self.paragraphs if sentences)
