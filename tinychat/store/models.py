"""Save and load models, each a folder.

Loading runs no code: weights are safetensors, all else is JSON. Saving is atomic: it leaves the old folder or the new.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder
from tinychat.corpus.types import MODES, Mode
from tinychat.errors import ModelError, TinychatError, TokenizerError
from tinychat.store import paths
from tinychat.store.runs import RunFolder
from tinychat.store.weights import pack_weights
from tinychat.textutil import compact
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
CONFIG, WEIGHTS, TRAINING, CARD = "config.json", "model.safetensors", "training.json", "README.md"
TOKENIZER = "tokenizer.json"
SOURCE_TOKENIZER = "source_tokenizer.json"
"""Tokenizer of the texts that the encoder of a translation model reads."""
DAMAGED = "the model is incomplete or damaged: train or import it again"


@dataclass(frozen=True)
class ModelInfo:
    """Metadata of a model, read without its weights and without torch."""

    name: str
    folder: Path
    mode: Mode
    architecture: dict[str, Any]
    """Fields of `ModelConfig`."""
    tokenizer_kind: str
    parameters: int
    template: ChatTemplate | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that suit this model better than the defaults."""
    description: str = ""
    """Purpose of the model, in one line."""
    snapshot: Path | None = None
    """File of weights to load instead of the folder's own."""

    @property
    def weights_file(self) -> Path:
        return self.snapshot or self.folder / WEIGHTS

    @property
    def summary(self) -> str:
        """Name, tokenizer, size and mode: `smalltalk (wordpiece, 3.4M, chat)`."""
        return f"{self.name} ({self.tokenizer_kind}, {compact(self.parameters)}, {self.mode})"


def find_model(name: str) -> Path:
    """Return a model's folder by path, or by name in `./models`, the user's or the bundled models, or last the runs.

    Raises:
        ModelError: If there is no such model.
    """
    if not name.strip():
        raise ModelError("the name of the model is empty", "see `tinychat models`")
    named = [parent / name for parent in _search_path()]
    for folder in (Path(name).expanduser(), *named, RunFolder(paths.runs_folder() / name).model):
        if (folder / CONFIG).is_file():
            return folder
    if Path(name).is_dir():
        raise ModelError(f"{name} holds no model: it has no {CONFIG}", "`tinychat import` reads other tools' folders")
    known = sorted({folder.name for folder in _folders(*_search_path())})
    names = ", ".join(known) or "none yet; `tinychat train TEXT` makes one"
    raise ModelError(f"there is no model {name!r}", f"models: {names}")


def model_reference(info: ModelInfo) -> str:
    """Return a reference that resolves to a model: its name, or its path if the name is ambiguous."""
    with suppress(ModelError):
        if find_model(info.name).resolve() == info.folder.resolve():
            return info.name
    return str(info.folder.absolute())


def list_models() -> list[ModelInfo]:
    """Return all models that can be found by name, in lookup order; damaged ones are skipped."""
    return _read_all(*_search_path())


def list_bundled_models() -> list[ModelInfo]:
    """Return the models that come with tinychat."""
    return _read_all(paths.bundled_models())


def _read_all(*parents: Path) -> list[ModelInfo]:
    models: dict[str, ModelInfo] = {}
    for folder in _folders(*parents):
        with suppress(TinychatError):
            models.setdefault(folder.name, read_info(folder))
    return list(models.values())


def read_info(folder: Path) -> ModelInfo:
    """Read `config.json`.

    Raises:
        ModelError: If the file is missing, is not JSON or has invalid fields.
    """
    values = _read_json(folder / CONFIG)
    try:
        if (seen := values["format"]) != FORMAT:
            raise ModelError(f"{folder} has format {seen!r}, not {FORMAT}", "was it made by a newer tinychat?")
        template = values.get("template")
        if values["mode"] not in MODES:
            raise ModelError(f"{folder} has mode {values['mode']!r}", "it is one of " + ", ".join(MODES))
        return ModelInfo(
            name=str(values.get("name") or folder.name),
            folder=folder,
            mode=values["mode"],
            architecture=dict(values["architecture"]),
            tokenizer_kind=str(values["tokenizer"]),
            parameters=int(values["parameters"]),
            template=ChatTemplate.from_dict(template) if template else None,
            settings=dict(values.get("settings") or {}),
            description=str(values.get("description") or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} cannot be read: {error!r}", DAMAGED) from None


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read `tokenizer.json`.

    Raises:
        TokenizerError: If the file is missing or is not a tokenizer.
    """
    return load_tokenizer(folder / TOKENIZER)


def read_source_tokenizer(folder: Path) -> Tokenizer | None:
    """Read `source_tokenizer.json`; None if there is none.

    Raises:
        TokenizerError: If the file is not a tokenizer.
    """
    path = folder / SOURCE_TOKENIZER
    return load_tokenizer(path) if os.path.lexists(path) else None


def read_tokenizers(info: ModelInfo) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of what a model generates and of its prompts, which differ if it has an encoder of its own.

    Raises:
        TokenizerError: If a file is missing, is not a tokenizer, or has ids that the model does not know.
    """
    tokenizer = read_tokenizer(info.folder)
    source = read_source_tokenizer(info.folder)
    vocab_size = info.architecture["vocab_size"]
    check_ids(tokenizer, vocab_size, info.folder / TOKENIZER)
    if info.mode == "translation":
        path = info.folder / (SOURCE_TOKENIZER if source else TOKENIZER)
        check_ids(source or tokenizer, info.architecture.get("source_vocab_size") or vocab_size, path)
    return tokenizer, source or tokenizer


def check_ids(tokenizer: Tokenizer, vocab_size: int, path: Path) -> None:
    """Check that a model with a vocabulary of that size knows all ids of a tokenizer, which was read from `path`.

    Raises:
        TokenizerError: If it does not.
    """
    if tokenizer.vocab_size > vocab_size:
        problem = f"{path} has ids up to {tokenizer.vocab_size - 1:,}, and the model has {vocab_size:,} tokens"
        raise TokenizerError(problem, DAMAGED)


def read_training(folder: Path) -> dict[str, Any]:
    """Read `training.json`: recipe, data, seed, versions and loss curve; empty if there is none.

    Raises:
        ModelError: If the file is not a JSON object.
    """
    path = folder / TRAINING
    return _read_json(path) if path.is_file() else {}


def read_card(folder: Path) -> str:
    """Read `README.md`, the model card; empty if there is none."""
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def save_model(
    info: ModelInfo,
    weights: "Mapping[str, Tensor]",
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer | None = None,
    *,
    training: Mapping[str, Any] | None = None,
    card: str = "",
    bf16: bool = False,
    step: int | None = None,
) -> None:
    """Write a model to its folder, replacing an older one there.

    `weights` is its `state_dict()` after some `step`; `training` and `card` are the contents of two of the files.
    """
    packed = pack_weights(weights, tied=info.architecture["tie_embeddings"], bf16=bf16, step=step)
    config = {
        "format": FORMAT, "name": info.name, "mode": info.mode, "description": info.description,
        "tokenizer": info.tokenizer_kind, "parameters": info.parameters,
        "template": info.template.to_dict() if info.template else None,
        "settings": info.settings, "architecture": info.architecture,
    }  # fmt: skip
    with atomic_folder(info.folder) as draft:
        (draft / WEIGHTS).write_bytes(packed)
        tokenizer.save(draft / TOKENIZER)
        if source_tokenizer is not None:
            source_tokenizer.save(draft / SOURCE_TOKENIZER)
        for name, values in ((CONFIG, config), (TRAINING, dict(training or {}))):
            text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
            (draft / name).write_text(text, encoding="utf-8")
        (draft / CARD).write_text(card, encoding="utf-8")


def read_weights(info: ModelInfo) -> "dict[str, Tensor]":
    """Read a model's `state_dict()`: floating-point tensors in f32, n-gram counts in their own type.

    Raises:
        ModelError: If the file is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(info.weights_file)
        weights = {name: weight.float() if weight.is_floating_point() else weight for name, weight in weights.items()}
        if info.snapshot:  # n-gram counts never change: only the folder's own file holds them
            own = load_file(info.folder / WEIGHTS)
            weights |= {name: value for name, value in own.items() if not value.is_floating_point()}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{info.weights_file} cannot be read: {error}", DAMAGED) from None
    if info.architecture.get("tie_embeddings") and "decoder.embedding.weight" in weights:
        weights["head.weight"] = weights["decoder.embedding.weight"]
    return weights


def _search_path() -> tuple[Path, ...]:
    return (Path("models"), paths.models_folder(), paths.bundled_models())


def _folders(*parents: Path) -> Iterator[Path]:
    """Yield the model folders in some folders, in lookup order."""
    for parent in parents:
        yield from sorted(config.parent for config in parent.glob(f"*/{CONFIG}"))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror or error}"
        raise ModelError(problem, "is this the folder of a model?") from None
    except ValueError as error:
        raise ModelError(f"{path} is no JSON: {error}", DAMAGED) from None
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds no object", DAMAGED)
    return values
