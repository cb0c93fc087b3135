"""What counting says comes next: n-grams of the training text, which the transformer corrects.

The distribution after a context of k tokens is that after its last k − 1, corrected by what was counted (MacKay, Peto
1995, §3: a hierarchical Dirichlet language model): p_k(v) = (count_k(v) + α_k · p_{k−1}(v)) / (total_k + α_k), from
p_{−1} = 1 / V. In training each token is left out of its own counts (Ney et al. 1994), as else the model would come to
trust what it will not find in other text.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tinychat.model.config import ModelConfig

LARGEST_TABLE = 1 << 24
"""numbers of the table that is looked up, contexts times vocabulary: 33 MB"""
FEWEST_MEETINGS = 2
"""A context that was met less often says nothing that its last tokens do not say as well."""
MOST_COUNTED = 4_000_000
"""tokens; what follows common contexts is known by then"""


@dataclass(frozen=True)
class Level:
    """The contexts of one length, in the order of their keys, and what was counted after them."""

    keys: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]
    """how many different tokens follow each"""
    tokens: npt.NDArray[np.int64]
    """[sum of widths]: they, in ascending order for each context"""
    counts: npt.NDArray[np.int64]
    """how often each was met"""


class NGrams(nn.Module):
    """Counts, and how far they are trusted.

    A context of tokens t₁ … t_k is the number whose digits in base V are t₁ + 1 … t_k + 1: no two contexts have the
    same, and longer ones have higher ones. Contexts are held in that order; what is counted is held as what follows
    each, one context after the other.
    """

    contexts: Tensor
    widths: Tensor
    tokens: Tensor
    counts: Tensor
    powers: Tensor
    table: Tensor
    totals: Tensor
    variety: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vocab_size, self.longest = config.vocab_size, config.ngram_order - 1
        # log α of each length, and how much it grows with the logarithm of how many tokens follow a context
        self.concentration = nn.Parameter(torch.tensor([[2.0, 0.0]]).repeat(config.ngram_order, 1))
        self.trust = nn.Linear(config.d_model, 1)
        nn.init.zeros_(self.trust.weight)
        nn.init.ones_(self.trust.bias)
        self.leave_one_out = False
        """whether what is trained on is what was counted"""
        powers = torch.tensor([self.vocab_size**place for place in range(self.longest)], dtype=torch.long)
        self.register_buffer("powers", powers, persistent=False)
        # Nothing is counted yet: there is the empty context, and nothing follows it.
        self._hold(torch.zeros(1, dtype=torch.long), *(torch.zeros(size, dtype=torch.short) for size in (1, 0, 0)))

    def count(self, ids: npt.NDArray[np.integer]) -> None:
        """Counts a text, whose tokens will be left out of their own counts from now on.

        Args:
            ids: [N]; of a long text the beginning is counted.
        """
        ids = ids[:MOST_COUNTED]
        meetings = FEWEST_MEETINGS
        most = max(1, LARGEST_TABLE // self.vocab_size)
        levels = self._levels(ids, meetings, most)
        while sum(len(level.keys) for level in levels) > most:
            meetings += max(1, meetings // 2)
            levels = self._levels(ids, meetings, most)
        parts = zip(*((level.keys, level.widths, level.tokens, level.counts) for level in levels), strict=True)
        contexts, widths, tokens, counts = (torch.from_numpy(np.concatenate(part)) for part in parts)
        device = self.powers.device
        self._hold(contexts.to(device), widths.short().to(device), tokens.short().to(device), counts.int().to(device))
        self.leave_one_out = True

    def forward(self, known: Tensor, left_out: Tensor | None = None) -> Tensor:
        """The logarithm of the probability of each token of the vocabulary.

        Args:
            known: [B, before + T], the tokens with those before them; −1 where there is none. The last T are answered.
            left_out: [B, T], tokens that follow and are left out of the counts; None: none. −100 is no token.

        Returns:
            [B, T, V], f32.
        """
        nodes = self._nodes(known)  # [B, T, n]: shortest context first
        met = self.table[nodes].float()  # [B, T, n, V]
        totals = self.totals[nodes]  # [B, T, n]
        if left_out is not None:
            own = left_out.clamp(min=0)[:, :, None, None].expand(*nodes.shape, 1)
            once = met.gather(-1, own).clamp(max=1) * (left_out >= 0)[:, :, None, None]
            met = met.scatter_add(-1, own, -once)
            totals = totals - once.squeeze(-1)
        strength = (self.concentration[:, 0] + self.concentration[:, 1] * self.variety[nodes]).float().exp()
        share = strength / (totals + strength)  # [B, T, n]: what is left to the shorter context
        # The share that reaches each length from the longest: 1, share_n, share_n · share_{n−1} …
        reach = torch.cat((torch.ones_like(share[..., :1]), share.flip(-1).cumprod(-1)), dim=-1).flip(-1)
        own_weight = reach[..., 1:] / (totals + strength)
        mixed = (own_weight.unsqueeze(-2) @ met).squeeze(-2)  # [B, T, V]
        return (mixed + reach[..., :1] / self.vocab_size).log()

    def _nodes(self, known: Tensor) -> Tensor:
        """The row of the table for the context of each length, of each place; the last row where it was not met."""
        time = known.shape[1] - self.longest
        digits = torch.stack([known[:, self.longest - back :][:, :time] + 1 for back in range(self.longest)], dim=-1)
        keys = (digits * self.powers).cumsum(-1)
        keys = torch.where(digits.cummin(-1).values > 0, keys, -1)
        places = torch.searchsorted(self.contexts, keys).clamp_(max=len(self.contexts) - 1)
        nodes = torch.where(self.contexts[places] == keys, places, len(self.contexts))
        return torch.cat((torch.zeros_like(nodes[..., :1]), nodes), dim=-1)

    def _levels(self, ids: npt.NDArray[np.integer], meetings: int, most: int) -> list[Level]:
        """What follows the contexts of each length that were met so often; it ends early where there are too many."""
        size = self.vocab_size
        keys = np.zeros(1, dtype=np.int64)
        nodes = np.zeros(len(ids), dtype=np.int64)  # of the context before each token; −1 where it is not kept
        levels: list[Level] = []
        for _ in range(self.longest + 1):
            (places,) = (nodes >= 0).nonzero()
            grams = nodes[places] * size + ids[places]
            met = np.bincount(grams, minlength=len(keys) * size)
            (different,) = met.nonzero()
            counts, tokens = met[different], different % size
            levels.append(Level(keys, np.bincount(different // size, minlength=len(keys)), tokens, counts))
            kept = different[counts >= meetings]
            if not len(kept) or sum(len(level.keys) for level in levels) > most:
                break
            # An n-gram that is kept is the context of the token after it.
            keys = keys[kept // size] * size + kept % size + 1
            numbers = np.full(len(met), -1, dtype=np.int64)
            numbers[kept] = np.arange(len(kept))
            nodes = np.full(len(ids) + 1, -1, dtype=np.int64)
            nodes[places + 1] = numbers[grams]
            nodes = nodes[:-1]
        return levels

    def _hold(self, contexts: Tensor, widths: Tensor, tokens: Tensor, counts: Tensor) -> None:
        """Takes up counts, and lays them out for looking up: a row for each context, and an empty one behind them."""
        for name, values in (("contexts", contexts), ("widths", widths), ("tokens", tokens), ("counts", counts)):
            self.register_buffer(name, values)
        table = torch.zeros(len(contexts) + 1, self.vocab_size, device=contexts.device)
        if len(tokens):
            rows = torch.arange(len(contexts), device=contexts.device).repeat_interleave(widths.long())
            table[rows, tokens.long()] = counts.float()
        # bf16 tells counts up to 256 apart, and higher ones to a part in 256.
        for name, values in (
            ("table", table.bfloat16()),
            ("totals", table.bfloat16().float().sum(1)),
            ("variety", (table > 0).sum(1).float().log1p()),
        ):
            self.register_buffer(name, values, persistent=False)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Makes room for as many contexts as are loaded, if they can be counts of this vocabulary."""
        held = [state_dict.get(prefix + name) for name in ("contexts", "widths", "tokens", "counts")]
        if all(isinstance(values, Tensor) for values in held):
            contexts, widths, tokens, counts = (values.to(self.powers.device) for values in held)  # type: ignore[union-attr]
            fit = (
                all(
                    values.dim() == 1 and not values.is_floating_point()
                    for values in (contexts, widths, tokens, counts)
                )
                and 0 < len(contexts) == len(widths) <= LARGEST_TABLE
                and len(tokens) == len(counts) == int(widths.clamp(min=0).sum())
                and all(bool((values >= 0).all()) for values in (widths, tokens, counts))
                and bool((tokens < self.vocab_size).all())
            )
            if fit:
                self._hold(contexts, widths, tokens, counts)
        super()._load_from_state_dict(state_dict, prefix, *others)
