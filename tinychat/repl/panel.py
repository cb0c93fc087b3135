"""What the dashboard of a training run looks like."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from tinychat.repl.plot import LABEL, MARK, plot
from tinychat.repl.terminal import SEPARATOR, packed
from tinychat.repl.watching import Progress
from tinychat.textutil import duration, escape_controls, percent
from tinychat.train.event_log import smoothed

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
