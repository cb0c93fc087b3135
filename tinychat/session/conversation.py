"""A conversation: a tree of turns, in which the path to the current turn is the current branch."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.events import AvoidedText, Finished, Record, Token


class PackedTokens(Sequence[Token]):
    """Tokens without alternatives, in a sixth of the memory: a session may have thousands of answers."""

    __slots__ = ("_avoided", "_replaced", "_text", "_values")
    _FORMAT = struct.Struct("=iddi")
    """Id, log-probability, seconds, and the length of the text up to the end of the token."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        values, texts, end = bytearray(), [], 0
        self._avoided: dict[int, tuple[AvoidedText, ...]] = {}
        self._replaced: int | None = None  # by the first token
        for position, token in enumerate(tokens):
            if token.avoided:
                self._avoided[position] = token.avoided
            if position == 0:
                self._replaced = token.replaced
            end += len(token.text)
            texts.append(token.text)
            values += self._FORMAT.pack(token.id, token.logprob, token.seconds, end)
        self._text, self._values = "".join(texts), bytes(values)

    def __len__(self) -> int:
        return len(self._values) // self._FORMAT.size

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...
    def __getitem__(self, index: int | slice) -> Token | list[Token]:
        if isinstance(index, slice):
            return [self._unpack(position) for position in range(len(self))[index]]
        return self._unpack(range(len(self))[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _unpack(self, position: int) -> Token:
        offset = position * self._FORMAT.size
        id, logprob, seconds, end = self._FORMAT.unpack_from(self._values, offset)
        start = self._FORMAT.unpack_from(self._values, offset - self._FORMAT.size)[-1] if position else 0
        avoided, replaced = self._avoided.get(position, ()), None if position else self._replaced
        return Token(id, self._text[start:end], logprob, seconds, avoided=avoided, replaced=replaced)


@dataclass(slots=True)
class Turn:
    """A prompt and its answer."""

    prompt: str
    prompt_ids: list[int] = field(default_factory=list)
    """The ids of all tokens before the answer, whose first one may replace some of them; empty, except in the newest
    turn: they are computed again when needed."""
    tokens: Sequence[Token] = field(default_factory=list)
    finished: Finished | None = None
    saved_text: str | None = None
    """Start of the answer, read from a transcript: its tokens are not known."""
    model: str = ""
    """Name or path of the model that answered; empty if unknown."""
    is_foreign: bool = field(default=False, compare=False)
    """Whether another model than the open one answered, whose tokens may mean other texts."""
    settings: Settings | None = None
    """Settings at the start of the answer; None if unknown."""
    why_not_reproducible: str = ""
    """Why the same call would not give the same answer; empty if it would."""
    changes: list[tuple[int, Settings]] = field(default_factory=list)
    """Settings that the tokens were sampled with, each after the index of the first of these tokens."""
    parent: "Turn | None" = field(default=None, compare=False, repr=False)
    """The turn before this one; None at the beginning of a conversation."""

    @property
    def answer(self) -> str:
        return self.text_before(len(self.tokens))

    @property
    def num_replaced(self) -> int:
        """The number of tokens at the end of the prompt that the first token of the answer replaces."""
        return (self.tokens[0].replaced or 0) if self.tokens else 0

    def text_before(self, index: int) -> str:
        """Return the text of the answer before the token at an index."""
        return (self.saved_text or "") + "".join(token.text for token in self.tokens[:index])

    def record(self, record: Record, settings: Settings) -> None:
        """Add a record of the answer and the settings that it was generated with."""
        # Thousands of tokens a second nearly always have the same settings object: it is compared by identity first,
        # and its fields only once for each object.
        if isinstance(record, Finished):
            self.finished = record
            if record.reason == "interrupted":
                self.why_not_reproducible = self.why_not_reproducible or "it was stopped"
            if not any(token.top for token in self.tokens):
                self.tokens = PackedTokens(self.tokens)
        is_known = bool(self.changes) and self.changes[-1][1] is settings
        if not (is_known or self.why_not_reproducible or self._is_equivalent(settings)):
            self.why_not_reproducible = "its settings changed meanwhile"
        if isinstance(record, Token):
            if not is_known:
                self._record_settings(settings)
            if not isinstance(self.tokens, list):  # it is continued
                self.tokens = list(self.tokens)
            self.tokens.append(record)

    def _is_equivalent(self, settings: Settings) -> bool:
        """Return whether settings differ from those at the start of the answer in pace and seed alone."""
        initial = self.settings
        if initial is None or initial is settings:
            return initial is settings
        return replace(settings, slow=initial.slow, seed=initial.seed) == initial

    def _record_settings(self, settings: Settings) -> None:
        """Record the settings that the next tokens were sampled with."""
        if self.changes and self.changes[-1][1] == settings:
            self.changes[-1] = (self.changes[-1][0], settings)  # equal: replaced to be found by identity next time
        else:
            self.changes.append((len(self.tokens), settings))

    def settings_at(self, index: int) -> Settings | None:
        """Return the settings that the token at an index of the answer was sampled with; None if unknown."""
        return next((settings for first, settings in reversed(self.changes) if first <= index), self.settings)

    def path(self) -> "list[Turn]":
        """Return the turns from the beginning of the conversation to this one."""
        path = [self]
        while (parent := path[-1].parent) is not None:
            path.append(parent)
        return path[::-1]


class Conversation:
    """A tree of turns; the next turn follows the current one."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.all: list[Turn] = []
        """Turns of all branches, oldest first; the number of a turn is its index here plus 1."""
        self.current: Turn | None = None
        """The current turn; None before the first."""
        self.files: set[Path] = set()
        """Absolute paths of the files that it was opened from or saved in, which it may replace without a question."""
        for turn in turns:
            self.add(turn)

    @property
    def turns(self) -> list[Turn]:
        """The turns of the current branch, up to the current turn."""
        return self.current.path() if self.current else []

    def add(self, turn: Turn) -> None:
        """Append a turn to the current one and make it the current turn."""
        turn.parent = self.current
        if self.all:
            self.all[-1].prompt_ids = []
        self.all.append(turn)
        self.current = turn

    def remove(self, turn: Turn) -> None:
        """Remove a turn that no other one follows from the tree; the one before it becomes the current turn."""
        self.all = [one for one in self.all if one is not turn]
        self.current = turn.parent

    def back(self) -> Turn | None:
        """Go back before the current turn, which stays in the tree; return that turn, or None if there is none."""
        turn = self.current
        if turn is not None:
            self.current = turn.parent
        return turn

    def go_to(self, number: int) -> Turn:
        """Make the turn of a number the current one and return it.

        Raises:
            UsageError: If there is no turn of that number.
        """
        if not 1 <= number <= len(self.all):
            remedy = f"/tree shows turns 1 to {len(self.all)}" if self.all else "none yet"
            raise UsageError(f"there is no turn {number}", remedy)
        self.current = self.all[number - 1]
        return self.current

    def number(self, turn: Turn) -> int:
        """Return the number of a turn; the first is 1."""
        return next(number for number, one in enumerate(self.all, 1) if one is turn)

    def children(self, turn: Turn | None) -> list[Turn]:
        """Return the turns that follow a turn, oldest first; for None, those that begin the conversation."""
        return [one for one in self.all if one.parent is turn]
