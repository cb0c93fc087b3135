"""What a run shows of its weights while it trains: the newest in its model folder, and snapshots of its way there."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from torch import Tensor

from tinychat.atomic import atomic_write
from tinychat.store.models import WEIGHTS
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots, pack_weights, snapshot_file

Weights = dict[str, Tensor]

INTERVAL = 5.0
"""seconds between two times that weights are published unasked, at least"""
SHARE = 0.01
"""the most of the time that publishing unasked takes; and as much again for snapshots"""
ALLOWANCE = 0.2
"""seconds that snapshots may take at the beginning, where most is to be seen"""
MOST_SNAPSHOTS = 8


class Publisher:
    """Writes weights where faces find them. A disk that is full costs what it cannot take, never the run.

    Args:
        run: whose folder is written to.
        write_model: writes the whole model folder, of weights after a number of steps.
        tied: the model's head is its embedding.
    """

    def __init__(self, run: RunFolder, write_model: Callable[[int, Weights], None], *, tied: bool) -> None:
        self.run, self.tied = run, tied
        self._write_model = write_model
        self._is_whole = False
        self._published_at, self._cost = -math.inf, 0.0
        self._spent = 0.0

    def is_due(self, seconds: float) -> bool:
        """Whether to publish, after so many seconds of training."""
        return seconds - self._published_at >= max(INTERVAL, self._cost / SHARE)

    def publish(self, step: int, seconds: float, weights: Weights) -> None:
        """Makes weights those of the run's model; the whole folder the first time, then their file alone."""
        began = time.perf_counter()
        with suppress(OSError):
            if self._is_whole:
                atomic_write(self.run.model / WEIGHTS, pack_weights(weights, tied=self.tied, step=step))
            else:
                self._write_model(step, weights)
                self._is_whole = True
        self._published_at, self._cost = seconds, time.perf_counter() - began

    def snapshot_is_due(self, step: int, seconds: float) -> bool:
        """Whether to keep a snapshot: before the first step, and after 1, 2, 4, 8 …, where time allows."""
        return step & (step - 1) == 0 and self._spent <= ALLOWANCE + SHARE * seconds

    def keep_snapshot(self, step: int, weights: Weights) -> None:
        """Keeps weights as a snapshot, without what is counted, and gives up others where they become too many."""
        began = time.perf_counter()
        learned = {name: weight for name, weight in weights.items() if weight.is_floating_point()}
        with suppress(OSError):
            atomic_write(snapshot_file(self.run, step), pack_weights(learned, tied=self.tied, half=True, step=step))
            for extra in thin([snapshot.step for snapshot in list_snapshots(self.run)]):
                snapshot_file(self.run, extra).unlink(missing_ok=True)
        self._spent += time.perf_counter() - began


def thin(steps: Sequence[int], most: int = MOST_SNAPSHOTS) -> list[int]:
    """The steps to give up, so that the first, the last and others remain, each as many times the one before.

    Args:
        steps: in order.
        most: that may remain.
    """
    kept = list(steps)
    while len(kept) > most:
        gaps = [math.log((after + 1) / (before + 1)) for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + gaps.index(min(gaps))]
    return [step for step in steps if step not in kept]
