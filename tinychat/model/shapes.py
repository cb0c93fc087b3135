"""Names and shapes of a model's weights, to check a file against an architecture before anything is built."""

from collections.abc import Iterator, Mapping

from tinychat.errors import ModelError
from tinychat.model.config import CONTEXT_LENGTHS, EVIDENCE_WIDTH, MAX_RECENT, ModelConfig
from tinychat.store.models import ModelInfo, map_weights
from tinychat.store.packed_counts import PACKED
from tinychat.store.weights import DAMAGED

Shape = tuple[int, ...] | None
"""None: one dimension of any length, of integers."""


def weight_shapes(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    """Yield the names and shapes of the tensors in a weight file; a tied head has none of its own."""
    yield from _stack(config, "decoder", config.vocab_size, config.n_layer)
    if config.encoder_decoder:
        yield from _stack(config, "encoder", config.source_vocab_size or config.vocab_size, config.n_encoder_layer)
    has_bias = config.bias if config.head_bias is None else config.head_bias
    head = _linear("head", config.d_model, config.vocab_size, has_bias)
    yield from (one for one in head if one[0] != "head.weight" or not config.tie_embeddings)
    if order := config.ngram_order:
        levels = order + len(CONTEXT_LENGTHS)
        yield from _linear("ngrams.share", config.d_model, 1, has_bias=True)
        yield from _linear("ngrams.strength", config.d_model, levels, has_bias=True)
        yield from _linear("ngrams.evidence", 2 * levels, EVIDENCE_WIDTH, has_bias=True)
        yield from _linear("ngrams.correction", EVIDENCE_WIDTH, levels + 1, has_bias=False)
        yield from (("ngrams.variety", (levels,)), ("ngrams.recency", (len(CONTEXT_LENGTHS), MAX_RECENT)))
        yield from ((name, None) for name in PACKED)


def checked_config(info: ModelInfo) -> ModelConfig:
    """Return the configuration of a model whose weights have its shapes, read from the header of their file.

    Raises:
        ModelError: If the architecture is invalid, or the weights are missing, damaged, or of another architecture.
    """
    config = ModelConfig.from_dict(info.architecture)
    check_shapes(config, {name: one.shape for name, one in map_weights(info).items()}, f"the weights in {info.folder}")
    return config


def check_shapes(config: ModelConfig, found: Mapping[str, tuple[int, ...]], what: str) -> None:
    """Compare names and shapes with those of an architecture, however large it claims to be.

    Raises:
        ModelError: If one is missing, has another shape, or is not part of the architecture.
    """
    expected = set()
    for name, shape in weight_shapes(config):
        fault = ""
        if name not in found:
            fault = f"{name} is missing"
        elif not _fits(found[name], shape):
            fault = f"{name} has the shape {_show(found[name])}, not {_show(shape) if shape else 'one dimension'}"
        if fault:
            raise ModelError(f"{what} do not fit its architecture: {fault}", DAMAGED)
        expected.add(name)
    if unknown := next((name for name in found if name not in expected), ""):
        raise ModelError(f"{what} do not fit its architecture: it has no {unknown[:80]}", DAMAGED)


def _fits(found: tuple[int, ...], shape: Shape) -> bool:
    return len(found) == 1 if shape is None else found == shape


def _show(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "of a number"


def _stack(config: ModelConfig, name: str, vocab_size: int, n_layer: int) -> Iterator[tuple[str, Shape]]:
    width = config.d_model
    yield f"{name}.embedding.weight", (vocab_size, width)
    for index in range(config.previous_token_embeddings):
        yield f"{name}.earlier.{index}.weight", (vocab_size + 1, width)
    if config.bigram_embedding:
        yield f"{name}.pairs.weight", ((vocab_size + 1) * vocab_size, width)
    if config.position == "learned":
        yield f"{name}.position.table.weight", (config.context_length, width)
    for layer in range(n_layer):
        block = f"{name}.blocks.{layer}"
        yield from _attention(config, f"{block}.attention")
        if layer == config.turn_layer:
            qkv_bias = config.bias if config.qkv_bias is None else config.qkv_bias
            yield from _linear(f"{block}.attention.sublayer.turn_gate", width, config.kv_heads, qkv_bias)
            yield from _linear(f"{block}.attention.sublayer.no_turn", width, 1, qkv_bias)
        if name == "decoder" and config.encoder_decoder:
            yield from _attention(config, f"{block}.cross_attention")
        if config.feed_forward != "none":
            yield from _norm(config, f"{block}.feed_forward.norm")
            for part in ("up", "gate") if config.feed_forward == "swiglu" else ("up",):
                part = f"{block}.feed_forward.sublayer.{part}"
                yield from _linear(part, width, config.feed_forward_width, config.bias)
            output = f"{block}.feed_forward.sublayer.output"
            yield from _linear(output, config.feed_forward_width, width, config.bias)
    if config.final_norm and config.norm_position == "pre":
        yield from _norm(config, f"{name}.norm")


def _attention(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    yield from _norm(config, f"{name}.norm")
    width, qkv_bias = config.d_model, config.bias if config.qkv_bias is None else config.qkv_bias
    yield from _linear(f"{name}.sublayer.query", width, config.attention_width, qkv_bias)
    for part in ("key", "value"):
        yield from _linear(f"{name}.sublayer.{part}", width, config.kv_heads * config.head_width, qkv_bias)
    if config.output_projection:
        yield from _linear(f"{name}.sublayer.output", config.attention_width, width, config.bias)
    if config.qk_norm and config.qk_norm_affine:
        for part in ("query_norm", "key_norm"):
            yield from _norm_weights(config, f"{name}.sublayer.{part}", config.head_width)


def _norm(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    if config.norm != "none" and config.norm_affine:
        yield from _norm_weights(config, name, config.d_model)


def _norm_weights(config: ModelConfig, name: str, width: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (width,)
    if config.bias and config.norm == "layernorm":
        yield f"{name}.bias", (width,)


def _linear(name: str, inputs: int, outputs: int, has_bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    if has_bias:
        yield f"{name}.bias", (outputs,)
