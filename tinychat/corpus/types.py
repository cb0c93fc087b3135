"""Parts of a corpus: chunks of documents, conversations, and the notes of its readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

Mode = Literal["completion", "chat", "translation"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""Uses of a corpus or a model."""
Role = Literal["user", "assistant"]

MAX_LINES = 3
"""Lines of one kind that `summarize_notes` shows before it only counts the rest."""


class Chunk(NamedTuple):
    """A piece of a document; the last piece may be empty."""

    text: str
    ends_document: bool


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of both sides, oldest first."""

    messages: tuple[Message, ...]

    @property
    def characters(self) -> int:
        """Number of characters of all messages."""
        return sum(len(message.text) for message in self.messages)

    def first(self, characters: int) -> "Conversation":
        """Return the first messages, at least one, of so many characters at most."""
        ends = list(accumulate(len(message.text) for message in self.messages))
        return Conversation(self.messages[: max(1, sum(end <= characters for end in ends))])


class Notes:
    """Collect observations about one file; observations of one kind are counted and reported in one line."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, object]] = {}

    def add(self, kind: str, count: int = 1, first: object = None) -> None:
        """Record an observation unless the count is 0.

        `kind` is its line, in which the sum of the counts replaces `{count}`, and the first call's `first` `{first}`.
        """
        if count:
            before, first = self._seen.get(kind, (0, first))
            self._seen[kind] = before + count, first

    def lines(self) -> dict[str, str]:
        """Return the line of each kind; names taken from a file may themselves hold braces and newlines."""
        return {
            kind: " ".join(kind.replace("{count}", f"{count:,}").replace("{first}", str(first)).split())
            for kind, (count, first) in self._seen.items()
        }


def summarize_notes(files: Sequence[tuple[str, Notes]]) -> tuple[str, ...]:
    """Return lines `NAME: NOTE`: at most `MAX_LINES` of each kind of note, for a thousand files as for one."""
    kinds: dict[str, list[str]] = {}
    for name, notes in files:
        for kind, line in notes.lines().items():
            kinds.setdefault(kind, []).append(f"{name}: {line}")
    shown: list[str] = []
    for lines in kinds.values():
        shown += lines[:MAX_LINES]
        if len(lines) > MAX_LINES:
            shown[-1] += f" (and {len(lines) - MAX_LINES:,} more files alike)"
    return tuple(shown)
