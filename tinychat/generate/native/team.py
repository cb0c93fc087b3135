"""How many threads take part in a call: those with which it is quicker, as measured while it goes on."""

from collections import Counter

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
        self._calls: Counter[bool] = Counter()

    def quicker(self, is_wide: bool) -> int:
        """The number that is the quicker one, as far as is known."""
        usual = self.most if is_wide else self.usual
        other = self.most + 1 - usual
        if all(self._is_known(is_wide, one) for one in (usual, other)):
            return min(usual, other, key=lambda one: self._seconds[is_wide, one])
        return usual

    def choose(self, is_wide: bool) -> int:
        """Of the next call, with one sequence or many: now and then the slower number, which may be quicker by now."""
        quicker = self.quicker(is_wide)
        if quicker != self._quicker.get(is_wide):
            self._patience[is_wide] = PATIENCE if is_wide in self._quicker else 1
            self._quicker[is_wide], self._calls[is_wide] = quicker, 0
        if self.most == 1 or not self._is_known(is_wide, quicker):
            return quicker
        self._calls[is_wide] += 1
        if self._calls[is_wide] >= self._patience[is_wide] + LONGEST_TRIAL:
            self._calls[is_wide], self._patience[is_wide] = 1, max(PATIENCE, self._patience[is_wide])
        return self.most + 1 - quicker if self._calls[is_wide] >= self._patience[is_wide] else quicker

    def note(self, is_wide: bool, threads: int, seconds: float) -> None:
        """What a token took in a call."""
        self._told[is_wide, threads] += 1
        before = self._seconds.get((is_wide, threads), seconds)
        self._seconds[is_wide, threads] = min(seconds, before + WEIGHT * (seconds - before))
        if threads == self._quicker.get(is_wide):
            return
        patience = self._patience.get(is_wide, PATIENCE)
        if self._is_known(is_wide, threads):
            self._calls[is_wide] = 0
            self._patience[is_wide] = min(max(2 * patience, PATIENCE), LONGEST_PATIENCE)
        else:
            self._calls[is_wide] = patience - 1  # the trial goes on

    def _is_known(self, is_wide: bool, threads: int) -> bool:
        return self._told[is_wide, threads] >= FIRST_CALLS
