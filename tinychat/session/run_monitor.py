"""Training runs in the background: their progress and results, and the followed run, whose newest weights answer."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

from tinychat.events import Ended, Failed, LineReader, Planned, Stepped
from tinychat.session.open_model import OpenModel, ShouldStop
from tinychat.store.models import CONFIG, WEIGHTS
from tinychat.store.names import fold
from tinychat.store.runs import RunFolder
from tinychat.store.weights import read_step

POLL_INTERVAL = 0.02
"""Seconds between two checks for newer weights."""
MAX_WAIT = 1.0
"""Seconds that an answer waits for the newest weights before it uses the previous ones."""

Opener = Callable[[str], OpenModel]
"""Opens a model by its name or path."""


class BackgroundRun:
    """A training run in the background; `process` is its trainer, if that is a child of this process."""

    def __init__(self, run: RunFolder, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self.run, self.process = run, process
        self.stepped: Stepped | None = None
        """The newest training step since the run began or went on; None before its first."""
        self.last: Ended | Failed | None = None
        """The last event, which says how the run ended; None while it is training."""
        self._reader = LineReader(run.events_file)

    def poll(self) -> None:
        """Read the events since the last call."""
        if self.last is not None:
            return
        # Checked before the events are read, so that the last events of a run that just ended are not missed.
        is_alive = self.run.is_running() if self.process is None else self.process.poll() is None
        for event in self._reader.events():
            if isinstance(event, Stepped):
                self.stepped = event
            elif isinstance(event, Planned):  # it goes on: the steps before are not the present
                self.stepped = None
            elif isinstance(event, Ended | Failed):
                self.last = event
        if self.run.earlier.is_dir():  # it goes on, and has taken no step since
            self.stepped = None
        if not is_alive and self.last is None:
            remedy = f"`/train --resume {self.run.typed_name}` goes on with it"
            self.last = self.run.failure_without_event(self.process, remedy)

    @property
    def has_weights(self) -> bool:
        """Whether the run has published weights."""
        return (self.run.model / CONFIG).is_file()

    @property
    def weights_step(self) -> int | None:
        """The training step of the published weights; None if unknown."""
        return read_step(self.run.model / WEIGHTS)

    def request_weights(self, should_stop: ShouldStop) -> None:
        """Make the trainer publish its newest weights; wait for them up to `MAX_WAIT` seconds.

        Return at once if the request cannot be written, as on a full disk: the weights published last are used.
        """
        previous = self._version
        try:
            self.run.send("publish")
        except OSError:
            return
        deadline = time.monotonic() + MAX_WAIT
        while self._version == previous and time.monotonic() < deadline and not should_stop():
            time.sleep(POLL_INTERVAL)

    @property
    def _version(self) -> int:
        try:
            return (self.run.model / WEIGHTS).stat().st_mtime_ns
        except FileNotFoundError:  # the trainer is replacing the folder
            return -1


class RunMonitor:
    """The training runs of a session, and the one that it follows: its newest weights answer.

    `open_model` opens another model and begins a new conversation; `reopen_model` keeps the conversation.
    """

    def __init__(self, get_model: Callable[[], OpenModel | None], open_model: Opener, reopen_model: Opener) -> None:
        self.all: list[BackgroundRun] = []
        """Runs in training, newest last."""
        self.followed: BackgroundRun | None = None
        """The run whose newest weights answer; None if the open model is not in training."""
        self._get_model, self._open_model, self._reopen_model = get_model, open_model, reopen_model
        self._step: int | None = None
        """Training step of the weights that are loaded."""

    def find(self, name: str) -> BackgroundRun | None:
        """Return the run of a name, whatever its case, if it is training."""
        return next((one for one in self.all if fold(one.run.name) == fold(name) and one.last is None), None)

    def add(self, run: RunFolder, process: "subprocess.Popen[bytes] | None") -> None:
        """Add a run and follow it, unless it has been added before."""
        if all(one.run != run for one in self.all):
            self.all.append(BackgroundRun(run, process))
            self.followed = self.all[-1]

    def remove(self, run: RunFolder) -> None:
        """Forget a run."""
        self.all = [one for one in self.all if one.run != run]
        if self.followed is not None and self.followed.run == run:
            self.follow(None)

    def pop_ended(self) -> list[BackgroundRun]:
        """Poll all runs; forget and return those that have ended; remove those that failed by a mistake at once."""
        for one in self.all:
            one.poll()
        self.open_followed()
        ended = [one for one in self.all if one.last is not None]
        self.all = [one for one in self.all if one.last is None]
        for one in ended:
            one.run.undo_failed_start()
        return ended

    def follow(self, run: BackgroundRun | None) -> None:
        """Answer with the newest weights of a run from now on, as soon as it has any; None: follow no run."""
        self.followed, self._step = run, None
        if run is not None and run.has_weights:
            self._open(run)

    def open_followed(self) -> None:
        """Open the model of the followed run once it has weights; once the run has ended, open its final model."""
        run = self.followed
        if run is None:
            return
        run.poll()
        is_open = self._model_of(run) is not None
        if run.last is not None:
            self.follow(None)
            if isinstance(run.last, Ended) and is_open:
                self._reopen_model(run.last.folder)
        elif run.has_weights and not is_open:
            self._open(run)

    def load_newest_weights(self, should_stop: ShouldStop) -> None:
        """Load the newest weights of the followed run; the conversation goes on.

        Raises:
            ModelError: If they are damaged.
        """
        self.open_followed()
        run = self.followed
        if run is None or (model := self._model_of(run)) is None:
            return
        run.request_weights(should_stop)
        if run.weights_step != self._step:
            model.engine.reload(replace(model.info, files=None))  # the newest weights, not those opened
            self._step = run.weights_step

    @property
    def training_label(self) -> str:
        """The model in training that answers, as in `shakespeare (training, step 1,480)`; empty if there is none."""
        model = self._get_model()
        if self.followed is None or self._step is None or model is None:
            return ""
        return f"{model.name} (training, step {self._step:,})"

    def why_not_reproducible(self, model: OpenModel) -> str:
        """Return why the same call would not give the same answer of a model; empty if it would."""
        return "the model was still in training" if self.training_label and model is self._get_model() else ""

    def _model_of(self, run: BackgroundRun) -> OpenModel | None:
        model = self._get_model()
        return model if model is not None and model.info.folder == run.run.model else None

    def _open(self, run: BackgroundRun) -> None:
        step = run.weights_step  # before: newer weights may be saved meanwhile
        model = self._open_model(str(run.run.model))
        self._step = step
        model.preload()
