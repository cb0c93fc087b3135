"""Conversations that are kept without being asked for: transcripts in the user's data folder, the newest of them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tinychat.conversation import Conversation
from tinychat.session import Session
from tinychat.store import places
from tinychat.transcript import write_transcript

MOST = 200
"""that are kept; older ones go"""


class Autosave:
    """Keeps what is said in a session, a file for each conversation, named by when it began."""

    def __init__(self, session: Session, clock: Callable[[], datetime] = datetime.now) -> None:
        self._session, self._clock = session, clock
        self._conversation: Conversation | None = None
        self.path: Path | None = None
        """the file of the newest conversation; None before the first answer"""

    def save(self) -> None:
        """Writes the conversation as it stands; one without an answer is none.

        Raises:
            TinychatError: it cannot be written.
        """
        session, conversation = self._session, self._session.conversation
        if not conversation.all:
            return
        begins = self.path is None or conversation is not self._conversation
        if begins:
            name = f"{self._clock():%Y-%m-%d-%H%M%S}"
            self._conversation, self.path = conversation, _free(places.transcripts_folder(), name)
        assert self.path is not None
        write_transcript(self.path, session.model.name, session.settings.current, conversation, private=True)
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
