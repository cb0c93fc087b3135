"""The architecture of a model, as plain values: what `config.json` and a recipe's `[model]` hold."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

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

    vocab_size: int
    context: int = 256
    """the most tokens that the model sees at once"""
    n_layer: int = 4
    n_head: int = 2
    n_kv_head: int | None = None
    """heads of keys and values, each shared by n_head / n_kv_head queries (Ainslie et al. 2023); None: n_head"""
    d_model: int = 128
    d_ff: int | None = None
    """width of the feed-forward; None: 4 · d_model, or two thirds of it where it is gated"""
    norm: str = "layernorm"
    norm_position: str = "pre"
    norm_affine: bool = False
    """whether norms have weights (and, with `bias`, biases)"""
    norm_eps: float = 1e-5
    final_norm: bool = True
    feed_forward: str = "relu2"
    position: str = "rotary"
    rotary_base: float = 10_000.0
    output_projection: bool = True
    bias: bool = False
    head_bias: bool | None = None
    """a bias on the output head; None: as `bias`"""
    qk_norm: bool = True
    """normalizes queries and keys in each head (Henry et al. 2020)"""
    scale_embedding: bool = False
    """embeddings times √d_model, as in Vaswani et al. 2017, §3.4"""
    tie_embeddings: bool = False
    dropout: float = 0.0
    attention_dropout: float | None = None
    """of the weights of attention; None: as `dropout`"""
    earlier_tokens: int = 0
    """adds embeddings of this many earlier tokens at the input, each from a table of its own"""
    token_pairs: bool = False
    """adds an embedding of the pair (previous token, this token) at the input"""
    ngram_order: int = 0
    """counts n-grams up to this n in the training text; what they say, and what matches in the context, is mixed with
    what the layers say; 0: the layers alone"""
    initialization: str = "zero"
    """`zero`: output projections and head start at 0; `gpt2`: normal, 0.02 (Radford et al. 2019, §2.3); `torch`: its"""
    n_encoder_layer: int = 0
    """layers of an encoder whose output the decoder looks at; 0: a decoder alone"""
    source_vocab_size: int | None = None
    """vocabulary of the encoder; None: the decoder's"""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), cast("type", field.type)
            holds = isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
            self._check(field.name, holds, f"it is of type {getattr(kind, '__name__', kind)}")
        for name, choices in (
            ("norm", NORMS),
            ("norm_position", NORM_POSITIONS),
            ("feed_forward", FEED_FORWARDS),
            ("position", POSITIONS),
            ("initialization", INITIALIZATIONS),
        ):
            if getattr(self, name) not in choices:
                raise ModelError(f"{name} is {getattr(self, name)!r}", f"it is one of {', '.join(choices)}")
        for name in ("vocab_size", "context", "n_head", "n_kv_head", "d_model", "d_ff", "source_vocab_size"):
            value = getattr(self, name)
            self._check(name, value is None or value >= 1, "it must be at least 1")
        for name in ("n_layer", "n_encoder_layer", "earlier_tokens", "ngram_order"):
            self._check(name, getattr(self, name) >= 0, "it must not be negative")
        self._check("n_head", self.d_model % self.n_head == 0, f"it must divide d_model, {self.d_model}")
        self._check("n_kv_head", self.n_head % self.kv_heads == 0, f"it must divide n_head, {self.n_head}")
        for name in ("dropout", "attention_dropout"):
            self._check(name, 0 <= (getattr(self, name) or 0) < 1, "it must be at least 0 and below 1")
        self._check("norm_eps", 0 <= self.norm_eps < math.inf, "it must not be negative, and finite")
        self._check("rotary_base", 0 < self.rotary_base < math.inf, "it must be above 0, and finite")
        if self.position == "rotary":
            even = self.d_head % 2 == 0
            self._check("d_model", even, f"rotary positions need an even d_model / n_head, not {self.d_head}")
        if self.norm == "none":
            self._check("qk_norm", not self.qk_norm, "it needs a norm: layernorm or rmsnorm")
        if self.token_pairs:
            self._check(
                "token_pairs", self.vocab_size <= LARGEST_PAIR_VOCABULARY,
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
        return max(self.earlier_tokens, int(self.token_pairs), self.ngram_order - 1)

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
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            names = ", ".join(unknown)
            raise ModelError(f"unknown part of an architecture: {names}", "was it made by a newer tinychat?")
        try:
            return cls(**values)
        except TypeError as error:
            raise ModelError(f"the architecture cannot be read: {error}") from None


def longest_ngram(vocab_size: int) -> int:
    """The highest `ngram_order` for a vocabulary."""
    order = 1
    while (vocab_size + 1) ** (order + 1) < LARGEST_CONTEXT_KEY:
        order += 1
    return order
