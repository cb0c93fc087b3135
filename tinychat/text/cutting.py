"""Where a long text may be cut so that the pieces have the same tokens as the whole."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinychat.text.parts import Chunk

SEGMENT = 1 << 14
"""characters of a piece, or a few more: small enough to share the work among processors"""

_CUT = re.compile(r"[^\W_](?=[ \n])|\S\n(?=\S)")
"""Behind a letter or digit before a space, or behind a single end of line: no tokenizer that splits a text into words
has a token across these places, or splits otherwise what is before them."""


def cut(text: str) -> list[str]:
    """The text in pieces of about `SEGMENT` characters; the last one is what follows the last place for a cut."""
    pieces: list[str] = []
    start = 0
    while found := _CUT.search(text, start + SEGMENT):
        pieces.append(text[start : found.end()])
        start = found.end()
    return [*pieces, text[start:]]


def cut_all(chunks: Iterable["Chunk"]) -> Iterator[str]:
    """Documents that come in pieces, cut into others of about `SEGMENT` characters that end where words do."""
    held = ""
    for text, ends_document in chunks:
        *pieces, held = cut(held + text)
        yield from pieces
        if ends_document or len(held) > 4 * SEGMENT:
            yield held
            held = ""


def gather(texts: Iterable[str], size: int = 64 * SEGMENT) -> Iterator[list[str]]:
    """Texts in lists of about `size` characters: one call for many short ones."""
    held: list[str] = []
    length = 0
    for text in texts:
        held.append(text)
        length += len(text)
        if length >= size:
            yield held
            held, length = [], 0
    if held:
        yield held
