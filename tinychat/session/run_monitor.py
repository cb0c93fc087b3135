"""Training runs in the background: how far they have come, how they ended, and the one whose newest weights answer."""

import subprocess
import time
from collections.abc import Callable

from tinychat.events import Ended, Failed, LineReader, Stepped
from tinychat.session.open_model import OpenModel
from tinychat.store.models import CONFIG, WEIGHTS
from tinychat.store.runs import RunFolder
from tinychat.store.weights import read_step

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


class RunMonitor:
    """The training runs that a session knows of, and the one that it follows: whose newest weights answer.

    Args:
        current: returns the open model; None if none is open.
        open_model: opens another model, by a name or a path.
        reopen_model: does so while the conversation goes on.
    """

    def __init__(
        self,
        current: Callable[[], OpenModel | None],
        open_model: Callable[[str], OpenModel],
        reopen_model: Callable[[str], OpenModel],
    ) -> None:
        self.all: list[BackgroundRun] = []
        """the newest last"""
        self.followed: BackgroundRun | None = None
        self._current, self._open_model, self._reopen_model = current, open_model, reopen_model
        self._step: int | None = None
        """the training step of the weights that answer now"""

    def find(self, name: str) -> BackgroundRun | None:
        """Return the run of that name if it is at work."""
        return next((one for one in self.all if one.run.name == name and one.last is None), None)

    def add(self, run: RunFolder, process: "subprocess.Popen[bytes] | None") -> None:
        """Add a run, and follow it from now on, unless it has been known before."""
        if all(one.run != run for one in self.all):
            self.all.append(BackgroundRun(run, process))
            self.followed = self.all[-1]

    def remove(self, run: RunFolder) -> None:
        """Forget a run."""
        self.all = [one for one in self.all if one.run != run]
        if self.followed is not None and self.followed.run == run:
            self.follow(None)

    def take_ended(self) -> list[BackgroundRun]:
        """Look at all runs; forget and return those that have ended."""
        for one in self.all:
            one.poll()
        self.keep_up()
        ended = [one for one in self.all if one.last is not None]
        self.all = [one for one in self.all if one.last is None]
        return ended

    def follow(self, run: BackgroundRun | None) -> None:
        """Let the newest weights of a run answer from now on, as soon as there are any; None follows no run."""
        self.followed, self._step = run, None
        if run is not None and run.has_weights:
            self._open(run)

    def keep_up(self) -> None:
        """Open the model of the followed run as soon as there is one; once the run has ended, open what it made."""
        run = self.followed
        if run is None:
            return
        run.poll()
        if run.last is None:
            if run.has_weights and self._model_of(run) is None:
                self._open(run)
        else:
            is_open = self._model_of(run) is not None
            self.follow(None)
            if isinstance(run.last, Ended) and is_open:
                self._reopen_model(run.last.folder)

    def catch_up(self, should_stop: Callable[[], bool]) -> None:
        """Load the newest weights of the followed run; the conversation goes on."""
        self.keep_up()
        run = self.followed
        if run is None or (model := self._model_of(run)) is None:
            return
        run.ask_for_weights(should_stop)
        if run.weights_step != self._step:
            model.engine.reload(model.info)
            self._step = run.weights_step

    @property
    def speaker(self) -> str:
        """Who answers: `shakespeare (training, step 1,480)`; empty if it is simply the open model."""
        model = self._current()
        if self.followed is None or self._step is None or model is None:
            return ""
        return f"{model.name} (training, step {self._step:,})"

    def why_not_reproducible(self, model: OpenModel) -> str:
        """Why an answer of that model cannot be made again; empty if it can."""
        return "the model was still in training" if self.speaker and model is self._current() else ""

    def _model_of(self, run: BackgroundRun) -> OpenModel | None:
        """The open model if it is that of the run."""
        model = self._current()
        return model if model is not None and model.info.folder == run.run.model else None

    def _open(self, run: BackgroundRun) -> None:
        model = self._open_model(str(run.run.model))
        self._step = run.weights_step
        model.preload()
