"""Everything that a person can set, declared once.

A field of `Settings` carries its type, bounds, default, help, flags and toolbar form. Flags, environment variables,
slash commands, completion, the toolbar, the config file, JSON fields, error texts and the README's table are all
read from here, so a new setting is one field.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tinychat.errors import SettingError, UsageError

ABSENT = ("none", "off", "-", "–")
"""Words that stand for no value, where a setting may have none."""

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
    toolbar: Callable[[Any], str] | None = None

    @property
    def flag(self) -> str:
        """The long flag: `--top-p`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable: `TINYCHAT_TOP_P`."""
        return "TINYCHAT_" + self.name.upper()

    @property
    def expected(self) -> str:
        """What the setting takes, in words: `a number from 0 to 1`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {float: "a number", int: "a whole number", tuple: "text"}[self.kind]
        if self.above is not None:
            words += f" above {self.above:.16g}"
        if self.low is not None and self.high is not None:
            words += f" from {self.low:.16g} to {self.high:.16g}"
        elif self.low is not None:
            words += f" of at least {self.low:.16g}"
        elif self.high is not None:
            words += f" and at most {self.high:.16g}"
        return words + (" or none" if self.optional or self.kind is tuple else "")

    def parse(self, given: object) -> Any:
        """The value that `given` (typed text, or a JSON or TOML value) stands for.

        Raises:
            SettingError: it is of another type, not a number, or out of bounds.
        """
        if self.kind is tuple:
            return self._parse_texts(given)
        if given is None or (isinstance(given, str) and given.strip().lower() in ABSENT):
            if self.optional:
                return None
            raise SettingError(self.name, self.expected, given)
        if self.kind is str:
            value: Any = str(given).strip().lower()
        else:
            value = self._parse_number(given)
        if (
            (self.choices and value not in self.choices)
            or (self.above is not None and value <= self.above)
            or (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
        ):
            raise SettingError(self.name, self.expected, given)
        return value

    def _parse_number(self, given: object) -> float | int:
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise SettingError(self.name, self.expected, given)
        try:
            value = self.kind(given)
        except (ValueError, OverflowError):
            raise SettingError(self.name, self.expected, given) from None
        if not math.isfinite(value) or (isinstance(given, float) and value != given):
            raise SettingError(self.name, self.expected, given)
        return value  # type: ignore[no-any-return]

    def _parse_texts(self, given: object) -> tuple[str, ...]:
        """A stop string as typed (with `\\n` for a new line), or a list of them as JSON and TOML have it."""
        if given is None or (isinstance(given, str) and given.lower() in ABSENT):
            return ()
        texts = (unescape(given),) if isinstance(given, str) else given
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
            raise SettingError(self.name, self.expected, given)
        return tuple(texts)

    def show(self, value: Any) -> str:
        """The value as a person would type it; `–` for none."""
        if value is None or value == ():
            return "–"
        if self.kind is tuple:
            return " ".join(repr(text) for text in value)
        return f"{value:g}" if self.kind is float else str(value)


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


def _setting(default: Any, kind: type, help: str, **facts: Any) -> Any:
    """A field of `Settings`, with what there is to know of it."""
    return dataclasses.field(default=default, metadata={"setting": Setting(kind, help, default, **facts)})


@dataclass(frozen=True, slots=True)
class Settings:
    """A snapshot of every setting; the engine is handed a new one before each call.

    Raises:
        SettingError: a value is of the wrong type or out of bounds.
    """

    temperature: float = _setting(
        0.8, float, "randomness: 0 takes the likeliest token, 1 the model's own odds", low=0, high=100,
        flags=("-t",), aliases=("temp",), example="1.2",
        toolbar=lambda value: f"temp {value:g}",
    )  # fmt: skip
    top_k: int | None = _setting(
        None, int, "draw from the k likeliest tokens only", optional=True, low=1,
        flags=("-k",), aliases=("topk",), example="40",
        toolbar=lambda value: f"top-k {value}" if value else "",
    )  # fmt: skip
    top_p: float = _setting(
        0.95, float, "draw from the likeliest tokens that together have this probability", above=0, high=1,
        aliases=("topp",), example="0.9",
        toolbar=lambda value: f"top-p {value:g}",
    )  # fmt: skip
    min_p: float = _setting(
        0.0, float, "drop tokens less likely than this fraction of the likeliest", low=0, high=1,
        aliases=("minp",), example="0.05",
        toolbar=lambda value: f"min-p {value:g}" if value else "",
    )  # fmt: skip
    repetition_penalty: float = _setting(
        1.0, float, "above 1, tokens already used become less likely", above=0, high=100,
        aliases=("penalty",), example="1.1",
        toolbar=lambda value: f"penalty {value:g}" if value != 1 else "",
    )  # fmt: skip
    max_tokens: int = _setting(
        256, int, "the most tokens of an answer", low=1,
        flags=("-n",), aliases=("max", "length"), example="100",
        toolbar=lambda value: f"max {value}",
    )  # fmt: skip
    seed: int | None = _setting(
        None, int, "makes an answer repeatable; none draws a fresh one each time", optional=True, low=0, high=2**53,
        flags=("-s",), example="7",
        toolbar=lambda value: f"seed {'–' if value is None else value}",
    )  # fmt: skip
    stop: tuple[str, ...] = _setting(
        (), tuple, r"end the answer before this text (\n is a new line)", example=r"\n",
        toolbar=lambda value: "stop " + " ".join(repr(text) for text in value) if value else "",
    )  # fmt: skip
    slow: float | None = _setting(
        None, float, "show no more tokens a second than this, to read along", optional=True, above=0, example="20",
        toolbar=lambda value: f"slow {value:g}" if value else "",
    )  # fmt: skip
    device: str = _setting("auto", str, "where the model runs", choices=("auto", "cpu", "cuda", "mps"), example="cpu")
    precision: str = _setting(
        "auto", str, "the numbers that the model computes with", choices=("auto", "f32", "bf16"), example="bf16"
    )
    threads: int | None = _setting(
        None, int, "processor threads; none takes what suits the model", optional=True, low=1, high=1024, example="2"
    )

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            object.__setattr__(self, name, setting.parse(getattr(self, name)))

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken: temperature 0, by definition."""
        return self.temperature == 0


SETTINGS: dict[str, Setting] = {
    field.name: dataclasses.replace(field.metadata["setting"], name=field.name)
    for field in dataclasses.fields(Settings)
}
"""Every setting by its name, in the order in which they are shown."""


SAMPLING = tuple(SETTINGS)[: tuple(SETTINGS).index("max_tokens")]
"""The settings that say how the next token is chosen."""


def describe_sampling(settings: Settings, other_than: Settings | None = None) -> list[str]:
    """How the next token is chosen, as the toolbar shows it: `temp 0.8`, `top-p 0.95`, `sample`.

    Args:
        other_than: leaves out what these settings say as well.
    """
    words: list[str] = []
    for name in SAMPLING:
        form, value = SETTINGS[name].toolbar, getattr(settings, name)
        if form and (other_than is None or value != getattr(other_than, name)):
            words.append(form(value) or f"{name.replace('_', '-')} –" if other_than else form(value))
    if other_than is None or settings.greedy != other_than.greedy:
        words.append("greedy" if settings.greedy else "sample")
    return [word for word in words if word]


def find_setting(name: str) -> Setting:
    """The setting of that name or alias; `-` and `_` are the same.

    Raises:
        UsageError: there is none.
    """
    wanted = name.strip().lower().replace("-", "_")
    for setting in SETTINGS.values():
        if wanted == setting.name or wanted in setting.aliases:
            return setting
    raise UsageError(f"there is no setting {name!r}", "settings: " + ", ".join(SETTINGS))


class Layer(IntEnum):
    """Where a value comes from; the later one wins."""

    DEFAULT = 0
    MODEL = 1
    FILE = 2
    ENVIRONMENT = 3
    FLAG = 4
    COMMAND = 5


class SettingStore:
    """The settings in force, which know where each of them came from.

    `current` is a frozen snapshot, replaced as a whole when a value changes: a thread may read it at any moment.
    """

    def __init__(self) -> None:
        self._layers: dict[Layer, dict[str, Any]] = {layer: {} for layer in Layer}
        self._last_temperature = SETTINGS["temperature"].default
        self.current = Settings()

    def set(self, name: str, given: object, layer: Layer = Layer.COMMAND) -> Any:
        """Sets one setting from typed text or a JSON value, and returns the value as read.

        Raises:
            UsageError: there is no such setting.
            SettingError: it cannot take that value.
        """
        setting = find_setting(name)
        value = setting.parse(given)
        self._layers[layer][setting.name] = value
        self._refresh()
        return value

    def update(self, values: Mapping[str, object], layer: Layer) -> None:
        """Sets several; all or none."""
        self._layers[layer].update(_parsed(values))
        self._refresh()

    def replace(self, values: Mapping[str, object], layer: Layer) -> None:
        """Sets several and forgets the others of that layer: a model brings its own, whole."""
        self._layers[layer] = _parsed(values)
        self._refresh()

    def reset(self, name: str | None = None) -> None:
        """Takes back what commands set: one setting, or all of them."""
        if name is None:
            self._layers[Layer.COMMAND].clear()
        else:
            self._layers[Layer.COMMAND].pop(find_setting(name).name, None)
        self._refresh()

    def sample(self, layer: Layer = Layer.COMMAND) -> None:
        """Draws again after greedy: the last temperature above 0 returns."""
        if self.current.greedy:
            self.set("temperature", self._last_temperature, layer)

    def origin(self, name: str) -> Layer:
        """The layer whose value is in force."""
        key = find_setting(name).name
        return next((layer for layer in reversed(Layer) if key in self._layers[layer]), Layer.DEFAULT)

    def _refresh(self) -> None:
        merged: dict[str, Any] = {}
        for layer in Layer:
            merged.update(self._layers[layer])
        self.current = Settings(**merged)
        if not self.current.greedy:
            self._last_temperature = self.current.temperature


def _parsed(values: Mapping[str, object]) -> dict[str, Any]:
    return {setting.name: setting.parse(value) for name, value in values.items() if (setting := find_setting(name))}
