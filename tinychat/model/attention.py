"""Attention, and what it is made of: norms, positions, dropout, attention to tokens, attention to turns.

Shapes: see `transformer.py`. Names of modules and parameters are part of the file format, and must not change.
"""

import math
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import ModelConfig
from tinychat.model.kv_cache import KVCache

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


class TurnMasks(NamedTuple):
    """Which of S slots belong to the turns of T positions: what `TurnAttention` needs to know of a conversation."""

    is_pooled: Tensor  # [B, T, T]: tokens of the same turn's message, up to the position
    # [B, G, T]: the index of the token that head g keeps: the (g + 1)-th of that message, or its last so far; below 0:
    # it is before the T positions, or there is none
    kept: Tensor
    goes_on: Tensor  # [B, 1, T, 1]: whether the turn began before the T positions
    before: Tensor  # [B]: the slot before the T positions; 0 if there is none
    ends: Tensor  # [B, T, S]: the last tokens of earlier turns

    @classmethod
    def find(cls, ids: Tensor, slots: Tensor, turn_token: int, reply_token: int, heads: int) -> Self:
        """Find the turns of ids [B, S], for those at consecutive `slots`, [T] or [B, T], and so many key heads.

        A turn begins with each `turn_token`; what is before the first one is a turn, too. Its message is what follows
        that token, up to the next `reply_token`.
        """
        slots = slots.expand(ids.shape[0], -1)  # [B, T]; no `len`, which an exporter would take for a constant
        begins, order = ids == turn_token, torch.arange(ids.shape[1], device=ids.device)  # [B, S], [S]
        turns = begins.long().cumsum(1)  # [B, S]: their numbers
        table = torch.full_like(F.pad(turns, (0, 1)), -1)  # [B, S + 1]: the slot where each turn begins
        # What no turn begins with writes −1 for turn 0, which begins before all slots. ONNX has no `cummax` for this.
        begin = table.scatter(1, turns * begins, torch.where(begins, order, -1)).gather(1, turns)  # [B, S]

        def since_then(counts: Tensor) -> Tensor:
            """[B, S], from the first slot on → [B, S], from the beginning of the turn on."""
            return counts - counts.gather(1, begin.clamp(min=0)) * (begin >= 0)

        is_message = ~begins & (since_then((ids == reply_token).long().cumsum(1)) == 0)  # [B, S]
        turn, first = turns.gather(1, slots), slots[:, :1]  # [B, T], [B, 1]
        count = since_then(is_message.long().cumsum(1)).gather(1, slots)  # [B, T]: tokens of the message so far
        head = torch.arange(1, heads + 1, device=ids.device).view(-1, 1)  # [G, 1]
        kept = (begin.gather(1, slots) - first).unsqueeze(1) + head.minimum(count.unsqueeze(1))  # [B, G, T]
        is_same = (turn.unsqueeze(2) == turn.unsqueeze(1)) & (slots.unsqueeze(1) <= slots.unsqueeze(2))  # [B, T, T]
        before = (first - 1).clamp(min=0)  # [B, 1]
        return cls(
            is_pooled=is_same & is_message.gather(1, slots).unsqueeze(1),
            kept=kept.masked_fill(count.unsqueeze(1) == 0, -1),
            goes_on=((turn == turns.gather(1, before)) & (first > 0))[:, None, :, None],
            before=before[:, 0],
            ends=F.pad(begins[:, 1:], (0, 1)).unsqueeze(1) & (order < slots.unsqueeze(2)),
        )

    def keep(self, value: Tensor) -> Tensor:
        """[B, G, T, K], of tokens → [B, G, T, K], of the kept tokens of their turns; zeros where `kept` is below 0."""
        kept = self.kept.unsqueeze(-1)  # [B, G, T, 1]
        return value.gather(2, kept.clamp(min=0).expand(-1, -1, -1, value.shape[-1])) * (kept >= 0)


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
        turns: TurnMasks | None = None,
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
    so a question finds the message that shares a word with it. The scores of all heads are added up, so that all look
    at the same turn: heads that disagreed would mix the words of two. The value in key head g is that of the message's
    (g + 1)-th token, so that all heads together know how a quote begins; a shorter message gives its last one. Query
    heads that share a key head gather the same. There are no positions. Attention may go to no turn, whose score is
    linear in the token, and whose value is zeros.
    """

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__(config, layer)
        qkv_bias = config.bias if config.qkv_bias is None else config.qkv_bias
        self.turn_gate = nn.Linear(config.d_model, config.kv_heads, bias=qkv_bias)
        self.no_turn = nn.Linear(config.d_model, 1, bias=qkv_bias)

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
        turns: TurnMasks | None = None,
    ) -> Tensor:
        """Return what the queries of x gather from `turns`, [B, T, D]; mask, rotary tables and encoder have no part."""
        assert turns is not None
        query, key, value = self.pool(x, turns, cache)
        if cache is not None:
            assert positions is not None
            key, value = cache.update(self.layer, key, value, positions)
            key, value = key[:, :, :num_slots].to(query.dtype), value[:, :, :num_slots].to(query.dtype)
        weights = self.weigh(x, query, key, turns)  # [B, T, S]
        if self.training:
            weights = dropout(weights, self.dropout)
        out = weights @ self._per_head(value).transpose(1, 2).flatten(2)  # [B, T, H·K]
        return out if self.output is None else self.output(out)

    def pool(self, x: Tensor, turns: TurnMasks, cache: KVCache | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [B, H, T, K], and the keys and values [B, G, T, K] of the turns up to each of T tokens."""
        query = self.query(x).unflatten(2, (self.n_head, -1)).transpose(1, 2)
        key, value = (part(x).unflatten(2, (self.kv_heads, -1)).transpose(1, 2) for part in (self.key, self.value))
        gates = self.turn_gate(x).sigmoid().transpose(1, 2).unsqueeze(-1)  # [B, G, T, 1]
        joined = turns.is_pooled.to(key.dtype) @ (key * gates).transpose(1, 2).flatten(2)  # [B, T, G·K]
        key, value = joined.unflatten(2, (self.kv_heads, -1)).transpose(1, 2), turns.keep(value)
        if cache is not None:
            rows = torch.arange(len(x), device=x.device)
            earlier = (
                one[self.layer, rows, :, turns.before].unsqueeze(2).to(x.dtype) for one in (cache.keys, cache.values)
            )
            is_earlier = turns.goes_on & (turns.kept < 0).unsqueeze(-1)  # [B, G, T, 1]
            key, value = key + turns.goes_on * next(earlier), value + is_earlier * next(earlier)
        return query + self._per_head(key), key, value

    def weigh(self, x: Tensor, query: Tensor, key: Tensor, turns: TurnMasks) -> Tensor:
        """Return the weights [B, T, S] of the slots where turns end; what is left of 1 goes to no turn."""
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        group = self.n_head // self.kv_heads  # of heads that share a key: their queries are added up
        query = torch.stack([query[:, one::group] for one in range(group)]).sum(0)  # [B, G, T, K]
        query, key = (one.transpose(1, 2).flatten(2) for one in (query, key))  # [B, T, G·K], [B, S, G·K]
        scores = (query @ key.transpose(1, 2) * self.scale).masked_fill(~turns.ends, float("-inf"))  # [B, T, S]
        return torch.cat((self.no_turn(x), scores), dim=-1).softmax(dim=-1)[..., 1:]

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
