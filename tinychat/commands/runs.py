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
    from tinychat.train.standing import Standing

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
        return _compared(find_standings(patterns))
    notes = ("/attach NAME watches, /train --resume NAME goes on, /runs NAME NAME compares",)
    columns = ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    return Table(columns, tuple(map(_listed, find_standings())), right=(2, 3, 4, 5, 6), notes=notes)


def find_standings(patterns: Sequence[str] = ()) -> "list[Standing]":
    """How runs stand: in the order of the patterns that name them, each once; without patterns all, the newest first.

    Raises:
        RunError: a pattern names none.
    """
    from tinychat.train.standing import read_standing

    found = {run.name: run for run in list_runs()}
    names: dict[str, None] = {} if patterns else dict.fromkeys(found)
    for pattern in patterns:
        matching = sorted(name for name in found if fnmatchcase(name, pattern))
        if not matching:
            raise RunError(f"there is no run {pattern!r}", f"runs: {', '.join(found) or 'none yet'}")
        names |= dict.fromkeys(matching)
    return [read_standing(found[name]) for name in names]


def _listed(standing: "Standing") -> tuple[str, ...]:
    over = standing.step == standing.steps and standing.state not in ("at work", "interrupted")
    return (
        standing.name,
        standing.state,
        f"{standing.step:,}" if over or not standing.steps else f"{standing.step:,}/{standing.steps:,}",
        NONE if standing.parameters is None else compact(standing.parameters),
        NONE if standing.loss is None else f"{standing.loss:.3f}",
        NONE if standing.tokens_per_second is None else f"{standing.tokens_per_second:,.0f}",
        duration(standing.remaining) if standing.state == "at work" else "",
    )


def _compared(standings: "Sequence[Standing]") -> Table:
    from tinychat.train.recipe import RECIPE_FIELDS
    from tinychat.train.standing import find_differences

    differences = find_differences(standings)
    facts = [
        (
            standing.name,
            f"{standing.step:,}",
            NONE if standing.parameters is None else f"{standing.parameters:,}",
            NONE if standing.loss is None else f"{standing.loss:.4f}",
            NONE if standing.accuracy is None else percent(standing.accuracy),
            NONE if standing.tokens_per_second is None else f"{standing.tokens_per_second:,.0f}",
            duration(standing.seconds),
            *(RECIPE_FIELDS[name].show(standing.recipe.get(name)) for name in differences),
        )
        for standing in standings
    ]
    heads = ("run", "steps", "parameters", "val loss", "accuracy", "tok/s", "time", *differences)
    columns, *rows = zip(heads, *facts, strict=True)  # runs beside each other, as facts are more
    return Table(columns, tuple(rows), right=tuple(range(1, len(columns))))


COMMANDS = (runs,)
