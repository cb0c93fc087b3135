"""Names of models and runs: which are valid, and how they are found whatever their case.

A name is that of a folder: letters and digits of any script, `-`, `_`, `.` and inner spaces. It is kept as it was
given, but two names that differ in case or in their Unicode form alone are one.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from tinychat.errors import UsageError
from tinychat.textutil import shorten

MAX_BYTES = 120
"""Maximum length of a name in UTF-8: file systems allow 255 bytes, of which drafts and decomposed letters need some."""
MAX_DERIVED = 60
"""Maximum number of characters of a name that is derived from a source."""
DERIVED = "model"
"""The name derived from a source without letters or digits."""


def check_name(name: str) -> str:
    """Return a name as it is stored, in NFC.

    Raises:
        UsageError: If it cannot name a model or a run.
    """
    name = unicodedata.normalize("NFC", name)
    if fault := _fault(name):
        better = _without_faults(name)
        example = f": {better}" if better else ""
        problem = f"{shorten(repr(name), 60)} cannot be a name: {fault}"
        raise UsageError(problem, f"use letters, digits, - _ . and inner spaces{example}")
    return name


def _fault(name: str) -> str:
    """Return the reason why a text in NFC cannot be a name; empty if it can."""
    if not name:
        return "it is empty"
    if wrong := next((char for char in name if not _is_allowed(char)), ""):
        return f"it has {wrong!r}"
    if not (name[0].isalnum() or name[0] == "_"):
        return f"it begins with {name[0]!r}"
    if name.endswith(" "):
        return "it ends with a space"
    size = len(name.encode())
    return f"it has {size} bytes, more than {MAX_BYTES}" if size > MAX_BYTES else ""


def _is_allowed(char: str) -> bool:
    # Marks, such as the vowels of Devanagari, are parts of letters.
    return char.isalnum() or char in "-_. " or unicodedata.category(char).startswith("M")


def nearest_name(text: str) -> str:
    """Return a text as a name: as it is if it can be one, else the nearest that can; `DERIVED` if there is none."""
    name = unicodedata.normalize("NFC", text)
    return (_without_faults(name) or DERIVED) if _fault(name) else name


def _without_faults(name: str) -> str:
    """Return the valid name nearest to a text in NFC; empty if there is none."""
    words = "".join(char if _is_allowed(char) else "/" for char in name).split("/")
    near = _cut("-".join(word.strip() for word in words if word.strip()).lstrip("-. ")).rstrip("- ")
    return "" if _fault(near) else near


def slug(text: str) -> str:
    """Return the name derived from a text: lower case, and `-` instead of spaces and the like; else `DERIVED`."""
    text = unicodedata.normalize("NFC", text.lower())
    words = "".join(char if _is_allowed(char) and char not in ". " else " " for char in text).split()
    name = _cut("-".join(words).strip("-")[:MAX_DERIVED]).rstrip("-")
    return DERIVED if _fault(name) else name


def _cut(name: str) -> str:
    return name.encode()[:MAX_BYTES].decode(errors="ignore")


def typed(name: str) -> str:
    """Return a name as it is typed as one word of a command."""
    return f"'{name}'" if " " in name else name


def fold(name: str) -> str:
    """Return a form that is the same for all spellings of a name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def find_spelling(name: str, spellings: Sequence[str]) -> str | None:
    """Return the spelling of a name among some, the same one if it is there; None if it is not among them."""
    if name in spellings:
        return name
    wanted = fold(name)
    return next((one for one in sorted(spellings) if fold(one) == wanted), None)


def join_name(words: Sequence[str], spellings: Iterable[str]) -> Sequence[str]:
    """Return the names that words are: one with spaces, not quoted, if that is among the spellings; else each word.

    Words that are all names themselves stay several.
    """
    known, joined = set(map(fold, spellings)), " ".join(words)
    return [joined] if fold(joined) in known and not known.issuperset(map(fold, words)) else words


def find_named(parent: Path, name: str) -> Path | None:
    """Return the entry of a folder with a name, whatever its case; None if there is none, or it is hidden."""
    if not name or name.startswith("."):
        return None
    try:
        found = find_spelling(name, [entry.name for entry in parent.iterdir()])
    except OSError:
        return None
    return None if found is None else parent / found
