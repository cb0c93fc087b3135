"""The memory layout in which the C kernel reads a model: its configuration, and the order of its tensors.

The native engine passes them as addresses, an exported page as bytes; `native/kernel.c` declares the same structures.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

from tinychat.model.config import ModelConfig
from tinychat.store.packed_counts import PACKED
from tinychat.store.weights import EMBEDDING, is_layer_matrix

DTYPES: Mapping[str, int] = {"F32": 1, "BF16": 2, "I16": 4, "I32": 5, "I64": 6, "F16": 7, "U8": 8}
QUANTIZED = 3
"""What the kernel takes as the dtype of a matrix in int8: see `MappedTensor.joined`."""
PRECISIONS: Mapping[str, int] = {"f32": 1, "bf16": 2, "int8": 3}
NORMS: Mapping[str, int] = {"none": 0, "layernorm": 1, "rmsnorm": 2}
FEED_FORWARDS: Mapping[str, int] = {"none": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "relu2": 4, "swiglu": 5}
POSITIONS: Mapping[str, int] = {"none": 0, "rotary": 1, "learned": 2, "sinusoidal": 3}
STACKS: Mapping[str, int] = {"alone": 0, "decoder": 1, "encoder": 2}
CONFIG = "26i3f"
SMALL_VOCABULARY = 4096
"""Size of a vocabulary up to which the head is in f32 where the other matrices are in int8, as in kernel.c."""


def pack_config(config: ModelConfig, precision: str) -> bytes:
    """Return a configuration as the kernel's structure, for matrices in a precision.

    The window of each layer follows, and what each rotary frequency is divided by.
    """
    stack = "decoder" if config.encoder_decoder else "alone"
    return _pack(config, precision, stack, config.vocab_size, config.n_layer, config.ngram_order)


def pack_encoder_config(config: ModelConfig, precision: str) -> bytes:
    """Return the configuration of the encoder, like `pack_config`."""
    return _pack(config, precision, "encoder", config.source_vocab_size or config.vocab_size, config.n_encoder_layer, 0)


def _pack(config: ModelConfig, precision: str, stack: str, vocab_size: int, n_layer: int, ngram_order: int) -> bytes:
    windows = [(config.window(layer) or 0) if stack == "alone" else 0 for layer in range(n_layer)]
    divisors = config.rotary_divisors()
    return struct.pack(
        f"{CONFIG}{len(windows)}i{len(divisors)}f",
        vocab_size, config.context_length, n_layer, config.n_head, config.kv_heads, config.d_model,
        config.feed_forward_width, NORMS[config.norm], config.norm_position == "pre",
        config.final_norm and config.norm_position == "pre", FEED_FORWARDS[config.feed_forward],
        POSITIONS[config.position], config.qk_norm, config.output_projection, config.previous_token_embeddings,
        config.bigram_embedding, ngram_order, PRECISIONS[precision],
        STACKS[stack], config.head_width, config.rotary_width, config.parallel, config.scale_scores,
        -1 if config.turn_layer is None else config.turn_layer, config.turn_token, config.reply_token,
        config.norm_eps, config.rotary_base, config.d_model**0.5 if config.scale_embedding else 1.0,
        *windows, *divisors,
    )  # fmt: skip


def tensor_names(config: ModelConfig) -> Iterator[str]:
    """Yield the names of a model's tensors in the kernel's order, without those of the encoder.

    Norms' weights and all biases may be missing.
    """
    yield from _stack_names(config, "decoder", config.n_layer)
    yield EMBEDDING if config.tie_embeddings else "head.weight"
    yield "head.bias"
    if config.ngram_order:
        yield from (name for part in ("strength", "share", "evidence") for name in _pair(f"ngrams.{part}"))
        yield from (f"ngrams.{part}" for part in ("correction.weight", "variety", "recency"))
        yield from PACKED


def encoder_tensor_names(config: ModelConfig) -> Iterator[str]:
    """Yield the names of the encoder's tensors, like `tensor_names`."""
    yield from _stack_names(config, "encoder", config.n_encoder_layer)


def _stack_names(config: ModelConfig, stack: str, n_layer: int) -> Iterator[str]:
    yield f"{stack}.embedding.weight"
    yield from (f"{stack}.earlier.{index}.weight" for index in range(config.previous_token_embeddings))
    if config.bigram_embedding:
        yield f"{stack}.pairs.weight"
    if config.position == "learned":
        yield f"{stack}.position.table.weight"
    for layer in range(n_layer):
        block = f"{stack}.blocks.{layer}"
        parts = ("query", "key", "value", *["turn_gate", "no_turn"] * (layer == config.turn_layer))
        yield from _attention_names(config, f"{block}.attention", parts)
        if stack == "decoder" and config.encoder_decoder:
            yield from _attention_names(config, f"{block}.cross_attention", ("query",), ("key", "value"))
        if config.feed_forward == "none":
            continue
        yield from _pair(f"{block}.feed_forward.norm")
        feed_forward = f"{block}.feed_forward.sublayer"
        yield from _pair(f"{feed_forward}.up")
        if config.feed_forward == "swiglu":
            yield from _pair(f"{feed_forward}.gate")
        yield from _pair(f"{feed_forward}.output")
    if config.final_norm and config.norm_position == "pre":
        yield from _pair(f"{stack}.norm")


def _attention_names(config: ModelConfig, attention: str, *matrices: Sequence[str]) -> Iterator[str]:
    """Yield the names of an attention's tensors; the kernel joins the parts of each of the `matrices`."""
    yield from _pair(f"{attention}.norm")
    for parts in matrices:
        yield from (f"{attention}.sublayer.{part}.{kind}" for kind in ("weight", "bias") for part in parts)
    if config.qk_norm:
        yield from (*_pair(f"{attention}.sublayer.query_norm"), *_pair(f"{attention}.sublayer.key_norm"))
    if config.output_projection:
        yield from _pair(f"{attention}.sublayer.output")


def is_matrix(name: str) -> bool:
    """Return whether a tensor is a matrix that the kernel stores in the precision of the configuration, or in f32."""
    return name == "head.weight" or is_layer_matrix(name)


def has_whole_head(config: ModelConfig) -> bool:
    """Return whether the head is in f32 where the other matrices are in int8."""
    return config.vocab_size <= SMALL_VOCABULARY


def _pair(name: str) -> tuple[str, str]:
    return f"{name}.weight", f"{name}.bias"
