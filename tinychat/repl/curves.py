"""Loss curves: drawn on the terminal, told in a legend, or written as a picture."""

from pathlib import Path

from tinychat.atomic import atomic_write
from tinychat.commands.results import LossCurve, Plot
from tinychat.repl.plot import Series, Span, plot_all
from tinychat.repl.terminal import BLUE, CYAN, DIM, GREEN, MAGENTA, RED, SEPARATOR, YELLOW, Terminal, fit
from tinychat.train.event_log import smoothed

COLOURS = (CYAN, YELLOW, GREEN, MAGENTA, RED, BLUE)
MARKS = "◆●▲■✚○"
DASHES = ((1, 0), (4, 4), (1, 3), (6, 2), (2, 2), (2, 6))
"""how curves are told apart where there is no colour"""
SAMPLE = 8
"""columns of dots that the legend shows of a curve"""
LEAST, TALLEST = 6, 30
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
    height = max(LEAST, min(TALLEST, rows - AROUND - len(plot.curves)))
    series = [_series(one, place, width, plain=not terminal.colour) for place, one in enumerate(plot.curves)]
    lines = plot_all(series, width, height)
    terminal.line(fit(f"loss by {plot.unit}, nats per token", width), DIM)
    for line in lines:
        for span in line:
            _write(terminal, span)
        terminal.fresh_line()
    for place, one in enumerate(plot.curves):
        sample = plot_all([Series([(0, 1), (SAMPLE, 1)], dash=series[place].dash)], 6 + SAMPLE // 2, 2)[0][1].text
        _write(terminal, Span(f"{sample:{SAMPLE // 2}} {MARKS[place]}", place))
        terminal.write(fit(f" {legend(one)}", width - SAMPLE // 2 - 2))
        terminal.fresh_line()


def legend(curve: LossCurve) -> str:
    """`novel · train 1.304 · val 1.375, best 1.371 at 240`: the last losses, and the lowest where it is lower."""
    words = [curve.name, f"train {smoothed(curve.training)[-1][1]:.3f}"]
    if curve.validation:
        (_, last), (place, best) = curve.validation[-1], min(curve.validation, key=lambda point: (point[1], point[0]))
        better = f", best {best:.3f} at {place:,.4g}" if best < last else ""
        words.append(f"{curve.split} {last:.3f}{better}")
    return SEPARATOR.join(words)


def write_picture(plot: Plot, path: Path) -> None:
    """Writes them as a picture, in the form that the file's ending says.

    Raises:
        OSError: it cannot be written there.
    """
    from tinychat.repl.figure import figure
    from tinychat.repl.pictures import PICTURES

    atomic_write(path, PICTURES[path.suffix.lower()](figure(plot, [legend(one) for one in plot.curves])))


def _series(curve: LossCurve, place: int, width: int, *, plain: bool) -> Series:
    stride = max(1, -(-len(curve.validation) * APART // width))
    marked = curve.validation[::-stride][::-1]  # the last one stays
    return Series(smoothed(curve.training), marked, MARKS[place], DASHES[place if plain else 0])


def _write(terminal: Terminal, span: Span) -> None:
    terminal.write(span.text, DIM if span.series is None else COLOURS[span.series])
