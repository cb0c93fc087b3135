"""Conversations that are kept without being asked for: transcripts in the user's data folder, the newest of them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tinychat.session import Session
from tinychat.store import places
from tinychat.transcript import Turn, write_transcript

MOST = 200
"""that are kept; older ones go"""


class Keeper:
    """Keeps what is said in a session, a file for each conversation, named by when it began.

    Args:
        session: whose conversation it is.
        clock: tells the time.
    """

    def __init__(self, session: Session, clock: Callable[[], datetime] = datetime.now) -> None:
        self._session, self._clock = session, clock
        self._turns: list[Turn] | None = None
        self.path: Path | None = None
        """the file of the newest conversation; None before the first answer"""

    def keep(self) -> None:
        """Writes the conversation as it stands; one without an answer is none.

        Raises:
            TinychatError: it cannot be written.
        """
        turns = self._session.turns
        if not turns:
            return
        begins = self.path is None or turns is not self._turns  # a new conversation is a new list
        if begins:
            self._turns, self.path = turns, _free(places.transcripts_folder(), f"{self._clock():%Y-%m-%d-%H%M%S}")
        assert self.path is not None
        write_transcript(self.path, self._session.model.name, self._session.settings.current, turns, private=True)
        if begins:
            for path in places.kept_transcripts()[MOST:]:
                with suppress(OSError):
                    path.unlink()


def _free(folder: Path, name: str) -> Path:
    """A name that no file has: another session may have begun in the same second."""
    path, number = folder / f"{name}.json", 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}.json"
    return path
