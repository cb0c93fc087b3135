"""Mix what the layers predict with n-gram counts of the training text and of the context itself.

**Counts.** The distribution after a context of k tokens is the one after its last k − 1, corrected by counts (MacKay,
Peto 1995, §3: a hierarchical Dirichlet language model): p_k(v) = (count_k(v) + α_k · p_{k−1}(v)) / (total_k + α_k),
from p_{−1} = 1 / V. The layers predict α_k, the strength of the shorter context, at each position, corrected by a small
network that sees how much was counted, as a compressor chooses its weights (Mahoney 2005, §3).

A text predicts itself too well: its own counts would earn a trust that they deserve in no other text. So the text is
cut into folds, and in training a token is predicted from the counts of the other folds. (Leaving out only the token
itself, as Ney et al. 1994 do, is not enough: the names of a scene recur in that scene and nowhere else.)

**Copying.** The same recursion goes on, from the longest context of the training text, with what followed the newest
occurrences of the last 2, 3, … tokens in the context (see `context_index.py`): an induction head (Olsson et al. 2022)
that need not be learned. It predicts names, refrains and all else that counts of another text miss.

Shapes: see `transformer.py`; also N contexts counted, E entries: pairs of a context and a token that followed it,
J = config.ngram_order context lengths in the training text, K = len(CONTEXT_LENGTHS) in the context, each of which
counts at most R = MAX_RECENT occurrences, G = EVIDENCE_WIDTH.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import CONTEXT_LENGTHS, EVIDENCE_WIDTH, LARGEST_TABLE, MAX_RECENT, ModelConfig
from tinychat.model.context_index import recent_followers

MIN_CONTEXT_COUNT = 2
"""Occurrences below which a context is dropped: its last tokens say as much."""
MOST_COUNTED = 4_000_000
"""Tokens counted, at most; by then common contexts are well known."""
INITIAL_STRENGTHS = (2.0, 1.0)
"""log α of contexts in the training text and in the context."""
INITIAL_SHARE = -1.0
"""Logit of the layers' share in the mixture."""
MAX_STRENGTH = 30.0
"""|log α| is clamped here, far beyond any count."""
MIN_PROBABILITY = 1e-12
"""Keeps the logarithm, and its gradient, finite."""
COUNT_BUFFERS = ("contexts", "widths", "tokens", "counts")
"""What is counted, as it is stored: see `NGrams`."""

Ids = npt.NDArray[np.integer]
Counts = Mapping[str, Tensor]
"""Counts by the names of `COUNT_BUFFERS`."""


class TokenContext(NamedTuple):
    """The tokens that precede each of the T predictions of a pass."""

    padded_ids: Tensor  # [B, P + T], the T newest ids preceded by the P before them; −1 where there is none
    history: Tensor  # [B, S], all ids that are known, from the oldest on; −1 before a row's first
    slots: Tensor  # [T] or [B, T], where the T newest are in the history
    followers: Tensor | None = None  # [B, T, K, R], as of `recent_followers`, of a longer history; None: of `history`


class NGrams(nn.Module):
    """Mix three distributions: the layers', that of n-gram counts, and that of what the context repeats.

    A context of tokens t₁ … t_k is numbered by the digits t₁ + 1 … t_k + 1 in base V: no two contexts share a number,
    and longer contexts have higher ones. Contexts are stored in that order, and their entries one after the other.
    """

    contexts: Tensor  # [N], their numbers, ascending; the first is 0, the empty context
    widths: Tensor  # [N], number of different tokens that follow each
    tokens: Tensor  # [E], those tokens
    counts: Tensor  # [E], how often each followed
    powers: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vocab_size, self.longest, self.has_matches = config.vocab_size, config.ngram_order - 1, config.matches
        levels = config.ngram_order + len(CONTEXT_LENGTHS)
        self.share = nn.Linear(config.d_model, 1)  # logit of the layers' share in the mixture
        self.strength = nn.Linear(config.d_model, levels)  # log α of each level
        self.variety = nn.Parameter(torch.zeros(levels))
        """growth of log α with the log of the number of different followers (Witten, Bell 1991)"""
        self.recency = nn.Parameter(torch.zeros(len(CONTEXT_LENGTHS), MAX_RECENT))
        """log of what an occurrence in the context counts, the newest first"""
        self.evidence = nn.Linear(2 * levels, EVIDENCE_WIDTH)  # of how much was counted
        self.correction = nn.Linear(EVIDENCE_WIDTH, levels + 1, bias=False)  # of strengths and share
        powers = torch.tensor([self.vocab_size**digit for digit in range(self.longest)], dtype=torch.long)
        self.register_buffer("powers", powers, persistent=False)
        # Nothing is counted yet: only the empty context, which nothing follows.
        self._set_counts(
            torch.zeros(1, dtype=torch.long), *(torch.zeros(size, dtype=torch.short) for size in (1, 0, 0))
        )
        self.fold_tables: CountTable | None = None  # counts of each fold, in training
        self.initialize()

    def initialize(self) -> None:
        """Set the initial weights of the layers: the same strengths and shares everywhere."""
        for layer in (self.share, self.strength, self.correction):
            nn.init.zeros_(layer.weight)
        self.evidence.reset_parameters()
        nn.init.constant_(self.share.bias, INITIAL_SHARE)
        with torch.no_grad():
            self.strength.bias.fill_(INITIAL_STRENGTHS[0])
            self.strength.bias[self.longest + 1 :] = INITIAL_STRENGTHS[1]
        if not self.has_matches:
            self.silence_matches()

    @torch.no_grad()
    def silence_matches(self) -> None:
        """Set the weights that let what the context repeats count for nothing, in any engine; they are not trained.

        Training keeps them, as it finds no match (see `_count_context`): their gradients are 0.
        """
        order = self.longest + 1
        self.recency.requires_grad_(False).fill_(-MAX_STRENGTH)
        self.variety[order:] = 0
        levels = len(self.variety)
        self.evidence.weight[:, order:levels] = 0  # of sums
        self.evidence.weight[:, levels + order :] = 0  # of varieties
        for layer in (self.strength, self.correction):
            layer.weight[order:levels] = 0
        self.strength.bias[order:] = INITIAL_STRENGTHS[1]

    def count(self, folds: Sequence[Ids], earlier: "Counts | None" = None) -> None:
        """Count the n-grams of a training text, in the first `MOST_COUNTED` / len(folds) ids of each of its folds.

        `earlier` counts, of the text that the model was trained on before, are kept: see `unite`.
        """
        counted = [fold[: MOST_COUNTED // len(folds)] for fold in folds]
        least = MIN_CONTEXT_COUNT
        while (levels := count_levels(counted, self.vocab_size, self.longest, least)) is None:
            least += max(1, least // 2)
        joined = Level(*(np.concatenate(values, axis=-1) for values in zip(*levels, strict=True)))
        totals = joined.counts.sum(0)
        if earlier is not None:
            joined, totals = unite(joined, Level(*(earlier[name].numpy() for name in COUNT_BUFFERS)), self.vocab_size)
        contexts, widths, tokens, counts, total = (
            torch.from_numpy(values).to(self.powers.device) for values in (*joined, totals)
        )
        self._set_counts(contexts, widths.short(), tokens.short(), total.int())
        self.fold_tables = tabulate_folds(self.table, widths, tokens, counts)

    def forward(self, logits: Tensor, x: Tensor, context: TokenContext, folds: Tensor | None = None) -> Tensor:
        """Return the log-probabilities of the mixture, [B, T, V], in f32.

        Args:
            logits: [B, T, V], of the layers.
            x: [B, T, D], hidden states, from which shares and strengths are predicted.
            context: the tokens so far.
            folds: [B], the fold of each row, whose own counts are left out; None: none is left out.
        """
        levels, share = self._levels(x, context, folds)
        counted: Tensor | float = 1 / self.vocab_size
        for level in levels:
            counted = level.smooth(counted)
        mixed = torch.lerp(counted, logits.float().softmax(dim=-1), share)  # type: ignore[arg-type]
        return mixed.clamp(min=MIN_PROBABILITY).log()

    def components(
        self, logits: Tensor, x: Tensor, context: TokenContext, folds: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the probabilities by layers, counts and copies [B, T, 3, V], and their shares [B, T, 3], in f32.

        Copies are what the counts of the context add. Where nothing matches, they have no probabilities and no share.
        Arguments as `forward`.
        """
        (of_text, of_context), share = self._levels(x, context, folds)
        counted = of_text.smooth(1 / self.vocab_size)
        weights, left = of_context.weights()
        copied = (weights.unsqueeze(-2) @ of_context.counts).squeeze(-2)  # sums to what is not left
        copied = copied / copied.sum(dim=-1, keepdim=True).clamp(min=MIN_PROBABILITY)
        predicted = torch.stack((logits.float().softmax(dim=-1), counted, copied), dim=-2)
        return predicted, torch.cat((share, (1 - share) * left, (1 - share) * (1 - left)), dim=-1)

    def _levels(
        self, x: Tensor, context: TokenContext, folds: Tensor | None
    ) -> tuple[tuple["Levels", "Levels"], Tensor]:
        """Return the counts of the training text and of the context, and the share of the layers, [B, T, 1]."""
        counts, totals, varieties = self._count_text(context.padded_ids, x.shape[1], folds)
        recent, recent_totals, recent_varieties = self._count_context(context)
        varieties = torch.cat((varieties, recent_varieties), dim=-1)  # [B, T, J + K]
        evidence = torch.cat((torch.cat((totals, recent_totals), dim=-1).log1p(), varieties), dim=-1)
        gates = F.relu(self.evidence(evidence))  # [B, T, G]
        corrections = self.correction(gates).float()  # [B, T, J + K + 1]
        strength = self.strength(x).float() + self.variety * varieties + corrections[..., :-1]
        alpha = strength.clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()  # [B, T, J + K]
        share = (self.share(x).float() + corrections[..., -1:]).sigmoid()
        order = counts.shape[-2]
        of_text, of_context = alpha[..., :order], alpha[..., order:]
        if not self.has_matches:
            of_context = of_context.detach()  # their gradients are 0, but for rounding
        return (Levels(counts, totals, of_text), Levels(recent, recent_totals, of_context)), share

    def _count_text(self, padded_ids: Tensor, time: int, folds: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return counts [B, T, J, V], their sums and varieties [B, T, J], of the training text. See `forward`."""
        rows = self._find_contexts(padded_ids, time)  # [B, T, J]
        counts, totals, varieties = (values[rows] for values in self.table.buffers())
        if folds is not None and self.fold_tables is not None:
            fold_rows = rows + folds[:, None, None] * (len(self.contexts) + 1)
            own, totals, varieties = (values[fold_rows] for values in self.fold_tables.buffers())
            counts = counts - own
        return counts.float(), totals, varieties

    def _count_context(self, context: TokenContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return counts [B, T, K, V], their sums and varieties [B, T, K], of the context, weighted by recency."""
        followers = context.followers
        if followers is None:
            followers = recent_followers(context.history, context.slots, self.vocab_size)  # [B, T, K, R]
        if not self.has_matches:
            followers = torch.full_like(followers, -1)
        weights = self.recency.float().clamp(-MAX_STRENGTH, MAX_STRENGTH).exp().expand(followers.shape)
        counts = weights.new_zeros(*followers.shape[:-1], self.vocab_size + 1)  # one column more for none, −1
        counts = counts.scatter_add(-1, followers.long() + 1, weights)[..., 1:]
        return counts, counts.sum(-1), (counts > 0).sum(-1).float().log1p()

    def _find_contexts(self, padded_ids: Tensor, time: int) -> Tensor:
        """Return the table row of each position's contexts, shortest first, [B, T, J]; the last row if not counted."""
        if not self.longest:  # unigrams alone: the empty context
            return padded_ids.new_zeros(len(padded_ids), time, 1)
        before = padded_ids.shape[1] - time
        digits = torch.stack([padded_ids[:, before - back :][:, :time] + 1 for back in range(self.longest)], dim=-1)
        keys = torch.where(digits.cummin(-1).values > 0, (digits * self.powers).cumsum(-1), -1)
        found = torch.searchsorted(self.contexts, keys).clamp_(max=len(self.contexts) - 1)
        rows = torch.where(self.contexts[found] == keys, found, len(self.contexts))
        return torch.cat((torch.zeros_like(rows[..., :1]), rows), dim=-1)

    def _set_counts(self, *values: Tensor) -> None:
        """Store contexts, widths, tokens and counts, and build their table."""
        for name, buffer in zip(COUNT_BUFFERS, values, strict=True):
            self.register_buffer(name, buffer)
        self.table = tabulate(self.widths, self.tokens, self.counts, self.vocab_size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Resize the buffers to the counts that are loaded, if those are valid for this vocabulary."""
        found = [state_dict.get(prefix + name) for name in COUNT_BUFFERS]
        if all(isinstance(one, Tensor) and one.dim() == 1 and not one.is_floating_point() for one in found):
            contexts, widths, tokens, counts = loaded = [one.to(self.powers.device) for one in found if one is not None]
            if (
                not all(torch.equal(one, getattr(self, name)) for one, name in zip(loaded, COUNT_BUFFERS, strict=True))
                and 0 < len(contexts) == len(widths) <= max(1, LARGEST_TABLE // self.vocab_size)
                and len(tokens) == len(counts) == int(widths.clamp(min=0).sum())
                and all(bool((values >= 0).all()) for values in (widths, tokens, counts))
                and bool((tokens < self.vocab_size).all())
            ):
                self._set_counts(*loaded)
                self.fold_tables = None  # they are of other counts
        super()._load_from_state_dict(state_dict, prefix, *others)


class Levels(NamedTuple):
    """Counts after contexts of L lengths, the shortest first, and how much of its weight each passes on."""

    counts: Tensor  # [B, T, L, V]
    totals: Tensor  # [B, T, L], sums of the counts
    alpha: Tensor  # [B, T, L], strengths of the shorter contexts

    def weights(self) -> tuple[Tensor, Tensor]:
        """Return the weight of each count, [B, T, L], and the weight left to what is shorter than all, [B, T, 1]."""
        divisors = self.totals + self.alpha
        # The recursion unrolled: a context's weight is the product of all that longer ones pass on.
        reach = (self.alpha / divisors).flip(-1).cumprod(-1).flip(-1)  # [B, T, L]
        longer = torch.cat((reach[..., 1:], torch.ones_like(reach[..., :1])), dim=-1)
        return longer / divisors, reach[..., :1]

    def smooth(self, base: Tensor | float) -> Tensor:
        """Return the distribution after the longest context, [B, T, V], from that after less than the shortest."""
        weights, left = self.weights()
        return (weights.unsqueeze(-2) @ self.counts).squeeze(-2) + left * base


class CountTable(nn.Module):
    """Counts as a dense table, one row per context and an empty one after them, and statistics of each row.

    For folds, there is one such table after the other, and the statistics are of the counts without the fold.
    """

    counts: Tensor  # [N + 1, V], bf16; [folds · (N + 1), V], up to 255
    totals: Tensor  # [N + 1] or [folds · (N + 1)], sum of each row
    varieties: Tensor  # [N + 1] or [folds · (N + 1)], log(1 + number of counts above 0)

    def __init__(self, counts: Tensor, totals: Tensor, varieties: Tensor) -> None:
        super().__init__()
        for name, values in (("counts", counts), ("totals", totals), ("varieties", varieties)):
            self.register_buffer(name, values, persistent=False)


def tabulate(widths: Tensor, tokens: Tensor, counts: Tensor, vocab_size: int) -> CountTable:
    """Return the table of counts that are stored as in `NGrams`."""
    # bf16 is exact up to 256, and beyond to 1 part in 256.
    table = torch.zeros(len(widths) + 1, vocab_size, dtype=torch.bfloat16, device=counts.device)
    if len(tokens):
        table[_rows(widths), tokens.long()] = counts.to(table.dtype)
    return CountTable(table, table.sum(1, dtype=torch.float32), (table > 0).sum(1).float().log1p())


def tabulate_folds(table: CountTable, widths: Tensor, tokens: Tensor, counts: Tensor) -> CountTable:
    """Return the tables of the counts [folds, E] of each fold; `table` counts all together."""
    rows, columns = _rows(widths), tokens.long()
    own = torch.zeros(len(counts), *table.counts.shape, dtype=torch.uint8, device=counts.device)
    own[:, rows, columns] = counts.clamp(max=255).to(own.dtype)
    others = table.counts[rows, columns].float() - own[:, rows, columns]  # [folds, E]
    totals = torch.zeros(own.shape[:2], device=counts.device)
    varieties = totals.index_add(1, rows, (others > 0).float()).log1p()
    return CountTable(own.flatten(0, 1), totals.index_add(1, rows, others).flatten(), varieties.flatten())


def _rows(widths: Tensor) -> Tensor:
    """Return the row of each entry, [E]."""
    return torch.arange(len(widths), device=widths.device).repeat_interleave(widths.long())


class Level(NamedTuple):
    """The contexts of one length, by their numbers, and what was counted after them."""

    contexts: npt.NDArray[np.int64]  # [N]
    widths: npt.NDArray[np.int64]  # [N]
    tokens: npt.NDArray[np.int64]  # [E]
    counts: npt.NDArray[np.int64]  # [folds, E]


def count_levels(folds: Sequence[Ids], vocab_size: int, longest: int, least: int) -> list[Level] | None:
    """Count what follows each context of up to `longest` tokens that occurs at least `least` times.

    No n-gram spans two folds. There is one level per context length from 0 on; None if the contexts are too many for a
    table.
    """
    ids = np.concatenate(folds).astype(np.int64)
    fold_of = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    begins = np.flatnonzero(np.diff(fold_of, prepend=-1))
    contexts = np.zeros(1, dtype=np.int64)
    rows = np.zeros(len(ids), dtype=np.int64)  # of the context before each token; −1 where it is dropped
    levels: list[Level] = []
    for _ in range(longest + 1):
        positions = np.flatnonzero(rows >= 0)
        grams = rows[positions] * vocab_size + ids[positions]
        occurrences = np.bincount(grams, minlength=len(contexts) * vocab_size)
        different = np.flatnonzero(occurrences)
        numbers = np.full(len(occurrences), -1, dtype=np.int64)
        numbers[different] = np.arange(len(different))
        cells = fold_of[positions] * len(different) + numbers[grams]
        by_fold = np.bincount(cells, minlength=len(folds) * len(different)).reshape(len(folds), len(different))
        widths = np.bincount(different // vocab_size, minlength=len(contexts))
        levels.append(Level(contexts, widths, different % vocab_size, by_fold))
        kept = different[occurrences[different] >= least]
        if not len(kept):
            break
        # An n-gram that is kept is the context of the token after it.
        contexts = contexts[kept // vocab_size] * vocab_size + kept % vocab_size + 1
        if (sum(len(level.contexts) for level in levels) + len(contexts)) * vocab_size > LARGEST_TABLE:
            return None
        numbers[:] = -1
        numbers[kept] = np.arange(len(kept))
        rows = np.full(len(ids) + 1, -1, dtype=np.int64)
        rows[positions + 1] = numbers[grams]
        rows = rows[:-1]
        rows[begins] = -1
    return levels


def unite(counted: Level, earlier: Level, vocab_size: int) -> tuple[Level, npt.NDArray[np.int64]]:
    """Return the contexts and entries of both, with the counts of each fold, [folds, E], and the counts in all, [E].

    Those are the higher of `counted`, over all folds, and of `earlier`, [E]. If the contexts are too many for a table,
    those that occur most are kept.
    """
    contexts = np.union1d(counted.contexts, earlier.contexts)
    cells, earlier_cells = (
        np.repeat(np.searchsorted(contexts, level.contexts), level.widths) * vocab_size + level.tokens
        for level in (counted, earlier)
    )
    all_cells = np.union1d(cells, earlier_cells)
    by_fold = np.zeros((len(counted.counts), len(all_cells)), dtype=np.int64)
    by_fold[:, np.searchsorted(all_cells, cells)] = counted.counts
    totals = by_fold.sum(0)
    places = np.searchsorted(all_cells, earlier_cells)
    totals[places] = np.maximum(totals[places], earlier.counts)
    rows = all_cells // vocab_size
    occurrences = np.bincount(rows, weights=totals, minlength=len(contexts))
    kept = np.zeros(len(contexts), dtype=bool)
    kept[np.argsort(-occurrences, kind="stable")[: LARGEST_TABLE // vocab_size]] = True
    widths, cells_kept = np.bincount(rows, minlength=len(contexts)), kept[rows]
    united = Level(contexts[kept], widths[kept], all_cells[cells_kept] % vocab_size, by_fold[:, cells_kept])
    return united, totals[cells_kept]
