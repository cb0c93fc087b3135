"""Several texts side by side, each wrapped within its column; where the screen is too narrow, in rows of columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from tinychat.repl.terminal import TAB, fit, pad
from tinychat.textutil import escape_controls

LEAST_WIDTH = 24
"""cells of a column, where there are several"""
BETWEEN = " │ "
WORDS = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Line:
    """One line of a drawing; a head stands over texts."""

    text: str
    is_head: bool = False


def columns(heads: Sequence[str], texts: Sequence[str], width: int, height: int | None = None) -> list[Line]:
    """The texts under their heads.

    Args:
        width: cells, at most.
        height: lines, at most; of each text the newest part stays. None: as many as there are.
    """
    count = len(texts)
    across = max(1, min(count, (width + len(BETWEEN)) // (LEAST_WIDTH + len(BETWEEN))))
    rows = -(-count // across)
    across = -(-count // rows)  # 4 where 3 would fit are 2 and 2
    cells = (width - len(BETWEEN) * (across - 1)) // across
    room = None if height is None else max(1, height // rows - 1)
    lines: list[Line] = []
    for first in range(0, count, across):
        wrapped = [wrap(text, cells) for text in texts[first : first + across]]
        if room is not None:
            wrapped = [text[-room:] for text in wrapped]
        lines.append(Line(_beside([fit(head, cells) for head in heads[first : first + across]], cells), is_head=True))
        for place in range(max(map(len, wrapped))):
            lines.append(Line(_beside([text[place] if place < len(text) else "" for text in wrapped], cells)))
    return lines if height is None else lines[:height]


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, broken between words where that can be; wide characters take two cells."""
    lines: list[str] = []
    for paragraph in escape_controls(text).expandtabs(TAB).split("\n"):
        line, used = "", 0
        for word in WORDS.findall(paragraph):
            cells = get_cwidth(word)
            if used and used + cells > width:
                lines.append(line.rstrip())
                line, used = "", 0
                if word.isspace():  # the end of the line stands for it
                    continue
            if cells <= width:
                line, used = line + word, used + cells
                continue
            for char in word:
                cells = get_cwidth(char)
                if used + cells > width:
                    lines.append(line)
                    line, used = "", 0
                line, used = line + char, used + cells
        lines.append(line.rstrip())
    return lines


def _beside(parts: Sequence[str], cells: int) -> str:
    return BETWEEN.join(pad(part, cells) for part in parts).rstrip()
