"""Corpora: documents or conversations that can be read again and again in bounded memory.

`TextCorpus` is one text of any number of files, `Mix` several weighted texts, `Side` one side of translations.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from tinychat.corpus.readers import InlineTexts, Part
from tinychat.corpus.types import Chunk, Conversation, Mode, Notes, Role, summarize_notes
from tinychat.errors import SourceChangedError, SourceError

EMPTY = "empty, left out"

ROLE_BYTES: dict[Role, bytes] = {"user": b"user", "assistant": b"bot"}
"""Roles as hashed in fingerprints; they must not change, since saved models identify their text by its fingerprint."""


class Digest:
    """Count a text as it is read, and compute its fingerprint."""

    def __init__(self) -> None:
        self.characters = 0
        self.documents = 0
        self._hash = hashlib.sha256()

    def add(self, item: Chunk | Conversation) -> None:
        """Add the next chunk or conversation. Texts are separated by bytes that never occur in UTF-8."""
        if isinstance(item, Conversation):
            for message in item.messages:
                self.characters += len(message.text)
                self._hash.update(ROLE_BYTES[message.role] + b"\xfe" + message.text.encode() + b"\xfd")
        else:
            self.characters += len(item.text)
            self._hash.update(item.text.encode())
        if isinstance(item, Conversation) or item.ends_document:
            self.documents += 1
            self._hash.update(b"\xff")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that was added, with the boundaries."""
        return self._hash.hexdigest()


class Passage(NamedTuple):
    """A piece of a text and its position."""

    text: str
    file: str
    unit: str
    """Unit that `number` counts: `line`, `document` or `conversation`."""
    number: int
    """Number of the unit in which the passage begins, from 1 in each file."""
    before: int
    """Characters of the text before it."""
    ends: bool
    """Whether the next passage belongs to another document or speaker."""


class Corpus(ABC):
    """Documents or conversations; methods raise `SourceError` if a file cannot be read any more."""

    name: str
    """Suitable as the name of a model."""
    mode: Mode
    """`completion` for documents, else conversations: those of a translation have two messages."""
    characters: int
    documents_count: int
    fingerprint: str
    """SHA-256 of the content: differs for any other content"""
    notices: tuple[str, ...] = ()
    """Observations of the readers, for a person to read."""
    single: bool = False
    """Whether it is one running text."""
    watch: Callable[[int], object] | None = None
    """Called with the number of characters read so far, while `checked_items` are read."""

    @abstractmethod
    def items(self) -> Iterator[Chunk | Conversation]:
        """Return chunks of documents or, depending on the mode, conversations, read as they are asked for."""

    def checked_items(self) -> Iterator[Chunk | Conversation]:
        """Yield the items; after the last, raise an error unless they are those of the fingerprint.

        Raises:
            SourceChangedError: If the content changed since the corpus was created.
        """
        digest = Digest()
        for item in self.items():
            digest.add(item)
            if self.watch is not None:
                self.watch(digest.characters)
            yield item
        if digest.fingerprint != self.fingerprint:
            raise SourceChangedError(self.name)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the documents in pieces of bounded size; a conversation is a document with a line for each message."""
        return map(_as_chunk, self.items())

    def first_chunks(self, characters: int) -> Iterator[Chunk]:
        """Yield the beginning, of so many characters; of conversations, the whole ones in it, at least a message."""
        left, is_first = characters, True
        for item in self.items():
            length = item.characters if isinstance(item, Conversation) else len(item.text)
            if length <= left:
                yield _as_chunk(item)
            elif isinstance(item, Chunk):
                yield Chunk(item.text[:left], True)
            elif is_first:
                yield _as_chunk(item.first(left))
            if length > left:
                return
            left, is_first = left - length, False

    def chosen_chunks(self, documents: Container[int]) -> Iterator[Chunk]:
        """Yield the documents with some indices."""
        index = 0
        for item in self.items():
            if index in documents:
                yield _as_chunk(item)
            index += isinstance(item, Conversation) or item.ends_document

    def documents(self) -> Iterator[str]:
        """Yield whole documents: only for documents that are known to be short."""
        pieces: list[str] = []
        for chunk in self.chunks():
            pieces.append(chunk.text)
            if chunk.ends_document:
                yield "".join(pieces)
                pieces.clear()

    def conversations(self) -> Iterator[Conversation]:
        """Return the conversations; a corpus of documents has none."""
        return (item for item in self.items() if isinstance(item, Conversation))


def _as_chunk(item: Chunk | Conversation) -> Chunk:
    return item if isinstance(item, Chunk) else Chunk("\n".join(message.text for message in item.messages), True)


class SourceCorpus(Corpus):
    """A corpus read from sources: one text or a mix of texts."""

    @property
    @abstractmethod
    def sources(self) -> "tuple[MixPart, ...]":
        """The texts and their fractions."""

    @cached_property
    def source_side(self) -> "Side":
        """The texts to translate, in a corpus of translations."""
        return Side(self, "user")

    @cached_property
    def target_side(self) -> "Side":
        """The translations, in a corpus of translations."""
        return Side(self, "assistant")


class TextCorpus(SourceCorpus):
    """One text of one or more files, read once when it is created, so that unreadable files are found then.

    Args:
        name: suitable as the name of a model.
        mode: that of any `Corpus`.
        parts: its files, or texts in memory.
        notes: observations made in finding the files, each with the name to show.
        keep_alive: any object that must live as long as the corpus does.

    Raises:
        SourceError: If a file cannot be read, or none holds any text.
    """

    def __init__(
        self,
        name: str,
        mode: Mode,
        parts: Sequence[Part | InlineTexts],
        notes: Sequence[tuple[str, Notes]] = (),
        keep_alive: object = None,
    ) -> None:
        self.name, self.mode = name, mode
        self._parts, self._keep_alive = parts, keep_alive
        digest, all_notes = Digest(), list(notes)
        for part in parts:
            before, own = digest.characters, Notes()
            for item in self._read(part, own):
                digest.add(item)
            if digest.characters == before:
                own.add(EMPTY)
            all_notes.append((part.name, own))
        self.characters, self.documents_count = digest.characters, digest.documents
        self.fingerprint = digest.fingerprint
        self.notices = summarize_notes(all_notes)
        self.single = digest.documents == 1 and all(part.is_running_text for part in parts)
        if not digest.characters:
            names = ", ".join(part.name for part in parts[:3])
            why = [line for line in self.notices if not line.endswith(EMPTY)]
            raise SourceError(f"{names}: there is no text in it" if why else f"{names} is empty", "\n".join(why[:1]))

    @property
    def sources(self) -> "tuple[MixPart, ...]":
        return (MixPart(self, 1.0),)

    def items(self) -> Iterator[Chunk | Conversation]:
        for part in self._parts:
            yield from self._read(part, Notes())

    def passages(self) -> Iterator[Passage]:
        """Yield the documents in pieces, or the messages of the conversations, with their positions."""
        before = 0
        for part in self._parts:
            number = 1
            for item in self._read(part, Notes()):
                if isinstance(item, Conversation):
                    unit, pieces = "conversation", [(message.text, True) for message in item.messages]
                else:
                    unit, pieces = "line" if part.is_running_text else "document", [(item.text, item.ends_document)]
                for text, ends in pieces:
                    yield Passage(text, part.name, unit, number, before, ends)
                    before += len(text)
                number += pieces[0][0].count("\n") if unit == "line" else 1

    def _read(self, part: Part | InlineTexts, notes: Notes) -> Iterator[Chunk | Conversation]:
        return part.chunks(notes) if self.mode == "completion" else part.conversations(notes)


class MixPart(NamedTuple):
    """One text of a mix."""

    corpus: TextCorpus
    fraction: float
    """Fraction of training data drawn from it; the fractions of a mix add up to 1."""


MAX_NAMES = 4
"""Texts whose names make up the name of a mix."""


class Mix(SourceCorpus):
    """Texts of one mode, each drawn from in proportion to its weight, above 0, and with its own validation split."""

    def __init__(self, corpora: Sequence[TextCorpus], weights: Sequence[float]) -> None:
        largest = max(weights)  # divides all, since their sum may exceed what a float can hold
        total = sum(weight / largest for weight in weights)
        self._sources = tuple(
            MixPart(corpus, weight / largest / total) for corpus, weight in zip(corpora, weights, strict=True)
        )
        names = [f"{corpus.name} ({100 * fraction:.2g} %)" for corpus, fraction in self._sources]
        if len(names) > MAX_NAMES:
            names[MAX_NAMES - 1 :] = [f"{len(names) - MAX_NAMES + 1} more"]
        self.name = ", ".join(names[:-1]) + " and " + names[-1]
        self.mode = corpora[0].mode
        self.characters = sum(corpus.characters for corpus in corpora)
        self.documents_count = sum(corpus.documents_count for corpus in corpora)
        self.fingerprint = hashlib.sha256("".join(corpus.fingerprint for corpus in corpora).encode()).hexdigest()
        self.notices = tuple(notice for corpus in corpora for notice in corpus.notices)

    @property
    def sources(self) -> tuple[MixPart, ...]:
        return self._sources

    def items(self) -> Iterator[Chunk | Conversation]:
        return chain.from_iterable(source.corpus.items() for source in self._sources)

    def checked_items(self) -> Iterator[Chunk | Conversation]:
        return chain.from_iterable(source.corpus.checked_items() for source in self._sources)


class Side(Corpus):
    """One side of a corpus of translations: a document for the first message of that role in each conversation."""

    def __init__(self, corpus: Corpus, role: Role) -> None:
        self.name, self.mode = corpus.name, "completion"
        self._corpus, self._role = corpus, role
        digest = Digest()
        for item in self.items():
            digest.add(item)
        self.characters, self.documents_count = digest.characters, digest.documents
        self.fingerprint = digest.fingerprint

    def items(self) -> Iterator[Chunk | Conversation]:
        for conversation in self._corpus.conversations():
            texts = (message.text for message in conversation.messages if message.role == self._role)
            yield Chunk(next(texts, ""), True)
