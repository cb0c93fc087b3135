"""`--from MODEL`: start a run from the weights, the architecture and the tokenizer of an existing model.

They are copied into the run's folder when the run is created, so that it can resume even if the model is deleted.
Nothing here needs torch until the weights are read.
"""

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.corpus.corpus import Corpus
from tinychat.errors import ModelError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.store.models import CONFIG, TOKENIZER, WEIGHTS, ModelInfo, find_model, read_info, read_weights
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import count_codes
from tinychat.train.recipe import MODEL_FIELDS, RECIPE_FIELDS, Recipe

if TYPE_CHECKING:
    from torch import Tensor

FREE_FIELDS = ("context_length", "dropout", "attention_dropout", "initialization")
"""Fields of the architecture that the weights do not depend on; the context length may only shrink."""
MAX_SHOWN = 8
"""Maximum number of unknown characters that a notice lists."""


@dataclass(frozen=True)
class BaseModel:
    """The model that a run started from, as copied at its start."""

    info: ModelInfo
    fingerprint: str
    """SHA-256 of the weights file."""

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_dict(self.info.architecture)

    def to_dict(self) -> dict[str, str]:
        """Return the model's entry in `training.json`."""
        return {"name": self.info.name, "description": self.info.description, "weights": self.fingerprint}

    def weights(self, context_length: int) -> "dict[str, Tensor]":
        """Return the weights, with learned positional embeddings truncated to a context length."""
        weights = read_weights(self.info)
        if self.config.position == "learned":
            name = "decoder.position.table.weight"
            weights[name] = weights[name][:context_length]
        return weights


def adopt_architecture(recipe: Recipe, info: ModelInfo) -> Recipe:
    """Fill a model's architecture into a recipe.

    Raises:
        UsageError: If the recipe sets another architecture or a tokenizer.
        ModelError: If the model is a translation model.
    """
    config = ModelConfig.from_dict(info.architecture)
    if config.encoder_decoder:
        raise ModelError(f"{info.name} is a translation model, which cannot be gone on with", "name another model")
    if recipe.tokenizer is not None:
        raise UsageError(f"--tokenizer cannot be changed: {info.name} brings its own", "leave it out")
    architecture = config.to_dict()
    for name in ("vocab_size", *MODEL_FIELDS):
        value = getattr(recipe, name)
        if value is None or value == architecture[name] or name in FREE_FIELDS:
            continue
        field = RECIPE_FIELDS[name]
        raise UsageError(
            f"{field.flag} {field.show(value)} contradicts {info.name}, which has {field.show(architecture[name])}",
            "leave it out, or train without --from",
        )
    if recipe.context_length is not None and recipe.context_length > config.context_length:
        raise UsageError(
            f"--context-length {recipe.context_length} is more than {info.name} was trained for, "
            f"{config.context_length}",
            "leave it out",
        )
    values = {name: architecture[name] for name in MODEL_FIELDS if name != "dropout" and getattr(recipe, name) is None}
    return recipe.merged({name: value for name, value in values.items() if value is not None})


def copy_base_model(info: ModelInfo, run: RunFolder) -> None:
    """Copy the config, tokenizer and weights of a base model into a run's folder."""
    run.base_model.mkdir()
    for name in (CONFIG, TOKENIZER, WEIGHTS):
        shutil.copyfile(info.folder / name, run.base_model / name)
    shutil.copyfile(info.folder / TOKENIZER, run.tokenizer_file)


def portable_reference(model: str) -> str:
    """Return a reference to a model that holds in any working directory: its name, or its absolute path."""
    path = Path(model).expanduser()
    return str(path.absolute()) if (path / CONFIG).is_file() else model


def find_base_model(recipe: Recipe) -> ModelInfo | None:
    """Find the base model that a recipe names; None if it names none.

    Raises:
        ModelError: If there is no such model.
    """
    return None if recipe.from_model is None else read_info(find_model(recipe.from_model))


def read_base_model(run: RunFolder) -> BaseModel | None:
    """Read the base model of a run from its folder; None if it started from random weights."""
    if not (run.base_model / CONFIG).is_file():
        return None
    with (run.base_model / WEIGHTS).open("rb") as file:
        return BaseModel(read_info(run.base_model), hashlib.file_digest(file, "sha256").hexdigest())


def check_text(base: BaseModel, corpus: Corpus, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield notices about parts of a text that the base model cannot represent, and about skills it will lose."""
    name = base.info.name
    counts = count_codes(chunk.text for chunk in corpus.chunks())
    unknown = {char: counts[char] for char in tokenizer.unknown("".join(sorted(counts)))}
    if unknown:
        shown = sorted(unknown, key=lambda char: -unknown[char])[:MAX_SHOWN]
        more = f" and {len(unknown) - MAX_SHOWN} more" if len(unknown) > MAX_SHOWN else ""
        fate = "are left out" if (id := tokenizer.special("unknown")) is None else f"become {tokenizer.token_text(id)}"
        yield (
            f"{sum(unknown.values()):,} of {corpus.characters:,} characters are unknown to {name} and {fate}: "
            f"{' '.join(char if char.isprintable() else repr(char)[1:-1] for char in shown)}{more}"
        )
    if tokenizer.special("end") is None and corpus.documents_count > 1:
        yield f"{name} knows no end of a document: the {corpus.documents_count:,} documents run together"
    if base.info.mode == "chat" and corpus.mode == "completion":
        yield f"{name} chats, and this text has no turns: the new model goes on with text, and will forget to chat"
