"""What a trainer is asked from outside: by signals, by its control file, and by its parent's going away."""

import json
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

from tinychat.events import LineReader


class Control:
    """Listens.

    Args:
        path: of the control file: a JSON object a line, with `command` and what belongs to it.
        parent: stop when this process is no longer the parent, unless `background` came before.
    """

    def __init__(self, path: Path, parent: int | None = None) -> None:
        self.stopping = False
        self._reader = LineReader(path)
        self._parent = parent

    def listen_to_signals(self) -> None:
        """Lets SIGINT and SIGTERM stop the run after its step; a second one ends the process at once."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def commands(self) -> list[dict[str, Any]]:
        """What was asked since the last call, without `stop` and `background`, which are obeyed here."""
        asked: list[dict[str, Any]] = []
        for line in self._reader.lines():
            try:
                command = json.loads(line)
            except ValueError:  # nobody waits for an answer
                continue
            match command:
                case {"command": "stop"}:
                    self.stopping = True
                case {"command": "background"}:
                    self._parent = None
                case dict():
                    asked.append(command)
        # Last, as whoever went away may have said `background` before.
        if self._parent is not None and os.getppid() != self._parent:
            self.stopping = True
        return asked

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
        signal.signal(number, signal.SIG_DFL)
