"""The architecture of a model, as plain values: what `config.json` and a recipe's `[model]` hold.

Types, bounds and choices are declared here, once: a recipe refers to them, and leaves open what it does not say.
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
"""N-grams have a table of what follows each context, as wide as the vocabulary."""
LARGEST_TABLE = 1 << 25
"""The numbers of that table, at most: 67 MB, and 270 MB more in training."""
LARGEST_CONTEXT_KEY = 2**62
"""The contexts of n-grams are numbered by 64-bit integers: 65 characters allow n-grams of 11, 1,024 tokens of 7."""
LONGEST_MATCH = 12
"""The tokens that are compared where matches with earlier places are looked for."""
LARGEST_PAIR_VOCABULARY = 256
"""Token pairs have a table of its square: 65 characters need 4,290 rows, a WordPiece vocabulary a billion."""


@dataclass(frozen=True)
class ModelConfig:
    """Every choice of architecture; the defaults are what trains quickest here (Muon, see the default recipe).

    Raises:
        ModelError: a value is impossible, or two do not fit each other.
    """

    vocab_size: int = option(REQUIRED, "tokens of the vocabulary", low=1)
    context_length: int = option(256, "the most tokens that the model sees at once", low=1)
    n_layer: int = option(4, "layers", low=0)
    n_head: int = option(2, "attention heads of a layer", low=1)
    n_kv_head: int | None = option(None, "heads of keys and values, shared by the attention heads", low=1)
    """each shared by n_head / n_kv_head queries (Ainslie et al. 2023); None: n_head"""
    d_model: int = option(128, "the width of the model", low=1)
    d_ff: int | None = option(None, "the width of the feed-forward", low=1)
    """None: 4 · d_model, or two thirds of it where it is gated"""
    norm: str = option("layernorm", "how activations are normalized", choices=NORMS)
    norm_position: str = option("pre", "before or after each sublayer", choices=NORM_POSITIONS)
    norm_affine: bool = option(False, "norms have weights")
    """and, with `bias`, biases"""
    norm_eps: float = option(1e-5, "epsilon in the norm's denominator", low=0)
    final_norm: bool = option(True, "a norm before the output head")
    feed_forward: str = option("relu2", "the feed-forward's kind", choices=FEED_FORWARDS)
    position: str = option("rotary", "positional encoding", choices=POSITIONS)
    rotary_base: float = option(10_000.0, "the base of rotary positions", above=0)
    output_projection: bool = option(True, "a matrix after the attention heads")
    bias: bool = option(False, "linear layers and norms have biases")
    head_bias: bool | None = option(None, "the output head has a bias")
    """None: as `bias`"""
    qk_norm: bool = option(True, "normalize queries and keys")
    """in each head (Henry et al. 2020)"""
    scale_embedding: bool = option(False, "embeddings times the root of the width")
    """as in Vaswani et al. 2017, §3.4"""
    tie_embeddings: bool = option(False, "one matrix for embeddings and output head")
    dropout: float = option(0.0, "the share of activations dropped in training", low=0, high=0.9)
    attention_dropout: float | None = option(
        None, "the same of the weights of attention; as dropout where it is left out", low=0, high=0.9
    )
    previous_token_embeddings: int = option(0, "earlier tokens embedded at the input", low=0, high=16)
    """each from a table of its own"""
    bigram_embedding: bool = option(False, "embed pairs of tokens at the input; small vocabularies only")
    """adds an embedding of the pair (previous token, this token)"""
    ngram_order: int = option(
        0, "mix in counts of n-grams up to this n, and what matches in the context; small vocabularies only",
        low=0, high=39,  # longest_ngram(2)
    )  # fmt: skip
    """counted in the training text, and mixed with what the layers say; 0: the layers alone"""
    initialization: str = option("zero", "the first weights", choices=INITIALIZATIONS)
    """`zero`: output projections and head start at 0; `gpt2`: normal, 0.02 (Radford et al. 2019, §2.3); `torch`: its"""
    n_encoder_layer: int = option(
        0, "layers of the encoder of a translation model; as many as n_layer where left out", low=0
    )
    """whose output the decoder looks at; 0: a decoder alone"""
    source_vocab_size: int | None = option(None, "tokens of the encoder's vocabulary", low=1)
    """None: the decoder's"""

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
    def looks_back(self) -> int:
        """How many tokens before the first of its input a model wants to know."""
        return max(self.previous_token_embeddings, int(self.bigram_embedding), self.ngram_order - 1)

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.n_head

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.n_kv_head or self.n_head

    @property
    def feed_forward_width(self) -> int:
        """`d_ff`, or what stands for it where it is None."""
        if self.d_ff is not None:
            return self.d_ff
        return 8 * self.d_model // 3 if self.feed_forward == "swiglu" else 4 * self.d_model

    @property
    def encoder_decoder(self) -> bool:
        return self.n_encoder_layer > 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ModelConfig":
        """Reads what `to_dict` gave.

        Raises:
            ModelError: a field is unknown, missing or of the wrong type.
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
    """The highest `ngram_order` for a vocabulary."""
    order = 1
    while (vocab_size + 1) ** (order + 1) < LARGEST_CONTEXT_KEY:
        order += 1
    return order
