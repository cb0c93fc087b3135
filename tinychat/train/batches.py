"""Batches of training: rows of one text or a mix, drawn in a shuffled order for each epoch, and collated.

The batch of a step depends on the seed and the step alone, so a run can resume at any step. torch is imported when the
first batch is made, as it loads while the text is read.
"""

import math
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tinychat.corpus.corpus import SourceCorpus
from tinychat.errors import SourceError
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate
from tinychat.tokenizer.token_cache import IdFile, Ids, encode_corpus, join
from tinychat.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tinychat.model.context_index import ContextIndex

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FOLDS = 8
"""Number of folds of a text: n-gram counts for a row leave out the row's own fold."""
MAX_INDEXED = 4_000_000
"""Tokens of a text up to which the contexts of all of it are indexed, in 40 bytes and a microsecond each."""
REACH, CHUNK_REACH = 1 << 17, 1 << 16
"""Tokens before a token of a text in which its context is looked up: in an indexed text, and in a longer one."""
CHUNK, ACTIVE_CHUNKS = 1 << 15, 16
"""Tokens of a chunk of a longer text, which is indexed with what precedes it, and how many windows are drawn from."""
BLOCK = 64
"""Number of batches whose rows are sorted by length together, to reduce padding."""
LENGTH_MULTIPLES = ((32, 4), (64, 8), (256, 16), (math.inf, 32))
"""Batches of documents of up to so many tokens are padded to a multiple of this length, as kernels, and the graphs of a
GPU, are prepared and kept for each length. That adds less than a quarter to documents of more than 12 tokens."""
OPENING_TOKENS = 5
"""First tokens of a reply, which all count in the loss: they decide what kind of reply it is."""
MAX_ROUND_TURNS = 10_000
"""Maximum turns of a round-robin round: the weights of a mix are exact to one part in this number."""


# --- documents as rows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Some documents of an id file, one per row: `prefix`, then `ids` from the row's `starts` to its `ends`, [R] each.

    The prefix stands in for a begin token. `source` has the encoder's input for each row; None without an encoder.
    """

    ids: Ids
    starts: Positions
    ends: Positions
    prefix: tuple[int, ...] = ()
    source: "Rows | None" = None

    @classmethod
    def of(cls, file: IdFile, prefix: tuple[int, ...] = (), source: "Rows | None" = None) -> Self:
        """Return all documents of a file."""
        ends = np.asarray(file.ends)
        return cls(np.asarray(file.ids), np.append(0, ends[:-1]), ends, prefix, source)

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

    @cached_property
    def folds(self) -> Positions:
        """The fold of each row, [R]: that of its first id, where the ids of all rows follow one another."""
        sizes = self.ends - self.starts
        folds: Positions = (sizes.cumsum() - sizes) * FOLDS // max(1, int(sizes.sum()))
        return folds.clip(max=FOLDS - 1)  # for empty rows at the end

    def count_predicted(self, context_length: int) -> int:
        """Return the number of ids that a model predicts: all but the first of each row, up to its context length."""
        return int(np.minimum(self.lengths - 1, context_length).sum())

    def take(self, indices: Positions) -> "Rows":
        """Return the rows at some indices, [K]."""
        source = None if self.source is None else self.source.take(indices)
        return Rows(self.ids, self.starts[indices], self.ends[indices], self.prefix, source)

    def predicted(self, context_length: int) -> Ids:
        """Concatenate the ids that a model predicts, in memory: as many as `count_predicted` returns."""
        starts = self.starts if self.prefix else np.minimum(self.starts + 1, self.ends)
        return Rows(self.ids, starts, np.minimum(self.ends, starts + context_length)).flat()

    def flat(self) -> Ids:
        """Concatenate the ids of all rows, in memory, without their prefix."""
        return np.concatenate([self.ids[:0], *self.documents()])

    def documents(self) -> Iterator[Ids]:
        """Iterate over the ids of each row, without its prefix."""
        return (self.ids[start:end] for start, end in zip(self.starts, self.ends, strict=True))


def join_splits(parts: "Sequence[Ids | Rows]") -> "Ids | Rows":
    """Concatenate the same split of several sources, in memory; a single one is returned as it is."""
    rows = [part for part in parts if isinstance(part, Rows)]
    return join_rows(rows) if rows else join([part for part in parts if not isinstance(part, Rows)])


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate the rows of several files, in memory; a single part is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(lengths)
    sources = [part.source for part in parts if part.source is not None]
    ids = np.concatenate([part.flat() for part in parts])
    return Rows(ids, ends - lengths, ends, parts[0].prefix, join_rows(sources) if sources else None)


def encode_rows(
    corpus: SourceCorpus,
    tokenizer: Tokenizer,
    cache: Path,
    *,
    template: ConversationTemplate | None = None,
    source_tokenizer: Tokenizer | None = None,
) -> Rows:
    """Encode each document of a corpus as a row; with `source_tokenizer`, pairs of a translation as rows with a source.

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
    # Without a begin token, a document's first token is predicted from an end token.
    end = tokenizer.special("end")
    prefix = () if end is None or tokenizer.special("begin") is not None else (end,)
    if source_tokenizer is None:
        return Rows.of(encode_corpus(corpus, tokenizer, cache), prefix)
    source = Rows.of(encode_corpus(corpus.source_side, source_tokenizer, cache))
    return Rows.of(encode_corpus(corpus.target_side, tokenizer, cache), prefix, source)


# --- the rows of a source, in the order in which they are trained on -------------------------------------------------


class Row(NamedTuple):
    """One row of a batch, before padding."""

    ids: Ids
    """[T + 1]: the first T are the inputs, the last T the targets."""
    fold: int
    source: Ids | None = None
    """[S], the encoder's input; None without an encoder."""
    loss_mask: Mask | None = None
    """[T], true for targets that count in the loss; None if all do."""
    speaker: int | None = None
    """The role token of the message that the row begins within; None if there is none, or none is asked for."""
    preceding: Ids | None = None
    """[P], the ids that precede the row in its text, for n-grams; None if the model has none."""
    history: "TextHistory | None" = None
    """All that precedes the row, where its contexts are looked up; None likewise."""
    start: int = 0
    """Position of the row in its text."""


def split_folds(ids: Ids) -> list[Ids]:
    """Split a text, [N], into `FOLDS` contiguous parts of equal length."""
    return [ids[len(ids) * fold // FOLDS : len(ids) * (fold + 1) // FOLDS] for fold in range(FOLDS)]


def find_fold(position: int, length: int) -> int:
    """Return the fold that holds a position of a text of some length."""
    return position * FOLDS // length


class TextHistory:
    """Context of n-grams in a running text, [N], beyond a window: all that stands before each token, within limits.

    `lookback` is the number of preceding ids that a window comes with.
    """

    def __init__(self, ids: Ids, lookback: int) -> None:
        self.ids, self.lookback = ids, lookback

    @cached_property
    def _chunks(self) -> OrderedDict[int, "tuple[int, int, ContextIndex]"]:
        """Chunks used last, oldest first: start and end of the ids that each index covers."""
        return OrderedDict()

    def _find_index(self, start: int, end: int) -> "tuple[int, ContextIndex]":
        """Return an index that covers some ids and what precedes them, and where it begins."""
        chunk = start // CHUNK if len(self.ids) > MAX_INDEXED else 0
        if chunk in self._chunks and self._chunks[chunk][1] >= end:
            self._chunks.move_to_end(chunk)
        elif len(self.ids) <= MAX_INDEXED:
            self._chunks[chunk] = (0, len(self.ids), self._make_index(0, len(self.ids)))
        else:
            # Rows of this length that begin in the chunk may end in the next one.
            first, last = max(0, chunk * CHUNK - CHUNK_REACH), min(len(self.ids), (chunk + 1) * CHUNK + end - start)
            self._chunks[chunk] = (first, last, self._make_index(first, last))
            if len(self._chunks) > ACTIVE_CHUNKS:
                self._chunks.popitem(last=False)
        first, _, index = self._chunks[chunk]
        return first, index

    def _make_index(self, start: int, end: int) -> "ContextIndex":
        import torch

        from tinychat.model.context_index import ContextIndex

        history = torch.from_numpy(self.ids[start:end].astype(np.int64)).unsqueeze(0)
        return ContextIndex(history, int(history.max()) + 1)

    def complete(self, row: Row, start: int) -> Row:
        """Return a row that starts at a position with what stands before its tokens."""
        return row._replace(preceding=self.ids[max(0, start - self.lookback) : start], history=self, start=start)

    def followers(self, rows: Sequence[Row]) -> "list[Tensor]":
        """Return what followed earlier occurrences of the contexts of each row's inputs, [T, K, R], as `ContextIndex`.

        Rows of one index are looked up at once, which is several times as fast.
        """
        import torch

        places: dict[ContextIndex, list[tuple[int, Tensor]]] = {}
        for number, row in enumerate(rows):
            end = row.start + len(row.ids) - 1
            first, index = self._find_index(row.start, end)
            places.setdefault(index, []).append((number, torch.arange(row.start - first, end - first)))
        found: dict[int, Tensor] = {}
        for index, pairs in places.items():
            numbers, slots = zip(*pairs, strict=True)
            followers = index.followers(torch.cat(slots), REACH if len(self.ids) <= MAX_INDEXED else CHUNK_REACH)
            parts = torch.split(followers[0].short(), [*map(len, slots)])
            found.update(zip(numbers, parts, strict=True))
        return [found[number] for number in range(len(rows))]


_histories: deque[TextHistory] = deque(maxlen=4)
"""The newest, since a text is indexed in seconds and evaluated many times."""


def text_history(ids: Ids, config: ModelConfig | None) -> TextHistory | None:
    """Return the history of a running text for a model; None if the model has no n-grams."""
    if config is None or not config.ngram_order:
        return None
    for history in _histories:
        if history.ids is ids and history.lookback == config.lookback:
            return history
    _histories.append(TextHistory(ids, config.lookback))
    return _histories[-1]


def cut_window(ids: Ids, start: int, context_length: int, history: TextHistory | None = None, overlap: int = 0) -> Row:
    """Return the row of a running text, [N], that starts at a position; the last one may be short.

    Unless it is the first one, its first `overlap` targets do not count in the loss: the window before has them, too.
    """
    row = Row(ids[start : start + context_length + 1], find_fold(start, len(ids)))
    if overlap and start:
        row = row._replace(loss_mask=np.arange(len(row.ids) - 1) >= overlap)
    return row if history is None else history.complete(row, start)


def cut_document(rows: Rows, index: int, context_length: int) -> Row:
    """Return a document as a row, truncated to a context length."""
    source = None if rows.source is None else rows.source.row(index)[:context_length]
    return Row(rows.row(index)[: context_length + 1], int(rows.folds[index]), source)


def count_windows(tokens: int, context_length: int, stride: int) -> int:
    """Return the number of windows of an epoch: one fewer than would fit if there are several, for the random shift."""
    return max(1, (tokens - 1 - context_length) // stride)


class ShuffledRows(ABC):
    """The rows of one source, each once per epoch, in a different random order every epoch.

    `source_index` is the index of the source in a mix: sources of equal length get different orders.
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
    def _cut(self, key: int) -> Row: ...


class Windows(ShuffledRows):
    """Windows of a running text, [N] with N > `context_length`, at a fixed stride, by default the context length.

    Every epoch shifts the first window by a random offset, so that windows are cut at different positions.

    Raises:
        ValueError: If the text is shorter than a window and its last target.
    """

    def __init__(
        self,
        ids: Ids,
        context_length: int,
        seed: int,
        source_index: int,
        stride: int | None,
        config: ModelConfig | None = None,
        loss_mask: "ChatLossMask | None" = None,
    ) -> None:
        if len(ids) <= context_length:
            raise ValueError(f"{len(ids)} ids hold no window of {context_length} and what follows it")
        super().__init__(seed, source_index)
        self.ids = np.asarray(ids)  # no copy: slicing a plain view of a memory map is three times as fast
        self.context_length, self.row_tokens = context_length, float(context_length)
        self._history = text_history(ids, config)
        self._role_positions = None if loss_mask is None else loss_mask.find_roles(self.ids)
        self.stride = stride or context_length
        self.epoch_rows = count_windows(len(ids), context_length, self.stride)

    def _shuffle(self, random: np.random.Generator) -> Positions:
        shift = int(random.integers(len(self.ids) - self.context_length - self.stride * (self.epoch_rows - 1)))
        starts = shift + self.stride * random.permutation(self.epoch_rows)
        if self._history is None or len(self.ids) <= MAX_INDEXED:
            return starts
        # Only some chunks at a time, so that each is indexed once in an epoch.
        groups = random.permutation(len(self.ids) // CHUNK + 1) // ACTIVE_CHUNKS
        return starts[np.argsort(groups[starts // CHUNK], kind="stable")]

    def _cut(self, key: int) -> Row:
        row = cut_window(self.ids, key, self.context_length, self._history)
        roles = self._role_positions
        if roles is None or not (before := int(np.searchsorted(roles, key))):
            return row
        return row._replace(speaker=int(self.ids[roles[before - 1]]))


class Documents(ShuffledRows):
    """Documents, one per row, at least one: batches of documents of about equal length, in random order."""

    def __init__(self, rows: Rows, context_length: int, batch_size: int, seed: int, source_index: int) -> None:
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


# --- batches ---------------------------------------------------------------------------------------------------------


def padded_length(longest: int) -> int:
    """Return the length of the rows of a batch whose longest document has so many tokens."""
    multiple = next(multiple for limit, multiple in LENGTH_MULTIPLES if longest <= limit)
    return math.ceil(longest / multiple) * multiple


class Batch(NamedTuple):
    """One batch of a training step."""

    ids: "Tensor"
    """[B, T], long: the inputs."""
    targets: "Tensor"
    """[B, T], long: the token after each input; `IGNORED` where none counts in the loss."""
    folds: "Tensor"
    """[B], long: the fold of the text in which each row starts; see `FOLDS`."""
    source: "Tensor | None" = None
    """[B, S], long: the encoder's input, padded with `NO_TOKEN`; None without an encoder."""
    preceding: "Tensor | None" = None
    """[B, P], long: the ids before each row, with `NO_TOKEN` before those; None for a model without n-grams."""
    followers: "Tensor | None" = None
    """[B, T, K, R], short: what followed earlier occurrences of each input's contexts (see `recent_followers`); −1 for
    none. None likewise."""

    @classmethod
    def of(cls, rows: Sequence[Row], context_length: int) -> Self:
        """Collate rows, at least one, into a batch padded to about the longest row, at most to the context length."""
        import torch

        from tinychat.model.transformer import IGNORED, NO_TOKEN

        def pad(parts: Sequence[Ids], fill: int) -> Positions:
            padded = np.full((len(parts), min(padded_length(max(map(len, parts))), context_length)), fill, np.int64)
            for index, ids in enumerate(parts):
                padded[index, : len(ids)] = ids
            return padded

        ids, targets = pad([row.ids[:-1] for row in rows], 0), pad([row.ids[1:] for row in rows], IGNORED)
        for index, row in enumerate(rows):
            if row.loss_mask is not None:
                targets[index, : len(row.loss_mask)][~row.loss_mask] = IGNORED
        folds = torch.tensor([row.fold for row in rows])
        sources = [row.source for row in rows if row.source is not None]
        source = torch.from_numpy(pad(sources, NO_TOKEN)) if sources else None
        batch = cls(torch.from_numpy(ids), torch.from_numpy(targets), folds, source)
        histories = {row.history for row in rows if row.history is not None}
        if not histories:
            return batch
        befores = [row.preceding for row in rows if row.preceding is not None]
        preceding = np.full((len(befores), max(map(len, befores))), NO_TOKEN, np.int64)
        for index, before in enumerate(befores):
            preceding[index, preceding.shape[1] - len(before) :] = before
        followers = torch.full((*ids.shape, len(CONTEXT_LENGTHS), MAX_RECENT), NO_TOKEN, dtype=torch.short)
        for history in histories:
            places = [index for index, row in enumerate(rows) if row.history is history]
            for index, part in zip(places, history.followers([rows[index] for index in places]), strict=True):
                followers[index, : len(part)] = part
        return batch._replace(preceding=torch.from_numpy(preceding), followers=followers)

    def to(self, device: "torch.device") -> "Batch":
        """Return a copy on a device; to a GPU it travels while this thread goes on."""
        is_cuda = device.type == "cuda"
        tensors = self.pinned() if is_cuda else self
        moved = (None if tensor is None else tensor.to(device, non_blocking=is_cuda) for tensor in tensors)
        return Batch(*moved)  # type: ignore[arg-type]

    def pinned(self) -> "Batch":
        """Return a copy in memory that a GPU reads by itself."""
        return Batch(*(None if tensor is None else tensor.pin_memory() for tensor in self))  # type: ignore[arg-type]

    def tensor_split(self, parts: int) -> "list[Batch]":
        """Split into a number of batches of about equally many rows; with fewer rows than parts, some are empty."""
        splits = [[None] * parts if tensor is None else tensor.tensor_split(parts) for tensor in self]
        return [Batch(*tensors) for tensors in zip(*splits, strict=True)]


class ChatLossMask(NamedTuple):
    """A random choice of the tokens of a chat that count in the loss; the first tokens of each reply always do.

    User messages are far harder to predict than replies: counted in full, they would make up most of the loss. And
    most of a reply follows from its first words, which alone answer the message. Dropping a target at random weighs
    it, on average, as scaling its loss would. The choice depends on the seed and the row's index alone.
    """

    user: int
    """Id of the token that opens a user turn."""
    assistant: int
    """Id of the token that opens an assistant turn."""
    user_fraction: float
    """Fraction of user tokens that count."""
    reply_fraction: float
    """Fraction of the tokens of a reply behind its first `OPENING_TOKENS` that count."""
    seed: int

    def mask(self, ids: Ids, index: int, speaker: int | None = None) -> Mask:
        """Return a mask, [T], that is true for targets that count, of the row, [T + 1], with an index in the run.

        Tokens before the first role token are those of `speaker`, or of a reply if that is None.
        """
        positions = np.arange(len(ids))
        last_role = np.maximum.accumulate(np.where(self._are_roles(ids), positions, 0))
        is_user = np.asarray(ids[last_role] == self.user)
        if speaker == self.user:
            is_user |= (last_role == 0) & (ids[0] != self.assistant)
        is_opening = (ids[last_role] == self.assistant) & (positions - last_role <= OPENING_TOKENS)
        random = np.random.Generator(np.random.PCG64((self.seed, index)))
        drawn = random.random(len(ids) - 1)
        fraction = np.where(is_user, self.user_fraction, self.reply_fraction)
        return np.asarray(is_opening[1:] | (drawn < fraction[1:]))

    def find_roles(self, ids: Ids) -> Positions:
        """Return the positions of the role tokens of a text, [N], in their order."""
        starts = range(0, len(ids), CHUNK)  # a few at a time, as a text may fill the memory
        parts = [start + np.flatnonzero(self._are_roles(ids[start : start + CHUNK])) for start in starts]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _are_roles(self, ids: Ids) -> Mask:
        return np.asarray((ids == self.user) | (ids == self.assistant))


def make_chat_loss_mask(
    user_fraction: float, reply_fraction: float, template: ConversationTemplate | None, tokenizer: Tokenizer, seed: int
) -> ChatLossMask | None:
    """Return the mask for a text; None if all tokens count, or there are no role tokens."""
    if min(user_fraction, reply_fraction) >= 1 or not isinstance(template, ChatTemplate):
        return None
    user, assistant = tokenizer.token_id(template.user), tokenizer.token_id(template.assistant)
    if user is None or assistant is None:
        return None
    return ChatLossMask(user, assistant, user_fraction, reply_fraction, seed)


class Batches:
    """Batches of one text, or of a mix of texts in proportion to `weights`.

    A text is ids, [N] with N > `context_length`, to be cut into windows that start `stride` tokens apart, by default
    the context length; or documents, one per row. Windows come with what the n-grams of a model of `config` need.
    """

    def __init__(
        self,
        texts: Ids | Sequence[Ids | Rows],
        context_length: int,
        batch_size: int,
        seed: int,
        weights: Sequence[float] = (1.0,),
        stride: int | None = None,
        loss_mask: ChatLossMask | None = None,
        config: ModelConfig | None = None,
    ) -> None:
        self.sources = [
            Documents(text, context_length, batch_size, seed, index)
            if isinstance(text, Rows)
            else Windows(text, context_length, seed, index, stride, config, loss_mask)
            for index, text in enumerate([texts] if isinstance(texts, np.ndarray) else texts)
        ]
        self.context_length, self.batch_size, self._loss_mask = context_length, batch_size, loss_mask
        self._turns, self._previous, self._counts = _interleave(weights)
        lengths = np.array([source.row_tokens for source in self.sources])
        row_tokens = float(np.dot(self._counts, lengths)) / len(self._turns)
        self.tokens_per_batch = max(1, round(batch_size * row_tokens))
        """Mean number of targets of a batch."""

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0."""
        first = step * self.batch_size
        return Batch.of([self._draw(first + row) for row in range(self.batch_size)], self.context_length)

    def _draw(self, index: int) -> Row:
        """Return the row with an index that counts from the start of the run."""
        rounds, turn = divmod(index, len(self._turns))
        source = int(self._turns[turn])
        row = self.sources[source].row(rounds * int(self._counts[source]) + int(self._previous[turn]))
        if self._loss_mask is None:
            return row
        return row._replace(loss_mask=self._loss_mask.mask(row.ids, index, row.speaker))


def _interleave(weights: Sequence[float]) -> tuple[Positions, Positions, Positions]:
    """Give each source turns in proportion to its weight, spread evenly, so that every batch is close to the mix.

    Return the source of each turn of a round, which is repeated forever, [R]; the number of turns that the source had
    earlier in the round, [R]; and the number of turns of each source per round, [S].
    """
    weight = np.array(weights) / max(weights)
    turns = weight / max(weight.min(), 1 / MAX_ROUND_TURNS)
    if turns.sum() > MAX_ROUND_TURNS or not np.allclose(turns, turns.round(), rtol=0, atol=1e-6):
        turns = MAX_ROUND_TURNS * weight / weight.sum()
    counts = np.maximum(1, turns.round().astype(np.int64))
    sources = np.repeat(np.arange(len(counts)), counts)
    previous = np.concatenate([np.arange(count) for count in counts])
    order = np.argsort((previous + 0.5) / counts[sources], kind="stable")
    return sources[order], previous[order], counts
