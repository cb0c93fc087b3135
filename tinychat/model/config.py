"""The architecture of a model: the fields of `config.json` and of a recipe's `[model]` section.

Their types, bounds, choices and help texts are declared here alone; recipes use the same declarations.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinychat.config.option import REQUIRED, Options, option
from tinychat.errors import ModelError

NORMS = ("layernorm", "rmsnorm", "none")
NORM_POSITIONS = ("pre", "post")
FEED_FORWARDS = ("gelu", "gelu_tanh", "relu", "relu2", "swiglu", "none")
POSITIONS = ("rotary", "learned", "sinusoidal", "none")
INITIALIZATIONS = ("zero", "gpt2", "torch")

LARGEST_NGRAM_VOCABULARY = 1024
"""Largest vocabulary with `ngram_order`: the table of n-gram counts has a column for each token."""
LARGEST_TABLE = 1 << 25
"""Maximum number of counts in that table: 67 MB, and 270 MB more in training."""
LARGEST_CONTEXT_KEY = 2**62
"""Limit of the 64-bit keys of n-gram contexts: a vocabulary of 65 allows n-grams of 11 tokens, one of 1,024 of 7."""
LONGEST_MATCH = 12
"""Maximum number of tokens to compare when the copy mechanism searches the context for matches."""
LARGEST_PAIR_VOCABULARY = 256
"""Largest vocabulary with `bigram_embedding`, whose table grows with its square: 4,290 rows for 65 characters."""


@dataclass(frozen=True)
class ModelConfig:
    """The architecture of a model; the defaults are those that train fastest (with Muon, see the default recipe).

    Raises:
        ModelError: If a value is impossible, or two do not fit each other.
    """

    vocab_size: int = option(REQUIRED, "number of tokens in the vocabulary", low=1)
    context_length: int = option(256, "number of tokens that the model sees at once", low=1)
    n_layer: int = option(4, "number of layers", low=0)
    n_head: int = option(2, "number of attention heads per layer", low=1)
    n_kv_head: int | None = option(None, "number of key and value heads; default: n_head", low=1)
    """Each is shared by n_head / n_kv_head query heads (grouped-query attention, Ainslie et al. 2023)."""
    d_model: int = option(128, "width of the embeddings and of the residual stream", low=1)
    d_ff: int | None = option(None, "hidden width of the feed-forward", low=1)
    """None: 4 · d_model, or 8/3 · d_model for `swiglu`."""
    norm: str = option("layernorm", "kind of normalization", choices=NORMS)
    norm_position: str = option("pre", "norms before or after each sublayer", choices=NORM_POSITIONS)
    norm_affine: bool = option(False, "norms have learned weights")
    """With `bias`, they have learned biases too."""
    norm_eps: float = option(1e-5, "epsilon in the norm's denominator", low=0)
    final_norm: bool = option(True, "norm before the output head")
    feed_forward: str = option("relu2", "activation of the feed-forward", choices=FEED_FORWARDS)
    position: str = option("rotary", "positional encoding", choices=POSITIONS)
    rotary_base: float = option(10_000.0, "base of the rotary frequencies", above=0)
    output_projection: bool = option(True, "linear layer after the attention heads")
    bias: bool = option(False, "linear layers and norms have biases")
    head_bias: bool | None = option(None, "the output head has a bias; default: bias")
    qk_norm: bool = option(True, "normalize queries and keys")
    """In each head (Henry et al. 2020)."""
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
    ngram_order: int = option(
        0, "mix in n-gram counts up to this n, and a copy mechanism; small vocabularies only",
        low=0, high=39,  # longest_ngram(2)
    )  # fmt: skip
    """N-grams are counted in the training text and mixed with the predictions of the layers; 0: the layers alone."""
    initialization: str = option("zero", "initialization of the weights", choices=INITIALIZATIONS)
    """`zero`: output projections and head start at 0; `gpt2`: normal with σ = 0.02 (Radford et al. 2019, §2.3);
    `torch`: the defaults of torch."""
    n_encoder_layer: int = option(0, "number of encoder layers of a translation model; default: n_layer", low=0)
    """0: a decoder alone."""
    source_vocab_size: int | None = option(None, "number of tokens in the encoder's vocabulary", low=1)
    """None: the decoder's vocabulary."""

    def __post_init__(self) -> None:
        for name, one in ARCHITECTURE.items():
            value = getattr(self, name)
            self._check(name, one.fits_type(value), f"it is of type {one.type_name}")
            fault = one.fault(value)
            self._check(name, not fault, fault)
        self._check("n_head", self.d_model % self.n_head == 0, f"it must divide d_model, {self.d_model}")
        self._check("n_kv_head", self.n_head % self.kv_heads == 0, f"it must divide n_head, {self.n_head}")
        if self.position == "rotary":
            even = self.d_head % 2 == 0
            self._check("d_model", even, f"rotary positions need an even d_model / n_head, not {self.d_head}")
        if self.norm == "none":
            self._check("qk_norm", not self.qk_norm, "it needs a norm: layernorm or rmsnorm")
        if self.bigram_embedding:
            self._check(
                "bigram_embedding", self.vocab_size <= LARGEST_PAIR_VOCABULARY,
                f"it needs a vocabulary of at most {LARGEST_PAIR_VOCABULARY}, not {self.vocab_size}",
            )  # fmt: skip
        if self.ngram_order:
            self._check(
                "ngram_order", self.vocab_size <= LARGEST_NGRAM_VOCABULARY,
                f"it needs a vocabulary of at most {LARGEST_NGRAM_VOCABULARY}, not {self.vocab_size}",
            )  # fmt: skip
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
    def d_head(self) -> int:
        """The width of one attention head."""
        return self.d_model // self.n_head

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
        unknown = sorted(set(values) - set(ARCHITECTURE))
        if unknown:
            names = ", ".join(unknown)
            raise ModelError(f"unknown part of an architecture: {names}", "was it made by a newer tinychat?")
        try:
            return cls(**values)
        except TypeError as error:
            raise ModelError(f"the architecture cannot be read: {error}") from None


ARCHITECTURE = Options.of(ModelConfig)
"""Every field by its name."""


def longest_ngram(vocab_size: int) -> int:
    """Return the highest `ngram_order` for the size of a vocabulary."""
    order = 1
    while (vocab_size + 1) ** (order + 1) < LARGEST_CONTEXT_KEY:
        order += 1
    return order
