"""Write models that `transformers` has no class for: `config.json` and weights in the layout that `remote_code/` reads.

Names of fields and weights are ours, but for n-gram counts: `model.safetensors` packs them; that code looks them up as
they are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.errors import ModelError
from tinychat.model.config import ARCHITECTURE, ModelConfig
from tinychat.model.shapes import check_shapes
from tinychat.store.packed_counts import PREFIX, pack_arrays
from tinychat.store.weights import DAMAGED, MappedTensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    Integers = npt.NDArray[np.integer[Any]]
    Weights = dict[str, Tensor]

MODEL_TYPE = "tinychat"
CODE = Path(__file__).parent / "remote_code"
CONFIGURATION, MODELING, TOKENIZATION = "configuration_tinychat", "modeling_tinychat", "tokenization_tinychat"
"""Modules in that folder."""
TRAINING_ONLY = ("dropout", "attention_dropout", "initialization")
"""Fields of the architecture that this code does not have."""
COUNTS = {f"{PREFIX}contexts": "I64", f"{PREFIX}starts": "I32", f"{PREFIX}tokens": "I16", f"{PREFIX}counts": "I32"}
"""Numbers of contexts [N], where the entries of each begin [N + 1], the entries' tokens [E] and counts [E]."""


def class_kind(architecture: Mapping[str, Any]) -> str:
    """Return what the class of `transformers` is for: `CausalLM`, or `Seq2SeqLM` for a translator."""
    return "Seq2SeqLM" if architecture["n_encoder_layer"] else "CausalLM"


def convert_to_own_code(architecture: Mapping[str, Any], weights: "Weights") -> "tuple[dict[str, Any], Weights]":
    """Return fields of the `config.json` of a model that brings its own code, and its weights as that code has them."""
    from torch.nn.functional import pad

    kind = class_kind(architecture)
    fields = {
        "model_type": MODEL_TYPE, "architectures": [f"TinychatFor{kind}"],
        "auto_map": {
            "AutoConfig": f"{CONFIGURATION}.TinychatConfig", f"AutoModelFor{kind}": f"{MODELING}.TinychatFor{kind}",
        },
        **{name: value for name, value in architecture.items() if name not in TRAINING_ONLY},
    }  # fmt: skip
    converted = dict(weights)
    if architecture["tie_embeddings"]:
        del converted["head.weight"]
    if architecture["ngram_order"]:
        widths = converted.pop(f"{PREFIX}widths").long()
        converted[f"{PREFIX}starts"] = pad(widths.cumsum(0), (1, 0)).int()
        fields |= {"ngram_contexts": len(widths), "ngram_entries": len(converted[f"{PREFIX}tokens"])}
    return fields, converted


def read_config(fields: Mapping[str, Any]) -> ModelConfig:
    """Return the architecture in a `config.json`: the inverse of `convert_to_own_code`.

    Raises:
        ModelError: If it is none.
    """
    return ModelConfig.from_dict({name: fields[name] for name in ARCHITECTURE if name in fields})


def convert_weights(found: Mapping[str, MappedTensor], config: ModelConfig, path: Path) -> dict[str, MappedTensor]:
    """Return the weights in `path` as ours.

    Raises:
        ModelError: If they do not fit the architecture, or n-gram counts contradict one another.
    """
    weights = dict(found)
    if config.tie_embeddings:
        weights.pop("head.weight", None)
    if config.ngram_order and all(name in found for name in COUNTS):
        counts = [weights.pop(name) for name in COUNTS]
        if tuple(one.dtype for one in counts) != tuple(COUNTS.values()):
            raise ModelError(f"{path} has n-gram counts of other types than ours", DAMAGED)
        weights |= _pack(*(one.to_numpy() for one in counts), vocab_size=config.vocab_size, path=path)
    check_shapes(config, {name: one.shape for name, one in weights.items()}, f"the weights in {path}")
    return weights


def _pack(
    contexts: "Integers", starts: "Integers", tokens: "Integers", counts: "Integers", *, vocab_size: int, path: Path
) -> dict[str, MappedTensor]:
    if any(one.ndim != 1 for one in (contexts, starts, tokens, counts)):
        raise ModelError(f"{path} has n-gram counts of other shapes than ours", DAMAGED)
    starts = starts.astype("int64")  # so that no difference wraps around
    widths = starts[1:] - starts[:-1]
    if (
        (len(contexts), len(counts)) != (len(widths), len(tokens))
        or [*starts[:1], *starts[-1:]] != [0, len(tokens)]
        or not (contexts[1:] > contexts[:-1]).all()
        or not ((widths >= 0) & (contexts >= 0)).all()
        or not ((tokens >= 0) & (tokens < vocab_size) & (counts > 0)).all()
    ):
        raise ModelError(f"{path} has n-gram counts that contradict one another", DAMAGED)
    packed = pack_arrays(contexts, widths, tokens, counts, vocab_size=vocab_size)
    types = {"uint8": "U8", "int16": "I16", "int32": "I32"}
    return {name: MappedTensor.from_numpy(array, types[array.dtype.name]) for name, array in packed.items()}
