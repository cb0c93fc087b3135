"""`/runs`: the training runs there are, and some of them side by side."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tinychat.commands import completing
from tinychat.commands.command import command
from tinychat.commands.results import Result, Table
from tinychat.errors import RunError
from tinychat.session import Session
from tinychat.store.runs import list_runs
from tinychat.textutil import compact, duration, percent

if TYPE_CHECKING:
    from tinychat.train.run_summary import RunSummary

NONE = "–"


@command("runs", "training", "list or compare", usage="[RUN…]", example="/runs guide*", complete=completing.all_runs)
def runs(session: Session, text: str) -> Result:
    """List the training runs, the newest first; or compare some of them, and what their recipes differ in.

    RUN is a name or a pattern: `/runs guide*`. Losses are in nats per token, accuracy is the share of the next tokens
    that the model found likeliest, and speed is that of steps.
    """
    return runs_table(text.split())


def runs_table(patterns: Sequence[str]) -> Table:
    """The runs of those names, each with what sets it apart; without names, what all of them are doing.

    Raises:
        RunError: there is none of a name.
    """
    if patterns:
        return _compared(find_run_summaries(patterns))
    notes = ("/attach NAME watches, /train --resume NAME goes on, /runs NAME NAME compares",)
    columns = ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    return Table(columns, tuple(map(_listed, find_run_summaries())), right=(2, 3, 4, 5, 6), notes=notes)


def find_run_summaries(patterns: Sequence[str] = ()) -> "list[RunSummary]":
    """How runs stand: in the order of the patterns that name them, each once; without patterns all, the newest first.

    Raises:
        RunError: a pattern names none.
    """
    from tinychat.train.run_summary import read_run_summary

    found = {run.name: run for run in list_runs()}
    names: dict[str, None] = {} if patterns else dict.fromkeys(found)
    for pattern in patterns:
        matching = sorted(name for name in found if fnmatchcase(name, pattern))
        if not matching:
            raise RunError(f"there is no run {pattern!r}", f"runs: {', '.join(found) or 'none yet'}")
        names |= dict.fromkeys(matching)
    return [read_run_summary(found[name]) for name in names]


def _listed(summary: "RunSummary") -> tuple[str, ...]:
    over = summary.step == summary.steps and summary.state not in ("at work", "interrupted")
    return (
        summary.name,
        summary.state,
        f"{summary.step:,}" if over or not summary.steps else f"{summary.step:,}/{summary.steps:,}",
        NONE if summary.parameters is None else compact(summary.parameters),
        NONE if summary.loss is None else f"{summary.loss:.3f}",
        NONE if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
        duration(summary.remaining) if summary.state == "at work" else "",
    )


def _compared(summaries: "Sequence[RunSummary]") -> Table:
    from tinychat.train.recipe import RECIPE_FIELDS
    from tinychat.train.run_summary import find_differences

    differences = find_differences(summaries)
    facts = [
        (
            summary.name,
            f"{summary.step:,}",
            NONE if summary.parameters is None else f"{summary.parameters:,}",
            NONE if summary.loss is None else f"{summary.loss:.4f}",
            NONE if summary.accuracy is None else percent(summary.accuracy),
            NONE if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
            duration(summary.seconds),
            *(RECIPE_FIELDS[name].show(summary.recipe.get(name)) for name in differences),
        )
        for summary in summaries
    ]
    heads = ("run", "steps", "parameters", "val loss", "accuracy", "tok/s", "time", *differences)
    columns, *rows = zip(heads, *facts, strict=True)  # runs beside each other, as facts are more
    return Table(columns, tuple(rows), right=tuple(range(1, len(columns))))


COMMANDS = (runs,)
