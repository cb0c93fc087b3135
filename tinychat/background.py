"""A training run in the background: how far it has come, how it ended, and its newest weights."""

import subprocess
import time
from collections.abc import Callable

from tinychat.events import Ended, Failed, LineReader, Stepped
from tinychat.store.models import CONFIG, WEIGHTS
from tinychat.store.runs import RunFolder
from tinychat.store.weights import read_step

LOOK = 0.02
"""seconds between two looks whether newer weights have come"""
PATIENCE = 1.0
"""seconds that an answer waits for the newest weights before it takes those that are there"""


class Background:
    """A run that goes on while something else is on screen.

    Args:
        run: to look at.
        process: its trainer, where that is a child of this process.
    """

    def __init__(self, run: RunFolder, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.run, self.process = run, process
        self.stepped: Stepped | None = None
        self.last: Ended | Failed | None = None
        """how it ended; None: it goes on"""
        self._reader = LineReader(run.events_file)

    def look(self) -> None:
        """Takes in what has happened since the last look."""
        if self.last is not None:
            return
        # Whether it lives is asked before its events are read, so that what it wrote in the end is seen.
        alive = self.run.is_running() if self.process is None else self.process.poll() is None
        for event in self._reader.events():
            if isinstance(event, Stepped):
                self.stepped = event
            elif isinstance(event, Ended | Failed):
                self.last = event
        if not alive and self.last is None:
            self.last = Failed("the trainer ended without a word", f"`/train --resume {self.run.name}` goes on with it")

    @property
    def has_weights(self) -> bool:
        """Whether there is anything to talk to yet."""
        return (self.run.model / CONFIG).is_file()

    @property
    def weights_step(self) -> int | None:
        """After how many steps the weights are that can be talked to now."""
        return read_step(self.run.model / WEIGHTS)

    def ask_for_weights(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Lets the trainer publish its newest weights, and waits a moment for them."""
        before = self._version
        self.run.send("publish")
        end = time.monotonic() + PATIENCE
        while self._version == before and time.monotonic() < end and not should_stop():
            time.sleep(LOOK)

    @property
    def _version(self) -> int:
        try:
            return (self.run.model / WEIGHTS).stat().st_mtime_ns
        except FileNotFoundError:  # its folder is just being exchanged for a newer one
            return -1
