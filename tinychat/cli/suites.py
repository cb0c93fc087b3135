"""`tinychat eval MODEL --suite FILE`: the checks by group, with greedy answers and with drawn ones."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from tinychat.cli.options import set_flags
from tinychat.session import Session
from tinychat.settings import Settings, SettingStore
from tinychat.suite import Outcome, Suite, Tally, read_suite, run, tally
from tinychat.textutil import escape_controls

GREEDY, DRAWN = "greedy", "temperature"


def judge(model: str, path: Path, given: Mapping[str, str | None], *, as_json: bool, verbose: bool) -> None:
    """Holds the conversations of a suite twice, and prints how many checks passed.

    Args:
        model: a name or a path.
        path: of the suite.
        given: settings; the seed is 1 where there is none.
        as_json: print one object.
        verbose: print what failed, too.

    Raises:
        TinychatError: the model or the suite cannot be used.
    """
    suite = read_suite(path)
    settings = SettingStore()
    set_flags(settings, given)
    session = Session(settings)
    session.open_model(model)
    drawn = settings.current
    ways = {GREEDY: dataclasses.replace(drawn, temperature=0.0)}
    if drawn.temperature:
        ways[f"{DRAWN} {drawn.temperature:g}"] = drawn
    outcomes = {way: _run(session, suite, settings, way) for way, settings in ways.items()}
    if as_json:
        click.echo(json.dumps({way: _values(found) for way, found in outcomes.items()}, ensure_ascii=False))
        return
    if verbose:
        for way, found in outcomes.items():
            for line in _failures(way, found):
                click.echo(escape_controls(line))
    for line in _table({way: tally(found) for way, found in outcomes.items()}):
        click.echo(line)


def _run(session: Session, suite: Suite, settings: Settings, way: str) -> list[Outcome]:
    """The outcomes, counted on stderr while they come, where that is a terminal."""
    outcomes: list[Outcome] = []
    for outcome in run(session, suite, settings):
        outcomes.append(outcome)
        if sys.stderr.isatty() and len(outcomes) % 20 == 0:
            click.echo(f"\r{way}: {len(outcomes):,} of {len(suite.checks):,}", err=True, nl=False)
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    return sorted(outcomes, key=lambda outcome: outcome.place)


def _table(tallies: Mapping[str, Mapping[str, Tally]]) -> list[str]:
    """A line a group: how many checks it has, how many passed, and the share; a column for each way to answer."""
    names = list(next(iter(tallies.values())))
    width = max(map(len, names))
    lines = [f"{'':{width}} {'checks':>7}" + "".join(f"{way:>18}" for way in tallies)]
    for name in names:
        groups = [groups[name] for groups in tallies.values()]
        shares = "".join(f"{group.passed:>10,} {100 * group.share:5.1f} %" for group in groups)
        lines.append(f"{name:{width}} {max(group.count for group in groups):>7,}{shares}")
    return lines


def _failures(way: str, outcomes: Iterable[Outcome]) -> Iterable[str]:
    """Each check that failed, and each reply that is not well formed: what was said, and what came."""
    for outcome in outcomes:
        faults = [fault for fault in outcome.broken if fault]
        if outcome.passed and not faults:
            continue
        yield f"{outcome.check.group} · {way}" + "".join(f" · {fault}" for fault in faults)
        for turn in outcome.turns:
            yield f"  › {turn.prompt}"
            yield f"    {turn.answer}"
        if not outcome.passed:
            yield f"    wanted: {_wanted(outcome)}"


def _wanted(outcome: Outcome) -> str:
    check = outcome.check
    wishes = [" or ".join(check.answers)] if check.answers else []
    wishes += [f"with {check.pattern.pattern}"] if check.pattern else []
    wishes += [f"without {check.without.pattern}"] if check.without else []
    return ", ".join(wishes)


def _values(outcomes: list[Outcome]) -> dict[str, Any]:
    groups = {
        name: {"passed": group.passed, "count": group.count, "share": group.share}
        for name, group in tally(outcomes).items()
    }
    failed = [outcome for outcome in outcomes if not outcome.passed or any(outcome.broken)]
    failures = [
        {
            "group": outcome.check.group,
            "turns": [{"said": turn.prompt, "answered": turn.answer} for turn in outcome.turns],
            "wanted": "" if outcome.passed else _wanted(outcome),
            "faults": [fault for fault in outcome.broken if fault],
        }
        for outcome in failed
    ]
    return {"groups": groups, "failures": failures}
