"""Bytes → text, a piece at a time, in bounded memory: every newline made LF, NULs left out, damage counted."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

from tinychat.errors import SourceError
from tinychat.text.notices import Notes

PIECE = 1 << 18
"""bytes read at a time"""


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where it is gzip.

    Raises:
        SourceError: the file, or what is packed in it, cannot be read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else nullcontext(raw)
            with unpacked as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{path} is a damaged gzip file: {error}", "fetch or pack it again") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", "") from None


def read_text(path: Path, encoding: str, notes: Notes, size: int = PIECE) -> Iterator[str]:
    """The text in pieces, which joined are the same whatever their size (bytes read at a time).

    Raises:
        SourceError: the file cannot be read.
    """
    decoder = _Decoder(encoding, notes)
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    at_start = True
    with open_bytes(path) as file:
        more = True
        while more:
            data = file.read(size)
            more = bool(data)
            text = newlines.decode(decoder.decode(data, final=not more), final=not more)
            if at_start and text:
                text, at_start = text.removeprefix("\ufeff"), False
            if text := _without_nuls(text, notes):
                yield text
    _note_newlines(newlines.newlines, notes)


def read_lines(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in pieces, each with its LF."""
    parts: list[str] = []  # of a line that is not whole yet
    for piece in pieces:
        for line in re.findall(r"[^\n]*\n|[^\n]+", piece):
            parts.append(line)
            if line.endswith("\n"):
                yield "".join(parts)
                parts.clear()
    if parts:
        yield "".join(parts)


def clean(text: str, notes: Notes) -> str:
    """A text that came decoded, as out of JSON, made like one that was read: LF, no NULs, no half characters."""
    if "\r" in text:
        _note_newlines("\r\n" if "\r\n" in text else "\r", notes)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text, halves = re.subn("[\ud800-\udfff]", "\ufffd", text)
        notes.add("halves of characters, shown as \ufffd: {count}", halves)
    return _without_nuls(text, notes)


def _without_nuls(text: str, notes: Notes) -> str:
    count = text.count("\0")
    notes.add("NUL characters left out: {count}", count)
    return text.replace("\0", "") if count else text


def _note_newlines(seen: str | tuple[str, ...] | None, notes: Notes) -> None:
    kinds = (seen,) if isinstance(seen, str) else seen or ()
    names = [name for newline, name in (("\r\n", "CRLF"), ("\r", "CR")) if newline in kinds]
    notes.add("{first} line ends became LF", len(names), " and ".join(names))


class _Decoder:
    """An incremental decoder that counts what it cannot decode and knows where the first of it was."""

    def __init__(self, encoding: str, notes: Notes) -> None:
        self.encoding = encoding
        self.notes = notes
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._taken = 0

    def decode(self, data: bytes, final: bool) -> str:
        self._taken += len(data)
        out: list[str] = []
        while True:
            try:
                out.append(self._decoder.decode(data, final))
                return "".join(out)
            except UnicodeDecodeError as error:
                whole = error.object  # what the decoder had kept, and then the data
                first = self._taken - len(whole) + error.start
                kind = f"bytes that are no {self.encoding}, shown as \ufffd: {{count}}, the first at offset {{first}}"
                self.notes.add(kind, error.end - error.start, f"{first:,}")
                out += (whole[: error.start].decode(self.encoding), "\ufffd")
                data = whole[error.end :]
                self._decoder.reset()
