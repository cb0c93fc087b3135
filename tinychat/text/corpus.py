"""A text that was found: what it holds, read again and again in bounded memory; and a mix of such texts."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from tinychat.errors import SourceError
from tinychat.text.chat import Conversation, Mode, Role
from tinychat.text.notices import Notes, summary
from tinychat.text.parts import Chunk, InlineTexts, Part

EMPTY = "empty, left out"


class Digest:
    """Counts a text while it is read, and tells it from any other."""

    def __init__(self) -> None:
        self.characters = 0
        self.documents = 0
        self._hash = hashlib.sha256()

    def add(self, item: Chunk | Conversation) -> None:
        """Takes the next piece, or the next conversation. The marks between texts are bytes that UTF-8 never has."""
        if isinstance(item, Conversation):
            for message in item.messages:
                self.characters += len(message.text)
                self._hash.update(message.role.encode() + b"\xfe" + message.text.encode() + b"\xfd")
        else:
            self.characters += len(item.text)
            self._hash.update(item.text.encode())
        if isinstance(item, Conversation) or item.ends_document:
            self.documents += 1
            self._hash.update(b"\xff")

    @property
    def fingerprint(self) -> str:
        return self._hash.hexdigest()


class Passage(NamedTuple):
    """A piece of a text, with its place."""

    text: str
    file: str
    unit: str
    """what `number` counts: `line`, `document` or `conversation`"""
    number: int
    """of the one that it begins in, from 1 in each file"""
    before: int
    """characters of the text before it"""
    ends: bool
    """whether the next one is another document, or said by somebody else"""


class Corpus:
    """A text, which can be read again and again.

    It is read once when it is made: whatever cannot be read is found then.

    Args:
        name: for a model of it.
        mode: `completion` for documents, else conversations: those of a translation have two messages.
        parts: its files, or texts that are at hand.
        notes: what was met in finding them, and by which name.
        keep: what must live as long as the corpus does.

    Raises:
        SourceError: a file cannot be read, or there is no text in any.
    """

    def __init__(
        self,
        name: str,
        mode: Mode,
        parts: Sequence[Part | InlineTexts],
        notes: Sequence[tuple[str, Notes]] = (),
        keep: object = None,
    ) -> None:
        self.name = name
        self.mode = mode
        self._parts = parts
        self._keep = keep
        digest = Digest()
        met = list(notes)
        for part in parts:
            before = digest.characters
            own = Notes()
            for item in self._read(part, own):
                digest.add(item)
            if digest.characters == before:
                own.add(EMPTY)
            met.append((part.name, own))
        self.characters = digest.characters
        self.documents_count = digest.documents
        self.fingerprint = digest.fingerprint
        self.notices = summary(met)
        self.single = digest.documents == 1 and all(part.is_running_text for part in parts)
        """whether it is one running text"""
        if not digest.characters:
            names = ", ".join(part.name for part in parts[:3])
            why = [line for line in self.notices if not line.endswith(EMPTY)]
            raise SourceError(f"{names}: there is no text in it" if why else f"{names} is empty", "\n".join(why[:1]))

    @property
    def sources(self) -> "tuple[Source, ...]":
        """The texts of a mix with their shares; one text is all of itself."""
        return (Source(self, 1.0),)

    @cached_property
    def asked(self) -> "Side":
        """Of translations: what is to be translated."""
        return Side(self, "user")

    @cached_property
    def answered(self) -> "Side":
        """Of translations: what it becomes."""
        return Side(self, "bot")

    def items(self) -> Iterator[Chunk | Conversation]:
        """The documents in pieces, or the conversations, by the corpus' mode."""
        for part in self._parts:
            yield from self._read(part, Notes())

    def chunks(self) -> Iterator[Chunk]:
        """The documents in pieces of bounded size; a conversation's messages, a line each."""
        for item in self.items():
            if isinstance(item, Conversation):
                yield Chunk("\n".join(message.text for message in item.messages), True)
            else:
                yield item

    def documents(self) -> Iterator[str]:
        """The documents, each whole: only for those that are known to be short."""
        pieces: list[str] = []
        for chunk in self.chunks():
            pieces.append(chunk.text)
            if chunk.ends_document:
                yield "".join(pieces)
                pieces.clear()

    def conversations(self) -> Iterator[Conversation]:
        """The conversations; none in a corpus of documents."""
        return (item for item in self.items() if isinstance(item, Conversation))

    def passages(self) -> Iterator[Passage]:
        """The documents in pieces, or all that is said in the conversations, with their places."""
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


class Source(NamedTuple):
    """One text of a mix."""

    corpus: Corpus
    share: float
    """of what is drawn from the mix: the shares add up to 1"""


MOST_NAMED = 4
"""texts of a mix that are all named; of more, the first ones are"""


class Mix(Corpus):
    """Several texts of which so much each is to be seen, whatever their lengths; each ends with its own last tenth.

    Args:
        corpora: all of one mode.
        weights: of each, above 0.
    """

    def __init__(self, corpora: Sequence[Corpus], weights: Sequence[float]) -> None:
        most = max(weights)  # by which all are divided, as their sum may be more than a number can hold
        total = sum(weight / most for weight in weights)
        self._sources = tuple(
            Source(corpus, weight / most / total) for corpus, weight in zip(corpora, weights, strict=True)
        )
        names = [f"{corpus.name} ({100 * share:.2g} %)" for corpus, share in self._sources]
        if len(names) > MOST_NAMED:
            names[MOST_NAMED - 1 :] = [f"{len(names) - MOST_NAMED + 1} more"]
        self.name = ", ".join(names[:-1]) + " and " + names[-1]
        self.mode = corpora[0].mode
        self.characters = sum(corpus.characters for corpus in corpora)
        self.documents_count = sum(corpus.documents_count for corpus in corpora)
        self.fingerprint = hashlib.sha256("".join(corpus.fingerprint for corpus in corpora).encode()).hexdigest()
        self.notices = tuple(notice for corpus in corpora for notice in corpus.notices)
        self.single = False

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._sources

    def items(self) -> Iterator[Chunk | Conversation]:
        """Those of each text."""
        return chain.from_iterable(source.corpus.items() for source in self._sources)


class Side(Corpus):
    """What one side says in a corpus of conversations: a document of each, the first thing it says.

    Args:
        corpus: of translations.
        role: `user` for what is to be translated, `bot` for what it becomes.
    """

    def __init__(self, corpus: Corpus, role: Role) -> None:
        self.name, self.mode, self.notices, self.single = corpus.name, "completion", (), False
        self._corpus, self._role = corpus, role
        digest = Digest()
        for item in self.items():
            digest.add(item)
        self.characters, self.documents_count = digest.characters, digest.documents
        self.fingerprint = digest.fingerprint

    def items(self) -> Iterator[Chunk | Conversation]:
        """A document of each conversation."""
        for conversation in self._corpus.conversations():
            said = (message.text for message in conversation.messages if message.role == self._role)
            yield Chunk(next(said, ""), True)
