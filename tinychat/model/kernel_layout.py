"""The memory layout in which the C kernel reads a model: its configuration, and the order of its tensors.

The native engine passes them as addresses, an exported page as bytes; `native/kernel.c` declares the same structures.
"""

import struct
from collections.abc import Iterator, Mapping

from tinychat.model.config import ModelConfig
from tinychat.store.packed_counts import PACKED

DTYPES: Mapping[str, int] = {"F32": 1, "BF16": 2, "I16": 4, "I32": 5, "I64": 6, "F16": 7, "U8": 8}
PRECISIONS: Mapping[str, int] = {"f32": 1, "bf16": 2, "int8": 3}
NORMS: Mapping[str, int] = {"none": 0, "layernorm": 1, "rmsnorm": 2}
FEED_FORWARDS: Mapping[str, int] = {"none": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "relu2": 4, "swiglu": 5}
POSITIONS: Mapping[str, int] = {"none": 0, "rotary": 1, "learned": 2, "sinusoidal": 3}
CONFIG = "22i3f"
EMBEDDING = "decoder.embedding.weight"


def pack_config(config: ModelConfig, precision: str) -> bytes:
    """Return a configuration as the kernel's structure, for matrices in a precision, and the window of each layer."""
    windows = [config.window(layer) or 0 for layer in range(config.n_layer)]
    return struct.pack(
        f"{CONFIG}{len(windows)}i",
        config.vocab_size, config.context_length, config.n_layer, config.n_head, config.kv_heads, config.d_model,
        config.feed_forward_width, NORMS[config.norm], config.norm_position == "pre",
        config.final_norm and config.norm_position == "pre", FEED_FORWARDS[config.feed_forward],
        POSITIONS[config.position], config.qk_norm, config.output_projection, config.previous_token_embeddings,
        config.bigram_embedding, config.ngram_order, PRECISIONS[precision],
        config.head_width, config.rotary_width, config.parallel, config.scale_scores,
        config.norm_eps, config.rotary_base, config.d_model**0.5 if config.scale_embedding else 1.0,
        *windows,
    )  # fmt: skip


def tensor_names(config: ModelConfig) -> Iterator[str]:
    """Yield the names of a model's tensors in the kernel's order; norms' weights and all biases may be missing."""
    yield EMBEDDING
    yield from (f"decoder.earlier.{index}.weight" for index in range(config.previous_token_embeddings))
    if config.bigram_embedding:
        yield "decoder.pairs.weight"
    if config.position == "learned":
        yield "decoder.position.table.weight"
    for layer in range(config.n_layer):
        block = f"decoder.blocks.{layer}"
        yield from _pair(f"{block}.attention.norm")
        attention = f"{block}.attention.sublayer"
        yield from (f"{attention}.{part}.{kind}" for kind in ("weight", "bias") for part in ("query", "key", "value"))
        if config.qk_norm:
            yield from (*_pair(f"{attention}.query_norm"), *_pair(f"{attention}.key_norm"))
        if config.output_projection:
            yield from _pair(f"{attention}.output")
        if config.feed_forward == "none":
            continue
        yield from _pair(f"{block}.feed_forward.norm")
        feed_forward = f"{block}.feed_forward.sublayer"
        yield from _pair(f"{feed_forward}.up")
        if config.feed_forward == "swiglu":
            yield from _pair(f"{feed_forward}.gate")
        yield from _pair(f"{feed_forward}.output")
    if config.final_norm and config.norm_position == "pre":
        yield from _pair("decoder.norm")
    yield EMBEDDING if config.tie_embeddings else "head.weight"
    yield "head.bias"
    if config.ngram_order:
        yield from (name for part in ("strength", "share", "evidence") for name in _pair(f"ngrams.{part}"))
        yield from (f"ngrams.{part}" for part in ("correction.weight", "variety", "recency"))
        yield from PACKED


def is_matrix(name: str) -> bool:
    """Return whether a tensor is a matrix that the kernel stores in the precision of the configuration."""
    is_in_layer = ".sublayer." in name and name.endswith(".weight") and not name.endswith("_norm.weight")
    return name == "head.weight" or is_in_layer


def _pair(name: str) -> tuple[str, str]:
    return f"{name}.weight", f"{name}.bias"
