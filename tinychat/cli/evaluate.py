"""`tinychat eval` and `tinychat bench`.

`tinychat eval MODEL --suite FILE`: the checks by group, with greedy answers and with drawn ones.
"""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.options import debug_option, json_option, make_session, set_flags, setting_options
from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import UsageError
from tinychat.evaluate.suite import Outcome, Suite, Tally, read_suite, run, tally
from tinychat.session.session import Session
from tinychat.store.models import find_model, read_info
from tinychat.textutil import escape_controls, percent

if TYPE_CHECKING:
    from tinychat.evaluate.bench import Rate


SPLITS = ("val", "train", "all")


@click.command("eval")
@click.argument("model")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option("--suite", type=click.Path(path_type=Path), metavar="FILE", help="checks: what is said, what is to come")
@click.option("--verbose", is_flag=True, help="with --suite: print what failed")
@click.option("--seed", metavar="N", help="with --suite: of the answers that are drawn [1]")
@click.option("--split", type=click.Choice(SPLITS), default="val", help="val (the last tenth), train, or all")
@click.option("--column", metavar="NAME", help="of a CSV, TSV or Parquet file: the one that holds the text")
@click.option("--field", metavar="NAME", help="of JSON lines: the one that holds the text")
@click.option("--exact", is_flag=True, help="of a translation model: also how many pairs it translates exactly so")
@click.option("--device", metavar="auto|cpu|cuda|mps", default="auto", help="where to compute")
@click.option("--threads", metavar="N", help="processor threads")
@json_option
@debug_option
def eval_(
    model: str,
    sources: tuple[str, ...],
    suite: Path | None,
    verbose: bool,
    split: str,
    as_json: bool,
    column: str | None,
    field: str | None,
    exact: bool,
    **given: str,
) -> None:
    """Loss, perplexity, bits per character and accuracy of MODEL on a text; with --suite, how often it answers right.

    A suite is JSON Lines: {"group": "capitals", "say": "capital of peru?", "pattern": "Lima"}. `say` may be a list, the
    turns of a conversation; the last reply is to be one of "answer", to have "pattern", and nothing of "without".
    """
    if (suite is None) == (not sources):
        raise UsageError("eval takes a text or a suite of checks", "`tinychat eval MODEL SOURCE`, or --suite FILE")
    if suite is not None:
        judge(model, suite, given, as_json=as_json, verbose=verbose)
        return
    info = read_info(find_model(model))
    settings = SettingStore()
    set_flags(settings, given)

    from tinychat.evaluate.perplexity import score

    result = score(
        info,
        sources,
        split,  # type: ignore[arg-type]
        settings=settings.current,
        column=column,
        field=field,
        exact=exact,
    )
    for notice in result.notices:
        click.echo(f"tinychat: {notice}", err=True)
    if as_json:
        values = dataclasses.asdict(result)
        del values["notices"]
        click.echo(json.dumps(values))
        return
    click.echo(f"loss                {result.loss:.4f} nats per token")
    click.echo(f"perplexity          {result.perplexity:.4g}")
    click.echo(f"bits per character  {result.bits_per_character:.4f}")
    if result.accuracy is not None:
        click.echo(f"accuracy            {100 * result.accuracy:.2f} % of the tokens were the likeliest")
    if result.exact_match is not None:
        click.echo(f"exact match         {100 * result.exact_match:.2f} % of the pairs, translated greedily")
    click.echo(f"over                {result.tokens:,} tokens, {result.characters:,} characters ({split})")


@click.command("bench")
@click.argument("model", required=False)
@setting_options
@json_option
@debug_option
def bench(model: str | None, as_json: bool, **given: Any) -> None:
    """Prefill, decoding, training and start-up speed of MODEL here, with the fraction of the machine's limit."""
    session = make_session(given | {"model": model})

    from tinychat.evaluate.bench import run_bench

    result = run_bench(session)
    if as_json:
        click.echo(json.dumps(result.to_dict()))
        return
    click.echo(f"{result.model.summary} on {result.device}")
    click.echo(f"{'tokens a second':16}threads{'prefill':>9}{'decode':>30}")
    for rates in result.engines:
        shown = f"{_show(rates.prefill, 'GFLOP/s'):31}{_show(rates.decode, 'GB/s')}"
        click.echo(f"{rates.engine + ' ' + rates.precision:16}{rates.threads:5}{shown}")
    training = f"{result.training_threads:5}{_show(result.training, 'GFLOP/s')}"
    click.echo(f"{'training ' + result.training_precision:16}{training}")
    click.echo(f"{'':21}{percent(result.loop_share):>11} of it goes to batches, events and checkpoints")
    click.echo(f"{'start-up':21}{result.start_up:9.2f}  s to an answer of one token")


def _show(rate: "Rate", unit: str) -> str:
    """`   22,540  36 % of 193 GFLOP/s`."""
    share = f"{percent(rate.fraction_of_limit, 0)} of {rate.limit / 1e9:,.0f} {unit}"
    return f"{rate.tokens_per_second:9,.0f}  {share}"


# ---- from tinychat.cli.evaluate ----


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
    return sorted(outcomes, key=lambda outcome: outcome.position)


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
