"""The loss over a text: what training reports and what `tinychat eval` says are this one function."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from tinychat.model.transformer import IGNORED, Transformer, cross_entropy
from tinychat.train.folds import find_fold
from tinychat.train.windows import Ids

LARGEST_LOGITS = 1 << 24
"""numbers: so many logits are computed at once"""
MOST_ROWS, CACHED_TOKENS = 64, 4096
"""rows, and on a CPU tokens, that are computed at once; what a processor's cache cannot hold takes 1.6 times as long"""


@dataclass(frozen=True)
class Evaluation:
    """The mean loss, in nats, of so many predicted tokens."""

    loss: float
    tokens: int
    accuracy: float | None = None
    """the share of them that the model found likeliest"""

    @property
    def perplexity(self) -> float:
        """e^loss; infinite where that is more than a number can hold."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    def bits_per_character(self, characters_per_token: float) -> float:
        """The bits that a character takes, at so many characters a token."""
        return self.loss / math.log(2) / characters_per_token if characters_per_token else math.nan


@torch.inference_mode()
def evaluate(
    model: Transformer,
    ids: Ids,
    windows: int | None = None,
    *,
    trained_on: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """The mean cross-entropy of each token but the first, in windows of the context that do not overlap, in f32.

    The first token of a window is predicted from the window before it alone, and the others from what stands before
    them in their own; the last window may be short.

    Args:
        model: on its device; it is left as it was, in training mode or not.
        ids: [N], at least two.
        windows: look at only so many, spread evenly; None: all.
        trained_on: the ids are what the model in training counts n-grams of: each fold is predicted from the others.
        should_stop: asked now and then; once it says yes, the mean of what is done counts.
    """
    context, device = model.config.context, model.head.weight.device
    starts = np.arange(0, len(ids) - 1, context)
    if windows is not None and windows < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, windows).round().astype(int)]
    most_rows = max(1, CACHED_TOKENS // context) if device.type == "cpu" else MOST_ROWS
    rows_at_once = max(1, min(most_rows, LARGEST_LOGITS // (context * model.config.vocab_size)))
    was_training = model.training
    model.eval()
    total = torch.zeros((), dtype=torch.float64)
    hits = torch.zeros((), dtype=torch.long, device=device)
    tokens = 0
    try:
        for first in range(0, len(starts), rows_at_once):
            places = starts[first : first + rows_at_once]
            rows, targets = (tensor.to(device) for tensor in _windows(ids, places, context))
            folds = torch.tensor([find_fold(int(place), len(ids)) for place in places], device=device)
            logits = model(rows, folds=folds if trained_on else None)
            total += cross_entropy(logits, targets, "sum").double().cpu()
            hits += (logits.argmax(dim=-1) == targets).sum()
            tokens += int((targets != IGNORED).sum())
            if should_stop():
                break
    finally:
        model.train(was_training)
    return Evaluation(float(total) / tokens, tokens, int(hits) / tokens)


def _windows(ids: Ids, starts: "np.ndarray[tuple[int], np.dtype[np.int64]]", context: int) -> tuple[torch.Tensor, ...]:
    """Ids and targets [B, T] of the windows that begin there; T is less where all of them are short."""
    longest = int(min(context, len(ids) - 1 - starts.min()))
    rows = torch.zeros(len(starts), longest, dtype=torch.long)
    targets = torch.full((len(starts), longest), IGNORED, dtype=torch.long)
    for row, start in enumerate(starts):
        window = torch.from_numpy(ids[start : start + longest + 1].astype(np.int64))
        rows[row, : len(window) - 1], targets[row, : len(window) - 1] = window[:-1], window[1:]
    return rows, targets
