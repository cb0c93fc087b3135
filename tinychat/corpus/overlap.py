"""Verbatim overlap: the spans of generated text that occur word for word in a corpus.

Both searches compare windows by their hashes (Karp and Rabin, 1987, "Efficient randomized pattern-matching algorithms")
and verify every match, so that they are exact. They take the text in blocks, in bounded memory.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tinychat.corpus.corpus import Passage

BLOCK = 1 << 17
"""Symbols of the text that are searched at once: few enough for a processor's cache."""
BASE = 0x9E3779B97F4A7C15
"""Base of the hashes; odd, so that it has an inverse modulo 2⁶⁴."""
FILTER_BITS = 16
SHIFT = np.uint64(64 - FILTER_BITS)
BOUNDARY = "\udfff"
"""Separates two passages: a lone surrogate, which no text holds."""
MAX_POSITIONS = 1024
"""Positions that are compared at once: the first of many may already have the longest span possible."""

Ids = npt.NDArray[np.integer[Any]]
Symbols = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Codec(Protocol):
    """Encodes texts as token ids, and decodes them."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


# --- the longest span, among token ids -------------------------------------------------------------------------------


@dataclass(frozen=True)
class CommonSpan:
    """The longest common span of some sequences and a text of ids, at its first position in the text."""

    start: int = 0
    length: int = 0
    searched: int = 0
    """Ids of the text that were searched: all, unless the search was stopped."""


@dataclass(frozen=True)
class LongestCopy:
    """The longest span of generated texts that occurs in a corpus."""

    text: str
    characters: int
    position: float
    """Position of its first occurrence in the corpus, from 0 to 1."""
    searched: float
    """Fraction of the corpus that was searched."""


def longest_copy(
    generated: Sequence[str], ids: Ids, tokenizer: Codec, should_stop: Callable[[], bool] = lambda: False
) -> LongestCopy:
    """Find the longest span of generated texts that occurs in a corpus, in whole tokens; it lies within one text.

    The corpus is given as ids [N] of its tokenizer. Once `should_stop`, called before each block, returns True, the
    longest span so far counts. The text of the span is empty if there is none.
    """
    span = longest_common_span([tokenizer.encode(text) for text in generated], ids, should_stop)
    text = tokenizer.decode(ids[span.start : span.start + span.length].tolist())
    total = max(1, len(ids))
    return LongestCopy(text, len(text), span.start / total, span.searched / total)


def longest_common_span(
    sequences: Sequence[Sequence[int]], text: Ids, should_stop: Callable[[], bool] = lambda: False
) -> CommonSpan:
    """Find the longest span of any sequence of ids that occurs in a text of ids [N], in about 20 ns an id of the text.

    Once `should_stop`, called before each block, returns True, the longest span so far counts.
    """
    # Separated by a number that is not an id, so that no span crosses from one sequence into the next.
    query = WindowHashes(np.array([id for sequence in sequences for id in (*sequence, -1)], np.int64))
    starts = np.arange(len(query.symbols))
    longest = max(map(len, sequences), default=0)
    start = length = first = 0
    while first < len(text) and length < longest and not should_stop():
        block = WindowHashes(np.asarray(text[first : first + BLOCK + longest]).astype(np.int64))
        positions = block.find(query.of(length + 1), length + 1)
        if found := _find_longer(query, starts, block, positions, length):
            length, start = found[0], first + found[1]
        first += BLOCK
    return CommonSpan(start, length, min(first, len(text)) if length < longest else len(text))


# --- all spans, among characters -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A span of an answer that occurs in a corpus."""

    start: int
    """Position in the answer."""
    text: str
    passage: Passage
    """First position of the span in the corpus, without its text."""


def find_copies(answer: str, passages: Iterable[Passage], min_length: int) -> list[Copy]:
    """Find the spans of an answer that occur in a corpus: the longest, then the longest of what is left, and so on.

    One pass over the passages of the corpus, in order, finds the longest span from each position of the answer, in
    about 25 ns a character, and more where both repeat themselves. Spans have at least `min_length` ≥ 1 characters, and
    cross no passage that `ends`.
    """
    if len(answer) < min_length:
        return []
    query = WindowHashes(_codes(answer))
    hashes = query.of(min_length)
    wanted = np.unique(hashes)
    starts = {hash: np.flatnonzero(hashes == hash).tolist() for hash in wanted.tolist()}
    lengths = np.full(len(answer), min_length - 1)  # of the longest span from each position so far
    found_in: dict[int, Passage] = {}
    for block in _blocks(passages, overlap=len(answer)):
        windows = WindowHashes(block.codes)
        positions = windows.find(wanted, min_length)
        met = windows.at(positions, min_length)
        alike = {hash: positions[met == hash] for hash in np.unique(met).tolist()}
        found_at: dict[int, int] = {}  # positions in this block
        for start in sorted(start for hash in alike for start in starts[hash]):
            best = int(lengths[start]), 0  # the length, and the position below 0: of equal spans, the first counts
            if start - 1 in found_at:
                best = max(best, (int(lengths[start - 1]) - 1, -found_at[start - 1] - 1))
            some = alike[int(hashes[start])]
            if start:  # a span that continues one of the start before is a character shorter than that, and no news
                some = some[(some == 0) | (block.codes[some - 1] != query.symbols[start - 1])]
            length = max(int(lengths[start]), best[0] - 1)
            for few in np.split(some, range(MAX_POSITIONS, len(some), MAX_POSITIONS)):
                if start + length == len(answer):
                    break
                if found := _find_longer(query, np.array([start]), windows, few, length):
                    length, position = found
                    best = max(best, (length, -position))
            if best[0] > lengths[start]:
                lengths[start], found_at[start] = best[0], -best[1]
                found_in[start] = block.passage_at(found_at[start])
    copies = []
    while (length := int(lengths.max())) >= min_length:
        start = int(lengths.argmax())
        copies.append(Copy(start, answer[start : start + length], found_in[start]))
        lengths[start : start + length] = 0
        lengths[:start] = np.minimum(lengths[:start], start - np.arange(start))
    return copies


@dataclass(frozen=True)
class _Block:
    """A block of a corpus: its characters, and the positions where passages begin, the first perhaps before it."""

    codes: Symbols
    marks: list[tuple[int, Passage]]

    def passage_at(self, position: int) -> Passage:
        start, passage = self.marks[bisect_right(self.marks, position, key=lambda mark: mark[0]) - 1]
        return _skip(passage, position - start)._replace(text="")


def _blocks(passages: Iterable[Passage], overlap: int) -> Iterator[_Block]:
    """Yield the corpus in blocks, each beginning with the last `overlap` characters of the one before."""
    texts: list[str] = []
    marks: list[tuple[int, Passage]] = []
    count = 0
    for passage in passages:
        for start in range(0, len(passage.text), BLOCK):
            marks.append((count, _skip(passage, start)))
            texts.append(passage.text[start : start + BLOCK])
            count += len(texts[-1])
            if count >= BLOCK + overlap:
                text = "".join(texts)
                yield _Block(_codes(text), marks)
                cut = count - overlap
                last = max(0, bisect_right(marks, cut, key=lambda mark: mark[0]) - 1)  # an empty passage has none
                texts, marks, count = [text[cut:]], [(at - cut, one) for at, one in marks[last:]], overlap
        if passage.ends:
            texts.append(BOUNDARY)
            count += 1
    yield _Block(_codes("".join(texts)), marks)


def _skip(passage: Passage, count: int) -> Passage:
    """Return what is left of a passage after some characters."""
    if not count:
        return passage
    lines = passage.text.count("\n", 0, count) if passage.unit == "line" else 0
    return passage._replace(text=passage.text[count:], number=passage.number + lines, before=passage.before + count)


def _codes(text: str) -> Symbols:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


# --- windows and their hashes ----------------------------------------------------------------------------------------


class WindowHashes:
    """The hashes of all windows, of any width, of symbols [N]: Σ symbol·BASE^position mod 2⁶⁴, moved to position 0."""

    def __init__(self, symbols: Symbols) -> None:
        count = 1 << len(symbols).bit_length()  # more than N; few different values, for the cache of powers
        powers, self._inverses = powers_of(BASE, count), powers_of(pow(BASE, -1, 1 << 64), count)
        self.symbols = symbols
        self._sums = np.zeros(len(symbols) + 1, np.uint64)
        np.cumsum(symbols.astype(np.uint64) * powers[: len(symbols)], out=self._sums[1:])

    def of(self, width: int) -> Hashes:
        """Return the hashes [N − width + 1] of all windows of a width."""
        windows = max(0, len(self.symbols) - width + 1)
        return (self._sums[width:] - self._sums[:windows]) * self._inverses[:windows]

    def at(self, positions: Positions, width: int) -> Hashes:
        """Return the hashes of the windows that begin at some positions."""
        return (self._sums[positions + width] - self._sums[positions]) * self._inverses[positions]

    def find(self, wanted: Hashes, width: int) -> Positions:
        """Return the positions of the windows that have one of the wanted hashes, in order."""
        hashes = self.of(width)
        passes = np.zeros(1 << FILTER_BITS, bool)  # a few bits of the hashes rule out most windows
        passes[wanted >> SHIFT] = True
        positions = np.flatnonzero(passes[hashes >> SHIFT])
        return positions[np.isin(hashes[positions], wanted)]


def _find_longer(
    query: WindowHashes, starts: Positions, block: WindowHashes, positions: Positions, length: int
) -> tuple[int, int] | None:
    """Find the longest common span, beginning at `starts` in the query and at `positions` (in order) in the block.

    Returns:
        The length of the span and its first position in the block; None if it is no longer than `length`.
    """
    found = None
    while True:
        width = length + 1
        starts = starts[starts + width <= len(query.symbols)]
        positions = positions[positions + width <= len(block.symbols)]
        wanted, hashes = query.at(starts, width), block.at(positions, width)
        matches = hashes == wanted if len(wanted) == 1 else np.isin(hashes, wanted)
        if not matches.any():
            break
        # Different windows do not have equal hashes by chance, but may by design: symbols are compared.
        first = int(matches.argmax())
        position = int(positions[first])
        alike = starts[wanted == hashes[first]]
        longest = max(_common_prefix(query.symbols[start:], block.symbols[position:]) for start in alike)
        if longest > length:
            length, found = longest, (longest, position)
        positions = positions[matches][1:]
    return found


def _common_prefix(first: Symbols, second: Symbols) -> int:
    shorter = min(len(first), len(second))
    different = first[:shorter] != second[:shorter]
    return int(different.argmax()) if different.any() else shorter


@lru_cache(maxsize=8)
def powers_of(base: int, count: int) -> Hashes:
    """Return 1, base, base², … modulo 2⁶⁴, [count]."""
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
