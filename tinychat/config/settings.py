"""Generation settings and options of the user interface, each declared once.

Flags, environment variables, slash commands, completion, the toolbar, the config file, JSON fields, error messages and
docs are generated from a field. A setting that changes sampling also has a function in `generate/sampling.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinychat.config.option import LayeredOptions, Option, Options, Origin, option
from tinychat.errors import UsageError
from tinychat.textutil import quote

MAX_INTEGER = 2**53
"""Largest integer of a setting: exact in JSON, and in every engine."""
MIN_TEMPERATURE = 1e-6
"""Temperature below which sampling is greedy: engines divide logits by it, in f32, which would overflow."""


MAX_STRENGTH = 1000
"""Largest strength of steering."""
MAX_CANDIDATES = 64
"""Maximum number of answers that are generated at once for one."""


# Each run of digits and of spaces is read once, from its beginning: the time is linear in the length of the text.
_STEERING = re.compile(r"(.*?)(?:\s([+-]?[0-9]+(?:\.[0-9]*)?))?(?:(?<!\s)\s+layer\s+([0-9]{1,9}))?", re.DOTALL)


class SteeringSpec(NamedTuple):
    """The value of the setting `steer`, in parts."""

    toward: str
    away: str
    strength: float = 1.0
    layer: int | None = None

    @classmethod
    def parse(cls, text: str) -> "SteeringSpec":
        """Parse `happy-sad 2`, or `"I am glad" - "I am sad" 1.5 layer 3`: a hyphen between spaces counts first.

        Raises:
            ValueError: If the text is not of this form.
        """
        match = _STEERING.fullmatch(text.strip())
        texts, strength, layer = match.groups() if match else ("", None, None)
        toward, _, away = (part.strip() for part in texts.partition(" - " if " - " in texts else "-"))
        if not toward or not away or layer == "0":
            raise ValueError("two texts with a hyphen between them are wanted, as in `happy-sad 2`")
        toward, away = (one[1:-1] if len(one) > 2 and one[0] == one[-1] == '"' else one for one in (toward, away))
        if strength and abs(float(strength)) > MAX_STRENGTH:
            raise ValueError(f"the strength is at most {MAX_STRENGTH}")
        return cls(toward, away, float(strength or 1), int(layer) if layer else None)


def _steering_fault(text: str) -> str:
    try:
        SteeringSpec.parse(text)
    except ValueError as error:
        return str(error)
    return ""


def _pattern_fault(pattern: str) -> str:
    from tinychat.pattern import pattern_fault

    return pattern_fault(pattern)


MAX_BOOST = 100
"""Largest bias of a text, as in OpenAI's API: it all but forces or forbids it."""


def split_boost(text: str) -> tuple[str, float]:
    """Return the text and the bias of a boost such as `ice cream 2`.

    Raises:
        ValueError: If it has no number at its end, or no text before it.
    """
    boosted, _, number = text.strip().rpartition(" ")
    bias = float(number)
    if not boosted.strip() or not abs(bias) <= MAX_BOOST:
        raise ValueError
    return boosted.strip(), bias


def _boost_fault(text: str) -> str:
    try:
        split_boost(text)
    except ValueError:
        return f"each ends with a number from -{MAX_BOOST} to {MAX_BOOST}, as in `happy 2`"
    return ""


def _merge_boosts(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Return all boosts, of each text the newest; 0 takes it out."""
    biases = {boosted.casefold(): (boosted, bias) for boosted, bias in map(split_boost, (*old, *new))}
    return tuple(f"{boosted} {bias:g}" for boosted, bias in biases.values() if bias)


@dataclass(frozen=True, slots=True)
class Settings:
    """Snapshot of all settings; engines receive the current one with each call.

    Raises:
        SettingError: If a value has the wrong type or is out of bounds.
    """

    temperature: float = option(
        0.8, "randomness: 0 always takes the most likely token, 1 samples from the model's own probabilities",
        low=0, high=100, neutral=1, section="sampling",
        flags=("-t",), aliases=("temp",),
        synonyms=("heat", "creativity", "randomness"), example="1.2", trend="higher: more random",
        values={
            "0": "greedy: always the most likely token", "0.5": "predictable", "1": "the model's own probabilities",
            "1.2": "more varied",
        },
        toolbar=lambda value: f"temp {value:g}",
    )  # fmt: skip
    top_k: int | None = option(
        None, "sample from the k most likely tokens only", low=1, high=MAX_INTEGER, section="sampling",
        flags=("-k",), aliases=("topk",), zero_is_none=True, example="40", trend="lower: less random",
        values={"none": "all tokens", "5": "only very likely tokens", "40": "a common value"},
        toolbar=lambda value: f"top-k {value}" if value else "",
    )  # fmt: skip
    top_p: float = option(
        0.95, "keep the likeliest tokens of this total probability",
        above=0, high=1, neutral=1, section="sampling", aliases=("topp",), example="0.9", trend="lower: less random",
        synonyms=("nucleus",),
        values={"0.5": "only very likely tokens", "0.9": "all but unlikely tokens", "1": "all tokens"},
        toolbar=lambda value: f"top-p {value:g}",
    )  # fmt: skip
    min_p: float = option(
        0.0, "exclude tokens below this fraction of the likeliest",
        low=0, high=1, neutral=0, section="sampling", aliases=("minp",), example="0.05", trend="higher: less random",
        values={"0": "all tokens", "0.05": "a common value", "0.2": "only very likely tokens"},
        toolbar=lambda value: f"min-p {value:g}" if value else "",
    )  # fmt: skip
    repetition_penalty: float = option(
        1.0, "above 1, makes tokens already used less likely", low=0.01, high=100, neutral=1,
        section="penalty", aliases=("penalty",), example="1.1", trend="higher: less repetition",
        synonyms=("repeat_penalty", "rep_pen"),
        values={"1": "off", "1.1": "mild", "1.3": "strong"},
        toolbar=lambda value: f"penalty {value:g}" if value != 1 else "",
    )  # fmt: skip
    presence_penalty: float = option(
        0.0, "lowers logits of tokens in the answer by this much", low=-100, high=100, neutral=0,
        section="repetition", aliases=("presence",), example="0.5", trend="higher: less repetition",
        values={"0": "off", "0.5": "mild", "1.5": "strong"},
        toolbar=lambda value: f"presence {value:g}" if value else "",
    )  # fmt: skip
    frequency_penalty: float = option(
        0.0, "lowers a token's logit each time it is in the answer", low=-100, high=100,
        neutral=0, section="repetition", aliases=("frequency",), example="0.5", trend="higher: less repetition",
        values={"0": "off", "0.3": "mild", "1": "strong"},
        toolbar=lambda value: f"frequency {value:g}" if value else "",
    )  # fmt: skip
    no_repeat_ngram: int = option(
        0, "forbid any N tokens in a row to come twice, in prompt and answer together; 0 is off",
        low=0, high=MAX_INTEGER, neutral=0, section="repetition", aliases=("no_repeat_ngram_size",), example="4",
        trend="lower: less repetition",
        values={"0": "off", "3": "strong", "5": "mild"},
        toolbar=lambda value: f"no-repeat {value}" if value else "",
    )  # fmt: skip
    dry_multiplier: float = option(
        0.0, "penalty of tokens that go on repeating earlier text (DRY); 0 is off", low=0, high=100, neutral=0,
        section="repetition", aliases=("dry",), example="0.8", trend="higher: less repetition",
        values={"0": "off", "0.8": "a common value"},
        toolbar=lambda value: f"dry {value:g}" if value else "",
    )  # fmt: skip
    dry_base: float = option(
        1.75, "DRY: factor of the penalty for each repeated token", low=1, high=10, section="dry",
        example="1.75", trend="higher: long repetition is penalized more",
    )  # fmt: skip
    dry_allowed_length: int = option(
        2, "DRY: length in tokens from which repetition is penalized; the penalty grows beyond it",
        low=1, high=MAX_INTEGER, section="dry", example="3", trend="lower: shorter repetition is penalized",
    )  # fmt: skip
    dry_sequence_breakers: tuple[str, ...] = option(
        ("\n", ":", '"', "*"), r"DRY: texts across which nothing is repetition (\n is a newline)", optional=True,
        escaped=True, separated=True, section="dry", example=r"\n, .",
    )  # fmt: skip
    ban: tuple[str, ...] = option(
        (), "texts that never appear in an answer, in upper or lower case, also inside words", optional=True,
        escaped=True, separated=True, neutral=(), section="control", example="sad, ice cream",
        merge=lambda old, new: tuple(dict.fromkeys((*old, *new))), trend="each command adds to the others",
        values={"none": "no banned text"},
        toolbar=lambda value: f"ban {len(value)}" if value else "",
    )  # fmt: skip
    boost: tuple[str, ...] = option(
        (), "adds N to the logits of a text's tokens, or with -N makes it unlikely", optional=True, escaped=True,
        separated=True, neutral=(), section="control", metavar="TEXT N,…", example="happy 2, ice cream -3",
        merge=_merge_boosts, check=_boost_fault, trend="each command adds to the others, 0 takes a text out",
        synonyms=("logit_bias",), values={"none": "no boosted text"},
        toolbar=lambda value: f"boost {len(value)}" if value else "",
    )  # fmt: skip
    max_tokens: int = option(
        256, "maximum number of tokens in an answer", low=1, high=MAX_INTEGER,
        flags=("-n",), aliases=("max", "length"), example="100", trend="higher: longer answers",
        synonyms=("num_predict", "n_predict", "max_new_tokens", "max_length", "limit"),
        values={"32": "a line or two", "100": "a paragraph", "1000": "a page or two"},
        toolbar=lambda value: f"max {value}",
    )  # fmt: skip
    seed: int | None = option(
        None, "random seed, for reproducible answers; none draws a new one for each answer", low=0, high=MAX_INTEGER,
        flags=("-s",), synonyms=("random_seed", "manual_seed"), example="7", trend="same seed: same answer",
        values={"none": "a new one for each answer", "7": "any number will do"},
        toolbar=lambda value: f"seed {'–' if value is None else value}",
    )  # fmt: skip
    stop: tuple[str, ...] = option(
        (), r"end the answer before this text (\n is a newline)", optional=True, escaped=True, quoted=True,
        synonyms=("stop_sequence", "stop_sequences", "stop_strings", "eos"), example=r"\n",
        values={"none": "no stop text", r"\n": "the end of the line", r"\n\n": "the end of the paragraph"},
        toolbar=lambda value: "stop " + " ".join(repr(text) for text in value) if value else "",
    )  # fmt: skip
    system: str | None = option(
        None, "instructions to a chat model that has a system role",
        quoted=True, synonyms=("system_prompt", "instructions"), example="Answer in one line.",
        values={"none": "no instructions"},
        toolbar=lambda value: f"system {value!r}" if value else "",
    )  # fmt: skip
    token_healing: str = option(
        "auto", "finish a word that the prompt ends within, in completions",
        choices=("auto", "on", "off"), example="off", synonyms=("heal", "healing", "heal_tokens"),
        values={
            "auto": "models of words or word pieces that were trained here",
            "on": "also imported models, whose tokens may then be others than those of their tools",
            "off": "go on after the prompt's tokens as they are",
        },
        toolbar=lambda value: f"healing {value}" if value != "auto" else "",
    )  # fmt: skip
    begin: str | None = option(
        None, "text that every answer begins with", section="control", quoted=True, example="Well,",
        values={"none": "the model begins as it likes"},
        toolbar=lambda value: f"begin {value!r}" if value else "",
    )  # fmt: skip
    regex: str | None = option(
        None, "regular expression that the whole answer matches", section="control", metavar="PATTERN",
        check=_pattern_fault, example=r"(yes|no)[.!]",
        values={"none": "any text", r"[^.!?]+[.!?]": "one sentence", r"\d+": "a number"},
        toolbar=lambda value: f"regex {value}" if value else "",
    )  # fmt: skip
    choices: tuple[str, ...] = option(
        (), "the answer is one of these texts, by the model's probabilities of them", optional=True, escaped=True,
        separated=True, example="yes,no,maybe", values={"none": "any text"},
        toolbar=lambda value: "choices " + ",".join(value) if value else "",
    )  # fmt: skip
    best_of: int = option(
        1, "number of answers sampled, of which the one with the highest log-probability per token is shown",
        low=1, high=MAX_CANDIDATES, example="5", trend="higher: likelier answers", values={"1": "off"},
        toolbar=lambda value: f"best of {value}" if value > 1 else "",
    )  # fmt: skip
    num_beams: int = option(
        1, "beam search for the likeliest answer, with this many beams instead of sampling; 1 is off",
        low=1, high=MAX_CANDIDATES, aliases=("beams",), example="4", trend="higher: likelier answers",
        values={"1": "off", "4": "a common value for translation"},
        toolbar=lambda value: f"beams {value}" if value > 1 else "",
    )  # fmt: skip
    steer: str | None = option(
        None, "steer along the direction between two texts, added to a layer's output; runs on the torch engine",
        section="steering", metavar="TEXT-TEXT [STRENGTH] [layer N]", check=_steering_fault, example="happy-sad 2",
        values={
            "none": "off", "happy-sad 2": "by two tenths of the state's length, after the middle layer",
            "happy-sad -2 layer 1": "the other way, after layer 1",
        },
        toolbar=lambda value: f"steer {value}" if value else "",
    )  # fmt: skip
    slow: float | None = option(
        None, "maximum number of tokens shown per second", low=0.001, example="20", trend="tokens per second",
        synonyms=("speed", "pace", "delay"), zero_is_none=True,
        values={"none": "unlimited", "5": "to read aloud", "20": "to read along"},
        toolbar=lambda value: f"slow {value:g}" if value else "",
    )  # fmt: skip
    device: str = option(
        "auto", "device that runs the model", choices=("auto", "cpu", "cuda", "mps"), example="cpu",
        synonyms=("gpu",),
        values={
            "auto": "the fastest available", "cpu": "the processor", "cuda": "an NVIDIA GPU", "mps": "an Apple GPU",
        },
        section="loading",
    )  # fmt: skip
    precision: str = option(
        "auto", "number format that the model computes in", choices=("auto", "f32", "bf16", "int8"), example="bf16",
        synonyms=("dtype", "quantization", "quantize"),
        values={
            "auto": "fast on the device, with hardly any loss", "f32": "32-bit floats: exact",
            "bf16": "16-bit floats: less precise", "int8": "8-bit integers: on a CPU",
        },
        section="loading",
    )  # fmt: skip
    engine: str = option(
        "auto", "inference engine", choices=("auto", "torch", "native"), example="torch", section="loading",
        synonyms=("backend",),
        values={"auto": "the faster one", "torch": "PyTorch, the reference", "native": "in C, without PyTorch"},
    )  # fmt: skip
    threads: int | None = option(
        None, "CPU threads; none chooses a number that suits the model", low=1, high=1024, example="2",
        synonyms=("num_threads", "num_thread", "cpus", "cores"), zero_is_none=True,
        values={"none": "a number that suits the model", "1": "leaves the other cores to other programs"},
        section="loading",
    )  # fmt: skip

    def __post_init__(self) -> None:
        SETTINGS.parse_fields(self, is_typed=False)
        if self.temperature < MIN_TEMPERATURE:
            object.__setattr__(self, "temperature", 0.0)

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken: temperature 0, by definition."""
        return self.temperature == 0


SETTINGS = Options.of(Settings)
"""All settings by name, in display order."""

GREEDY = Option("set the temperature to 0, or return from it to sampling", name="greedy", kind=bool)
"""No setting of its own: `SettingStore.set_greedy` says it in terms of the temperature."""

PENALTIES = SETTINGS.in_section("penalty")
"""Settings that adjust the logits by the tokens so far, before all other steps."""

CONTROLS = SETTINGS.in_section("repetition", "control")
"""Settings that adjust the logits by the text so far, above the engines: see `generate/controls.py`."""

ALSO_GREEDY = (*PENALTIES, *CONTROLS, *SETTINGS.in_section("steering"))
"""Sampling settings that also apply to greedy decoding."""

SAMPLING = SETTINGS.in_section("sampling", "penalty", "repetition", "control", "steering")
"""Settings that control the choice of the next token; the `neutral` value of each turns it off."""

UNFILTERED = {name: SETTINGS[name].neutral for name in SETTINGS.in_section("sampling")}
"""Values of settings with which tokens are drawn from all that the penalties leave."""

LOADING = SETTINGS.in_section("loading")
"""Settings that take effect when a model is loaded; changing one reloads it."""


def parse_changes(
    values: Mapping[str, object],
    settings: Settings,
    *,
    at_loading: str | None,
    last_temperature: float = SETTINGS["temperature"].default,
) -> dict[str, Any]:
    """Return the settings that some values of JSON or Python change, by name.

    `greedy` is a temperature of 0 if it is true; false returns from greedy decoding to sampling, at `last_temperature`.
    If those that take effect when a model is loaded cannot change, `at_loading` says where they are given instead, with
    `{name}` and `{flag}` in it; None if they can.

    Raises:
        UsageError: If there is no such setting, a value is wrong, or it would change what was loaded.
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name == "greedy":
            continue
        setting = SETTINGS.find(name)
        changes[setting.name] = setting.parse(value, is_typed=False)
        is_loaded = at_loading is not None and setting.name in LOADING
        if is_loaded and changes[setting.name] != getattr(settings, setting.name):
            remedy = (at_loading or "").format(name=setting.name, flag=setting.flag)
            raise UsageError(f"{setting.name} takes effect when a model is loaded", remedy)
    greedy, temperature = values.get("greedy"), changes.get("temperature")
    if greedy is None:
        return changes
    if not isinstance(greedy, bool):
        raise UsageError(f"greedy takes true or false, not {quote(greedy)}")
    if temperature is not None and greedy != (temperature == 0):
        problem = f"greedy is {str(greedy).lower()}, and the temperature {temperature:g}: greedy is temperature 0"
        raise UsageError(problem, "give one of the two")
    if greedy:
        changes["temperature"] = 0.0
    elif settings.greedy:
        changes.setdefault("temperature", last_temperature)
    return changes


def describe_sampling(settings: Settings, baseline: Settings | None = None) -> list[str]:
    """Format the sampling settings, or those that differ from a baseline, as the toolbar does: `temp 0.8`, `sample`."""
    words: list[str] = []
    for name in SAMPLING:
        form, value = SETTINGS[name].toolbar, getattr(settings, name)
        if form and (baseline is None or value != getattr(baseline, name)):
            words.append(form(value) or f"{SETTINGS[name].spelling} –" if baseline else form(value))
    if baseline is None or settings.greedy != baseline.greedy:
        words.append("greedy" if settings.greedy else "sample")
    return [word for word in words if word]


class SettingStore(LayeredOptions[Settings]):
    """Effective settings, each with its origin; remembers the last temperature above 0."""

    def __init__(self) -> None:
        self.last_temperature: float = SETTINGS["temperature"].default
        """The last temperature above 0."""
        self._last_origin = Origin.DEFAULT
        super().__init__(SETTINGS, Settings)

    def set_greedy(self, is_greedy: bool, origin: Origin) -> None:
        """Turn greedy decoding on or off, after all other values of the same origin are set.

        Raises:
            UsageError: If that origin sets a temperature above 0 as well.
        """
        if not is_greedy:
            self.sample(origin)
        elif temperature := self.values(origin).get("temperature"):
            raise UsageError(f"greedy is temperature 0, not {temperature:g}", "give one of the two")
        else:
            self.set("temperature", 0, origin)

    def sample(self, origin: Origin = Origin.COMMAND) -> None:
        """Return from greedy decoding to sampling, at the last temperature above 0."""
        if not self.current.greedy:
            return
        temperature = self.last_temperature
        if self._last_origin < origin:  # a model's own temperature stays its own, and does not go along to the next one
            self._layers[origin].pop("temperature", None)
            self._refresh()
        if self.current.greedy:
            self.set("temperature", temperature, origin)

    def _refresh(self) -> None:
        super()._refresh()
        if not self.current.greedy:
            self.last_temperature, self._last_origin = self.current.temperature, self.origin("temperature")


DEFAULT_MODEL = "smalltalk"


@dataclass(frozen=True, slots=True)
class UiOptions:
    """Snapshot of all options of the user interface, which no engine ever sees.

    Raises:
        SettingError: If a value has the wrong type or is not among the choices.
    """

    model: str = option(DEFAULT_MODEL, "model to open: a name or a folder", flags=("-m",), metavar="MODEL")
    plain: bool = option(
        False, "plain lines of text, never redrawn, for screen readers and slow connections", switch=True
    )
    private: bool = option(False, "save neither the conversation nor the input history", switch=True)
    keys: str = option("auto", "key bindings of the prompt; auto reads ~/.inputrc", choices=("auto", "emacs", "vi"))
    theme: str = option(
        "dark", "colours for a dark or a light background; none turns colours off", choices=("dark", "light", "none")
    )

    def __post_init__(self) -> None:
        UI_OPTIONS.parse_fields(self)


UI_OPTIONS = Options.of(UiOptions)
"""Interface options by name, in display order."""


class UiOptionStore(LayeredOptions[UiOptions]):
    """Effective interface options, each with its origin."""

    def __init__(self) -> None:
        super().__init__(UI_OPTIONS, UiOptions)
