"""Save and load models, each a folder.

Loading runs no code: weights are safetensors, all else is JSON. Saving is atomic: it leaves the old folder or the new.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from tinychat.atomic import atomic_folder
from tinychat.config.settings import SETTINGS
from tinychat.corpus.types import MODES, Mode
from tinychat.errors import ModelError, TokenizerError, UsageError
from tinychat.store import paths
from tinychat.store.names import find_named, fold, typed
from tinychat.store.packed_counts import PACKED, unpack_counts
from tinychat.store.runs import RunFolder
from tinychat.store.weights import DAMAGED, MappedTensor, Precision, map_tensors, pack_weights
from tinychat.textutil import compact, json_text
from tinychat.tokenizer.chat_template import ConversationTemplate
from tinychat.tokenizer.jinja_template import parse_template
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.untrusted import expand_home, open_regular, read_json, read_text

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

FORMAT = 1
CONFIG, WEIGHTS, TRAINING, CARD = "config.json", "model.safetensors", "training.json", "README.md"
TOKENIZER = "tokenizer.json"
SOURCE_TOKENIZER = "source_tokenizer.json"
"""Tokenizer of the texts that the encoder of a translation model reads."""
MODEL_FILES = (CONFIG, TOKENIZER, SOURCE_TOKENIZER, WEIGHTS, TRAINING, CARD)
RECIPE_HEADING = "## Train it again"
"""Heading of the section of a model card that holds the recipe."""
VALIDATION_IDS = "validation_ids"
"""Key in `training.json`: ids of the first tokens of the validation text, a list for each document."""
MAX_VALIDATION_IDS = 2_000
"""Maximum number of these ids, on which the loss of coarser precisions is measured."""
MAX_OPENINGS = 100
"""Attempts to open the files of a model before its folder is replaced again."""
MAX_CONFIG, MAX_TRAINING = 1 << 20, 64 << 20
"""Maximum sizes of `config.json` and `training.json` in bytes."""
KINDS: Mapping[type, str] = {str: "text", dict: "an object", int: "a whole number", list: "a list"}
"""Types of fields in `config.json`, in words."""


TEXT, WHOLE, NUMBER, FRACTION, OBJECT = "text", "a whole number", "a number", "a number from 0 to 1", "an object"
TEXTS, POINTS = "a list of texts", "a list of pairs of numbers"
TRAINING_FIELDS: Mapping[str, str] = {
    "run": TEXT, "seed": WHOLE, "seconds": NUMBER, "split": TEXT, "loss": NUMBER,
    "recipe": OBJECT, "recipe.data": OBJECT, "recipe.data.sources": TEXTS, "recipe.data.texts": TEXTS,
    "recipe.data.validation_fraction": FRACTION, "recipe.data.from_model": TEXT,
    "recipe.data.mode": TEXT, "recipe.data.column": TEXT, "recipe.data.field": TEXT,
    "recipe.tokenizer": OBJECT, "recipe.tokenizer.tokenizer": TEXT,
    "data": OBJECT, "data.fingerprint": TEXT, "data.documents": WHOLE, "data.tokens": NUMBER,
    "data.train_tokens": NUMBER, "data.val_fraction": FRACTION,
    "from": OBJECT, "from.name": TEXT,
    "curve": OBJECT, "curve.training": POINTS, "curve.validation": POINTS,
}  # fmt: skip
"""Fields of `training.json` that commands read, and the type of each, unless it is missing."""
NULLABLE = (
    "from", "recipe.data.mode", "recipe.data.column", "recipe.data.field", "recipe.data.from_model",
    "recipe.tokenizer.tokenizer",
)  # fmt: skip


class ModelFiles:
    """The files of a model, opened together: those of one version, also while another process replaces the folder.

    Raises:
        ModelError: If there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        self._opened: dict[str, BinaryIO | OSError] = {}
        try:
            for _ in range(MAX_OPENINGS):
                descriptor = os.open(folder, os.O_RDONLY)  # as long as it is open, no new folder has its number
                try:
                    self._opened = {name: _try_open(folder / name) for name in MODEL_FILES}
                    if os.path.samestat(os.fstat(descriptor), folder.stat()):
                        return
                finally:
                    os.close(descriptor)
                self._close()
        except OSError as error:
            raise ModelError(f"{folder} cannot be read: {error.strerror or error}") from None
        raise ModelError(f"{folder} is being replaced all the time", "try again in a moment")

    def _close(self) -> None:
        for one in self._opened.values():
            if not isinstance(one, OSError):
                one.close()

    def __del__(self) -> None:
        self._close()

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name, be it one that cannot be opened."""
        return not isinstance(self._opened[name], FileNotFoundError)

    def open(self, name: str) -> BinaryIO:
        """Return the open file of that name, at its beginning.

        Raises:
            OSError: If it could not be opened.
        """
        found = self._opened[name]
        if isinstance(found, OSError):
            raise found
        found.seek(0)
        return found


def _try_open(path: Path) -> BinaryIO | OSError:
    try:
        return open_regular(path)
    except OSError as error:
        return error


@dataclass(frozen=True)
class ForeignModel:
    """A model in another tool's files, which are read where they lie; its `ModelInfo.folder` is their folder or file.

    `formats/registry.py` says which tools, and what their readers do.
    """

    format: str
    """Key of `formats.registry.FORMATS`."""
    weights_file: Path
    read_tokenizer: Callable[[], Tokenizer]
    map_weights: Callable[[], dict[str, MappedTensor]]
    """Return the weights by our names, in our layout; what has that layout already stays mapped from the file."""
    read_source_tokenizer: Callable[[], Tokenizer] | None = None
    """Returns the tokenizer of what an encoder reads, if that is another."""


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
    template: ConversationTemplate | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that suit this model better than the defaults."""
    description: str = ""
    """Purpose of the model, in one line."""
    snapshot: Path | None = None
    """File of weights to load instead of the folder's own."""
    files: ModelFiles | None = field(default=None, repr=False, compare=False)
    """Open files to read instead of those that are in the folder by now."""
    foreign: ForeignModel | None = field(default=None, repr=False, compare=False)
    """Source of weights and tokenizer, if they are not tinychat's own files."""
    end_ids: tuple[int, ...] = ()
    """Ids of tokens that end an answer, beside those that the template names; empty: the tokenizer's end token does."""

    @property
    def weights_file(self) -> Path:
        return self.snapshot or (self.foreign.weights_file if self.foreign else self.folder / WEIGHTS)

    @property
    def summary(self) -> str:
        """Name, tokenizer, size and mode: `smalltalk (wordpiece, 3.4M, chat)`."""
        return f"{self.name} ({self.tokenizer_kind}, {compact(self.parameters)}, {self.mode})"


@dataclass(frozen=True)
class DamagedModel:
    """A model folder whose `config.json` cannot be read, and the reason."""

    name: str
    folder: Path
    error: str


class Models(NamedTuple):
    """The models in some folders, in lookup order: those that can be opened, and those whose `config.json` is bad."""

    sound: list[ModelInfo]
    damaged: list[DamagedModel]


def find_model(name: str) -> Path:
    """Return a model's folder by path, or by name in `./models`, the user's or the bundled models, or last the runs.

    Upper and lower case are the same in a name.

    Raises:
        ModelError: If there is no such model.
    """
    if not name.strip():
        raise ModelError("the name of the model is empty", "see `tinychat models`")
    path = expand_home(name)
    named = (find_named(parent, name) for parent in _search_path())
    run = find_named(paths.runs_folder(), name)
    for folder in (path, *named, run and RunFolder(run).model):
        if folder is not None and os.path.lexists(folder / CONFIG):
            return folder
    with suppress(OSError):  # a name may be too long for a path
        if Path(name).is_dir():
            problem = f"{name} holds no model: it has no {CONFIG}"
            raise ModelError(problem, "give the folder of a model, or a file such as a .gguf")
    known = sorted({folder.name for folder in _folders(*_search_path())})
    names = ", ".join(known) or "none yet; `tinychat train TEXT` makes one"
    raise ModelError(f"there is no model {name!r}", f"models: {names}")


def model_reference(info: ModelInfo) -> str:
    """Return a reference that resolves to a model: its name, or its path if the name is ambiguous."""
    with suppress(ModelError):
        if find_model(info.name).resolve() == info.folder.resolve():
            return info.name
    return str(info.folder.absolute())


def list_models() -> Models:
    """Return all models that can be found by name."""
    return _read_all(*_search_path())


def list_bundled_models() -> Models:
    """Return the models that come with tinychat."""
    return _read_all(paths.bundled_models())


def _read_all(*parents: Path) -> Models:
    models, first = Models([], []), dict[str, Path]()
    for folder in _folders(*parents):
        first.setdefault(fold(folder.name), folder)  # which a name stands for, damaged or not
    for folder in first.values():
        try:
            models.sound.append(replace(read_info(folder), name=folder.name))  # in a copy, `config.json` has another
        except ModelError as error:
            models.damaged.append(DamagedModel(folder.name, folder, error.problem))
    return models


def open_info(folder: Path) -> ModelInfo:
    """Read `config.json` and open the other files of a model, all of one version.

    Raises:
        ModelError: If the file is missing, is not JSON or has invalid fields.
    """
    files = ModelFiles(folder)
    return replace(read_info(folder, files), files=files)


def read_info(folder: Path, files: ModelFiles | None = None) -> ModelInfo:
    """Read `config.json`, from the open files of the model if there are any.

    Raises:
        ModelError: If the file is missing, is not JSON or has invalid fields.
    """
    path = folder / CONFIG
    values = read_object(path, MAX_CONFIG, files)
    if "format" in values and values["format"] != FORMAT:
        raise ModelError(
            f"{folder} has format {_show(values['format'])}, not {FORMAT}", "was it made by a newer tinychat?"
        )
    try:
        if lacking := [
            name for name in ("format", "mode", "architecture", "tokenizer", "parameters") if name not in values
        ]:
            raise ValueError(f"it lacks {', '.join(lacking)}")
        if values["mode"] not in MODES:
            raise ValueError(f"mode is {_show(values['mode'])}, not one of {', '.join(MODES)}")
        parameters, template = _typed(values, "parameters", int), _typed(values, "template", dict)
        end_ids = _typed(values, "end_ids", list)
        if not all(type(id) is int and id >= 0 for id in end_ids):
            raise ValueError(f"end_ids is {_show(end_ids)}, not a list of ids")
        if parameters < 0:
            raise ValueError(f"parameters is {parameters}, which is negative")
        return ModelInfo(
            name=_typed(values, "name", str) or folder.name,
            folder=folder,
            mode=values["mode"],
            architecture=_typed(values, "architecture", dict),
            tokenizer_kind=_typed(values, "tokenizer", str),
            parameters=parameters,
            template=parse_template(template) if template else None,
            end_ids=tuple(end_ids),
            settings={
                name: SETTINGS.find(name).parse(value, is_typed=False)
                for name, value in _typed(values, "settings", dict).items()
            },
            description=_typed(values, "description", str),
        )
    except (ValueError, UsageError) as error:
        raise ModelError(f"{path} cannot be read: {error}", DAMAGED) from None


def _typed(values: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a field of a type; an empty value of that type if it is null or missing.

    Raises:
        ValueError: If it is of another type.
    """
    value = values.get(name)
    if value is None:
        return kind()
    if type(value) is not kind:
        raise ValueError(f"{name} is {_show(value)}, not {KINDS[kind]}")
    return value


def _show(value: object) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "…"


def read_object(path: Path, limit: int, files: ModelFiles | None = None, *, clamps: bool = False) -> dict[str, Any]:
    """Read a JSON object from a file of up to `limit` bytes, or from the open file of that name.

    `clamps` is as in `parse_json`.

    Raises:
        ModelError: If the file cannot be read, or holds no JSON object.
    """
    values = _read(partial(read_json, clamps=clamps), path, limit, files)
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds no object", DAMAGED)
    return values


def read_tokenizer(folder: Path, files: ModelFiles | None = None) -> Tokenizer:
    """Read `tokenizer.json`, from the open files of the model if there are any.

    Raises:
        TokenizerError: If the file is missing or is not a tokenizer.
    """
    return _read_tokenizer(folder / TOKENIZER, files)


def read_source_tokenizer(folder: Path, files: ModelFiles | None = None) -> Tokenizer | None:
    """Read `source_tokenizer.json`, as `read_tokenizer` does; None if there is none.

    Raises:
        TokenizerError: If the file is not a tokenizer.
    """
    path = folder / SOURCE_TOKENIZER
    is_there = os.path.lexists(path) if files is None else files.has(SOURCE_TOKENIZER)
    return _read_tokenizer(path, files) if is_there else None


def read_tokenizers(info: ModelInfo) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of what a model generates and of its prompts, which differ if it has an encoder of its own.

    Raises:
        TokenizerError: If a file is missing, is not a tokenizer, or has ids that the model does not know.
    """
    foreign = info.foreign
    tokenizer = read_tokenizer(info.folder, info.files) if foreign is None else foreign.read_tokenizer()
    if foreign is None:
        source = read_source_tokenizer(info.folder, info.files)
    else:
        source = foreign.read_source_tokenizer() if foreign.read_source_tokenizer else None
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


def _read_tokenizer(path: Path, files: ModelFiles | None) -> Tokenizer:
    if files is None:
        return load_tokenizer(path)
    try:
        return Tokenizer.from_json(read_text(files.open(path.name)))
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TokenizerError(f"{path} is no tokenizer: {error}") from None
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error.problem}", error.remedy) from None


def read_training(folder: Path, files: ModelFiles | None = None) -> dict[str, Any]:
    """Read `training.json`: recipe, data, seed, versions and loss curve; empty if there is none.

    It is read from the open files of the model if there are any.

    Raises:
        ModelError: If the file is not a JSON object, or a field is of another type than `TRAINING_FIELDS` says.
    """
    path = folder / TRAINING
    is_there = os.path.lexists(path) if files is None else files.has(TRAINING)
    values = read_object(path, MAX_TRAINING, files) if is_there else {}
    for name, kind in TRAINING_FIELDS.items():
        *parents, key = name.split(".")
        owner = values
        for parent in parents:
            owner = owner.get(parent) or {}
        value = owner.get(key)
        if key in owner and not (_is(kind, value) or (value is None and name in NULLABLE)):
            raise ModelError(f"{path} is damaged: {name} is {_show(value)}, not {kind}", DAMAGED)
    return values


def _is(kind: str, value: Any) -> bool:
    """Return whether a value of JSON is of one of the types of `TRAINING_FIELDS`."""
    match kind:
        case "text":
            return isinstance(value, str)
        case "a whole number":
            return type(value) is int
        case "a number":
            return type(value) in (int, float)
        case "a number from 0 to 1":
            return type(value) in (int, float) and 0 <= value <= 1
        case "an object":
            return isinstance(value, dict)
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(one) in (int, float) for one in pair) for pair in value
    )


def read_card(folder: Path, files: ModelFiles | None = None) -> str:
    """Read `README.md`, the model card, from the open files of the model if there are any; empty if there is none.

    Raises:
        ModelError: If the file cannot be read, or is not text.
    """
    path = folder / CARD
    is_there = os.path.lexists(path) if files is None else files.has(CARD)
    return _read(read_text, path, MAX_TRAINING, files) if is_there else ""


def renamed_card(card: str, old: str, new: str) -> str:
    """Return the model card of a model with its new name in the heading and in the call; any other card as it is."""
    heading, call = "# {}\n", "\n    tinychat -m {}\n"
    if not card.startswith(heading.format(old)):
        return card
    card = heading.format(new) + card.removeprefix(heading.format(old))
    return card.replace(call.format(typed(old)), call.format(typed(new)), 1)


def without_recipe(card: str) -> str:
    """Return a model card without the recipe in it, which may name folders of the machine that trained the model."""
    before, found, after = card.partition(f"\n{RECIPE_HEADING}\n")
    _, next_section, rest = after.partition("\n## ")
    return before + (f"\n## {rest}" if found and next_section else "")


def save_model(
    info: ModelInfo,
    weights: "Mapping[str, Tensor]",
    tokenizer: Tokenizer,
    source_tokenizer: Tokenizer | None = None,
    *,
    training: Mapping[str, Any] | None = None,
    card: str = "",
    precision: Precision = "f32",
    step: int | None = None,
) -> None:
    """Write a model to its folder, replacing an older one there.

    `weights` is its `state_dict()` after some `step`; `training` and `card` are the contents of two of the files.
    """
    packed = pack_weights(weights, tied=info.architecture["tie_embeddings"], precision=precision, step=step)
    config = {
        "format": FORMAT, "name": info.name, "mode": info.mode, "description": info.description,
        "tokenizer": info.tokenizer_kind, "parameters": info.parameters,
        "template": info.template.to_dict() if info.template else None, "end_ids": list(info.end_ids),
        "settings": info.settings, "architecture": info.architecture,
    }  # fmt: skip
    with atomic_folder(info.folder) as draft:
        (draft / WEIGHTS).write_bytes(packed)
        tokenizer.save(draft / TOKENIZER)
        if source_tokenizer is not None:
            source_tokenizer.save(draft / SOURCE_TOKENIZER)
        for name, values in ((CONFIG, config), (TRAINING, dict(training or {}))):
            (draft / name).write_text(json_text(values) + "\n", encoding="utf-8")
        (draft / CARD).write_text(card, encoding="utf-8")


def map_weights(info: ModelInfo) -> dict[str, MappedTensor]:
    """Map a model's weights into memory; only the header of the file is read.

    Raises:
        ModelError: If the file is missing or damaged.
    """
    if info.foreign is not None:
        return info.foreign.map_weights()
    path = info.folder / WEIGHTS
    try:
        file = None if info.files is None else info.files.open(WEIGHTS)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}", DAMAGED) from None
    own = map_tensors(path, file)
    weights = map_tensors(info.snapshot) if info.snapshot else own
    if info.snapshot:  # n-gram counts never change: only the folder's own file holds them
        weights |= {name: value for name, value in own.items() if not value.is_floating_point}
    return weights


def refuse_infinite(weights: Mapping[str, MappedTensor], path: Path) -> None:
    """Raise an error if some weights of a file are NaN or infinite.

    Raises:
        ModelError: If some are.
    """
    if name := next((name for name, weight in weights.items() if not weight.is_finite()), ""):
        problem = f"{path} has weights that are NaN or infinite, in {name[:80]}"
        raise ModelError(problem, "the model is damaged: train it again, at a lower rate")


def read_weights(info: ModelInfo, *, copy: bool = False) -> "dict[str, Tensor]":
    """Read a model's `state_dict()`: floating-point tensors in f32, n-gram counts unpacked.

    With `copy`, floating-point tensors never share the memory of the file, which another program may cut off.

    Raises:
        ModelError: If the file is missing or damaged, or has weights that are not finite.
    """
    import torch

    mapped = map_weights(info)
    refuse_infinite(mapped, info.weights_file)
    weights = {name: weight.to_torch() for name, weight in mapped.items()}
    for name, tensor in weights.items():
        if tensor.is_floating_point():
            weights[name] = tensor.to(torch.float32, copy=copy)
    if all(name in weights for name in PACKED):
        weights |= unpack_counts({name: weights.pop(name) for name in PACKED}, info.architecture["vocab_size"])
    if info.architecture.get("tie_embeddings") and "decoder.embedding.weight" in weights:
        weights["head.weight"] = weights["decoder.embedding.weight"]
    return weights


def _search_path() -> tuple[Path, ...]:
    return (Path("models"), paths.models_folder(), paths.bundled_models())


def _folders(*parents: Path) -> Iterator[Path]:
    """Yield the model folders in some folders, in lookup order; not those that are being written."""
    for parent in parents:
        with suppress(OSError):
            yield from sorted(filter(_is_model, parent.iterdir()))


def _is_model(folder: Path) -> bool:
    return not folder.name.startswith(".") and os.path.lexists(folder / CONFIG)


def _read(read: Callable[[Path | BinaryIO, int], T], path: Path, limit: int, files: ModelFiles | None = None) -> T:
    """Read a file with a function of `untrusted`, whose errors become ours."""
    try:
        return read(path if files is None else files.open(path.name), limit)
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror or error}"
        raise ModelError(problem, "is this the folder of a model?") from None
    except ValueError as error:
        raise ModelError(f"{path} is damaged: {error}", DAMAGED) from None
