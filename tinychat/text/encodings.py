"""Which encoding a text is in.

A byte order mark decides at once, UTF-16 without one is told by its zeros, and text that is UTF-8 as a whole is
UTF-8. The rest, unless it is UTF-8 with a few damaged bytes, is guessed from the lines that are not ASCII: the kind of
script by charset-normalizer, and among those that it mixes up by whose alphabet or common characters fit.
"""

import codecs
import re
import unicodedata
from pathlib import Path

from tinychat.errors import SourceError
from tinychat.text.decoding import PIECE, open_bytes

HEAD = 1 << 16
"""bytes that tell text from other data, and that an encoding is guessed from"""

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
    "cp1252": "Western European, as latin-1",
    "cp1250": "Central European",
    "cp1254": "Turkish",
    "cp1251": "Cyrillic",
    "koi8_r": "Cyrillic",
    "cp866": "Cyrillic, DOS",
    "cp1253": "Greek",
    "cp1255": "Hebrew",
    "cp1256": "Arabic",
    "cp932": "Japanese, Shift JIS",
    "euc_jp": "Japanese",
    "gb18030": "Chinese",
    "big5": "Chinese, traditional",
    "cp949": "Korean",
}
"""What is looked for where a text is no Unicode, and what to call it."""

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
"""The letters beyond ASCII of languages whose encodings differ in few bytes."""

COMMON_CODES = {
    "cp949": ("euc_kr", (0xA1, 0xA3, *range(0xB0, 0xC9))),  # Hangul
    "euc_jp": ("euc_jp", (0xA1, 0xA3, 0xA4, 0xA5, *range(0xB0, 0xD0))),  # kana, and the kanji of level 1
    "cp932": ("euc_jp", (0xA1, 0xA3, 0xA4, 0xA5, *range(0xB0, 0xD0))),
    "gb18030": ("gb2312", (0xA1, 0xA3, *range(0xB0, 0xD8))),  # the hanzi of level 1
    "big5": ("big5", range(0xA1, 0xC7)),  # the frequent hanzi
}
"""Where the signs and characters that are used most are in the standard behind each encoding: a code and the first
bytes in it. The narrowest is first, and wins where several fit as well."""

LATIN = {encoding for encoding, _ in ALPHABETS}
WORDS_OF_ONE_LETTER = set("àâáéèêóòôåí")
COMMON_SIGNS = set("“”„‘’‚–—…•«»¡¿€£§©®™°·×½¼¾\xa0")

_CONTROLS = bytes(code for code in range(32) if code not in b"\0\t\n\v\f\r\x1a\x1b") + b"\x7f"


def find_encoding(path: Path) -> str:
    """The encoding of a text, as Python names it; the whole file is looked at, in bounded memory.

    Raises:
        SourceError: the file cannot be read, or is no text.
    """
    with open_bytes(path) as file:
        head = file.read(HEAD)
    for mark, encoding in BOMS:
        if head.startswith(mark):
            return encoding
    wide = _find_wide(head)
    if wide:
        return wide
    kind = _find_binary(head)
    if kind:
        raise SourceError(f"{path} is {kind}, not text", "save it as plain text first")
    if _is_utf8(path):
        return "utf-8"
    return _guess(_unusual_lines(path))


def describe(encoding: str) -> str:
    """`cp1251 (Cyrillic)`."""
    return f"{encoding} ({ENCODINGS[encoding]})" if encoding in ENCODINGS else encoding.upper()


def _find_wide(head: bytes) -> str | None:
    """UTF-16 without a mark: the byte order in which plain signs are common and impossible ones are not."""
    zeros = head.count(0) / (len(head) or 1)
    if not zeros or (zeros < 0.4 and not _is_binary(head)):
        return None
    best, most = None, 0.05
    for encoding in ("utf-16-le", "utf-16-be"):
        text = head[: len(head) // 2 * 2].decode(encoding, errors="replace")
        strange = sum(char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cn", "Co") for char in text)
        strange -= sum(text.count(char) for char in "\t\n\r")
        plain = sum(char.isascii() or char in "，。、“”" for char in text)
        if strange <= len(text) / 100 and plain / len(text) > most:
            best, most = encoding, plain / len(text)
    return best


def _is_binary(head: bytes) -> bool:
    controls = len(head) - len(head.translate(None, delete=_CONTROLS))
    return controls > max(2, len(head) / 20)


def _find_binary(head: bytes) -> str | None:
    """What a file is that is no text; None where it may be one."""
    for offset, magic, kind in KNOWN_BINARIES:
        if head[offset:].startswith(magic):
            return kind
    return "binary data" if _is_binary(head) or head.count(0) > len(head) / 3 else None


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_bytes(path) as file:
            while data := file.read(PIECE):
                decoder.decode(data)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _unusual_lines(path: Path) -> bytes:
    """The first lines that are not ASCII, up to `HEAD` bytes."""
    found: list[bytes] = []
    left = HEAD
    with open_bytes(path) as file:
        while left > 0 and (line := file.readline(left)):
            if not line.isascii():
                found.append(line)
                left -= len(line)
    sample = b"".join(found)
    # the last line may have been cut within a character, which no byte below `0` can be a part of
    return sample[: max((sample.rfind(byte) for byte in b"\n ,.!-"), default=-1) + 1] or sample if left <= 0 else sample


def _guess(sample: bytes) -> str:
    """The encoding of a text that is not all UTF-8."""
    repaired = sample.decode("utf-8", errors="replace")
    whole = sum(char > "\x7f" for char in repaired)
    damaged = repaired.count("\ufffd")
    if whole > 2 * damaged:
        return "utf-8"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(ENCODINGS)).best()
    if best is None or best.encoding in LATIN or not _is_in_runs(sample):
        return _guess_latin(sample)
    return _guess_eastern(sample) if best.encoding in COMMON_CODES else str(best.encoding)


def _guess_eastern(sample: bytes) -> str:
    """The encoding of East Asia in which most characters are common ones."""

    def share(encoding: str) -> float:
        code, common = COMMON_CODES[encoding]
        text = re.sub(r"[\x00-\x7f]+", "", sample.decode(encoding, errors="replace"))
        return sum(char.encode(code, errors="replace")[0] in common for char in text) / (len(text) or 1)

    return max(COMMON_CODES, key=share)


def _is_in_runs(sample: bytes) -> bool:
    """Whether bytes beyond ASCII make up words of their own, as in scripts that are not Latin."""
    high = _count_high(sample)
    runs = re.findall(rb"[\x80-\xff]{3,}|(?:[\x81-\xfe][\x40-\xfe]){2,}", sample)
    return high >= 6 and sum(map(_count_high, runs)) >= high / 2


def _count_high(data: bytes) -> int:
    return len(data) - len(data.translate(None, delete=bytes(range(0x80, 0x100))))


def _guess_latin(sample: bytes) -> str:
    """The Latin encoding with the language that fits best; UTF-8 where none does, so that bytes are damaged."""
    best, most = "utf-8", 0.75
    for encoding, alphabet in ALPHABETS:
        try:
            share = _share_of_alphabet(sample.decode(encoding), alphabet)
        except UnicodeDecodeError:
            continue
        if share > most:
            best, most = encoding, share
    return best


def _share_of_alphabet(text: str, alphabet: str) -> float:
    """How many of the characters beyond ASCII are letters of the language, in words, or signs that all share."""
    fits = strange = 0
    for word in re.findall(r"[^\W\d_]+|[^\x00-\x7f]", text):
        for char in word.lower():
            if char > "\x7f":
                known = char in alphabet and (len(word) > 1 or char in WORDS_OF_ONE_LETTER)
                fits += known or char in COMMON_SIGNS
                strange += 1
    return fits / strange if strange else 0.0
