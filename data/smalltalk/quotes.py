"""What a reply quotes of a message that answers a question: all of it, or of a long one the sentence or the clause."""

from __future__ import annotations

import re

from grammar import listed

from smalltalk import words
from smalltalk.talk import Talk

ANSWER = 'You said: "<v>"'
SHORT, LONGEST_QUOTED = 20, 14
"""In words: a text up to the first is quoted as a whole; of a longer one a sentence, and of a sentence longer than the
second a clause."""
WORD = re.compile(r"[\w'-]+")
SENTENCE = re.compile(r"(?:[^.!?;:]|[.!?;:](?=\S))+")
_ENDS = re.compile(r"^[ ,-]+|[^\w>%.!?]+$")
_CLAUSES = re.compile(rf",+ +| (?=(?:{'|'.join(listed(words.table(__file__)['joins']))}) )", re.IGNORECASE)


def parts(text: str) -> list[str]:
    """Return what may be quoted of a text: all, or sentences and clauses of a long one, as `_parts_of` gives them."""
    if len(text.split()) <= SHORT:
        return [_ENDS.sub("", text)]
    return [part for found in SENTENCE.finditer(text) for part in _parts_of(found[0])]


def _parts_of(sentence: str) -> list[str]:
    """Return a sentence of a long text, or the clauses of a long one, without marks at the ends."""
    found = _CLAUSES.split(sentence) if len(sentence.split()) > LONGEST_QUOTED else [sentence]
    return [_ENDS.sub("", part).rstrip(".!?") for part in found if WORD.search(part)]


def quote(text: str, answer: str = "", sentence: str = "") -> str:
    """Return the part of a text that answers a question, with the mark at its end.

    Args:
        text: the message; it is quoted as a whole unless it is long.
        answer: words of it; of a long message the sentence or the clause with them is quoted, or they themselves where
            they reach over several. If they are not in it, the longest part is quoted.
        sentence: that of the message in which they stand, if they could stand in several.

    Returns:
        The part; never shouted, as the model reads it.
    """
    among = _parts_of(sentence) if sentence and len(text.split()) > SHORT else parts(text)
    whole = re.compile(rf"(?<![\w'-]){re.escape(answer)}(?![\w'-])", re.IGNORECASE)
    if len(among) == 1 or not answer or not whole.search(text):
        return _unshouted(max(among, key=len, default=text))
    return _unshouted(next((part for part in among if whole.search(part)), answer))


def _unshouted(text: str) -> str:
    """Return the text in lower case, if it is all in capitals."""
    return text.lower() if text.isupper() else text


def is_quoted(part: str, talk: Talk) -> bool:
    """Return whether a reply has quoted the part of a message, or what it is in, before."""
    return any(part.lower() in turn.values["v"].lower() for turn in talk.turns if turn.replies == ANSWER)
