"""Text that would drive a terminal if it were written as it is, and a search for what of it got through."""

import re

POISON = "\x1b]0;poison\x07\x1b[66m\x1b[5n\x9b31m\x9d0;x\x9c\u202eesrever\u2066\x7f\x08."
"""A window title, a style, a question to the terminal, the same with C1 controls, and text set backwards."""

OURS = re.compile(
    r"\x1b\[(?!66m)[\d;]*m|\x1b\[\?(?:1|7|12|25|2004)[hl]|\x1b\[\d*[ABCDGJK]|\x1b\[(?:\d+(?:;\d+)?)?[Hr]|\x1b\[6n|\x1b[78D]|[\r\t\x08]"
)
"""The sequences with which tinychat and prompt_toolkit style text, move the cursor, erase and scroll."""
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069][^\x00-\x1f]{,20}")


def find_foreign(output: str) -> list[str]:
    """Return the control characters that tinychat would not write itself, each with the text after it."""
    return CONTROLS.findall(OURS.sub("", output))
