"""Mix what the layers predict with n-gram counts of the training text and with a copy mechanism.

**Counts.** The distribution after a context of k tokens is the one after its last k − 1, corrected by counts (MacKay,
Peto 1995, §3: a hierarchical Dirichlet language model): p_k(v) = (count_k(v) + α_k · p_{k−1}(v)) / (total_k + α_k),
from p_{−1} = 1 / V. The layers predict α_k, the strength of the shorter context, at each position.

A text predicts itself too well: its own counts would earn a trust that they deserve in no other text. So the text is
cut into folds, and in training a token is predicted from the counts of the other folds. (Leaving out only the token
itself, as Ney et al. 1994 do, is not enough: the names of a scene recur in that scene and nowhere else.)

**Copying.** Each earlier position proposes the token that followed it, weighted by how many of the last tokens also
precede it: an induction head (Olsson et al. 2022) that need not be learned, or a compressor's match model (Mahoney
2005, §3.2). It predicts names, refrains and all else that counts of another text miss.

Shapes: see `transformer.py`; also N contexts counted, E entries: pairs of a context and a token that followed it,
J = config.ngram_order context lengths.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.model.config import LARGEST_TABLE, LONGEST_MATCH, ModelConfig

MIN_CONTEXT_COUNT = 2
"""Occurrences below which a context is dropped: its last tokens say as much."""
MOST_COUNTED = 4_000_000
"""Tokens counted, at most; by then common contexts are well known."""
INITIAL_STRENGTH = 2.0
"""log α."""
INITIAL_SHARES = (-1.0, -3.0)
"""Logits of the shares of layers and copies in the mixture; that of counts is 0."""
MAX_STRENGTH = 30.0
"""|log α| is clamped here, far beyond any count."""
MIN_PROBABILITY = 1e-12
"""Keeps the logarithm, and its gradient, finite."""
COPY_BLOCK = 256
"""Positions that the copy mechanism compares at a time on a CPU."""
INITIAL_LENGTH_WEIGHT = 1.0
"""Log weight of each matching token, initially."""
COUNT_BUFFERS = ("contexts", "widths", "tokens", "counts")
"""What is counted, as it is stored: see `NGrams`."""

Ids = npt.NDArray[np.integer]
Counts = Mapping[str, Tensor]
"""Counts by the names of `COUNT_BUFFERS`."""


class TokenContext(NamedTuple):
    """The tokens that precede each of the T predictions of a pass."""

    padded_ids: Tensor  # [B, P + T], the T newest ids preceded by the P before them; −1 where there is none
    history: Tensor  # [B, S], all ids from position 0 on
    positions: Tensor  # [T] or [B, T], the positions of the T newest


class NGrams(nn.Module):
    """Mix three distributions: the layers', that of n-gram counts, and the copy mechanism's.

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
        self.vocab_size, self.longest = config.vocab_size, config.ngram_order - 1
        self.trust = nn.Linear(config.d_model, 1)  # inverse temperature of the counted distribution
        self.share = nn.Linear(config.d_model, 2)
        """logits of the shares of layers and copies in the mixture; that of counts is 0"""
        self.matches = CopyMechanism()
        self.worth = nn.Parameter(torch.zeros(LONGEST_MATCH + 1))
        """added to the logit of the copies' share, by the length of the longest match"""
        self.strength = nn.Linear(config.d_model, config.ngram_order)  # log α of each context length
        self.variety = nn.Parameter(torch.zeros(config.ngram_order))
        """growth of log α with the log of the number of different followers (Witten, Bell 1991)"""
        powers = torch.tensor([self.vocab_size**digit for digit in range(self.longest)], dtype=torch.long)
        self.register_buffer("powers", powers, persistent=False)
        # Nothing is counted yet: only the empty context, which nothing follows.
        self._set_counts(
            torch.zeros(1, dtype=torch.long), *(torch.zeros(size, dtype=torch.short) for size in (1, 0, 0))
        )
        self.fold_tables: CountTable | None = None  # counts of each fold, in training
        self.initialize()

    def initialize(self) -> None:
        """Set the initial weights of the layers: counts are taken as they are, with the same shares everywhere."""
        for layer, bias in ((self.trust, 1.0), (self.strength, INITIAL_STRENGTH)):
            nn.init.zeros_(layer.weight)
            nn.init.constant_(layer.bias, bias)
        nn.init.zeros_(self.share.weight)
        with torch.no_grad():
            self.share.bias.copy_(torch.tensor(INITIAL_SHARES))

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
        predicted, shares = self.components(logits, x, context, folds)
        return (shares.unsqueeze(-2) @ predicted).squeeze(-2).clamp(min=MIN_PROBABILITY).log()

    def components(
        self, logits: Tensor, x: Tensor, context: TokenContext, folds: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the probabilities by layers, counts and copies [B, T, 3, V], and their shares [B, T, 3], in f32.

        Where nothing matches, copies have no probabilities and no share. Arguments as `forward`.
        """
        counted = (self.trust(x).float() * self.counted_logprobs(context.padded_ids, x, folds)).softmax(dim=-1)
        copied, lengths = self.matches(context.history, context.positions, self.vocab_size)  # [B, T, V], [B, T]
        of_layers, of_copies = self.share(x).float().unbind(dim=-1)  # [B, T]
        of_copies = (of_copies + self.worth.float()[lengths]).masked_fill(lengths == 0, -torch.inf)
        shares = torch.stack((of_layers, torch.zeros_like(of_layers), of_copies), dim=-1).softmax(dim=-1)
        return torch.stack((logits.float().softmax(dim=-1), counted, copied), dim=-2), shares

    def counted_logprobs(self, padded_ids: Tensor, x: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return the log-probability of each token by counts alone, [B, T, V], in f32. Arguments as `forward`."""
        rows = self._find_contexts(padded_ids, x.shape[1])  # [B, T, J]
        counts, totals, varieties = (values[rows] for values in self.table.buffers())  # [B, T, J, V], [B, T, J] twice
        if folds is not None and self.fold_tables is not None:
            fold_rows = rows + folds[:, None, None] * (len(self.contexts) + 1)
            own, totals, varieties = (values[fold_rows] for values in self.fold_tables.buffers())
            counts = counts - own
        strength = self.strength(x).float() + self.variety * varieties  # [B, T, J]
        alpha = strength.clamp(-MAX_STRENGTH, MAX_STRENGTH).exp()
        passed_on = alpha / (totals + alpha)  # [B, T, J], weight left to the shorter context
        # The recursion unrolled: a context's weight is the product of all that longer ones pass on.
        reach = torch.cat((torch.ones_like(alpha[..., :1]), passed_on.flip(-1).cumprod(-1)), dim=-1).flip(-1)
        weights = reach[..., 1:] / (totals + alpha)  # [B, T, J]
        mixed: Tensor = (weights.unsqueeze(-2) @ counts.float()).squeeze(-2)  # [B, T, V]
        return (mixed + reach[..., :1] / self.vocab_size).clamp(min=MIN_PROBABILITY).log()

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


class CopyMechanism(nn.Module):
    """Predict the tokens that followed earlier positions, weighted by how well what precedes these matches."""

    def __init__(self) -> None:
        super().__init__()
        self.worth = nn.Parameter(torch.full((1,), INITIAL_LENGTH_WEIGHT))  # log weight per matching token
        self.distance = nn.Parameter(torch.zeros(1))  # decrease of log weight per log of the distance

    def forward(self, history: Tensor, positions: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
        """Predict the token after each of `positions`, [T] or [B, T], consecutive in each row.

        `history` [B, S] holds the ids from position 0 on; those behind the last of `positions` are ignored.

        Returns:
            Probabilities [B, T, V], in f32, all 0 where nothing matches; and the length in tokens of the longest match
            [B, T], at most `LONGEST_MATCH`.
        """
        positions = positions if positions.dim() == 2 else positions.unsqueeze(0)  # [1 or B, T]
        if history.device.type != "cpu" or positions.shape[1] <= COPY_BLOCK:
            return self._copy(history, positions, vocab_size)
        # On a CPU, blocks of positions: their pairs stay in its cache, and later slots need not be compared.
        blocks = [positions[:, first : first + COPY_BLOCK] for first in range(0, positions.shape[1], COPY_BLOCK)]
        parts = [self._copy(history[:, : int(block.max()) + 1], block, vocab_size) for block in blocks]
        copied, lengths = zip(*parts, strict=True)
        return torch.cat(copied, dim=1), torch.cat(lengths, dim=1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Accept scalars too, as the first models stored them."""
        for name in (prefix + "worth", prefix + "distance"):
            if isinstance(state_dict.get(name), Tensor) and state_dict[name].numel() == 1:
                state_dict[name] = state_dict[name].reshape(1)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _copy(self, history: Tensor, positions: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
        """Do the work of `forward` for positions [1 or B, T]."""
        slots = torch.arange(history.shape[1], device=history.device)
        distances = positions.unsqueeze(-1) - slots  # [1 or B, T, S]
        lengths = self._match_lengths(history, positions, earlier=distances > 0)  # [B, T, S]
        scores = self.worth.float() * lengths - self.distance.float() * distances.clamp(min=1).float().log()
        unmatched = lengths == 0
        weights = scores.masked_fill(unmatched, -1e9).softmax(dim=-1).masked_fill(unmatched, 0)  # [B, T, S]
        followers = F.pad(history[:, 1:], (0, 1)).clamp(min=0)  # [B, S]; slots without a token have no weight
        if positions.shape[1] == 1:
            copied = weights.new_zeros(len(history), 1, vocab_size).scatter_add_(2, followers.unsqueeze(1), weights)
        else:
            copied = weights @ F.one_hot(followers, vocab_size).to(weights.dtype)
        return copied, lengths.amax(dim=-1).int()

    def _match_lengths(self, history: Tensor, positions: Tensor, earlier: Tensor) -> Tensor:
        """Return how many tokens up to each slot equal those up to each position, [B, T, S].

        `earlier` [1 or B, T, S] says whether a slot lies before the position; the rest as in `_copy`.
        """
        time, slots, more = positions.shape[1], history.shape[1], LONGEST_MATCH - 1
        # −1 and −2 pad both sides before position 0: they equal no token, nor each other.
        steps = positions[:, :1] + torch.arange(-more, time, device=history.device)
        tokens = history.short()  # the smallest type: all of this is memory traffic
        last = tokens.gather(1, steps.clamp(min=0).expand(len(history), -1)).masked_fill(steps < 0, -1)
        padded = F.pad(tokens, (more, 0), value=-2)
        if time == 1:  # in decoding, the number of operations decides
            equal = last.unsqueeze(1) == padded.unfold(1, LONGEST_MATCH, 1)  # [B, S, LONGEST_MATCH], newest token last
            counts = equal.flip(-1).to(torch.uint8).cumprod(dim=-1).sum(dim=-1).unsqueeze(1)
            return counts * earlier
        equal = last.unsqueeze(-1) == padded.unsqueeze(1)  # [B, more + T, more + S]
        same = earlier & equal[:, more:, more:]
        counts = same.to(torch.uint8)
        for back in range(1, LONGEST_MATCH):
            first = more - back
            same &= equal[:, first : first + time, first : first + slots]
            counts += same.view(torch.uint8)
        return counts


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
