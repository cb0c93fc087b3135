"""What was typed at the prompt, kept in a file."""

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory


class QuietHistory(FileHistory):
    """History in a file; where that cannot be written, or is not to be, it lasts as long as the session."""

    def __init__(self, path: Path, *, private: bool = False) -> None:
        super().__init__(str(path))
        self._private = private

    def load_history_strings(self) -> Iterable[str]:
        """What the file holds, the newest first."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Adds a line to the file."""
        if self._private:
            return
        try:
            Path(os.fsdecode(self.filename)).parent.mkdir(parents=True, exist_ok=True)
            super().store_string(string)
        except (OSError, UnicodeError):
            return
