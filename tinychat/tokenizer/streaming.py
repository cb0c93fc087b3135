"""Decode token ids one at a time: the streamed pieces, joined, equal the text of all ids decoded at once."""

import codecs
from collections.abc import Callable, Collection, Sequence
from typing import Protocol


class StreamDecoder(Protocol):
    """Decodes ids as they come."""

    @property
    def pending(self) -> bool:
        """Whether a character has begun that is not complete yet."""
        ...

    def push(self, id: int) -> str:
        """Return the text that a token adds; empty while a character is incomplete."""
        ...

    def flush(self) -> str:
        """Return what is left at the end: a character that was never completed, as \ufffd."""
        ...


class ByteStream:
    """Decodes tokens that each stand for some bytes of UTF-8.

    Args:
        bytes_of: the bytes of each token, by its id.
    """

    def __init__(self, bytes_of: Sequence[bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = False

    def push(self, id: int) -> str:
        data = self._bytes_of[id]
        if data.isascii() and not self.pending:
            return data.decode("ascii")  # in a quarter of the decoder's time
        text = self._decoder.decode(data)
        self.pending = bool(self._decoder.getstate()[0])
        return text

    def flush(self) -> str:
        self.pending = False
        return self._decoder.decode(b"", final=True)


class WindowStream:
    """Decodes tokens whose text depends on their neighbours: decodes the newest ones again with each token.

    Args:
        decode: ids to text.
        silent: special tokens, which have no text.
        partial: tokens of a single byte each: the text of a row of them is known only when it has ended.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], silent: Collection[int], partial: Collection[int]
    ) -> None:
        self._decode = decode
        self._silent = silent
        self._partial = partial
        self._ids: list[int] = []  # those of the last text returned, and all since
        self._num_returned = 0  # how many of them were returned
        self.pending = False

    def push(self, id: int) -> str:
        if id in self._silent:
            return ""
        self._ids.append(id)
        return self._new_text(final=False)

    def flush(self) -> str:
        return self._new_text(final=True)

    def _new_text(self, final: bool) -> str:
        before = self._decode(self._ids[: self._num_returned])
        text = self._decode(self._ids)
        self.pending = not final and (text.endswith("\ufffd") or self._ids[-1] in self._partial)
        if self.pending or len(text) <= len(before):
            return ""
        self._ids = self._ids[self._num_returned :]
        self._num_returned = len(self._ids)
        return text[len(before) :]
