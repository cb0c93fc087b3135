"""A training run on screen: a dashboard at a terminal, lines elsewhere, events as JSON lines. Keys act on the run."""

import textwrap
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from prompt_toolkit.keys import Keys

from tinychat.errors import Interrupted
from tinychat.events import Ended, Evaluated, Event, Failed, Noticed, Planned, Sampled, Stepped, to_json
from tinychat.repl.keyboard import Keyboard
from tinychat.repl.region import Region
from tinychat.repl.terminal import DIM, Terminal
from tinychat.repl.watching import (
    LOOK,
    Process,
    Progress,
    counted_interrupts,
    duration,
    follow,
    result_line,
    score,
)
from tinychat.store.runs import RunFolder
from tinychat.text.harmless import harmless

LINE_INTERVAL = 10.0
"""seconds between two lines of progress where there is no dashboard"""
FRAME = 0.25
"""seconds between two drawings of the dashboard, unless something is to be seen at once"""
INDENT = " " * 7
"""before what the lines of a plan go on with; the length of their first words"""
SAMPLING = "a sample comes after this step"
STOPPING = "stopping after this step; all is kept"
TOO_SOON = ("left before the trainer had stopped", "it stops by itself and keeps what it has")

Last = Ended | Failed | None
"""How a run ended; None: it goes on in the background."""


def watch(
    run: RunFolder, *, terminal: bool, json: bool, out: TextIO, err: TextIO, process: Process | None = None
) -> Last:
    """Shows a run until it ends, for `tinychat train`; Ctrl-C stops it and keeps what it has learned.

    Args:
        run: to show.
        terminal: draw a dashboard on `out`; else write lines of progress to `err`.
        json: write each event to `out`, a line each, and nothing else but errors to `err`.
        out: standard output.
        err: standard error.
        process: the trainer, where it is a child of this process.

    Raises:
        Interrupted: Ctrl-C came twice, before the trainer had stopped.
    """
    screen = Terminal.standard(out)
    tell = _writer(err)
    if terminal and not screen.dumb:
        last = Dashboard(screen, Keyboard()).show(run, process)
    else:
        last = _write_lines(run, process, _writer(out) if json else None, _silent if json else tell)
    if isinstance(last, Failed):
        tell(f"tinychat: {last.problem}")
        if last.remedy:
            tell(f"  {last.remedy}")
    elif last is None:
        screen.line(f"{run.name} trains on in the background: `tinychat train --resume {run.name}` shows it again")
    elif not json:
        for line in _farewell(run, last):
            tell(line)
    return last


class Dashboard:
    """Draws a run in place, and obeys keys.

    Args:
        terminal: that knows control sequences.
        keyboard: to read from.
        clock: tells seconds.
    """

    def __init__(self, terminal: Terminal, keyboard: Keyboard, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal, self._keyboard, self._clock = terminal, keyboard, clock
        self._region = Region(terminal)
        self._progress = Progress()
        self._said = ""
        self._drawn_at = -FRAME

    def show(self, run: RunFolder, process: Process | None = None) -> Last:
        """Shows a run until it ends or is left in the background.

        Raises:
            Interrupted: it was told to stop twice, before it had.
        """
        last: Last = None
        if self._terminal.dumb:
            return _write_lines(run, process, None, self._terminal.line)
        with self._keyboard.live(), counted_interrupts() as interrupts:
            try:
                for event in follow(run, process):
                    if isinstance(event, Ended | Failed):
                        last = event
                    elif event is not None:
                        self._take(event)
                    else:
                        self._draw_in_time()
                        keys = [key.key for key in self._keyboard.read(LOOK)] + [Keys.ControlC] * interrupts.count
                        interrupts.count = 0
                        if any([self._obey(key, run) for key in keys]):  # noqa: C419 - each is obeyed
                            break
            finally:
                self._close()
        if last is None:
            run.send("background")
        elif isinstance(last, Ended):
            self._terminal.line(result_line(last))
        return last

    def _take(self, event: Event) -> None:
        """Notes an event; the plan and notices stay on screen above."""
        self._progress.take(event)
        if isinstance(event, Sampled) and self._said == SAMPLING:
            self._said = ""
        lines = event.lines if isinstance(event, Planned) else (event.text,) if isinstance(event, Noticed) else ()
        if lines:
            self._region.wipe()
            for line in lines:
                for part in textwrap.wrap(line, self._terminal.width - 1, subsequent_indent=INDENT):
                    self._terminal.line(part, DIM)
            self._drawn_at = -FRAME

    def _obey(self, key: Keys | str, run: RunFolder) -> bool:
        """Does what a key asks for; whether the run is to be left in the background."""
        self._drawn_at = -FRAME
        match key:
            case "b":
                return True
            case "s":
                run.send("sample")
                self._said = SAMPLING
            case "q" | Keys.ControlC:
                if self._said == STOPPING and key is Keys.ControlC:
                    raise Interrupted(*TOO_SOON)
                run.send("stop")
                self._said = STOPPING
        return False

    def _draw_in_time(self) -> None:
        if self._clock() - self._drawn_at >= FRAME:
            self._drawn_at = self._clock()
            self._region.draw(self._lines(self._said))

    def _lines(self, said: str = "") -> list[str]:
        from tinychat.repl.panel import panel  # and rich, which takes as long as the trainer's first moments

        columns, rows = self._terminal.size()
        drawing = panel(self._terminal.console(columns - 1), self._progress, rows, said)
        return self._terminal.render(drawing, columns - 1).splitlines()[: rows - 1]

    def _close(self) -> None:
        """Leaves the last figures on screen, without the keys."""
        self._region.wipe()
        if self._progress.stepped is not None:
            self._region.draw(self._lines()[:-1])
            self._region.leave()


def _write_lines(
    run: RunFolder, process: Process | None, write_json: Callable[[str], None] | None, write: Callable[[str], None]
) -> Last:
    """Lines of progress: the plan, one every ten seconds, evaluations and the end; and every event as JSON."""
    due = 0.0
    stopping = False
    last: Last = None
    with counted_interrupts() as interrupts:
        for event in follow(run, process):
            if interrupts.count > 1:
                raise Interrupted(*TOO_SOON)
            if interrupts.count and not stopping:
                stopping = True
                run.send("stop")
                write(STOPPING)
            if event is None:
                time.sleep(LOOK)
                continue
            if write_json is not None:
                write_json(to_json(event))
            if isinstance(event, Stepped):
                if time.monotonic() < due:
                    continue
                due = time.monotonic() + LINE_INTERVAL
            for line in describe(event):
                write(line)
            if isinstance(event, Ended | Failed):
                last = event
    return last


def _silent(line: str) -> None:
    """Where events are JSON, there are no lines beside them."""


def describe(event: Event) -> Iterator[str]:
    """An event in plain lines; none for those that a person need not know."""
    match event:
        case Planned():
            yield from event.lines
        case Noticed():
            yield event.text
        case Stepped():
            rate, left = f"{event.tokens_per_second:,.0f} tok/s", f"{duration(event.remaining)} left"
            share = f"{100 * event.progress:.0f} %"
            yield f"step {event.step:,}/{event.steps:,} · {share} · loss {event.loss:.3f} · {rate} · {left}"
        case Evaluated():
            scores = score(event.loss, event.perplexity, event.bits_per_character)
            yield f"step {event.step:,} · {event.split} loss {scores}" + (" · best so far" if event.best else "")
        case Ended():
            yield result_line(event)


def _farewell(run: RunFolder, last: Ended) -> Iterator[str]:
    """Where the model is, how to talk to it, and how to go on."""
    named = last.folder.replace("\\", "/").endswith(f"/models/{run.name}")
    yield f"the model is in {last.folder}"
    yield f"talk to it: tinychat -m {run.name if named else last.folder}"
    if last.reason == "stopped":
        yield f"go on with it: tinychat train --resume {run.name}"


def _writer(file: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        file.write(harmless(line) + "\n")
        file.flush()

    return write
