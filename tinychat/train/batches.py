"""Batches, drawn without a memory: what step s sees follows from the seed and s alone. So a run can go on anywhere.

`Batches` is all that the loop knows. `WindowBatches` cuts windows out of one long row of token ids; data that comes
in rows of its own can stand beside it.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ids = npt.NDArray[np.integer]


class Batch(NamedTuple):
    """What one step learns from."""

    ids: Tensor
    """[B, T], long"""
    targets: Tensor
    """[B, T], long: what follows each id; `IGNORED` where nothing is to be learned"""


class Batches(Protocol):
    """A source of batches."""

    tokens_per_batch: int

    def batch(self, step: int) -> Batch:
        """What step `step` (from 0) learns from."""
        ...

    def epochs(self, steps: int) -> float:
        """How often the text is seen in so many steps."""
        ...


class WindowBatches:
    """Windows of one long row of ids, each seen once in an epoch, in an order of that epoch's own.

    Windows lie side by side; where the first begins differs from epoch to epoch, so that what ends a window in one
    stands inside a window in another.

    Args:
        ids: [N], at least `context` + 1 of them; may be memory-mapped.
        context: the length of a window.
        batch_size: windows of a step.
        seed: of the order.
    """

    def __init__(self, ids: Ids, context: int, batch_size: int, seed: int) -> None:
        if len(ids) <= context:
            raise ValueError(f"{len(ids)} ids hold no window of {context} and what follows it")
        self.ids, self.context, self.batch_size, self.seed = ids, context, batch_size, seed
        room = len(ids) - 1
        # One window fewer than would fit, where there are several: the room that is left is for the shift.
        self.windows = max(1, room // context - 1)
        self.shifts = room - self.windows * context + 1
        self.tokens_per_batch = batch_size * context
        self._offsets = np.arange(context + 1)
        self._epoch = -1
        self._starts = np.zeros(0, dtype=np.int64)

    def batch(self, step: int) -> Batch:
        """As `Batches.batch`."""
        first = step * self.batch_size
        starts = np.array([self._start(place) for place in range(first, first + self.batch_size)])
        rows = torch.from_numpy(self.ids[starts[:, None] + self._offsets].astype(np.int64))  # [B, T + 1]
        return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())

    def epochs(self, steps: int) -> float:
        """As `Batches.epochs`."""
        return steps * self.batch_size / self.windows

    def _start(self, place: int) -> int:
        """Where the window begins that comes at this place of the whole run."""
        epoch, rank = divmod(place, self.windows)
        if epoch != self._epoch:
            random = np.random.Generator(np.random.PCG64((self.seed, epoch)))
            shift = int(random.integers(self.shifts))
            self._starts = shift + self.context * random.permutation(self.windows)
            self._epoch = epoch
        return int(self._starts[rank])
