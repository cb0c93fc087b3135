"""The cache of keys and values, by which each token is computed once. Shapes are those of `transformer.py`."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor

from tinychat.model.config import ModelConfig

FIRST_SLOTS = 1024
"""Slots of a cache on a CPU at first."""


class KVCache:
    """The keys and values of the positions that each row of a batch has read.

    Slot p holds position p, so that prefill and decoding run the same code, and a row returns to an earlier position by
    overwriting what follows it. On a CPU, a long context has few slots until `reserve` asks for more; on other devices
    the tensors keep their shapes, so that what was captured with them can be replayed.
    """

    def __init__(self, config: ModelConfig, batch: int, device: torch.device, dtype: torch.dtype) -> None:
        self.max_length, self.lookback = config.context_length, config.lookback
        self.length = min(FIRST_SLOTS, self.max_length) if device.type == "cpu" else self.max_length
        shape = (config.n_layer, batch, config.kv_heads, self.length, config.head_width)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)  # [layer, B, G, slots, K]
        self.values = torch.zeros_like(self.keys)
        # [B, P + slots]; the first P stay −1: no token precedes position 0.
        self.ids = torch.full((batch, self.lookback + self.length), -1, dtype=torch.long, device=device)

    def reserve(self, length: int) -> None:
        """Make sure that there are at least `length` slots, up to the context length; those in use stay as they are."""
        if length > self.length:
            more = min(max(length, 2 * self.length), self.max_length) - self.length
            self.keys, self.values = (F.pad(one, (0, 0, 0, more)) for one in (self.keys, self.values))
            self.ids = F.pad(self.ids, (0, more), value=-1)
            self.length += more

    def update(self, layer: int, keys: Tensor, values: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values [B, G, T, K] at `positions` [T] or [B, T]; return those of all slots [B, G, S, K]."""
        if positions.dim() == 1:
            self.keys[layer].index_copy_(2, positions, keys.to(self.keys.dtype))
            self.values[layer].index_copy_(2, positions, values.to(self.values.dtype))
        else:
            rows = torch.arange(keys.shape[0], device=keys.device).unsqueeze(1)  # [B, 1]
            self.keys[layer].transpose(1, 2)[rows, positions] = keys.transpose(1, 2).to(self.keys.dtype)
            self.values[layer].transpose(1, 2)[rows, positions] = values.transpose(1, 2).to(self.values.dtype)
        return self.keys[layer], self.values[layer]

    def update_ids(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Write ids [B, T] at `positions`; return them preceded by the P ids before each row's first, [B, P + T]."""
        rows = torch.arange(ids.shape[0], device=ids.device).unsqueeze(1)  # [B, 1]
        positions = positions.expand(ids.shape)  # [B, T]
        self.ids[rows, positions + self.lookback] = ids
        reach = torch.arange(self.lookback + ids.shape[1], device=ids.device)
        return self.ids[rows, positions[:, :1] + reach]

    def select(self, rows: list[int]) -> "KVCache":
        """Return a cache of the given rows in that order; a row may be taken twice."""
        other = copy.copy(self)
        index = torch.tensor(rows, device=self.keys.device)
        other.keys, other.values = self.keys.index_select(1, index), self.values.index_select(1, index)
        other.ids = self.ids.index_select(0, index)
        return other

    def write_rows(self, rows: list[int], other: "KVCache") -> None:
        """Overwrite the given rows with those of another cache, which was made from this one and may have grown."""
        self.reserve(other.length)
        self.keys[:, rows], self.values[:, rows], self.ids[rows] = other.keys, other.values, other.ids
