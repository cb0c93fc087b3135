"""The architecture of a model: the fields of `config.json` and of a recipe's `[model]` section, and a diagram of it.

The fields' types, bounds, choices and help texts are declared here alone; recipes use the same declarations.
"""

import dataclasses
import itertools
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tinychat.config.option import REQUIRED, Options, option
from tinychat.errors import ModelError
from tinychat.store.packed_counts import longest_ngram

NORMS = ("layernorm", "rmsnorm", "none")
NORM_POSITIONS = ("pre", "post")
FEED_FORWARD_NAMES = {
    "gelu": "GELU", "gelu_tanh": "GELU (tanh)", "relu": "ReLU", "relu2": "squared ReLU", "swiglu": "SwiGLU", "none": "",
}  # fmt: skip
"""Names of the activations in the literature."""
FEED_FORWARDS = tuple(FEED_FORWARD_NAMES)
POSITIONS = ("rotary", "learned", "sinusoidal", "none")
INITIALIZATIONS = ("zero", "gpt2", "torch")

LARGEST_NGRAM_VOCABULARY = 1 << 15
"""Largest vocabulary with `ngram_order`, whose counts are of tokens in 16 bits."""
CONTEXT_LENGTHS = (2, 3, 4, 5, 6, 8, 12, 16)
"""Numbers of newest tokens whose earlier occurrences in the context are looked up."""
MAX_RECENT = 8
"""Maximum number of occurrences of each, the newest."""
EVIDENCE_WIDTH = 32
"""Width of the network that corrects the weights of n-grams by how much was counted."""
LARGEST_POSITION_TABLE = 1 << 24
"""Maximum number of sines in a table of positions, which is made when a model is opened: 131,072 positions of 128."""
LARGEST_PAIR_VOCABULARY = 256
"""Largest vocabulary with `bigram_embedding`, whose table grows with its square: 4,290 rows for 65 characters."""


@dataclass(frozen=True)
class ModelConfig:
    """The architecture of a model; the defaults are those that train fastest (with Muon, see the default recipe).

    Raises:
        ModelError: If a value is impossible, or two do not fit each other.
    """

    vocab_size: int = option(REQUIRED, "number of tokens in the vocabulary", low=1, high=1 << 22)
    context_length: int = option(256, "number of tokens that the model sees at once", low=1, high=1 << 17)
    n_layer: int = option(4, "number of layers", low=0, high=1 << 12)
    n_head: int = option(2, "number of attention heads per layer", low=1, high=1 << 14)
    n_kv_head: int | None = option(None, "number of key and value heads; default: n_head", low=1, high=1 << 14)
    """Each is shared by n_head / n_kv_head query heads (grouped-query attention, Ainslie et al. 2023)."""
    d_model: int = option(128, "width of the embeddings and of the residual stream", low=1, high=1 << 16)
    d_head: int | None = option(None, "width of an attention head; default: d_model / n_head", low=1, high=1 << 16)
    d_ff: int | None = option(None, "hidden width of the feed-forward", low=1, high=1 << 20)
    """None: 4 · d_model, or 8/3 · d_model for `swiglu`."""
    norm: str = option("layernorm", "kind of normalization", choices=NORMS)
    norm_position: str = option("pre", "norms before or after each sublayer", choices=NORM_POSITIONS)
    norm_affine: bool = option(False, "norms have learned weights")
    """With `bias`, they have learned biases too."""
    norm_eps: float = option(1e-5, "epsilon in the norm's denominator", low=0, high=1)
    final_norm: bool = option(True, "norm before the output head")
    feed_forward: str = option("relu2", "activation of the feed-forward; relu2 is squared ReLU", choices=FEED_FORWARDS)
    position: str = option("rotary", "positional encoding", choices=POSITIONS)
    rotary_base: float = option(10_000.0, "base of the rotary frequencies", low=1, high=1e12)
    rotary_fraction: float = option(1.0, "fraction of each head that rotary positions turn", low=0, high=1)
    """GPT-NeoX turns a quarter (Black et al. 2022, §2.1)."""
    rotary_factor: float = option(1.0, "number that rotary frequencies are divided by", low=1, high=1e6)
    """Stretches positions, for longer contexts (Chen et al. 2023, §2.3). With two wavelengths, as in Llama 3.1: those
    between them are divided the less the shorter they are."""
    rotary_short_wavelength: float | None = option(
        None, "with rotary_factor: wavelengths of fewer tokens are kept; default: none", above=0, high=1e12
    )
    rotary_long_wavelength: float | None = option(
        None, "with rotary_factor: wavelengths of more tokens are divided in full; default: all", above=0, high=1e12
    )
    attention_window: int | None = option(
        None, "number of newest tokens that local layers attend to; default: all", low=1, high=1 << 17
    )
    """The token itself counts (Beltagy et al. 2020, §3.1)."""
    window_pattern: str = option("L", "which layers are local, in turn: GL is a global one, then a local one")
    scale_scores: bool = option(True, "divide attention scores by the square root of the head's width")
    parallel: bool = option(False, "attention and feed-forward read the same input")
    """As in GPT-J (Wang, Komatsuzaki 2021), each with a norm of its own."""
    output_projection: bool = option(True, "linear layer after the attention heads")
    bias: bool = option(False, "linear layers and norms have biases")
    qkv_bias: bool | None = option(None, "queries, keys and values have biases; default: bias")
    head_bias: bool | None = option(None, "the output head has a bias; default: bias")
    qk_norm: bool = option(True, "normalize queries and keys")
    """In each head (Henry et al. 2020)."""
    qk_norm_affine: bool = option(False, "norms of queries and keys have learned weights, the same for all heads")
    scale_embedding: bool = option(False, "multiply embeddings by the square root of d_model")
    """Scaling as in Vaswani et al. 2017, §3.4."""
    tie_embeddings: bool = option(False, "one matrix for embeddings and output head")
    dropout: float = option(0.0, "fraction of activations dropped in training", low=0, high=0.9)
    attention_dropout: float | None = option(
        None, "fraction of attention weights dropped in training; default: dropout", low=0, high=0.9
    )
    previous_token_embeddings: int = option(0, "number of previous tokens embedded at each position", low=0, high=16)
    """Each from an embedding table of its own, added to the embedding of the token."""
    bigram_embedding: bool = option(False, "embed pairs of tokens at the input; small vocabularies only")
    """Adds an embedding of the pair (previous token, this token)."""
    turn_attention: bool = option(False, "the middle layer attends to whole turns; conversations only")
    """So that a question finds the message that answers it: see `attention.TurnAttention`."""
    turn_token: int = option(0, "with turn_attention: id of the token that begins a turn", low=0)
    reply_token: int = option(0, "with turn_attention: id of the token that begins the reply", low=0)
    ngram_order: int = option(
        0, "mix in n-gram counts up to this n, and those of the context; for vocabularies of up to 32,768",
        low=0, high=39,  # longest_ngram(2)
    )  # fmt: skip
    """N-grams are counted in the training text and mixed with the predictions of the layers; 0: the layers alone."""
    matches: bool = option(True, "with n-grams: also mix in what followed the same tokens earlier in the context")
    initialization: str = option("zero", "initialization of the weights", choices=INITIALIZATIONS)
    """`zero`: output projections and head start at 0; `gpt2`: normal with σ = 0.02 (Radford et al. 2019, §2.3);
    `torch`: the defaults of torch."""
    n_encoder_layer: int = option(
        0, "number of encoder layers of a translation model; default: n_layer", low=0, high=1 << 12
    )
    """0: a decoder alone."""
    source_vocab_size: int | None = option(None, "number of tokens in the encoder's vocabulary", low=1, high=1 << 22)
    """None: the decoder's vocabulary."""

    def __post_init__(self) -> None:
        for name, one in ARCHITECTURE.items():
            value = getattr(self, name)
            self._check(name, one.fits_type(value), f"it is of type {one.type_name}")
            self._check(name, not (fault := one.fault(value)), fault)
        divides = self.d_head is not None or self.d_model % self.n_head == 0
        self._check("n_head", divides, f"it must divide d_model, {self.d_model}")
        fits = self.output_projection or self.attention_width == self.d_model
        self._check("d_head", fits, f"without output_projection, n_head times it is d_model, {self.d_model}")
        self._check("n_kv_head", self.n_head % self.kv_heads == 0, f"it must divide n_head, {self.n_head}")
        is_even = self.position != "rotary" or (self.rotary_width > 0 and self.rotary_width % 2 == 0)
        name = "d_model" if self.d_head is None else "d_head"
        remedy = f"rotary positions need an even width of the heads, not {self.rotary_width}"
        if self.rotary_width != self.head_width:
            name, numbers = "rotary_fraction", f"an even number of each head's {self.head_width} coordinates"
            remedy = f"it must turn {numbers}, at least 2, not {self.rotary_width}"
        self._check(name, is_even, remedy)
        short, long = self.rotary_short_wavelength, self.rotary_long_wavelength
        wavelengths = ("rotary_short_wavelength", "rotary_long_wavelength")
        for name, other in zip(wavelengths, reversed(wavelengths), strict=True):
            both = getattr(self, name) is None or getattr(self, other) is not None
            self._check(name, both, f"it needs {other}, too")
        is_range = short is None or long is None or short < long
        self._check("rotary_long_wavelength", is_range, f"it must be above rotary_short_wavelength, {short}")
        widths = {"rotary": self.rotary_width, "sinusoidal": self.d_model}
        size = self.context_length * widths.get(self.position, 0)
        fault = f"a table of {self.position} positions would have {size:,} numbers, over {LARGEST_POSITION_TABLE:,}"
        self._check("context_length", size <= LARGEST_POSITION_TABLE, fault)
        self._check("qk_norm", self.norm != "none" or not self.qk_norm, "it needs a norm: layernorm or rmsnorm")
        is_pattern = 0 < len(self.window_pattern) <= 1 << 12 and set(self.window_pattern) <= {"G", "L"}
        self._check("window_pattern", is_pattern, "it consists of G (global) and L (local)")
        alone = self.attention_window is None or not self.encoder_decoder
        self._check("attention_window", alone, "only a decoder without an encoder has local layers")
        for name in ("turn_token", "reply_token"):
            is_token = not self.turn_attention or getattr(self, name) < self.vocab_size
            self._check(name, is_token, f"it must be below vocab_size, {self.vocab_size}")
        differ = not self.turn_attention or self.turn_token != self.reply_token
        self._check("reply_token", differ, "it must be another token than turn_token")
        alone = not self.turn_attention or not self.encoder_decoder
        self._check("turn_attention", alone, "only a decoder without an encoder has turns")
        pre = self.norm_position == "pre" or not self.parallel
        self._check("parallel", pre, "it needs norm_position pre")
        for name, most in (("bigram_embedding", LARGEST_PAIR_VOCABULARY), ("ngram_order", LARGEST_NGRAM_VOCABULARY)):
            fits = not getattr(self, name) or self.vocab_size <= most
            self._check(name, fits, f"it needs a vocabulary of at most {most}, not {self.vocab_size}")
        if self.ngram_order:
            most = longest_ngram(self.vocab_size)
            self._check("ngram_order", self.ngram_order <= most, f"it is at most {most} for {self.vocab_size} tokens")

    def _check(self, name: str, holds: bool, remedy: str) -> None:
        if not holds:
            raise ModelError(f"{name} is {getattr(self, name)!r}", remedy)

    @property
    def lookback(self) -> int:
        """The number of tokens before its input that the model embeds or counts."""
        return max(self.previous_token_embeddings, int(self.bigram_embedding), self.ngram_order - 1)

    @property
    def head_width(self) -> int:
        """The width of one attention head: `d_head`, or its default if it is None."""
        return self.d_model // self.n_head if self.d_head is None else self.d_head

    @property
    def attention_width(self) -> int:
        """The width of all attention heads together."""
        return self.n_head * self.head_width

    @property
    def rotary_width(self) -> int:
        """The number of coordinates of each head that rotary positions turn."""
        return int(self.rotary_fraction * self.head_width)

    def rotary_divisors(self) -> tuple[float, ...]:
        """Return what each rotary frequency is divided by, rounded to f32, the highest frequency first: [R/2]."""
        pairs, short, long = self.rotary_width // 2, self.rotary_short_wavelength, self.rotary_long_wavelength
        rates = (self.rotary_base ** (-k / pairs) / math.tau for k in range(pairs))  # wavelength⁻¹
        kept = [0.0 if short is None or long is None else (rate - 1 / long) / (1 / short - 1 / long) for rate in rates]
        kept = [min(max(share, 0.0), 1.0) for share in kept]
        divisors = (1 / ((1 - share) / self.rotary_factor + share) for share in kept)
        return struct.unpack(f"{pairs}f", struct.pack(f"{pairs}f", *divisors))

    def window(self, layer: int) -> int | None:
        """Return the number of newest tokens that a layer attends to; None: all."""
        return self.attention_window if self.window_pattern[layer % len(self.window_pattern)] == "L" else None

    @property
    def turn_layer(self) -> int | None:
        """The index of the layer that attends to turns; None: there is none."""
        return (self.n_layer - 1) // 2 if self.turn_attention and self.n_layer else None

    @property
    def kv_heads(self) -> int:
        """The number of key and value heads."""
        return self.n_kv_head or self.n_head

    @property
    def feed_forward_width(self) -> int:
        """The hidden width of the feed-forward: `d_ff`, or its default if it is None."""
        if self.d_ff is not None:
            return self.d_ff
        return 8 * self.d_model // 3 if self.feed_forward == "swiglu" else 4 * self.d_model

    @property
    def encoder_decoder(self) -> bool:
        """Whether the model has an encoder."""
        return self.n_encoder_layer > 0

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, as in `config.json`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ModelConfig":
        """Return the configuration with the fields of `to_dict`; those that are left out have their defaults.

        Raises:
            ModelError: If a field is unknown, missing or of the wrong type.
        """
        if unknown := ", ".join(sorted(set(values) - set(ARCHITECTURE))):
            raise ModelError(f"unknown part of an architecture: {unknown}", "was it made by a newer tinychat?")
        required = (name for name, one in ARCHITECTURE.items() if one.default is REQUIRED)
        if lacking := ", ".join(name for name in required if name not in values):
            raise ModelError(f"the architecture cannot be read: it lacks {lacking}", "train or import the model again")
        return cls(**values)


ARCHITECTURE = Options.of(ModelConfig)
"""Every field by its name."""


# The diagram: the parts in the order in which data flows


@dataclass(frozen=True)
class Layer:
    """One part of a model; `kind` is the class of its module, `shape` that of its output: context × width.

    It lies `beside` a residual connection, or is the addition that `joins` the two.
    """

    name: str
    kind: str
    about: str
    shape: tuple[int, ...]
    parameters: int = 0
    branch: Literal["", "beside", "joins"] = ""


@dataclass(frozen=True)
class Stage:
    """Parts of the `encoder` or `decoder` that data flows through one after the other, `times` times."""

    stack: str
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
        return [dataclasses.asdict(stage) for stage in self.stages]


def make_diagram(config: ModelConfig) -> Diagram:
    """Make the diagram of a model of this architecture."""
    stages = list(_stack(config, "decoder", config.vocab_size, config.n_layer))
    if config.encoder_decoder:
        vocab_size = config.source_vocab_size or config.vocab_size
        stages = [*_stack(config, "encoder", vocab_size, config.n_encoder_layer), *stages]
    return Diagram(tuple(stages))


def _stack(config: ModelConfig, name: str, vocab_size: int, n_layer: int) -> Iterator[Stage]:
    yield Stage(name, "input", tuple(_input(config, vocab_size)))
    for of_turns, layers in itertools.groupby(layer == config.turn_layer for layer in range(n_layer)):
        block = _block(config, is_decoder=name == "decoder", of_turns=of_turns)
        yield Stage(name, "block", tuple(block), len(list(layers)))
    final_norm = _norm(config) if config.final_norm and config.norm_position == "pre" else ()
    if output := (*final_norm, *(_head(config) if name == "decoder" else ())):
        yield Stage(name, "output", output)
    if name == "decoder" and config.ngram_order:
        yield Stage(name, "mixture", tuple(_mixture(config)))


def _input(config: ModelConfig, vocab_size: int) -> Iterator[Layer]:
    width, shape = config.d_model, (config.context_length, config.d_model)
    scaled = f", times √{width}" if config.scale_embedding else ""
    yield Layer("embedding", "Embedding", f"{vocab_size:,} × {width}{scaled}", shape, vocab_size * width)
    if tables := config.previous_token_embeddings:
        about = f"{tables} × {vocab_size + 1:,} × {width}"
        yield Layer("previous-token", "Embedding", about, shape, tables * (vocab_size + 1) * width)
    if config.bigram_embedding:
        rows = (vocab_size + 1) * vocab_size
        yield Layer("bigram", "Embedding", f"{rows:,} × {width}", shape, rows * width)
    if config.position == "learned":
        yield Layer("positions", "Learned", f"{config.context_length} × {width}", shape, config.context_length * width)
    elif config.position == "sinusoidal":
        yield Layer("positions", "Sinusoidal", "", shape)


def _block(config: ModelConfig, *, is_decoder: bool, of_turns: bool) -> Iterator[Layer]:
    width, shape, bias = config.d_model, (config.context_length, config.d_model), config.bias
    heads = f"{config.n_head} heads of {config.head_width}" if config.n_head > 1 else f"1 head of {config.head_width}"
    if config.kv_heads != config.n_head:
        heads += f", {config.kv_heads} of keys"
    inwards = config.attention_width + 2 * config.kv_heads * config.head_width
    parameters = inwards * (width + (bias if config.qkv_bias is None else config.qkv_bias))
    parameters += (config.attention_width + bias) * width * config.output_projection
    if config.qk_norm and config.qk_norm_affine:
        parameters += 2 * config.head_width * (1 + (bias and config.norm == "layernorm"))
    if of_turns:
        own = (config.kv_heads + 1) * (width + (bias if config.qkv_bias is None else config.qkv_bias))
        attention = Layer("attention", "TurnAttention", f"{heads}, to turns", shape, parameters + own)
    local = "" if config.attention_window is None else f", window of {config.attention_window}"
    if local and "G" in config.window_pattern:
        local += f" in layers {config.window_pattern}"
    rotary, causal = ", rotary" * (config.position == "rotary"), ", causal" * is_decoder
    if not of_turns:
        attention = Layer("attention", "Attention", heads + rotary + local + causal, shape, parameters)
    yield from _residual(config, attention)
    if is_decoder and config.encoder_decoder:
        about = f"{heads}, to the encoder"
        yield from _residual(config, Layer("cross-attention", "Attention", about, shape, parameters))
    if config.feed_forward != "none":
        inner = config.feed_forward_width
        inwards = 2 if config.feed_forward == "swiglu" else 1
        parameters = inwards * (width + bias) * inner + (inner + bias) * width
        about = f"{width} → {inner} → {width}, {FEED_FORWARD_NAMES[config.feed_forward]}"
        about += ", beside attention" * config.parallel
        yield from _residual(config, Layer("feed-forward", "FeedForward", about, shape, parameters))


def _residual(config: ModelConfig, sublayer: Layer) -> Iterator[Layer]:
    """Yield a sublayer, the residual connection around it, and its norm before or after."""
    norms = list(_norm(config))
    before, after = (norms, []) if config.norm_position == "pre" else ([], norms)
    yield from (dataclasses.replace(layer, branch="beside") for layer in (*before, sublayer))
    yield Layer("add", "", "", sublayer.shape, branch="joins")
    yield from after


def _norm(config: ModelConfig) -> Iterator[Layer]:
    if config.norm != "none":
        weights = config.norm_affine * (1 + (config.bias and config.norm == "layernorm"))
        about = f"eps {config.norm_eps:g}" if config.norm_affine else "no weights"
        kind = "LayerNorm" if config.norm == "layernorm" else "RMSNorm"
        yield Layer("norm", kind, about, (config.context_length, config.d_model), weights * config.d_model)


def _head(config: ModelConfig) -> Iterator[Layer]:
    width, vocab_size = config.d_model, config.vocab_size
    bias = vocab_size if (config.bias if config.head_bias is None else config.head_bias) else 0
    shared = ", the embedding's" if config.tie_embeddings else ""
    parameters = bias + (0 if config.tie_embeddings else width * vocab_size)
    shape = (config.context_length, vocab_size)
    yield Layer("head", "Linear", f"{width} → {vocab_size:,}{shared}", shape, parameters)


def _mixture(config: ModelConfig) -> Iterator[Layer]:
    """Yield what is mixed with the predictions of the layers, and the mixture."""
    order, contexts, shape = config.ngram_order, len(CONTEXT_LENGTHS), (config.context_length, config.vocab_size)
    mixing = (config.d_model + 1) * (1 + order + contexts) + order + contexts + contexts * MAX_RECENT
    mixing += EVIDENCE_WIDTH * (2 * (order + contexts) + 1 + order + contexts + 1)
    yield Layer("counts", "", f"n-grams of the text, up to {order}", shape, branch="beside")
    if config.matches:
        shortest, longest = CONTEXT_LENGTHS[0], CONTEXT_LENGTHS[-1]
        yield Layer("matches", "", f"of the last {shortest} to {longest} tokens", shape, branch="beside")
    yield Layer("mix", "NGrams", "in shares at each token", shape, mixing, branch="joins")
