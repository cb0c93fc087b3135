"""One file of a corpus → its documents or conversations."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tinychat.text.chat import Conversation, Message
from tinychat.text.decoding import read_text
from tinychat.text.encodings import describe, find_encoding
from tinychat.text.formats import FORMATS
from tinychat.text.notices import Notes
from tinychat.text.records import Table


class Chunk(NamedTuple):
    """A piece of a document; the last one of it may be empty."""

    text: str
    ends_document: bool


@dataclass
class Part:
    """One file.

    Args:
        path: of the file.
        name: what to call it in notices.
        format: of records, a key of `FORMATS`; empty for plain text.
        wanted: the field of the records that is the text, or the two sides of a conversation.
        separator: what stands between the documents of a plain text; empty where it is one document.
    """

    path: Path
    name: str
    format: str = ""
    wanted: str | None = None
    separator: str = ""

    @cached_property
    def encoding(self) -> str:
        """As Python names it.

        Raises:
            SourceError: the file cannot be read, or is no text.
        """
        return find_encoding(self.path)

    @property
    def is_running_text(self) -> bool:
        """Whether it is one document, however long."""
        return not self.format and not self.separator

    def chunks(self, notes: Notes) -> Iterator[Chunk]:
        """The documents; those of a running text in pieces."""
        if self.format:
            for text in self._table(self.format, notes).texts(notes):
                yield Chunk(text, True)
        elif self.separator:
            for text in _split(self._pieces(notes), self.separator):
                yield Chunk(text, True)
        else:
            began = False
            for piece in self._pieces(notes):
                began = True
                yield Chunk(piece, False)
            if began:
                yield Chunk("", True)

    def conversations(self, notes: Notes) -> Iterator[Conversation]:
        """The conversations; plain text is taken for two columns with a tab between them."""
        return self._table(self.format or ".tsv", notes).conversations(notes)

    def holds_conversations(self) -> bool:
        """Whether it is a file of conversations, by the names of its fields."""
        return bool(self.format) and self.wanted is None and self._table(self.format, Notes()).holds_conversations()

    def _table(self, format: str, notes: Notes) -> Table:
        return Table(self.path, format, lambda: self._pieces(notes), self.wanted)

    def _pieces(self, notes: Notes) -> Iterator[str]:
        if self.encoding != "utf-8":
            notes.add("read as {first}", first=describe(self.encoding))
        return read_text(self.path, self.encoding, notes)


@dataclass
class InlineTexts:
    """Texts that are at hand, in the place of a file.

    Args:
        texts: documents; or conversations, with a tab between two sides.
        name: what to call them in notices.
    """

    texts: tuple[str, ...]
    name: str
    is_running_text: bool = False

    def chunks(self, notes: Notes) -> Iterator[Chunk]:
        """As `Part.chunks`."""
        for text in self.texts:
            yield Chunk(text, True)

    def conversations(self, notes: Notes) -> Iterator[Conversation]:
        """As `Part.conversations`."""
        for number, text in enumerate(self.texts, 1):
            prompt, tab, answer = text.partition("\t")
            if tab:
                yield Conversation((Message("user", prompt), Message("bot", answer)))
            else:
                notes.add("texts without a tab left out: {count}, the first is number {first}", 1, f"{number:,}")


def format_of(path: Path) -> str:
    """The format of records that a file's name tells, packed or not; empty for text."""
    name = path.name.lower().removesuffix(".gz")
    return next((format for format in FORMATS if name.endswith(format)), "")


def _split(pieces: Iterator[str], separator: str) -> Iterator[str]:
    held = ""
    for piece in pieces:
        *whole, held = (held + piece).split(separator)
        yield from (text for document in whole if (text := document.strip("\n")))
    if text := held.strip("\n"):
        yield text
