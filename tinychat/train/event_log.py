"""The interface of a running trainer: events that it writes, commands that it obeys, and loss curves from the events.

Events go to `events.jsonl` as they happen and are rewound when a run resumes. A trainer is told to stop by signals, by
its control file, or by the exit of its parent. Needs no torch.
"""

import json
import math
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tinychat.atomic import atomic_write
from tinychat.events import Evaluated, Event, LineReader, Planned, Sampled, Stepped, to_json

MAX_CURVE_POINTS = 400
"""Maximum number of points of a saved training curve."""
SMOOTHING_FRACTION = 0.05
"""Fraction of a run over which training loss is averaged."""
MIN_RISE, MIN_EVALUATIONS = 0.005, 3
"""Relative rise of validation loss above its minimum, and number of evaluations that show it, that count as overfitting
rather than as noise, or as the unrest of the first steps."""

STOP_SECONDS = 2.0
"""Seconds from a request to stop until a trainer that still reads or plans is ended."""
WATCH_INTERVAL = 0.25
"""Seconds between two looks for such a request."""

Points = Sequence[tuple[float, float]]
"""(step, loss) pairs in the order of steps"""


class EventLog:
    """Append events to a file, each a whole line that readers see at once.

    A full disk ends no run: what cannot be written is kept in memory and written before the next event.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._unwritten = b""

    def write(self, event: Event) -> None:
        self._unwritten += (to_json(event) + "\n").encode("utf-8")
        with suppress(OSError):
            while self._unwritten:
                self._unwritten = self._unwritten[self._file.write(self._unwritten) :]

    def close(self) -> None:
        """Close the file; remove a last line that was only partly written."""
        self._file.close()
        if self._unwritten:
            os.truncate(self._path, self._path.read_bytes().rfind(b"\n") + 1)


def rewind(path: Path, step: int) -> None:
    """Remove the events after a step (all if it is −1), the one that ended the run, and a line cut short by a kill."""
    if not path.is_file():
        return
    lines: list[tuple[bytes, dict[str, Any]]] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            lines.append((line + b"\n", json.loads(line)))
        except ValueError:  # a full disk, or a machine that went down
            break

    def comes_later(event: dict[str, Any]) -> bool:
        return step < 0 or event.get("step", 0) > step or event["event"] in ("ended", "failed")

    # After a return to an earlier checkpoint, steps occur again: the last occurrence counts.
    kept = (index for index, (_, event) in enumerate(lines) if event.get("step") and not comes_later(event))
    last = max(kept, default=-1)
    end = next((index for index, (_, event) in enumerate(lines) if index > last and comes_later(event)), len(lines))
    atomic_write(path, b"".join(line for line, _ in lines[:end]))


class Control:
    """Commands to a trainer, JSON objects in the lines of its control file, and requests to stop it.

    It also stops when `parent` is no longer the parent process, unless the command `background` came before.
    """

    def __init__(self, path: Path, parent: int | None = None) -> None:
        self.stop_requested = False
        self._path, self._reader, self._parent = path, LineReader(path), parent
        self._training = threading.Event()
        self._deciding = threading.Lock()

    def install_signal_handlers(self) -> None:
        """Let SIGINT and SIGTERM stop the run after the current step; a second signal ends the process at once."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def poll_commands(self) -> list[dict[str, Any]]:
        """Return the commands since the last call, without `stop` and `background`, which are obeyed here."""
        commands: list[dict[str, Any]] = []
        for line in self._reader.lines():
            try:
                command = json.loads(line)
            except ValueError:  # malformed lines are ignored
                continue
            match command:
                case {"command": "stop"}:
                    self.stop_requested = True
                case {"command": "background"}:
                    self._parent = None
                case dict():
                    commands.append(command)
        # Last, as the parent may have sent `background` before it exited.
        if self._parent is not None and os.getppid() != self._parent:
            self.stop_requested = True
        return commands

    def watch(self, end: Callable[[], object]) -> None:
        """Call `end`, which ends the process, if a stop is requested and the steps do not begin soon: nothing is lost.

        A thread sees to that, as the main thread may wait for a file or compute for long before its first step, and
        runs no handlers of signals meanwhile. Only the main thread may call this.
        """
        # Kept open as long as this object: numbers of signals must never go to another file of the same descriptor.
        self._signals, self._wakeup = socket.socketpair()
        self._wakeup.setblocking(False)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        own = Control(self._path, self._parent)  # reads the commands beside the loop

        def wait() -> None:
            while not (own.stop_requested or self._training.is_set()):
                own.poll_commands()
                own.stop_requested |= bool(select.select([self._signals], [], [], WATCH_INTERVAL)[0])
            if not self._training.wait(STOP_SECONDS):
                with self._deciding:
                    if not self._training.is_set():
                        end()

        threading.Thread(target=wait, daemon=True).start()

    def begin_steps(self) -> None:
        """Tell the watching thread that steps begin, after which the loop stops by itself and saves."""
        with self._deciding:
            self._training.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stop_requested = True
        signal.signal(number, signal.SIG_DFL)


@dataclass
class Curves:
    """Losses by step, collected from the events of a run; a return to an earlier step removes the points after it."""

    training: list[tuple[float, float]] = field(default_factory=list)
    validation: list[tuple[float, float]] = field(default_factory=list)
    """Loss on the validation split, or on the training text if there is none."""
    has_validation_split: bool = True

    def update(self, event: Event) -> None:
        """Add the loss of a step or of an evaluation; ignore other events."""
        if isinstance(event, Stepped):
            while self.training and self.training[-1][0] >= event.step:
                self.training.pop()
            # An evaluation may precede the report of its step.
            while self.validation and self.validation[-1][0] > event.step:
                self.validation.pop()
            self.training.append((event.step, event.loss))
        elif isinstance(event, Evaluated):
            while self.validation and self.validation[-1][0] >= event.step:
                self.validation.pop()
            self.validation.append((event.step, event.loss))
            self.has_validation_split = event.split != "train"

    @property
    def overfits_since(self) -> int | None:
        """Step since which the model overfits (see `overfits_since`); None if it does not."""
        return overfits_since(self.training, self.validation) if self.has_validation_split else None


def smoothed(points: Points, span: float = SMOOTHING_FRACTION) -> list[tuple[float, float]]:
    """Return centred moving averages over a fraction of all steps; near the ends, over less, to keep a steep start."""
    radius = span / 2 * (points[-1][0] - points[0][0]) if points else 0.0
    means = []
    first = last = 0
    total = 0.0
    for index, (step, _) in enumerate(points):
        local_radius = min(radius, step - points[0][0])  # else the first points would be averaged with lower ones only
        while last < len(points) and points[last][0] <= step + local_radius:
            total += points[last][1]
            last += 1
        while points[first][0] < step - local_radius:
            total -= points[first][1]
            first += 1
        means.append((step, total / (last - first) if last > first else points[index][1]))
    return means


@dataclass
class Progress:
    """The progress of a run, updated by its events."""

    planned: Planned | None = None
    stepped: Stepped | None = None
    evaluated: Evaluated | None = None
    samples: tuple[Sampled, ...] = ()
    """Newest samples, one for each prompt."""
    curves: Curves = field(default_factory=Curves)
    overfits_since: int | None = None
    """The step since which the validation loss rises while the training loss falls."""

    @property
    def loss(self) -> float:
        """Mean training loss over the last part of the run; NaN before the first step."""
        return math.nan if (loss := recent_loss(self.curves.training)) is None else loss

    def update(self, event: Event) -> None:
        """Record an event."""
        self.curves.update(event)
        match event:
            case Planned():
                self.planned = event
            case Stepped():
                self.stepped = event
            case Evaluated():
                self.evaluated = event
                self.overfits_since = self.curves.overfits_since
            case Sampled():
                others = (one for one in self.samples if one.step == event.step and one.prompt != event.prompt)
                self.samples = (*others, event)


def recent_loss(losses: Points, step: float | None = None) -> float | None:
    """Return the mean training loss over a twentieth of the run up to a step, or its end; None without losses."""
    until = [point for point in losses if step is None or point[0] <= step]
    if not until:
        return None
    radius = SMOOTHING_FRACTION * (losses[-1][0] - losses[0][0])
    recent = [loss for at, loss in until if at >= until[-1][0] - radius]
    return sum(recent) / len(recent)


def overfits_since(losses: Points, evaluations: Points) -> int | None:
    """Return the step of the lowest validation loss if that has risen since while training loss fell; else None.

    All later evaluations, at least `MIN_EVALUATIONS`, lie above it, and the last one has not come half of the way back.
    """
    if not evaluations:
        return None
    best, lowest = min(evaluations, key=lambda point: (point[1], point[0]))
    later = [point for point in evaluations if point[0] > best]
    if len(later) < MIN_EVALUATIONS or min(loss for _, loss in later) <= (1 + MIN_RISE) * lowest:
        return None
    last, highest = later[-1][1], max(loss for _, loss in later)
    # The best may be the model that the run went on from: then its first steps are compared with its last ones.
    before = recent_loss(losses, max(best, losses[0][0])) if losses else None
    now = recent_loss(losses, later[-1][0])
    rose = 2 * (last - lowest) > highest - lowest
    return int(best) if rose and before is not None and now is not None and now < before else None


def loss_curve(path: Path) -> dict[str, list[Any]]:
    """Return the loss curves of a run's events as JSON: `training`, thinned out if it is long, and `validation`.

    If epochs ended with evaluations, `epochs` has the figures of each.
    """
    curves = Curves()
    events = list(LineReader(path).events())
    for event in events:
        curves.update(event)
    stride = -(-len(curves.training) // MAX_CURVE_POINTS) or 1
    points = {"training": curves.training[::-stride][::-1], "validation": curves.validation}
    curve = {name: [[step, round(loss, 5)] for step, loss in curve] for name, curve in points.items()}
    epochs = _epochs(events)
    return curve | ({"epochs": epochs} if epochs else {})


def _epochs(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the figures at the end of each epoch, with its mean training loss."""
    epochs: dict[int, dict[str, Any]] = {}
    last = steps = 0
    total = 0.0
    for event in events:
        if isinstance(event, Stepped):
            done = max(0, event.step - last)
            last, steps, total = event.step, steps + done, total + done * event.loss
        elif isinstance(event, Evaluated) and event.epoch is not None:
            # An evaluation may be repeated, without a step before it.
            training = total / steps if steps else epochs.get(event.epoch, {}).get("training_loss")
            figures = {name: getattr(event, name) for name in ("epoch", "step", "loss", "perplexity", "accuracy")}
            epochs[event.epoch] = figures | {"training_loss": training}
            steps, total = 0, 0.0
    return list(epochs.values())
