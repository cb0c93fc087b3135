"""`/plot`: the loss curves of runs and models."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from tinychat.commands.registry import Command, Suggestion, command, complete_paths, split_flags
from tinychat.commands.results import LossCurve, Plot, Result
from tinychat.errors import ModelError, RunError, UsageError
from tinychat.events import Evaluated, Stepped
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, find_model, list_models, read_info, read_training
from tinychat.store.runs import RunFolder, list_runs
from tinychat.train.event_log import Curves

UNITS = {"steps": "of training", "minutes": "of training: tells which is the quicker"}
SUFFIXES = (".svg", ".png")
MAX_CURVES = 6
"""Number of curves whose colours can be told apart."""

Points = list[tuple[float, float]]
"""(step, loss) or (step, seconds)"""


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    previous = words[-2] if len(words) > 1 else ""
    if previous == "--out":
        yield from complete_paths(session, words[-1:])
    elif previous == "--by":
        yield from (Suggestion(unit, about) for unit, about in UNITS.items())
    elif words[-1].startswith("-"):
        yield Suggestion("--by", "steps or minutes")
        yield Suggestion("--out", "a picture: .svg or .png")
    else:
        kinds = {run.name: "at work" if run.is_running() else "run" for run in list_runs()}
        for info in list_models():
            kinds.setdefault(info.name, "model")
        yield from (Suggestion(name, kind) for name, kind in kinds.items() if name not in words[:-1])


@command(
    "plot", "training", "loss curves", usage="[RUN…] [--by steps|minutes] [--out FILE]",
    example="/plot one two --out curves.svg", complete=_complete,
)  # fmt: skip
def plot(session: Session, text: str) -> Result:
    """Plot the training and validation loss of runs in one diagram; `--out` writes it as `.svg` or `.png`.

    RUN is the name of a run or a model; the default is the newest active run, else that of the open model, else the
    newest. Losses are in nats per token, training losses smoothed; they compare only between runs with the same
    tokenizer.
    """
    names, by, out = _parse(text)
    curves = tuple(_find_curve(name, by) for name in names) or (_default_curve(session, by),)
    return Plot(curves, by, out)


def _parse(text: str) -> tuple[list[str], str, Path | None]:
    """Return the names without duplicates, the unit, and the file to write."""
    words, typed = split_flags(text)
    flags = {"by": "steps", "out": ""}
    for name, value in typed:
        if name not in flags:
            raise UsageError(f"/plot has no --{name}", "it has --by and --out: see /help plot")
        if not value:
            raise UsageError(f"--{name} needs a value", "for example `/plot --by minutes --out curves.svg`")
        flags[name] = value
    names = list(dict.fromkeys(words))
    if len(names) > MAX_CURVES:
        raise UsageError(f"/plot takes up to {MAX_CURVES} runs, not {len(names)}", "plot some of them")
    if flags["by"] not in UNITS:
        raise UsageError(f"--by takes {' or '.join(UNITS)}, not {flags['by']!r}")
    return names, flags["by"], _new_file(flags["out"]) if flags["out"] else None


def _new_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path} has no ending that says what to write", "one of " + " ".join(SUFFIXES))
    if path.exists():
        raise UsageError(f"{path} exists already", "choose another name, or remove it first")
    return path


def _find_curve(name: str, by: str) -> LossCurve:
    """Return the curve of a run or, if there is none of that name, of a model."""
    runs = {run.name: run for run in list_runs()}
    if name in runs:
        return _of_run(runs[name], by)
    try:
        folder = find_model(name)
    except ModelError:
        near = difflib.get_close_matches(name, runs, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"runs: {', '.join(runs) or 'none yet'}"
        raise RunError(f"there is no run or model {name!r}", remedy) from None
    return _of_model(read_info(folder), by)


def _default_curve(session: Session, by: str) -> LossCurve:
    runs = list_runs()
    if at_work := next((run for run in runs if run.is_running()), None):
        return _of_run(at_work, by)
    if session.info is not None:
        training = read_training(session.info.folder)
        if own := next((run for run in runs if run.name == training.get("run")), None):
            return _of_run(own, by)
        if training.get("curve"):
            return _of_model(session.info, by)
    if not runs:
        raise RunError("there is no run to plot", "`/train TEXT` begins one")
    return _of_run(runs[0], by)


def _of_run(run: RunFolder, by: str) -> LossCurve:
    """Return the curve recorded in the events of a run."""
    curves, times, split = Curves(), [(0.0, 0.0)], "val"
    for event in run.events():
        curves.update(event)
        if isinstance(event, Stepped):
            while times[-1][0] >= event.step:  # the run resumed from an earlier step
                times.pop()
            times.append((event.step, event.seconds))
        elif isinstance(event, Evaluated):
            split = event.split
    if not curves.training:
        raise RunError(f"the run {run.name!r} has no losses yet", "try again in a moment")
    return _curve(run.name, curves.training, curves.validation, split, by, times)


def _of_model(info: ModelInfo, by: str) -> LossCurve:
    """Return the thinned-out curve stored with a model, spreading its training time evenly over the steps."""
    training = read_training(info.folder)
    curve = training.get("curve") or {}
    losses, evaluations = ([(x, y) for x, y in curve.get(part, [])] for part in ("training", "validation"))
    if not losses:
        raise RunError(f"the model {info.name!r} carries no loss curve", "models that `/train` makes have one")
    times = [(0.0, 0.0), (losses[-1][0], float(training.get("seconds", 0.0)))]
    return _curve(info.name, losses, evaluations, training.get("split", "val"), by, times)


def _curve(name: str, training: Points, validation: Points, split: str, by: str, times: Points) -> LossCurve:
    """Return a curve by steps or by minutes, interpolated from `times` as (step, seconds)."""

    def rescale(points: Points) -> tuple[tuple[float, float], ...]:
        points = sorted(dict(points).items())  # the final evaluation may repeat an earlier step
        if by == "steps":
            return tuple(points)
        import numpy as np

        steps, seconds = zip(*times, strict=True)
        minutes = np.interp([step for step, _ in points], steps, seconds) / 60
        return tuple((float(minute), loss) for minute, (_, loss) in zip(minutes, points, strict=True))

    return LossCurve(name, rescale(training), rescale(validation), split)


COMMANDS: tuple[Command, ...] = (plot,)
