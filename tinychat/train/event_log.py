"""The events of a run: written as they happen, read back when it resumes, and the loss curves in them.

Needs no torch.

What a trainer is asked from outside: by signals, by its control file, and by its parent's going away.
"""

import json
import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tinychat.atomic import atomic_write
from tinychat.events import Evaluated, Event, LineReader, Stepped, to_json

LONGEST_CURVE = 400
"""points of a loss curve that is kept"""
SPAN = 0.05
"""the share of a run over which the loss of training is averaged"""
RISE = 0.005
"""how far validation loss must rise, as a share of it, before it is more than noise"""

Points = Sequence[tuple[float, float]]
"""steps and losses, in the order of steps"""


class EventLog:
    """Appends events to `events.jsonl`, each a whole line that a watcher sees at once.

    A disk that is full ends no run: what it does not take is kept, and goes before the next event.

    Args:
        path: of the file; what is in it stays.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._unwritten = b""

    def write(self, event: Event) -> None:
        """Adds one event."""
        self._unwritten += (to_json(event) + "\n").encode("utf-8")
        with suppress(OSError):
            while self._unwritten:
                self._unwritten = self._unwritten[self._file.write(self._unwritten) :]

    def close(self) -> None:
        """Closes the file; a line that was begun and could not be ended is taken back."""
        self._file.close()
        if self._unwritten:
            os.truncate(self._path, self._path.read_bytes().rfind(b"\n") + 1)


def rewind(path: Path, step: int) -> None:
    """Takes back what happened after `step`, a last word, and a line that was cut short when the trainer was killed.

    Args:
        path: of the events.
        step: of the checkpoint from which the run goes on; −1 takes back everything.
    """
    if not path.is_file():
        return
    lines: list[tuple[bytes, dict[str, Any]]] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            lines.append((line + b"\n", json.loads(line)))
        except ValueError:  # a disk that was full, a machine that went down
            break

    def comes_later(event: dict[str, Any]) -> bool:
        return step < 0 or event.get("step", 0) > step or event["event"] in ("ended", "failed")

    # Steps go back where a run retreats: what counts is the last time that it was there.
    there = (index for index, (_, event) in enumerate(lines) if event.get("step") and not comes_later(event))
    last = max(there, default=-1)
    end = next((index for index, (_, event) in enumerate(lines) if index > last and comes_later(event)), len(lines))
    atomic_write(path, b"".join(line for line, _ in lines[:end]))


@dataclass
class Curves:
    """Losses by step, as the events of a run tell them; a run that goes back takes back what came after."""

    training: list[tuple[float, float]] = field(default_factory=list)
    validation: list[tuple[float, float]] = field(default_factory=list)
    """of the part kept for it, or of the text itself where there is none"""
    is_kept: bool = True
    """whether a part is kept for validation"""

    def update(self, event: Event) -> None:
        """Add what an event tells; other events than steps and evaluations change nothing."""
        if isinstance(event, Stepped):
            while self.training and self.training[-1][0] >= event.step:
                self.training.pop()
            while self.validation and self.validation[-1][0] > event.step:  # which may come before its step is told
                self.validation.pop()
            self.training.append((event.step, event.loss))
        elif isinstance(event, Evaluated):
            self.validation.append((event.step, event.loss))
            self.is_kept = event.split != "train"

    @property
    def overfits_since(self) -> int | None:
        """The step of the lowest validation loss, where that has risen since, and that of training fallen; or None."""
        return overfits_since(self.training, self.validation) if self.is_kept else None


def smoothed(points: Points, span: float = SPAN) -> list[tuple[float, float]]:
    """Each point's mean with its neighbours, as many before as behind it: nothing is late, the beginning stays steep.

    Args:
        span: the share of all steps that the neighbours lie in.
    """
    reach = span / 2 * (points[-1][0] - points[0][0]) if points else 0.0
    means = []
    first = last = 0
    total = 0.0
    for index, (step, _) in enumerate(points):
        near = min(reach, step - points[0][0])  # or the first points would be averaged with later, lower ones alone
        while last < len(points) and points[last][0] <= step + near:
            total += points[last][1]
            last += 1
        while points[first][0] < step - near:
            total -= points[first][1]
            first += 1
        means.append((step, total / (last - first) if last > first else points[index][1]))
    return means


def recent_loss(losses: Points, step: float | None = None) -> float | None:
    """The mean loss over the last twentieth of the run until `step`; None where there is none.

    Args:
        losses: of training.
        step: None: the last one.
    """
    until = [point for point in losses if step is None or point[0] <= step]
    if not until:
        return None
    reach = SPAN * (losses[-1][0] - losses[0][0])
    recent = [loss for at, loss in until if at >= until[-1][0] - reach]
    return sum(recent) / len(recent)


def overfits_since(losses: Points, evaluations: Points) -> int | None:
    """The step of the lowest validation loss, where that has risen since while the loss of training fell; else None."""
    if not evaluations:
        return None
    best, lowest = min(evaluations, key=lambda point: (point[1], point[0]))
    step, loss = max(evaluations, key=lambda point: point[0])
    before, now = recent_loss(losses, best), recent_loss(losses, step)
    rose = step > best and loss > (1 + RISE) * lowest
    return int(best) if rose and before is not None and now is not None and now < before else None


def loss_curve(path: Path) -> dict[str, list[Any]]:
    """Step and loss of training and validation, as the events have them; the first thinned out where it is long.

    Where epochs ended with evaluations, also the figures of each.
    """
    curves = Curves()
    events = list(LineReader(path).events())
    for event in events:
        curves.update(event)
    training, validation = (
        [[step, round(loss, 5)] for step, loss in points] for points in (curves.training, curves.validation)
    )
    stride = -(-len(training) // LONGEST_CURVE) or 1
    curve = {"training": training[::-stride][::-1], "validation": validation}
    epochs = _epochs(events)
    return curve | ({"epochs": epochs} if epochs else {})


def _epochs(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The figures at the end of each epoch, and the mean loss of training in it."""
    epochs: dict[int, dict[str, Any]] = {}
    last = steps = 0
    total = 0.0
    for event in events:
        if isinstance(event, Stepped):
            done = max(0, event.step - last)
            last, steps, total = event.step, steps + done, total + done * event.loss
        elif isinstance(event, Evaluated) and event.epoch is not None:
            # The whole split is looked at in the end: the epoch's weights again, without a step before.
            training = total / steps if steps else epochs.get(event.epoch, {}).get("training_loss")
            figures = {name: getattr(event, name) for name in ("epoch", "step", "loss", "perplexity", "accuracy")}
            epochs[event.epoch] = figures | {"training_loss": training}
            steps, total = 0, 0.0
    return list(epochs.values())


# ---- from tinychat.train.event_log ----


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
