"""Everything that a person can set, declared once.

A field of `Settings` carries its type, bounds, default, help, flags and toolbar form. Flags, environment variables,
slash commands, completion, the toolbar, the config file, JSON fields, error texts and the README's table are all
read from here, so a new setting is one field; one that says how tokens are chosen is also a function in
`generate/sampling.py`.
"""

from dataclasses import dataclass

from tinychat.config.option import Options, option
from tinychat.config.precedence import LayeredOptions, Origin


@dataclass(frozen=True, slots=True)
class Settings:
    """A snapshot of every setting; the engine is handed a new one before each call.

    Raises:
        SettingError: a value is of the wrong type or out of bounds.
    """

    temperature: float = option(
        0.8, "randomness: 0 takes the likeliest token, 1 the model's own odds", low=0, high=100,
        flags=("-t",), aliases=("temp",), example="1.2",
        trend="higher: more surprising",
        values={
            "0": "greedy: the likeliest token, always", "0.5": "steady", "1": "the model's own odds", "1.2": "daring",
        },
        toolbar=lambda value: f"temp {value:g}",
        section="sampling", neutral=1,
    )  # fmt: skip
    top_k: int | None = option(
        None, "draw from the k likeliest tokens only", low=1,
        flags=("-k",), aliases=("topk",), example="40",
        trend="lower: safer",
        values={"none": "all tokens", "5": "only what is very likely", "40": "the usual"},
        toolbar=lambda value: f"top-k {value}" if value else "",
        section="sampling",
    )  # fmt: skip
    top_p: float = option(
        0.95, "draw from the likeliest tokens that together have this probability", above=0, high=1,
        aliases=("topp",), example="0.9",
        trend="lower: safer",
        values={"0.5": "only what is very likely", "0.9": "without the unlikely rest", "1": "all tokens"},
        toolbar=lambda value: f"top-p {value:g}",
        section="sampling", neutral=1,
    )  # fmt: skip
    min_p: float = option(
        0.0, "drop tokens less likely than this fraction of the likeliest", low=0, high=1,
        aliases=("minp",), example="0.05",
        trend="higher: safer",
        values={"0": "drops none", "0.05": "the usual", "0.2": "only what is very likely"},
        toolbar=lambda value: f"min-p {value:g}" if value else "",
        section="sampling", neutral=0,
    )  # fmt: skip
    repetition_penalty: float = option(
        1.0, "above 1, tokens already used become less likely", above=0, high=100,
        aliases=("penalty",), example="1.1",
        trend="higher: fewer repetitions",
        values={"1": "none", "1.1": "a little", "1.3": "much"},
        toolbar=lambda value: f"penalty {value:g}" if value != 1 else "",
        section="penalty", neutral=1,
    )  # fmt: skip
    max_tokens: int = option(
        256, "the most tokens of an answer", low=1,
        flags=("-n",), aliases=("max", "length"), example="100",
        trend="higher: longer answers",
        values={"32": "a line or two", "100": "a paragraph", "1000": "a page or two"},
        toolbar=lambda value: f"max {value}",
    )  # fmt: skip
    seed: int | None = option(
        None, "makes an answer repeatable; none draws a fresh one each time", low=0, high=2**53,
        flags=("-s",), example="7",
        trend="the same seed: the same answer",
        values={"none": "a fresh one each time", "7": "any number will do"},
        toolbar=lambda value: f"seed {'–' if value is None else value}",
    )  # fmt: skip
    stop: tuple[str, ...] = option(
        (), r"end the answer before this text (\n is a new line)", optional=True, escaped=True, example=r"\n",
        values={"none": "no text ends it", r"\n": "the end of the line", r"\n\n": "the end of the paragraph"},
        toolbar=lambda value: "stop " + " ".join(repr(text) for text in value) if value else "",
    )  # fmt: skip
    slow: float | None = option(
        None, "show no more tokens a second than this, to read along", above=0, example="20",
        trend="tokens a second",
        values={"none": "as quick as it can", "5": "to read aloud", "20": "to read along"},
        toolbar=lambda value: f"slow {value:g}" if value else "",
    )  # fmt: skip
    device: str = option(
        "auto", "where the model runs", choices=("auto", "cpu", "cuda", "mps"), example="cpu",
        values={
            "auto": "the quickest there is", "cpu": "the processor", "cuda": "an NVIDIA GPU", "mps": "an Apple GPU",
        },
        section="loading",
    )  # fmt: skip
    precision: str = option(
        "auto", "the numbers that the model computes with", choices=("auto", "f32", "bf16", "int8"),
        example="bf16",
        values={
            "auto": "what suits the device and loses nothing to speak of", "f32": "exact, 4 bytes each",
            "bf16": "coarser, 2 bytes each", "int8": "a byte each: on a processor",
        },
        section="loading",
    )  # fmt: skip
    engine: str = option(
        "auto", "what makes the tokens", choices=("auto", "torch", "native"), example="torch",
        values={"auto": "the quicker one", "torch": "the reference", "native": "in C, without torch"},
        section="loading",
    )  # fmt: skip
    threads: int | None = option(
        None, "processor threads; none takes what suits the model", low=1, high=1024, example="2",
        values={"none": "what suits the model", "1": "leaves the others to other programs"},
        section="loading",
    )  # fmt: skip

    def __post_init__(self) -> None:
        SETTINGS.parse_fields(self)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken: temperature 0, by definition."""
        return self.temperature == 0


SETTINGS = Options.of(Settings)
"""Every setting by its name, in the order in which they are shown."""

PENALTIES = SETTINGS.in_section("penalty")
"""Those that change the logits by the text so far, before anything else; greedy obeys them too."""

SAMPLING = SETTINGS.in_section("sampling", "penalty")
"""Those that say how the next token is chosen. Each has a value with which it changes nothing, its `neutral` one."""

LOADING = SETTINGS.in_section("loading")
"""Those that a model is loaded with: to change one is to load it again."""


def describe_sampling(settings: Settings, other_than: Settings | None = None) -> list[str]:
    """How the next token is chosen, as the toolbar shows it: `temp 0.8`, `top-p 0.95`, `sample`.

    Args:
        other_than: leaves out what these settings say as well.
    """
    words: list[str] = []
    for name in SAMPLING:
        form, value = SETTINGS[name].toolbar, getattr(settings, name)
        if form and (other_than is None or value != getattr(other_than, name)):
            words.append(form(value) or f"{SETTINGS[name].spelling} –" if other_than else form(value))
    if other_than is None or settings.greedy != other_than.greedy:
        words.append("greedy" if settings.greedy else "sample")
    return [word for word in words if word]


class SettingStore(LayeredOptions[Settings]):
    """The settings in force, which know where each of them came from, and the temperature that greedy took over."""

    def __init__(self) -> None:
        self._last_temperature = SETTINGS["temperature"].default
        super().__init__(SETTINGS, Settings)

    def sample(self, origin: Origin = Origin.COMMAND) -> None:
        """Draws again after greedy: the last temperature above 0 returns."""
        if self.current.greedy:
            self.set("temperature", self._last_temperature, origin)

    def _refresh(self) -> None:
        super()._refresh()
        if not self.current.greedy:
            self._last_temperature = self.current.temperature
