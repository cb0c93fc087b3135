"""Batches, drawn without a memory: what step s sees follows from the seed and s alone. So a run can go on anywhere.

`Batches` is all that the loop knows. `WindowBatches` cuts windows out of long rows of token ids; data that comes in
rows of its own can stand beside it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tinychat.train.folds import find_fold
from tinychat.train.windows import Ids, Windows


class Batch(NamedTuple):
    """What one step learns from."""

    ids: Tensor
    """[B, T], long"""
    targets: Tensor
    """[B, T], long: what follows each id; `IGNORED` where nothing is to be learned"""
    folds: Tensor
    """[B], long: the part of its text that each row begins in: see `folds.py`"""


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
    """Windows of one text, or of a mix of texts, each of which gives its share of all windows.

    Args:
        texts: ids [N] of each; at least `context` + 1, may be memory-mapped.
        context: the length of a window.
        batch_size: windows of a step.
        seed: of the order.
        weights: how much of each text; None: one text.
        stride: from one window to the next; None: `context`.
    """

    def __init__(
        self,
        texts: Ids | Sequence[Ids],
        context: int,
        batch_size: int,
        seed: int,
        weights: Sequence[float] = (1.0,),
        stride: int | None = None,
    ) -> None:
        rows = [texts] if isinstance(texts, np.ndarray) else texts
        self.context, self.batch_size = context, batch_size
        self.texts = [Windows(ids, context, seed, number, stride) for number, ids in enumerate(rows)]
        self.tokens_per_batch = batch_size * context
        self._round = _interleave(weights)

    def batch(self, step: int) -> Batch:
        """As `Batches.batch`."""
        both = np.empty((2, self.batch_size, self.context), np.int64)  # what each id is, and what follows it
        folds = torch.empty(self.batch_size, dtype=torch.long)
        for row in range(self.batch_size):
            text, place = self._draw(step * self.batch_size + row)
            start = text.start(place)
            both[0, row] = text.ids[start : start + self.context]
            both[1, row] = text.ids[start + 1 : start + 1 + self.context]
            folds[row] = find_fold(start, len(text.ids))
        ids, targets = torch.from_numpy(both)
        return Batch(ids, targets, folds)

    def epochs(self, steps: int) -> float:
        """As `Batches.epochs`; of a mix, how often what is seen was seen, on average."""
        shares = self._round.counts / len(self._round.texts)
        epochs = [share / text.count for share, text in zip(shares, self.texts, strict=True)]  # of a window in all
        return steps * self.batch_size * float(np.dot(shares, epochs))

    def _draw(self, place: int) -> tuple[Windows, int]:
        """The text that gives the window at this place of the whole run, and its place among that text's own."""
        rounds, rank = divmod(place, len(self._round.texts))
        text = int(self._round.texts[rank])
        return self.texts[text], rounds * int(self._round.counts[text]) + int(self._round.places[rank])


class _Round(NamedTuple):
    """The order in which texts take turns, which is repeated for ever."""

    texts: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """[R] which text"""
    places: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """[R] how many turns it had before in the round"""
    counts: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """of each text, its turns in a round"""


LONGEST_ROUND = 10_000
"""turns: shares are exact to a part in so many"""


def _interleave(weights: Sequence[float]) -> _Round:
    """As many turns of each text as its weight says, spread evenly, so that each batch is nearly the mix itself."""
    shares = np.array(weights) / max(weights)
    turns = shares / max(shares.min(), 1 / LONGEST_ROUND)
    if turns.sum() > LONGEST_ROUND or not np.allclose(turns, turns.round(), rtol=0, atol=1e-6):
        turns = LONGEST_ROUND * shares / shares.sum()
    counts = np.maximum(1, turns.round().astype(np.int64))
    texts = np.repeat(np.arange(len(counts)), counts)
    places = np.concatenate([np.arange(count) for count in counts])
    order = np.argsort((places + 0.5) / counts[texts], kind="stable")
    return _Round(texts[order], places[order], counts)
