"""Token ids → text, one at a time: what is streamed, joined, is what decoding all ids at once gives."""

import codecs
from collections.abc import Callable, Collection, Sequence
from typing import Protocol


class StreamDecoder(Protocol):
    """Turns ids into text as they come."""

    @property
    def pending(self) -> bool:
        """Whether a character has begun that is not whole yet."""
        ...

    def push(self, id: int) -> str:
        """What this token adds to the text; empty while a character is not whole."""
        ...

    def flush(self) -> str:
        """What is left at the end: a character that was never completed, shown as \ufffd."""
        ...


class ByteStream:
    """For tokens that each stand for some bytes of UTF-8.

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
    """For tokens whose text depends on their neighbours: the newest ones are decoded again with each.

    Args:
        decode: ids to text.
        silent: special tokens, which have no text.
        partial: tokens that are one byte each: what a row of them is, is known once it has ended.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], silent: Collection[int], partial: Collection[int]
    ) -> None:
        self._decode = decode
        self._silent = silent
        self._partial = partial
        self._ids: list[int] = []  # those of the last text handed out, and what came since
        self._shown = 0  # how many of them were handed out
        self.pending = False

    def push(self, id: int) -> str:
        if id in self._silent:
            return ""
        self._ids.append(id)
        return self._hand_out(final=False)

    def flush(self) -> str:
        return self._hand_out(final=True)

    def _hand_out(self, final: bool) -> str:
        before = self._decode(self._ids[: self._shown])
        text = self._decode(self._ids)
        self.pending = not final and (text.endswith("\ufffd") or self._ids[-1] in self._partial)
        if self.pending or len(text) <= len(before):
            return ""
        self._ids = self._ids[self._shown :]
        self._shown = len(self._ids)
        return text[len(before) :]
