"""Everything that a person can set, declared once.

A field of `Settings` carries its type, bounds, default, help, flags and toolbar form. Flags, environment variables,
slash commands, completion, the toolbar, the config file, JSON fields, error texts and the README's table are all
read from here, so a new setting is one field.
"""

from dataclasses import dataclass

from tinychat.layers import Layer, Layers
from tinychat.setting import Setting, declared, find, setting


@dataclass(frozen=True, slots=True)
class Settings:
    """A snapshot of every setting; the engine is handed a new one before each call.

    Raises:
        SettingError: a value is of the wrong type or out of bounds.
    """

    temperature: float = setting(
        0.8, float, "randomness: 0 takes the likeliest token, 1 the model's own odds", low=0, high=100,
        flags=("-t",), aliases=("temp",), example="1.2",
        toolbar=lambda value: f"temp {value:g}",
    )  # fmt: skip
    top_k: int | None = setting(
        None, int, "draw from the k likeliest tokens only", optional=True, low=1,
        flags=("-k",), aliases=("topk",), example="40",
        toolbar=lambda value: f"top-k {value}" if value else "",
    )  # fmt: skip
    top_p: float = setting(
        0.95, float, "draw from the likeliest tokens that together have this probability", above=0, high=1,
        aliases=("topp",), example="0.9",
        toolbar=lambda value: f"top-p {value:g}",
    )  # fmt: skip
    min_p: float = setting(
        0.0, float, "drop tokens less likely than this fraction of the likeliest", low=0, high=1,
        aliases=("minp",), example="0.05",
        toolbar=lambda value: f"min-p {value:g}" if value else "",
    )  # fmt: skip
    repetition_penalty: float = setting(
        1.0, float, "above 1, tokens already used become less likely", above=0, high=100,
        aliases=("penalty",), example="1.1",
        toolbar=lambda value: f"penalty {value:g}" if value != 1 else "",
    )  # fmt: skip
    max_tokens: int = setting(
        256, int, "the most tokens of an answer", low=1,
        flags=("-n",), aliases=("max", "length"), example="100",
        toolbar=lambda value: f"max {value}",
    )  # fmt: skip
    seed: int | None = setting(
        None, int, "makes an answer repeatable; none draws a fresh one each time", optional=True, low=0, high=2**53,
        flags=("-s",), example="7",
        toolbar=lambda value: f"seed {'–' if value is None else value}",
    )  # fmt: skip
    stop: tuple[str, ...] = setting(
        (), tuple, r"end the answer before this text (\n is a new line)", example=r"\n",
        toolbar=lambda value: "stop " + " ".join(repr(text) for text in value) if value else "",
    )  # fmt: skip
    slow: float | None = setting(
        None, float, "show no more tokens a second than this, to read along", optional=True, above=0, example="20",
        toolbar=lambda value: f"slow {value:g}" if value else "",
    )  # fmt: skip
    device: str = setting("auto", str, "where the model runs", choices=("auto", "cpu", "cuda", "mps"), example="cpu")
    precision: str = setting(
        "auto", str, "the numbers that the model computes with", choices=("auto", "f32", "bf16"), example="bf16"
    )
    threads: int | None = setting(
        None, int, "processor threads; none takes what suits the model", optional=True, low=1, high=1024, example="2"
    )

    def __post_init__(self) -> None:
        for name, one in SETTINGS.items():
            object.__setattr__(self, name, one.parse(getattr(self, name)))

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken: temperature 0, by definition."""
        return self.temperature == 0


SETTINGS = declared(Settings)
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
    return find(SETTINGS, name)


class SettingStore(Layers[Settings]):
    """The settings in force, which know where each of them came from, and the temperature that greedy took over."""

    def __init__(self) -> None:
        self._last_temperature = SETTINGS["temperature"].default
        super().__init__(SETTINGS, Settings)

    def sample(self, layer: Layer = Layer.COMMAND) -> None:
        """Draws again after greedy: the last temperature above 0 returns."""
        if self.current.greedy:
            self.set("temperature", self._last_temperature, layer)

    def _refresh(self) -> None:
        super()._refresh()
        if not self.current.greedy:
            self._last_temperature = self.current.temperature
