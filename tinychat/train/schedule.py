"""The learning rate over a run, and the budget that says when the run is over. Needs no torch."""

import math
from collections.abc import Callable
from dataclasses import dataclass

SCHEDULES: dict[str, Callable[[float], float]] = {
    "linear": lambda x: 1 - x,
    "cosine": lambda x: 0.5 * (1 + math.cos(math.pi * x)),
    "constant": lambda x: 1.0,
}
"""Decay curves: f(0) = 1, f(1) = 0; `constant` stays at 1."""


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes over a run: a linear warm-up, a plateau, then a decay to the end."""

    kind: str
    """the decay curve, one of `SCHEDULES`"""
    warmup_steps: int
    lr_decay_fraction: float
    """fraction of the run, at its end, in which the rate decays"""
    min_lr_ratio: float
    """the rate at the end, as a fraction of the highest"""


def rate_factor(schedule: Schedule, progress: float, step: int) -> float:
    """Return the learning rate of a step as a fraction of the highest.

    Args:
        progress: fraction of the run that is done, from 0 to 1.
        step: the index of the step, from 0.
    """
    rise = min(1.0, (step + 1) / (schedule.warmup_steps + 1))
    if schedule.lr_decay_fraction == 0:
        return rise
    x = min(1.0, max(0.0, (progress - (1 - schedule.lr_decay_fraction)) / schedule.lr_decay_fraction))
    return rise * (schedule.min_lr_ratio + (1 - schedule.min_lr_ratio) * SCHEDULES[schedule.kind](x))


@dataclass
class Budget:
    """What a run may use: a number of steps, or seconds of training.

    Args:
        steps: in all; None: the clock decides.
        seconds: of training, from the first step to the last, evaluations and checkpoints on the way included.
    """

    steps: int | None = None
    seconds: float = math.inf

    def progress(self, step: int, seconds: float) -> float:
        """How much of it is used after so many steps and seconds, from 0 to 1."""
        used = step / self.steps if self.steps is not None else seconds / self.seconds
        return min(1.0, max(0.0, used))

    def is_used(self, step: int, seconds: float, step_seconds: float) -> bool:
        """Whether there is no room for one more step of `step_seconds`."""
        if self.steps is not None:
            return step >= self.steps
        return seconds + step_seconds > self.seconds

    def expected_steps(self, step: int, seconds: float, step_seconds: float) -> int:
        """The number of steps at the end, as things stand."""
        if self.steps is not None:
            return self.steps
        return step + max(0, round((self.seconds - seconds) / step_seconds)) if step_seconds > 0 else step

    def remaining(self, step: int, seconds: float, step_seconds: float) -> float:
        """Seconds of training that are left, as things stand."""
        if self.steps is not None:
            return (self.steps - step) * step_seconds
        return max(0.0, self.seconds - seconds)
