"""The model on one page: ids → embeddings → blocks → logits, decoder-only or encoder-decoder.

In reading order: norms, positions, dropout, attention, feed-forward, block, model, loss. Every option of
`ModelConfig` is a branch of one attention and one block. Shapes, here and in the other files of this folder:

    B  batch: rows                   D  d_model                       V  vocabulary
    T  time: query positions         H  attention heads               P  config.lookback: ids before the first input
    S  keys: slots of the cache,     G  key/value heads, G divides H
       or the encoder's positions    K  head width

Names of modules and parameters are part of the file format (`model.safetensors`) and must not change.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.errors import ModelError
from tinychat.model.config import ModelConfig
from tinychat.model.kv_cache import KVCache
from tinychat.model.ngrams import NGrams, TokenContext

IGNORED = -100
"""Target id that the loss skips: padding."""
NO_TOKEN = -1
"""Id that pads a source shorter than others of its batch."""
LAYERS_LOSS_WEIGHT = 0.3
"""Weight of the layers' own loss beside that of their mixture with counts, in training."""

# --- norms --------------------------------------------------------------------------------------------------------


def make_norm(config: ModelConfig, width: int, affine: bool | None = None) -> nn.Module:
    """Return the norm that the config names, over a last axis of `width`; `affine` overrides `config.norm_affine`."""
    affine = config.norm_affine if affine is None else affine
    if config.norm == "layernorm":  # Ba et al. 2016
        return nn.LayerNorm(width, eps=config.norm_eps, elementwise_affine=affine, bias=config.bias)
    return RMSNorm(width, eps=config.norm_eps, elementwise_affine=affine) if config.norm == "rmsnorm" else nn.Identity()


class RMSNorm(nn.RMSNorm):
    """x / √(mean(x²) + ε), x [..., D] (Zhang, Sennrich 2019, §3); for one vector on a CPU 3 times as fast as torch."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.device.type != "cpu" or x.dtype != torch.float32:
            return super().forward(x)
        assert self.eps is not None
        mean = x.square().sum(-1, keepdim=True) / x.shape[-1]  # [..., 1]
        normed = x * (mean + self.eps).rsqrt()
        return normed if self.weight is None else normed * self.weight


# --- positions ----------------------------------------------------------------------------------------------------

RotaryTables = tuple[Tensor, Tensor]
"""Cosines and signed sines of some positions, each [T, R] or [B, 1, T, R] for the R coordinates that are rotated."""


class PositionalEncoding(nn.Module):
    """The base of all encodings, and `none`. `positions` is [T], shared by all rows, or [B, T]."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return the embeddings x [B, T, D] with what the encoding adds to them."""
        return x

    def rotary_tables(self, positions: Tensor) -> RotaryTables | None:
        """Return what `rotate` needs at positions [T] or [B, T]: tables [T, R] or [B, 1, T, R]; None: no rotation."""
        return None


class Learned(PositionalEncoding):
    """One learned vector per position, added to the embedding (Gehring et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.context_length, config.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table(positions)  # type: ignore[no-any-return]


class Sinusoidal(PositionalEncoding):
    """Sines in even coordinates, cosines in odd ones, added to the embedding (Vaswani et al. 2017, §3.5)."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        angles = position_angles(config.context_length, config.d_model, 10_000.0)  # [context, ⌈D/2⌉]
        table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, : config.d_model]  # [context, D]
        self.register_buffer("table", table, persistent=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table[positions].to(x.dtype)


class Rotary(PositionalEncoding):
    """Rotate pairs of query and key coordinates by an angle that grows with the position (Su et al. 2021, §3.2.2).

    A pair is coordinates k and k + R/2, as in the Llama of `transformers`, of the first R of a head's coordinates.
    """

    cosine: Tensor
    sine: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        width, divisors = config.rotary_width, torch.tensor(config.rotary_divisors())  # [R/2]
        angles = position_angles(config.context_length, width, config.rotary_base, divisors)  # [context, R/2]
        self.register_buffer("cosine", torch.cat((angles.cos(), angles.cos()), dim=-1), persistent=False)
        self.register_buffer("sine", torch.cat((-angles.sin(), angles.sin()), dim=-1), persistent=False)

    def rotary_tables(self, positions: Tensor) -> RotaryTables | None:
        if positions.dim() == 2:
            positions = positions.unsqueeze(1)  # tables [B, 1, T, R], shared by all heads
        return self.cosine[positions], self.sine[positions]


def rotate(x: Tensor, tables: RotaryTables | None) -> Tensor:
    """Return queries or keys x [B, H, T, K] rotated to the positions of the tables; x itself for None."""
    if tables is None:
        return x
    cosine, sine = tables
    if (width := cosine.shape[-1]) < x.shape[-1]:
        return torch.cat((rotate(x[..., :width], tables), x[..., width:]), dim=-1)
    if cosine.dtype != x.dtype:
        cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
    return torch.addcmul(x * cosine, x.roll(x.shape[-1] // 2, dims=-1), sine)


def position_angles(length: int, width: int, base: float, divisors: Tensor | float = 1.0) -> Tensor:
    """Return position · base^(−2k/width) / divisor in radians: [length, ⌈width / 2⌉], computed in f64, as f32."""
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(base) / width)) / divisors
    return torch.outer(torch.arange(length, dtype=torch.float64), frequencies).float()


POSITIONS = {"learned": Learned, "none": PositionalEncoding, "rotary": Rotary, "sinusoidal": Sinusoidal}

# --- dropout ------------------------------------------------------------------------------------------------------


class Dropout(nn.Module):
    """Zero a fraction `rate` < 1 of the activations in training, scale up the rest (Srivastava et al. 2014, §4)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate) if self.training else x


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zero a fraction of x [...] and divide the rest by 1 − rate, on a CPU rounded to a multiple of 1 / 65,536.

    On a CPU, torch draws one random number for each activation, which takes a quarter of a training step. Cutting four
    16-bit numbers out of each 64-bit one takes a third of that.
    """
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    if not (threshold := round(rate * 2**16)):
        return x
    kept: Tensor = keep_mask(x.detach(), threshold)
    return x * kept.to(x.dtype).mul(2**16 / (2**16 - threshold))


@torch.library.custom_op("tinychat::keep_mask", mutates_args=())  # opaque, so that a compiler cannot redo the drawing
def keep_mask(x: Tensor, threshold: int) -> Tensor:
    """Return a random mask of the shape of x [...], False with probability threshold / 65,536."""
    drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    return drawn.view(torch.int16)[: x.numel()].view(x.shape) >= threshold - 2**15


@keep_mask.register_fake
def _(x: Tensor, threshold: int) -> Tensor:
    return torch.empty_like(x, dtype=torch.bool)


# --- attention ----------------------------------------------------------------------------------------------------


class Turns(NamedTuple):
    """Which of S slots belong to the turns of T positions: what `TurnAttention` needs to know of a conversation."""

    is_pooled: Tensor  # [B, 1, T, T]: tokens of the same turn's message, up to the position
    is_kept: Tensor  # [B, G, T, T]: the token of that message that head g keeps: the (g + 1)-th, or the last so far
    goes_on: Tensor  # [B, 1, T, 1]: whether the turn began before the T positions
    before: Tensor  # [B]: the slot before the T positions; 0 if there is none
    ends: Tensor  # [B, 1, T, S]: the last tokens of earlier turns

    @classmethod
    def find(cls, ids: Tensor, slots: Tensor, turn_token: int, reply_token: int, heads: int) -> Self:
        """Find the turns of ids [B, S], for those at consecutive `slots`, [T] or [B, T], and so many key heads.

        A turn begins with each `turn_token`; what is before the first one is a turn, too. Its message is what follows
        that token, up to the next `reply_token`.
        """
        slots = slots.expand(ids.shape[0], -1)  # [B, T]; no `len`, which an exporter would take for a constant
        begins, order = ids == turn_token, torch.arange(ids.shape[1], device=ids.device)  # [B, S], [S]
        turns = begins.long().cumsum(1)  # [B, S]: their numbers
        turn, before = turns.gather(1, slots), (slots[:, :1] - 1).clamp(min=0)  # [B, T], [B, 1]
        is_same = (turn.unsqueeze(2) == turns.unsqueeze(1)) & (order <= slots.unsqueeze(2))  # [B, T, S]
        is_message = ~(is_same & (ids == reply_token).unsqueeze(1)).any(-1) & ~begins.gather(1, slots)  # [B, T]
        number = is_same.long().sum(-1) - (turn > 0).long()  # [B, T]: of the token in its turn, from 1 on
        is_pooled = is_same.gather(2, slots.unsqueeze(1).expand(-1, slots.shape[1], -1)) & is_message.unsqueeze(1)
        is_last = ~F.pad(is_message[:, 1:], (0, 1)).unsqueeze(1) | (slots.unsqueeze(1) == slots.unsqueeze(2))
        kept = torch.arange(1, heads + 1, device=ids.device).view(-1, 1, 1)  # [G, 1, 1]
        number = number[:, None, None]  # [B, 1, 1, T]
        is_kept = is_pooled.unsqueeze(1) & ((number == kept) | ((number < kept) & is_last.unsqueeze(1)))
        return cls(
            is_pooled=is_pooled.unsqueeze(1),
            is_kept=is_kept,
            goes_on=((turn == turns.gather(1, before)) & (slots[:, :1] > 0))[:, None, :, None],
            before=before[:, 0],
            ends=(F.pad(begins[:, 1:], (0, 1)).unsqueeze(1) & (order < slots.unsqueeze(2))).unsqueeze(1),
        )


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, §3.2), to the sequence itself or to an encoder's output.

    With fewer key/value heads than query heads it is grouped-query attention (Ainslie et al. 2023, §2.2). `layer` is
    the index of its keys and values in a cache.
    """

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__()
        self.layer, self.n_head, self.kv_heads = layer, config.n_head, config.kv_heads
        width, qkv_bias = config.head_width, config.bias if config.qkv_bias is None else config.qkv_bias
        self.query = nn.Linear(config.d_model, config.n_head * width, bias=qkv_bias)
        self.key = nn.Linear(config.d_model, config.kv_heads * width, bias=qkv_bias)
        self.value = nn.Linear(config.d_model, config.kv_heads * width, bias=qkv_bias)
        joined = config.attention_width
        self.output = nn.Linear(joined, config.d_model, bias=config.bias) if config.output_projection else None
        self.query_norm = make_norm(config, width, affine=config.qk_norm_affine) if config.qk_norm else None
        self.key_norm = make_norm(config, width, affine=config.qk_norm_affine) if config.qk_norm else None
        self.scale = width**-0.5 if config.scale_scores else 1.0
        self.dropout = config.dropout if config.attention_dropout is None else config.attention_dropout

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        *,
        positions: Tensor | None = None,
        rotary: RotaryTables | None = None,
        encoded: Tensor | None = None,
        cache: KVCache | None = None,
        num_slots: int | None = None,
        causal: bool = False,
        turns: Turns | None = None,
    ) -> Tensor:
        """Return what the queries of x gather, [B, T, D].

        Args:
            x: [B, T, D].
            mask: added to the scores, [B or 1, 1, T, S]: 0 where a query may attend, −∞ elsewhere; None: everywhere.
            positions: [T] or [B, T], where a cache stores the keys and values; needed with a cache only.
            rotary: tables of these positions, for rotary position encoding.
            encoded: states of the encoder to attend to, [B, S, D]; None: self-attention.
            cache: of self-attention; it takes up the new keys and values.
            num_slots: number of its slots to attend to; None: all.
            causal: whether the mask is the causal one of T = S.
            turns: of the text, for `TurnAttention`.
        """
        query, key, value = self.project(x, rotary, encoded)
        if encoded is None and cache is not None:
            assert positions is not None
            key, value = cache.update(self.layer, key, value, positions)
            key, value = key[:, :, :num_slots].to(query.dtype), value[:, :, :num_slots].to(query.dtype)
        rate = self.dropout if self.training else 0.0
        out = attend(query, key, value, mask, rate, self.scale, causal=causal)  # [B, H, T, K]
        out = out.transpose(1, 2).flatten(2)  # [B, T, H·K]
        return out if self.output is None else self.output(out)

    def project(
        self, x: Tensor, rotary: RotaryTables | None = None, encoded: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [B, H, T, K], keys and values [B, G, S, K], normalized and rotated. Arguments as `forward`."""
        source = x if encoded is None else encoded
        query = self.query(x).view(*x.shape[:2], self.n_head, -1).transpose(1, 2)  # [B, H, T, K]
        key = self.key(source).view(*source.shape[:2], self.kv_heads, -1).transpose(1, 2)  # [B, G, S, K]
        value = self.value(source).view(*source.shape[:2], self.kv_heads, -1).transpose(1, 2)  # [B, G, S, K]
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if encoded is None:
            query, key = rotate(query, rotary), rotate(key, rotary)
        return query, key, value


class TurnAttention(Attention):
    """Attention to the turns of a conversation, each as a whole, from what the current one says.

    The key of a turn is the sum over its message of the tokens' keys, each times a gate from 0 to 1, as words are
    pooled to sentences in Yang et al. 2016, §2.2. A query is that sum of the current turn, plus the token's own query:
    so a question finds the message that shares a word with it. The value in key head g is that of the message's
    (g + 1)-th token, so that all heads together know how a quote begins; a shorter message gives its last one. There
    are no positions. Attention may go to no turn, whose score is 0 and value zeros.
    """

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__(config, layer)
        qkv_bias = config.bias if config.qkv_bias is None else config.qkv_bias
        self.turn_gate = nn.Linear(config.d_model, config.kv_heads, bias=qkv_bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        rotary: RotaryTables | None = None,
        encoded: Tensor | None = None,
        cache: KVCache | None = None,
        num_slots: int | None = None,
        causal: bool = False,
        turns: Turns | None = None,
    ) -> Tensor:
        """Return what the queries of x gather from `turns`, [B, T, D]; mask, rotary tables and encoder have no part."""
        assert turns is not None
        query, key, value = self.pool(x, turns, cache)
        if cache is not None:
            assert positions is not None
            key, value = cache.update(self.layer, key, value, positions)
            key, value = key[:, :, :num_slots].to(query.dtype), value[:, :, :num_slots].to(query.dtype)
        weights = self.weigh(query, key, turns)  # [B, H, T, S]
        if self.training:
            weights = dropout(weights, self.dropout)
        out = (weights @ self._per_head(value)).transpose(1, 2).flatten(2)  # [B, T, H·K]
        return out if self.output is None else self.output(out)

    def pool(self, x: Tensor, turns: Turns, cache: KVCache | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [B, H, T, K], and the keys and values [B, G, T, K] of the turns up to each of T tokens."""
        query = self.query(x).unflatten(2, (self.n_head, -1)).transpose(1, 2)
        key, value = (part(x).unflatten(2, (self.kv_heads, -1)).transpose(1, 2) for part in (self.key, self.value))
        gates = self.turn_gate(x).sigmoid().transpose(1, 2).unsqueeze(-1)  # [B, G, T, 1]
        key, value = turns.is_pooled.to(key.dtype) @ (key * gates), turns.is_kept.to(value.dtype) @ value
        if cache is not None:
            rows = torch.arange(len(x), device=x.device)
            earlier = (
                one[self.layer, rows, :, turns.before].unsqueeze(2).to(x.dtype) for one in (cache.keys, cache.values)
            )
            is_earlier = turns.goes_on & ~turns.is_kept.any(-1, keepdim=True)  # [B, G, T, 1]
            key, value = key + turns.goes_on * next(earlier), value + is_earlier * next(earlier)
        return query + self._per_head(key), key, value

    def weigh(self, query: Tensor, key: Tensor, turns: Turns) -> Tensor:
        """Return the weights [B, H, T, S] of the slots where turns end; what is left of 1 goes to no turn."""
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        scores = query @ self._per_head(key).transpose(2, 3) * self.scale
        return F.pad(scores.masked_fill(~turns.ends, float("-inf")), (1, 0)).softmax(dim=-1)[..., 1:]

    def _per_head(self, x: Tensor) -> Tensor:
        """[B, G, S, K] → [B, H, S, K]."""
        return x.repeat_interleave(self.n_head // self.kv_heads, dim=1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_rate: float = 0.0,
    scale: float | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """Return softmax(query · keyᵀ · scale + mask) · value, [B, H, T, K] (Vaswani et al. 2017, eq. 1).

    Queries are [B, H, T, K], keys and values [B, G, S, K]. The mask is [B or 1, 1, T, S], of the queries' type: 0 where
    a query may attend, −∞ elsewhere; None: everywhere. `dropout_rate` is the fraction of the weights to zero, the
    default of `scale` 1 / √K. `causal` says that the mask is the causal one of T = S.

    On a CPU it is written out: torch's fused kernel takes two to six times as long there for small heads. On a GPU, the
    fastest of its kernels (Dao 2023) take no mask, but know the causal one.
    """
    if query.shape[1] != key.shape[1]:
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)  # [B, H, S, K]
    if query.device.type != "cpu":
        mask = None if causal else mask
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_rate, is_causal=causal, scale=scale)
    batch, heads, time, width = query.shape
    scale = width**-0.5 if scale is None else scale
    rows, columns = query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2)  # [B·H, T, K], [B·H, K, S]
    if mask is None or len(mask) > 1:
        scores = (rows @ columns).view(batch, heads, time, -1) * scale
        scores = (scores if mask is None else scores + mask).flatten(0, 1)  # [B·H, T, S]
    else:  # a mask that all rows share goes into the product, which saves four passes over the scores
        scores = torch.baddbmm(mask[0], rows, columns, alpha=scale)  # [B·H, T, S]
    out: Tensor = dropout(scores.softmax(dim=-1), dropout_rate) @ value.flatten(0, 1)  # [B·H, T, K]
    return out.view(batch, heads, time, width)


def additive_mask(mask: Tensor, dtype: torch.dtype, window: int | None = None) -> Tensor:
    """Return a mask [..., T, S] as numbers to add to scores: 0 where it is True, −∞ elsewhere.

    With a `window`, only the newest slots of those that a causal mask allows are left to a query, that many.
    """
    if window is not None:
        slots = torch.arange(mask.shape[-1], device=mask.device)
        mask = mask & (slots >= mask.sum(dim=-1, keepdim=True) - window)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


# --- feed-forward -------------------------------------------------------------------------------------------------


class ReLU2(torch.autograd.Function):
    """relu(x)² of x [...] (So et al. 2021, §3), in fewer passes over memory than autograd takes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x.relu()
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.mul(ctx.saved_tensors[0]).mul_(2)


relu2: Callable[[Tensor], Tensor] = ReLU2.apply
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,  # Hendrycks, Gimpel 2016
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # as in GPT-2
    "relu": F.relu,
    "relu2": relu2,
    "swiglu": F.silu,  # of the gate: Shazeer 2020
}


class FeedForward(nn.Module):
    """output(activation(up(x))), or output(activation(gate(x)) · up(x)) where it is gated (SwiGLU, Shazeer 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.feed_forward_width
        self.up = nn.Linear(config.d_model, width, bias=config.bias)
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if config.feed_forward == "swiglu" else None
        self.output = nn.Linear(width, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.feed_forward]

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # [B, T, d_ff]
        hidden = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up  # [B, T, d_ff]
        return self.output(hidden)  # type: ignore[no-any-return]  # [B, T, D]


# --- block --------------------------------------------------------------------------------------------------------


class EncoderOutput(NamedTuple):
    """The encoder's states of a batch of sources, and what is added to the scores of cross-attention."""

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, 1, 1, S]: 0 at tokens, −∞ at padding


class Residual(nn.Module):
    """A sublayer with its residual connection, norm and dropout: x + f(norm(x)) (pre) or norm(x + f(x)) (post).

    With `onto`, f(norm(x)) is added to that instead of x.
    """

    def __init__(self, config: ModelConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.norm = make_norm(config, config.d_model)
        self.sublayer = sublayer
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, *args: object, onto: Tensor | None = None, **kwargs: object) -> Tensor:
        out: Tensor = self.sublayer(self.norm(x) if self.pre else x, *args, **kwargs)  # [B, T, D]
        x = (x if onto is None else onto) + (self.dropout(out) if self.training else out)
        return x if self.pre else self.norm(x)


class Block(nn.Module):
    """Self-attention, then cross-attention and feed-forward where the architecture has them; or all on one input."""

    def __init__(self, config: ModelConfig, layer: int, cross: bool) -> None:
        super().__init__()
        kind = TurnAttention if layer == config.turn_layer and not cross else Attention
        self.attention = Residual(config, kind(config, layer))
        self.cross_attention = Residual(config, Attention(config, layer)) if cross else None
        self.feed_forward = Residual(config, FeedForward(config)) if config.feed_forward != "none" else None
        self.parallel = config.parallel

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        encoder_output: EncoderOutput | None,
        rows: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        """[B, T, D] → [B, T, D], or [N, D] of N `rows` of the B · T; `options` are the keywords of self-attention."""
        out: Tensor = self.attention(x, mask, **options)
        if self.cross_attention is not None and encoder_output is not None:
            out = self.cross_attention(out, encoder_output.mask, encoded=encoder_output.states)
        if rows is not None:
            x, out = (states.flatten(0, 1).index_select(0, rows) for states in (x, out))
        return out if self.feed_forward is None else self.feed_forward(x if self.parallel else out, onto=out)


# --- model --------------------------------------------------------------------------------------------------------


class Stack(nn.Module):
    """Embeddings, blocks and the final norm: both encoder and decoder."""

    def __init__(self, config: ModelConfig, vocab_size: int, n_layer: int, cross: bool) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        # In the two tables below, row 0 belongs to id −1: no token.
        self.earlier = nn.ModuleList(
            nn.Embedding(vocab_size + 1, config.d_model) for _ in range(config.previous_token_embeddings)
        )
        self.pairs = nn.Embedding((vocab_size + 1) * vocab_size, config.d_model) if config.bigram_embedding else None
        self.position = POSITIONS[config.position](config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer, cross) for layer in range(n_layer))
        self.compiled: list[Callable[..., Tensor]] = []
        """the blocks as training runs them; empty where they are not compiled"""
        self.norm = make_norm(config, config.d_model) if config.final_norm and config.norm_position == "pre" else None

    def embed(self, ids: Tensor, padded_ids: Tensor, positions: Tensor) -> Tensor:
        """Return embeddings [B, T, D] of ids [B, T] at positions [T] or [B, T].

        `padded_ids` [B, P + T] precedes them by the P ids before, −1 where there are none.
        """
        x: Tensor = self.embedding(ids)
        time, before = ids.shape[1], self.config.lookback
        for distance, table in enumerate(self.earlier, start=1):
            x = x + table(padded_ids[:, before - distance :][:, :time] + 1)
        if self.pairs is not None:
            previous = padded_ids[:, before - 1 :][:, :time] + 1
            x = x + self.pairs(previous * self.embedding.num_embeddings + ids)
        if self.config.scale_embedding:
            x = x * self.config.d_model**0.5
        x = self.dropout(self.position.embed(x, positions))
        # Under autocast the residual stream takes its type here, so that no layer converts it back and forth.
        kind = x.device.type
        return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x

    def forward(
        self,
        ids: Tensor,
        padded_ids: Tensor,
        mask: Tensor | None,
        positions: Tensor,
        encoder_output: EncoderOutput | None = None,
        *,
        causal: bool = False,
        rows: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        """Return hidden states [B, T, D]; ids and positions as in `embed`, `options` as in `Block`.

        The mask is [B or 1, 1, T, S], True where a query may attend; None: everywhere. `causal` says that it is the
        causal one of T = S. With `rows` [N], of the B · T, only their states are returned, [N, D].
        """
        x = self.embed(ids, padded_ids, positions)
        masks = dict[int | None, Tensor | None]()
        for window in set(map(self.config.window, range(len(self.blocks)))):
            masks[window] = None if mask is None else additive_mask(mask, x.dtype, window)
        rotary = self.position.rotary_tables(positions)
        blocks: Iterable[Callable[..., Tensor]] = (self.training and self.compiled) or self.blocks
        for layer, block in enumerate(blocks):
            window = self.config.window(layer)
            own, options["causal"] = masks[window], causal and window is None
            of_block = rows if layer == len(self.blocks) - 1 else None
            x = block(x, own, encoder_output, of_block, positions=positions, rotary=rotary, **options)
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """A decoder-only or encoder-decoder transformer (Vaswani et al. 2017), with every option of `ModelConfig`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        source_size = config.source_vocab_size or config.vocab_size
        encoder_layers = config.n_encoder_layer
        self.encoder = Stack(config, source_size, encoder_layers, cross=False) if encoder_layers else None
        self.decoder = Stack(config, config.vocab_size, config.n_layer, cross=config.encoder_decoder)
        self.ngrams = NGrams(config) if config.ngram_order else None
        head_bias = config.bias if config.head_bias is None else config.head_bias
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=head_bias)
        if config.tie_embeddings:
            self.head.weight = self.decoder.embedding.weight  # Press, Wolf 2017
        self._initialize()

    def forward(
        self,
        ids: Tensor,
        *,
        encoder_output: EncoderOutput | None = None,
        cache: KVCache | None = None,
        start: int | Tensor = 0,
        num_slots: int | None = None,
        folds: Tensor | None = None,
        preceding: Tensor | None = None,
        followers: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of the token after each of `ids`, [B, T, V].

        Args:
            ids: [B, T]. Padding behind a shorter row changes nothing before it, and a cache overwrites it before it is
                attended to.
            encoder_output: what `encode` returned for the sources.
            cache: of the positions before `start`; it takes up `ids`.
            start: position of the first of `ids`; [B] where rows differ.
            num_slots: number of slots of the cache to attend to; None: all that can have been written.
            folds: [B], the fold of the counted text that each row is from (see `NGrams`); None: none.
            preceding: [B, P], ids before those of an uncached pass, `NO_TOKEN` where there are none: n-grams see them,
                and so do embeddings of previous tokens, but attention does not.
            followers: [B, T, K, R], what followed earlier occurrences, for n-grams (see `recent_followers`); None: find
                them in `preceding`, `ids` and the cache.
        """
        x, context = self._hidden_states(ids, encoder_output, cache, start, num_slots, preceding)
        context = context._replace(followers=followers)
        logits: Tensor = self.head(x)  # [B, T, V]
        return logits if self.ngrams is None else self.ngrams(logits, x, context, folds)

    def _hidden_states(
        self,
        ids: Tensor,
        encoder_output: EncoderOutput | None,
        cache: KVCache | None = None,
        start: int | Tensor = 0,
        num_slots: int | None = None,
        preceding: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, TokenContext]:
        """Return the decoder's states [B, T, D] of ids [B, T], or of `rows`, and the tokens that n-grams look at."""
        time = ids.shape[1]
        steps = torch.arange(time, device=ids.device)
        if isinstance(start, int):
            positions, num_slots = steps + start, num_slots or start + time  # [T]
        else:
            positions = steps + start.unsqueeze(1)  # [B, T]
        if cache is not None and num_slots is not None:
            cache.reserve(num_slots)
        slots = steps if cache is None else torch.arange(num_slots or cache.length, device=ids.device)  # [S]
        mask: Tensor | None = None
        # One token with no slot behind it may attend to all of them, unless some are outside of a window.
        if time > 1 or isinstance(start, Tensor) or self.config.attention_window is not None:
            mask = (slots <= positions.unsqueeze(-1)).unsqueeze(-3)  # causal: [1 or B, 1, T, S]
        history = ids if preceding is None else torch.cat((preceding, ids), dim=1)  # [B, S]
        ends = positions + (history.shape[1] - time if cache is None else 0)  # [T] or [B, T]
        if cache is None:
            padded_ids = self._pad(history)[:, -(self.config.lookback + time) :]  # [B, P + T]
        else:
            padded_ids = cache.update_ids(ids, positions)
            history = cache.ids[:, cache.lookback :][:, : len(slots)]
        causal = mask is not None and isinstance(start, int) and num_slots == time
        options: dict[str, Any] = {"cache": cache, "num_slots": num_slots, "causal": causal, "rows": rows}
        if self.config.turn_layer is not None:
            options["turns"] = self.find_turns(*((ids, steps) if cache is None else (history, positions)))
        x = self.decoder(ids, padded_ids, mask, positions, encoder_output, **options)
        return x, TokenContext(padded_ids, history, ends)

    def find_turns(self, ids: Tensor, slots: Tensor) -> Turns:
        """Return the turns of ids [B, S], for those at `slots` [T] or [B, T]."""
        config = self.config
        return Turns.find(ids, slots, config.turn_token, config.reply_token, config.kv_heads)

    def _pad(self, ids: Tensor) -> Tensor:
        """[B, T] → [B, P + T]: ids that nothing precedes."""
        return F.pad(ids, (self.config.lookback, 0), value=-1)

    def encode(self, source: Tensor) -> EncoderOutput:
        """Return the encoder's states of sources [B, S], padded with `NO_TOKEN`. Attention is bidirectional.

        Raises:
            ModelError: the model has no encoder.
        """
        if self.encoder is None:
            raise ModelError("this model has no encoder", "only a translation model reads a source")
        mask, ids = (source != NO_TOKEN)[:, None, None, :], source.clamp(min=0)  # [B, 1, 1, S], [B, S]
        states = self.encoder(ids, self._pad(ids), mask, torch.arange(source.shape[1], device=source.device))
        return EncoderOutput(states, additive_mask(mask, states.dtype))

    def loss(
        self,
        ids: Tensor,
        targets: Tensor,
        *,
        source: Tensor | None = None,
        folds: Tensor | None = None,
        preceding: Tensor | None = None,
        followers: Tensor | None = None,
    ) -> Tensor:
        """Return the mean cross-entropy of targets [B, T] after ids [B, T], in nats per target: a scalar, in f32.

        Targets are `IGNORED` where there is none; `source` is [B, S] as in `encode`, `folds`, `preceding` and
        `followers` are as in `forward`. In training, a model with n-grams also gets the gradient of what its layers
        predict alone, so that they learn the language themselves and not only what counts leave open.
        """
        encoder_output = None if source is None else self.encode(source)
        is_target, rows = targets != IGNORED, None
        # In conversations half of the tokens need no head and no feed-forward of the last layer. Their number differs
        # from batch to batch, which neither compiled blocks nor the graphs of a GPU can follow.
        last_block = self.decoder.blocks and not self.decoder.compiled
        if self.ngrams is None and ids.device.type == "cpu" and last_block and not is_target.all():
            rows = is_target.flatten().nonzero().squeeze(1)
            targets = targets.flatten()[rows]
        x, context = self._hidden_states(ids, encoder_output, preceding=preceding, rows=rows)
        logits: Tensor = self.head(x)
        if self.ngrams is None:
            return cross_entropy(logits, targets)
        context = context._replace(followers=followers)
        mixed, of_layers = self.ngrams.score(logits, x, context, targets.where(is_target, 0), folds)
        if self.training:
            mixed = mixed + LAYERS_LOSS_WEIGHT * (of_layers - of_layers.detach())  # changes the gradient, not the value
        return -(mixed * is_target).sum() / is_target.sum()

    def round_layers(self, dtype: torch.dtype) -> Self:
        """Convert the layers to a type such as bf16, and return the model; n-grams stay as they are, in f32.

        Counts beyond 256 have no bf16, and their small network decides how much all predictions count.
        """
        for child in self.children():
            if child is not self.ngrams:
                child.to(dtype)
        return self

    def new_cache(self, batch: int) -> KVCache:
        """Return an empty cache of `batch` rows, on the weights' device and of their type."""
        return KVCache(self.config, batch, self.head.weight.device, self.head.weight.dtype)

    def compile(self, *, on: bool = True) -> None:
        """Have training run compiled blocks from now on, or plain ones, as evaluation and decoding of any shape do."""
        for stack in self.stacks:
            stack.compiled = [torch.compile(block, dynamic=False) for block in stack.blocks] if on else []

    def matrices(self) -> list[nn.Parameter]:
        """Return the matrices inside the blocks: those that Muon orthogonalizes."""
        return [weight for stack in self.stacks for weight in stack.blocks.parameters() if weight.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        """Return all other parameters: embeddings, head, biases, weights of norms."""
        matrices = {id(weight) for weight in self.matrices()}
        return [weight for weight in self.parameters() if id(weight) not in matrices]

    @property
    def parameter_count(self) -> int:
        """The number of parameters; shared ones count once."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The encoder, where there is one, and the decoder."""
        return (self.decoder,) if self.encoder is None else (self.encoder, self.decoder)

    def _initialize(self) -> None:
        """Set the initial weights by `ModelConfig.initialization`; `torch` leaves torch's defaults."""
        if self.config.initialization == "torch":
            return
        zero = self.config.initialization == "zero"
        outputs = {module.output for module in self.modules() if isinstance(module, Attention | FeedForward)}
        layers = max(1, self.config.n_layer + self.config.n_encoder_layer)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.2 if zero else 0.02)
            elif isinstance(module, nn.Linear):
                if zero:
                    std = 0.0 if module in outputs or module is self.head else 0.5 * module.in_features**-0.5
                else:
                    std = 0.02 * (2 * layers) ** -0.5 if module in outputs else 0.02
                if module is not self.head or not self.config.tie_embeddings:
                    nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if self.ngrams is not None:
            self.ngrams.initialize()


def cross_entropy(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of logits [..., V] and targets [...] in nats, in f32, skipping `IGNORED` targets."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=IGNORED, reduction=reduction)
