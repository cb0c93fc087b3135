"""Attention, and the cache of its keys and values."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import ModelConfig
from tinychat.model.layers import Position, Turns, drop, make_norm


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, §3.2), with grouped keys and values where there are fewer of them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_head, self.kv_heads, self.d_head = config.n_head, config.kv_heads, config.d_head
        self.query = nn.Linear(config.d_model, config.n_head * config.d_head, bias=config.bias)
        self.key = nn.Linear(config.d_model, config.kv_heads * config.d_head, bias=config.bias)
        self.value = nn.Linear(config.d_model, config.kv_heads * config.d_head, bias=config.bias)
        self.output = nn.Linear(config.d_model, config.d_model, bias=config.bias) if config.output_projection else None
        self.qk_norm = make_norm(config, config.d_head, affine=False) if config.qk_norm else None
        self.dropout = config.dropout if config.attention_dropout is None else config.attention_dropout

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        position: Position,
        positions: Tensor,
        turns: Turns,
        *,
        memory: Tensor | None = None,
        cache: "Cache | None" = None,
        layer: int = 0,
        used: int | None = None,
    ) -> Tensor:
        """Looks from x [B, T, D] at x itself (and what the cache holds), or at `memory` [B, S, D].

        Args:
            mask: added to the scores, [B or 1, 1, T, S]: 0 where a query may look, −∞ where not; None: everywhere.
            turns: what `position` makes of the positions.
            used: how many slots of the cache to look at.
        """
        query, key, value = self.project(x, position, turns, memory)
        if memory is None and cache is not None:
            key, value = cache.write(layer, key, value, positions)
            key, value = key[:, :, :used].to(query.dtype), value[:, :, :used].to(query.dtype)
        out = attend(query, key, value, mask, self.dropout if self.training else 0.0)
        out = out.transpose(1, 2).flatten(2)  # [B, T, D]
        return out if self.output is None else self.output(out)

    def project(
        self, x: Tensor, position: Position, turns: Turns, memory: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [B, H, T, K], keys and values [B, H_kv, S, K], normalized and turned to their places."""
        seen = x if memory is None else memory
        query = _split(self.query(x), self.n_head)  # [B, H, T, K]
        key = _split(self.key(seen), self.kv_heads)  # [B, H_kv, S, K]
        value = _split(self.value(seen), self.kv_heads)
        if self.qk_norm is not None:
            query, key = self.qk_norm(query), self.qk_norm(key)
        if memory is None:
            query, key = position.rotate(query, turns), position.rotate(key, turns)
        return query, key, value


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """softmax(query · keyᵀ / √K) · value.

    By hand on CPU: there torch's fused kernel takes two to six times as long for small heads.

    Args:
        query: [B, H, T, K].
        key: [B, H_kv, S, K], where H_kv divides H.
        value: as key.
        mask: added to the scores, [B or 1, 1, T, S], of the queries' type: 0 where a query may look, −∞ where not.
        dropout: share of the weights set to 0.
    """
    if query.shape[1] != key.shape[1]:
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    if query.device.type != "cpu":
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    batch, heads, time, width = query.shape
    scale = width**-0.5
    rows, columns = query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2)  # [B·H, T, K], [B·H, K, S]
    if mask is None or len(mask) > 1:
        scores = (rows @ columns).view(batch, heads, time, -1) * scale
        scores = (scores if mask is None else scores + mask).flatten(0, 1)
    else:  # one mask for all rows goes into the product, which saves four passes over the scores
        scores = torch.baddbmm(mask[0], rows, columns, alpha=scale)  # [B·H, T, S]
    weights = scores.softmax(dim=-1)
    out: Tensor = drop(weights, dropout) @ value.flatten(0, 1)  # [B·H, T, K]
    return out.view(batch, heads, time, width)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(query · keyᵀ / √K), [B, H, T, S]: what `attend` multiplies the values by. Arguments as there."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    weights: Tensor = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What a mask that is True where a query may look adds to the scores: 0 there, −∞ elsewhere."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


def _split(x: Tensor, heads: int) -> Tensor:
    """[B, T, H·K] → [B, H, T, K]."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


class Cache:
    """The keys and values of the places already seen, in tensors whose shape never changes.

    A slot is a place: what stands at place p is written to slot p, so that prefill and decoding are one code path and
    a row can be taken back to any earlier place by writing over what follows.

    Args:
        config: of the model that fills it.
        batch: rows.
    """

    def __init__(self, config: ModelConfig, batch: int, device: torch.device, dtype: torch.dtype) -> None:
        self.length = config.context
        shape = (config.n_layer, batch, config.kv_heads, self.length, config.d_head)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        # The first slots say that nothing stands before the first place: −1 is no token.
        self.looks_back = config.looks_back
        self.ids = torch.full((batch, self.looks_back + self.length), -1, dtype=torch.long, device=device)

    def write(self, layer: int, keys: Tensor, values: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Writes [B, H, T, K] keys and values at `positions` ([T] or [B, T]); returns those of all slots."""
        if positions.dim() == 1:
            self.keys[layer].index_copy_(2, positions, keys.to(self.keys.dtype))
            self.values[layer].index_copy_(2, positions, values.to(self.values.dtype))
        else:
            rows = torch.arange(keys.shape[0], device=keys.device).unsqueeze(1)  # [B, 1]
            self.keys[layer].transpose(1, 2)[rows, positions] = keys.transpose(1, 2).to(self.keys.dtype)
            self.values[layer].transpose(1, 2)[rows, positions] = values.transpose(1, 2).to(self.values.dtype)
        return self.keys[layer], self.values[layer]

    def select(self, rows: list[int]) -> "Cache":
        """A cache whose rows are those given, in that order; one may be taken twice."""
        other = copy.copy(self)
        index = torch.tensor(rows, device=self.keys.device)
        other.keys, other.values = self.keys.index_select(1, index), self.values.index_select(1, index)
        other.ids = self.ids.index_select(0, index)
        return other

    def put(self, rows: list[int], other: "Cache") -> None:
        """Writes the rows of another cache of the same shape over the rows given."""
        self.keys[:, rows], self.values[:, rows], self.ids[rows] = other.keys, other.values, other.ids

    def with_earlier(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Notes ids [B, T] at their places; returns them with the `looks_back` ones before each row's first."""
        rows = torch.arange(ids.shape[0], device=ids.device).unsqueeze(1)
        places = positions.expand(ids.shape)  # [B, T]
        self.ids[rows, places + self.looks_back] = ids
        reach = torch.arange(self.looks_back + ids.shape[1], device=ids.device)
        return self.ids[rows, places[:, :1] + reach]  # [B, looks_back + T]
