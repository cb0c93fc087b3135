"""Checks of arguments, for errors that say which one is wrong."""

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tinychat.errors import UsageError
from tinychat.textutil import quote
from tinychat.untrusted import replace_surrogates


def check_text(text: object) -> str:
    """Return a text that any tokenizer takes: halves of characters, which Python's texts may hold, become `�`.

    Raises:
        UsageError: If it is no text.
    """
    if not isinstance(text, str):
        raise UsageError(f"a text is wanted, not {quote(text)}")
    return replace_surrogates(text)


def check_name(name: object) -> str:
    """Return a name or a path as a text.

    Raises:
        UsageError: If it is neither.
    """
    if not isinstance(name, str | bytes | os.PathLike):
        raise UsageError(f"a name or a path is wanted, not {quote(name)}")
    return os.fsdecode(name)


def check_turns(turns: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return turns, each a prompt and an answer.

    Raises:
        UsageError: If one is anything else, such as a message with a role.
    """
    found = list(turns)
    for turn in found:
        if not isinstance(turn, tuple | list) or len(turn) != 2:
            raise UsageError(f"a turn is a prompt and its answer, not {quote(turn)}", 'as in turns=[("hi", "hello!")]')
    return [(check_text(prompt), check_text(answer)) for prompt, answer in found]


def check_whole(name: str, number: object, low: int | None = None) -> int:
    """Return an argument that is a whole number, also one of numpy, as Python's own.

    Raises:
        UsageError: If it is none, or below `low`.
    """
    try:
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        whole = None
    if whole is None or isinstance(number, bool) or (low is not None and whole < low):
        least = "" if low is None else f" of at least {low}"
        raise UsageError(f"{name} takes a whole number{least}, not {quote(number)}")
    return whole


def to_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, with Python's own numbers in place of numpy's; arrays stay as they are."""
    return {
        name: value.item() if hasattr(value, "item") and getattr(value, "shape", ()) == () else value
        for name, value in values.items()
    }
