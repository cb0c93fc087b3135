"""Follows a training run by its folder: what has happened so far, and whether it is over."""

import math
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tinychat.events import Ended, Evaluated, Event, Failed, LineReader, Planned, Sampled, Stepped
from tinychat.store.runs import RunFolder
from tinychat.textutil import duration, percent
from tinychat.train.event_log import Curves, recent_loss

LOOK = 0.1
"""seconds between two looks at the events"""
PATIENCE = 1.0
"""seconds between two looks whether a trainer lives that is no child of ours"""

Process = subprocess.Popen[bytes]


@dataclass
class Progress:
    """What is known of a run."""

    planned: Planned | None = None
    stepped: Stepped | None = None
    evaluated: Evaluated | None = None
    samples: tuple[Sampled, ...] = ()
    """the newest, one for each prompt"""
    curves: Curves = field(default_factory=Curves)
    overfits_since: int | None = None
    """the step from which validation loss rises while that of training falls"""

    @property
    def loss(self) -> float:
        """Of training, the mean over the last part of the run; not a number before the first step."""
        loss = recent_loss(self.curves.training)
        return math.nan if loss is None else loss

    def update(self, event: Event) -> None:
        """Notes what happened."""
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
                before = [one for one in self.samples if one.step == event.step and one.prompt != event.prompt]
                self.samples = (*before, event)


def follow(run: RunFolder, process: Process | None = None) -> Iterator[Event | None]:
    """The events of a run as they come, the last of them `Ended` or `Failed`; None whenever there is nothing new.

    Args:
        process: its trainer, where that is a child of this one.
    """
    reader = LineReader(run.events_file)
    alive, looked_at = True, time.monotonic()
    while True:
        # Whether it lives is asked before its events are read, so that what it wrote in the end is seen.
        if process is not None:
            alive = process.poll() is None
        elif time.monotonic() - looked_at > PATIENCE:
            alive, looked_at = run.is_running(), time.monotonic()
        for event in reader.events():
            yield event
            if isinstance(event, Ended | Failed):
                _await_end(run, process)
                return
        if not alive and process is not None and run.is_running():
            process, alive = None, True  # another trainer came first: this is its work
        if not alive:
            goes_on = f"--resume {run.name} goes on from its last checkpoint"
            if process is not None and process.returncode == -signal.SIGKILL:
                yield Failed("the trainer was killed (signal 9): memory may have run out", goes_on)
            else:
                yield Failed("the trainer ended without a word", f"its log is {run.log_file}; {goes_on}")
            return
        yield None


def _await_end(run: RunFolder, process: Process | None) -> None:
    """Lets a trainer that has said its last word come to its end."""
    if process is not None:
        process.wait()
    while process is None and run.is_running():
        time.sleep(LOOK)


def score(result: Evaluated | Ended) -> str:
    """`1.7104 · perplexity 5.53 · 2.467 bits/char · accuracy 49.1 %`: the same wherever a result is told."""
    words = f"{result.loss:.4f} · perplexity {result.perplexity:.2f} · {result.bits_per_character:.3f} bits/char"
    return words if result.accuracy is None else f"{words} · accuracy {percent(result.accuracy)}"


def result_line(last: Ended) -> str:
    """How it ended, and how good the model is."""
    how = "done" if last.reason == "done" else "stopped"
    return f"{how} at step {last.step:,} after {duration(last.seconds)} · loss {score(last)}"
