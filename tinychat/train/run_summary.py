"""Summary of a run, read from its folder: its state, progress, loss and speed. Needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tinychat.errors import RunError
from tinychat.events import Ended, Evaluated, Event, Failed, Planned, Stepped
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import RECIPE_FIELDS, load_recipe


@dataclass(frozen=True)
class RunSummary:
    """The state, progress, loss and speed of a run."""

    name: str
    state: str
    """at work, done, stopped, failed or interrupted"""
    step: int
    steps: int
    """total number of steps, estimated for a run with a time limit; number of steps done if the run is over"""
    parameters: int | None
    loss: float | None
    """lowest validation loss in nats per token"""
    accuracy: float | None
    """accuracy of the evaluation with that loss"""
    tokens_per_second: float | None
    """average over the steps, without evaluations and checkpoints"""
    seconds: float
    """seconds of training so far"""
    remaining: float
    """estimated seconds left; 0 if the run is not at work"""
    recipe: Mapping[str, Any]
    """value of each field that the recipe sets"""


def read_run_summary(run: RunFolder) -> RunSummary:
    """Return the summary of a run."""
    parameters: int | None = None
    best: Evaluated | Ended | None = None
    stepped: Stepped | None = None
    last: Event | None = None
    steps, seconds_per_token = 0, 0.0  # sums over the steps
    for last in run.events():
        match last:
            case Planned():
                parameters = last.parameters
            case Stepped():
                done = last.step - (stepped.step if stepped else 0)
                if done > 0 and last.tokens_per_second > 0:
                    steps, seconds_per_token = steps + done, seconds_per_token + done / last.tokens_per_second
                stepped = last
            case Evaluated(best=True) | Ended():
                best = last
    alive = run.is_running()
    ending = last.reason if isinstance(last, Ended) else "failed" if isinstance(last, Failed) else "interrupted"
    step = last.step if isinstance(last, Ended) else stepped.step if stepped else 0
    return RunSummary(
        name=run.name,
        state="at work" if alive else ending,
        step=step,
        steps=step if isinstance(last, Ended) or stepped is None else stepped.steps,
        parameters=parameters,
        loss=best.loss if best else None,
        accuracy=best.accuracy if best else None,
        tokens_per_second=steps / seconds_per_token if seconds_per_token else None,
        seconds=last.seconds if isinstance(last, Ended) else stepped.seconds if stepped else 0.0,
        remaining=stepped.remaining if stepped and alive else 0.0,
        recipe=_read_recipe(run),
    )


def find_differences(summaries: Sequence[RunSummary]) -> list[str]:
    """Return the recipe fields in which runs differ, in the order of a recipe."""
    return [name for name in RECIPE_FIELDS if len({str(summary.recipe.get(name)) for summary in summaries}) > 1]


def _read_recipe(run: RunFolder) -> dict[str, Any]:
    """Return the fields that a run's recipe sets; none if a version with other fields wrote it."""
    try:
        sections = load_recipe(run.recipe_file).to_dict()
    except RunError:
        return {}
    return dict(chain.from_iterable(section.items() for section in sections.values()))
