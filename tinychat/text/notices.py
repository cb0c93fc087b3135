"""What the readers met that a person should know: short lines, the same for a thousand files as for one."""

from collections.abc import Sequence

MOST = 3
"""lines of one kind before the rest are only counted"""


class Notes:
    """What was met in one file; things of one kind are counted and told in one line."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first: dict[str, object] = {}

    def add(self, kind: str, count: int = 1, first: object = None) -> None:
        """Notes something.

        Args:
            kind: the line, in which `{count}` and `{first}` are filled in.
            count: how many of them.
            first: where the first one is, or what it is; that of the first call stays.
        """
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count
            self._first.setdefault(kind, first)

    def lines(self) -> dict[str, str]:
        """The line of each kind; a name out of a file may hold braces and newlines of its own."""
        return {
            kind: " ".join(kind.replace("{count}", f"{count:,}").replace("{first}", str(self._first[kind])).split())
            for kind, count in self._counts.items()
        }


def summary(files: Sequence[tuple[str, Notes]]) -> tuple[str, ...]:
    """The notices of several files, given with what to call them: at most `MOST` lines of each kind."""
    kinds: dict[str, list[str]] = {}
    for name, notes in files:
        for kind, line in notes.lines().items():
            kinds.setdefault(kind, []).append(f"{name}: {line}")
    shown: list[str] = []
    for lines in kinds.values():
        shown += lines[:MOST]
        if len(lines) > MOST:
            shown[-1] += f" (and {len(lines) - MOST:,} more files alike)"
    return tuple(shown)
