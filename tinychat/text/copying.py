"""What a model has by heart: the longest span of what it said that stands in a text word for word."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tinychat.text.tokenizers import Tokenizer

BLOCK = 1 << 17
"""ids of the text that are looked at at once: few enough for a processor's cache"""
BASE = 0x9E3779B97F4A7C15
"""of the hashes; odd, so that it has an inverse modulo 2⁶⁴"""
FILTER_BITS = 16
SHIFT = np.uint64(64 - FILTER_BITS)

IdArray = npt.NDArray[np.integer[Any]]
Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Span:
    """Ids that stand in the text and in what was said."""

    start: int = 0
    """where in the text; the first place of several"""
    length: int = 0
    searched: int = 0
    """ids of the text that were looked at: all of them, unless it was stopped"""


@dataclass(frozen=True)
class Copied:
    """The longest span that was copied."""

    text: str
    characters: int
    position: float
    """where it begins in the text, from 0 to 1"""
    searched: float
    """the share of the text that was looked at"""


def longest_copy(
    said: Sequence[str], text: IdArray, tokenizer: Tokenizer, should_stop: Callable[[], bool] = lambda: False
) -> Copied:
    """The longest span of what was said that stands in the text, to a token.

    Args:
        said: texts; a span lies in one of them.
        text: ids [N], of the tokenizer.
        tokenizer: of the text.
        should_stop: asked now and then; once it says yes, what is found by then counts.
    """
    span = longest_common_span([tokenizer.encode(one) for one in said], text, should_stop)
    copied = tokenizer.decode(text[span.start : span.start + span.length].tolist())
    whole = max(1, len(text))
    return Copied(copied, len(copied), span.start / whole, span.searched / whole)


def longest_common_span(
    said: Sequence[Sequence[int]], text: IdArray, should_stop: Callable[[], bool] = lambda: False
) -> Span:
    """The longest common substring of any of `said` and `text`: exact, in about 20 ns an id of the text.

    The text is taken in blocks. Whether a block has a span longer than the longest so far is told by hashes of so many
    ids in a row (Karp and Rabin, 1987, "Efficient randomized pattern-matching algorithms"), each match of which is
    looked at; only where it has one is its length searched for, by halving.

    Args:
        said: sequences of ids.
        text: ids [N].
        should_stop: asked before each block.
    """
    # One sequence, with a number between two that is no id, so that no span goes across.
    joined = np.array([id for one in said for id in (*one, -1)], np.int64)
    longest = max(map(len, said), default=0)
    said_hashes = WindowHashes(joined)
    start = length = first = 0
    while first < len(text) and length < longest and not should_stop():
        block = np.asarray(text[first : first + BLOCK + longest]).astype(np.int64)
        hashes = WindowHashes(block)
        found = _find(said_hashes, hashes, length + 1)
        if found is not None:
            low, high = length + 1, longest  # a span of `low` is there, at `found`; one of `high + 1` is not
            while low < high:
                middle = min(2 * low, (low + high + 1) // 2)
                further = _find(said_hashes, hashes, middle)
                if further is None:
                    high = middle - 1
                else:
                    low, found = middle, further
            start, length = first + found, low
        first += BLOCK
    return Span(start, length, min(first, len(text)) if length < longest else len(text))


class WindowHashes:
    """Hashes of every window of a sequence, of any width: Σ id·BASE^place modulo 2⁶⁴, moved to place 0.

    Args:
        ids: [N].
    """

    def __init__(self, ids: Places) -> None:
        count = 1 << len(ids).bit_length()  # more than N; few different ones
        powers, self._inverses = powers_of(BASE, count), powers_of(pow(BASE, -1, 1 << 64), count)
        self.ids = ids
        self._sums = np.zeros(len(ids) + 1, np.uint64)
        np.cumsum(ids.astype(np.uint64) * powers[: len(ids)], out=self._sums[1:])

    def of(self, width: int) -> Hashes:
        """[N − width + 1]."""
        windows = max(0, len(self.ids) - width + 1)
        return (self._sums[width:] - self._sums[:windows]) * self._inverses[:windows]

    def at(self, places: Places, width: int) -> Hashes:
        """Those of the windows that begin at some places."""
        return (self._sums[places + width] - self._sums[places]) * self._inverses[places]

    def find(self, wanted: Hashes, width: int) -> Places:
        """The places where windows begin that have one of these hashes."""
        there = self.of(width)
        passes = np.zeros(1 << FILTER_BITS, bool)  # most windows are told apart by a few bits of their hashes
        passes[wanted >> SHIFT] = True
        places = np.flatnonzero(passes[there >> SHIFT])
        return places[np.isin(there[places], wanted)]


def _find(said: WindowHashes, block: WindowHashes, width: int) -> int | None:
    """The first place in the block of a window of that width which is also among what was said."""
    wanted = said.of(width)
    places = block.find(wanted, width)
    for place, hash in zip(places, block.at(places, width), strict=True):
        # Equal hashes of different windows do not happen by chance, but may by design: all of equal hash are compared.
        for at in np.flatnonzero(wanted == hash):
            if np.array_equal(said.ids[at : at + width], block.ids[place : place + width]):
                return int(place)
    return None


@lru_cache(maxsize=8)
def powers_of(base: int, count: int) -> Hashes:
    """1, base, base², … modulo 2⁶⁴."""
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
