"""The formats of other tools: a table of them, `open_model` by name or path, `import_model`, `export_model`.

A format is a file in this folder and an entry in `FORMATS`. Its reader takes a path and returns a `ModelInfo` whose
`foreign` reads the rest where it lies:

    ModelInfo(
        name, path, "completion" or "chat",
        architecture,              # ModelConfig(…).to_dict()
        tokenizer.kind, parameters,
        template=…, description=describe_origin(path, "gguf", "llama"),
        foreign=ForeignModel("gguf", path, read_tokenizer, map_weights),
    )

- `map_weights()` returns `dict[str, MappedTensor]`: each name that `model.shapes.weight_shapes(config)` yields, in that
  shape, and no other; a tied head has none. `map_tensors` maps a safetensors file; `MappedTensor.rearranged` transposes
  or cuts one, and `MappedTensor.from_numpy` makes one of an array. Matrices are [out, in], dtypes F32, F16 or BF16;
  n-gram models have others. It does not import torch: the native engine does without.
- `read_tokenizer()` returns a `Tokenizer`. Both may be called more than once, or never.
- Foreign files are read through `untrusted`, `map_tensors` or a library that runs no code; what is wrong in them is a
  `ModelError` or a `TokenizerError`.

A writer takes a `ModelInfo`, whose weights `store.models.read_weights` reads, and the folder or file to make.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tinychat.errors import ModelError, TinychatError, UsageError
from tinychat.model.shapes import checked_config
from tinychat.store import models as store
from tinychat.store.models import (
    CONFIG,
    ModelInfo,
    Models,
    find_model,
    map_weights,
    open_info,
    read_card,
    read_tokenizers,
    read_training,
    read_weights,
    renamed_card,
    save_model,
    without_recipe,
)
from tinychat.store.weights import Precision
from tinychat.untrusted import expand_home


@dataclass(frozen=True)
class Format:
    """A format that another tool reads or writes."""

    description: str
    recognizes: Callable[[Path], bool]
    """Return whether a path, which need not exist, is of this format, by its name or the files in it; cheap."""
    read: Callable[[Path], ModelInfo] | None = None
    write: Callable[[ModelInfo, Path], None] | None = None
    suffix: str = ""
    """Suffix of the file that is written; empty if it is a folder."""
    needs_torch: bool = True
    """Whether `write` needs torch."""
    caveat: Callable[[ModelInfo], str] = lambda info: ""
    """Return what is not the same in the other tool, in a line; empty if nothing is known."""


def _later(module: str, function: str, *options: object) -> Callable[..., Any]:
    """Return a function of a file of this folder that is imported when it is called; `options` follow its arguments."""

    def call(*arguments: object) -> Any:
        return getattr(import_module(f"tinychat.formats.{module}"), function)(*arguments, *options)

    return call


def _never(path: Path) -> bool:
    """Recognize nothing: the format is only written."""
    return False


def _write_tinychat(info: ModelInfo, folder: Path, precision: Precision | None = None) -> None:
    """Write a folder to share; by default as exact as the weights are stored, but in 16 bits at most."""
    checked_config(info)
    training, card = read_training(info.folder, info.files), read_card(info.folder, info.files)
    recipe = training.get("recipe", {})
    if (shared := _without_paths(recipe)) != recipe:
        training, card = training | {"recipe": shared}, without_recipe(card)
    stored = _stored_precision(info)
    if precision is None or stored == "int8":
        precision = "f16" if stored == "f32" else stored
    _save(info, replace(info, folder=folder), training, card, precision)


def _without_paths(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe with the names of files and folders in place of their paths, which training made absolute."""
    shared = dict(recipe)
    for section, field in (("data", "sources"), ("data", "from_model"), ("tokenizer", "tokenizer")):
        values = shared.get(section, {})
        if found := values.get(field):
            names = _file_name(found) if isinstance(found, str) else [_file_name(one) for one in found]
            shared[section] = values | {field: names}
    return shared


def _file_name(path: str) -> str:
    """Return the name at the end of an absolute path, and anything else, such as a data set, as it is."""
    return Path(path).name if Path(path).is_absolute() else path


def _compare_llama_cpp(info: ModelInfo) -> str:
    from tinychat.tokenizer.training import needs_no_words

    if info.tokenizer_kind != "wordpiece" or needs_no_words(read_tokenizers(info)[0]):
        return ""
    return "llama.cpp cuts a few texts into other word pieces, as its vocabulary is of an older kind; train it anew"


FORMATS: Mapping[str, Format] = {
    "transformers": Format(
        "a folder for transformers: GPT-2, Llama or the like where the shape allows, else with its own code",
        _later("huggingface", "recognizes"), _later("huggingface", "read"), _later("huggingface", "write"),
    ),
    "gguf": Format(
        "a folder with a GGUF file for llama.cpp, in F32, and a Modelfile for ollama: GPT-2 or Llama",
        _later("gguf", "recognizes"), _later("gguf", "read"), _later("gguf", "write"), caveat=_compare_llama_cpp,
    ),
    "gguf-f16": Format(
        "the same in F16", _never, write=_later("gguf", "write", "F16"), caveat=_compare_llama_cpp,
    ),
    "gguf-q8_0": Format(
        "the same in 8 bits", _never, write=_later("gguf", "write", "Q8_0"), caveat=_compare_llama_cpp,
    ),
    "llama2c": Format(
        "a folder with model.bin and tokenizer.bin for llama2.c: Llama, char or bpe",
        _later("llama2c", "recognizes"), _later("llama2c", "read"), _later("llama2c", "write"),
    ),
    "nanogpt": Format(
        "a folder with ckpt.pt and meta.pkl for nanoGPT: the recipe nanogpt, char",
        _later("nanogpt", "recognizes"), _later("nanogpt", "read"), _later("nanogpt", "write"),
    ),
    "onnx": Format(
        "a folder with model.onnx, ids to logits, and tokenizer.json: any model without an encoder or n-grams beyond 1",
        _never, write=_later("onnx", "write"),
    ),
    "tinychat": Format(
        "a folder to share: weights in 16 bits at most, and no paths of this machine",
        _never, write=_write_tinychat,
    ),
    "tinychat-int8": Format(
        "the same with the matrices of layers and the embeddings in 8 bits", _never,
        write=partial(_write_tinychat, precision="int8"),
    ),
    "html": Format(
        "one file that anybody opens in a browser, where the model answers: no installation, no network",
        _never, write=_later("page", "write_page"), suffix=".html", needs_torch=False,
    ),
}  # fmt: skip
"""Formats by their names."""


def find_format(path: Path) -> Format | None:
    """Return the format whose reader reads a path; None for a model of tinychat, or for anything else."""
    with suppress(OSError):  # a name may be too long for a path
        return next((one for one in FORMATS.values() if one.read and one.recognizes(path)), None)
    return None


def open_model(name: str) -> ModelInfo:
    """Open a model by its name, or by the path of its folder or file, where it lies.

    Raises:
        ModelError: If there is no such model, or it is damaged or of an architecture that is not known here.
        TokenizerError: If its tokenizer cannot be read.
    """
    path = expand_home(name)
    if not name.strip() or find_format(path) is None:
        path = find_model(name)
    return open_path(path)


def open_path(path: Path) -> ModelInfo:
    """Open the model in a folder or file; raises like `open_model`."""
    format = find_format(path)
    return open_info(path) if format is None or format.read is None else format.read(path)


def list_models() -> Models:
    """Return all models that can be found by name, those of other tools in these folders too."""
    found = store.list_models()
    foreign = {one.name: one for one in found.damaged if find_format(one.folder)}
    for one in foreign.values():
        try:
            found.sound.append(open_path(one.folder))
            found.damaged.remove(one)
        except TinychatError as error:
            found.damaged[found.damaged.index(one)] = replace(one, error=error.problem)
    return found


def describe_origin(path: Path, format: str, model_type: str) -> str:
    """Return the description of a model that has none of its own: `SmolLM2-135M of transformers (llama)`."""
    return f"{path.resolve().stem if path.is_file() else path.resolve().name} of {format} ({model_type})"


def check_importable(path: Path) -> None:
    """Check that a path holds a model of any readable format, or of tinychat, be it a damaged one.

    Raises:
        ModelError: If it does not.
    """
    if find_format(path) is None and not (path / CONFIG).exists():
        formats = ", ".join(name for name, one in FORMATS.items() if one.read)
        problem = f"{path} is no folder of a model: it holds no {CONFIG}"
        raise ModelError(problem if path.is_dir() else f"{path} is no model that can be read", f"formats: {formats}")


def import_model(path: Path, name: str, folder: Path) -> ModelInfo:
    """Write a model of any readable format, or of tinychat, to `folder`, as one of tinychat.

    Raises:
        ModelError: If the path holds no model, or one of an unsupported architecture.
        TokenizerError: If its tokenizer cannot be read.
    """
    check_importable(path)
    info = open_path(path)
    checked_config(info)
    training: dict[str, Any] = {"imported_from": info.description}
    card = ""
    if info.foreign is None:
        training = read_training(info.folder, info.files)
        card = renamed_card(read_card(info.folder, info.files), info.name, name)
    card = card or f"# {name}\n\n{info.description}\n"
    return _save(info, replace(info, name=name, folder=folder), training, card, _stored_precision(info))


def _stored_precision(info: ModelInfo) -> Precision:
    """Return the precision in which a model's weights are stored; f32 where they differ."""
    weights = [one for one in map_weights(info).values() if one.is_floating_point]
    if any(one.largest for one in weights):
        return "int8"
    dtypes = {one.dtype for one in weights}
    return "bf16" if dtypes == {"BF16"} else "f16" if dtypes == {"F16"} else "f32"


def _save(
    info: ModelInfo, copy: ModelInfo, training: Mapping[str, object], card: str, precision: Precision
) -> ModelInfo:
    tokenizer, source = read_tokenizers(info)
    copy = replace(copy, files=None, foreign=None)
    other = None if source is tokenizer else source
    save_model(copy, read_weights(info), tokenizer, other, training=training, card=card, precision=precision)
    return copy


def export_model(info: ModelInfo, to: str, path: Path) -> None:
    """Write a model in another format, a key of `FORMATS`, atomically.

    Raises:
        UsageError: If there is no such format, or nothing writes it.
        ModelError: If the format does not support the architecture.
    """
    format = FORMATS.get(to)
    if format is None or format.write is None:
        writable = ", ".join(name for name, one in FORMATS.items() if one.write)
        raise UsageError(f"there is no format {to!r} to write", f"formats: {writable}")
    format.write(info, path)
