"""Stateless batches: the batch of a step depends on the seed and the step alone, so a run can resume at any step."""

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
"""Batches of documents are padded to a multiple of this length, as kernels are prepared and cached for each length."""
MAX_ROUND_TURNS = 10_000
"""Maximum turns of a round-robin round: the weights of a mix are exact to one part in this number."""


class Batch(NamedTuple):
    """One batch of a training step."""

    ids: Tensor
    """[B, T], long: the inputs."""
    targets: Tensor
    """[B, T], long: the token after each input; `IGNORED` where none counts in the loss."""
    folds: Tensor
    """[B], long: the fold of the text in which each row starts; see `rows.FOLDS`."""
    source: Tensor | None = None
    """[B, S], long: the encoder's input, padded with `NO_TOKEN`; None without an encoder."""

    @classmethod
    def of(cls, rows: Sequence[Row], context_length: int) -> Self:
        """Collate rows into one batch, padded to about the longest row.

        Args:
            rows: The rows, at least one.
            context_length: Upper bound of the padded length.
        """
        time = _round_up(max(len(row.ids) for row in rows) - 1, context_length)
        ids = np.zeros((len(rows), time), np.int64)
        targets = np.full((len(rows), time), IGNORED, np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row.ids) - 1] = row.ids[:-1]
            targets[index, : len(row.ids) - 1] = row.ids[1:]
            if row.loss_mask is not None:
                targets[index, : len(row.ids) - 1][~row.loss_mask] = IGNORED
        folds = torch.tensor([row.fold for row in rows])
        sources = [row.source for row in rows if row.source is not None]
        if not sources:
            return cls(torch.from_numpy(ids), torch.from_numpy(targets), folds)
        source = np.full((len(rows), _round_up(max(map(len, sources)), context_length)), NO_TOKEN, np.int64)
        for index, source_ids in enumerate(sources):
            source[index, : len(source_ids)] = source_ids
        return cls(torch.from_numpy(ids), torch.from_numpy(targets), folds, torch.from_numpy(source))

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return Batch(*(None if tensor is None else tensor.to(device) for tensor in self))  # type: ignore[arg-type]

    def tensor_split(self, parts: int) -> "list[Batch]":
        """Split into a number of batches of about equally many rows; with fewer rows than parts, some are empty."""
        splits = [None if tensor is None else tensor.tensor_split(parts) for tensor in self]
        return [Batch(*(None if split is None else split[index] for split in splits)) for index in range(parts)]  # type: ignore[arg-type]


class UserLossMask(NamedTuple):
    """A random choice of the user tokens of a chat that count in the loss; assistant tokens always do.

    User messages are far harder to predict than replies: counted in full, they would make up most of the loss. Dropping
    a target at random weighs it, on average, as scaling its loss would. The choice depends on the seed and the row's
    index alone.
    """

    user: int
    """Id of the token that opens a user turn."""
    assistant: int
    """Id of the token that opens an assistant turn."""
    fraction: float
    """Fraction of user tokens that count."""
    seed: int

    def mask(self, ids: Ids, index: int) -> npt.NDArray[np.bool_]:
        """Return a mask, [T], that is true for targets that count.

        Args:
            ids: [T + 1], the row; tokens before its first role token count.
            index: Index of the row, counted from the start of the run.
        """
        is_role = (ids == self.user) | (ids == self.assistant)
        last_role = np.maximum.accumulate(np.where(is_role, np.arange(len(ids)), 0))
        is_reply = np.asarray(ids[last_role][1:] != self.user)
        random = np.random.Generator(np.random.PCG64((self.seed, index)))
        return is_reply | (random.random(len(is_reply)) < self.fraction)


def make_user_loss_mask(
    fraction: float, template: ChatTemplate | None, tokenizer: Tokenizer, seed: int
) -> UserLossMask | None:
    """Return the mask for a text; None if all tokens count, or there are no role tokens."""
    if fraction >= 1 or template is None:
        return None
    user, assistant = tokenizer.token_id(template.user), tokenizer.token_id(template.assistant)
    return None if user is None or assistant is None else UserLossMask(user, assistant, fraction, seed)


class Batches:
    """Batches of one text, or of a weighted mix of texts.

    Args:
        texts: For each source, ids [N] with N > `context_length`, to be cut into windows; or documents, one per row.
        context_length: Length of a window, and maximum length of a document.
        batch_size: Rows per step.
        seed: Seed of the order.
        weights: Weight of each source in the mix.
        stride: Tokens from one window's start to the next; None for `context_length`.
        loss_mask: Mask of user tokens in a chat; None if all tokens count in the loss.
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
        self.sources = [
            Documents(text, context_length, batch_size, seed, index)
            if isinstance(text, Rows)
            else Windows(text, context_length, seed, index, stride)
            for index, text in enumerate(texts)
        ]
        self.context_length, self.batch_size, self._loss_mask = context_length, batch_size, loss_mask
        self._round = _interleave(weights)
        lengths = np.array([source.row_tokens for source in self.sources])
        row_tokens = float(np.dot(self._round.counts, lengths)) / len(self._round.sources)
        self.tokens_per_batch = max(1, round(batch_size * row_tokens))
        """Mean number of targets of a batch."""

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0."""
        return Batch.of(
            [self._draw(step * self.batch_size + row) for row in range(self.batch_size)], self.context_length
        )

    def _draw(self, index: int) -> Row:
        """Return the row with an index that counts from the start of the run."""
        rounds, turn = divmod(index, len(self._round.sources))
        source = int(self._round.sources[turn])
        row = self.sources[source].row(rounds * int(self._round.counts[source]) + int(self._round.previous[turn]))
        if self._loss_mask is None:
            return row
        return row._replace(loss_mask=self._loss_mask.mask(row.ids, index))


def _round_up(length: int, limit: int) -> int:
    return min(math.ceil(length / LENGTH_MULTIPLE) * LENGTH_MULTIPLE, limit)


class _Round(NamedTuple):
    """Order in which the sources of a mix take turns, repeated forever."""

    sources: Positions
    """[R], index of the source of each turn."""
    previous: Positions
    """[R], number of turns that the source had earlier in the round."""
    counts: Positions
    """[S], number of turns of each source per round."""


def _interleave(weights: Sequence[float]) -> _Round:
    """Give each source turns in proportion to its weight, spread evenly, so that every batch is close to the mix."""
    weight = np.array(weights) / max(weights)
    turns = weight / max(weight.min(), 1 / MAX_ROUND_TURNS)
    if turns.sum() > MAX_ROUND_TURNS or not np.allclose(turns, turns.round(), rtol=0, atol=1e-6):
        turns = MAX_ROUND_TURNS * weight / weight.sum()
    counts = np.maximum(1, turns.round().astype(np.int64))
    sources = np.repeat(np.arange(len(counts)), counts)
    previous = np.concatenate([np.arange(count) for count in counts])
    order = np.argsort((previous + 0.5) / counts[sources], kind="stable")
    return _Round(sources[order], previous[order], counts)
