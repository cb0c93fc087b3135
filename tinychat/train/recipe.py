"""Recipes: all options of a training run, and the schedule that follows from them. Needs no torch.

The command line's flags, TOML files, validation and docs are generated from the fields of `Recipe`, those of the model
from `ModelConfig`, so a new option is one field. `None` leaves a choice to the planner.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import tomli_w

from tinychat.config.option import AUTO, Options, option
from tinychat.corpus.types import MODES
from tinychat.errors import RunError, UsageError
from tinychat.model.config import ARCHITECTURE, ModelConfig
from tinychat.textutil import shorten
from tinychat.untrusted import MAX_TOML, expand_home, parse_toml, read_text

RECIPES = Path(__file__).parent / "recipes"
DEFAULT_RECIPE = "default"
CONTINUING_RECIPE = "continue"
"""Default recipe for `--from`."""
PEAK_LEARNING_RATES = {"muon": (0.03, 0.015), "adamw": (1e-3, 1e-3), "adam": (1e-3, 1e-3), "sgd": (0.1, 0.1)}
"""Optimizer → peak learning rates that suit a few epochs: of all parameters; with Muon, of those it does not update."""
SCHEDULES: dict[str, Callable[[float], float]] = {
    "linear": lambda x: 1 - x,
    "cosine": lambda x: 0.5 * (1 + math.cos(math.pi * x)),
    "constant": lambda x: 1.0,
}
"""Decay curves: f(0) = 1, f(1) = 0; `constant` stays at 1."""

LENGTH_FIELDS = ("minutes", "steps", "epochs")
"""Fields that set the length of a run; setting one of them unsets the others."""


def _field(section: str, help: str, default: Any = None, **facts: Any) -> Any:
    """Declare a field of `Recipe`; `None` leaves its value to the planner."""
    return option(default, help, **{"section": section, "absent": AUTO} | facts)


_data, _tokenizer, _optimizer, _schedule, _machine = (
    partial(_field, section) for section in ("data", "tokenizer", "optimizer", "schedule", "machine")
)


def _architecture(name: str) -> Any:
    """Declare a field of `Recipe` for a field of `ModelConfig`, `None` by default."""
    declared = dataclasses.replace(ARCHITECTURE[name], default=None, section="model", absent=AUTO)
    return dataclasses.field(default=None, metadata={"option": declared})


@dataclass(frozen=True)
class Recipe:
    """Options of a training run.

    Raises:
        SettingError: If a value is of the wrong type or out of bounds.
    """

    sources: tuple[str, ...] = _data(
        "files, folders, globs, data sets or - for stdin; a.txt:2 b.txt:1 mixes them 2 to 1", ()
    )
    texts: tuple[str, ...] = _data(
        "inline documents to train on instead of sources; a tab separates a pair's two sides", ()
    )
    column: str | None = _data("column of a CSV, TSV or Parquet file that holds the text", empty=True)
    field: str | None = _data("field of a JSON Lines file that holds the text", empty=True)
    from_model: str | None = _data("model to start from: its weights, architecture and tokenizer", flags=("--from",))
    mode: str | None = _data("kind of model to train", choices=MODES)
    description: str | None = _data("what the model is for, in a few words; shown by `/model`", empty=True)
    packing: bool | None = _data("train on windows of the joined text; false trains on one padded document per row")
    role_tokens: bool = _data("mark chat roles with special tokens; false marks only the end of a turn", True)
    lowercase_all_caps: bool = _data("lowercase chat messages that are WRITTEN IN CAPITALS", False)
    user_loss_fraction: float = _data("fraction of a chat's user tokens included in the loss", 1.0, low=0, high=1)
    reply_loss_fraction: float = _data(
        "fraction of a reply's tokens included in the loss; its first five always are", 1.0, low=0, high=1
    )
    validation_fraction: float = _data(
        "fraction held out for validation: the end of a running text, or documents from all over it",
        0.1, above=0, high=0.5,
    )  # fmt: skip

    tokenizer: str | None = _tokenizer("char, wordpiece, bpe, word, whitespace, or the path of a tokenizer.json")
    vocab_size: int | None = _tokenizer("maximum vocabulary size", low=2)
    shared_vocab: bool = _tokenizer("one vocabulary for both sides of translations", False)

    # None takes the default of ModelConfig, except for the size, which the planner chooses
    context_length: int | None = _architecture("context_length")
    n_layer: int | None = _architecture("n_layer")
    n_encoder_layer: int | None = _architecture("n_encoder_layer")
    n_head: int | None = _architecture("n_head")
    n_kv_head: int | None = _architecture("n_kv_head")
    d_model: int | None = _architecture("d_model")
    d_head: int | None = _architecture("d_head")
    d_ff: int | None = _architecture("d_ff")
    norm: str | None = _architecture("norm")
    norm_position: str | None = _architecture("norm_position")
    norm_affine: bool | None = _architecture("norm_affine")
    norm_eps: float | None = _architecture("norm_eps")
    final_norm: bool | None = _architecture("final_norm")
    feed_forward: str | None = _architecture("feed_forward")
    position: str | None = _architecture("position")
    rotary_base: float | None = _architecture("rotary_base")
    rotary_fraction: float | None = _architecture("rotary_fraction")
    rotary_factor: float | None = _architecture("rotary_factor")
    rotary_short_wavelength: float | None = _architecture("rotary_short_wavelength")
    rotary_long_wavelength: float | None = _architecture("rotary_long_wavelength")
    attention_window: int | None = _architecture("attention_window")
    window_pattern: str | None = _architecture("window_pattern")
    scale_scores: bool | None = _architecture("scale_scores")
    parallel: bool | None = _architecture("parallel")
    output_projection: bool | None = _architecture("output_projection")
    bias: bool | None = _architecture("bias")
    qkv_bias: bool | None = _architecture("qkv_bias")
    head_bias: bool | None = _architecture("head_bias")
    qk_norm: bool | None = _architecture("qk_norm")
    qk_norm_affine: bool | None = _architecture("qk_norm_affine")
    scale_embedding: bool | None = _architecture("scale_embedding")
    tie_embeddings: bool | None = _architecture("tie_embeddings")
    dropout: float | None = _architecture("dropout")
    attention_dropout: float | None = _architecture("attention_dropout")
    previous_token_embeddings: int | None = _architecture("previous_token_embeddings")
    bigram_embedding: bool | None = _architecture("bigram_embedding")
    turn_attention: bool | None = _architecture("turn_attention")
    ngram_order: int | None = _architecture("ngram_order")
    matches: bool | None = _architecture("matches")
    initialization: str | None = _architecture("initialization")

    optimizer: str = _optimizer("optimizer algorithm", "muon", choices=tuple(PEAK_LEARNING_RATES))
    learning_rate: float | None = _optimizer("peak learning rate", above=0)
    embedding_learning_rate: float | None = _optimizer(
        "with muon: peak learning rate of all but the layers' matrices", above=0
    )
    weight_decay: float | None = _optimizer(
        "weight decay of matrices, with muon of the layers' alone; norms and biases have none", low=0
    )
    beta1: float = _optimizer("Adam's β₁: decay of the gradient average", 0.9, low=0, high=0.9999)
    beta2: float = _optimizer("Adam's β₂: decay of the squared-gradient average", 0.95, low=0, high=0.99999)
    momentum: float = _optimizer("momentum of muon and sgd", 0.95, low=0, high=0.9999)
    grad_clip: float = _optimizer("maximum gradient norm; 0 disables clipping", 1.0, low=0)

    minutes: float | None = _schedule(
        "duration of the run in minutes, evaluations and start-up included", above=0, high=100_000,
        values={"1": "a first look", "5": "a good tiny model", "15": "a better one"},
    )  # fmt: skip
    steps: int | None = _schedule("number of training steps", low=1)
    epochs: float | None = _schedule("number of epochs; evaluates after each", above=0)
    batch_size: int | None = _schedule("rows per step: windows or documents", low=1)
    stride: int | None = _schedule("tokens from one window's start to the next; the context length by default", low=1)
    grad_accum_steps: int = _schedule("micro-batches per step; more need less memory", 1, low=1)
    schedule: str = _schedule("learning rate decay curve", "linear", choices=tuple(SCHEDULES))
    warmup_steps: int = _schedule("steps of linear learning rate warm-up", 10, low=0)
    lr_decay_fraction: float = _schedule(
        "fraction of the run, at its end, in which the learning rate decays", 1.0, low=0, high=1
    )
    min_lr_ratio: float = _schedule("final learning rate as a fraction of the peak", 0.0, low=0, high=1)
    seed: int = _schedule("random seed; the same seed gives the same run", 1, low=0, high=2**63 - 1)
    evaluate_every: int | None = _schedule("steps between evaluations", low=1)
    sample_every: int = _schedule("evaluations between samples", 1, low=1)
    sample_prompt: tuple[str, ...] | None = _schedule("prompts of the samples, one sample each", empty=True)
    sample_temperature: float | None = _schedule(
        "temperature of samples; becomes the model's default temperature", low=0, high=5
    )
    sample_tokens: int = _schedule(
        "maximum tokens of a sample, and of the model's answers if above 256; 0 for no samples", 160,
        low=0, high=100_000,
    )  # fmt: skip
    log: tuple[str, ...] = _schedule(
        "write losses for other tools, too, into the run's folder", (), choices=("tensorboard", "csv"),
        optional=True, absent="none",
    )  # fmt: skip

    device: str = _machine("device to train on", "auto", choices=("auto", "cpu", "cuda", "mps"))
    precision: str = _machine("floating-point precision", "auto", choices=("auto", "f32", "bf16"))
    threads: int | None = _machine("CPU threads, over all processes", low=1, high=1024)
    compile: bool | None = _machine("compile the layers with torch.compile: half a minute, then faster steps")
    devices: int = _machine("number of GPUs, or of processes on a CPU, to train on", 1, low=1, high=64)
    strategy: str = _machine(
        "replicate the model on each device (ddp) or shard it (fsdp)", "ddp", choices=("ddp", "fsdp")
    )

    def __post_init__(self) -> None:
        RECIPE_FIELDS.parse_fields(self)

    def merged(self, overrides: Mapping[str, object]) -> Self:
        """Return this recipe with some values replaced, each given as typed text or as TOML represents it.

        One of `LENGTH_FIELDS` replaces the others of the recipe, and `sources` its `texts`.

        Raises:
            RunError: If there is no such field.
            UsageError: If two of `LENGTH_FIELDS`, or both `sources` and `texts`, are given.
            SettingError: If a field cannot take its value.
        """
        values = parse_overrides(overrides)
        lengths = [name for name in LENGTH_FIELDS if values.get(name) is not None]
        if len(lengths) > 1:
            *others, last = (RECIPE_FIELDS[name].flag for name in lengths)
            every = "both" if len(lengths) == 2 else "all"
            raise UsageError(f"{', '.join(others)} and {last} {every} say how long to train", "keep one of them")
        if lengths:
            values |= {name: None for name in LENGTH_FIELDS if name not in lengths}
        if values.get("sources") and values.get("texts"):
            problem = "--texts are trained on instead of a file or data set, not beside it"
            raise UsageError(problem, "keep one of them, or write the texts to a file: several files are mixed")
        if values.get("sources") and self.texts:  # the sizes of the recipe fit its own texts only
            values = {"texts": (), "vocab_size": None, "context_length": None} | values
        if values.get("texts"):
            values.setdefault("sources", ())
        return dataclasses.replace(self, **values)

    @property
    def length(self) -> dict[str, float]:
        """The field of `LENGTH_FIELDS` that is set, with its value; empty if none is."""
        return {name: value for name in LENGTH_FIELDS if (value := getattr(self, name)) is not None}

    def model_config(
        self, vocab_size: int, source_vocab_size: int | None = None, turn_tokens: tuple[int, int] | None = None
    ) -> ModelConfig:
        """Return the architecture, with an encoder if `source_vocab_size` is given.

        `turn_tokens` are the ids of the tokens that begin a turn and its reply, where the vocabulary has them.

        Raises:
            ModelError: If two choices contradict each other.
        """
        values = {name: value for name in MODEL_FIELDS if (value := getattr(self, name)) is not None}
        if source_vocab_size is not None and "n_layer" in values:
            values.setdefault("n_encoder_layer", values["n_layer"])
        if values.get("turn_attention"):
            values["turn_token"], values["reply_token"] = turn_tokens or (0, 1)
        return ModelConfig(vocab_size=vocab_size, source_vocab_size=source_vocab_size, **values)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return section → field → value, for TOML and JSON; fields that are None are left out."""
        sections: dict[str, dict[str, Any]] = {}
        for name, field in RECIPE_FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                sections.setdefault(field.section, {})[name] = list(value) if isinstance(value, tuple) else value
        return sections

    def to_toml(self) -> str:
        """Return the recipe as TOML, for `from_toml`."""
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str, name: str = "the recipe") -> Self:
        """Parse a recipe, which error messages call `name`; the `INFO_FIELDS` above its sections are ignored.

        Raises:
            RunError: If it is not TOML, or has an unknown section or field.
            SettingError: If a field cannot take its value.
        """
        values: dict[str, object] = {}
        for section, fields in _parse(text, name).items():
            if section in INFO_FIELDS:
                continue
            if section not in SECTIONS or not isinstance(fields, dict):
                raise RunError(f"{name} has no place for {section!r}", "its sections are " + ", ".join(SECTIONS))
            for key, value in fields.items():
                field = RECIPE_FIELDS.find(key)
                if field.section != section:
                    raise RunError(f"{name} has {key} in [{section}]", f"it belongs in [{field.section}]")
                values[field.name] = value
        return cls().merged(values)


RECIPE_FIELDS = Options.of(Recipe, error=RunError, unknown="a recipe has no field", remedy="see `tinychat recipes`")
"""Field name → option, in display order."""

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(field.section for field in RECIPE_FIELDS.values()))
MODEL_FIELDS = RECIPE_FIELDS.in_section("model")

INFO_FIELDS = ("about", "title", "author", "year", "source")
"""Keys that a recipe file may have above its sections, for human readers."""


@dataclass(frozen=True)
class RecipeInfo:
    """Name and purpose of a recipe, and the work that it reproduces, if any."""

    name: str
    path: Path
    about: str = ""
    title: str = ""
    author: str = ""
    year: int | None = None
    source: str = ""
    """URL of the work."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; empty ones are left out."""
        return {"name": self.name} | {name: value for name in INFO_FIELDS if (value := getattr(self, name))}

    @property
    def origin(self) -> str:
        """Citation of the work: `Karpathy, "nanoGPT", 2022, https://…`; empty if there is none."""
        parts = (self.author, self.title and f'"{self.title}"', self.year, self.source)
        return ", ".join(str(part) for part in parts if part)


def list_recipes() -> list[RecipeInfo]:
    """Return the bundled recipes, the default first."""
    paths = sorted(RECIPES.glob("*.toml"), key=lambda path: (path.stem != DEFAULT_RECIPE, path.stem))
    return [_read_info(path) for path in paths]


def find_recipe(name: str | Path) -> RecipeInfo:
    """Return the info of a recipe, found by its name or by the path of its file.

    Raises:
        RunError: If there is none, or it cannot be read.
    """
    path = RECIPES / f"{name}.toml"
    return _read_info(path if path.is_file() else expand_home(name))


def _read_info(path: Path) -> RecipeInfo:
    values = _parse(_read(path), path.name)
    info = {name: values[name] for name in INFO_FIELDS if name in values}
    for name, value in info.items():
        if not isinstance(value, int if name == "year" else str):
            problem = f"{path}: {name} cannot be {shorten(repr(value), 40)}"
            raise RunError(problem, "write a text, or a whole number for the year")
    return RecipeInfo(path.stem, path, **info)


def parse_overrides(overrides: Mapping[str, object]) -> dict[str, Any]:
    """Parse values of recipe fields, each typed text or as TOML represents it; None leaves one to the planner.

    Raises:
        RunError: If there is no such field.
        SettingError: If a field cannot take its value.
    """
    found = [(RECIPE_FIELDS.find(name), value) for name, value in overrides.items()]
    return {field.name: field.parse(value) for field, value in found}


def choose_recipe(name: str | None, overrides: Mapping[str, object]) -> Recipe:
    """Load a recipe by its name or path, and apply overrides, as `Recipe.merged` takes them.

    If the name is None, it is the default, which depends on whether the overrides have `--from`.

    Raises:
        RunError: If there is no such recipe or field.
        UsageError: If two of `LENGTH_FIELDS`, or both `sources` and `texts`, are given.
        SettingError: If a field cannot take its value.
    """
    continues = parse_overrides(overrides).get("from_model") is not None
    return load_recipe(name or (CONTINUING_RECIPE if continues else DEFAULT_RECIPE)).merged(overrides)


def load_recipe(name: str | Path = DEFAULT_RECIPE) -> Recipe:
    """Load a recipe, found by its name or by the path of its file.

    Raises:
        RunError: If there is none, or it cannot be read.
        SettingError: If a field cannot take its value.
    """
    path = find_recipe(name).path
    return Recipe.from_toml(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        return read_text(path, MAX_TOML)
    except FileNotFoundError:
        names = ", ".join(info.name for info in list_recipes())
        raise RunError(f"there is no recipe {str(path)!r}", f"recipes: {names}, or the path of a file") from None
    except OSError as error:
        raise RunError(f"the recipe {str(path)!r} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise RunError(f"{path} is no TOML: {error}") from None


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise RunError(f"{name} is no TOML: {error}") from None


# --- the schedule ----------------------------------------------------------------------------------------------------


def planned_interval(steps: int) -> int:
    """Return the number of steps between evaluations in a run of some steps, where the recipe leaves it open."""
    return max(25, -(-steps // 8))


@dataclass(frozen=True)
class Schedule:
    """Learning rate schedule: a linear warm-up, a plateau, then a decay to the end along one of `SCHEDULES`."""

    kind: str
    warmup_steps: int
    lr_decay_fraction: float
    """Fraction of the run, at its end, in which the learning rate decays."""
    min_lr_ratio: float
    """Final learning rate as a fraction of the peak."""


def lr_factor(schedule: Schedule, progress: float, step: int) -> float:
    """Return the learning rate of a step, from 0, as a fraction of the peak; `progress` of the run, 0 to 1, is done."""
    warmup = min(1.0, (step + 1) / (schedule.warmup_steps + 1))
    if schedule.lr_decay_fraction == 0:
        return warmup
    x = min(1.0, max(0.0, (progress - (1 - schedule.lr_decay_fraction)) / schedule.lr_decay_fraction))
    return warmup * (schedule.min_lr_ratio + (1 - schedule.min_lr_ratio) * SCHEDULES[schedule.kind](x))


@dataclass
class Budget:
    """The length of a run: a number of steps, or seconds of training."""

    steps: int | None = None
    """None for a run by the clock."""
    seconds: float = math.inf
    """From the first step to the last, including evaluations and checkpoints between them."""

    def progress(self, step: int, seconds: float) -> float:
        """Return the fraction of the budget, from 0 to 1, that some steps and seconds have used."""
        used = step / self.steps if self.steps is not None else seconds / self.seconds
        return min(1.0, max(0.0, used))

    def is_exhausted(self, step: int, seconds: float, step_seconds: float) -> bool:
        """Return whether the budget has no room for one more step of `step_seconds`."""
        return seconds + step_seconds > self.seconds if self.steps is None else step >= self.steps

    def expected_steps(self, step: int, seconds: float, step_seconds: float) -> int:
        """Return the total number of steps to expect at the current speed."""
        if self.steps is not None:
            return self.steps
        return step + max(0, round((self.seconds - seconds) / step_seconds)) if step_seconds > 0 else step

    def remaining(self, step: int, seconds: float, step_seconds: float) -> float:
        """Return the seconds of training that remain at the current speed."""
        return max(0.0, self.seconds - seconds) if self.steps is None else (self.steps - step) * step_seconds
