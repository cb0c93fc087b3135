"""How a run stands: what it is doing, how far it came, how good and how quick it is; from its folder, without torch."""

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
    """One run."""

    name: str
    state: str
    """at work, done, stopped, failed or interrupted"""
    step: int
    steps: int
    """in all, estimated where the clock decides; what was done where it is over"""
    parameters: int | None
    loss: float | None
    """the lowest, in nats per token, over the part kept for validation"""
    accuracy: float | None
    """with that loss"""
    tokens_per_second: float | None
    """in steps, on average"""
    seconds: float
    """of training so far"""
    remaining: float
    """seconds, estimated; 0 where it is not at work"""
    recipe: Mapping[str, Any]
    """the value of each field that is said"""


def read_run_summary(run: RunFolder) -> RunSummary:
    """How a run stands now."""
    parameters: int | None = None
    best: Evaluated | Ended | None = None
    stepped: Stepped | None = None
    last: Event | None = None
    steps, stepping = 0, 0.0  # the seconds that one token of each step took, in all
    for last in run.events():
        match last:
            case Planned():
                parameters = last.parameters
            case Stepped():
                done = last.step - (stepped.step if stepped else 0)
                if done > 0 and last.tokens_per_second > 0:
                    steps, stepping = steps + done, stepping + done / last.tokens_per_second
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
        tokens_per_second=steps / stepping if stepping else None,
        seconds=last.seconds if isinstance(last, Ended) else stepped.seconds if stepped else 0.0,
        remaining=stepped.remaining if stepped and alive else 0.0,
        recipe=_read_recipe(run),
    )


def find_differences(summaries: Sequence[RunSummary]) -> list[str]:
    """The fields of their recipes in which runs differ, in the order of a recipe."""
    return [name for name in RECIPE_FIELDS if len({str(summary.recipe.get(name)) for summary in summaries}) > 1]


def _read_recipe(run: RunFolder) -> dict[str, Any]:
    """What the recipe says; nothing where it was written by a version that knew other fields."""
    try:
        sections = load_recipe(run.recipe_file).to_dict()
    except RunError:
        return {}
    return dict(chain.from_iterable(section.items() for section in sections.values()))
