"""One thing that a person can set: its name, what it takes, how it is read and shown."""

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tinychat.errors import SettingError, UsageError

ABSENT = ("none", "off", "-", "–")
"""Words that stand for no value, where a setting may have none."""

KINDS: dict[type, str] = {
    float: "a number", int: "a whole number", str: "text", tuple: "text", bool: "true or false",
}  # fmt: skip
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}
_LETTERS = {char: letter for letter, char in ESCAPES.items()}


@dataclass(frozen=True)
class Setting:
    """What there is to know of one setting; `name` and `default` are filled in from its field."""

    kind: type
    help: str
    default: Any = None
    name: str = ""
    optional: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    example: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """worth trying, with what each does"""
    trend: str = ""
    """what more of it does: `higher: more surprising`"""
    toolbar: Callable[[Any], str] | None = None

    @property
    def spelling(self) -> str:
        """The name as people type it: `top-p`."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """The long flag: `--top-p`."""
        return f"--{self.spelling}"

    @property
    def variable(self) -> str:
        """The environment variable: `TINYCHAT_TOP_P`."""
        return "TINYCHAT_" + self.name.upper()

    @property
    def expected(self) -> str:
        """What the setting takes, in words: `a number from 0 to 1`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = KINDS[self.kind]
        if self.above is not None:
            words += f" above {self.above:.16g}"
        if self.low is not None and self.high is not None:
            words += f" from {self.low:.16g} to {self.high:.16g}"
        elif self.low is not None:
            words += f" of at least {self.low:.16g}"
        elif self.high is not None:
            words += f" and at most {self.high:.16g}"
        return words + (" or none" if self.optional or self.kind is tuple else "")

    @property
    def bounds(self) -> str:
        """The same of a number, in short: `above 0, to 1`; empty of anything else."""
        if self.kind not in (int, float):
            return ""
        low = "" if self.low is None else f"{self.low:.16g}"
        if self.above is not None:
            low = f"above {self.above:.16g}"
        if self.high is None:
            return f"{low} or more" if self.low is not None else low
        return f"{low}, to {self.high:.16g}" if self.above is not None else f"{low} to {self.high:.16g}"

    @property
    def meaning(self) -> str:
        """What it takes and what more of it does, in one line: `0 to 100 · higher: more surprising`."""
        return " · ".join(filter(None, (self.bounds, self.trend))) or self.help

    def parse(self, given: object) -> Any:
        """The value that `given` (typed text, or a JSON or TOML value) stands for.

        Raises:
            SettingError: it is of another type, not a number, or out of bounds.
        """
        try:
            return self._read(given)
        except (ValueError, OverflowError):
            raise SettingError(self.name, self.expected, given) from None

    def _read(self, given: object) -> Any:
        """As `parse`, but what it cannot take is a ValueError or an OverflowError."""
        word = given.strip().lower() if isinstance(given, str) else given
        if self.kind is tuple:  # as typed, with `\n` for a new line, or a list as JSON and TOML have it
            if given is None or (isinstance(given, str) and given.lower() in ABSENT):
                return ()
            texts = (unescape(given),) if isinstance(given, str) else given
            if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
                raise ValueError
            return tuple(texts)
        if self.kind is bool:
            truth = TRUTHS.get(word) if isinstance(word, str) else given
            if not isinstance(truth, bool):
                raise ValueError
            return truth
        if word in self.choices:
            return word
        if word is None or word in ABSENT:
            if not self.optional:
                raise ValueError
            return None
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError
        if self.kind is str:
            if self.choices or not isinstance(given, str) or not given:
                raise ValueError
            return given
        value = self.kind(given)
        if (
            not math.isfinite(value)
            or (isinstance(given, float) and value != given)
            or (self.above is not None and value <= self.above)
            or (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
        ):
            raise ValueError
        return value

    def show(self, value: Any) -> str:
        """The value as a person would type it; `–` for none."""
        if value is None or value == ():
            return "–"
        if self.kind is tuple:
            return " ".join(repr(text) for text in value)
        if self.kind is bool:
            return str(value).lower()
        return f"{value:g}" if self.kind is float else str(value)


def setting(default: Any, kind: type, help: str, **facts: Any) -> Any:
    """A field of a dataclass of settings, with what there is to know of it."""
    return field(default=default, metadata={"setting": Setting(kind, help, default, **facts)})


def declared(kind: type) -> dict[str, Setting]:
    """The settings that the fields of a dataclass declare, by their names and in their order."""
    return {one.name: dataclasses.replace(one.metadata["setting"], name=one.name) for one in dataclasses.fields(kind)}


def find(settings: Mapping[str, Setting], name: str) -> Setting:
    """The one of that name or alias; `-` and `_` are the same.

    Raises:
        UsageError: there is none.
    """
    wanted = name.strip().lower().replace("-", "_")
    for one in settings.values():
        if wanted == one.name or wanted in one.aliases:
            return one
    near = difflib.get_close_matches(wanted, settings, n=1)
    remedy = f"did you mean {near[0]}?" if near else "settings: " + ", ".join(settings)
    raise UsageError(f"there is no setting {name!r}", remedy)


def unescape(text: str) -> str:
    r"""Reads `\n`, `\t`, `\r`, `\0` and `\\` as escapes; any other backslash stays as it is."""
    pieces = iter(text.split("\\"))
    out = [next(pieces)]
    for piece in pieces:
        if piece == "":  # `\\`: the next piece follows a literal backslash
            out.append("\\" + next(pieces, ""))
        elif piece[0] in ESCAPES:
            out.append(ESCAPES[piece[0]] + piece[1:])
        else:
            out.append("\\" + piece)
    return "".join(out)


def escape(text: str) -> str:
    """What `unescape` makes this text of."""
    return "".join(f"\\{_LETTERS[char]}" if char in _LETTERS else char for char in text)
