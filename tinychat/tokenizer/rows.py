"""Documents as rows of a batch, one a row, with the rows that an encoder reads beside them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from tinychat.corpus.corpus import Corpus, SourceCorpus
from tinychat.errors import SourceError
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import IdFile, Ids, encode_corpus
from tinychat.tokenizer.tokenizer import Tokenizer

Positions = npt.NDArray[np.int64]

MIN_VAL_ROWS = 4
"""the smallest number of rows that is worth holding out for validation"""


@dataclass(frozen=True)
class Rows:
    """Some of the documents of an id file, one a row.

    Args:
        ids: [N], of all documents of the file, in a row.
        starts: [R], where each row begins among the ids.
        ends: [R], where each row ends among the ids.
        beginning: an id to put before each row, if documents have no begin token of their own.
        source: the rows that an encoder reads, one for each row.
    """

    ids: Ids
    starts: Positions
    ends: Positions
    beginning: tuple[int, ...] = ()
    source: "Rows | None" = None

    @classmethod
    def of(cls, file: IdFile, beginning: Sequence[int] = (), source: "Rows | None" = None) -> Self:
        """Return all documents of a file."""
        ends = np.asarray(file.ends)
        return cls(np.asarray(file.ids), np.append(0, ends[:-1]), ends, tuple(beginning), source)

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> Ids:
        """Return the ids of one row, [T]."""
        ids = self.ids[self.starts[index] : self.ends[index]]
        return np.append(np.array(self.beginning, ids.dtype), ids) if self.beginning else ids

    @cached_property
    def lengths(self) -> Positions:
        """The number of ids of each row, [R]."""
        return self.ends - self.starts + len(self.beginning)

    @cached_property
    def longest(self) -> int:
        """The number of ids of the longest row, those of the encoder included."""
        own = int(self.lengths.max(initial=0))
        return own if self.source is None else max(own, self.source.longest)

    def predicted(self, context: int) -> int:
        """Return how many ids a model with a context length predicts: all but the first of each row."""
        return int(np.minimum(self.lengths - 1, context).sum())

    def take(self, indices: Positions) -> "Rows":
        """Return the rows with some indices."""
        source = None if self.source is None else self.source.take(indices)
        return Rows(self.ids, self.starts[indices], self.ends[indices], self.beginning, source)

    def flat(self) -> Ids:
        """Concatenate the ids of all rows, in memory, without what is put before them."""
        return np.concatenate([self.ids[:0], *self.pieces()])

    def pieces(self) -> Iterator[Ids]:
        """Return the ids of one row after the other, without what is put before them."""
        return (self.ids[start:end] for start, end in zip(self.starts, self.ends, strict=True))


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate the rows of several files, in memory; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(lengths)
    sources = [part.source for part in parts if part.source is not None]
    ids = np.concatenate([part.flat() for part in parts])
    return Rows(ids, ends - lengths, ends, parts[0].beginning, join_rows(sources) if sources else None)


def count_kept(rows: int, fraction: float) -> int:
    """Return how many of a number of rows are held out for validation."""
    kept = rows - int(rows * (1 - fraction))
    return kept if kept >= MIN_VAL_ROWS else 0


def split_rows(rows: Rows, part: Literal["train", "val", "all"], fraction: float = 0.1) -> Rows:
    """Return a split of the rows: `val` is `fraction` of them, from all over, `train` all others.

    Rows are assigned by a hash of their content, or of their source, so that equal rows fall on the same side and
    validation rows were not trained on. If there would be fewer than `MIN_VAL_ROWS`, `val` is empty.
    """
    kept = count_kept(len(rows), fraction)
    if part == "all":
        return rows
    keys = rows.source or rows
    order = np.argsort([_hash(keys.row(index)) for index in range(len(rows))], kind="stable")
    return rows.take(np.sort(order[:kept] if part == "val" else order[kept:]))


def _hash(ids: npt.NDArray[np.integer[Any]]) -> int:
    """Return an evenly distributed number, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(ids.astype("<i8").tobytes(), digest_size=7).digest(), "big")


def encode_rows(
    corpus: SourceCorpus,
    tokenizer: Tokenizer,
    cache: Path,
    *,
    template: ChatTemplate | None = None,
    source_tokenizer: Tokenizer | None = None,
) -> Rows:
    """Encode the documents of a corpus as rows; of translations, with the rows of the encoder beside them.

    Args:
        corpus: to encode.
        tokenizer: of the rows.
        cache: the folder of `encode_corpus`.
        template: of conversations.
        source_tokenizer: of the texts to translate; None: the corpus is not one of translations.

    Returns:
        A row for each document, or for each pair of a translation.

    Raises:
        SourceError: the corpus cannot be read, or is one running text, which has no documents.
        TokenizerError: a tokenizer has no token for anything in the corpus, or lacks one of the template.
    """
    if corpus.single:
        raise SourceError(
            f"{corpus.name} is one running text, which has no documents to make rows of",
            "--rows windows cuts it into windows",
        )
    if template is not None:
        return Rows.of(encode_corpus(corpus, tokenizer, cache, template=template))
    source = None
    text: Corpus = corpus
    if source_tokenizer is not None:
        source = Rows.of(encode_corpus(corpus.source_side, source_tokenizer, cache))
        text = corpus.target_side
    # Without a begin token, a document is predicted from the end token of the one before.
    end = tokenizer.special("end")
    beginning = () if end is None or tokenizer.special("begin") is not None else (end,)
    return Rows.of(encode_corpus(text, tokenizer, cache), beginning, source)
