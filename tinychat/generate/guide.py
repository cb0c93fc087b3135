"""Guides an answer token by token: which tokens may come next, so that it begins with a text or matches a pattern.

A pattern is an automaton over characters; a token moves it by all its characters at once. For each state the guide
knows the least number of tokens to a match, so that no answer is led where it cannot end, or not within its limit.
"""

import codecs
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.generate.vocabulary import Vocabulary
from tinychat.pattern import MAX_CODE, Pattern, find_pattern
from tinychat.textutil import count

NEVER = np.iinfo(np.int16).max
"""Number of tokens to a match where there is no way to one."""
MAX_STEPS = 20_000_000
"""Maximum number of characters that tokens are followed by, from all states together: about half a second."""
MAX_CACHED_BYTES = 64 << 20
"""Maximum size of the costs that a guide remembers."""

Costs = npt.NDArray[np.int16]
"""For each token, the number of tokens that a match needs after it, [V]; NEVER if it must not come."""


class State(NamedTuple):
    """Position of an answer in its pattern."""

    begun: int = 0
    """Number of tokens of the required beginning so far; -1 once it is complete."""
    state: int = 0
    """State of the pattern."""
    pending: bytes = b""
    """Bytes of a character that is not complete yet."""
    is_first: bool = True


@dataclass(frozen=True)
class _Groups:
    """Tokens of which the automaton sees the same: equal sequences of classes of characters, longest first."""

    of_token: npt.NDArray[np.int32]  # [V]; len(lengths) if a token cannot follow a complete character
    classes: npt.NDArray[np.uint16]  # [G, L]
    lengths: npt.NDArray[np.int32]  # [G]
    tails: list[bytes]  # [G]: the first bytes of an incomplete character

    def walk(self, table: npt.NDArray[np.int16], states: Sequence[int]) -> npt.NDArray[np.int16]:
        """Return the states after each group from each state, [len(states), G]; the last row of `table` is no state."""
        ends = np.repeat(np.asarray(states, np.int16)[:, None], len(self.lengths), axis=1)
        for index in range(self.classes.shape[1]):
            longer = int((self.lengths > index).sum())
            ends[:, :longer] = table[ends[:, :longer], self.classes[:longer, index]]
        return ends


class Guide:
    """The tokens that may continue an answer which begins with a text, matches a pattern, or both.

    Raises:
        GenerationError: If the tokenizer cannot write such an answer.
    """

    def __init__(self, vocabulary: Vocabulary, begin: str = "", regex: str = "") -> None:
        self._size, self._end_ids = vocabulary.size, sorted(vocabulary.end_ids)
        self._first, self._later = vocabulary.first_pieces, vocabulary.pieces
        self._cache: dict[State, Costs] = {}
        self._pattern = _PatternTokens(find_pattern(regex), regex, self._first, self._later) if regex else None
        self._begin_ids = vocabulary.tokenizer.encode(begin) if begin else []
        self._rests: list[bytes] = []  # of the beginning before each of its tokens, and after the last
        self._to_match = 0  # tokens from the end of the beginning to a match
        self.start = State(0 if begin else -1)
        if begin:
            self._check_begin(begin)
        self.least = len(self._begin_ids) + self._to_match
        """The least number of tokens of an answer."""
        if self._pattern is not None and not begin:
            costs = self.costs(self.start)
            self.least = 0 if self._pattern.accepting[0] else int(costs.min(initial=NEVER)) + 1
        if self.least >= NEVER:
            raise GenerationError(f"no text of this model matches {regex!r}", "it lacks some of the characters")

    def advance(self, state: State, id: int) -> State | None:
        """Return the state after a token; None if it must not come."""
        data = (self._first if state.is_first else self._later)[id]
        begun = state.begun
        if begun >= 0:
            rest = self._rests[begun]
            if begun < len(self._begin_ids) and id == self._begin_ids[begun]:
                begun = begun + 1 if self._rests[begun + 1] else -1
            elif data.startswith(rest):
                begun = -1
            else:
                return None
        if self._pattern is None:
            return State(begun, is_first=False)
        after = self._pattern.advance(state.state, state.pending + data) if data else None
        return None if after is None else State(begun, *after, is_first=False)

    def is_match(self, state: State) -> bool:
        """Return whether an answer may end."""
        is_whole = self._pattern is None or (not state.pending and self._pattern.accepting[state.state])
        return state.begun < 0 and is_whole

    def allowed(self, state: State, left: int) -> npt.NDArray[np.bool_]:
        """Return which tokens may come if up to `left` are still generated, [V].

        If these are too few for a match, only those that lead to one as soon as possible; none where the answer matches
        already, so that it ends.
        """
        costs = self.costs(state)
        nearest = 0 if self.is_match(state) else int(costs.min(initial=NEVER)) + 1
        return costs < min(max(left, nearest), NEVER)

    def is_free(self, state: State) -> bool:
        """Return whether any token may come."""
        return state.begun < 0 and self._pattern is None

    def costs(self, state: State) -> Costs:
        """Return the costs of all tokens, [V]."""
        costs = self._cache.get(state)
        if costs is None:
            costs = self._compute_costs(state)
            if len(self._cache) * costs.nbytes > MAX_CACHED_BYTES:
                self._cache.clear()
            self._cache[state] = costs
        return costs

    def _compute_costs(self, state: State) -> Costs:
        costs = np.zeros(self._size, np.int16)
        if self._pattern is not None:
            costs = self._pattern.costs(state.state, state.pending, state.is_first)
            costs[self._end_ids] = 0 if self.is_match(state) else NEVER
        if state.begun >= 0:
            every, rest = costs, self._rests[state.begun]
            costs = np.full_like(every, NEVER)
            data_of = self._first if state.is_first else self._later
            is_last = state.begun == len(self._begin_ids)  # what is left of the beginning has no tokens of its own
            crossing = [id for id, data in enumerate(data_of) if data.startswith(rest) and (is_last or data != rest)]
            costs[crossing] = every[crossing]
            if not is_last:
                costs[self._begin_ids[state.begun]] = len(self._begin_ids) - state.begun - 1 + self._to_match
        return costs

    def _check_begin(self, begin: str) -> None:
        """Find what is left of the beginning before each of its tokens; check that it can be written, and matched.

        Where its tokens would not write it, such as a half word of a tokenizer of words, a longer token has to.
        """
        rest, ids, self._begin_ids = begin.encode(), self._begin_ids, []
        for id in ids:
            data = (self._first, self._later)[bool(self._begin_ids)][id]
            if not data or not rest.startswith(data):
                break
            self._rests.append(rest)
            self._begin_ids.append(id)
            rest = rest[len(data) :]
        self._rests.append(rest)
        written = begin.encode()[: len(begin.encode()) - len(rest)]
        after = self._pattern.advance(0, written) if self._pattern is not None else (0, b"")
        if after is not None and rest:
            costs = self.costs(State(len(self._begin_ids), *after, is_first=not self._begin_ids))
            self._to_match = min(NEVER, int(costs.min(initial=NEVER)) + 1)
        elif after is not None and self._pattern is not None:
            self._to_match = self._pattern.distance(*after)
        if after is None or self._to_match >= NEVER:
            if self._pattern is None:
                raise GenerationError(f"this model cannot write {begin!r}", "it lacks some of its characters")
            problem = f"no answer that begins with {begin!r} matches {self._pattern.text!r}"
            raise GenerationError(problem, "change one of the two, or set it to none")


class _PatternTokens:
    """A pattern as an automaton over tokens, each given by its bytes where it begins a text, and elsewhere."""

    def __init__(self, pattern: Pattern, text: str, first: list[bytes], later: list[bytes]) -> None:
        self.text, self._pattern, self.accepting = text, pattern, pattern.accepting
        rows = [*pattern.table, [-1] * pattern.num_classes]
        self._table = np.array(rows, np.int16)  # [S + 1, C]; the last row, also −1, is no state
        self._later = self._group(later)
        self._first = self._later if first is later else self._group(first)
        self._continuing = [id for id, data in enumerate(later) if data and data[0] & 0xC0 == 0x80]
        self._bytes = later
        known = set(later)
        self._has_all_bytes = all(bytes([byte]) in known for byte in (*range(0x80, 0xC0), *range(0xC2, 0xF5)))
        if (len(rows) - 1) * int(self._later.lengths.sum()) > MAX_STEPS:
            remedy = "shorten its repetitions, such as {1,500}"
            raise GenerationError(f"{text!r} is too large for a vocabulary of {len(later):,} tokens", remedy)
        self._distances = self._measure()

    def advance(self, state: int, data: bytes) -> tuple[int, bytes] | None:
        """Return the state after bytes, and those of a character that is not complete; None if no match follows."""
        split = _split(data)
        if split is None:
            return None
        state = self._pattern.advance(state, split[0])
        return None if state < 0 or self.distance(state, split[1]) >= NEVER else (state, split[1])

    def distance(self, state: int, pending: bytes = b"") -> int:
        """Return the least number of tokens from a state to a match; with pending bytes, at most that many more."""
        if not pending:
            return int(self._distances[state])
        found = _complete(pending) if self._has_all_bytes else None
        if found is None:
            return NEVER
        low, high, missing = found
        starts = self._pattern.class_starts
        ranges = range(bisect_right(starts, low) - 1, bisect_right(starts, high))
        classes = {self._pattern.classes[index] for index in ranges}
        nearest = min(int(self._distances[self._table[state, one]]) for one in classes)
        return min(NEVER, missing + nearest)

    def costs(self, state: int, pending: bytes, is_first: bool) -> Costs:
        """Return the costs of all tokens in a state."""
        if pending:
            costs = np.full(len(self._bytes), NEVER, np.int16)
            for id in self._continuing:
                after = self.advance(state, pending + self._bytes[id])
                costs[id] = NEVER if after is None else self.distance(*after)
            return costs
        groups = self._first if is_first else self._later
        ends = groups.walk(self._table, [state])[0]  # [G]
        of_group = np.append(self._distances[ends], NEVER)  # the last one is no group
        for index, tail in enumerate(groups.tails):
            if tail:
                of_group[index] = NEVER if ends[index] < 0 else self.distance(int(ends[index]), tail)
        return of_group[groups.of_token].astype(np.int16)

    def _group(self, tokens: list[bytes]) -> _Groups:
        keys: dict[tuple[bytes, bytes], int] = {}
        found = [-1] * len(tokens)
        starts, classes = self._pattern.class_starts, self._pattern.classes
        class_of: dict[str, int] = {}
        for id, data in enumerate(tokens):
            split = _split(data) if data else None
            if split is None:
                continue
            for char in set(split[0]) - class_of.keys():
                class_of[char] = classes[bisect_right(starts, ord(char)) - 1]
            codes = np.array([class_of[char] for char in split[0]], np.uint16).tobytes()
            found[id] = keys.setdefault((codes, split[1]), len(keys))
        order = sorted(keys, key=lambda key: -len(key[0]))
        places = {keys[key]: place for place, key in enumerate(order)}
        lengths = np.array([len(codes) // 2 for codes, _ in order], np.int32)
        padded = np.zeros((len(order), int(lengths.max(initial=0))), np.uint16)
        for place, (codes, _) in enumerate(order):
            padded[place, : len(codes) // 2] = np.frombuffer(codes, np.uint16)
        of_token = np.array([places.get(index, len(order)) for index in found], np.int32)
        return _Groups(of_token, padded, lengths, [tail for _, tail in order])

    def _measure(self) -> npt.NDArray[np.int32]:
        """Return the least number of tokens from each state to a match, [S + 1]: those of single bytes count too."""
        states = len(self.accepting)
        edges = {1: np.zeros((states, states + 1), np.bool_)}  # by number of tokens: from, to; the last is no state
        is_whole = [not tail for tail in self._later.tails]
        ends = self._later.walk(self._table, range(states))[:, is_whole]
        edges[1][np.arange(states)[:, None], ends] = True
        if self._has_all_bytes:
            for start, one in zip(self._pattern.class_starts, self._pattern.classes, strict=True):
                if start <= MAX_CODE and not 0xD800 <= start <= 0xDFFF:
                    cost = len(chr(start).encode())
                    matrix = edges.setdefault(cost, np.zeros((states, states + 1), np.bool_))
                    matrix[np.arange(states), self._table[:-1, one]] = True
        distances = np.full(states + 1, NEVER, np.int32)
        distances[:-1][self.accepting] = 0
        distance = 0
        while distance <= distances[distances < NEVER].max(initial=-1):
            nearest = np.flatnonzero(distances[:-1] == distance)
            for cost, matrix in edges.items():
                before = np.flatnonzero(matrix[:, nearest].any(axis=1))
                distances[before] = np.minimum(distances[before], distance + cost)
            distance += 1
        return distances


find_guide = lru_cache(maxsize=8)(Guide)
"""Returns a guide; the newest are kept."""


class Guided:
    """The control of `begin` and `regex`. What holds for the next answer alone leaves one that has begun otherwise.

    Raises:
        GenerationError: If no answer can be as asked.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self._guide = find_guide(vocabulary, settings.begin or "", settings.regex or "")
        self._max_tokens = settings.max_tokens
        self._asked = f"a match of {settings.regex!r}" if settings.regex else f"to begin with {settings.begin!r}"
        self.is_done = False
        """Whether any token may come next, and after it: an engine need not ask before each."""
        self._ids: list[int] = []
        self._state: State | None = self._guide.start

    def adjust(self, biases: "array[float]", ids: Sequence[int], start: int) -> None:
        """Forbid tokens that lead to no such answer, or not to one within `max_tokens`.

        Raises:
            GenerationError: At the beginning of an answer, if no such answer is within `max_tokens`.
        """
        answer = list(ids[start:])
        self.is_done = False
        if not answer and self._guide.least > self._max_tokens:
            problem = f"{self._asked} takes {count(self._guide.least, 'token')}, and max-tokens is {self._max_tokens}"
            raise GenerationError(problem, f"`--max-tokens {self._guide.least}`, or more")
        state = self._follow(answer)
        if state is not None and not self._guide.is_free(state):
            allowed = self._guide.allowed(state, self._max_tokens - len(answer))
            np.frombuffer(biases, np.float32)[~allowed] = -np.inf
        else:
            self.is_done = True

    def _follow(self, answer: list[int]) -> State | None:
        """Return the state after the tokens of an answer; None if these are not as asked."""
        if answer[: len(self._ids)] != self._ids:
            self._ids, self._state = [], self._guide.start
        for id in answer[len(self._ids) :]:
            self._state = None if self._state is None else self._guide.advance(self._state, id)
        self._ids = answer
        return self._state


_decoder: Any = codecs.getincrementaldecoder("utf-8")


@lru_cache(maxsize=1 << 17)
def _split(data: bytes) -> tuple[str, bytes] | None:
    """Return the characters of bytes, and the bytes of an incomplete one at their end; None if they are no UTF-8."""
    decoder = _decoder()
    try:
        return decoder.decode(data), decoder.getstate()[0]
    except UnicodeDecodeError:
        return None


def _complete(start: bytes) -> tuple[int, int, int] | None:
    """Return the lowest and highest code of the characters whose UTF-8 starts so, and how many bytes are missing."""
    length = 2 if start[0] < 0xE0 else 3 if start[0] < 0xF0 else 4
    code = start[0] & (0x7F >> length)
    for byte in start[1:]:
        code = code << 6 | byte & 0x3F
    missing = length - len(start)
    low, high = code << 6 * missing, (code + 1 << 6 * missing) - 1
    low, high = max(low, (0x80, 0x800, 0x10000)[length - 2]), min(high, MAX_CODE)
    if 0xD800 <= high <= 0xDFFF:  # surrogates have no UTF-8
        high = 0xD7FF
    return (low, high, missing) if low <= high else None
