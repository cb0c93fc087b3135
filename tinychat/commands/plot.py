"""`/plot`: the loss curves of runs, and of models whose runs are gone."""

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
FORMS = (".svg", ".png")
MOST = 6
"""curves at once: more colours nobody tells apart"""

Points = list[tuple[float, float]]


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    before = words[-2] if len(words) > 1 else ""
    if before == "--out":
        yield from complete_paths(session, words[-1:])
    elif before == "--by":
        yield from (Suggestion(unit, about) for unit, about in UNITS.items())
    elif words[-1].startswith("-"):
        yield Suggestion("--by", "steps or minutes")
        yield Suggestion("--out", "a picture: .svg or .png")
    else:
        runs = [Suggestion(run.name, "at work" if run.is_running() else "run") for run in list_runs()]
        known = {run.text for run in runs}
        models = [Suggestion(info.name, "model") for info in list_models() if info.name not in known]
        yield from (one for one in (*runs, *models) if one.text not in words[:-1])


@command(
    "plot", "training", "loss curves", usage="[RUN…] [--by steps|minutes] [--out FILE]",
    example="/plot one two --out curves.svg", complete=_complete,
)  # fmt: skip
def plot(session: Session, text: str) -> Result:
    """Draw the loss curves of runs, training and validation, over each other; `--out` writes a `.svg` or `.png`.

    RUN is the name of a run or of a model. Without one it is the newest run that is at work, else that of the model at
    hand, else the newest. Losses are in nats per token, those of training smoothed; to compare them, the tokenizer must
    be the same.
    """
    names, by, out = _parse(text)
    curves = tuple(_named(name, by) for name in names) or (_default(session, by),)
    return Plot(curves, by, out)


def _parse(text: str) -> tuple[list[str], str, Path | None]:
    """Names, each once, the unit, and the file to write."""
    words, given = split_flags(text)
    names = list(dict.fromkeys(words))
    flags = {"by": "steps", "out": ""}
    for name, value in given:
        if name not in flags:
            raise UsageError(f"/plot has no --{name}", "it has --by and --out: see /help plot")
        if not value:
            raise UsageError(f"--{name} needs a value", "for example `/plot --by minutes --out curves.svg`")
        flags[name] = value
    if len(names) > MOST:
        raise UsageError(f"/plot takes up to {MOST} runs, not {len(names)}", "plot some of them")
    if flags["by"] not in UNITS:
        raise UsageError(f"--by takes {' or '.join(UNITS)}, not {flags['by']!r}")
    return names, flags["by"], _file(flags["out"]) if flags["out"] else None


def _file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix.lower() not in FORMS:
        raise UsageError(f"{path} has no ending that says what to write", "one of " + " ".join(FORMS))
    if path.exists():
        raise UsageError(f"{path} exists already", "choose another name, or remove it first")
    return path


def _named(name: str, by: str) -> LossCurve:
    """The curve of the run of that name, or of the model."""
    runs = {run.name: run for run in list_runs()}
    if name in runs:
        return _of_run(runs[name], by)
    try:
        folder = find_model(name)
    except ModelError:
        near = difflib.get_close_matches(name, runs, n=1)
        names = f"did you mean {near[0]}?" if near else f"runs: {', '.join(runs) or 'none yet'}"
        raise RunError(f"there is no run or model {name!r}", names) from None
    return _of_model(read_info(folder), by)


def _default(session: Session, by: str) -> LossCurve:
    runs = list_runs()
    at_work = next((run for run in runs if run.is_running()), None)
    if at_work is not None:
        return _of_run(at_work, by)
    if session.info is not None:
        training = read_training(session.info.folder)
        own = next((run for run in runs if run.name == training.get("run")), None)
        if own is not None:
            return _of_run(own, by)
        if training.get("curve"):
            return _of_model(session.info, by)
    if not runs:
        raise RunError("there is no run to plot", "`/train TEXT` begins one")
    return _of_run(runs[0], by)


def _of_run(run: RunFolder, by: str) -> LossCurve:
    """The curve as the events have it.

    Raises:
        RunError: nothing has been learned yet.
    """
    curves, times, split = Curves(), [(0.0, 0.0)], "val"
    for event in run.events():
        curves.update(event)
        if isinstance(event, Stepped):
            while times[-1][0] >= event.step:  # the run went back
                times.pop()
            times.append((event.step, event.seconds))
        elif isinstance(event, Evaluated):
            split = event.split
    if not curves.training:
        raise RunError(f"the run {run.name!r} has no losses yet", "try again in a moment")
    return _curve(run.name, curves.training, curves.validation, split, by, times)


def _of_model(info: ModelInfo, by: str) -> LossCurve:
    """The curve that a model carries: thinned out, and its steps as if each had taken the same time.

    Raises:
        RunError: it carries none.
    """
    training = read_training(info.folder)
    curve = training.get("curve") or {}
    losses, evaluations = ([(x, y) for x, y in curve.get(part, [])] for part in ("training", "validation"))
    if not losses:
        raise RunError(f"the model {info.name!r} carries no loss curve", "models that `/train` makes have one")
    times = [(0.0, 0.0), (losses[-1][0], float(training.get("seconds", 0.0)))]
    return _curve(info.name, losses, evaluations, training.get("split", "val"), by, times)


def _curve(name: str, training: Points, validation: Points, split: str, by: str, times: Points) -> LossCurve:
    """The curve by steps, or by the times (step, seconds) at which these were done."""

    def placed(points: Points) -> tuple[tuple[float, float], ...]:
        points = sorted(dict(points).items())  # in the end an earlier step may have been measured again
        if by == "steps":
            return tuple(points)
        steps, seconds = zip(*times, strict=True)
        import numpy as np

        minutes = np.interp([step for step, _ in points], steps, seconds) / 60
        return tuple((float(minute), loss) for minute, (_, loss) in zip(minutes, points, strict=True))

    return LossCurve(name, placed(training), placed(validation), split)


COMMANDS: tuple[Command, ...] = (plot,)
