"""Generate the fables: the first of the tales, as plain text with an empty line after each."""

from __future__ import annotations

from collections.abc import Iterator

from tales.make import tales


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the tales, each with an empty line after it."""
    for text in tales(count, seed, held_out=held_out):
        yield f"{text}\n\n"
