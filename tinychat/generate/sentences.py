"""Sentences of a text to translate: translators learn sentences, so each one of a prompt is translated by itself."""

import re
from collections.abc import Iterator
from typing import NamedTuple

ABBREVIATIONS = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "approx", "e.g", "i.e"))
"""Words after whose full stop a sentence goes on."""
_BREAK = re.compile(r"""(?P<mark>[.!?…]+)["'”’»)\]]*(?P<space>\s+)|\s*\n\s*""")


class Sentence(NamedTuple):
    """A sentence, and the white space between it and the one before."""

    space: str
    text: str


def split_sentences(text: str) -> list[Sentence]:
    """Split a text at ends of sentences and lines; spaces and texts of the sentences, joined, are the text again.

    White space around the text belongs to its first and last sentence. A full stop ends no sentence after an
    abbreviation (Mr. Brown), an initial (J. Smith), or within a number (3.50).
    """
    sentences: list[Sentence] = []
    start, space = 0, ""
    for end, begin in _breaks(text):
        if text[start:end].strip() and text[begin:].strip():
            sentences.append(Sentence(space, text[start:end]))
            start, space = begin, text[end:begin]
    return [*sentences, Sentence(space, text[start:])]


def _breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where sentences end, and where the next ones begin."""
    for found in _BREAK.finditer(text):
        if found["mark"] is None:
            yield found.start(), found.end()
            continue
        before = text[: found.start()].rpartition(" ")[2].rpartition("\n")[2].lstrip("(\"'“‘«¿¡").lower()
        is_initial = len(before) == 1 and before.isalpha() and before != "i"
        goes_on = found["mark"] == "." and (before in ABBREVIATIONS or is_initial)
        if "\n" in found["space"] or not goes_on:
            yield found.start("space"), found.end()
