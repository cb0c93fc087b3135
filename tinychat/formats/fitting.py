"""Find out whether another tool's format can hold a model, and convert what those formats have in common."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tinychat.errors import ModelError
from tinychat.model.config import ARCHITECTURE, ModelConfig
from tinychat.store.models import ModelInfo

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

PLAIN: dict[str, Any] = {
    "norm_position": "pre", "norm_affine": True, "final_norm": True, "output_projection": True, "qk_norm": False,
}  # fmt: skip
GPT2: dict[str, Any] = PLAIN | {
    "norm": "layernorm", "position": "learned", "feed_forward": "gelu_tanh", "head_bias": False,
}  # fmt: skip
LLAMA: dict[str, Any] = PLAIN | {
    "norm": "rmsnorm", "position": "rotary", "feed_forward": "swiglu", "bias": False, "head_bias": False,
}  # fmt: skip
FREE = ("vocab_size", "context_length", "n_layer", "n_head", "d_model", "d_ff", "norm_eps", "tie_embeddings")
"""Fields in which models of a shape may differ, unless it says otherwise."""
ANY: Any = ...
"""Value of a field in which models of a shape may differ."""
UNUSED = (
    "dropout", "attention_dropout", "initialization", "matches", "source_vocab_size", "turn_token", "reply_token",
)  # fmt: skip
"""Fields without effect on what a decoder without n-grams and attention to turns computes."""


def find_shape(info: ModelInfo, config: ModelConfig, shapes: Mapping[str, Mapping[str, Any]], format: str) -> str:
    """Return which of some shapes an architecture has: a key of `shapes`.

    A shape is the values of fields that it requires; all others but those of `FREE` must have their defaults. Its name
    is that of a recipe.

    Raises:
        ModelError: If it has none of them; names the first field in the way of the shape that is nearest.
    """
    if info.mode == "translation":
        raise ModelError(f"{format} cannot hold {info.name}: it has an encoder", "export it to transformers")
    values = _effective_values(config)
    faults = {name: _faults(values, required) for name, required in shapes.items()}
    nearest = min(faults, key=lambda name: len(faults[name]))
    if not faults[nearest]:
        return nearest
    field, wanted = next(iter(faults[nearest].items()))
    recipes = " or ".join(f"`--recipe {name}`" for name in shapes)
    raise ModelError(
        f"{format} cannot hold {info.name}: its {field} is {_show(values[field])}, not {_show(wanted)}",
        f"retrain with {recipes}",
    )


def _effective_values(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of an architecture as they take effect: with their default where it depends on others."""
    values = config.to_dict() | {"head_bias": config.bias if config.head_bias is None else config.head_bias}
    values["n_kv_head"] = None if config.kv_heads == config.n_head else config.n_kv_head
    if config.feed_forward_width == replace(config, d_ff=None).feed_forward_width:
        values["d_ff"] = None
    if config.head_width * config.n_head == config.d_model:
        values["d_head"] = None
    if config.qkv_bias == config.bias:
        values["qkv_bias"] = None
    unused = [] if config.position == "rotary" else [name for name in ARCHITECTURE if name.startswith("rotary_")]
    unused += [] if config.attention_window else ["window_pattern"]
    return values | {name: ARCHITECTURE[name].default for name in unused}


def _faults(values: Mapping[str, Any], required: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in the way of a shape, and the values that they should have."""
    faults = {}
    for name, one in ARCHITECTURE.items():
        wanted = required.get(name, ANY if name in (*FREE, *UNUSED) else one.default)
        if wanted is not ANY and values[name] != wanted:
            faults[name] = wanted
    return faults


def _show(value: object) -> str:
    if value is None:
        return "the default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_interleaved(matrix: "Array", d_head: int) -> "Array":
    """Return queries or keys [H · K, D] as Meta's programs have them: a rotary pair is k, k + 1, not k, k + K/2."""
    return matrix.reshape(-1, 2, d_head // 2, matrix.shape[-1]).swapaxes(1, 2).reshape(matrix.shape)


def from_interleaved(matrix: "Array", d_head: int) -> "Array":
    """Undo `to_interleaved`."""
    return matrix.reshape(-1, d_head // 2, 2, matrix.shape[-1]).swapaxes(1, 2).reshape(matrix.shape)
