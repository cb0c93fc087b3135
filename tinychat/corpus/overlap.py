"""All that stands word for word in a text: the spans of what was said that were copied, with their places."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tinychat.text.copying import BLOCK, Places, WindowHashes
from tinychat.text.corpus import Passage

BETWEEN = "\udfff"
"""between two passages: half a character, which no text holds"""
SOME = 1024
"""places that are looked at together: of many, the first may have the longest span that there can be"""


@dataclass(frozen=True)
class Copy:
    """A span of what was said, and the first place where it stands in the text."""

    start: int
    """in what was said"""
    text: str
    place: Passage
    """where it begins; its text is not kept"""


def find_copies(said: str, passages: Iterable[Passage], least: int) -> list[Copy]:
    """The spans of what was said that stand in a text, none over another: the longest, then the longest of the rest.

    One pass over the text finds the longest span from each place of what was said. Windows of the least length are told
    apart by hashes (Karp and Rabin, 1987); where one is met, only a window is looked at that is longer by one than the
    longest span so far. Exact, in bounded memory, in about 25 ns a character.

    Args:
        said: what may be copied.
        passages: of the text.
        least: characters of a span, at least; 1 or more.
    """
    if len(said) < least:
        return []
    search = _Search(said, least)
    for block in _blocks(passages, overlap=len(said)):
        search.look(block)
    return search.copies()


@dataclass(frozen=True)
class _Block:
    """Some of the text: its characters, and where passages begin among them, or before."""

    codes: Places
    marks: list[tuple[int, Passage]]

    def place(self, at: int) -> Passage:
        start, passage = self.marks[bisect_right(self.marks, at, key=lambda mark: mark[0]) - 1]
        return _from(passage, at - start)._replace(text="")


class _Search:
    """Looks for one text in another, block after block."""

    def __init__(self, said: str, least: int) -> None:
        self.said, self.least = said, least
        self._hashes = WindowHashes(_codes(said))
        hashes = self._hashes.of(least)
        self._wanted = np.unique(hashes)
        self._starts = {hash: np.flatnonzero(hashes == hash).tolist() for hash in self._wanted.tolist()}
        self._lengths = np.full(len(said), least - 1)
        self._places: dict[int, Passage] = {}

    def look(self, block: _Block) -> None:
        """Finds the spans from each place that are longer than those so far."""
        hashes = WindowHashes(block.codes)
        places = hashes.find(self._wanted, self.least)
        met = hashes.at(places, self.least)
        for hash in np.unique(met):
            alike = places[met == hash]
            for start in self._starts[int(hash)]:
                for first in range(0, len(alike), SOME):
                    self._lengthen(start, alike[first : first + SOME], hashes, block)

    def _lengthen(self, start: int, places: Places, hashes: WindowHashes, block: _Block) -> None:
        """Looks for a longer span from a place of what was said, at some places of the block."""
        while len(places) and start + (width := int(self._lengths[start]) + 1) <= len(self.said):
            places = places[places + width <= len(block.codes)]
            places = places[hashes.at(places, width) == self._hashes.at(np.array([start]), width)]
            if len(places):
                # Equal hashes of different windows do not happen by chance, but may by design: characters are compared.
                length = _in_common(self._hashes.ids[start:], block.codes[places[0] :])
                if length >= width:
                    self._lengths[start] = length
                    self._places[start] = block.place(int(places[0]))
                places = places[1:]

    def copies(self) -> list[Copy]:
        """What was found."""
        lengths, copies = self._lengths.copy(), []
        while (length := int(lengths.max())) >= self.least:
            start = int(lengths.argmax())
            copies.append(Copy(start, self.said[start : start + length], self._places[start]))
            lengths[start : start + length] = 0
            lengths[:start] = np.minimum(lengths[:start], start - np.arange(start))
        return copies


def _blocks(passages: Iterable[Passage], overlap: int) -> Iterator[_Block]:
    """The text in blocks, each of which begins with the end of the one before."""
    texts: list[str] = []
    marks: list[tuple[int, Passage]] = []
    count = 0
    for passage in passages:
        for start in range(0, len(passage.text), BLOCK):
            marks.append((count, _from(passage, start)))
            texts.append(passage.text[start : start + BLOCK])
            count += len(texts[-1])
            if count >= BLOCK + overlap:
                text = "".join(texts)
                yield _Block(_codes(text), marks)
                cut = count - overlap
                last = bisect_right(marks, cut, key=lambda mark: mark[0]) - 1
                texts, marks, count = [text[cut:]], [(at - cut, one) for at, one in marks[last:]], overlap
        if passage.ends:
            texts.append(BETWEEN)
            count += 1
    yield _Block(_codes("".join(texts)), marks)


def _from(passage: Passage, start: int) -> Passage:
    """What is left of a passage from a character on."""
    if not start:
        return passage
    lines = passage.text.count("\n", 0, start) if passage.unit == "line" else 0
    return passage._replace(text=passage.text[start:], number=passage.number + lines, before=passage.before + start)


def _codes(text: str) -> Places:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


def _in_common(first: Places, second: Places) -> int:
    """How many characters two texts begin with that are the same."""
    shorter = min(len(first), len(second))
    different = first[:shorter] != second[:shorter]
    return int(different.argmax()) if different.any() else shorter
