"""What one field of a recipe is: its section, type, bounds, choices and help."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from tinychat.errors import SettingError
from tinychat.setting import Setting

AUTO = "auto"
"""The word for leaving a choice to the planner."""


@dataclass(frozen=True)
class RecipeField(Setting):
    """What there is to know of one field of a recipe."""

    section: str = ""
    empty: bool = False
    """whether a text may be empty"""

    @property
    def flag(self) -> str:
        """The long flag: `--n-layer`."""
        return self.flags[0] if self.flags else super().flag

    @property
    def expected(self) -> str:
        """What the field takes, in words."""
        words = "one or more texts" if self.kind is tuple else super().expected.removesuffix(" or none")
        return words + (f" or {AUTO}" if self.optional else "")

    def parse(self, given: object) -> Any:
        """The value that `given` (typed text, or a TOML value) stands for.

        Raises:
            SettingError: it is of another type, not a number, or out of bounds.
        """
        word = given.strip().lower() if isinstance(given, str) else given
        if self.optional and (word is None or word == AUTO):
            return None
        value: object = given
        if self.kind is str:
            value = word if self.choices else given
        elif self.kind is tuple:
            value = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else None
        else:
            return super().parse(given)
        texts = value if isinstance(value, tuple) else ()
        if (
            not isinstance(value, self.kind)
            or (self.choices and value not in self.choices)
            or not all(isinstance(text, str) and (text or self.empty) for text in texts)
        ):
            raise SettingError(self.name, self.expected, given)
        return value


def recipe_field(section: str, kind: type, default: Any, help: str, **facts: Any) -> Any:
    """A field of `Recipe`. A default of None makes it optional: the planner decides."""
    about = RecipeField(kind, help, default, optional=default is None, section=section, **facts)
    return dataclasses.field(default=default, metadata={"recipe": about})
