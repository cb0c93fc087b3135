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
    """Learning rate schedule: a linear warm-up, a plateau, then a decay to the end."""

    kind: str
    """Decay curve, one of `SCHEDULES`."""
    warmup_steps: int
    lr_decay_fraction: float
    """Fraction of the run, at its end, in which the learning rate decays."""
    min_lr_ratio: float
    """Final learning rate as a fraction of the peak."""


def lr_factor(schedule: Schedule, progress: float, step: int) -> float:
    """Return the learning rate of a step as a fraction of the peak.

    Args:
        schedule: The schedule.
        progress: Fraction of the run that is done, from 0 to 1.
        step: Index of the step, from 0.
    """
    warmup = min(1.0, (step + 1) / (schedule.warmup_steps + 1))
    if schedule.lr_decay_fraction == 0:
        return warmup
    x = min(1.0, max(0.0, (progress - (1 - schedule.lr_decay_fraction)) / schedule.lr_decay_fraction))
    return warmup * (schedule.min_lr_ratio + (1 - schedule.min_lr_ratio) * SCHEDULES[schedule.kind](x))


@dataclass
class Budget:
    """The length of a run: a number of steps, or seconds of training.

    Args:
        steps: Number of steps; None for a run by the clock.
        seconds: Seconds from the first step to the last, including evaluations and checkpoints between them.
    """

    steps: int | None = None
    seconds: float = math.inf

    def progress(self, step: int, seconds: float) -> float:
        """Return the fraction of the budget, from 0 to 1, that some steps and seconds have used."""
        used = step / self.steps if self.steps is not None else seconds / self.seconds
        return min(1.0, max(0.0, used))

    def is_exhausted(self, step: int, seconds: float, step_seconds: float) -> bool:
        """Return whether the budget has no room for one more step of `step_seconds`."""
        if self.steps is not None:
            return step >= self.steps
        return seconds + step_seconds > self.seconds

    def expected_steps(self, step: int, seconds: float, step_seconds: float) -> int:
        """Return the total number of steps to expect at the current speed."""
        if self.steps is not None:
            return self.steps
        return step + max(0, round((self.seconds - seconds) / step_seconds)) if step_seconds > 0 else step

    def remaining(self, step: int, seconds: float, step_seconds: float) -> float:
        """Return the seconds of training that remain at the current speed."""
        if self.steps is not None:
            return (self.steps - step) * step_seconds
        return max(0.0, self.seconds - seconds)
