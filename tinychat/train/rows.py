"""Rows of training batches: windows of a running text, or one document per row.

`Rows` holds documents; a translation has the encoder's rows beside them. `Windows` and `Documents` draw the rows of one
source in a shuffled order for each epoch. Nothing here needs torch.
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
"""Smallest number of rows that is held out for validation."""
FOLDS = 8
"""Number of folds of a text: n-gram counts for a row leave out the row's own fold."""
BLOCK = 64
"""Number of batches whose rows are sorted by length together, to reduce padding."""


@dataclass(frozen=True)
class Rows:
    """Some of the documents of an id file, one per row.

    Args:
        ids: [N], the concatenated documents of the file.
        starts: [R], the index in `ids` at which each row starts.
        ends: [R], the index in `ids` at which each row ends.
        prefix: Ids to put before each row, if documents have no begin token of their own.
        source: The encoder's input for each row; None without an encoder.
    """

    ids: Ids
    starts: Positions
    ends: Positions
    prefix: tuple[int, ...] = ()
    source: "Rows | None" = None

    @classmethod
    def of(cls, file: IdFile, prefix: Sequence[int] = (), source: "Rows | None" = None) -> Self:
        """Return all documents of a file."""
        ends = np.asarray(file.ends)
        return cls(np.asarray(file.ids), np.append(0, ends[:-1]), ends, tuple(prefix), source)

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> Ids:
        """Return the ids of one row, [T]."""
        ids = self.ids[self.starts[index] : self.ends[index]]
        return np.append(np.array(self.prefix, ids.dtype), ids) if self.prefix else ids

    @cached_property
    def lengths(self) -> Positions:
        """Number of ids of each row, [R]."""
        return self.ends - self.starts + len(self.prefix)

    @cached_property
    def longest(self) -> int:
        """Number of ids of the longest row, including the encoder's."""
        own = int(self.lengths.max(initial=0))
        return own if self.source is None else max(own, self.source.longest)

    def count_predicted(self, context_length: int) -> int:
        """Return the number of ids that a model predicts: all but the first of each row, up to its context length."""
        return int(np.minimum(self.lengths - 1, context_length).sum())

    def take(self, indices: Positions) -> "Rows":
        """Return the rows at some indices, [K]."""
        source = None if self.source is None else self.source.take(indices)
        return Rows(self.ids, self.starts[indices], self.ends[indices], self.prefix, source)

    def flat(self) -> Ids:
        """Concatenate the ids of all rows, in memory, without their prefix."""
        return np.concatenate([self.ids[:0], *self.documents()])

    def documents(self) -> Iterator[Ids]:
        """Iterate over the ids of each row, without its prefix."""
        return (self.ids[start:end] for start, end in zip(self.starts, self.ends, strict=True))


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate the rows of several files, in memory; a single part is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(lengths)
    sources = [part.source for part in parts if part.source is not None]
    ids = np.concatenate([part.flat() for part in parts])
    return Rows(ids, ends - lengths, ends, parts[0].prefix, join_rows(sources) if sources else None)


def count_val_rows(rows: int, fraction: float) -> int:
    """Return the number of rows to hold out for validation; 0 if there would be fewer than `MIN_VAL_ROWS`."""
    count = rows - int(rows * (1 - fraction))
    return count if count >= MIN_VAL_ROWS else 0


def split_rows(rows: Rows, part: Literal["train", "val", "all"], fraction: float = 0.1) -> Rows:
    """Return a split of the rows: `val` is a random `fraction` of them, `train` the others.

    Rows are assigned by a hash of their content, or of their source, so that equal rows fall on the same side and
    validation rows are never trained on. `val` is empty if it would have fewer than `MIN_VAL_ROWS`.
    """
    if part == "all":
        return rows
    val_rows = count_val_rows(len(rows), fraction)
    keys = rows.source or rows
    order = np.argsort([_hash(keys.row(index)) for index in range(len(rows))], kind="stable")
    return rows.take(np.sort(order[:val_rows] if part == "val" else order[val_rows:]))


def _hash(ids: npt.NDArray[np.integer[Any]]) -> int:
    """Return a uniform hash, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(ids.astype("<i8").tobytes(), digest_size=7).digest(), "big")


def encode_rows(
    corpus: SourceCorpus,
    tokenizer: Tokenizer,
    cache: Path,
    *,
    template: ChatTemplate | None = None,
    source_tokenizer: Tokenizer | None = None,
) -> Rows:
    """Encode the documents of a corpus as rows; translations have the encoder's rows as their source.

    Args:
        corpus: The corpus to encode.
        tokenizer: Tokenizer of the rows.
        cache: Cache folder, as for `encode_corpus`.
        template: Chat template, for conversations.
        source_tokenizer: Tokenizer of the encoder's side; None if the corpus is not translations.

    Returns:
        One row per document, or per pair of a translation.

    Raises:
        SourceError: If the corpus cannot be read, or is one running text, which has no documents.
        TokenizerError: If a tokenizer has no token for anything in the corpus, or lacks one of the template's tokens.
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
    # Without a begin token, a document's first token is predicted from an end token.
    end = tokenizer.special("end")
    prefix = () if end is None or tokenizer.special("begin") is not None else (end,)
    return Rows.of(encode_corpus(text, tokenizer, cache), prefix, source)


def split_folds(ids: Ids) -> list[Ids]:
    """Split a text, [N], into `FOLDS` contiguous parts of equal length."""
    return [ids[len(ids) * fold // FOLDS : len(ids) * (fold + 1) // FOLDS] for fold in range(FOLDS)]


def find_fold(position: int, length: int) -> int:
    """Return the fold that holds a position of a text of some length."""
    return position * FOLDS // length


class Row(NamedTuple):
    """One row of a batch, before padding."""

    ids: Ids
    """[T + 1]: the first T are the inputs, the last T the targets."""
    fold: int
    source: Ids | None = None
    """[S], the encoder's input; None without an encoder."""
    loss_mask: npt.NDArray[np.bool_] | None = None
    """[T], true for targets that count in the loss; None if all do."""


def cut_window(ids: Ids, start: int, context_length: int) -> Row:
    """Return the row of a running text, [N], that starts at a position; the last one may be short."""
    return Row(ids[start : start + context_length + 1], find_fold(start, len(ids)))


def cut_document(rows: Rows, index: int, context_length: int) -> Row:
    """Return a document as a row, truncated to a context length."""
    source = None if rows.source is None else rows.source.row(index)[:context_length]
    return Row(rows.row(index)[: context_length + 1], find_fold(int(rows.starts[index]), len(rows.ids)), source)


class ShuffledRows(ABC):
    """The rows of one source, each once per epoch, in a different random order every epoch.

    Args:
        seed: Seed of the order.
        source_index: Index of the source in a mix; sources of equal length get different orders.
    """

    epoch_rows: int
    """Number of rows of an epoch."""
    row_tokens: float
    """Mean number of targets of a row."""

    def __init__(self, seed: int, source_index: int) -> None:
        self._seed, self._source_index = seed, source_index
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def row(self, index: int) -> Row:
        """Return the row with an index that counts from the start of the run."""
        epoch, offset = divmod(index, self.epoch_rows)
        if epoch != self._epoch:
            self._order = self._shuffle(np.random.Generator(np.random.PCG64((self._seed, epoch, self._source_index))))
            self._epoch = epoch
        return self._cut(int(self._order[offset]))

    @abstractmethod
    def _shuffle(self, random: np.random.Generator) -> Positions:
        """Return the keys of an epoch's rows, in their order, for `_cut`."""

    @abstractmethod
    def _cut(self, key: int) -> Row:
        """Return the row of a key."""


def count_windows(tokens: int, context_length: int, stride: int) -> int:
    """Return the number of windows of an epoch: one fewer than would fit if there are several, for the random shift."""
    return max(1, (tokens - 1 - context_length) // stride)


class Windows(ShuffledRows):
    """Windows of a running text, at a fixed stride.

    Every epoch shifts the first window by a random offset, so that windows are cut at different positions.

    Args:
        ids: [N], with N > `context_length`; may be memory-mapped.
        context_length: Length of a window in tokens.
        seed: Seed of the order.
        source_index: Index of the source in a mix.
        stride: Tokens from one window's start to the next; None for `context_length`.

    Raises:
        ValueError: If the text is shorter than a window and its last target.
    """

    def __init__(
        self, ids: Ids, context_length: int, seed: int, source_index: int = 0, stride: int | None = None
    ) -> None:
        if len(ids) <= context_length:
            raise ValueError(f"{len(ids)} ids hold no window of {context_length} and what follows it")
        super().__init__(seed, source_index)
        self.ids = np.asarray(ids)  # no copy: slicing a plain view of a memory map is three times as fast
        self.context_length, self.row_tokens = context_length, float(context_length)
        self.stride = stride or context_length
        self.epoch_rows = count_windows(len(ids), context_length, self.stride)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        shift = int(random.integers(len(self.ids) - self.context_length - self.stride * (self.epoch_rows - 1)))
        return shift + self.stride * random.permutation(self.epoch_rows)

    def _cut(self, key: int) -> Row:
        return cut_window(self.ids, key, self.context_length)


class Documents(ShuffledRows):
    """Documents, one per row: batches of documents of about equal length, in random order.

    Args:
        rows: The documents, at least one.
        context_length: Maximum length of a row in tokens; longer documents are truncated.
        batch_size: Rows per step.
        seed: Seed of the order.
        source_index: Index of the source in a mix.
    """

    def __init__(self, rows: Rows, context_length: int, batch_size: int, seed: int, source_index: int = 0) -> None:
        super().__init__(seed, source_index)
        self.rows, self.context_length, self.batch_size = rows, context_length, batch_size
        self.epoch_rows = len(rows)
        self.row_tokens = rows.count_predicted(context_length) / len(rows)
        self._lengths = rows.lengths if rows.source is None else np.maximum(rows.lengths, rows.source.lengths)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        order = random.permutation(self.epoch_rows)
        blocks = np.arange(self.epoch_rows) // (BLOCK * self.batch_size)
        order = order[np.lexsort((self._lengths[order], blocks))]
        whole = self.epoch_rows // self.batch_size * self.batch_size
        batches = order[:whole].reshape(-1, self.batch_size)
        return np.concatenate([random.permutation(batches).ravel(), order[whole:]])

    def _cut(self, key: int) -> Row:
        return cut_document(self.rows, key, self.context_length)
