"""Read untrusted files, JSON and TOML: never waits, never grows without limit, and raises errors of two kinds.

What cannot be opened or is no regular file raises an `OSError`; what is opened but is not valid raises a `ValueError`.
Processes of ours import nothing from the current folder, which may be anybody's.
"""

import json
import os
import re
import stat
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from tinychat.textutil import quote

MAX_DEPTH = 64
"""Maximum depth of nested arrays and objects; what Python can parse and write again is about 1,000."""
MAX_KEY_PARTS = 64
"""Maximum number of parts of a dotted key of TOML, each of which takes time for each key and table in it."""
MAX_FILE = 256 << 20
"""Maximum size of a file that is read as a whole, in bytes."""
MAX_TOML = 4 << 20
"""Maximum size of a file of TOML, in bytes; some take a second for each million."""
MAX_INTEGER = 2**63 - 1
"""Largest integer, positive or negative: one that fits in 64 bits."""

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STRING = re.compile(rb'"[^"]*"')
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes({*range(256)} - {*b'"[]{}'})
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]++|\\[^\n])*+"?|'[^'\n]*+'?)"""
"""Part of a key of TOML, or a value; a string that does not end takes the rest of its line."""
_LONG_KEY = re.compile(
    r"""(?xs)
    "{3} (?: [^"\\]++ | \\. | "(?!"") )*+ "{0,5}+  # strings of several lines may end in quotes of their own
    | '{3} (?: [^']++ | '(?!'') )*+ '{0,5}+
    | \#[^\n]*+
    """
    rf"| (?P<long> {_KEY_PART} (?: [ \t]*+\.[ \t]*+ {_KEY_PART} ){{{MAX_KEY_PARTS},}} )"
    rf"| {_KEY_PART} (?: [ \t]*+\.[ \t]*+ {_KEY_PART} )*+",
    re.ASCII,
)
"""Matches keys with too many parts, and what may look like them: strings and comments. Takes linear time."""
_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def why_not_regular(path: Path) -> str:
    """Describe what a path is instead of a regular file: `a named pipe`, `a device`; empty if it is a regular file.

    Files of `/proc` and `/sys` do not count as regular: they have no size, and some of them never end.

    Raises:
        OSError: If the path does not exist, or is a loop of symbolic links.
    """
    return _why_not_regular(path.stat())


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, unbuffered reads included; no other kind of file is ever opened.

    Raises:
        OSError: If the file cannot be opened, or is not a regular file.
    """
    refuse_special(path, path.stat())
    # Another process may have put a named pipe there meanwhile: it must not block the call.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        refuse_special(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_special(path: Path, status: os.stat_result) -> None:
    """Raise an error unless a status is that of a regular file.

    Raises:
        OSError: If it is a folder, pipe, socket or device, or a file of `/proc` or `/sys`.
    """
    if kind := _why_not_regular(status):
        raise OSError(None, f"it is {kind}, not a file", str(path))


def read_bytes(path: Path | BinaryIO, limit: int = MAX_FILE) -> bytes:
    """Read a regular file, or one that `open_regular` has opened, from its beginning.

    Raises:
        OSError: If the file cannot be read, or is not a regular file.
        ValueError: If it is longer than `limit` bytes.
    """
    with open_regular(path) if isinstance(path, Path) else nullcontext(path) as file:
        file.seek(0)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is longer than {limit:,} bytes")
    return data


def read_text(path: Path | BinaryIO, limit: int = MAX_FILE) -> str:
    """Read a regular file of UTF-8, with a byte order mark or without.

    Raises:
        OSError: If the file cannot be read, or is not a regular file.
        ValueError: If it is longer than `limit` bytes, or is not UTF-8.
    """
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: byte {error.start:,} is 0x{error.object[error.start]:02x}") from None


def read_json(path: Path | BinaryIO, limit: int = MAX_FILE, *, clamps: bool = False) -> Any:
    """Read a regular file of JSON, as `parse_json` does.

    Raises:
        OSError: If the file cannot be read, or is not a regular file.
        ValueError: If it is too long, is not UTF-8, or is not valid JSON.
    """
    return parse_json(read_text(path, limit), clamps=clamps)


def parse_json(text: str, *, clamps: bool = False) -> Any:
    """Parse JSON (RFC 8259), strictly; what comes back can be written as JSON and as UTF-8 again.

    Lone surrogates, which are not text, become `�`. With `clamps`, whole numbers that do not fit in 64 bits become the
    largest ones that do: `transformers` writes 10^30 where there is no limit.

    Raises:
        ValueError: If the text is not JSON, is nested more than `MAX_DEPTH` deep, has a key twice in one object, or
            has a number that is not finite or, without `clamps`, does not fit in 64 bits.
    """
    if is_nested(text, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    try:
        values = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_int=_clamp_integer if clamps else _parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise ValueError(_locate(error)) from None
    return _replace_surrogates(values) if _has_surrogates(text) else values


def _locate(error: json.JSONDecodeError) -> str:
    """Say where a text stops being JSON, and what stands there: `no JSON at line 3, column 5: 'hello'`."""
    line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
    there = quote(error.doc[error.pos :].partition("\n")[0]) if error.doc[error.pos :].strip() else "it ends there"
    return f"no JSON at {line}column {error.colno}: {there}"


def is_nested(text: str, limit: int) -> bool:
    """Return whether arrays and objects of JSON are nested more than `limit` deep."""
    # Only a text with more brackets than that can be: most need no second look.
    if text.count("[") + text.count("{") <= limit:
        return False
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = _ESCAPE.sub(b"", data)
    # What is left are quotes and brackets, all of one kind, as no JSON closes one kind by the other. Two quotes side by
    # side may go, whichever strings they belong to: so do most strings, which hold no bracket.
    data = _STRING.sub(b"", data.translate(_BRACKETS, _NO_BRACKETS).replace(b'""', b""))
    for _ in range(limit):
        if b"[]" not in data:
            break
        data = data.replace(b"[]", b"")  # the innermost ones
        limit -= 1
    return b"[]" in data or data.count(b"[") > limit


def read_toml(path: Path, limit: int = MAX_TOML) -> dict[str, Any]:
    """Read a regular file of TOML, as `parse_toml` does.

    Raises:
        OSError: If the file cannot be read, or is not a regular file.
        ValueError: If it is too long, is not UTF-8, or is not valid TOML.
    """
    return parse_toml(read_text(path, limit))


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML 1.0.

    Raises:
        ValueError: If the text is not TOML, is nested too deep, or has a key of more than `MAX_KEY_PARTS` parts or a
            whole number that does not fit in 64 bits.
    """
    if any(found["long"] for found in _LONG_KEY.finditer(text)):
        raise ValueError("one of its keys has too many dots")
    try:
        values = tomllib.loads(text)
        _check_integers(values)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return values


def _check_integers(value: Any) -> None:
    """Raise an error if there is an integer that TOML does not allow; Python could not even show some of them."""
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("it has a whole number that does not fit in 64 bits")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_integers(one)


def call_module(name: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command, and its environment, that runs one of our modules in a process of its own.

    `python -m` alone would look for modules in the current folder first.
    """
    package = str(Path(__file__).resolve().parent.parent)
    search = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return [sys.executable, "-P", "-m", name, *arguments], {**os.environ, "PYTHONPATH": search}


def expand_home(path: Path | str) -> Path:
    """Return a path with the home folder for a `~` at its beginning; `~NAME` of an unknown user stays as it is."""
    path = Path(path)
    with suppress(RuntimeError):
        path = path.expanduser()
    return path


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by `�`, and join pairs of them; other text stays as it is."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _has_surrogates(text: str) -> bool:
    """Return whether JSON may have surrogates: as they are, or escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\\u" in text and bool(_ESCAPED_SURROGATE.search(text))


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_replace_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _replace_surrogates(one) for key, one in value.items()}
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"it has the key {next(key for key, count in counts.items() if count > 1)[:40]!r} twice")
    return values


def _parse_integer(digits: str) -> int:
    if len(digits) < 19:
        return int(digits)
    if len(digits) > 20 or abs(number := int(digits)) > MAX_INTEGER:
        raise ValueError(f"the number {_shorten(digits)} does not fit in 64 bits")
    return number


def _clamp_integer(digits: str) -> int:
    try:
        return _parse_integer(digits)
    except ValueError:
        return -MAX_INTEGER if digits.startswith("-") else MAX_INTEGER


def _parse_float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {_shorten(digits)} is too large")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _shorten(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:10]}… of {len(digits):,} digits"


def _why_not_regular(status: os.stat_result) -> str:
    kind = next((name for is_kind, name in _KINDS.items() if is_kind(status.st_mode)), "")
    return kind or ("a file of the kernel" if status.st_dev in _kernel_devices() else "")


@cache
def _kernel_devices() -> frozenset[int]:
    """Return the numbers of the file systems that the kernel makes up."""
    signs = ("/proc/self", "/sys/kernel")
    return frozenset(Path(sign).parent.stat().st_dev for sign in signs if Path(sign).exists())
