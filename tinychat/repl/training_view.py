"""Follows a training run by its folder: what has happened so far, and whether it is over.

A training run in plain lines, where there is no dashboard; and the words with which a run ends, anywhere.

What the dashboard of a training run looks like.

A training run on screen: drawn in place, or on a dumb terminal in lines. Keys act on the run.

Loss curves: drawn on the terminal, told in a legend, or written as a picture.
"""

import dataclasses
import math
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from tinychat.atomic import atomic_write
from tinychat.commands.results import LossCurve, Plot
from tinychat.errors import Interrupted
from tinychat.events import Ended, Evaluated, Event, Failed, LineReader, Noticed, Planned, Sampled, Stepped, to_json
from tinychat.repl.keys import Keyboard, counted_interrupts
from tinychat.repl.prompt import LineEditor
from tinychat.repl.render.plot import LABEL, MARK, Series, Span, plot, plot_all
from tinychat.repl.render.terminal import (
    BLUE,
    CYAN,
    DIM,
    GREEN,
    MAGENTA,
    RED,
    SEPARATOR,
    YELLOW,
    Region,
    Terminal,
    fit,
    packed,
)
from tinychat.store.runs import RunFolder
from tinychat.textutil import duration, escape_controls, percent
from tinychat.train.event_log import Curves, recent_loss, smoothed
from tinychat.train.report import report, told_samples

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


# ---- from tinychat.repl.training_view ----


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


# ---- from tinychat.repl.training_view ----


KEYS = ("b background", "s sample now", "p prompt", "e evaluate now", "q stop and keep")
WIDEST = 160
LEAST_FOR_TWO = 72
"""columns from which the curve and the sample stand side by side"""
SHORTEST, TALLEST = 4, 30
"""lines of curve and sample"""
SAMPLE_BELOW = 6
"""lines of a sample under the curve"""
ROOMY = 16
"""rows of a screen from which there is room for all figures, and for the plan above"""


def panel(
    console: Console, progress: Progress, height: int, said: str = "", below: Sequence[str] = KEYS
) -> RenderableType:
    """The figures, what is to be said, the curve and the newest sample, and the keys.

    Args:
        console: that it will be drawn by, narrower than the screen by a column, so that no line is full.
        height: rows of the screen.
        said: said instead of how the run does.
        below: what stands in the last lines, packed together as the width allows.
    """
    width = min(console.width, WIDEST)
    last = [_line(line, "dim") for line in packed(below, width)][: max(1, height // 3)]
    if progress.stepped is None:
        begun = "first steps…" if progress.planned else "reading the text, starting torch…"
        return Group(_line(said or begun), *last)
    figures = list(packed(_figures(progress), width))[: 3 if height >= ROOMY else 1]
    above = [_bar(progress, width), *map(_line, figures)]
    told = [said] if said else list(packed(_judgement(progress), width))
    # Where there is room a line is kept free for it, so that nothing moves.
    above += [_line(line, "yellow") for line in told or [""] * (height >= ROOMY)]
    room = height - 1 - len(above) - len(last)
    return Group(*above, *_pictures(console, progress, width, min(TALLEST, room, max(SHORTEST, height // 2))), *last)


def _line(text: str, style: str = "") -> Text:
    return Text(escape_controls(text), style=style, no_wrap=True, overflow="ellipsis")


def _bar(progress: Progress, width: int) -> RenderableType:
    """`step 1,480/4,000 ━━━━━━━╺━━━━━━━ 37 % · 1:02 left`, with the epoch where their number ends the run."""
    step = progress.stepped
    assert step is not None
    epochs = progress.planned.epochs if progress.planned else None
    epoch = "" if epochs is None else f"epoch {step.progress * epochs:,.1f}/{epochs:,g}{SEPARATOR}"
    grid = Grid.grid(padding=(0, 1, 0, 0), expand=True)
    grid.width = width
    for ratio in (None, 1, None):
        grid.add_column(no_wrap=True, ratio=ratio)
    done = min(1.0, max(0.0, step.progress))
    grid.add_row(
        f"{epoch}step {step.step:,}/{step.steps:,}",
        ProgressBar(total=1.0, completed=done),
        f"{percent(done, 0)} · {duration(step.remaining)} left",
    )
    return grid


def _figures(progress: Progress) -> list[str]:
    """The most telling first."""
    step, evaluated = progress.stepped, progress.evaluated
    assert step is not None
    words = [f"loss {progress.loss:.2f}"]
    if evaluated is not None:
        lowest = min(loss for _, loss in progress.curves.validation)
        best = f" (best {lowest:.2f})" if lowest < evaluated.loss else ""
        words += [f"{evaluated.split} {evaluated.loss:.2f}{best}", f"perplexity {evaluated.perplexity:.1f}"]
        words.append(f"{evaluated.bits_per_character:.2f} bits/char")
        if evaluated.accuracy is not None:
            words.append(f"accuracy {percent(evaluated.accuracy)}")
    words.append(f"{step.tokens_per_second:,.0f} tok/s")
    words.append(f"learning rate {step.learning_rate:.2g}")
    words.append(f"gradient norm {step.gradient_norm:.2g}")
    if step.memory:
        words.append(f"memory {step.memory / 1e6:,.0f} MB")
    return words


def _judgement(progress: Progress) -> list[str]:
    since = progress.overfits_since
    if since is None:
        return []
    return [f"overfits since step {since:,}", "val rises, train falls", "its weights are kept"]


def _pictures(console: Console, progress: Progress, width: int, height: int) -> list[RenderableType]:
    """The curve and the sample, side by side where there is room, or one above the other; else the curve alone."""
    if height < SHORTEST:
        return []
    if not progress.samples:
        return list(_curve(progress, width, height))
    if width >= LEAST_FOR_TWO:
        half = (width - 2) // 2
        curve = _curve(progress, half, height)
        if not curve:
            return list(_sample(console, progress, width, height))
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=half)
        grid.add_column(width=width - half - 2)
        grid.add_row(Group(*curve), Group(*_sample(console, progress, width - half - 2, height)))
        return [grid]
    if height >= 2 * SAMPLE_BELOW:
        above = _curve(progress, width, height - SAMPLE_BELOW)
        return [*above, *_sample(console, progress, width, height - len(above))]
    return list(_curve(progress, width, height)) or list(_sample(console, progress, width, height))


def _curve(progress: Progress, width: int, height: int) -> Sequence[Text]:
    if len(progress.curves.training) < 3:
        return []
    lines = plot(smoothed(progress.curves.training), width, height - 1, progress.curves.validation)
    split = progress.evaluated.split if progress.evaluated else ""
    title = "loss by step · ⠒⠒ train" + (f" · {MARK} {split}" if split else "")
    drawn = [_line(line) for line in lines]
    for line in drawn[:-1]:
        line.stylize("cyan", LABEL)
        line.highlight_words([MARK], "bold yellow")
    return [_line(title, "dim"), *drawn] if drawn else []


def _sample(console: Console, progress: Progress, width: int, height: int) -> Sequence[Text]:
    """The samples, as many lines of each as there is room for."""
    samples = progress.samples
    room = max(1, (height - 1) // len(samples))
    lines: list[Text] = []
    for sampled in samples:
        between = "" if sampled.goes_on and len(samples) == 1 else " → "
        text = Text(escape_controls(sampled.prompt + between + sampled.text).strip("\n").expandtabs(4))
        lines += list(text.wrap(console, width))[:room]
    what = "sample" if len(samples) == 1 else "samples"
    return [_line(f"{what} at step {samples[-1].step:,}", "dim"), *lines[: height - 1]]


# ---- from tinychat.repl.training_view ----


FRAME = 0.25
"""seconds between two drawings of the dashboard, unless something is to be seen at once"""
INDENT = " " * 7
"""before what the lines of a plan go on with; the length of their first words"""
SAMPLING = "a sample comes after this step"
FINISHING = "measuring the model and saving it…"
EVALUATING = "an evaluation comes after this step"
PROMPT = "prompt for samples: "
EDITING_KEYS = ("Enter sets it and samples", "Esc leaves it", "Ctrl-J new line", "↑ the present one")
PLAIN_KEYS, PLAIN_KEYS_OBEYED = "keys: b background, s sample now, e evaluate now, q stop and keep", "bseq"


class Dashboard:
    """Draws a run in place, and obeys keys."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal, self._keyboard, self._clock = terminal, keyboard, clock
        self._region = Region(terminal)
        self._progress = Progress()
        self._said = ""
        self._editor: LineEditor | None = None
        self._drawn_at = -FRAME

    def show(self, run: RunFolder, process: Process | None = None) -> Last:
        """Shows a run until it ends or is left in the background.

        Raises:
            Interrupted: it was told to stop twice, before it had.
        """
        last: Last = None
        if self._terminal.dumb:
            return self._show_lines(run, process)
        with self._keyboard.live(), counted_interrupts() as interrupts:
            try:
                for event in follow(run, process):
                    if isinstance(event, Ended | Failed):
                        last = event
                    elif event is not None:
                        self._update(event)
                    else:
                        if self._clock() - self._drawn_at >= FRAME:
                            self._drawn_at = self._clock()
                            self._region.draw(self._lines())
                        keys = self._keyboard.read(LOOK) + [KeyPress(Keys.ControlC)] * interrupts.count
                        interrupts.count = 0
                        if any([self._press(key, run) for key in keys]):  # noqa: C419 - each is obeyed
                            break
            finally:
                self._close()
        if last is None:
            run.send("background")
        elif isinstance(last, Ended):
            for line in ending(last, self._terminal.width):
                self._terminal.line(line)
        return last

    def _show_lines(self, run: RunFolder, process: Process | None) -> Last:
        """The run in plain lines; what a key does is told in one more."""
        self._terminal.line(PLAIN_KEYS)

        def obey() -> bool:
            for key in self._keyboard.read():
                if key.key in (*PLAIN_KEYS_OBEYED, Keys.ControlC):
                    if self._press(key, run):
                        return True
                    self._terminal.line(self._said)
            return False

        with self._keyboard.live():
            last = write_lines(run, process, self._terminal.line, obey)
        if last is None:
            run.send("background")
        return last

    def _update(self, event: Event) -> None:
        """Notes an event; the plan and notices stay on screen above."""
        self._progress.update(event)
        if (isinstance(event, Sampled | Noticed) and self._said == SAMPLING) or (
            isinstance(event, Evaluated) and self._said == EVALUATING
        ):
            self._said = ""
        lines = event.lines if isinstance(event, Planned) else (event.text,) if isinstance(event, Noticed) else ()
        if lines:
            self._region.wipe()
            for line in lines:
                for part in textwrap.wrap(line, self._terminal.width - 1, subsequent_indent=INDENT):
                    self._terminal.line(part, DIM)
            self._drawn_at = -FRAME

    def _press(self, key: KeyPress, run: RunFolder) -> bool:
        """Does what a key asks for, at once on screen; whether the run is to be left in the background."""
        self._drawn_at = -FRAME
        if self._editor is not None:
            self._edit(self._editor, key, run)
            return False
        match key.key:
            case "b":
                return True
            case "s":
                run.send("sample")
                self._said = SAMPLING
            case "e":
                run.send("evaluate")
                self._said = EVALUATING
            case "p":
                samples = self._progress.samples
                self._editor = LineEditor(samples[-1].prompt if samples else "")
                self._terminal.take_pastes_whole(True)
            case "q" | Keys.ControlC:
                if self._said == STOPPING and key.key is Keys.ControlC:
                    raise Interrupted(*TOO_SOON)
                run.send("stop")
                self._said = STOPPING
        return False

    def _edit(self, editor: LineEditor, key: KeyPress, run: RunFolder) -> None:
        """A key while the prompt for samples is typed."""
        if key.key is Keys.ControlM:
            run.send("sample", prompt=editor.text)
            self._said = SAMPLING
        elif key.key not in (Keys.Escape, Keys.ControlC):
            editor.press(key)
            return
        self._leave_editor()

    def _leave_editor(self) -> None:
        if self._editor is not None:
            self._editor = None
            self._terminal.take_pastes_whole(False)

    def _lines(self, live: bool = True) -> list[str]:
        """The panel as it is now; one that is not live any more has no keys."""

        columns, rows = self._terminal.size()
        step = self._progress.stepped
        said = (self._said or (FINISHING if step and step.remaining < 1 else "")) if live else ""
        keys: tuple[str, ...] = KEYS if live else ()
        if self._editor is not None:
            said, keys = PROMPT + self._editor.view(columns - 1 - len(PROMPT)), EDITING_KEYS
        drawing = panel(self._terminal.console(columns - 1), self._progress, rows, said, keys)
        return self._terminal.render(drawing, columns - 1).splitlines()[: rows - 1]

    def _close(self) -> None:
        """Leaves the last figures on screen, without the keys."""
        self._leave_editor()
        self._region.wipe()
        if self._progress.stepped is not None:
            self._region.draw(self._lines(live=False))
            self._region.leave()


# ---- from tinychat.repl.training_view ----


COLOURS = (CYAN, YELLOW, GREEN, MAGENTA, RED, BLUE)
MARKS = "◆●▲■✚○"
DASHES = ((1, 0), (4, 4), (1, 3), (6, 2), (2, 2), (2, 6))
"""how curves are told apart where there is no colour"""
SAMPLE = 8
"""columns of dots that the legend shows of a curve"""
SHORTEST_PLOT, TALLEST_PLOT = 6, 30
"""lines of a plot"""
AROUND = 8
"""rows that the prompt, its menu and the lines above the plot take"""
APART = 4
"""marks are so many cells apart, at least on average: evaluations may be many"""


def draw_curves(terminal: Terminal, plot: Plot) -> None:
    """Draws them as large as the screen allows, with a legend under them; in plain lines, the legend alone."""
    if terminal.dumb:
        for one in plot.curves:
            terminal.line(legend(one))
        return
    columns, rows = terminal.size()
    width = columns - 1
    height = max(SHORTEST_PLOT, min(TALLEST_PLOT, rows - AROUND - len(plot.curves)))
    series = [_series(one, index, width, plain=not terminal.colour) for index, one in enumerate(plot.curves)]
    lines = plot_all(series, width, height)
    terminal.line(fit(f"loss by {plot.unit}, nats per token", width), DIM)
    for line in lines:
        for span in line:
            _write(terminal, span)
        terminal.fresh_line()
    for index, one in enumerate(plot.curves):
        sample = plot_all([Series([(0, 1), (SAMPLE, 1)], dash=series[index].dash)], 6 + SAMPLE // 2, 2)[0][1].text
        _write(terminal, Span(f"{sample:{SAMPLE // 2}} {MARKS[index]}", index))
        terminal.write(fit(f" {legend(one)}", width - SAMPLE // 2 - 2))
        terminal.fresh_line()


def legend(curve: LossCurve) -> str:
    """`novel · train 1.304 · val 1.375, best 1.371 at 240`: the last losses, and the lowest where it is lower."""
    words = [curve.name, f"train {smoothed(curve.training)[-1][1]:.3f}"]
    if curve.validation:
        (_, last), (index, best) = curve.validation[-1], min(curve.validation, key=lambda point: (point[1], point[0]))
        better = f", best {best:.3f} at {index:,.4g}" if best < last else ""
        words.append(f"{curve.split} {last:.3f}{better}")
    return SEPARATOR.join(words)


def write_picture(plot: Plot, path: Path) -> None:
    """Writes them as a picture, in the form that the file's ending says.

    Raises:
        OSError: it cannot be written there.
    """
    from tinychat.repl.render.picture import PICTURES, figure

    atomic_write(path, PICTURES[path.suffix.lower()](figure(plot, [legend(one) for one in plot.curves])))


def _series(curve: LossCurve, index: int, width: int, *, plain: bool) -> Series:
    stride = max(1, -(-len(curve.validation) * APART // width))
    marked = curve.validation[::-stride][::-1]  # the last one stays
    return Series(smoothed(curve.training), marked, MARKS[index], DASHES[index if plain else 0])


def _write(terminal: Terminal, span: Span) -> None:
    terminal.write(span.text, DIM if span.series is None else COLOURS[span.series])
