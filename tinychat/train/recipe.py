"""A recipe: everything that a training run can be told, declared once, and read from and written to TOML.

A field carries its section, type, bounds, choices and help; those of the model are declared by `ModelConfig`. The
command line's flags, TOML files, checks and docs are read from here, so that a new option is one field. `None` leaves
the choice to the planner.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tomli_w

from tinychat.config.option import AUTO, Options, option
from tinychat.corpus.types import MODES
from tinychat.errors import RunError, UsageError
from tinychat.model.config import (
    ARCHITECTURE,
    ModelConfig,
)
from tinychat.train.schedule import SCHEDULES

RECIPES = Path(__file__).parent / "recipes"
DEFAULT_RECIPE = "default"
CONTINUING_RECIPE = "continue"
"""What is trained by where a model is gone on with, and no other recipe is named."""
RATES = {"muon": (0.03, 0.015), "adamw": (1e-3, 1e-3), "adam": (1e-3, 1e-3), "sgd": (0.1, 0.1)}
"""Optimizers, with the highest learning rates that suit a text seen a few times: of all; with Muon, of embeddings."""

LENGTHS = ("minutes", "steps", "epochs")
"""The fields that say how long a run is: one of them takes the place of the others."""


def _field(section: str, default: Any, help: str, **facts: Any) -> Any:
    """Return a field of `Recipe`; one without a value is left to the planner."""
    return option(default, help, section=section, absent=AUTO, **facts)


def _architecture(name: str) -> Any:
    """Return the field of `Recipe` for that field of `ModelConfig`, left open."""
    declared = dataclasses.replace(ARCHITECTURE[name], default=None, section="model", absent=AUTO)
    return dataclasses.field(default=None, metadata={"option": declared})


@dataclass(frozen=True)
class Recipe:
    """What to train, on what, and how.

    Raises:
        SettingError: a value is of the wrong type or out of bounds.
    """

    # --- data
    sources: tuple[str, ...] = _field(
        "data", (), "files, folders, globs, data sets or - for standard input; a.txt:2 b.txt:1 is a mix"
    )
    texts: tuple[str, ...] = _field(
        "data", (), "the text itself, where there are no sources: documents, or two sides with a tab between"
    )
    column: str | None = _field(
        "data", None, "the column of a CSV, TSV or Parquet file that holds the text", empty=True
    )
    field: str | None = _field("data", None, "the field of a JSON Lines file that holds the text", empty=True)
    from_model: str | None = _field(
        "data", None, "a model to go on with: its weights, architecture and tokenizer", flags=("--from",)
    )
    mode: str | None = _field("data", None, "what the model is for", choices=MODES)
    description: str | None = _field(
        "data", None, "what the model is for, in a few words: `/model` shows them", empty=True
    )
    packing: bool | None = _field(
        "data", None, "train on windows of the joined text; false trains on one padded document per row"
    )
    role_tokens: bool = _field("data", True, "in a chat, special tokens say who speaks; else turns only end")
    lowercase_all_caps: bool = _field("data", False, "in a chat, what is SAID IN CAPITALS is read in lower case")
    user_loss_fraction: float = _field(
        "data", 1.0, "in a chat, the share of what people say that is learned, beside all answers", low=0, high=1
    )
    validation_fraction: float = _field(
        "data", 0.1, "the share of the text, at its end, that is kept to measure the model by", above=0, high=0.5
    )

    # --- tokenizer
    tokenizer: str | None = _field(
        "tokenizer", None, "char, wordpiece, word, whitespace, or the path of a tokenizer.json"
    )
    vocab_size: int | None = _field("tokenizer", None, "the most tokens of the vocabulary", low=2)

    # --- model: None is what ModelConfig has, but for the size, which the planner chooses
    context_length: int | None = _architecture("context_length")
    n_layer: int | None = _architecture("n_layer")
    n_encoder_layer: int | None = _architecture("n_encoder_layer")
    n_head: int | None = _architecture("n_head")
    n_kv_head: int | None = _architecture("n_kv_head")
    d_model: int | None = _architecture("d_model")
    d_ff: int | None = _architecture("d_ff")
    norm: str | None = _architecture("norm")
    norm_position: str | None = _architecture("norm_position")
    norm_affine: bool | None = _architecture("norm_affine")
    norm_eps: float | None = _architecture("norm_eps")
    final_norm: bool | None = _architecture("final_norm")
    feed_forward: str | None = _architecture("feed_forward")
    position: str | None = _architecture("position")
    rotary_base: float | None = _architecture("rotary_base")
    output_projection: bool | None = _architecture("output_projection")
    bias: bool | None = _architecture("bias")
    head_bias: bool | None = _architecture("head_bias")
    qk_norm: bool | None = _architecture("qk_norm")
    scale_embedding: bool | None = _architecture("scale_embedding")
    tie_embeddings: bool | None = _architecture("tie_embeddings")
    dropout: float | None = _architecture("dropout")
    attention_dropout: float | None = _architecture("attention_dropout")
    previous_token_embeddings: int | None = _architecture("previous_token_embeddings")
    bigram_embedding: bool | None = _architecture("bigram_embedding")
    ngram_order: int | None = _architecture("ngram_order")
    initialization: str | None = _architecture("initialization")

    # --- optimizer
    optimizer: str = _field("optimizer", "muon", "the optimizer", choices=tuple(RATES))
    learning_rate: float | None = _field("optimizer", None, "the highest learning rate", above=0)
    embedding_learning_rate: float | None = _field(
        "optimizer", None, "with muon: the rate of what is no matrix of a layer", above=0
    )
    weight_decay: float = _field("optimizer", 0.0, "how fast matrices shrink towards zero", low=0)
    beta1: float = _field("optimizer", 0.9, "Adam's memory of gradients", low=0, high=0.9999)
    beta2: float = _field("optimizer", 0.95, "Adam's memory of squared gradients", low=0, high=0.99999)
    momentum: float = _field("optimizer", 0.95, "the memory of muon and sgd", low=0, high=0.9999)
    grad_clip: float = _field("optimizer", 1.0, "the longest gradient; 0 for no limit", low=0)

    # --- schedule
    minutes: float | None = _field(
        "schedule", None, "train by the clock, all included", above=0, high=100_000,
        values={"1": "a first look", "5": "a good tiny model", "15": "a better one"},
    )  # fmt: skip
    steps: int | None = _field("schedule", None, "train this many steps", low=1)
    epochs: float | None = _field(
        "schedule", None, "train until each window was seen so often; evaluates after each", above=0
    )
    batch_size: int | None = _field("schedule", None, "windows of a step", low=1)
    stride: int | None = _field(
        "schedule", None, "tokens from one window to the next; as context where it is left out", low=1
    )
    grad_accum_steps: int = _field("schedule", 1, "parts that a step is computed in, to save memory", low=1)
    schedule: str = _field("schedule", "linear", "how the learning rate falls", choices=tuple(SCHEDULES))
    warmup_steps: int = _field("schedule", 10, "steps in which the learning rate rises", low=0)
    lr_decay_fraction: float = _field(
        "schedule", 0.8, "the share of the run, at its end, in which the rate falls", low=0, high=1
    )
    min_lr_ratio: float = _field("schedule", 0.0, "where the rate ends, as a share of the highest", low=0, high=1)
    seed: int = _field("schedule", 1, "the same seed gives the same run", low=0, high=2**63 - 1)
    evaluate_every: int | None = _field("schedule", None, "steps between two evaluations", low=1)
    sample_every: int = _field("schedule", 1, "evaluations between two samples", low=1)
    sample_prompt: tuple[str, ...] | None = _field(
        "schedule", None, "what samples begin with; of several prompts, a sample each", empty=True
    )
    sample_temperature: float | None = _field(
        "schedule", None, "the temperature of samples, and the model's own from then on", low=0, high=5
    )
    sample_tokens: int = _field(
        "schedule",
        160,
        "the most tokens of a sample, and of the model's answers where it is more than 256; 0 for none",
        low=0,
        high=100_000,
    )

    # --- machine
    device: str = _field("machine", "auto", "where to train", choices=("auto", "cpu", "cuda", "mps"))
    precision: str = _field("machine", "auto", "the numbers computed with", choices=("auto", "f32", "bf16"))
    threads: int | None = _field("machine", None, "processor threads, of all processes", low=1, high=1024)
    compile: bool | None = _field(
        "machine", None, "compile the layers first: half a minute, after which steps are quicker"
    )
    devices: int = _field(
        "machine", 1, "GPUs, or processes on a CPU, that share each step on this machine", low=1, high=64
    )
    strategy: str = _field(
        "machine", "ddp", "what each of them holds: all of the model, or its shard of it", choices=("ddp", "fsdp")
    )

    def __post_init__(self) -> None:
        RECIPE_FIELDS.parse_fields(self)

    def merged(self, overrides: Mapping[str, object]) -> Self:
        """This recipe with other values, typed text or as TOML has them.

        Each of `LENGTHS` takes the place of the recipe's others, and `sources` that of its `texts`.

        Raises:
            RunError: there is no such field.
            UsageError: two of `LENGTHS` are given.
            SettingError: a field cannot take its value.
        """
        values = {RECIPE_FIELDS.find(name).name: value for name, value in overrides.items()}
        lengths = [name for name in LENGTHS if values.get(name) is not None]
        if len(lengths) > 1:
            both = " and ".join(RECIPE_FIELDS[name].flag for name in lengths)
            raise UsageError(f"{both} all say how long to train", "keep one of them")
        if lengths:
            values |= {name: None for name in LENGTHS if name not in lengths}
        if values.get("sources") and self.texts:  # whose words and lengths say nothing of others
            values = {"texts": (), "vocab_size": None, "context_length": None} | values
        if values.get("texts"):
            values.setdefault("sources", ())
        return dataclasses.replace(self, **{name: RECIPE_FIELDS[name].parse(value) for name, value in values.items()})

    def model_config(self, vocab_size: int, source_vocab_size: int | None = None) -> ModelConfig:
        """The architecture; what is left open is as `ModelConfig` has it.

        Args:
            source_vocab_size: of an encoder; None: there is none.

        Raises:
            ModelError: two choices do not fit each other.
        """
        given = {name: value for name in MODEL_FIELDS if (value := getattr(self, name)) is not None}
        if source_vocab_size is not None and "n_layer" in given:
            given.setdefault("n_encoder_layer", given["n_layer"])
        return ModelConfig(vocab_size=vocab_size, source_vocab_size=source_vocab_size, **given)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Section → field → value, without those left open: what TOML and JSON hold."""
        sections: dict[str, dict[str, Any]] = {}
        for name, field in RECIPE_FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                sections.setdefault(field.section, {})[name] = list(value) if isinstance(value, tuple) else value
        return sections

    def to_toml(self) -> str:
        """As `from_toml` reads it."""
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str, name: str = "the recipe") -> Self:
        """Reads sections of fields; what stands above them for people is passed over.

        Raises:
            RunError: it is no TOML, or holds something that no recipe has.
            SettingError: a field cannot take its value.
        """
        sections = {key: value for key, value in _parse(text, name).items() if key not in ABOUT}
        values: dict[str, object] = {}
        for section, fields in sections.items():
            if section not in SECTIONS or not isinstance(fields, dict):
                raise RunError(f"{name} has no place for {section!r}", "its sections are " + ", ".join(SECTIONS))
            for key, value in fields.items():
                field = RECIPE_FIELDS.find(key)
                if field.section != section:
                    raise RunError(f"{name} has {key} in [{section}]", f"it belongs in [{field.section}]")
                values[field.name] = value
        return cls().merged(values)


RECIPE_FIELDS = Options.of(Recipe, error=RunError, unknown="a recipe has no field", remedy="see `tinychat recipes`")
"""Every field by its name, in the order in which they are shown."""

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(field.section for field in RECIPE_FIELDS.values()))
MODEL_FIELDS = RECIPE_FIELDS.in_section("model")

ABOUT = ("about", "title", "author", "year", "source")
"""What a file of a recipe may say above its sections, for people."""


@dataclass(frozen=True)
class RecipeInfo:
    """A recipe that comes with tinychat: what it is for, and the work that it follows, where it follows one."""

    name: str
    path: Path
    about: str = ""
    title: str = ""
    author: str = ""
    year: int | None = None
    source: str = ""
    """a URL"""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; without what it does not say."""
        return {"name": self.name} | {name: value for name in ABOUT if (value := getattr(self, name))}

    @property
    def origin(self) -> str:
        """`Karpathy, "nanoGPT", 2022, https://…`; empty where there is none."""
        return ", ".join(
            map(str, filter(None, (self.author, self.title and f'"{self.title}"', self.year, self.source)))
        )


def list_recipes() -> list[RecipeInfo]:
    """The recipes that come with tinychat, the default first."""
    paths = sorted(RECIPES.glob("*.toml"), key=lambda path: (path.stem != DEFAULT_RECIPE, path.stem))
    return [_read_info(path) for path in paths]


def find_recipe(name: str | Path) -> RecipeInfo:
    """What the recipe of that name, or in the file of that path, says of itself.

    Raises:
        RunError: there is none, or it cannot be read.
    """
    path = RECIPES / f"{name}.toml"
    return _read_info(path if path.is_file() else Path(name).expanduser())


def _read_info(path: Path) -> RecipeInfo:
    values = _parse(_read(path), path.name)
    return RecipeInfo(path.stem, path, **{name: values[name] for name in ABOUT if name in values})


def choose_recipe(name: str | None, overrides: Mapping[str, object]) -> Recipe:
    """The recipe of that name, with what was said beside it; None: the one that suits what is to be done.

    Raises:
        RunError: there is none, or no such field.
        SettingError: a field cannot take its value.
    """
    continues = any(RECIPE_FIELDS.find(key).name == "from_model" for key in overrides)
    return load_recipe(name or (CONTINUING_RECIPE if continues else DEFAULT_RECIPE)).merged(overrides)


def load_recipe(name: str | Path = DEFAULT_RECIPE) -> Recipe:
    """The recipe of that name, or in the file of that path.

    Raises:
        RunError: there is none, or it cannot be read.
        SettingError: a field cannot take its value.
    """
    path = find_recipe(name).path
    return Recipe.from_toml(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(info.name for info in list_recipes())
        raise RunError(
            f"there is no recipe {str(path)!r} ({error})", f"recipes: {names}, or the path of a file"
        ) from None


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{name} is no TOML: {error}") from None
