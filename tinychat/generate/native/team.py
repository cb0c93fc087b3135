"""How many threads take part in a call: those with which it is quicker, as measured while it goes on."""

from collections import Counter, defaultdict

FIRST_CALLS = 3
"""that tell of each number before one is the quicker: threads that are new often share a processor at first"""
PATIENCE, LONGEST_PATIENCE = 32, 1024
"""calls after which the slower number is tried again; twice as many each time that it is still slower: other programs
come and go, and a call may last as long as many others, where it waits for a thread that has no processor"""
LONGEST_TRIAL = 4
"""calls that may go by without telling of it"""
WEIGHT = 0.3
"""of a call that took longer than those before it; one that took less counts alone: nothing makes a call too quick"""


class Team:
    """Chooses between one thread and all, apart for one sequence and for many: these have more to share out.

    Args:
        usual: to begin with, for one sequence.
        most: all. 1: there is nothing to choose.
    """

    def __init__(self, usual: int, most: int) -> None:
        self.usual, self.most = usual, most
        self._seconds: dict[tuple[bool, int], float] = {}
        self._told: Counter[tuple[bool, int]] = Counter()
        self._quicker: dict[bool, int] = {}
        self._patience: dict[bool, int] = {}
        self._calls: defaultdict[bool, int] = defaultdict(int)

    def choose(self, is_wide: bool) -> int:
        """Of the next call, with one sequence or many."""
        usual = self.most if is_wide else self.usual

        def seconds(threads: int) -> float:
            is_known = self._told[is_wide, threads] >= FIRST_CALLS
            return self._seconds[is_wide, threads] if is_known else 0.0

        quicker, *slower = sorted({1, self.most}, key=lambda one: (seconds(one), one != usual))
        if quicker != self._quicker.get(is_wide):
            self._quicker[is_wide], self._patience[is_wide], self._calls[is_wide] = quicker, PATIENCE, 0
        self._calls[is_wide] = (self._calls[is_wide] + 1) % (self._patience[is_wide] + LONGEST_TRIAL)
        return slower[0] if slower and self._calls[is_wide] >= self._patience[is_wide] else quicker

    def note(self, is_wide: bool, threads: int, seconds: float) -> None:
        """What a token took in a call."""
        self._told[is_wide, threads] += 1
        before = self._seconds.get((is_wide, threads), seconds)
        self._seconds[is_wide, threads] = min(seconds, before + WEIGHT * (seconds - before))
        if threads != self._quicker.get(is_wide):  # it was tried
            self._calls[is_wide] = 0
            self._patience[is_wide] = min(2 * self._patience.get(is_wide, PATIENCE), LONGEST_PATIENCE)
