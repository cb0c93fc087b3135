"""Checkpoints: all that a run needs to go on as if nothing had been. A folder each, whole or absent.

Nothing random outlives a step (see `loop.py`), so that there is no random state to keep beside the seed and the step.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder

if TYPE_CHECKING:
    from torch import Tensor

STATE = "state.pt"
KEPT = 2
FORMAT = 1


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
    accumulation: int = 1
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
