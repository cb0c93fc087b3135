"""A training run in plain lines, where there is no dashboard; and the words with which a run ends, anywhere."""

import dataclasses
import textwrap
import time
from collections.abc import Callable, Iterator

from tinychat.errors import Interrupted
from tinychat.events import Ended, Evaluated, Event, Failed, Noticed, Planned, Sampled, Stepped, to_json
from tinychat.repl.interrupts import counted_interrupts
from tinychat.repl.watching import LOOK, Process, Progress, follow, result_line, score
from tinychat.store.runs import RunFolder
from tinychat.textutil import duration, percent
from tinychat.train.report import report, told_samples

Last = Ended | Failed | None
"""How a run ended; None: it goes on in the background."""

LINE_INTERVAL, FIRST_LINE = 10.0, 1.0
"""seconds between two lines of progress; and of training before the first, which tells a speed that will last"""
STOPPING = "stopping after this step; all is kept"
TOO_SOON = ("left before the trainer had stopped", "it stops by itself and keeps what it has")
LABELS = 10
"""columns of what a row of the report is about"""
SAMPLE_LINES, SAMPLE_WIDTH = 4, 100
"""of a sample in the report, at most; the model's card has all of it"""


def write_lines(
    run: RunFolder,
    process: Process | None,
    write: Callable[[str], None],
    obey: Callable[[], bool] | None = None,
    *,
    as_json: bool = False,
) -> Last:
    """Lines of progress: the plan, one every ten seconds, evaluations and the end; or every event as JSON.

    Args:
        process: its trainer, where that is a child of this process.
        obey: does what keys ask for; whether the run is to be left in the background. With keys, samples are told too.
        as_json: whether the lines are JSON, and nothing else.

    Raises:
        Interrupted: Ctrl-C came twice, before the trainer had stopped.
    """
    due = 0.0
    stopping = False
    last: Last = None
    progress = Progress()
    with counted_interrupts() as interrupts:
        for event in follow(run, process):
            if interrupts.count > 1:
                raise Interrupted(*TOO_SOON)
            if interrupts.count and not stopping:
                stopping = True
                run.send("stop")
                if not as_json:
                    write(STOPPING)
            if event is None:
                if obey is not None and obey():
                    return None
                time.sleep(LOOK)
                continue
            if isinstance(event, Ended | Failed):
                last = event
            if as_json:
                write(to_json(event))
                continue
            before = progress.overfits_since
            progress.update(event)
            if isinstance(event, Stepped):
                if event.seconds < FIRST_LINE or time.monotonic() < due:
                    continue
                due = time.monotonic() + LINE_INTERVAL
                event = dataclasses.replace(event, loss=progress.loss)
            for line in describe(event):
                write(line)
            if isinstance(event, Sampled) and obey is not None:
                between = "" if event.goes_on else " → "
                write(f"sample at step {event.step:,}: {event.prompt}{between}{event.text}")
            if before is None and progress.overfits_since is not None:
                write(f"overfits since step {progress.overfits_since:,}: val loss rises, train loss falls")
    return last


def describe(event: Event) -> Iterator[str]:
    """An event in plain lines; none for those that a person need not know."""
    match event:
        case Planned():
            yield from event.lines
        case Noticed():
            yield event.text
        case Stepped():
            rate, left = f"{event.tokens_per_second:,.0f} tok/s", f"{duration(event.remaining)} left"
            share = percent(event.progress, 0)
            yield f"step {event.step:,}/{event.steps:,} · {share} · loss {event.loss:.3f} · {rate} · {left}"
        case Evaluated():
            epoch = "" if event.epoch is None else f"epoch {event.epoch:,} · "
            best = " · best so far" if event.best else ""
            yield f"{epoch}step {event.step:,} · {event.split} loss {score(event)}{best}"
        case Ended():
            yield from ending(event)


def ending(last: Ended, width: int | None = None) -> Iterator[str]:
    """What a person wants to know of a run that is over: how good the model is, whether it overfits, what it says.

    Args:
        width: of the screen; None: lines of a file.
    """
    yield from textwrap.wrap(result_line(last), width - 1) if width else [result_line(last)]
    for about, told in report(last):
        yield from _row(about, textwrap.wrap(told, width - LABELS - 1) if width else [told])
    for number, sample in enumerate(told_samples(last), 1):
        lines = [
            part
            for line in sample.expandtabs(4).splitlines()
            for part in textwrap.wrap(line, (width or SAMPLE_WIDTH) - LABELS - 3)  # room for …
        ]
        if len(lines) > SAMPLE_LINES:
            lines = [*lines[: SAMPLE_LINES - 1], lines[SAMPLE_LINES - 1] + " …"]
        yield from _row(f"sample {number}", lines or ["(nothing)"])


def farewell(run: RunFolder, last: Ended) -> Iterator[str]:
    """Where the model is, how to talk to it, and how to go on."""
    named = last.folder.replace("\\", "/").endswith(f"/models/{run.name}")
    yield f"the model is in {last.folder}"
    yield f"talk to it: tinychat -m {run.name if named else last.folder}"
    if last.reason == "stopped":
        yield f"go on with it: tinychat train --resume {run.name}"


def _row(about: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield f"{about:<{LABELS}}{line}"
        about = ""
