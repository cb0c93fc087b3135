"""A model as a function of ids, in operations that a graph of ONNX has.

It stands apart from `formats/onnx.py`, which refuses what cannot be exported before torch is imported.

Shapes: as in `ngrams.py`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT
from tinychat.model.loading import load_model
from tinychat.model.ngrams import MAX_STRENGTH, MIN_PROBABILITY, NGrams, TokenContext
from tinychat.store.models import ModelInfo


class FromIds(nn.Module):
    """A model with no argument but the ids: the exporter passes all that there are."""

    def __init__(self, info: ModelInfo) -> None:
        super().__init__()
        self.model = load_model(info)
        if self.model.ngrams is not None:
            self.model.ngrams = Mixture(self.model.ngrams)  # type: ignore[assignment]

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids)  # type: ignore[no-any-return]


class Mixture(nn.Module):
    """What `NGrams` computes for unigrams and matches, without look-ups: all tokens get all of their counts."""

    def __init__(self, ngrams: NGrams) -> None:
        super().__init__()
        self.ngrams = ngrams

    def forward(self, logits: Tensor, x: Tensor, context: TokenContext, folds: None = None) -> Tensor:
        """Return the log-probabilities of the mixture, [B, T, V], for all of the text at once."""
        ngrams = self.ngrams
        unigrams = ngrams.table.unigrams.view(1, 1, 1, -1).expand(*logits.shape[:2], 1, -1)
        counts = torch.cat((unigrams, self._count_recent(context.history)), dim=2).flatten(0, 1)  # [P, 1 + K, V]
        totals, varieties = counts.sum(-1), (counts > 0).float().sum(-1).log1p()
        weights = ngrams.weigh(x, totals, varieties)
        counted = weights.uniform / ngrams.vocab_size + weights.text * counts[:, 0]
        counted = weights.passed_on * counted + (weights.recent.unsqueeze(1) @ counts[:, 1:]).squeeze(1)  # [P, V]
        mixed = torch.lerp(counted.view_as(logits), logits.softmax(dim=-1), weights.share.view(*logits.shape[:2], 1))
        return mixed.clamp(min=MIN_PROBABILITY).log()

    def _count_recent(self, ids: Tensor) -> Tensor:
        """Return what followed the last 2, 3, … tokens up to each of ids [B, T] earlier in them: [B, T, K, V]."""
        ids = F.pad(ids, (MAX_RECENT, 0), value=-1)  # so many slots are there always; −1: no token
        slots = torch.arange(ids.shape[1], device=ids.device)  # [S]
        same = (slots < slots[MAX_RECENT:].unsqueeze(-1)).unsqueeze(0)  # [1, T, S]
        if not self.ngrams.has_matches:
            same = torch.zeros_like(same)
        found: list[Tensor] = []
        for length in range(1, CONTEXT_LENGTHS[-1] + 1):
            token = F.pad(ids, (length - 1, 0), value=-1)[:, : ids.shape[1]]  # [B, S], that so many before each slot
            own = token[:, MAX_RECENT:].unsqueeze(-1)  # [B, T, 1]
            same = same & (token.unsqueeze(1) == own) & (own >= 0)
            if length in CONTEXT_LENGTHS:
                newest = torch.where(same, slots, -1).topk(MAX_RECENT).values  # [B, T, R]
                recency = self.ngrams.recency[len(found)].clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()
                followers = ids.gather(1, (newest + 1).flatten(1)).view_as(newest).clamp(min=0)
                counts = torch.zeros((*newest.shape[:2], self.ngrams.vocab_size), device=ids.device)
                found.append(counts.scatter_add(2, followers, recency * (newest >= 0)))
        return torch.stack(found, dim=2)
