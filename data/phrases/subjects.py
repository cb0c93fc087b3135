"""Subjects: pronouns, names, relatives, people by their occupation."""

from __future__ import annotations

from dataclasses import dataclass

from grammar import Dice

from phrases.names import HELD_OUT_MEN, HELD_OUT_WOMEN, MEN, WOMEN, invented
from phrases.spanish import Gender


@dataclass(frozen=True)
class Subject:
    """A subject in both languages.

    `spanish` is empty where Spanish omits the pronoun; `person` is numbered as in `spanish.conjugate`, `number` as in
    `spanish.inflect`.
    """

    english: str
    spanish: str
    person: int
    gender: Gender = "m"

    @property
    def number(self) -> int:
        return 2 if self.person > 2 else 1

    @property
    def possessive(self) -> str:
        """Return the English possessive: my, your …"""
        third = "his" if self.gender == "m" else "her"
        return ("my", "your", third, "our", "their")[self.person]

    @property
    def reflexive(self) -> str:
        """Return the Spanish indirect object pronoun, as used with “gustar” and “doler”."""
        return ("me", "te", "le", "nos", "les")[self.person]

    @property
    def to_whom(self) -> str:
        """Return the phrase before that pronoun, such as “a Tom” or “a él”; empty for plain pronouns."""
        return f"a {self.spanish}".replace("a el ", "al ") if self.spanish else ""

    def begins(self) -> str:
        """Return the Spanish subject followed by a space, or an empty string."""
        return f"{self.spanish} " if self.spanish else ""

    def ends(self) -> str:
        """Return the Spanish subject as placed after its verb in questions."""
        return f" {self.spanish}" if self.spanish else ""


I = Subject("I", "", 0)  # noqa: E741 - the word itself
YOU = Subject("you", "", 1)
HE = Subject("he", "él", 2)
SHE = Subject("she", "ella", 2, "f")
WE = Subject("we", "", 3)
THEY = Subject("they", "ellos", 4)
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)

_FAMILY = (
    ("mother", "madre", "f"), ("father", "padre", "m"), ("brother", "hermano", "m"), ("sister", "hermana", "f"),
    ("grandmother", "abuela", "f"), ("grandfather", "abuelo", "m"), ("uncle", "tío", "m"), ("aunt", "tía", "f"),
    ("son", "hijo", "m"), ("daughter", "hija", "f"), ("wife", "esposa", "f"), ("husband", "marido", "m"),
    ("friend", "amigo", "m"), ("neighbour", "vecino", "m"), ("boss", "jefe", "m"), ("cousin", "primo", "m"),
)  # fmt: skip
_FAMILY_PLURAL = (
    ("parents", "padres", "m"), ("brothers", "hermanos", "m"), ("sisters", "hermanas", "f"), ("friends", "amigos", "m"),
    ("children", "hijos", "m"), ("grandparents", "abuelos", "m"), ("neighbours", "vecinos", "m"),
    ("cousins", "primos", "m"),
    ("daughters", "hijas", "f"),
)  # fmt: skip
OTHERS = (
    Subject("the teacher", "el profesor", 2), Subject("the boy", "el niño", 2), Subject("the girl", "la niña", 2, "f"),
    Subject("the woman", "la mujer", 2, "f"), Subject("the man", "el hombre", 2), Subject("the doctor", "el médico", 2),
    Subject("the children", "los niños", 4), Subject("the girls", "las niñas", 4, "f"),
    Subject("the students", "los estudiantes", 4), Subject("the tourists", "los turistas", 4),
    Subject("the nurses", "las enfermeras", 4, "f"),
)  # fmt: skip

_OWNERS = (("my", "mi"), ("your", "tu"), ("his", "su"), ("our", "nuestro"))


def _owned(owner: tuple[str, str], english: str, spanish: str, gender: str, person: int) -> Subject:
    kind: Gender = "f" if gender == "f" else "m"
    mine = owner[1]
    if mine == "nuestro" and kind == "f":
        mine = "nuestra"
    return Subject(f"{owner[0]} {english}", f"{mine}{'s' if person == 4 else ''} {spanish}", person, kind)


FAMILY = tuple(
    _owned(owner, *row, 2) for owner in _OWNERS for row in _FAMILY if (owner[0], row[0]) != ("his", "husband")
)
FAMILIES = tuple(_owned(owner, *row, 4) for owner in _OWNERS for row in _FAMILY_PLURAL)


INVENTED = 0.6
"""Probability that a name is invented, so that a model has to copy it."""


def name(dice: Dice, held_out: bool, gender: str = "") -> Subject:
    """Return a person by name; with `held_out`, the name is reserved for the held-out split."""
    kind: Gender = "f" if (gender or dice.choice("mf")) == "f" else "m"
    names = {"m": HELD_OUT_MEN if held_out else MEN, "f": HELD_OUT_WOMEN if held_out else WOMEN}[kind]
    given = invented(dice, kind) if not held_out and dice.chance(INVENTED) else dice.choice(names)
    return Subject(given, given, 2, kind)


def two(dice: Dice, held_out: bool) -> Subject:
    """Return two people by name."""
    first = name(dice, held_out)
    second = name(dice, held_out)
    while second.english == first.english:
        second = name(dice, held_out)
    gender: Gender = "f" if first.gender == second.gender == "f" else "m"
    return Subject(f"{first.english} and {second.english}", f"{first.english} y {second.english}", 4, gender)


def anyone(dice: Dice, held_out: bool = False) -> Subject:
    """Return a random subject that can act."""
    kind = dice.weighted((44, 25, 13, 6, 6, 4))
    if kind == 0:
        return dice.choice(PRONOUNS)
    if kind == 1:
        return name(dice, held_out)
    if kind == 5:
        return two(dice, held_out)
    return dice.choice((FAMILY, FAMILIES, OTHERS)[kind - 2])


def third_person(dice: Dice, held_out: bool = False) -> Subject:
    """Return a random third-person subject."""
    kind = dice.weighted((40, 30, 20))
    return (
        dice.choice((HE, SHE)) if kind == 0 else name(dice, held_out) if kind == 1 else dice.choice(FAMILY + OTHERS[:6])
    )
