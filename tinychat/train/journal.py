"""The events of a run, written as they happen; and read back, when a run goes on or is over."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinychat.atomic import atomic_write
from tinychat.events import Evaluated, Event, LineReader, Stepped, to_json
from tinychat.train.curves import Curves

LONGEST_CURVE = 400
"""points of a loss curve that is kept"""


class Journal:
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
    there = (place for place, (_, event) in enumerate(lines) if event.get("step") and not comes_later(event))
    last = max(there, default=-1)
    end = next((place for place, (_, event) in enumerate(lines) if place > last and comes_later(event)), len(lines))
    atomic_write(path, b"".join(line for line, _ in lines[:end]))


def loss_curve(path: Path) -> dict[str, list[Any]]:
    """Step and loss of training and validation, as the events have them; the first thinned out where it is long.

    Where epochs ended with evaluations, also the figures of each.
    """
    curves = Curves()
    events = list(LineReader(path).events())
    for event in events:
        curves.take(event)
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
