"""Options: each is declared once, as a dataclass field; `| None` in its annotation means that it may be unset.

Flags, environment variables, commands, completion, config files, error messages and docs are generated from it.
"""

import dataclasses
import difflib
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import NoneType, UnionType
from typing import Any, Generic, Self, TypeVar

from tinychat.errors import SettingError, TinychatError, UsageError

T = TypeVar("T")

ABSENT = ("none", "off", "-", "–")
"""Words that unset an optional option."""
LARGE_EXPONENT = 32
"""Exponent from which an upper bound is written as a power of two."""
AUTO = "auto"
"""Word that leaves the choice to the planner."""
REQUIRED = dataclasses.MISSING
"""Default of an option that has none."""

KINDS: dict[type, str] = {
    float: "a number", int: "a whole number", str: "text", tuple: "one or more texts", bool: "true or false",
}  # fmt: skip
METAVARS: dict[type, str] = {float: "N", int: "N", str: "TEXT", tuple: "TEXT", bool: "true|false"}
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

VARIABLE_PREFIX = "TINYCHAT_"
"""Beginning of the name of each environment variable."""

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"}
_TO_ESCAPES = str.maketrans({char: f"\\{letter}" for letter, char in ESCAPES.items()})


@dataclass(frozen=True)
class Option:
    """Declaration of one option; `name`, `kind` and `optional` are filled in from its field."""

    help: str
    default: Any = None
    name: str = ""
    kind: type = str
    """Type of the value: bool, int, float, str, or tuple (of texts)."""
    optional: bool = False
    """Whether it may be unset: None, or an empty tuple if that is the default."""
    absent: str = "none"
    """Word for no value: `none`, or `auto` if the planner then chooses."""
    section: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    """Exclusive minimum; `low` and `high` are inclusive."""
    choices: tuple[str, ...] = ()
    empty: bool = False
    """Whether a text may be empty."""
    escaped: bool = False
    r"""Whether `\n` in a typed text means a newline, and `none` no text at all."""
    separated: bool = False
    r"""Whether a typed text is several, between commas; `\,` is a comma, and quotation marks keep outer spaces."""
    quoted: bool = False
    """Whether quotation marks around a text typed as a command keep its outer spaces, and are no part of it."""
    check: Callable[[str], str] | None = None
    """Returns the reason why a text is invalid; empty if it is valid."""
    merge: Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] | None = None
    """Joins the texts in force with those of a command; default: these replace the others."""
    switch: bool = False
    """Whether its flag takes no value."""
    flags: tuple[str, ...] = ()
    """Short flags, and a long one if it differs from the name."""
    aliases: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    """Words of the same meaning, such as names in other programs: whoever types one of them is told this name."""
    zero_is_none: bool = False
    """Whether 0 means no value, as in other programs."""
    metavar: str = ""
    """Placeholder for a value in usage lines; empty: that of the type, such as `N`."""
    example: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """Suggested values, each with its effect."""
    trend: str = ""
    """Effect of a higher or lower value: `higher: more random`."""
    neutral: Any = None
    """Value that turns it off."""
    toolbar: Callable[[Any], str] | None = None
    """Formats a value for the toolbar; empty text hides it."""

    @property
    def spelling(self) -> str:
        """Name as typed on a command line: `top-p`."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """Long flag: `--top-p`."""
        return next((flag for flag in self.flags if flag.startswith("--")), f"--{self.spelling}")

    @property
    def variable(self) -> str:
        """Environment variable: `TINYCHAT_TOP_P`."""
        return VARIABLE_PREFIX + self.name.upper()

    @property
    def usage(self) -> str:
        """Placeholder for a value in usage lines: `N`, `TEXT,…`, `auto|cpu|cuda|mps`."""
        return self.metavar or "|".join(self.choices) or METAVARS[self.kind] + ",…" * self.separated

    @property
    def type_name(self) -> str:
        """Type in Python's notation: `int | None`."""
        return self.kind.__name__ + (" | None" if self.optional else "")

    @property
    def expected(self) -> str:
        """Valid values, in words: `a number from 0 to 1`."""
        words = "texts between commas" if self.separated else "text" if self.escaped else KINDS[self.kind]
        if self.choices:
            words = ("any of " if self.kind is tuple else "one of ") + ", ".join(self.choices)
        if self.check is not None:  # not every text is a valid one
            words = self.usage
        if self.above is not None:
            words += f" above {_bound(self.above)}"
        if self.low is not None:
            low = _bound(self.low)
            words += f" of at least {low}" if self.high is None else f" from {low} to {self._most}"
        elif self.high is not None:
            words += f" and at most {self._most}"
        return words + (f" or {self.absent}" if self.optional else "")

    @property
    def _most(self) -> str:
        """The upper bound: a large power of two is written as one."""
        assert self.high is not None
        exponent = int(self.high).bit_length() - 1
        return f"2^{exponent}" if exponent >= LARGE_EXPONENT and self.high == 2**exponent else _bound(self.high)

    @property
    def bounds(self) -> str:
        """Bounds of a number, in short: `above 0, to 1`; empty for other types."""
        if self.kind not in (int, float):
            return ""
        low = "" if self.low is None else _bound(self.low)
        if self.above is not None:
            low = f"above {_bound(self.above)}"
        if self.high is None:
            return f"{low} or more" if self.low is not None else low
        return f"{low}, to {self._most}" if self.above is not None else f"{low} to {self._most}"

    @property
    def meaning(self) -> str:
        """Bounds and trend, or else the help, in one line: `0 to 100 · higher: more random`."""
        return " · ".join(filter(None, (self.bounds, self.trend))) or self.help

    def next_choices(self, typed: str) -> list[str]:
        """Return the choices that a typed text may become: of several, those not named yet, each after the others."""
        before, comma, _ = typed.rpartition(",") if self.kind is tuple else ("", "", "")
        return [before + comma + choice for choice in self.choices if choice not in before.split(",")]

    def fits_type(self, value: object) -> bool:
        """Return whether a value has the option's type; an int is also a valid float."""
        if value is None:
            return self.optional
        if isinstance(value, bool):
            return self.kind is bool
        return isinstance(value, self.kind) or (self.kind is float and isinstance(value, int))

    def fault(self, value: Any) -> str:
        """Return the reason why a value of the right type is invalid: `it must be at least 1`; empty if it is valid."""
        if value is None:
            return ""
        if self.choices:
            return "" if value in self.choices else f"it is one of {', '.join(self.choices)}"
        if self.kind not in (int, float):
            return ""
        finite = ", and finite" if self.kind is float and self.high is None else ""
        if self.above is not None and not value > self.above:
            return f"it must be above {_bound(self.above)}{finite}"
        if self.low is not None and not value >= self.low:
            return (f"it must be at least {_bound(self.low)}" if self.low else "it must not be negative") + finite
        if self.high is not None and not value <= self.high:
            return f"it must be at most {self._most}"
        return "" if abs(value) <= sys.float_info.max else "it must be finite"

    def parse(self, raw: object, *, is_typed: bool = True) -> Any:
        """Parse a value that is typed, as a flag, a command, a variable or in TOML, where words mean no value.

        One of JSON or Python, which have null and None, is parsed with `is_typed=False`: the text `none` is a text.

        Raises:
            SettingError: If it has the wrong type, is not among the choices or is out of bounds.
        """
        try:
            return self._parse_texts(raw, is_typed) if self.kind is tuple else self._parse_scalar(raw, is_typed)
        except (ValueError, OverflowError):
            raise SettingError(self.name, self.expected, raw) from None

    def _parse_scalar(self, raw: object, is_typed: bool) -> Any:
        """Parse a value of any type but tuple; raises a ValueError or an OverflowError if it is invalid."""
        word = raw.strip().lower() if isinstance(raw, str) else raw
        if word in self.choices:
            return word
        if self._is_absent(raw, is_typed):
            return None
        if self.kind is bool:
            truth = BOOLEANS.get(word) if isinstance(word, str) else raw
            if isinstance(truth, bool):
                return truth
        elif self.kind is str:
            if isinstance(raw, str) and (raw or self.empty) and not self.choices:
                self._check(raw, raw)
                return raw
        elif isinstance(raw, int | float | str) and not isinstance(raw, bool):
            value = self.kind(raw)
            if value == 0 and self.zero_is_none:
                return None
            if not self.fault(value) and (value == raw or not isinstance(raw, float)):
                return value
        raise ValueError

    def _check(self, text: str, raw: object) -> None:
        if self.check is not None and (fault := self.check(text)):
            raise SettingError(self.name, self.expected, raw, fault)

    def _parse_texts(self, raw: object, is_typed: bool) -> tuple[str, ...] | None:
        """Parse one typed text, or a list from JSON or TOML; raises a ValueError if it is invalid."""
        if self._is_absent(raw, is_typed):
            return None if self.default is None else ()
        texts = raw
        if isinstance(raw, str):
            texts = split_texts(raw) or raw if self.separated else (unescape(raw) if self.escaped else raw,)
        if isinstance(texts, list | tuple) and all(isinstance(text, str) and (text or self.empty) for text in texts):
            for text in texts:
                self._check(text, raw)
            return self._parse_choices(texts) if self.choices else tuple(texts)
        raise ValueError

    def _parse_choices(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Parse words that are among the choices; several in one text are separated by commas."""
        words = tuple(word for text in texts for one in text.split(",") if (word := one.strip().lower()))
        if len(words) == 1 and self._is_absent(words[0]):
            return ()
        for word in words or texts:
            if word not in self.choices:
                raise SettingError(self.name, self.expected, word, "it stands alone" * self._is_absent(word))
        return words

    def _is_absent(self, raw: object, is_typed: bool = True) -> bool:
        """Return whether a value means none; numbers that the planner chooses accept `none` as well as `auto`.

        Free text does only if it is typed, without spaces around it.
        """
        if raw is None or not self.optional:
            return self.optional
        is_free = self.kind in (str, tuple) and not self.choices
        if is_free and not is_typed:
            return False
        word = (raw if is_free else raw.strip()).lower() if isinstance(raw, str) else raw
        others = ABSENT if self.absent in ABSENT or self.kind in (int, float) else ()
        return word in (self.absent, *others)

    def show(self, value: Any) -> str:
        """Format a value for display; `–` for none."""
        if value is None or value == ():
            return "–"
        if self.kind is tuple:
            return join_texts(value) if self.separated else " ".join(repr(text) for text in value)
        if self.kind is bool:
            return str(value).lower()
        if self.kind is str and value != value.strip():
            return repr(value)
        return f"{value:g}" if self.kind is float else str(value)

    def typed(self, value: Any) -> str:
        """Format a value so that `parse` reads it back; no value becomes the word for it."""
        if value is None or value == ():
            return self.absent
        if self.kind is tuple and not self.separated:
            return " ".join(map(escape, value))
        return str(value) if self.kind is str else self.show(value)


def option(default: Any, help: str, **attributes: Any) -> Any:
    """Return a dataclass field that declares an option: its default (or `REQUIRED`), help, and other attributes."""
    return field(default=default, metadata={"option": Option(help, default, **attributes)})


class Options(dict[str, Option]):
    """Table of options by name, in display order.

    For an unknown name, `find` raises `error` with a problem of `unknown` and the name, and `remedy`, by default a list
    of the names.
    """

    def __init__(
        self,
        options: Iterable[Option],
        *,
        error: type[TinychatError] = UsageError,
        unknown: str = "there is no setting",
        remedy: str = "",
    ) -> None:
        super().__init__((one.name, one) for one in options)
        self._error, self._unknown, self._remedy = error, unknown, remedy

    @classmethod
    def of(cls, owner: type, **unknown: Any) -> Self:
        """Create a table of the options that a dataclass declares; `unknown`: keyword arguments of the constructor."""
        return cls(map(_option_of, dataclasses.fields(owner)), **unknown)

    def __or__(self, other: "Options") -> "Options":  # type: ignore[override]
        return Options([*self.values(), *other.values()])

    def find(self, name: str) -> Option:
        """Return the option with a name, alias or flag; `-` and `_` are equivalent."""
        wanted = name.strip().lower().replace("-", "_")
        for one in self.values():
            if wanted in (one.name, *one.aliases, one.flag.removeprefix("--").replace("-", "_")):
                return one
        near = self.find_near(wanted)
        remedy = f"did you mean {near}?" if near else self._remedy or "settings: " + ", ".join(self)
        raise self._error(f"{self._unknown} {name!r}", remedy)

    def find_near(self, wanted: str, min_similarity: float = 0.7) -> str | None:
        """Return the name of the option that is nearest to a word, by meaning or else by spelling; None if none is."""
        by_meaning = {word: one.name for one in self.values() for word in (*one.aliases, *one.synonyms)}
        near = difflib.get_close_matches(wanted, [*self, *by_meaning], n=1, cutoff=min_similarity)
        return by_meaning.get(near[0], near[0]) if near else None

    def in_section(self, *sections: str) -> tuple[str, ...]:
        """Return the names of the options in some sections."""
        return tuple(name for name, one in self.items() if one.section in sections)

    def parse_fields(self, instance: object, *, is_typed: bool = True) -> None:
        """Parse the fields of a frozen dataclass that declares these options, in place; `is_typed`: see `Option.parse`.

        Raises:
            SettingError: If a value has the wrong type or is out of bounds.
        """
        for name, one in self.items():
            object.__setattr__(instance, name, one.parse(getattr(instance, name), is_typed=is_typed))


def _bound(value: float) -> str:
    """Format a bound; those of whole numbers have all their digits."""
    return str(value) if isinstance(value, int) else f"{value:.16g}"


def _option_of(declaration: "dataclasses.Field[Any]") -> Option:
    """Return the option that a dataclass field declares, with its name and type."""
    one: Option = declaration.metadata["option"]
    kinds = typing.get_args(declaration.type) if isinstance(declaration.type, UnionType) else (declaration.type,)
    kind, optional = next(kind for kind in kinds if kind is not NoneType), one.optional or NoneType in kinds
    return dataclasses.replace(one, name=declaration.name, kind=typing.get_origin(kind) or kind, optional=optional)


def unescape(text: str) -> str:
    r"""Replace the escapes `\n`, `\t`, `\r`, `\0` and `\\`; other backslashes stay as they are."""
    return re.sub(r"\\([ntr0\\])", lambda escaped: ESCAPES[escaped[1]], text)


def escape(text: str) -> str:
    """Escape a text so that `unescape` returns it."""
    return text.translate(_TO_ESCAPES)


def split_texts(text: str) -> tuple[str, ...]:
    r"""Split a text at its commas and unescape the parts; `\,` is a comma, and quotation marks keep outer spaces."""
    found = (part.strip() for part in re.findall(r"(?:\\(?:.|\Z)|[^,\\])+", text, re.DOTALL))
    parts = (part[1:-1] if _is_quoted(part) else part for part in found if part)
    return tuple(re.sub(r"\\([ntr0\\,])", lambda escaped: ESCAPES.get(escaped[1], ","), part) for part in parts)


def join_texts(texts: Iterable[str]) -> str:
    """Join texts so that `split_texts` returns them."""
    escaped = (escape(text).replace(",", r"\,") for text in texts)
    return ", ".join(f'"{text}"' if text != text.strip() or _is_quoted(text) else text for text in escaped)


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


class Origin(IntEnum):
    """Source of a value, in order of increasing precedence."""

    DEFAULT = 0
    MODEL = 1
    FILE = 2
    ENVIRONMENT = 3
    FLAG = 4
    COMMAND = 5


class LayeredOptions(Generic[T]):
    """Effective values of a table of options, from several sources, of which the one of highest precedence wins.

    `current` is a frozen snapshot, replaced as a whole when a value changes: any thread may read it at any time.
    Methods that take names raise the table's error if one is unknown, those that take values a SettingError if one is
    invalid; `is_typed` is that of `Option.parse`. `make` creates a snapshot from values by name; for those left out it
    uses the defaults.
    """

    def __init__(self, options: Options, make: Callable[..., T]) -> None:
        self._options, self._make = options, make
        self._layers: dict[Origin, dict[str, Any]] = {origin: {} for origin in Origin}
        self.current: T
        self._refresh()

    def set(self, name: str, raw: object, origin: Origin = Origin.COMMAND, *, is_typed: bool = True) -> Any:
        """Set one option from typed text or a JSON value, and return the parsed value."""
        name = self._options.find(name).name
        self.update({name: raw}, origin, is_typed=is_typed)
        return self._layers[origin][name]

    def update(self, values: Mapping[str, object], origin: Origin, *, is_typed: bool = True) -> None:
        """Set several options, all or none."""
        self._layers[origin].update(self._parse(values, is_typed))
        self._refresh()

    def replace(self, values: Mapping[str, object], origin: Origin) -> None:
        """Set several options to parsed values, all or none, and drop all other values of the same origin."""
        self._layers[origin] = self._parse(values, is_typed=False)
        self._refresh()

    def reset(self, name: str | None = None) -> None:
        """Undo what commands have set: one option, or all."""
        if name is None:
            self._layers[Origin.COMMAND].clear()
        else:
            self._layers[Origin.COMMAND].pop(self._options.find(name).name, None)
        self._refresh()

    def values(self, origin: Origin) -> dict[str, Any]:
        """Return the values that were set from an origin, by name."""
        return dict(self._layers[origin])

    def origin(self, name: str) -> Origin:
        """Return the origin of an option's effective value."""
        key = self._options.find(name).name
        return next((origin for origin in reversed(Origin) if key in self._layers[origin]), Origin.DEFAULT)

    def effective_values(self) -> Iterator[tuple[Option, Any, Origin]]:
        """Yield each option with its effective value and the origin of that value."""
        for name, one in self._options.items():
            yield one, getattr(self.current, name), self.origin(name)

    def _parse(self, values: Mapping[str, object], is_typed: bool) -> dict[str, Any]:
        found = [(self._options.find(name), value) for name, value in values.items()]
        return {one.name: one.parse(value, is_typed=is_typed) for one, value in found}

    def _refresh(self) -> None:
        self.current = self._make(**{name: value for layer in self._layers.values() for name, value in layer.items()})
