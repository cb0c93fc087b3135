"""What a trainer is asked from outside: by signals, by its control file, and by its parent's going away."""

import json
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any


class Control:
    """Listens.

    Args:
        path: of the control file: a JSON object a line, with `command` and what belongs to it.
        parent: stop when this process is no longer the parent, unless `background` came before.
    """

    def __init__(self, path: Path, parent: int | None = None) -> None:
        self.path = path
        self.stopping = False
        self._parent = parent
        self._position = 0

    def listen_to_signals(self) -> None:
        """Lets SIGINT and SIGTERM stop the run after its step; a second one ends the process at once."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def commands(self) -> list[dict[str, Any]]:
        """What was asked since the last call, without `stop` and `background`, which are obeyed here."""
        asked: list[dict[str, Any]] = []
        for command in self._new_lines():
            match command.get("command"):
                case "stop":
                    self.stopping = True
                case "background":
                    self._parent = None
                case _:
                    asked.append(command)
        # Last, as whoever went away may have said `background` before.
        if self._parent is not None and os.getppid() != self._parent:
            self.stopping = True
        return asked

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
        signal.signal(number, signal.SIG_DFL)

    def _new_lines(self) -> list[dict[str, Any]]:
        """The whole lines that came; what is no object is passed over, as nobody waits for an answer."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        commands = []
        for line in whole.splitlines():
            try:
                command = json.loads(line)
            except ValueError:
                continue
            if isinstance(command, dict):
                commands.append(command)
        return commands
