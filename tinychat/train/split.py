"""Split a text into a part to train on and one to validate with: the same in training, in `eval` and in `/play`."""

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinychat.corpus.corpus import Corpus
from tinychat.corpus.types import Chunk
from tinychat.tokenizer.token_cache import Ids
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Positions, Rows

Part = Literal["train", "val", "all"]

VALIDATION_FRACTION = 0.1
"""Fraction of a text that is held out by default."""
MIN_VAL_TOKENS = 9
"""Smallest number of tokens that is held out for validation, of one running text."""
MIN_VAL_ROWS = 4
"""Smallest number of rows that is held out for validation."""


@dataclass(frozen=True)
class TextSplit:
    """Splits a text: holds out the end of a running text, or of documents those that a hash of their text chooses."""

    fraction: float = VALIDATION_FRACTION
    """Fraction to hold out: of the characters, or of the documents."""
    by_text: bool = True
    """False for models that earlier versions trained: they held out by token ids."""

    def choose_documents(self, corpus: Corpus) -> Positions | None:
        """Return the indices of the documents to hold out, before any is encoded; None if their ids choose them."""
        return choose_val_rows(hash_documents(corpus), self.fraction) if self.by_text else None

    def take(self, part: Part, text: Ids | Rows, tokenizer: Tokenizer, held_out: Positions | None = None) -> Ids | Rows:
        """Return a part of an encoded text; of rows, `held_out` are those to validate with, from `choose_documents`.

        Nothing is held out of a text too short for it.
        """
        if part == "all":
            return text
        if isinstance(text, Rows):
            val_rows = choose_val_rows(hash_rows(text), self.fraction) if held_out is None else held_out
            train_rows = np.setdiff1d(np.arange(len(text)), val_rows, assume_unique=True)
            return text.take(val_rows if part == "val" else train_rows)
        end = self.find_end(text, tokenizer)
        return text[end:] if part == "val" else text[:end]

    def find_end(self, ids: Ids, tokenizer: Tokenizer) -> int:
        """Return the number of ids of a running text, [N], to train on: those before the part to validate with."""
        kept = 1 - self.fraction
        end = tokenizer.find_split(ids, kept) if self.by_text else int(len(ids) * kept)
        return end if len(ids) - end >= MIN_VAL_TOKENS else len(ids)


def count_val_tokens(tokens: int, fraction: float) -> int:
    """Return about how many tokens of a running text are held out for validation; 0 if there would be too few."""
    count = tokens - int(tokens * (1 - fraction))
    return count if count >= MIN_VAL_TOKENS else 0


def count_val_rows(rows: int, fraction: float) -> int:
    """Return the number of rows to hold out for validation; 0 if there would be fewer than `MIN_VAL_ROWS`."""
    count = rows - int(rows * (1 - fraction))
    return count if count >= MIN_VAL_ROWS else 0


def take_fraction(count: int, fraction: float) -> int:
    """Return a fraction of a count, rounded, but at least 2 of two or more: a text of one token predicts nothing."""
    return count if fraction >= 1 else max(min(2, count), round(count * fraction))


def cut_validation(text: Ids | Rows, fraction: float) -> Ids | Rows:
    """Return a fraction of a validation split: the end of a text, [N], or documents from all over it."""
    count = take_fraction(len(text), fraction)
    if not isinstance(text, Rows):
        return text[len(text) - count :]
    return text if count == len(text) else text.take(np.linspace(0, len(text) - 1, count).round().astype(np.int64))


def hash_documents(corpus: Corpus) -> Positions:
    """Return a hash of the text of each document, or of the first message of each pair to translate, [D]."""
    hashes: list[int] = []
    digest = hashlib.blake2b(digest_size=7)
    for item in corpus.items():
        texts = [item.text] if isinstance(item, Chunk) else [message.text for message in item.messages]
        digest.update("\0".join(texts[:1] if corpus.mode == "translation" else texts).encode())
        if not isinstance(item, Chunk) or item.ends_document:
            hashes.append(int.from_bytes(digest.digest(), "big"))
            digest = hashlib.blake2b(digest_size=7)
    return np.array(hashes, np.int64)


def hash_rows(rows: Rows) -> Positions:
    """Return a hash of the ids of each row, or of its source, [R]: older models have splits by these."""
    keys = rows.source or rows
    hashes = (hashlib.blake2b(keys.row(index).astype("<i8").tobytes(), digest_size=7) for index in range(len(rows)))
    return np.array([int.from_bytes(digest.digest(), "big") for digest in hashes], np.int64)


def choose_val_rows(hashes: Positions, fraction: float = VALIDATION_FRACTION) -> Positions:
    """Return the indices of the rows to hold out, by their hashes [R]: a random fraction, or none if too few.

    Rows with equal hashes are on the same side, so that no row that is trained on measures the model.
    """
    count = count_val_rows(len(hashes), fraction)
    order = np.argsort(hashes, kind="stable")
    if not 0 < count < len(order) or hashes[order[count - 1]] != hashes[order[count]]:
        return np.sort(order[:count])
    equal = hashes[order] == hashes[order[count]]  # of these, rows are on both sides
    below, beyond = int(equal.argmax()), len(equal) - int(equal[::-1].argmax())
    count = below if below >= MIN_VAL_ROWS else beyond if beyond < len(order) else count
    return np.sort(order[:count])
