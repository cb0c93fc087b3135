"""Regular expressions as finite automata over characters, for text that grows token by token.

The syntax is that of Python's `re` as far as it describes a language: literals, `.`, classes such as `[a-z]` and `\\d`,
groups, `|`, and repetitions; without look-around, back-references, word boundaries and flags. A pattern becomes
positions and their followers (Glushkov 1961), these a deterministic automaton (subset construction).
"""

import re
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any, NamedTuple, NoReturn

MAX_POSITIONS, MAX_STATES, MAX_WORK, MAX_DEPTH = 1_000, 1_000, 500_000, 100
"""Limits of a pattern: characters once repetitions are written out, states, unions of sets of states, nested groups.
Some short patterns need millions of states; these are refused within a second."""
MAX_CODE = 0x10FFFF

Codes = tuple[tuple[int, int], ...]
"""A set of characters: inclusive ranges of their codes, ascending and disjoint."""


_filtering = Lock()  # the filters of warnings are those of all threads


class PatternError(ValueError):
    """A pattern that is no regular expression, or one that is too large."""


class Pattern:
    """The deterministic automaton of a pattern; state 0 is its start.

    Raises:
        PatternError: If the pattern is no regular expression, or it is too large.
    """

    def __init__(self, pattern: str) -> None:
        nodes = _Parser(pattern).parse()
        self._sets: list[int] = []  # of each position, the index of its character set
        self._followers: list[int] = []  # of each position, a bit for each position that may follow; bit 0 is the end
        self._codes: list[Codes] = []
        fragment = self._join(self._build(nodes), _Fragment(False, 1, 0))
        self.class_starts: list[int]
        """First codes of ranges of characters that the automaton does not distinguish; the first is 0."""
        self.classes: list[int]
        """The class of each of these ranges."""
        members = self._classify()
        self.table: list[list[int]] = []
        """For each state, the next state by class; −1 if no match continues so."""
        self.accepting: list[bool] = []
        """For each state, whether what has been read is a match."""
        self._determinize(fragment.first, members)

    @property
    def num_classes(self) -> int:
        return len(self.table[0])

    def class_of(self, char: str) -> int:
        """Return the class of a character."""
        return self.classes[bisect_right(self.class_starts, ord(char)) - 1]

    def advance(self, state: int, text: str) -> int:
        """Return the state after reading a text; −1 if no match continues so."""
        for char in text:
            if state < 0:
                break
            state = self.table[state][self.class_of(char)]
        return state

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        state = self.advance(0, text)
        return state >= 0 and self.accepting[state]

    # --- from syntax to positions ---

    def _build(self, node: "_Node") -> "_Fragment":
        kind, argument = node[0], node[1]
        if kind == "chars":
            if len(self._sets) >= MAX_POSITIONS:
                raise PatternError(f"it is too large: written out, it has more than {MAX_POSITIONS:,} characters")
            if argument not in self._codes:
                self._codes.append(argument)
            self._sets.append(self._codes.index(argument))
            self._followers.append(0)
            bit = 1 << len(self._sets)
            return _Fragment(False, bit, bit)
        if kind == "join":
            fragment = EMPTY
            for one in argument:
                fragment = self._join(fragment, self._build(one))
            return fragment
        if kind == "either":
            parts = [self._build(one) for one in argument]
            first, last = (_union(getattr(part, name) for part in parts) for name in ("first", "last"))
            return _Fragment(any(part.nullable for part in parts), first, last)
        low, high = node[2:]
        fragment = EMPTY
        if high is None:  # at least `low`: the last of them repeats
            for _ in range(max(0, low - 1)):
                fragment = self._join(fragment, self._build(argument))
            loop = self._build(argument)
            self._follow(loop.last, loop.first)
            return self._join(fragment, loop if low else loop._replace(nullable=True))
        for _ in range(high - low):  # x{0,3} as (x(x(x)?)?)?, in which few characters may follow each
            fragment = self._join(self._build(argument), fragment)._replace(nullable=True)
        for _ in range(low):
            fragment = self._join(self._build(argument), fragment)
        return fragment

    def _join(self, left: "_Fragment", right: "_Fragment") -> "_Fragment":
        self._follow(left.last, right.first)
        return _Fragment(
            left.nullable and right.nullable,
            left.first | right.first if left.nullable else left.first,
            left.last | right.last if right.nullable else right.last,
        )

    def _follow(self, positions: int, followers: int) -> None:
        for position in _bits(positions):
            self._followers[position - 1] |= followers

    # --- from positions to states ---

    def _classify(self) -> list[int]:
        """Divide all characters into classes; return a bit for each position that takes a class, by class."""
        toggles = defaultdict[int, int](int, {0: 0})  # by code: the sets that begin or end there
        for index, codes in enumerate(self._codes):
            for low, high in codes:
                toggles[low] ^= 1 << index
                toggles[high + 1] ^= 1 << index
        positions = [0] * len(self._codes)
        for position, index in enumerate(self._sets, 1):
            positions[index] |= 1 << position
        self.class_starts, self.classes = sorted(toggles), []
        found: dict[int, int] = {}
        sets = 0
        for code in self.class_starts:
            sets ^= toggles[code]
            self.classes.append(found.setdefault(sets, len(found)))
        return [_union(positions[index] for index in _bits(sets)) for sets in found]

    def _determinize(self, start: int, members: Sequence[int]) -> None:
        states, waiting, work = {start: 0}, [start], 0
        for expected in waiting:
            row = []
            for member in members:
                taken = expected & member
                work += 1 + taken.bit_count()
                following = _union(self._followers[position - 1] for position in _bits(taken))
                if following and following not in states:
                    states[following] = len(states)
                    waiting.append(following)
                row.append(states[following] if following else -1)
            self.table.append(row)
            self.accepting.append(bool(expected & 1))
            if len(states) > MAX_STATES or work > MAX_WORK:
                raise PatternError(f"it is too large: its automaton needs more than {MAX_STATES:,} states")


def compile_pattern(pattern: str, flags: int = 0, *, name: str = "it") -> re.Pattern[str]:
    """Compile a regular expression of Python; `name` is what an error calls it.

    Raises:
        PatternError: If it is none, or if a later Python may read it as something else: `[[a]` as a set within a set.
    """
    try:
        with _filtering, warnings.catch_warnings():
            warnings.filterwarnings("error", "Possible ", FutureWarning)
            return re.compile(pattern, flags)
    except FutureWarning as warning:
        problem = str(warning).replace("Possible", "possible", 1)
        raise PatternError(f"{name} is ambiguous, a {problem}: write a backslash before the character") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{name} is no regular expression: {error}") from None


@lru_cache(maxsize=8)
def find_pattern(pattern: str) -> Pattern:
    """Return the automaton of a pattern; the newest are kept.

    Raises:
        PatternError: If the pattern is no regular expression, or it is too large.
    """
    return Pattern(pattern)


def pattern_fault(pattern: str) -> str:
    """Return the reason why a text is no pattern; empty if it is one."""
    try:
        find_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


class _Fragment(NamedTuple):
    """A part of a pattern: whether it matches nothing at all, and its possible first and last positions."""

    nullable: bool
    first: int
    last: int


EMPTY = _Fragment(True, 0, 0)

_Node = tuple[Any, ...]
"""`("chars", codes)`, `("join", nodes)`, `("either", nodes)` or `("repeat", node, low, high)`; no high: unlimited."""
_NOTHING: _Node = ("join", ())
"""The only node without characters: repeated often, in repeated groups, others would take any time to be built."""

_COUNT = re.compile(r"\{(?P<low>\d*)(?P<comma>,)?(?P<high>\d*)\}")
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Parser:
    """Parses a pattern by recursive descent."""

    def __init__(self, pattern: str) -> None:
        self.text, self.at, self.depth = pattern, 0, 0

    def parse(self) -> _Node:
        compile_pattern(self.text)  # its messages are known, and it refuses what is no pattern anywhere
        node = self._either()
        if self.at < len(self.text):
            self._refuse(self.text[self.at])
        return node

    def _refuse(self, what: str) -> NoReturn:
        raise PatternError(f"it has {what!r} at position {self.at}, which only describes text around a match")

    def _peek(self, text: str) -> bool:
        """Move behind a text if it comes next; return whether it does."""
        found = self.text.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def _either(self) -> _Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PatternError(f"its groups are nested more than {MAX_DEPTH} deep")
        parts = [self._join()]
        while self._peek("|"):
            parts.append(self._join())
        self.depth -= 1
        if all(part == _NOTHING for part in parts):
            return _NOTHING
        return parts[0] if len(parts) == 1 else ("either", tuple(parts))

    def _join(self) -> _Node:
        parts: list[_Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts += (part for part in self._repeated() if part != _NOTHING)
        return ("join", tuple(parts))

    def _repeated(self) -> list[_Node]:
        if (self.text[self.at] == "^" and self.at == 0) or (self.text[self.at :] == "$"):
            self.at += 1  # the whole text matches anyway
            return []
        node = self._atom()
        limits: tuple[int, int | None]
        if (sign := self.text[self.at : self.at + 1]) in _SIGNS:
            limits, self.at = _SIGNS[sign], self.at + 1
        elif (count := _COUNT.match(self.text, self.at)) and (count["low"] or count["comma"]):
            self.at = count.end()
            low = int(count["low"] or 0)
            limits = (low, low if not count["comma"] else int(count["high"]) if count["high"] else None)
            if max(low, limits[1] or 0) > MAX_POSITIONS:
                raise PatternError(f"it is too large: it repeats something more than {MAX_POSITIONS:,} times")
        else:
            return [node]
        if self._peek("+"):
            self.at -= 1
            self._refuse("+")
        self._peek("?")  # the same text matches, lazily or not
        return [] if node == _NOTHING or limits == (0, 0) else [("repeat", node, *limits)]

    def _atom(self) -> _Node:
        char = self.text[self.at]
        if char == "(":
            if not self._peek("(?:"):
                if self.text.startswith("(?", self.at):
                    self._refuse(self.text[self.at : self.at + 3])
                self.at += 1
            node = self._either()
            self.at += 1  # `)`: `re` has found it
            return node
        self.at += 1
        if char == "[":
            return ("chars", self._class())
        if char == ".":
            return ("chars", _invert(_code("\n")))
        if char == "\\":
            return ("chars", self._escape())
        if char in "^$":
            self.at -= 1
            self._refuse(char)
        return ("chars", _code(char))

    def _class(self) -> Codes:
        """Parse a class from behind its `[`."""
        is_negated, codes = self._peek("^"), list[tuple[int, int]]()
        while True:
            low = self._member()
            if self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = self._member()
                codes.append((low[0][0], high[-1][1]))
            else:
                codes += low
            if self._peek("]"):
                break
        return _invert(_merge(codes)) if is_negated else _merge(codes)

    def _member(self) -> Codes:
        self.at += 1
        return self._escape() if self.text[self.at - 1] == "\\" else _code(self.text[self.at - 1])

    def _escape(self) -> Codes:
        """Parse an escape from behind its backslash."""
        char = self.text[self.at]
        if match := _CODE.match(self.text, self.at):
            self.at = match.end()
            return _code(chr(int(next(filter(None, match.groups())), 16)))
        if char in "dDsSwW":
            self.at += 1
            codes = _codes_of(char.lower())
            return codes if char.islower() else _invert(codes)
        if char in _CONTROLS:
            self.at += 1
            return _code(_CONTROLS[char])
        if char.isascii() and char.isalnum():
            self.at -= 1
            self._refuse(f"\\{char}")
        self.at += 1
        return _code(char)


def _code(char: str) -> Codes:
    return ((ord(char), ord(char)),)


@cache
def _codes_of(kind: str) -> Codes:
    r"""Return the characters of `\d`, `\s` or `\w`, in any script."""
    every = "".join(map(chr, range(MAX_CODE + 1)))
    return tuple((found.start(), found.end() - 1) for found in re.finditer(f"\\{kind}+", every))


def _merge(codes: Iterable[tuple[int, int]]) -> Codes:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(codes):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _invert(codes: Codes) -> Codes:
    edges = [-1, *(edge for one in codes for edge in one), MAX_CODE + 1]
    return tuple((low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low + 1 < high)


def _bits(number: int) -> Iterable[int]:
    """Yield the indices of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _union(numbers: Iterable[int]) -> int:
    union = 0
    for number in numbers:
        union |= number
    return union
