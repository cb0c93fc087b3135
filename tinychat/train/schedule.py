"""When a run is over, how far it is, and what learning rate belongs there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinychat.train.recipe import Recipe

SCHEDULES: dict[str, Callable[[float], float]] = {
    "linear": lambda way: 1 - way,
    "cosine": lambda way: 0.5 * (1 + math.cos(math.pi * way)),
    "constant": lambda way: 1.0,
}
"""The shape of the fall: from 1 at way 0 to 0 at way 1."""


def rate_factor(recipe: "Recipe", progress: float, step: int, warmup_steps: int) -> float:
    """What the highest learning rate is multiplied by.

    The rate falls over the last `decay` of the run, from 1 to `final_rate`, after it has risen linearly over the first
    `warmup_steps`.

    Args:
        progress: how far the run is, from 0 to 1.
        step: steps done before this one.
        warmup_steps: as planned: a short run has fewer than the recipe says.
    """
    rise = min(1.0, (step + 1) / (warmup_steps + 1))
    if recipe.decay == 0:
        return rise
    way = min(1.0, max(0.0, (progress - (1 - recipe.decay)) / recipe.decay))
    return rise * (recipe.final_rate + (1 - recipe.final_rate) * SCHEDULES[recipe.schedule](way))


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
