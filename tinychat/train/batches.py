"""Stateless batches: those of step s follow from the seed and s alone, so a run can resume at any step."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tinychat.model.transformer import IGNORED, NO_TOKEN
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import Ids
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.rows import Documents, Positions, Row, Rows, Windows

LENGTH_MULTIPLE = 16
"""of which the length of a batch of documents is one: each length has products of its own, which are made ready when it
is met, and there is room for so many"""


class Batch(NamedTuple):
    """What one step learns from."""

    ids: Tensor
    """[B, T], long"""
    targets: Tensor
    """[B, T], long: what follows each id; `IGNORED` where nothing is to be learned"""
    folds: Tensor
    """[B], long: the part of its text that each row begins in: see `rows.py`"""
    source: Tensor | None = None
    """[B, S], long: what an encoder reads; `NO_TOKEN` behind its end"""

    @classmethod
    def of(cls, rows: Sequence[Row], context_length: int) -> Self:
        """Rows of one batch, about as long as the longest.

        Args:
            context: the most that a model sees at once.
        """
        time = _round_up(max(len(row.ids) for row in rows) - 1, context_length)
        ids = np.zeros((len(rows), time), np.int64)
        targets = np.full((len(rows), time), IGNORED, np.int64)
        for position, row in enumerate(rows):
            ids[position, : len(row.ids) - 1] = row.ids[:-1]
            targets[position, : len(row.ids) - 1] = row.ids[1:]
            if row.learned is not None:
                targets[position, : len(row.ids) - 1][~row.learned] = IGNORED
        folds = torch.tensor([row.fold for row in rows])
        sources = [row.source for row in rows if row.source is not None]
        if not sources:
            return cls(torch.from_numpy(ids), torch.from_numpy(targets), folds)
        source = np.full((len(rows), _round_up(max(map(len, sources)), context_length)), NO_TOKEN, np.int64)
        for position, one in enumerate(sources):
            source[position, : len(one)] = one
        return cls(torch.from_numpy(ids), torch.from_numpy(targets), folds, torch.from_numpy(source))

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        return Batch(*(None if tensor is None else tensor.to(device) for tensor in self))  # type: ignore[arg-type]

    def tensor_split(self, parts: int) -> "list[Batch]":
        """Exactly so many batches of about as many rows each, some of which may have none."""
        pieces = [None if tensor is None else tensor.tensor_split(parts) for tensor in self]
        return [Batch(*(None if piece is None else piece[position] for piece in pieces)) for position in range(parts)]  # type: ignore[arg-type]


class UserLossMask(NamedTuple):
    """Choose at random which user tokens of a chat count in the loss; assistant tokens always do.

    A chat model exists for its answers, and what users say is far harder to predict: counted in full, it would make up
    most of the loss. A target that is dropped at random weighs as much, on average, as one that is scaled. The choice
    follows from the seed and the row's index alone.
    """

    user: int
    """id of the token that opens a user's turn"""
    assistant: int
    """id of the token that opens an answer"""
    fraction: float
    """of user tokens that count"""
    seed: int

    def learned(self, ids: Ids, index: int) -> npt.NDArray[np.bool_]:
        """Return a mask [T] of the targets that count, for a row of T + 1 ids.

        Args:
            ids: of the row; all before its first role token count.
            index: of the row, counted over the whole run.
        """
        is_mark = (ids == self.user) | (ids == self.assistant)
        last = np.maximum.accumulate(np.where(is_mark, np.arange(len(ids)), 0))
        answered = np.asarray(ids[last][1:] != self.user)
        random = np.random.Generator(np.random.PCG64((self.seed, index)))
        return answered | (random.random(len(answered)) < self.fraction)


def make_user_loss_mask(
    fraction: float, template: ChatTemplate | None, tokenizer: Tokenizer, seed: int
) -> UserLossMask | None:
    """Return the mask for a text; None if all of it counts, or no tokens mark who speaks."""
    if fraction >= 1 or template is None:
        return None
    user, assistant = tokenizer.token_id(template.user), tokenizer.token_id(template.assistant)
    return None if user is None or assistant is None else UserLossMask(user, assistant, fraction, seed)


class Batches:
    """Rows of one text, or of a mix of texts, each of which gives its share of all rows.

    Args:
        texts: of each, ids [N], at least `context_length` + 1, of which the rows are windows; or documents, one a row.
        context: the most that a model sees at once: the length of a window.
        batch_size: rows of a step.
        seed: of the order.
        weights: how much of each text.
        stride: from one window to the next; None: `context_length`.
        loss_mask: of the user's tokens in a chat; None: all tokens count in the loss.
    """

    def __init__(
        self,
        texts: Ids | Sequence[Ids | Rows],
        context_length: int,
        batch_size: int,
        seed: int,
        weights: Sequence[float] = (1.0,),
        stride: int | None = None,
        loss_mask: UserLossMask | None = None,
    ) -> None:
        texts = [texts] if isinstance(texts, np.ndarray) else texts
        self.texts = [
            Documents(text, context_length, batch_size, seed, number)
            if isinstance(text, Rows)
            else Windows(text, context_length, seed, number, stride)
            for number, text in enumerate(texts)
        ]
        self.context_length, self.batch_size, self._loss_mask = context_length, batch_size, loss_mask
        self._round = _interleave(weights)
        lengths = np.array([text.row_tokens for text in self.texts])
        row_tokens = float(np.dot(self._round.counts, lengths)) / len(self._round.texts)
        self.tokens_per_batch = max(1, round(batch_size * row_tokens))
        """on average"""

    def batch(self, step: int) -> Batch:
        """What step `step` (from 0) learns from."""
        return Batch.of(
            [self._draw(step * self.batch_size + row) for row in range(self.batch_size)], self.context_length
        )

    def _draw(self, index: int) -> Row:
        """Return the row with this index, counted over the whole run."""
        rounds, rank = divmod(index, len(self._round.texts))
        text = int(self._round.texts[rank])
        row = self.texts[text].row(rounds * int(self._round.counts[text]) + int(self._round.positions[rank]))
        if self._loss_mask is None:
            return row
        return row._replace(learned=self._loss_mask.learned(row.ids, index))


def _round_up(length: int, most: int) -> int:
    return min(math.ceil(length / LENGTH_MULTIPLE) * LENGTH_MULTIPLE, most)


class _Round(NamedTuple):
    """The order in which texts take turns, which is repeated for ever."""

    texts: Positions
    """[R] which text"""
    positions: Positions
    """[R] how many turns it had before in the round"""
    counts: Positions
    """of each text, its turns in a round"""


LONGEST_ROUND = 10_000
"""turns: shares are exact to a part in so many"""


def _interleave(weights: Sequence[float]) -> _Round:
    """As many turns of each text as its weight says, spread evenly, so that each batch is nearly the mix itself."""
    shares = np.array(weights) / max(weights)
    turns = shares / max(shares.min(), 1 / LONGEST_ROUND)
    if turns.sum() > LONGEST_ROUND or not np.allclose(turns, turns.round(), rtol=0, atol=1e-6):
        turns = LONGEST_ROUND * shares / shares.sum()
    counts = np.maximum(1, turns.round().astype(np.int64))
    texts = np.repeat(np.arange(len(counts)), counts)
    positions = np.concatenate([np.arange(count) for count in counts])
    order = np.argsort((positions + 0.5) / counts[texts], kind="stable")
    return _Round(texts[order], positions[order], counts)
