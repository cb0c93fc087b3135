"""The state of a run on disk: checkpoints to resume from, and weights that front ends read while the run trains.

A checkpoint is a folder, whole or absent, without random state, as none outlives a step: the seed and the step are
enough. Needs no torch until a checkpoint is read or written.
"""

import math
import re
import shutil
import time
from collections.abc import Callable, Sequence
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

STATE_FILE = "state.pt"
MAX_CHECKPOINTS = 2
FORMAT = 2
"""Increased when runs count n-grams otherwise: weights of a checkpoint go with the counts of their text."""
PUBLISH_INTERVAL = 5.0
"""Minimum seconds between two publications that nobody asked for."""
MAX_PUBLISH_FRACTION = 0.01
"""Maximum fraction of the time that publishing unasked takes, and that snapshots take."""
SNAPSHOT_ALLOWANCE = 0.2
"""Seconds that snapshots may take beyond that fraction, since most changes at the beginning."""
MAX_SNAPSHOTS = 8


@dataclass
class State:
    """The state of a run after a step."""

    step: int = 0
    seconds: float = 0.0
    """Seconds of training, including those before a resumption."""
    available: float | None = None
    """Time limit in seconds, for training and what follows it; None without a limit."""
    weights: "dict[str, Tensor]" = field(default_factory=dict)
    optimizers: list[dict[str, Any]] = field(default_factory=list)
    best_weights: "dict[str, Tensor]" = field(default_factory=dict)
    """Weights with the lowest validation loss; empty before the first evaluation."""
    best_loss: float = float("inf")
    best_tokens: int = 0
    best_accuracy: float | None = None
    best_step: int = -1
    evaluated_step: int = -1
    evaluated_at: float = 0.0
    """Seconds of training at the end of the last evaluation."""
    evaluations: int = 0
    eval_windows: int = 0
    """Number of windows of each evaluation during training."""
    val_fraction: float = 1.0
    """Fraction of the text held out that measures the model."""
    step_seconds: float = 0.0
    """Running average of the seconds of a step."""
    lr_scale: float = 1.0
    """Multiplier of learning rates: less than 1 after the loss became NaN or infinite."""
    start_loss: float | None = None
    """Loss of the model that the run started from (`--from`), in the final evaluation's measure; None without one."""
    start_tokens: int = 0
    start_accuracy: float | None = None
    counted_tokens: int = 0
    """Tokens of the text whose n-grams are counted, at most: the same in all sittings of a run."""
    keeps_counts: bool = False
    """Whether the n-gram counts of that model are kept beside those of the text."""
    length: dict[str, float] = field(default_factory=dict)
    """Length of the run in its recipe; if the recipe's is another by now, the run is extended when it resumes."""
    is_done: bool = False
    grad_accum_steps: int = 1
    """Micro-batches of a step: more than in the recipe if memory ran out."""
    fingerprint: str = ""


def save_checkpoint(folder: Path, state: State) -> Path:
    """Write a checkpoint into the folder of a run's checkpoints, remove all but the newest two, and return its folder.

    Raises:
        OSError: If the checkpoint cannot be written; earlier ones stay.
    """
    import torch

    path = folder / f"step-{state.step:08d}"
    with atomic_folder(path) as draft, (draft / STATE_FILE).open("xb") as file:
        try:
            torch.save({"format": FORMAT, **vars(state)}, file)
        except RuntimeError as error:  # on a full disk, torch fails again while closing its archive
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
    # Those of later steps were taken back, or cannot be read: they would outlive this one.
    found = _checkpoints(folder)
    kept = [old for old in found if old.name <= path.name][:MAX_CHECKPOINTS]
    for old in set(found).difference(kept):
        shutil.rmtree(old, ignore_errors=True)
    return path


def load_checkpoint(folder: Path) -> State | None:
    """Return the newest readable checkpoint; None if there is none. Reading runs no code."""
    import torch

    for path in _checkpoints(folder):
        try:
            values = torch.load(path / STATE_FILE, map_location="cpu", weights_only=True)
            if values.pop("format") == FORMAT:
                return State(**values)
        except Exception:  # damaged files raise many kinds; an older checkpoint may be intact
            continue
    return None


def newest_step(folder: Path) -> int:
    """Return the step of the newest checkpoint; −1 if there is none. Needs no torch."""
    return next((int(path.name.removeprefix("step-")) for path in _checkpoints(folder)), -1)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the folders of checkpoints, newest first; others, such as a copy of one, are passed over."""
    found = (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name))
    return sorted(found, reverse=True)


class Publisher:
    """Write the newest weights, and snapshots of older ones, where front ends find them.

    Errors of the disk are ignored: publishing never ends a run. `write_model` writes the whole model folder from a
    state with weights; `tied` tells whether the output head shares the embedding's weights.
    """

    def __init__(self, run: RunFolder, write_model: Callable[[State], None], *, tied: bool) -> None:
        self.run, self.tied, self._write_model = run, tied, write_model
        self._is_written = False
        self._published_at = -math.inf
        self.publish_seconds = self._snapshot_seconds = 0.0

    def is_due(self, seconds: float) -> bool:
        """Return whether to publish, after so many seconds of training."""
        return seconds - self._published_at >= max(PUBLISH_INTERVAL, self.publish_seconds / MAX_PUBLISH_FRACTION)

    def publish(self, state: State) -> None:
        """Write the weights of a state to the run's model: the whole folder the first time, then the weights alone."""
        began = time.perf_counter()
        with suppress(OSError):
            if self._is_written:
                atomic_write(self.run.model / WEIGHTS, pack_weights(state.weights, tied=self.tied, step=state.step))
            else:
                self._write_model(state)
                self._is_written = True
        self._published_at, self.publish_seconds = state.seconds, time.perf_counter() - began

    def snapshot_is_due(self, step: int, seconds: float) -> bool:
        """Return whether to save a snapshot: before the first step and after steps 1, 2, 4, 8 …, if time allows."""
        return step & (step - 1) == 0 and self._snapshot_seconds <= SNAPSHOT_ALLOWANCE + MAX_PUBLISH_FRACTION * seconds

    def save_snapshot(self, step: int, weights: "dict[str, Tensor]") -> None:
        """Save weights without n-gram counts as a snapshot; delete others if they become too many."""
        began = time.perf_counter()
        learned = {name: weight for name, weight in weights.items() if weight.is_floating_point()}
        with suppress(OSError):
            packed = pack_weights(learned, tied=self.tied, precision="bf16", step=step)
            atomic_write(snapshot_file(self.run, step), packed)
            for extra in find_surplus([snapshot.step for snapshot in list_snapshots(self.run)]):
                snapshot_file(self.run, extra).unlink(missing_ok=True)
        self._snapshot_seconds += time.perf_counter() - began


def find_surplus(steps: Sequence[int], max_snapshots: int = MAX_SNAPSHOTS) -> list[int]:
    """Return which of ascending steps' snapshots to delete: the first, the last and about a geometric series remain."""
    kept = list(steps)
    while len(kept) > max_snapshots:
        gaps = [math.log((after + 1) / (before + 1)) for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + gaps.index(min(gaps))]
    return [step for step in steps if step not in kept]
