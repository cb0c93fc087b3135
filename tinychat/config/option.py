"""One thing that a person can set, declared once: how it is called, what it takes, how it is read and shown.

An option is a field of a dataclass, made by `option`. Its type is the field's annotation; `| None` says that it may
have no value. Flags, environment variables, commands, completion, files, error texts and docs are read from here.
"""

import dataclasses
import difflib
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Self

from tinychat.errors import SettingError, TinychatError, UsageError

ABSENT = ("none", "off", "-", "–")
"""Words for no value, where an option may have none."""
AUTO = "auto"
"""The word for leaving a choice to a planner."""
REQUIRED = dataclasses.MISSING
"""The default of an option without one."""

KINDS: dict[type, str] = {
    float: "a number", int: "a whole number", str: "text", tuple: "one or more texts", bool: "true or false",
}  # fmt: skip
METAVARS: dict[type, str] = {float: "N", int: "N", str: "TEXT", tuple: "TEXT", bool: "true|false"}
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}
_LETTERS = {char: letter for letter, char in ESCAPES.items()}


@dataclass(frozen=True)
class Option:
    """The declaration of one option; `name`, `kind` and `optional` are filled in from its field."""

    help: str
    default: Any = None
    name: str = ""
    kind: type = str
    """bool, int, float, str, or tuple (of texts)"""
    optional: bool = False
    """whether it may have no value: None, or no text where its default is none"""
    absent: str = "none"
    """the word for no value: `none`, or `auto` where a planner chooses then"""
    section: str = ""
    """the group of options that it belongs to"""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    empty: bool = False
    """whether a text may be empty"""
    escaped: bool = False
    r"""whether `\n` in a typed text is a new line, and `none` no text at all"""
    switch: bool = False
    """whether its flag stands alone, without a value"""
    flags: tuple[str, ...] = ()
    """short flags; or a long one, instead of that of its name"""
    aliases: tuple[str, ...] = ()
    metavar: str = ""
    """a value, in usage lines; by default as its type has it: `N`"""
    example: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """worth trying, with what each does"""
    trend: str = ""
    """what more of it does: `higher: more surprising`"""
    neutral: Any = None
    """the value with which it changes nothing"""
    toolbar: Callable[[Any], str] | None = None

    @property
    def spelling(self) -> str:
        """The name as people type it: `top-p`."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """The long flag: `--top-p`."""
        return next((flag for flag in self.flags if flag.startswith("--")), f"--{self.spelling}")

    @property
    def variable(self) -> str:
        """The environment variable: `TINYCHAT_TOP_P`."""
        return "TINYCHAT_" + self.name.upper()

    @property
    def usage(self) -> str:
        """A value, as usage lines write it: `N`, `TEXT`, `auto|cpu|cuda|mps`."""
        return self.metavar or "|".join(self.choices) or METAVARS[self.kind]

    @property
    def type_name(self) -> str:
        """The type, as Python writes it: `int | None`."""
        return self.kind.__name__ + (" | None" if self.optional else "")

    @property
    def expected(self) -> str:
        """What the option takes, in words: `a number from 0 to 1`."""
        words = "text" if self.escaped else KINDS[self.kind]
        if self.choices:
            words = "one of " + ", ".join(self.choices)
        if self.above is not None:
            words += f" above {self.above:.16g}"
        if self.low is not None and self.high is not None:
            words += f" from {self.low:.16g} to {self.high:.16g}"
        elif self.low is not None:
            words += f" of at least {self.low:.16g}"
        elif self.high is not None:
            words += f" and at most {self.high:.16g}"
        return words + (f" or {self.absent}" if self.optional else "")

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

    def fits_type(self, value: object) -> bool:
        """Whether a value is of the option's type; a whole number serves where any number does."""
        if value is None:
            return self.optional
        return isinstance(value, self.kind) or (self.kind is float and isinstance(value, int))

    def fault(self, value: Any) -> str:
        """Return what is wrong with a value of the right type: `it must be at least 1`; empty if nothing is."""
        if value is None:
            return ""
        if self.choices:
            return "" if value in self.choices else f"it is one of {', '.join(self.choices)}"
        if self.kind not in (int, float):
            return ""
        finite = ", and finite" if self.kind is float and self.high is None else ""
        if self.above is not None and not value > self.above:
            return f"it must be above {self.above:.16g}{finite}"
        if self.low is not None and not value >= self.low:
            return (f"it must be at least {self.low:.16g}" if self.low else "it must not be negative") + finite
        if self.high is not None and not value <= self.high:
            return f"it must be at most {self.high:.16g}"
        return "" if abs(value) <= sys.float_info.max else "it must be finite"

    def parse(self, given: object) -> Any:
        """Return the value that `given` (typed text, or a JSON or TOML value) stands for.

        Raises:
            SettingError: it is of another type, not a number, no choice, or out of bounds.
        """
        try:
            return self._read_texts(given) if self.kind is tuple else self._read(given)
        except (ValueError, OverflowError):
            raise SettingError(self.name, self.expected, given) from None

    def _read(self, given: object) -> Any:
        """As `parse`, of anything but several texts; raises a ValueError or an OverflowError."""
        word = given.strip().lower() if isinstance(given, str) else given
        if word in self.choices:
            return word
        if self._is_absent(word):
            return None
        if self.kind is bool:
            truth = TRUTHS.get(word) if isinstance(word, str) else given
            if not isinstance(truth, bool):
                raise ValueError
            return truth
        if self.kind is str:
            if self.choices or not isinstance(given, str) or not (given or self.empty):
                raise ValueError
            return given
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError
        value = self.kind(given)
        if (isinstance(given, float) and value != given) or self.fault(value):
            raise ValueError
        return value

    def _read_texts(self, given: object) -> tuple[str, ...] | None:
        """As `parse`, of texts: one as it is typed, or a list as JSON and TOML have it; raises a ValueError."""
        if self._is_absent(given.lower() if isinstance(given, str) else given):
            return None if self.default is None else ()
        texts = (unescape(given) if self.escaped else given,) if isinstance(given, str) else given
        if not isinstance(texts, list | tuple):
            raise ValueError
        if not all(isinstance(text, str) and (text or self.empty) for text in texts):
            raise ValueError
        return tuple(texts)

    def _is_absent(self, word: object) -> bool:
        """Whether a word says that there is no value; for a number that a planner chooses, `none` does so too."""
        if not self.optional:
            return False
        others = ABSENT if self.absent in ABSENT or self.kind in (int, float) else ()
        return word is None or word in (self.absent, *others)

    def show(self, value: Any) -> str:
        """Return the value in words; `–` for none."""
        if value is None or value == ():
            return "–"
        if self.kind is tuple:
            return " ".join(repr(text) for text in value)
        if self.kind is bool:
            return str(value).lower()
        return f"{value:g}" if self.kind is float else str(value)

    def typed(self, value: Any) -> str:
        """Return the value as a person would type it; the word for no value where there is none."""
        if value is None or value == ():
            return self.absent
        return " ".join(map(escape, value)) if self.kind is tuple else self.show(value)


def option(default: Any, help: str, **facts: Any) -> Any:
    """Return a field of a dataclass that declares an option.

    Args:
        default: its value where nothing else is said; `REQUIRED`: it has none.
        help: what it is, in a line.
        facts: the other fields of `Option`; its type is that of the field.
    """
    return field(default=default, metadata={"option": Option(help, default, **facts)})


class Options(Mapping[str, Option]):
    """A table of options by their names, in the order in which they are shown.

    Args:
        options: what it holds.
        error: raised for a name that no option has.
        unknown: what such an error says before the name.
        remedy: what it says where no name is near; by default, all names.
    """

    def __init__(
        self,
        options: Iterable[Option],
        *,
        error: type[TinychatError] = UsageError,
        unknown: str = "there is no setting",
        remedy: str = "",
    ) -> None:
        self._options = {one.name: one for one in options}
        self._error, self._unknown, self._remedy = error, unknown, remedy

    @classmethod
    def of(cls, owner: type, **unknown: Any) -> Self:
        """Return the options that the fields of a dataclass declare; `unknown` as in the constructor."""
        return cls(map(_declared, dataclasses.fields(owner)), **unknown)

    def __getitem__(self, name: str) -> Option:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __or__(self, other: "Options") -> "Options":
        return Options([*self.values(), *other.values()])

    def find(self, name: str) -> Option:
        """Return the option of that name, alias or flag; `-` and `_` are the same.

        Raises:
            TinychatError: there is none; of the class that the table was made with.
        """
        wanted = name.strip().lower().replace("-", "_")
        for one in self.values():
            if wanted in (one.name, *one.aliases, one.flag.removeprefix("--").replace("-", "_")):
                return one
        near = difflib.get_close_matches(wanted, self, n=1)
        remedy = f"did you mean {near[0]}?" if near else self._remedy or "settings: " + ", ".join(self)
        raise self._error(f"{self._unknown} {name!r}", remedy)

    def in_section(self, *sections: str) -> tuple[str, ...]:
        """Return the names of the options of these sections."""
        return tuple(name for name, one in self.items() if one.section in sections)

    def parse_fields(self, instance: object) -> None:
        """Replace the fields of a frozen dataclass, which declares these options, by what they are parsed to.

        Raises:
            SettingError: a value is of the wrong type or out of bounds.
        """
        for name, one in self._options.items():
            object.__setattr__(instance, name, one.parse(getattr(instance, name)))


def _declared(declaring: "dataclasses.Field[Any]") -> Option:
    """Return the option that a field declares, with its name and type."""
    one: Option = declaring.metadata["option"]
    kinds = typing.get_args(declaring.type) if isinstance(declaring.type, UnionType) else (declaring.type,)
    kind = next(kind for kind in kinds if kind is not NoneType)
    return dataclasses.replace(
        one, name=declaring.name, kind=typing.get_origin(kind) or kind, optional=one.optional or NoneType in kinds
    )


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
