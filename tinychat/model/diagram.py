"""Describe a model part by part, in the order in which data flows, from its configuration and without torch.

A shape is that of a part's output for one window: context × width.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tinychat.model.config import LONGEST_MATCH, ModelConfig

Branch = Literal["", "beside", "joins"]
"""Whether a part lies beside a residual connection, or is the addition that ends it."""

NORM_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "none": "Identity"}


@dataclass(frozen=True)
class Layer:
    """One part of a model."""

    name: str
    kind: str
    """class of its module"""
    about: str
    shape: tuple[int, ...]
    parameters: int = 0
    branch: Branch = ""


@dataclass(frozen=True)
class Stage:
    """Parts that data flows through one after the other, `times` times."""

    stack: str
    """`encoder` or `decoder`"""
    name: str
    layers: tuple[Layer, ...]
    times: int = 1

    @property
    def parameters(self) -> int:
        """Number of parameters, of one time."""
        return sum(layer.parameters for layer in self.layers)


@dataclass(frozen=True)
class Diagram:
    """A model, from its tokens to its logits."""

    stages: tuple[Stage, ...]

    @property
    def parameters(self) -> int:
        """Total number of parameters; a shared matrix counts once."""
        return sum(stage.times * stage.parameters for stage in self.stages)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the stages as JSON values."""
        return [asdict(stage) for stage in self.stages]


def make_diagram(config: ModelConfig) -> Diagram:
    """Make the diagram of a model of this architecture."""
    encoder: tuple[Stage, ...] = ()
    if config.encoder_decoder:
        vocab_size = config.source_vocab_size or config.vocab_size
        encoder = tuple(_stack(config, "encoder", vocab_size, config.n_encoder_layer))
    return Diagram((*encoder, *_stack(config, "decoder", config.vocab_size, config.n_layer)))


def _stack(config: ModelConfig, name: str, vocab_size: int, n_layer: int) -> Iterator[Stage]:
    yield Stage(name, "input", tuple(_input(config, vocab_size)))
    if n_layer:
        yield Stage(name, "block", tuple(_block(config, is_decoder=name == "decoder")), n_layer)
    final_norm = _norm(config) if config.final_norm and config.norm_position == "pre" else ()
    output = (*final_norm, *(_head(config) if name == "decoder" else ()))
    if output:
        yield Stage(name, "output", output)


def _input(config: ModelConfig, vocab_size: int) -> Iterator[Layer]:
    width, shape = config.d_model, (config.context_length, config.d_model)
    scaled = f", times √{width}" if config.scale_embedding else ""
    yield Layer("embedding", "Embedding", f"{vocab_size:,} × {width}{scaled}", shape, vocab_size * width)
    if config.previous_token_embeddings:
        about = f"{config.previous_token_embeddings} × {vocab_size + 1:,} × {width}"
        yield Layer("earlier", "Embedding", about, shape, config.previous_token_embeddings * (vocab_size + 1) * width)
    if config.bigram_embedding:
        rows = (vocab_size + 1) * vocab_size
        yield Layer("pairs", "Embedding", f"{rows:,} × {width}", shape, rows * width)
    if config.position == "learned":
        yield Layer("positions", "Learned", f"{config.context_length} × {width}", shape, config.context_length * width)
    elif config.position == "sinusoidal":
        yield Layer("positions", "Sinusoidal", "", shape)


def _block(config: ModelConfig, *, is_decoder: bool) -> Iterator[Layer]:
    heads = f"{config.n_head} heads of {config.d_head}" if config.n_head > 1 else f"1 head of {config.d_head}"
    if config.kv_heads != config.n_head:
        heads += f", {config.kv_heads} of keys"
    parameters, shape = _attention_parameters(config), (config.context_length, config.d_model)
    rotary = ", rotary" if config.position == "rotary" else ""
    causal = ", causal" if is_decoder else ""
    yield from _residual(config, Layer("attention", "Attention", heads + rotary + causal, shape, parameters))
    if is_decoder and config.encoder_decoder:
        about = f"{heads}, to the encoder"
        yield from _residual(config, Layer("cross-attention", "Attention", about, shape, parameters))
    if config.feed_forward != "none":
        about = f"{config.d_model} → {config.feed_forward_width} → {config.d_model}, {config.feed_forward}"
        parameters = _feed_forward_parameters(config)
        yield from _residual(config, Layer("feed-forward", "FeedForward", about, shape, parameters))


def _residual(config: ModelConfig, sublayer: Layer) -> Iterator[Layer]:
    """Yield a sublayer, the residual connection around it, and its norm before or after."""
    norms = list(_norm(config))
    pre = config.norm_position == "pre"
    for layer in [*(norms if pre else ()), sublayer]:
        yield replace(layer, branch="beside")
    yield Layer("add", "", "", sublayer.shape, branch="joins")
    if not pre:
        yield from norms


def _norm(config: ModelConfig) -> Iterator[Layer]:
    if config.norm != "none":
        weights = config.norm_affine * (1 + (config.bias and config.norm == "layernorm"))
        about = f"eps {config.norm_eps:g}" if config.norm_affine else "no weights"
        shape = (config.context_length, config.d_model)
        yield Layer("norm", NORM_KINDS[config.norm], about, shape, weights * config.d_model)


def _head(config: ModelConfig) -> Iterator[Layer]:
    width, vocab_size = config.d_model, config.vocab_size
    bias = vocab_size if (config.bias if config.head_bias is None else config.head_bias) else 0
    shared = ", the embedding's" if config.tie_embeddings else ""
    parameters = bias + (0 if config.tie_embeddings else width * vocab_size)
    shape = (config.context_length, vocab_size)
    yield Layer("head", "Linear", f"{width} → {vocab_size:,}{shared}", shape, parameters)
    if config.ngram_order:
        order = config.ngram_order
        mixing = (width + 1) * (1 + 2 + order) + order + LONGEST_MATCH + 1 + 2
        yield Layer("n-grams", "NGrams", f"counts up to {order}, and matches, mixed in", shape, mixing)


def _attention_parameters(config: ModelConfig) -> int:
    width, keys = config.d_model, config.kv_heads * config.d_head
    outputs = [width, keys, keys, *([width] if config.output_projection else [])]
    return sum((width + config.bias) * output for output in outputs)


def _feed_forward_parameters(config: ModelConfig) -> int:
    width, inner = config.d_model, config.feed_forward_width
    inwards = 2 if config.feed_forward == "swiglu" else 1
    return inwards * (width + config.bias) * inner + (inner + config.bias) * width
