"""The only writer of the command line to stdout and stderr: nothing that it is given can drive the terminal.

At a terminal, control characters are escaped; a pipe or a file gets them as they are. stderr and tables, which are for
people, are always escaped, and so is JSON, in its own way.
"""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from tinychat.textutil import escape_controls, json_line, one_line

ERASE = "\r\x1b[K"
"""Erases the line of a progress count."""


def echo(text: object = "", *, err: bool = False, end: str = "\n") -> None:
    """Write text and a new line, to stdout or stderr."""
    _echo(_to_shown(str(text), sys.stderr if err else sys.stdout) + end, err=err)


def echo_json(values: object) -> None:
    """Write a line of JSON."""
    _echo(json_line(values) + "\n")


def echo_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Write columns as wide as their longest entry; `right` has the indices of those aligned right."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    signs = [">" if index in right else "<" for index in range(len(widths))]
    for row in shown:
        cells = (f"{cell:{sign}{width}}" for cell, sign, width in zip(row, signs, widths, strict=True))
        _echo("  ".join(cells).rstrip() + "\n")


def echo_problem(problem: str, remedy: str = "") -> None:
    """Write an error to stderr: what is wrong, and below it what to do."""
    colour = is_terminal(sys.stderr) and not is_dumb() and not os.environ.get("NO_COLOR")
    name = click.style("tinychat: ", fg="red" if colour else None)
    _echo(f"{name}{escape_controls(problem)}\n", err=True, colour=colour)
    if remedy:
        echo(f"  {remedy}", err=True)


def echo_progress(text: str = "") -> None:
    """Replace the last progress on stderr, if that is a terminal that can; no text erases it."""
    if is_terminal(sys.stderr) and not is_dumb():
        _echo(f"\r{escape_controls(text)}" if text else ERASE, err=True)


def write(text: str, end: str = "") -> None:
    """Write a part of an answer to stdout; a pipe gets exactly its bytes in UTF-8."""
    sys.stdout.buffer.write((_to_shown(text, sys.stdout) + end).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is open and a terminal."""
    return stream is not None and stream.isatty()


def is_dumb() -> bool:
    """Return whether the terminal can do nothing but write lines."""
    return os.environ.get("TERM") in ("dumb", "unknown")


def _to_shown(text: str, stream: TextIO | None) -> str:
    return escape_controls(text) if stream is sys.stderr or is_terminal(stream) else text


def _echo(text: str, *, err: bool = False, colour: bool | None = None) -> None:
    """Write text as it is, with `?` for what the stream cannot encode."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding), err=err, nl=False, color=colour)
