"""Round numbers for the axes of plots."""

import itertools
import math
from collections.abc import Sequence

ROUND = (1, 2, 5, 10)


def ticks(low: float, high: float, most: int, least_step: float = 0.0) -> list[float]:
    """Round numbers from `low` to `high`, 1, 2 or 5 times a power of ten apart, about `most` of them at most."""
    span = high - low
    if not span > 0 or most < 1:
        return [low]
    least = max(span / most, least_step)
    tenth = 10.0 ** math.floor(math.log10(least))
    step = next(factor * tenth for factor in ROUND if factor * tenth >= least * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def labels(values: Sequence[float]) -> list[str]:
    """The numbers with as many decimals as tell them apart: `1.0`, `1.5`; `1,000`."""
    step = min((after - before for before, after in itertools.pairwise(values)), default=1.0)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:,.{digits}f}" for value in values]
