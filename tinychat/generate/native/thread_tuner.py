"""Choose how many threads take part in a call of the kernel, by measuring which number is faster while it runs."""

from collections import Counter

CALLS_TO_KNOW = 3
"""Calls measured with each number before they are compared: new threads often share a processor at first."""
TRIAL_INTERVAL, MAX_TRIAL_INTERVAL = 32, 1024
"""Calls after which the slower number is tried again; doubled each time that it is still slower. Other programs come
and go, and a call whose thread waits for a processor may take as long as many others."""
MAX_TRIAL_CALLS = 4
"""Calls that a trial lasts if none of them is measured."""
SLOWER_WEIGHT = 0.3
"""Weight of a call that took longer than those before in their average. A faster call replaces it: nothing can make a
call too fast."""


class ThreadTuner:
    """Chooses between one thread and all, separately for one sequence and for many, which leave more to share.

    Args:
        default: number of threads to begin with, for one sequence.
        most: all threads. 1: there is nothing to choose.
    """

    def __init__(self, default: int, most: int) -> None:
        self.default, self.most = default, most
        self._seconds: dict[tuple[bool, int], float] = {}
        self._measured: Counter[tuple[bool, int]] = Counter()
        self._faster: dict[bool, int] = {}
        self._interval: dict[bool, int] = {}
        self._calls: Counter[bool] = Counter()

    def faster(self, is_wide: bool) -> int:
        """Return the faster number of threads as far as is known, without a trial.

        Args:
            is_wide: whether a call has many sequences.
        """
        default = self.most if is_wide else self.default
        other = self.most + 1 - default
        if all(self._is_known(is_wide, one) for one in (default, other)):
            return min(default, other, key=lambda one: self._seconds[is_wide, one])
        return default

    def choose(self, is_wide: bool) -> int:
        """Return the number of threads for the next call: now and then the slower one, which may be faster by now."""
        faster = self.faster(is_wide)
        if faster != self._faster.get(is_wide):
            self._interval[is_wide] = TRIAL_INTERVAL if is_wide in self._faster else 1
            self._faster[is_wide], self._calls[is_wide] = faster, 0
        if self.most == 1 or not self._is_known(is_wide, faster):
            return faster
        self._calls[is_wide] += 1
        if self._calls[is_wide] >= self._interval[is_wide] + MAX_TRIAL_CALLS:
            self._calls[is_wide], self._interval[is_wide] = 1, max(TRIAL_INTERVAL, self._interval[is_wide])
        return self.most + 1 - faster if self._calls[is_wide] >= self._interval[is_wide] else faster

    def record(self, is_wide: bool, threads: int, seconds: float) -> None:
        """Record the seconds per token of a call with that number of threads."""
        self._measured[is_wide, threads] += 1
        before = self._seconds.get((is_wide, threads), seconds)
        self._seconds[is_wide, threads] = min(seconds, before + SLOWER_WEIGHT * (seconds - before))
        if threads == self._faster.get(is_wide):
            return
        interval = self._interval.get(is_wide, TRIAL_INTERVAL)
        if self._is_known(is_wide, threads):
            self._calls[is_wide] = 0
            self._interval[is_wide] = min(max(2 * interval, TRIAL_INTERVAL), MAX_TRIAL_INTERVAL)
        else:
            self._calls[is_wide] = interval - 1  # the trial continues

    def _is_known(self, is_wide: bool, threads: int) -> bool:
        return self._measured[is_wide, threads] >= CALLS_TO_KNOW
