"""Training runs in the background: how far they have come, how they ended, and the one whose newest weights answer."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.events import Ended, Failed, LineReader, Stepped
from tinychat.store.models import CONFIG, WEIGHTS
from tinychat.store.runs import RunFolder
from tinychat.store.weights import read_step

if TYPE_CHECKING:
    from tinychat.session import Session

LOOK = 0.02
"""seconds between two looks whether newer weights have come"""
PATIENCE = 1.0
"""seconds that an answer waits for the newest weights before it takes those that are there"""


class BackgroundRun:
    """A run that goes on while something else is on screen.

    Args:
        process: its trainer, where that is a child of this process.
    """

    def __init__(self, run: RunFolder, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.run, self.process = run, process
        self.stepped: Stepped | None = None
        self.last: Ended | Failed | None = None
        """how it ended; None: it goes on"""
        self._reader = LineReader(run.events_file)

    def poll(self) -> None:
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


class BackgroundRuns:
    """The runs that a session knows of, and the one that it follows: the newest weights of that one answer."""

    def __init__(self, session: "Session") -> None:
        self.all: list[BackgroundRun] = []
        """the newest last"""
        self.followed: BackgroundRun | None = None
        self._session = session
        self._step: int | None = None
        """after how many steps of it the weights are that answer now"""

    def find(self, name: str) -> BackgroundRun | None:
        """The one of that name that is at work."""
        return next((one for one in self.all if one.run.name == name and one.last is None), None)

    def add(self, run: RunFolder, process: "subprocess.Popen[bytes] | None") -> None:
        """Takes in a run, which is followed from now on, unless it has been known before."""
        if all(one.run != run for one in self.all):
            self.all.append(BackgroundRun(run, process))
            self.followed = self.all[-1]

    def remove(self, run: RunFolder) -> None:
        """Forgets a run."""
        self.all = [one for one in self.all if one.run != run]
        if self.followed is not None and self.followed.run == run:
            self.follow(None)

    def take_ended(self) -> list[BackgroundRun]:
        """Looks at all of them, and forgets those that have ended."""
        for one in self.all:
            one.poll()
        self.keep_up()
        ended = [one for one in self.all if one.last is not None]
        self.all = [one for one in self.all if one.last is None]
        return ended

    def follow(self, run: BackgroundRun | None) -> None:
        """Lets the newest weights of a run answer from now on, as soon as there are any; None: of no run."""
        self.followed, self._step = run, None
        if run is not None and run.has_weights:
            self._open(run)

    def keep_up(self) -> None:
        """Opens the model of the run that is followed, as soon as there is one; and once it has ended, what it made."""
        run = self.followed
        if run is None:
            return
        run.poll()
        if run.last is None:
            if run.has_weights and not self._is_open(run):
                self._open(run)
        else:
            is_open = self._is_open(run)
            self.follow(None)
            if isinstance(run.last, Ended) and is_open:
                self._session.reopen_model(Path(run.last.folder))

    def catch_up(self, should_stop: Callable[[], bool]) -> None:
        """Takes the newest weights of the run that is followed, which come with the conversation as it is."""
        self.keep_up()
        run = self.followed
        if run is None or not self._is_open(run):
            return
        run.ask_for_weights(should_stop)
        if run.weights_step != self._step:
            self._session.engine.reload(self._session.model)
            self._step = run.weights_step

    @property
    def speaker(self) -> str:
        """Who answers: `shakespeare (training, step 1,480)`; empty where it is simply the model at hand."""
        if self.followed is None or self._step is None:
            return ""
        return f"{self._session.model.name} (training, step {self._step:,})"

    @property
    def obstacle(self) -> str:
        """Why what is said now will not be said again; empty where it will."""
        return "the model was still in training" if self.speaker else ""

    def _is_open(self, run: BackgroundRun) -> bool:
        return self._session.info is not None and self._session.info.folder == run.run.model

    def _open(self, run: BackgroundRun) -> None:
        self._session.open_model(str(run.run.model))
        self._step = run.weights_step
        self._session.preload()
