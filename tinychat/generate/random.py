"""Random numbers that depend on where they are used alone: a counter, not a stream.

The same seed, prompt and place give the same number in any batch, in any order, on any engine.
"""

import secrets

_MASK = (1 << 64) - 1


def fresh_seed() -> int:
    """A seed that nobody chose, short enough to type."""
    return secrets.randbits(31)


def uniform(seed: int, prompt: int, place: int) -> float:
    """A number from 0 up to, not including, 1: the hash of three whole numbers, 53 bits of it."""
    state = _mix(_mix(_mix(seed) ^ prompt) ^ place)
    return float(state >> 11) * 2.0**-53


def _mix(x: int) -> int:
    """The step and finalizer of SplitMix64 (Steele, Lea, Flood 2014, fig. 14)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
