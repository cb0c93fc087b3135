"""How many threads take part in a call: those with which it is quicker, as measured while it goes on."""

from collections import Counter

ANEW = 32
"""calls after which the slower number is tried again: other programs come and go, and to wait for a thread that has no
processor takes many times as long"""
WEIGHT = 0.3
"""of a call, against those before it"""


class Team:
    """Chooses between one thread and all, apart for one sequence and for many: these have more to share out.

    Args:
        usual: to begin with, for one sequence.
        most: all. 1: there is nothing to choose.
    """

    def __init__(self, usual: int, most: int) -> None:
        self.usual, self.most = usual, most
        self._calls: Counter[bool] = Counter()
        self._seconds: dict[tuple[bool, int], float] = {}

    def choose(self, is_wide: bool) -> int:
        """Of the next call, with one sequence or many."""
        self._calls[is_wide] += 1
        usual = self.most if is_wide else self.usual
        known = self._seconds
        quicker, *slower = sorted({1, self.most}, key=lambda one: (known.get((is_wide, one), 0.0), one != usual))
        return slower[0] if slower and self._calls[is_wide] % ANEW == 0 else quicker

    def note(self, is_wide: bool, threads: int, seconds: float) -> None:
        """What a token took in a call."""
        before = self._seconds.get((is_wide, threads), seconds)
        self._seconds[is_wide, threads] = before + WEIGHT * (seconds - before)
