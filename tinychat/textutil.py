"""Format numbers and texts for people, and make text safe for a terminal."""

import json
from collections.abc import Mapping

LAYOUT_CONTROLS = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that end a line, or change the direction of text, so that a name can look like another one."""
_C1 = range(0x80, 0xA0)
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"} | {0x7F: "␡"}
_CODES = {ord(char): f"\\u{ord(char):04x}" for char in LAYOUT_CONTROLS}
_CONTROLS = _PICTURES | {code: f"\\x{code:02x}" for code in _C1} | _CODES
_IN_JSON = {code: f"\\u{code:04x}" for code in (0x7F, *_C1)} | _CODES
MAX_QUOTE = 40
"""Maximum number of characters that are quoted of a value."""
_VISIBLE = {ord("\n"): "⏎", ord("\t"): "⇥", ord(" "): "␣"}


def escape_controls(text: str) -> str:
    """Replace control characters except newlines and tabs by visible ones (ESC by ␛), to be safe on a terminal.

    Those that change the direction of text are included; letters of scripts that run from right to left stay.
    """
    return text if text.isprintable() else text.translate(_CONTROLS)


def json_line(values: object) -> str:
    """Return values as one line of JSON that is safe on a terminal: all that `escape_controls` replaces is escaped."""
    return json.dumps(values, ensure_ascii=False).translate(_IN_JSON)


def json_text(value: object, indent: str = "") -> str:
    """Return a value as JSON for people to read: each entry on a line of its own, but numbers of a list on one line."""
    inner = f"\n{indent}  "
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        entries = [f"{json.dumps(str(key), ensure_ascii=False)}: {json_text(value[key], inner[1:])}" for key in value]
        return f"{{{inner}{f',{inner}'.join(entries)}\n{indent}}}"
    if isinstance(value, list | tuple) and not all(isinstance(item, int | float) for item in value):
        return f"[{inner}{f',{inner}'.join(json_text(item, inner[1:]) for item in value)}\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def one_line(text: str) -> str:
    """Return a text on one line, without control characters: safe as an entry of a table."""
    return escape_controls(" ".join(text.splitlines()).replace("\t", " "))


def visible(text: str) -> str:
    """Make all characters of a text visible, including spaces, tabs and newlines, on one line."""
    return escape_controls(text).translate(_VISIBLE)


def count(number: float, noun: str) -> str:
    """Format a number with its noun: `1 step`, `1,200 steps`, `0.5 epochs`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{shown} {noun}{'s' * (number != 1)}"


def compact(number: int) -> str:
    """Abbreviate a number: 37 → `37`, 812_345 → `812k`, 3_400_000 → `3.4M`."""
    for unit, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number / unit:.{1 if number < 100 * unit else 0}f}{letter}"
    return str(number)


def byte_size(number: int) -> str:
    """Format a number of bytes: 1_500 → `1.5 kB`, 812_345 → `0.8 MB`, 3_400_000_000 → `3.4 GB`."""
    if number >= 1_000_000_000:
        return f"{number / 1e9:,.1f} GB"
    return f"{number / 1e6:.1f} MB" if number >= 100_000 else f"{number / 1e3:.1f} kB"


def duration(seconds: float) -> str:
    """Format a duration in seconds: 75 → `1:15`, 4,000 → `1:06:40`; negative ones as `0:00`."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def percent(fraction: float, decimals: int = 1) -> str:
    """Format a fraction as a percentage: 0.0512 → `5.1 %`."""
    return f"{100 * fraction:.{decimals}f} %"


def shorten(text: str, max_length: int) -> str:
    """Truncate a text to a maximum length, marking a cut with …."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def quote(value: object) -> str:
    """Return a value as Python writes it, cut short: `'a long te…'`, `[1, 2…`."""
    return repr(shorten(value, MAX_QUOTE)) if isinstance(value, str) else shorten(repr(value), MAX_QUOTE)
