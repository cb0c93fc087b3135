"""Documents that stay apart: one a row, and not one after the other. What an encoder reads of each stands beside it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tinychat.errors import SourceError
from tinychat.text.chat import ChatTemplate
from tinychat.text.corpus import Corpus
from tinychat.text.ids import IdFile, Ids, encode_corpus
from tinychat.text.tokenizers import Tokenizer

Places = npt.NDArray[np.int64]

FEWEST = 4
"""rows that are worth keeping apart to measure a model by"""


@dataclass(frozen=True)
class Rows:
    """Documents of a file of ids.

    Args:
        ids: [N], of all documents of the file, one after the other.
        starts, ends: [R], where each row begins and ends among them.
        beginning: an id to put before each row, where documents have none of their own to begin with.
        source: what an encoder reads, row for row.
    """

    ids: Ids
    starts: Places
    ends: Places
    beginning: tuple[int, ...] = ()
    source: "Rows | None" = None

    @classmethod
    def of(cls, file: IdFile, beginning: Sequence[int] = (), source: "Rows | None" = None) -> Self:
        """All documents of a file."""
        ends = np.asarray(file.ends)
        return cls(np.asarray(file.ids), np.append(0, ends[:-1]), ends, tuple(beginning), source)

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, place: int) -> Ids:
        """The ids of one row."""
        ids = self.ids[self.starts[place] : self.ends[place]]
        return np.append(np.array(self.beginning, ids.dtype), ids) if self.beginning else ids

    @cached_property
    def lengths(self) -> Places:
        """[R], the ids of each row."""
        return self.ends - self.starts + len(self.beginning)

    @cached_property
    def longest(self) -> int:
        """The ids of the longest row, of what the encoder reads too."""
        own = int(self.lengths.max(initial=0))
        return own if self.source is None else max(own, self.source.longest)

    def predicted(self, context: int) -> int:
        """How many ids are predicted where a model sees at most `context` at once: all but the first of each row."""
        return int(np.minimum(self.lengths - 1, context).sum())

    def take(self, places: Places) -> "Rows":
        """Some of the rows."""
        source = None if self.source is None else self.source.take(places)
        return Rows(self.ids, self.starts[places], self.ends[places], self.beginning, source)

    def flat(self) -> Ids:
        """The ids of all rows one after the other, in memory."""
        return np.concatenate([self.ids[:0], *self.pieces()])

    def pieces(self) -> Iterator[Ids]:
        """The ids of one row after the other."""
        return (self.ids[start:end] for start, end in zip(self.starts, self.ends, strict=True))


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Rows of several files as those of one, in memory; those of one alone are left where they are."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(lengths)
    sources = [part.source for part in parts if part.source is not None]
    ids = np.concatenate([part.flat() for part in parts])
    return Rows(ids, ends - lengths, ends, parts[0].beginning, join_rows(sources) if sources else None)


def count_kept(rows: int, fraction: float) -> int:
    """How many of so many rows are kept apart to measure a model by."""
    kept = rows - int(rows * (1 - fraction))
    return kept if kept >= FEWEST else 0


def split_rows(rows: Rows, part: Literal["train", "val", "all"], fraction: float = 0.1) -> Rows:
    """A part of the rows: `val` is `fraction` of them, from all over, `train` all others.

    Which ones are in it follows from what they are, so that rows that are the same, or answer to the same source, are
    on one side: what is measured was not learned. Where it would be fewer than `FEWEST`, `val` is empty.
    """
    kept = count_kept(len(rows), fraction)
    if part == "all":
        return rows
    asked = rows.source or rows
    order = np.argsort([_hash(asked.row(place)) for place in range(len(rows))], kind="stable")
    return rows.take(np.sort(order[:kept] if part == "val" else order[kept:]))


def _hash(ids: npt.NDArray[np.integer[Any]]) -> int:
    """A number that spreads evenly, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(ids.astype("<i8").tobytes(), digest_size=7).digest(), "big")


def encode_rows(
    corpus: Corpus,
    tokenizer: Tokenizer,
    cache: Path,
    *,
    template: ChatTemplate | None = None,
    reader: Tokenizer | None = None,
) -> Rows:
    """The documents of a corpus as rows; of translations, with what the encoder reads beside them.

    Args:
        cache: a folder, as `encode_corpus` takes it.
        template: of conversations.
        reader: the tokenizer of what is to be translated; None: these are no translations.

    Raises:
        SourceError: it is one running text, which has no rows.
    """
    if corpus.single:
        raise SourceError(
            f"{corpus.name} is one running text, which has no documents to make rows of",
            "--rows windows cuts it into windows",
        )
    if template is not None:
        return Rows.of(encode_corpus(corpus, tokenizer, cache, template=template))
    source = None
    if reader is not None:
        source = Rows.of(encode_corpus(corpus.asked, reader, cache))
        corpus = corpus.answered
    # Where nothing marks the beginning of a document, it is predicted from the end of another one.
    end = tokenizer.special("end")
    beginning = () if end is None or tokenizer.special("begin") is not None else (end,)
    return Rows.of(encode_corpus(corpus, tokenizer, cache), beginning, source)
