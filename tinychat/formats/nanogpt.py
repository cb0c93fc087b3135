"""Checkpoints of nanoGPT, `ckpt.pt`: opened where they lie, and written for its `sample.py`.

Its vocabulary of characters is in a file of its own, `meta.pkl`, in the folder `data/NAME` of a checkout of nanoGPT. No
class in either file is read, nor any function called.
"""

import io
import json
import math
import pickle
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder
from tinychat.errors import ModelError, TokenizerError
from tinychat.formats import fitting
from tinychat.formats.pickles import read_pickle, read_torch
from tinychat.formats.vocabularies import describe_vocabulary
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import check_shapes, checked_config, weight_shapes
from tinychat.store.models import CONFIG, TOKENIZER, ForeignModel, ModelInfo, read_tokenizers, read_weights
from tinychat.store.names import nearest_name
from tinychat.store.weights import MappedTensor
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

CHECKPOINT, VOCABULARY = "ckpt.pt", "meta.pkl"
FIXED = fitting.GPT2 | {"feed_forward": "gelu"}
SHAPES = {"nanogpt": FIXED | {"bias": fitting.ANY, "norm_eps": 1e-5, "tie_embeddings": True, "d_ff": None}}
PREFIX = "_orig_mod."
"""Before the names of a model that was compiled."""
NAMES = {
    "decoder.embedding": "transformer.wte", "decoder.position.table": "transformer.wpe",
    "decoder.norm": "transformer.ln_f", "attention.norm": "ln_1", "attention.sublayer.output": "attn.c_proj",
    "feed_forward.norm": "ln_2", "feed_forward.sublayer.up": "mlp.c_fc", "feed_forward.sublayer.output": "mlp.c_proj",
}  # fmt: skip
"""Names of modules: ours → theirs; those of layers without the layer."""
END = "<|end|>"
"""The end token of our models, which may be in a vocabulary that we wrote."""
PARTS = ("query", "key", "value")
IGNORED = re.compile(r"\.attn\.bias$|^lm_head\.weight$")
"""A constant of older versions, and the head, which is the embedding."""


def recognizes(path: Path) -> bool:
    """Return whether a path is a checkpoint, or a folder with one."""
    return find_file(path).is_file() and not (path / CONFIG).exists()


def find_file(path: Path) -> Path:
    """Return the checkpoint that a path stands for."""
    return path if path.suffix == ".pt" else path / CHECKPOINT


def read(path: Path) -> ModelInfo:
    """Open a checkpoint where it lies.

    Raises:
        ModelError: If it cannot be read, or is not of nanoGPT.
        TokenizerError: If its vocabulary cannot be found or read.
    """
    file = find_file(path)
    checkpoint = read_torch(file)
    arguments, weights = (
        checkpoint.get(name) if isinstance(checkpoint, dict) else None for name in ("model_args", "model")
    )
    if not isinstance(arguments, dict) or not isinstance(weights, dict):
        raise ModelError(f"{file} has no model_args and model", "it must be a checkpoint of nanoGPT's train.py")
    try:
        fields = {
            "vocab_size": arguments["vocab_size"], "context_length": arguments["block_size"],
            "n_layer": arguments["n_layer"], "n_head": arguments["n_head"], "d_model": arguments["n_embd"],
            "bias": arguments.get("bias", True), "tie_embeddings": True, "norm_eps": 1e-5,
        }  # fmt: skip
        config = ModelConfig.from_dict(FIXED | fields)
    except KeyError as error:
        raise ModelError(f"the model_args of {file} lack {error}", "it must be a checkpoint of nanoGPT") from None
    tensors = ((str(name), one) for name, one in weights.items() if isinstance(one, MappedTensor))
    found = {name.removeprefix(PREFIX): one for name, one in tensors if one.is_floating_point}
    _check_names(file, config, found)
    settings = checkpoint.get("config")
    dataset = settings.get("dataset") if isinstance(settings, dict) else None
    vocabulary = _find_vocabulary(file.parent, dataset)
    tokenizer = _read_tokenizer(vocabulary)
    name = file.resolve().parent.name if file.name == CHECKPOINT else file.stem
    return ModelInfo(
        name, file, "completion", config.to_dict(), tokenizer.kind,
        sum(math.prod(shape or ()) for _, shape in weight_shapes(config)),
        description=f"{name} of nanoGPT",
        foreign=ForeignModel("nanogpt", file, lambda: tokenizer, partial(_map_weights, file, config, found)),
    )  # fmt: skip


def _check_names(file: Path, config: ModelConfig, found: Mapping[str, MappedTensor]) -> None:
    needed = {_find_theirs(config, ours)[0] for ours, _ in weight_shapes(config)}
    if missing := next((name for name in needed if name not in found), ""):
        raise ModelError(f"{file} lacks {missing}", "is it complete?")
    if unknown := next((name for name in found if name not in needed and not IGNORED.search(name)), ""):
        raise ModelError(f"{file} has {unknown[:80]}, which nanoGPT has not", "it must be a checkpoint of nanoGPT")


def _find_theirs(config: ModelConfig, ours: str) -> "tuple[str, Callable[[Array], Array] | None]":
    """Return the name of the tensor that holds a weight of ours, and what must be done with its array."""
    module, _, kind = ours.rpartition(".")
    if module in NAMES:
        return f"{NAMES[module]}.{kind}", None
    _, _, layer, *rest = module.split(".")
    part = ".".join(rest)
    if part in NAMES:
        return f"transformer.h.{layer}.{NAMES[part]}.{kind}", None
    begin = PARTS.index(rest[-1]) * config.d_model
    return f"transformer.h.{layer}.attn.c_attn.{kind}", lambda array: array[begin : begin + config.d_model]


def _map_weights(file: Path, config: ModelConfig, found: Mapping[str, MappedTensor]) -> dict[str, MappedTensor]:
    """Map the weights under our names; queries, keys and values, which are one tensor, are copied."""
    weights = {}
    for ours, _ in weight_shapes(config):
        theirs, change = _find_theirs(config, ours)
        tensor = found[theirs]
        weights[ours] = tensor if change is None else tensor.rearranged(change, f"{theirs} in {file}")
    check_shapes(config, {name: one.shape for name, one in weights.items()}, f"the weights in {file}")
    return weights


def _find_vocabulary(folder: Path, dataset: object) -> Path:
    """Return the file with the vocabulary of a checkpoint in a folder, trained on a data set of nanoGPT.

    Raises:
        TokenizerError: If there is none.
    """
    places = [folder / VOCABULARY, folder / TOKENIZER]
    if isinstance(dataset, str) and Path(dataset).name == dataset:
        places += [folder / "data" / dataset / VOCABULARY, folder.absolute().parent / "data" / dataset / VOCABULARY]
    if found := next((place for place in places if place.is_file()), None):
        return found
    problem = f"there is no vocabulary beside the checkpoint in {folder}"
    raise TokenizerError(problem, f"copy its {VOCABULARY} there from data/NAME of nanoGPT, or GPT-2's {TOKENIZER}")


def _read_tokenizer(path: Path) -> Tokenizer:
    if path.name == TOKENIZER:
        return load_tokenizer(path)
    meta = read_pickle(path)
    characters = meta.get("itos") if isinstance(meta, dict) else None
    if not isinstance(characters, dict) or not characters:
        raise TokenizerError(f"{path} has no itos, the characters by their ids")
    ids = {one: id for id, one in characters.items() if isinstance(one, str) and len(one) == 1 and type(id) is int}
    special = {one: id for id, one in characters.items() if isinstance(one, str) and one == END}
    if len(ids) + len(special) != len(characters):
        raise TokenizerError(f"the itos of {path} are no characters by their ids, each of them once")
    added = [
        {"id": id, "content": one, "special": True, "normalized": False, "single_word": False, "lstrip": False,
         "rstrip": False} for one, id in special.items()
    ]  # fmt: skip
    model = {"type": "BPE", "vocab": ids, "merges": [], "ignore_merges": True}
    return Tokenizer.from_json(json.dumps({"model": model, "decoder": {"type": "Fuse"}, "added_tokens": added}))


def write(info: ModelInfo, folder: Path) -> None:
    """Write a model to a folder, as a checkpoint and a vocabulary for nanoGPT's `sample.py`, atomically.

    Raises:
        ModelError: If nanoGPT has no such architecture or vocabulary.
    """
    import torch

    config = checked_config(info)
    fitting.find_shape(info, config, SHAPES, "nanogpt")
    tokenizer, _ = read_tokenizers(info)
    vocabulary = describe_vocabulary(tokenizer, "nanogpt")
    if vocabulary.kind != "char":
        raise ModelError(f"nanogpt has no tokenizer {vocabulary.kind}", "retrain with `--tokenizer char`")
    texts = [piece.decode() for piece in vocabulary.pieces]
    if odd := [texts[id] for id in vocabulary.special if texts[id] != END]:
        raise ModelError(f"nanogpt has no special tokens like {odd[0]}", "retrain with `--mode completion`")
    weights, theirs = read_weights(info), dict[str, list[torch.Tensor]]()
    for ours, _ in weight_shapes(config):  # queries, keys, values: in this order
        theirs.setdefault(_find_theirs(config, ours)[0], []).append(weights[ours])
    state = {name: torch.cat(parts) if len(parts) > 1 else parts[0].clone() for name, parts in theirs.items()}
    state["lm_head.weight"] = state["transformer.wte.weight"]
    arguments = {
        "n_layer": config.n_layer, "n_head": config.n_head, "n_embd": config.d_model,
        "block_size": config.context_length, "bias": config.bias, "vocab_size": config.vocab_size,
        "dropout": config.dropout,
    }  # fmt: skip
    name, buffer = nearest_name(info.name), io.BytesIO()
    torch.save({"model": state, "model_args": arguments, "config": {"dataset": name}}, buffer)
    ids = {text: id for id, text in enumerate(texts)}
    meta = {"vocab_size": len(texts), "itos": dict(enumerate(texts)), "stoi": ids}
    with atomic_folder(folder) as draft:
        (draft / CHECKPOINT).write_bytes(buffer.getvalue())
        (draft / "data" / name).mkdir(parents=True)
        (draft / "data" / name / VOCABULARY).write_bytes(pickle.dumps(meta, protocol=4))
