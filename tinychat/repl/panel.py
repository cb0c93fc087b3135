"""What the dashboard of a training run looks like."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from tinychat.repl.plot import MARK, plot
from tinychat.repl.toolbar import SEPARATOR
from tinychat.repl.watching import Progress, duration
from tinychat.text.harmless import harmless

KEYS = "b background · s sample now · q stop and keep"
WIDEST = 120
LEAST_FOR_TWO = 64
"""columns from which the curve and the sample stand side by side"""
TALLEST, SHORTEST = 12, 4
"""lines of curve and sample"""
FURNITURE = 6
"""lines of the screen that are not theirs: figures above and below, and the text before"""


def panel(console: Console, progress: Progress, height: int, said: str = "") -> RenderableType:
    """The figures, the curve and the newest sample, and a last line.

    Args:
        console: that it will be drawn by, narrower than the screen by a column, so that no line is full.
        progress: what is known of the run.
        height: rows of the screen.
        said: the last line; the keys where it is empty.
    """
    width = min(console.width, WIDEST)
    parts: list[RenderableType] = []
    if progress.stepped is None:
        parts.append(_waiting(progress))
    else:
        parts += [_bar(progress, width), _figures(progress, width)]
        parts += _pictures(console, progress, width, min(TALLEST, height - FURNITURE))
    parts.append(_line(said or KEYS, "dim"))
    return Group(*parts)


def _line(text: str, style: str = "") -> Text:
    return Text(harmless(text), style=style, no_wrap=True, overflow="ellipsis")


def _waiting(progress: Progress) -> Text:
    return _line("reading the text, starting torch…" if progress.planned is None else "first steps…")


def _bar(progress: Progress, width: int) -> RenderableType:
    """`step 1,480/4,000 ━━━━━━━╺━━━━━━━ 37 % · 1:02 left`."""
    step = progress.stepped
    assert step is not None
    grid = Grid.grid(padding=(0, 1, 0, 0), expand=True)
    grid.width = width
    for ratio in (None, 1, None):
        grid.add_column(no_wrap=True, ratio=ratio)
    done = min(1.0, max(0.0, step.progress))
    grid.add_row(
        f"step {step.step:,}/{step.steps:,}",
        ProgressBar(total=1.0, completed=done),
        f"{100 * done:.0f} % · {duration(step.remaining)} left",
    )
    return grid


def _figures(progress: Progress, width: int) -> Text:
    """As many as there is room for, the most telling first."""
    step, evaluated = progress.stepped, progress.evaluated
    assert step is not None
    words = [f"loss {step.loss:.2f}"]
    if evaluated is not None:
        words += [f"{evaluated.split} {evaluated.loss:.2f}", f"perplexity {evaluated.perplexity:.1f}"]
        words.append(f"{evaluated.bits_per_character:.2f} bits/char")
    words.append(f"{step.tokens_per_second:,.0f} tok/s")
    while len(words) > 1 and len(SEPARATOR.join(words)) > width:
        words.pop()
    return _line(SEPARATOR.join(words))


def _pictures(console: Console, progress: Progress, width: int, height: int) -> list[RenderableType]:
    """The curve and the sample, side by side where there is room; else the sample gives way."""
    if height < SHORTEST:
        return []
    both = width >= LEAST_FOR_TWO and progress.sampled is not None
    half = (width - 2) // 2 if both else width
    curve = _curve(progress, half, height)
    if not both:
        return list(curve)
    if not curve:
        return list(_sample(console, progress, width, height))
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=half)
    grid.add_column(width=width - half - 2)
    grid.add_row(Group(*curve), Group(*_sample(console, progress, width - half - 2, height)))
    return [grid]


def _curve(progress: Progress, width: int, height: int) -> Sequence[Text]:
    if len(progress.losses) < 3:
        return []
    lines = plot(progress.losses, width, height - 1, progress.evaluations)
    split = progress.evaluated.split if progress.evaluated else ""
    title = "loss" + (f" · {MARK} {split}" if split else "")
    return [_line(title, "dim"), *(_line(line, "cyan") for line in lines)] if lines else []


def _sample(console: Console, progress: Progress, width: int, height: int) -> Sequence[Text]:
    sampled = progress.sampled
    assert sampled is not None
    text = Text(harmless(sampled.prompt + sampled.text).strip("\n").expandtabs(4))
    lines = list(text.wrap(console, width))[: height - 1]
    return [_line(f"sample at step {sampled.step:,}", "dim"), *lines]
