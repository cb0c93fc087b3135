"""The state of a run on disk: checkpoints to resume from, and the weights that front ends read while it trains.

A checkpoint is a folder, whole or absent. Nothing random outlives a step (see `loop.py`), so it holds no random state:
the seed and the step are enough. This file needs no torch until a checkpoint is read or written.
"""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder, atomic_write
from tinychat.store.models import WEIGHTS
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots, pack_weights, snapshot_file

if TYPE_CHECKING:
    from torch import Tensor

STATE = "state.pt"
KEPT = 2
FORMAT = 1

PUBLISH_INTERVAL = 5.0
"""seconds between two times that weights are published unasked, at least"""
PUBLISH_SHARE = 0.01
"""the most of the time that publishing unasked takes; and as much again for snapshots"""
SNAPSHOT_ALLOWANCE = 0.2
"""seconds that snapshots may take at the beginning, where most is to be seen"""
MOST_SNAPSHOTS = 8


@dataclass
class State:
    """A moment of a run."""

    step: int = 0
    """steps done"""
    seconds: float = 0.0
    """of training, over all sittings"""
    available: float | None = None
    """seconds of training and all that comes after it; None where steps decide"""
    weights: "dict[str, Tensor]" = field(default_factory=dict)
    optimizers: list[dict[str, Any]] = field(default_factory=list)
    best_weights: "dict[str, Tensor]" = field(default_factory=dict)
    """empty where no evaluation has been"""
    best_loss: float = float("inf")
    best_tokens: int = 0
    best_accuracy: float | None = None
    best_step: int = -1
    evaluated_step: int = -1
    evaluated_at: float = 0.0
    """seconds of training at the end of the last evaluation"""
    evaluations: int = 0
    """done so far"""
    step_seconds: float = 0.0
    """of one step, lately"""
    rate: float = 1.0
    """what learning rates are multiplied by: less than 1 after the loss became no number"""
    grad_accum_steps: int = 1
    """parts that a step is computed in: more than the recipe says where memory ran out"""
    fingerprint: str = ""
    """of the text"""


def save_checkpoint(folder: Path, state: State) -> Path:
    """Writes a checkpoint and removes all but the newest two.

    Args:
        folder: of the run's checkpoints.

    Raises:
        OSError: it cannot be written; those that were there stay.
    """
    import torch

    path = folder / f"step-{state.step:08d}"
    with atomic_folder(path) as draft, (draft / STATE).open("xb") as file:
        try:
            torch.save({"format": FORMAT, **vars(state)}, file)
        except RuntimeError as error:  # a full disk: torch fails once more as it closes its archive
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
    for old in list(_checkpoints(folder))[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def load_checkpoint(folder: Path) -> State | None:
    """The newest checkpoint that can be read; None where there is none. Reading runs no code."""
    import torch

    for path in _checkpoints(folder):
        try:
            values = torch.load(path / STATE, map_location="cpu", weights_only=True)
            if values.pop("format") == FORMAT:
                return State(**values)
        except Exception:  # a damaged file fails in many ways; an older checkpoint may be whole
            continue
    return None


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint; −1 where there is none. Needs no torch."""
    newest = next(_checkpoints(folder), None)
    return -1 if newest is None else int(newest.name.removeprefix("step-"))


def _checkpoints(folder: Path) -> Iterator[Path]:
    """The newest first."""
    yield from sorted(folder.glob("step-*"), reverse=True)


class Publisher:
    """Write the newest weights, and snapshots of older ones, where front ends find them.

    What a full disk cannot take is skipped: publishing never ends a run.

    Args:
        run: the run whose folder is written to.
        write_model: writes the whole model folder from a state that has its weights.
        tied: the model's head is its embedding.
    """

    def __init__(self, run: RunFolder, write_model: Callable[[State], None], *, tied: bool) -> None:
        self.run, self.tied = run, tied
        self._write_model = write_model
        self._is_whole = False
        self._published_at, self._cost = -math.inf, 0.0
        self._spent = 0.0

    def is_due(self, seconds: float) -> bool:
        """Whether to publish, after so many seconds of training."""
        return seconds - self._published_at >= max(PUBLISH_INTERVAL, self._cost / PUBLISH_SHARE)

    def publish(self, state: State) -> None:
        """Make the weights of a state those of the run's model.

        Writes the whole folder the first time, then the file of weights alone.
        """
        began = time.perf_counter()
        with suppress(OSError):
            if self._is_whole:
                weights = pack_weights(state.weights, tied=self.tied, step=state.step)
                atomic_write(self.run.model / WEIGHTS, weights)
            else:
                self._write_model(state)
                self._is_whole = True
        self._published_at, self._cost = state.seconds, time.perf_counter() - began

    def snapshot_is_due(self, step: int, seconds: float) -> bool:
        """Whether to keep a snapshot: before the first step, and after 1, 2, 4, 8 …, where time allows."""
        return step & (step - 1) == 0 and self._spent <= SNAPSHOT_ALLOWANCE + PUBLISH_SHARE * seconds

    def save_snapshot(self, step: int, weights: "dict[str, Tensor]") -> None:
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
