"""Documents as rows of a batch, one a row, with the rows that an encoder reads beside them.

The rows of a text, of which batches are made: windows of a running text, or documents. Needs no torch.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

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

    def predicted(self, context_length: int) -> int:
        """Return how many ids a model with a context length predicts: all but the first of each row."""
        return int(np.minimum(self.lengths - 1, context_length).sum())

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


def count_val_rows(rows: int, fraction: float) -> int:
    """Return how many of a number of rows are held out for validation."""
    kept = rows - int(rows * (1 - fraction))
    return kept if kept >= MIN_VAL_ROWS else 0


def split_rows(rows: Rows, part: Literal["train", "val", "all"], fraction: float = 0.1) -> Rows:
    """Return a split of the rows: `val` is `fraction` of them, from all over, `train` all others.

    Rows are assigned by a hash of their content, or of their source, so that equal rows fall on the same side and
    validation rows were not trained on. If there would be fewer than `MIN_VAL_ROWS`, `val` is empty.
    """
    kept = count_val_rows(len(rows), fraction)
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
            "--packing true cuts it into windows",
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


# ---- from tinychat.train.rows ----


FOLDS = 8
"""The parts that a text falls into, so that what is learned from can be left out of what is counted."""
BLOCK = 64
"""batches whose rows are sorted by length, so that rows of one batch need little padding"""


def split_folds(ids: Ids) -> list[Ids]:
    """The parts of a text, [N], as long as each other, by position."""
    return [ids[len(ids) * fold // FOLDS : len(ids) * (fold + 1) // FOLDS] for fold in range(FOLDS)]


def find_fold(position: int, length: int) -> int:
    """Return the fold of a position in a text of that length."""
    return position * FOLDS // length


class Row(NamedTuple):
    """One row of a batch, before it has the length of the others."""

    ids: Ids
    """[T + 1]: the first T are seen, the last T predicted"""
    fold: int
    source: Ids | None = None
    """[S], what an encoder reads"""
    learned: npt.NDArray[np.bool_] | None = None
    """[T], which of those predicted are learned; None: all"""


def cut_window(ids: Ids, start: int, context_length: int) -> Row:
    """The row of a running text that begins at a position; the last one may be short."""
    return Row(ids[start : start + context_length + 1], find_fold(start, len(ids)))


def cut_document(rows: Rows, index: int, context_length: int) -> Row:
    """A document as a row for a model that sees so many ids at once."""
    source = None if rows.source is None else rows.source.row(index)[:context_length]
    return Row(rows.row(index)[: context_length + 1], find_fold(int(rows.starts[index]), len(rows.ids)), source)


class Shuffled(ABC):
    """The rows of one text: each once in an epoch, in an order of that epoch's own.

    Args:
        seed: of the order.
        number: of the text in a mix, so that texts of one length have orders of their own.
    """

    count: int
    """rows of an epoch"""
    row_tokens: float
    """that are predicted in a row, on average"""

    def __init__(self, seed: int, number: int) -> None:
        self._seed, self._number = seed, number
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def row(self, index: int) -> Row:
        """Return the row with this index, counted over the whole run."""
        epoch, rank = divmod(index, self.count)
        if epoch != self._epoch:
            self._order = self._shuffle(np.random.Generator(np.random.PCG64((self._seed, epoch, self._number))))
            self._epoch = epoch
        return self._cut(int(self._order[rank]))

    @abstractmethod
    def _shuffle(self, random: np.random.Generator) -> Positions:
        """What each row of an epoch is cut at, in their order."""

    @abstractmethod
    def _cut(self, index: int) -> Row: ...


def count_windows(tokens: int, context_length: int, stride: int) -> int:
    """The windows of an epoch.

    One fewer than would fit, where there are several: the room that is left is for the shift.
    """
    return max(1, (tokens - 1 - context_length) // stride)


class Windows(Shuffled):
    """The windows of a running text.

    They begin a stride after each other, and lie side by side where that is their length; where the first begins
    differs from epoch to epoch, so that what ends a window in one stands inside a window in another.

    Args:
        ids: [N], at least `context_length` + 1 of them; may be memory-mapped.
        context: the length of a window.
        stride: from one window to the next; None: `context_length`.
    """

    def __init__(self, ids: Ids, context_length: int, seed: int, number: int = 0, stride: int | None = None) -> None:
        if len(ids) <= context_length:
            raise ValueError(f"{len(ids)} ids hold no window of {context_length} and what follows it")
        super().__init__(seed, number)
        self.ids = np.asarray(ids)  # no copy: a plain view of a memory map is three times as quick to slice
        self.context_length, self.row_tokens, self.stride = (
            context_length,
            float(context_length),
            stride or context_length,
        )
        self.count = count_windows(len(ids), context_length, self.stride)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        shift = int(random.integers(len(self.ids) - self.context_length - self.stride * (self.count - 1)))
        return shift + self.stride * random.permutation(self.count)

    def _cut(self, index: int) -> Row:
        return cut_window(self.ids, index, self.context_length)


class Documents(Shuffled):
    """Documents, one a row: those of about the same length come together, in batches that are shuffled.

    Args:
        rows: at least one.
        context: the most ids that are seen of a row: what is longer is cut.
        batch_size: rows of a step.
    """

    def __init__(self, rows: Rows, context_length: int, batch_size: int, seed: int, number: int = 0) -> None:
        super().__init__(seed, number)
        self.rows, self.context_length, self.batch_size = rows, context_length, batch_size
        self.count = len(rows)
        self.row_tokens = rows.predicted(context_length) / len(rows)
        self._lengths = rows.lengths if rows.source is None else np.maximum(rows.lengths, rows.source.lengths)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        order = random.permutation(self.count)
        blocks = np.arange(self.count) // (BLOCK * self.batch_size)
        order = order[np.lexsort((self._lengths[order], blocks))]
        whole = self.count // self.batch_size * self.batch_size
        batches = order[:whole].reshape(-1, self.batch_size)
        return np.concatenate([random.permutation(batches).ravel(), order[whole:]])

    def _cut(self, index: int) -> Row:
        return cut_document(self.rows, index, self.context_length)
