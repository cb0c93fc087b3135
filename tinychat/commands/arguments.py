"""What stands behind a command's name, taken apart: words, flags, quoted texts, files."""

import shlex
from pathlib import Path

from tinychat.errors import UsageError

ESCAPED_SPACE = "\\ "
"""how a space is typed within a word"""


def split_words(text: str) -> list[str]:
    """The words, as in a shell.

    Raises:
        UsageError: a quotation mark is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark stands alone", "put names with spaces between two of them") from None


def split_flags(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The words, and the flags with their values, which may be empty: `--steps=5` is `--steps 5`.

    Raises:
        UsageError: a quotation mark is not closed.
    """
    words: list[str] = []
    flags: list[tuple[str, str]] = []
    waiting = iter(split_words(text))
    for word in waiting:
        if not word.startswith("--"):
            words.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        flags.append((name, value if equals else next(waiting, "")))
    return words, flags


def unquote(text: str) -> str:
    """A text without the quotation marks around it, where it has some."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def to_path(text: str) -> Path:
    """The file that is named, whose spaces may be typed as `\\ `."""
    return Path(text.replace(ESCAPED_SPACE, " ")).expanduser()
