"""The view of a training run, which is followed by the events in its folder.

`write_lines` writes the events as plain lines or JSON; `Dashboard` draws them in place and handles keys.
"""

import dataclasses
import re
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from tinychat.errors import Interrupted, describe_os_error
from tinychat.events import Ended, Evaluated, Event, Failed, Noticed, Planned, Sampled, Stepped, to_json
from tinychat.repl.keys import (
    CURSOR,
    Keyboard,
    LineEditor,
    TypeAhead,
    counted_interrupts,
    is_printable,
    show_on_one_line,
)
from tinychat.repl.render.palette import DIM
from tinychat.repl.render.plot import LABEL_WIDTH, MARK, plot
from tinychat.repl.render.terminal import SEPARATOR, Region, Styled, Terminal, wrap_items
from tinychat.store.runs import POLL_INTERVAL, RunFolder, follow
from tinychat.textutil import duration, escape_controls, percent
from tinychat.train.event_log import Progress, smoothed
from tinychat.train.report import format_samples, report

LINE_INTERVAL = 10.0
"""Seconds between two lines of progress."""
MIN_TRAINING_SECONDS = 1.0
"""Seconds of training before the first line of progress, so that its speed is representative."""
REPORT_LABEL_WIDTH = 10
"""Columns of the labels in the final report."""
MAX_SAMPLE_LINES, SAMPLE_WIDTH = 4, 100
"""Maximum number of lines of a sample in the final report, and their width in a file."""
STOPPING = "stopping after this step; all is kept"
STOP_QUESTION = "stop and keep the model? y/n"
TOO_SOON = ("left before the trainer had stopped", "it stops by itself and keeps what it has")

Process = subprocess.Popen[bytes]
RunOutcome = Ended | Failed | None
"""The last event of a run; None if the run continues in the background."""


# --- a run in plain lines ---


def write_lines(
    run: RunFolder,
    process: Process | None,
    write: Callable[[str], None],
    handle_keys: Callable[[], bool] | None = None,
    *,
    as_json: bool = False,
) -> RunOutcome:
    """Write a run as lines: the plan, the progress every ten seconds, evaluations and the end; or all events as JSON.

    `handle_keys` handles pressed keys, and returns whether to leave the run in the background; samples are written only
    if there are keys.

    Raises:
        Interrupted: If Ctrl-C comes a second time before the trainer has stopped.
    """
    next_line_at, stopping = 0.0, False
    outcome: RunOutcome = None
    progress = Progress()
    with counted_interrupts() as interrupts:
        for event in follow(run, process):
            if interrupts.count > 1:
                raise Interrupted(*TOO_SOON)
            if interrupts.count and not stopping:
                stopping = True
                problem = _ask(run, "stop")
                if problem or not as_json:
                    write(problem or STOPPING)
            if event is None:
                if handle_keys is not None and handle_keys():
                    return None
                time.sleep(POLL_INTERVAL)
                continue
            if isinstance(event, Ended | Failed):
                outcome = event
            if as_json:
                write(to_json(event))
                continue
            overfitted_before = progress.overfits_since is not None
            progress.update(event)
            if isinstance(event, Stepped):
                if event.seconds < MIN_TRAINING_SECONDS or time.monotonic() < next_line_at:
                    continue
                next_line_at = time.monotonic() + LINE_INTERVAL
                event = dataclasses.replace(event, loss=progress.loss)
            for line in describe(event):
                write(line)
            if isinstance(event, Sampled) and handle_keys is not None:
                separator = "" if event.is_continuation else " → "
                write(f"sample at step {event.step:,}: {event.prompt}{separator}{event.text}")
            if progress.overfits_since is not None and not overfitted_before:
                write(f"overfits since step {progress.overfits_since:,}: val loss rises, train loss falls")
    return outcome


def _ask(run: RunFolder, command: str, **arguments: object) -> str:
    """Send a command to the trainer; return why it cannot be sent, as when the disk is full, or an empty text."""
    try:
        run.send(command, **arguments)
    except OSError as error:
        return f"the trainer cannot be sent {command!r}: {describe_os_error(error)}"
    return ""


def describe(event: Event) -> Iterator[str]:
    """Yield the plain lines of an event; none for events that do not concern a user."""
    match event:
        case Planned():
            yield from event.lines
        case Noticed():
            yield event.text
        case Stepped():
            step = f"step {event.step:,}/{event.steps:,} · {percent(event.progress, 0)} · loss {event.loss:.3f}"
            yield f"{step} · {event.tokens_per_second:,.0f} tok/s · {duration(event.remaining)} left"
        case Evaluated():
            epoch = "" if event.epoch is None else f"epoch {event.epoch:,} · "
            best = " · best so far" if event.best else ""
            over = f" · over {event.tokens:,} tokens" if event.is_part else ""
            yield f"{epoch}step {event.step:,} · {event.split} loss {_format_evaluation(event)}{over}{best}"
        case Ended():
            yield from final_report(event)


def final_report(ended: Ended, width: int | None = None) -> Iterator[str]:
    """Yield the lines that sum up a run; `width` is that of the screen, and None means the lines of a file."""
    how = "done" if ended.reason == "done" else "stopped"
    over = f" · over all {ended.tokens:,} tokens" if ended.tokens else ""
    loss = f"loss {_format_evaluation(ended)}{over}"
    result = f"{how} at step {ended.step:,} after {duration(ended.seconds)} · {loss}"
    yield from textwrap.wrap(result, width - 1) if width else [result]
    for label, text in report(ended):
        yield from _labelled(label, textwrap.wrap(text, width - REPORT_LABEL_WIDTH - 1) if width else [text])
    for number, sample in enumerate(format_samples(ended), 1):
        lines = [
            part
            for line in sample.expandtabs(4).splitlines()
            for part in textwrap.wrap(line, (width or SAMPLE_WIDTH) - REPORT_LABEL_WIDTH - 3)  # room for …
        ]
        if len(lines) > MAX_SAMPLE_LINES:
            lines = [*lines[: MAX_SAMPLE_LINES - 1], lines[MAX_SAMPLE_LINES - 1] + " …"]
        yield from _labelled(f"sample {number}", lines or ["(nothing)"])


def next_steps(run: RunFolder, ended: Ended) -> Iterator[str]:
    """Yield the lines that say where the model is, how to chat with it, and how to resume a stopped run."""
    has_name = ended.folder.replace("\\", "/").endswith(f"/models/{run.name}")
    yield f"the model is in {ended.folder}"
    yield f"talk to it: tinychat -m {run.typed_name if has_name else ended.folder}"
    if ended.reason == "stopped":
        yield f"go on with it: tinychat train --resume {run.typed_name}"


def _format_evaluation(result: Evaluated | Ended) -> str:
    """Return the metrics: `1.7104 · perplexity 5.53 · 2.467 bits/char · accuracy 49.1 %`."""
    metrics = f"{result.loss:.4f} · perplexity {result.perplexity:.2f} · {result.bits_per_character:.3f} bits/char"
    return metrics if result.accuracy is None else f"{metrics} · accuracy {percent(result.accuracy)}"


def _labelled(label: str, lines: list[str]) -> Iterator[str]:
    """Yield the lines indented, the first one behind the label."""
    for line in lines:
        yield f"{label:<{REPORT_LABEL_WIDTH}}{line}"
        label = ""


# --- the dashboard ---

KEYS = ("b background", "s sample now", "p prompt", "e evaluate now", "q stop and keep")
EDITING_KEYS = ("Enter sets it and samples", "Esc leaves it", "Ctrl-J new line", "↑ the present one")
PLAIN_KEYS = "keys: b background, s sample now, e evaluate now, q stop and keep"
LETTERS, PLAIN_LETTERS = "bspeq", "bseq"
"""The keys among letters; others begin a line for the prompt."""
TYPING_KEYS = ("Enter keeps it for the prompt", "Esc forgets it")
KEPT = "kept for the prompt; b leaves the run for it"
SAMPLE_PENDING = "a sample comes after this step"
EVALUATION_PENDING = "an evaluation comes after this step"
FINISHING = "measuring the model and saving it…"
PROMPT = "prompt for samples: "

REDRAW_INTERVAL = 0.25
"""Seconds between two drawings, unless an event or a key must show at once."""
PLAN_INDENT = " " * 7
"""Indent of wrapped lines of the plan: the length of their first words."""
MAX_PANEL_WIDTH = 160
MIN_TWO_COLUMN_WIDTH = 72
"""Width from which the curve and the samples stand side by side."""
MIN_CHART_HEIGHT, MAX_CHART_HEIGHT = 4, 30
"""Number of lines of the curve and the samples."""
LOSS_STYLES = {"loss": "cyan", "val": "bold yellow"}
"""Styles of the training and the validation loss."""
TITLE = "bold default"
METRIC_WORDS = re.compile(r"·|(?<![\d.,])\b[A-Za-z][A-Za-z/ ]*")
FRAME = 4
"""Cells that a frame takes from the width of its content."""
SAMPLE_HEIGHT = 6
"""Number of lines of the samples below the curve."""
ROOMY_HEIGHT = 16
"""Height of a screen from which all metrics are shown, with the plan above them."""


class Dashboard:
    """Draws a run in place and handles keys; a dumb terminal gets plain lines.

    If there is a `prompt_mark`, a prompt follows: what is typed for it is kept, and its letters do not act as keys.
    """

    def __init__(
        self,
        terminal: Terminal,
        keyboard: Keyboard,
        clock: Callable[[], float] = time.monotonic,
        *,
        prompt_mark: str = "",
    ) -> None:
        self._terminal, self._keyboard, self._clock = terminal, keyboard, clock
        self._prompt_mark, self._typed = prompt_mark, TypeAhead()
        self._letters = PLAIN_LETTERS if terminal.dumb else LETTERS
        self._region = Region(terminal)
        self._progress, self._message = Progress(), ""
        self._editor: LineEditor | None = None
        self._drawn_at = -REDRAW_INTERVAL
        self._is_stopping = False

    def show(self, run: RunFolder, process: Process | None = None) -> RunOutcome:
        """Show a run until it ends or is left in the background.

        Raises:
            Interrupted: If Ctrl-C comes a second time before the trainer has stopped.
        """
        try:
            with self._keyboard.live(is_early_for_prompt=bool(self._prompt_mark)):
                self._terminal.set_bracketed_paste(True)
                if self._prompt_mark:  # it was typed before the keys were known
                    for key in self._keyboard.read():
                        self._type(key)
                outcome = (self._show_lines if self._terminal.dumb else self._show_panel)(run, process)
        finally:
            self._terminal.set_bracketed_paste(False)
            self._keyboard.push_typeahead(self._typed.lines + self._typed.line)
        if isinstance(outcome, Ended) and not self._terminal.dumb:
            for line in final_report(outcome, self._terminal.width):
                self._terminal.line(line)
        return outcome

    def _show_panel(self, run: RunFolder, process: Process | None) -> RunOutcome:
        outcome: RunOutcome = None
        with counted_interrupts() as interrupts:
            try:
                for event in follow(run, process):
                    if isinstance(event, Ended | Failed):
                        outcome = event
                    elif event is not None:
                        self._update(event)
                    else:
                        if self._clock() - self._drawn_at >= REDRAW_INTERVAL:
                            self._drawn_at = self._clock()
                            self._region.draw(self._lines())
                        keys = self._keyboard.read(POLL_INTERVAL) + [KeyPress(Keys.ControlC)] * interrupts.count
                        interrupts.count = 0
                        if any([self._press(key, run) for key in keys]):  # noqa: C419 - handle all keys
                            break
            finally:
                self._close()
        return outcome

    def _show_lines(self, run: RunFolder, process: Process | None) -> RunOutcome:
        """Show the run in plain lines, with one more line for each key."""
        self._terminal.line(PLAIN_KEYS)

        def handle_keys() -> bool:
            for key in self._keyboard.read():
                before = self._message
                if self._press(key, run):
                    return True
                if self._message and (self._message != before or self._is_command(key)):
                    self._terminal.line(self._message)
            return False

        return write_lines(run, process, self._terminal.line, handle_keys)

    def _update(self, event: Event) -> None:
        """Record an event; the plan and notices are written above the panel."""
        self._progress.update(event)
        if (isinstance(event, Sampled | Noticed) and self._message == SAMPLE_PENDING) or (
            isinstance(event, Evaluated) and self._message == EVALUATION_PENDING
        ):
            self._message = ""
        if isinstance(event, Planned | Noticed):
            self._region.erase()
            for line in describe(event):
                for part in textwrap.wrap(line, self._terminal.width - 1, subsequent_indent=PLAN_INDENT):
                    self._terminal.line(part, DIM)
            self._drawn_at = -REDRAW_INTERVAL

    def _press(self, key: KeyPress, run: RunFolder) -> bool:
        """Handle a key, and return whether to leave the run in the background."""
        self._drawn_at = -REDRAW_INTERVAL
        if key.key is Keys.ControlZ:
            if not self._terminal.dumb:
                self._region.erase()
            self._keyboard.suspend()
            return False
        if self._editor is not None:
            self._edit(self._editor, key, run)
            return False
        if self._message == STOP_QUESTION:
            self._message = ""
            if key.key in ("y", "q"):
                key = KeyPress(Keys.ControlC)
            elif key.key == "n":
                return False
            elif is_printable(key) and not self._is_command(key):  # a line that begins with the letter, such as `quit`
                self._type(KeyPress("q"))
        if not self._is_command(key):
            self._type(key)
            return False
        match key.key:
            case "b":
                return self._send(run, "background")
            case "s":
                self._send(run, "sample", SAMPLE_PENDING)
            case "e":
                self._send(run, "evaluate", EVALUATION_PENDING)
            case "p":
                samples = self._progress.samples
                self._editor = LineEditor(samples[-1].prompt if samples else "")
            case "q" if self._message != STOPPING:
                self._message = STOP_QUESTION
            case Keys.ControlC:
                if self._is_stopping:
                    raise Interrupted(*TOO_SOON)
                self._is_stopping = True
                self._send(run, "stop", STOPPING)
        return False

    def _send(self, run: RunFolder, command: str, message: str = "", **arguments: object) -> bool:
        """Send a command to the trainer and show a message, or why it cannot be sent; return whether it was."""
        problem = _ask(run, command, **arguments)
        self._message = problem or message
        return not problem

    def _is_command(self, key: KeyPress) -> bool:
        """Return whether a key acts on the run; others are typed for the prompt."""
        return key.key is Keys.ControlC or (key.key in self._letters and not self._typed.line)

    def _type(self, key: KeyPress) -> None:
        """Type a key for the prompt, if there will be one."""
        if not self._prompt_mark:
            return
        has_line = bool(self._typed.line)
        if key.key is Keys.Escape:
            self._typed.line.clear()
        else:
            self._typed.press(key)
        if has_line and key.key is Keys.ControlM and self._message != STOPPING:
            self._message = KEPT

    def _edit(self, editor: LineEditor, key: KeyPress, run: RunFolder) -> None:
        """Handle a key while the prompt for samples is typed."""
        if key.key is Keys.ControlM:
            self._send(run, "sample", SAMPLE_PENDING, prompt=editor.text)
        if key.key in (Keys.ControlM, Keys.Escape, Keys.ControlC):
            self._editor = None
        else:
            editor.press(key)

    def _lines(self, live: bool = True) -> list[Styled]:
        """Return the lines of the panel; without messages and keys if it is not live."""
        columns, rows = self._terminal.size()
        step = self._progress.stepped
        message = (self._message or (FINISHING if step and step.remaining < 1 else "")) if live else ""
        keys: tuple[str, ...] = KEYS if live else ()
        if self._editor is not None:
            message, keys = PROMPT + self._editor.view(columns - 1 - len(PROMPT)), EDITING_KEYS
        elif live and self._typed.line:
            message, keys = self._prompt_mark + show_on_one_line(self._typed.text) + CURSOR, TYPING_KEYS
        drawing = panel(self._terminal.console(columns - 1), self._progress, rows, message, keys)
        return self._terminal.render_lines(drawing, columns - 1)[: rows - 1]

    def _close(self) -> None:
        """Leave the last panel on screen, without the keys."""
        self._editor = None
        if self._progress.stepped is not None:
            self._region.leave(self._lines(live=False))
        else:
            self._region.erase()


def panel(
    console: Console, progress: Progress, height: int, message: str = "", keys: Sequence[str] = KEYS
) -> RenderableType:
    """Return the drawing of a run: progress bar, metrics, a message, loss curve, newest samples and keys.

    The console is narrower than the screen of `height` rows by a column, so that no line is full. A message takes the
    place of the warning of overfitting; the keys are packed together as the width allows.
    """
    width = min(console.width, MAX_PANEL_WIDTH)
    key_lines = [_key_line(line) for line in wrap_items(keys, width)][: max(1, height // 3)]
    if progress.stepped is None:
        phase = "first steps…" if progress.planned else "reading the text, starting torch…"
        return Group(_line(message or phase), *key_lines)
    metrics = list(wrap_items(_metrics(progress), width))[: 3 if height >= ROOMY_HEIGHT else 1]
    since = progress.overfits_since
    warning = (
        [] if since is None else [f"overfits since step {since:,}", "val rises, train falls", "its weights are kept"]
    )
    messages = [message] if message else list(wrap_items(warning, width))
    # A roomy screen keeps a line free for messages, so that nothing moves.
    message_lines = [_line(line, "yellow") for line in messages or [""] * (height >= ROOMY_HEIGHT)]
    above = [_progress_bar(progress, width), *map(_metric_line, metrics), *message_lines]
    available = height - 1 - len(above) - len(key_lines)
    chart_height = min(MAX_CHART_HEIGHT, available, max(MIN_CHART_HEIGHT, height * 3 // 5))
    return Group(*above, *_charts(console, progress, width, chart_height), *key_lines)


def _line(text: str, style: str = "") -> Text:
    return Text(escape_controls(text), style=style, no_wrap=True, overflow="ellipsis")


def _key_line(text: str) -> Text:
    """Return keys and what they do, with the keys standing out."""
    line = _line("")
    for index, item in enumerate(text.split(SEPARATOR)):
        key, _, rest = item.partition(" ")
        line.append(SEPARATOR * (index > 0), "dim").append(key, "bold cyan").append(f" {rest}", "dim")
    return line


def _metric_line(text: str) -> Text:
    """Return metrics with dim words, and the losses in the colours of their curves."""
    line = _line(text)
    line.highlight_regex(METRIC_WORDS, "dim")
    for name, style in LOSS_STYLES.items():
        if (found := re.search(rf"\b{name} ([\d.]+)", text)) is not None:
            line.stylize(style, *found.span(1))
    return line


def _progress_bar(progress: Progress, width: int) -> RenderableType:
    """Return `step 1,480/4,000 ━━━━━━━╺━━━━━━━ 37 % · 1:02 left`, after the epoch if the run is measured in epochs."""
    step = progress.stepped
    assert step is not None
    epochs = progress.planned.epochs if progress.planned else None
    epoch = "" if epochs is None else f"epoch {step.progress * epochs:,.1f}/{epochs:,g}{SEPARATOR}"
    grid = Grid.grid(padding=(0, 1, 0, 0), expand=True)
    grid.width = width
    for ratio in (None, 1, None):
        grid.add_column(no_wrap=True, ratio=ratio)
    done = min(1.0, max(0.0, step.progress))
    bar = ProgressBar(total=1.0, completed=done, style="bright_black", complete_style="cyan", finished_style="green")
    left = Text.assemble((percent(done, 0), "bold"), (f"{SEPARATOR}{duration(step.remaining)} left", "dim"))
    grid.add_row(_metric_line(f"{epoch}step {step.step:,}/{step.steps:,}"), bar, left)
    return grid


def _metrics(progress: Progress) -> list[str]:
    """Return the metrics, the most important ones first."""
    step, evaluated = progress.stepped, progress.evaluated
    assert step is not None
    metrics = [f"loss {progress.loss:.2f}"]
    if evaluated is not None:
        lowest = min(loss for _, loss in progress.curves.validation)
        best = f" (best {lowest:.2f})" if lowest < evaluated.loss else ""
        split = f"part of {evaluated.split}" if evaluated.is_part else evaluated.split
        metrics += [f"{split} {evaluated.loss:.2f}{best}", f"perplexity {evaluated.perplexity:.1f}"]
        metrics.append(f"{evaluated.bits_per_character:.2f} bits/char")
        if evaluated.accuracy is not None:
            metrics.append(f"accuracy {percent(evaluated.accuracy)}")
    metrics += [f"{step.tokens_per_second:,.0f} tok/s", f"learning rate {step.learning_rate:.2g}"]
    metrics.append(f"gradient norm {step.gradient_norm:.2g}")
    if step.memory:
        metrics.append(f"memory {step.memory / 1e6:,.0f} MB")
    return metrics


def _charts(console: Console, progress: Progress, width: int, height: int) -> list[RenderableType]:
    """Return the curve and the samples, side by side or one above the other; only the curve if there is no room."""
    if height < MIN_CHART_HEIGHT:
        return []
    if not progress.samples:
        curve = _curve(progress, width - FRAME, height - 1)
        return [_frame(curve, width, height)] if curve else []
    if width >= MIN_TWO_COLUMN_WIDTH:
        half = width // 2
        curve = _curve(progress, half - FRAME, height - 1)
        if not curve:
            return [_frame(_samples(console, progress, width - FRAME, height - 1), width, height)]
        grid = Grid.grid()
        grid.add_column(width=half)
        grid.add_column(width=width - half)
        samples = _samples(console, progress, width - half - FRAME, height - 1)
        grid.add_row(_frame(curve, half, height), _frame(samples, width - half, height))
        return [grid]
    below = SAMPLE_HEIGHT if height >= 2 * SAMPLE_HEIGHT else 0
    curve = _curve(progress, width - FRAME, height - below - 1)
    frames: list[RenderableType] = [_frame(curve, width, height - below)] if curve else []
    if below or not curve:
        rest = below if curve else height
        frames.append(_frame(_samples(console, progress, width - FRAME, rest - 1), width, rest))
    return frames


def _frame(lines: Sequence[Text], width: int, height: int) -> RenderableType:
    """Return lines in a frame with the first one as its title."""
    title, *content = lines
    inside = Group(*content)
    return Panel(inside, title=title, title_align="left", border_style="bright_black", width=width, height=height)


def _curve(progress: Progress, width: int, height: int) -> Sequence[Text]:
    if len(progress.curves.training) < 3:
        return []
    lines = list(map(_line, plot(smoothed(progress.curves.training), width, height - 1, progress.curves.validation)))
    for line in lines:
        line.stylize("dim", 0, LABEL_WIDTH if line is not lines[-1] else None)
    for line in lines[:-1]:
        line.stylize(LOSS_STYLES["loss"], LABEL_WIDTH)
        line.highlight_words([MARK], LOSS_STYLES["val"])
    evaluated = progress.evaluated
    title = Text.assemble(("loss by step", TITLE), (SEPARATOR, "dim"), ("⠒⠒", LOSS_STYLES["loss"]), (" train", "dim"))
    if evaluated and evaluated.split:
        split = f" {'part of ' * evaluated.is_part}{evaluated.split}"
        title.append_text(Text.assemble((SEPARATOR, "dim"), (MARK, LOSS_STYLES["val"]), (split, "dim")))
    return [title, *lines] if lines else []


def _samples(console: Console, progress: Progress, width: int, height: int) -> Sequence[Text]:
    """Return the samples, each cut to an equal number of lines."""
    samples = progress.samples
    lines_each = max(1, (height - 1) // len(samples))
    lines: list[Text] = []
    for sample in samples:
        separator = "" if sample.is_continuation and len(samples) == 1 else " → "
        prompt = escape_controls((sample.prompt + separator).lstrip("\n")).expandtabs(4)
        text = Text(prompt, "bold")
        text.append(escape_controls(sample.text).rstrip("\n").expandtabs(4), "not bold")
        lines += list(text.wrap(console, width))[:lines_each]
    title = f"sample{'s' * (len(samples) > 1)} at step {samples[-1].step:,}"
    return [_line(title, TITLE), *lines[: height - 1]]
