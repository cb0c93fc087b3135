"""Read the bytes of a file as text, in any encoding and in bounded memory.

A byte order mark decides at once; UTF-16 without one is recognized by its zero bytes; a file that is valid UTF-8
throughout is UTF-8. Anything else, unless it is UTF-8 with a few damaged bytes, is guessed from the lines that are not
ASCII: charset-normalizer tells the script, and the alphabets and common characters of languages decide between
encodings that it confuses.
"""

import codecs
import gzip
import io
import os
import re
import threading
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tinychat.corpus.types import Notes
from tinychat.errors import SourceError
from tinychat.untrusted import open_regular

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE = 1 << 18
"""Bytes read at a time."""

HEAD = 1 << 16
"""Bytes that are examined to tell text from other data and to guess an encoding."""

MAX_LINE = 1 << 26
"""Maximum number of characters of a line that is a record or a part of one."""

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

KNOWN_BINARIES = (
    (0, b"%PDF-", "a PDF"),
    (0, b"PK\x03\x04", "a zip archive, or a document packed in one"),
    (0, b"{\\rtf", "an RTF document"),
    (257, b"ustar", "a tar archive"),
)

ENCODINGS = {
    "cp1252": "Western European, as latin-1", "cp1250": "Central European", "cp1254": "Turkish",
    "cp1251": "Cyrillic", "koi8_r": "Cyrillic", "cp866": "Cyrillic, DOS",
    "cp1253": "Greek", "cp1255": "Hebrew", "cp1256": "Arabic",
    "cp932": "Japanese, Shift JIS", "euc_jp": "Japanese",
    "gb18030": "Chinese", "big5": "Chinese, traditional", "cp949": "Korean",
}  # fmt: skip
"""The encodings that are considered for text that is not Unicode, with the description of each."""

ALPHABETS = (
    ("cp1252", "àâæçéèêëîïôùûüœ"),  # French
    ("cp1252", "äöüßéà"),  # German
    ("cp1252", "áéíóúüñç"),  # Spanish
    ("cp1252", "áâãàçéêíóôõúü"),  # Portuguese
    ("cp1252", "àèéìòù"),  # Italian
    ("cp1252", "åäöæøé"),  # Swedish, Danish, Norwegian, Finnish
    ("cp1252", "áéëïóöüè"),  # Dutch
    ("cp1252", "áðéíóúýþæö"),  # Icelandic
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áäčďéěíľĺňóôřŕšťúůýž"),  # Czech, Slovak
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "ăâîşţ"),  # Romanian
    ("cp1250", "čćđšž"),  # Croatian, Slovenian
    ("cp1254", "çğıöşüâîû"),  # Turkish
)
"""The non-ASCII letters of languages whose encodings differ in only a few bytes."""

COMMON_CODES = {
    "cp949": ("euc_kr", (0xA1, 0xA3, *range(0xB0, 0xC9))),  # Hangul
    "euc_jp": ("euc_jp", (0xA1, 0xA3, 0xA4, 0xA5, *range(0xB0, 0xD0))),  # kana, and the kanji of level 1
    "cp932": ("euc_jp", (0xA1, 0xA3, 0xA4, 0xA5, *range(0xB0, 0xD0))),
    "gb18030": ("gb2312", (0xA1, 0xA3, *range(0xB0, 0xD8))),  # the hanzi of level 1
    "big5": ("big5", range(0xA1, 0xC7)),  # the frequent hanzi
}
"""The code behind each East Asian encoding, and the lead bytes of its most frequent signs and characters in it. The
narrowest comes first and wins ties."""

LATIN = {encoding for encoding, _ in ALPHABETS}
WORDS_OF_ONE_LETTER = set("àâáéèêóòôåí")
COMMON_SIGNS = set("“”„‘’‚–—…•«»¡¿€£§©®™°·×½¼¾\xa0")

_CONTROLS = bytes({*range(32), 0x7F} - {*b"\0\t\n\v\f\r\x1a\x1b"})
_HIGH = bytes(range(0x80, 0x100))


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a regular file for reading bytes, up to its size by now, decompressing it if it is gzip.

    Raises:
        SourceError: If the file cannot be read, or its gzip data is damaged.
    """
    try:
        with (
            open_regular(path) as whole,
            io.BufferedReader(_Bounded(cast("io.BufferedReader", whole)), PIECE) as raw,
        ):
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) if packed else nullcontext(raw) as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{path} is a damaged gzip file: {error}", "fetch or pack it again") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", "") from None


class _Bounded(io.RawIOBase):
    """A file that ends where it did when it was opened: reading one that grows comes to an end."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file, self._size = file, os.fstat(file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        return self._file.readinto(memoryview(buffer)[: max(0, self._size - self._file.tell())])

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset + self._size) if whence == os.SEEK_END else self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def read_text(path: Path, encoding: str, notes: Notes, size: int = PIECE) -> Iterator[str]:
    """Yield the text in pieces that are not empty; joined, they are the same for every `size`, in bytes.

    `notes` take converted newlines, NULs and damaged bytes.

    Raises:
        SourceError: If the file cannot be read.
    """
    decoder = _Decoder(encoding, notes)
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    at_start = more = True
    with open_bytes(path) as file:
        while more:
            data = file.read(size)
            more = bool(data)
            text = newlines.decode(decoder.decode(data, final=not more), final=not more)
            if at_start and text:
                text, at_start = text.removeprefix("\ufeff"), False
            if text := _without_nuls(text, notes):
                yield text
    _note_newlines(newlines.newlines, notes)


def read_lines(path: Path, pieces: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces, each with its LF.

    Raises:
        SourceError: If a line has more than `MAX_LINE` characters; a small compressed file may hold one of gigabytes.
    """
    parts: list[str] = []  # of a line that is not complete yet
    length = 0
    for piece in pieces:
        for line in re.findall(r"[^\n]*\n|[^\n]+", piece):
            parts.append(line)
            length += len(line)
            if length > MAX_LINE:
                problem = f"{path} has a line of more than {MAX_LINE:,} characters, which is read as a whole"
                raise SourceError(problem, "break it into records, or name it .txt to read it as running text")
            if line.endswith("\n"):
                yield "".join(parts)
                parts.clear()
                length = 0
    if parts:
        yield "".join(parts)


def clean(text: str, notes: Notes) -> str:
    """Normalize text that arrives decoded, as from JSON: LF newlines, no NULs, no lone surrogates."""
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
    """An incremental decoder that counts undecodable bytes and reports the offset of the first."""

    def __init__(self, encoding: str, notes: Notes) -> None:
        self._kind = f"bytes that are no {encoding}, shown as \ufffd: {{count}}, the first at offset {{first}}"
        self._notes = notes
        self._decoder = codecs.getincrementaldecoder(encoding)(_COUNT)
        self._num_read = 0

    def decode(self, data: bytes, final: bool) -> str:
        self._num_read += len(data)
        _decoding.replace = self._replace
        return self._decoder.decode(data, final)

    def _replace(self, error: UnicodeDecodeError) -> tuple[str, int]:
        # Its object has the bytes that the decoder had held back, then those of the call.
        first = self._num_read - len(error.object) + error.start
        self._notes.add(self._kind, error.end - error.start, f"{first:,}")
        return "\ufffd", error.end


_COUNT = "tinychat.count"
"""Name of the error handler of the decoder that decodes in this thread; raising for each byte would take for ever."""
_decoding = threading.local()
codecs.register_error(_COUNT, lambda error: _decoding.replace(error))


def find_encoding(path: Path) -> str:
    """Return the encoding of a text file, as Python names it; reads the whole file, in bounded memory.

    Raises:
        SourceError: If the file cannot be read, or is not text.
    """
    _, encoding = examine_head(path)
    return encoding or ("utf-8" if _is_utf8(path) else _guess(_non_ascii_lines(path)))


def examine_head(path: Path) -> tuple[bytes, str | None]:
    """Return the first bytes of a text file, and its encoding if they are enough to tell.

    Raises:
        SourceError: If the file cannot be read, or is not text.
    """
    with open_bytes(path) as file:
        head = file.read(HEAD)
    for mark, encoding in BOMS:
        if head.startswith(mark):
            return head, encoding
    if utf16 := _find_utf16(head):
        return head, utf16
    if kind := _find_binary(head):
        raise SourceError(f"{path} is {kind}, not text", "save it as plain text first")
    return head, None


def describe_encoding(encoding: str) -> str:
    """Describe an encoding to a person: `cp1251` → `cp1251 (Cyrillic)`."""
    return f"{encoding} ({ENCODINGS[encoding]})" if encoding in ENCODINGS else encoding.upper()


def _find_utf16(head: bytes) -> str | None:
    """Recognize UTF-16 without a byte order mark, by the byte order that gives common characters."""
    zeros = head.count(0) / (len(head) or 1)
    if len(head) < 2 or not zeros or (zeros < 0.4 and not _is_binary(head)):
        return None
    best, most = None, 0.05
    for encoding in ("utf-16-le", "utf-16-be"):
        text = head[: len(head) // 2 * 2].decode(encoding, errors="replace")
        unusual = sum(char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cn", "Co") for char in text)
        unusual -= sum(text.count(char) for char in "\t\n\r")
        common = sum(char.isascii() or char in "，。、“”" for char in text)
        if unusual <= len(text) / 100 and common / len(text) > most:
            best, most = encoding, common / len(text)
    return best


def _is_binary(head: bytes) -> bool:
    return _count(head, _CONTROLS) > max(2, len(head) / 20)


def _find_binary(head: bytes) -> str | None:
    """Return a description of the binary format; None if the data may be text."""
    unknown = "binary data" if _is_binary(head) or head.count(0) > len(head) / 3 else None
    return next((kind for offset, magic, kind in KNOWN_BINARIES if head.startswith(magic, offset)), unknown)


def _is_utf8(path: Path) -> bool:
    with suppress(UnicodeDecodeError), open_bytes(path) as file:
        for _ in codecs.iterdecode(iter(partial(file.read, PIECE), b""), "utf-8"):
            pass
        return True
    return False


def _non_ascii_lines(path: Path) -> bytes:
    """Return the first lines that are not ASCII, up to `HEAD` bytes."""
    found: list[bytes] = []
    left = HEAD
    with open_bytes(path) as file:
        while left > 0 and (line := file.readline(left)):
            if not line.isascii():
                found.append(line)
                left -= len(line)
    sample = b"".join(found)
    # The last line may be cut within a character; no encoding has a byte below `0` inside one.
    return sample[: max((sample.rfind(byte) for byte in b"\n ,.!-"), default=-1) + 1] or sample if left <= 0 else sample


def _guess(sample: bytes) -> str:
    """Guess the encoding of text that is not valid UTF-8 throughout."""
    repaired = sample.decode("utf-8", errors="replace")
    if sum(char > "\x7f" for char in repaired) > 2 * repaired.count("\ufffd"):  # more intact than damaged ones
        return "utf-8"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(ENCODINGS)).best()
    if best is None or best.encoding in LATIN or not _is_in_runs(sample):
        return _guess_latin(sample)
    return _guess_eastern(sample) if best.encoding in COMMON_CODES else str(best.encoding)


def _guess_eastern(sample: bytes) -> str:
    """Return the East Asian encoding in which the most characters are common ones."""

    def common_fraction(encoding: str) -> float:
        code, common = COMMON_CODES[encoding]
        text = re.sub(r"[\x00-\x7f]+", "", sample.decode(encoding, errors="replace"))
        return sum(char.encode(code, errors="replace")[0] in common for char in text) / (len(text) or 1)

    return max(COMMON_CODES, key=common_fraction)


def _is_in_runs(sample: bytes) -> bool:
    """Return whether the non-ASCII bytes form words of their own, as in scripts other than Latin."""
    high = _count(sample, _HIGH)
    runs = re.findall(rb"[\x80-\xff]{3,}|(?:[\x81-\xfe][\x40-\xfe]){2,}", sample)
    return high >= 6 and _count(b"".join(runs), _HIGH) >= high / 2


def _count(data: bytes, wanted: bytes) -> int:
    """Count the bytes that are among the wanted ones."""
    return len(data) - len(data.translate(None, delete=wanted))


def _guess_latin(sample: bytes) -> str:
    """Return the Latin encoding whose language fits best; UTF-8 if none fits, so that bytes count as damaged."""
    best, most = "utf-8", 0.75
    for encoding, alphabet in ALPHABETS:
        with suppress(UnicodeDecodeError):
            fraction = _alphabet_fraction(sample.decode(encoding), alphabet)
            if fraction > most:
                best, most = encoding, fraction
    return best


def _alphabet_fraction(text: str, alphabet: str) -> float:
    """Return the fraction of non-ASCII characters that are letters of the language, within words, or common signs."""
    fits = [
        char in COMMON_SIGNS or (char in alphabet and (len(word) > 1 or char in WORDS_OF_ONE_LETTER))
        for word in re.findall(r"[^\W\d_]+|[^\x00-\x7f]", text)
        for char in word.lower()
        if char > "\x7f"
    ]
    return sum(fits) / (len(fits) or 1)
