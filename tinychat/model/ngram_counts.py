"""Count the n-grams of a training text, and look them up.

Shapes: N contexts counted, E entries: pairs of a context and a token that followed it, V tokens of the vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

MIN_CONTEXTS, MAX_CONTEXTS = 1 << 19, 1 << 21
"""Bounds of the number of contexts that are counted: half as many as tokens, which take about 3 bytes a token."""
MOST_CELLS = 1 << 25
"""Pairs of a context and a token that are numbered by a table, at most; beyond, by sorting, which is slower."""
FEW = 64
"""Positions up to which entries are padded to one number for each context: a CUDA graph needs fixed shapes."""
NO_CELL = 2**62

Ids = npt.NDArray[np.integer]


class CountTable(nn.Module):
    """Counts after each context, in several variants: of the text without each of its folds, or one of all of it.

    The last entry is none, and context N has no entries: it stands for all that were not counted.
    """

    starts: Tensor  # [N + 2], where the entries of each context begin
    cells: Tensor  # [E + 1], context · V + token of each entry, ascending
    counts: Tensor  # [folds, E + 1]
    unigrams: Tensor  # [folds, V], counts after the empty context
    statistics: Tensor  # [2, folds, N + 1], sum of the counts after a context; log(1 + how many of them are above 0)

    def __init__(self, widths: Tensor, tokens: Tensor, counts: Tensor, vocab_size: int) -> None:
        """Build the table of counts [folds, E], which are stored as in `NGrams`."""
        super().__init__()
        self.vocab_size = vocab_size
        widths, tokens, counts = widths.long(), tokens.long(), counts.float()
        rows, first = tokens, 0
        self.widest = 0
        """The most entries of a context, but for the empty one."""
        if len(tokens):  # else they may be on the device `meta`, and have no values
            rows = torch.arange(len(widths), device=widths.device).repeat_interleave(widths)
            first, self.widest = int(widths[0]), int(widths[1:].max()) if len(widths) > 1 else 0
        sums = counts.new_zeros(2, len(counts), len(widths) + 1)
        sums.index_add_(2, rows, torch.stack((counts, (counts > 0).float())))
        sums[1] = sums[1].log1p()
        unigrams = counts.new_zeros(len(counts), vocab_size)
        unigrams[:, tokens[:first]] = counts[:, :first]
        starts = F.pad(widths.cumsum(0), (1, 1), value=len(tokens))
        starts[0] = 0
        cells = F.pad(rows * vocab_size + tokens, (0, 1), value=NO_CELL)
        for name, buffer in (
            ("starts", starts), ("cells", cells), ("counts", F.pad(counts, (0, 1))), ("unigrams", unigrams),
            ("statistics", sums),
        ):  # fmt: skip
            self.register_buffer(name, buffer, persistent=False)

    def find(self, folds: Tensor, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the counts of tokens [P] after contexts [P, L], without a fold for each position [P]: [P, L]."""
        keys = contexts * self.vocab_size + tokens.unsqueeze(-1)
        entries = torch.searchsorted(self.cells, keys).clamp_(max=len(self.cells) - 1)
        return self.counts[folds.unsqueeze(-1), entries] * (self.cells[entries] == keys)

    def expand(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Return which of the P · L each of M entries belongs to, [M], and all entries of contexts [P, L], [M].

        The empty context is none of them. For few positions, entries that are none fill up those of each context.
        """
        begins, ends = self.starts[contexts.flatten()], self.starts[contexts.flatten() + 1]
        numbers = torch.arange(len(begins), device=begins.device)
        if len(contexts) <= FEW:
            entries = begins.unsqueeze(-1) + torch.arange(self.widest, device=begins.device)
            entries = entries.where(entries < ends.unsqueeze(-1), len(self.cells) - 1)
            return numbers.repeat_interleave(self.widest), entries.flatten()
        widths = ends - begins
        owners = numbers.repeat_interleave(widths)
        offsets = begins - (widths.cumsum(0) - widths)
        return owners, torch.arange(len(owners), device=begins.device) + offsets[owners]


class Level(NamedTuple):
    """The contexts of one length, by their numbers, and what was counted after them."""

    contexts: npt.NDArray[np.int64]  # [N]
    widths: npt.NDArray[np.int64]  # [N]
    tokens: npt.NDArray[np.int64]  # [E]
    counts: npt.NDArray[np.integer]  # [folds, E]

    def select(self, kept: npt.NDArray[np.bool_]) -> "Level":
        """Return the contexts that are kept, [N], and what was counted after them."""
        entries = np.repeat(kept, self.widths)
        return Level(self.contexts[kept], self.widths[kept], self.tokens[entries], self.counts[:, entries])


def max_contexts(tokens: int) -> int:
    """Return the number of contexts that a text of some tokens may have."""
    return min(MAX_CONTEXTS, max(MIN_CONTEXTS, tokens // 2))


def count_levels(folds: Sequence[Ids], vocab_size: int, longest: int, least: int) -> list[Level]:
    """Count what follows each context of up to `longest` tokens that occurs at least `least` times.

    No n-gram spans two folds. There is one level per context length from 0 on. If the contexts would be more than
    `max_contexts`, the rarest are dropped: all that occur less than some higher number of times.
    """
    ids = np.concatenate(folds).astype(np.int64)
    fold_of = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    begins = np.flatnonzero(np.diff(fold_of, prepend=-1))
    contexts = np.zeros(1, dtype=np.int64)
    frequencies = [np.array([len(ids)])]  # of the contexts of each level
    rows = np.zeros(len(ids), dtype=np.int64)  # of the context before each token; −1 where it is dropped
    levels: list[Level] = []
    while True:
        positions = np.flatnonzero(rows >= 0)
        grams = rows[positions] * vocab_size + ids[positions]
        different, numbers = number_cells(grams, len(contexts) * vocab_size)
        cells = fold_of[positions] * len(different) + numbers
        by_fold = np.bincount(cells, minlength=len(folds) * len(different)).astype(np.int32)
        widths = np.bincount(different // vocab_size, minlength=len(contexts))
        levels.append(Level(contexts, widths, different % vocab_size, by_fold.reshape(len(folds), len(different))))
        if len(levels) > longest:
            return levels
        # An n-gram that is kept is the context of the token after it.
        occurrences = np.bincount(numbers, minlength=len(different))
        dropped = least
        while sum(int((one >= least).sum()) for one in (*frequencies, occurrences)) > max_contexts(len(ids)):
            least += max(1, least // 2)
        is_kept = occurrences >= least
        kept = different[is_kept]
        contexts = contexts[kept // vocab_size] * vocab_size + kept % vocab_size + 1
        if least > dropped:
            levels = [level.select(one >= least) for level, one in zip(levels, frequencies, strict=True)]
            frequencies = [one[one >= least] for one in frequencies]
        if not len(contexts):
            return levels
        frequencies.append(occurrences[is_kept])
        rows = np.full(len(ids) + 1, -1, dtype=np.int64)
        rows[positions + 1] = np.where(is_kept, is_kept.cumsum() - 1, -1)[numbers]
        rows = rows[:-1]
        rows[begins] = -1


def number_cells(cells: npt.NDArray[np.int64], size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the different ones of cells [N] below `size`, ascending, and where among them each cell is, [N]."""
    if size > MOST_CELLS:
        ordered, order = (one.numpy() for one in torch.from_numpy(cells).sort())  # 5 times as fast as NumPy's
        is_new = np.diff(ordered, prepend=-1) > 0
        numbers = np.empty(len(cells), dtype=np.int64)
        numbers[order] = is_new.cumsum() - 1
        return ordered[is_new], numbers
    is_there = np.zeros(size, dtype=bool)
    is_there[cells] = True
    different = np.flatnonzero(is_there)
    places = np.empty(size, dtype=np.int32)
    places[different] = np.arange(len(different))
    return different, places[cells].astype(np.int64)


def unite(counted: Level, earlier: Level, vocab_size: int) -> tuple[Level, npt.NDArray[np.int64]]:
    """Return the contexts and entries of both, with the counts of each fold, [folds, E], and the counts in all, [E].

    Those are the higher of `counted`, over all folds, and of `earlier`, [E]. If the contexts are more than either has
    room for, those that occur most are kept.
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
    parents = np.searchsorted(contexts, (contexts - 1) // vocab_size)  # without the last token
    # The higher of two counts may be more for a context than for its parent, which is never dropped before it.
    while (lower := np.minimum(occurrences, occurrences[parents]) < occurrences).any():
        occurrences[lower] = occurrences[parents[lower]]
    most = max(len(earlier.contexts), max_contexts(int(counted.counts[:, : counted.widths[0]].sum())))
    kept = np.zeros(len(contexts), dtype=bool)
    kept[np.argsort(-occurrences, kind="stable")[:most]] = True
    widths = np.bincount(rows, minlength=len(contexts))
    return Level(contexts, widths, all_cells % vocab_size, by_fold).select(kept), totals[kept[rows]]
