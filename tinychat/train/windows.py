"""The windows of a text, and their order. Needs no torch."""

import numpy as np

from tinychat.train.folds import find_fold
from tinychat.train.rows import Ids, Row


def count_windows(tokens: int, context: int, stride: int) -> int:
    """The windows of an epoch.

    One fewer than would fit, where there are several: the room that is left is for the shift.
    """
    return max(1, (tokens - 1 - context) // stride)


class Windows:
    """The windows of one row of ids, in their order: each once in an epoch, in an order of that epoch's own.

    Windows begin a stride after each other, and lie side by side where that is their length; where the first begins
    differs from epoch to epoch, so that what ends a window in one stands inside a window in another.

    Args:
        ids: [N], at least `context` + 1 of them; may be memory-mapped.
        context: the length of a window.
        seed: of the order.
        number: of the text in a mix, so that texts of one length have orders of their own.
        stride: from one window to the next; None: `context`.
    """

    def __init__(self, ids: Ids, context: int, seed: int, number: int = 0, stride: int | None = None) -> None:
        if len(ids) <= context:
            raise ValueError(f"{len(ids)} ids hold no window of {context} and what follows it")
        self.ids = np.asarray(ids)  # no copy: a plain view of a memory map is three times as quick to slice
        self.context, self.row_tokens = context, float(context)
        self.seed, self.number, self.stride = seed, number, stride or context
        self.count = count_windows(len(ids), context, self.stride)
        self.shifts = len(ids) - context - self.stride * (self.count - 1)
        self._epoch = -1
        self._starts = np.zeros(0, dtype=np.int64)

    def start(self, place: int) -> int:
        """Where the window begins that comes at this place of the whole run."""
        epoch, rank = divmod(place, self.count)
        if epoch != self._epoch:
            random = np.random.Generator(np.random.PCG64((self.seed, epoch, self.number)))
            shift = int(random.integers(self.shifts))
            self._starts = shift + self.stride * random.permutation(self.count)
            self._epoch = epoch
        return int(self._starts[rank])

    def row(self, place: int) -> Row:
        """As `Text.row`."""
        start = self.start(place)
        return Row(self.ids[start : start + self.context + 1], find_fold(start, len(self.ids)))
