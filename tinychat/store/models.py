"""A model ↔ a folder: `config.json`, `tokenizer.json`, `model.safetensors`, `training.json`, `README.md`.

What an encoder reads has a tokenizer of its own, `source_tokenizer.json`.

Loading runs no code: weights are safetensors, all else is JSON. Saving leaves the old folder or the new one, whole.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tinychat.atomic import atomic_folder
from tinychat.corpus.types import MODES, Mode
from tinychat.errors import ModelError, TinychatError
from tinychat.store import paths
from tinychat.store.runs import RunFolder
from tinychat.store.weights import pack_weights
from tinychat.textutil import compact
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
CONFIG, TOKENIZER, SOURCE_TOKENIZER, WEIGHTS, TRAINING, CARD = (
    "config.json",
    "tokenizer.json",
    "source_tokenizer.json",
    "model.safetensors",
    "training.json",
    "README.md",
)
DAMAGED = "the model is incomplete or damaged: train or import it again"


@dataclass(frozen=True)
class ModelInfo:
    """What a model is, read without its weights and without torch."""

    name: str
    folder: Path
    mode: Mode
    architecture: dict[str, Any]
    """the fields of `ModelConfig`"""
    tokenizer_kind: str
    parameters: int
    template: ChatTemplate | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """settings that suit this model better than the defaults"""
    about: str = ""
    """what it is for, in one line"""
    snapshot: Path | None = None
    """the file of weights to take in the place of the folder's own"""

    @property
    def weights_file(self) -> Path:
        return self.snapshot or self.folder / WEIGHTS

    @property
    def summary(self) -> str:
        """`smalltalk (wordpiece, 3.4M, chat)`."""
        return f"{self.name} ({self.tokenizer_kind}, {compact(self.parameters)}, {self.mode})"


def find_model(name: str) -> Path:
    """The folder of a model: a path, or a name looked up in `./models`, the user's models and runs, the bundled ones.

    Raises:
        ModelError: there is none of that name.
    """
    if not name.strip():
        raise ModelError("the name of the model is empty", "see `tinychat models`")
    own = [shelf / name for shelf in _shelves()]
    for folder in (Path(name).expanduser(), *own, RunFolder(paths.runs_folder() / name).model):
        if (folder / CONFIG).is_file():
            return folder
    known = sorted({folder.name for folder in _folders()})
    if Path(name).is_dir():
        raise ModelError(f"{name} holds no model: it has no {CONFIG}", "`tinychat import` reads other tools' folders")
    names = ", ".join(known) or "none yet; `tinychat train TEXT` makes one"
    raise ModelError(f"there is no model {name!r}", f"models: {names}")


def model_reference(info: ModelInfo) -> str:
    """What finds that model again: its name, or where that finds another one, its path."""
    try:
        found = find_model(info.name)
    except ModelError:
        return str(info.folder.absolute())
    return info.name if found.resolve() == info.folder.resolve() else str(info.folder.absolute())


def list_models() -> list[ModelInfo]:
    """Every model that a name finds, nearest first; a damaged one is passed over."""
    return _read_all(_folders())


def list_bundled_models() -> list[ModelInfo]:
    """Those that come with tinychat."""
    return _read_all(_folders([paths.bundled_models()]))


def _read_all(folders: Iterable[Path]) -> list[ModelInfo]:
    models: dict[str, ModelInfo] = {}
    for folder in folders:
        try:
            models.setdefault(folder.name, read_info(folder))
        except TinychatError:
            continue
    return list(models.values())


def read_info(folder: Path) -> ModelInfo:
    """Reads `config.json`.

    Raises:
        ModelError: it is missing, no JSON, or holds what no model can be.
    """
    values = _read_json(folder / CONFIG)
    try:
        if values["format"] != FORMAT:
            seen = values["format"]
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
            about=str(values.get("about") or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} cannot be read: {error!r}", DAMAGED) from None


def read_tokenizer(folder: Path) -> Tokenizer:
    """Reads `tokenizer.json`."""
    return load_tokenizer(folder / TOKENIZER)


def read_source_tokenizer(folder: Path) -> Tokenizer | None:
    """Reads `source_tokenizer.json`; None where there is none."""
    path = folder / SOURCE_TOKENIZER
    return load_tokenizer(path) if path.is_file() else None


def read_training(folder: Path) -> dict[str, Any]:
    """Reads `training.json`: recipe, data, seed, versions, loss curve; empty where there is none."""
    path = folder / TRAINING
    return _read_json(path) if path.is_file() else {}


def read_card(folder: Path) -> str:
    """Reads `README.md`, the model card; empty where there is none."""
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
    half: bool = False,
    step: int | None = None,
) -> None:
    """Writes a model into its folder, whole or not at all; an older one at the same place is replaced.

    Args:
        weights: the model's `state_dict()`.
        source_tokenizer: of what an encoder reads.
        half: in bf16, at half the size.
        step: of training, which the file of weights is to name.
    """
    packed = pack_weights(weights, tied=info.architecture["tie_embeddings"], half=half, step=step)
    config = {
        "format": FORMAT,
        "name": info.name,
        "mode": info.mode,
        "about": info.about,
        "tokenizer": info.tokenizer_kind,
        "parameters": info.parameters,
        "template": info.template.to_dict() if info.template else None,
        "settings": info.settings,
        "architecture": info.architecture,
    }
    with atomic_folder(info.folder) as draft:
        (draft / WEIGHTS).write_bytes(packed)
        tokenizer.save(draft / TOKENIZER)
        if source_tokenizer is not None:
            source_tokenizer.save(draft / SOURCE_TOKENIZER)
        (draft / CONFIG).write_text(_to_json(config), encoding="utf-8")
        (draft / TRAINING).write_text(_to_json(dict(training or {})), encoding="utf-8")
        (draft / CARD).write_text(card, encoding="utf-8")


def read_weights(info: ModelInfo) -> "dict[str, Tensor]":
    """Reads `model.safetensors`, or the snapshot in its place: weights in f32, counts as they are.

    Raises:
        ModelError: it is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = info.weights_file
    try:
        weights = {
            name: weight.float() if weight.is_floating_point() else weight for name, weight in load_file(path).items()
        }
        if info.snapshot:  # what is counted never changes: it is kept with the model alone
            own = load_file(info.folder / WEIGHTS)
            weights |= {name: value for name, value in own.items() if not value.is_floating_point()}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}", DAMAGED) from None
    if info.architecture.get("tie_embeddings") and "decoder.embedding.weight" in weights:
        weights["head.weight"] = weights["decoder.embedding.weight"]
    return weights


def _shelves() -> tuple[Path, ...]:
    return (Path("models"), paths.models_folder(), paths.bundled_models())


def _folders(shelves: Iterable[Path] | None = None) -> Iterator[Path]:
    """Every folder that looks like a model, nearest first."""
    for shelf in _shelves() if shelves is None else shelves:
        if shelf.is_dir():
            yield from sorted(path for path in shelf.iterdir() if (path / CONFIG).is_file())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"{path} cannot be read: {reason}", "is this the folder of a model?") from None
    except ValueError as error:
        raise ModelError(f"{path} is no JSON: {error}", DAMAGED) from None
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds no object", DAMAGED)
    return cast("dict[str, Any]", values)


def _to_json(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
