"""The rows of a text, of which batches are made: windows of a running text, or documents. Needs no torch."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tinychat.tokenizer.rows import Positions, Rows
from tinychat.tokenizer.token_cache import Ids

FOLDS = 8
"""The parts that a text falls into, so that what is learned from can be left out of what is counted."""
BLOCK = 64
"""batches whose rows are sorted by length, so that rows of one batch need little padding"""


def split_folds(ids: Ids) -> list[Ids]:
    """The parts of a text, [N], as long as each other, by position."""
    return [ids[len(ids) * fold // FOLDS : len(ids) * (fold + 1) // FOLDS] for fold in range(FOLDS)]


def find_fold(position: int, length: int) -> int:
    """Return the fold of a position in a text of that length."""
    return position * FOLDS // length


class Row(NamedTuple):
    """One row of a batch, before it has the length of the others."""

    ids: Ids
    """[T + 1]: the first T are seen, the last T predicted"""
    fold: int
    source: Ids | None = None
    """[S], what an encoder reads"""
    learned: npt.NDArray[np.bool_] | None = None
    """[T], which of those predicted are learned; None: all"""


def cut_window(ids: Ids, start: int, context: int) -> Row:
    """The row of a running text that begins at a position; the last one may be short."""
    return Row(ids[start : start + context + 1], find_fold(start, len(ids)))


def cut_document(rows: Rows, index: int, context: int) -> Row:
    """A document as a row for a model that sees so many ids at once."""
    source = None if rows.source is None else rows.source.row(index)[:context]
    return Row(rows.row(index)[: context + 1], find_fold(int(rows.starts[index]), len(rows.ids)), source)


class Shuffled(ABC):
    """The rows of one text: each once in an epoch, in an order of that epoch's own.

    Args:
        seed: of the order.
        number: of the text in a mix, so that texts of one length have orders of their own.
    """

    count: int
    """rows of an epoch"""
    row_tokens: float
    """that are predicted in a row, on average"""

    def __init__(self, seed: int, number: int) -> None:
        self._seed, self._number = seed, number
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def row(self, index: int) -> Row:
        """Return the row with this index, counted over the whole run."""
        epoch, rank = divmod(index, self.count)
        if epoch != self._epoch:
            self._order = self._shuffle(np.random.Generator(np.random.PCG64((self._seed, epoch, self._number))))
            self._epoch = epoch
        return self._cut(int(self._order[rank]))

    @abstractmethod
    def _shuffle(self, random: np.random.Generator) -> Positions:
        """What each row of an epoch is cut at, in their order."""

    @abstractmethod
    def _cut(self, index: int) -> Row: ...


def count_windows(tokens: int, context: int, stride: int) -> int:
    """The windows of an epoch.

    One fewer than would fit, where there are several: the room that is left is for the shift.
    """
    return max(1, (tokens - 1 - context) // stride)


class Windows(Shuffled):
    """The windows of a running text.

    They begin a stride after each other, and lie side by side where that is their length; where the first begins
    differs from epoch to epoch, so that what ends a window in one stands inside a window in another.

    Args:
        ids: [N], at least `context` + 1 of them; may be memory-mapped.
        context: the length of a window.
        stride: from one window to the next; None: `context`.
    """

    def __init__(self, ids: Ids, context: int, seed: int, number: int = 0, stride: int | None = None) -> None:
        if len(ids) <= context:
            raise ValueError(f"{len(ids)} ids hold no window of {context} and what follows it")
        super().__init__(seed, number)
        self.ids = np.asarray(ids)  # no copy: a plain view of a memory map is three times as quick to slice
        self.context, self.row_tokens, self.stride = context, float(context), stride or context
        self.count = count_windows(len(ids), context, self.stride)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        shift = int(random.integers(len(self.ids) - self.context - self.stride * (self.count - 1)))
        return shift + self.stride * random.permutation(self.count)

    def _cut(self, index: int) -> Row:
        return cut_window(self.ids, index, self.context)


class Documents(Shuffled):
    """Documents, one a row: those of about the same length come together, in batches that are shuffled.

    Args:
        rows: at least one.
        context: the most ids that are seen of a row: what is longer is cut.
        batch_size: rows of a step.
    """

    def __init__(self, rows: Rows, context: int, batch_size: int, seed: int, number: int = 0) -> None:
        super().__init__(seed, number)
        self.rows, self.context, self.batch_size = rows, context, batch_size
        self.count = len(rows)
        self.row_tokens = rows.predicted(context) / len(rows)
        self._lengths = rows.lengths if rows.source is None else np.maximum(rows.lengths, rows.source.lengths)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        order = random.permutation(self.count)
        blocks = np.arange(self.count) // (BLOCK * self.batch_size)
        order = order[np.lexsort((self._lengths[order], blocks))]
        whole = self.count // self.batch_size * self.batch_size
        batches = order[:whole].reshape(-1, self.batch_size)
        return np.concatenate([random.permutation(batches).ravel(), order[whole:]])

    def _cut(self, index: int) -> Row:
        return cut_document(self.rows, index, self.context)
