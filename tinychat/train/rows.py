"""The rows of a text, of which batches are made, and documents as such, one a row. Needs no torch."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tinychat.text.rows import Rows
from tinychat.train.folds import find_fold

Ids = npt.NDArray[np.integer]
BLOCK = 64
"""batches whose rows are sorted by length, so that rows of one batch need little padding"""


class Row(NamedTuple):
    """One row of a batch, before it has the length of the others."""

    ids: Ids
    """[T + 1]: the first T are seen, the last T predicted"""
    fold: int
    source: Ids | None = None
    """[S], what an encoder reads"""


class Text(Protocol):
    """A text as rows, each of which comes once in an epoch."""

    count: int
    """rows of an epoch"""
    row_tokens: float
    """that are predicted in a row, on average"""

    def row(self, place: int) -> Row:
        """The row that comes at this place of the whole run."""
        ...


class Documents:
    """Documents, one a row: each once in an epoch, in an order of that epoch's own.

    Documents of about the same length come together, in batches that are shuffled.

    Args:
        rows: at least one.
        context: the most ids that are seen of a row: what is longer is cut.
        batch_size: rows of a step.
        seed: of the order.
        number: of the text in a mix.
    """

    def __init__(self, rows: Rows, context: int, batch_size: int, seed: int, number: int = 0) -> None:
        self.rows, self.context, self.batch_size = rows, context, batch_size
        self.seed, self.number = seed, number
        self.count = len(rows)
        self.row_tokens = rows.predicted(context) / len(rows)
        self._lengths = rows.lengths if rows.source is None else np.maximum(rows.lengths, rows.source.lengths)
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)

    def row(self, place: int) -> Row:
        """As `Text.row`."""
        epoch, rank = divmod(place, self.count)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffle(epoch)
        return cut_row(self.rows, int(self._order[rank]), self.context)

    def _shuffle(self, epoch: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        random = np.random.Generator(np.random.PCG64((self.seed, epoch, self.number)))
        order = random.permutation(self.count)
        blocks = np.arange(self.count) // (BLOCK * self.batch_size)
        order = order[np.lexsort((self._lengths[order], blocks))]
        whole = self.count // self.batch_size * self.batch_size
        batches = order[:whole].reshape(-1, self.batch_size)
        return np.concatenate([random.permutation(batches).ravel(), order[whole:]])


def cut_row(rows: Rows, place: int, context: int) -> Row:
    """A document as a row for a model that sees so many ids at once."""
    source = None if rows.source is None else rows.source.row(place)[:context]
    return Row(rows.row(place)[: context + 1], find_fold(int(rows.starts[place]), len(rows.ids)), source)
