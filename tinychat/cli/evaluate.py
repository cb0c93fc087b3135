"""`tinychat eval`, which scores a model on a text or runs a suite of checks, and `tinychat bench`."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.completion import complete_data_sets, complete_models
from tinychat.cli.options import debug_option, json_option, make_session, set_flags, setting_options
from tinychat.cli.output import echo, echo_json, echo_progress
from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import UsageError, check_torch
from tinychat.evaluate.suite import Outcome, Suite, Tally, read_suite, run, tally
from tinychat.formats.registry import open_model
from tinychat.session.session import Session
from tinychat.textutil import count, escape_controls, one_line, percent

if TYPE_CHECKING:
    from tinychat.evaluate.bench import Rate


@click.command("eval")
@click.argument("model", shell_complete=complete_models)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]", shell_complete=complete_data_sets)
@click.option("--suite", type=click.Path(path_type=Path), metavar="FILE", help="a suite of checks to run")
@click.option("--verbose", is_flag=True, help="with --suite: print the checks that failed")
@click.option("--seed", metavar="N", help="with --suite: seed of the sampled answers [1]")
@click.option(
    "--split", type=click.Choice(("val", "train", "all")), default="val",
    help="the part to score: val (what training holds out, a tenth), train, or all",
)  # fmt: skip
@click.option("--column", metavar="NAME", help="the column of a CSV, TSV or Parquet file that holds the text")
@click.option("--field", metavar="NAME", help="the field of a JSON Lines file that holds the text")
@click.option("--exact", is_flag=True, help="for a translation model: also count exact matches")
@click.option(
    "--overlap", type=click.IntRange(min=0), default=32, show_default=True, metavar="N",
    help="tokens that two windows of a running text share, which only serve as context",
)  # fmt: skip
@click.option("--device", metavar="auto|cpu|cuda|mps", default="auto", help="where to compute")
@click.option("--threads", metavar="N", help="processor threads")
@json_option
@debug_option
def eval_(
    model: str, sources: tuple[str, ...], suite: Path | None, verbose: bool, split: str, as_json: bool,
    column: str | None, field: str | None, exact: bool, overlap: int, **flags: str,
) -> None:  # fmt: skip
    """Measure loss, perplexity, bits per character and accuracy of MODEL on a text, or run a suite of checks.

    A suite is JSON Lines: {"group": "capitals", "say": "capital of peru?", "pattern": "Lima"}. "say" may be a list of
    turns; the last reply must be one of "answer", match "pattern" and not match "without".
    """
    if (suite is None) == (not sources):
        raise UsageError("eval takes a text or a suite of checks", "`tinychat eval MODEL SOURCE`, or --suite FILE")
    if suite is not None:
        _run_suite(model, suite, flags, as_json=as_json, verbose=verbose)
        return
    info, settings = open_model(model), SettingStore()
    set_flags(settings, flags)
    check_torch()

    from tinychat.corpus.sources import join_words
    from tinychat.evaluate.perplexity import score

    result = score(
        info, join_words(sources), split,  # type: ignore[arg-type]
        settings=settings.current, column=column, field=field, exact=exact, overlap=overlap,
    )  # fmt: skip
    for notice in result.notices:
        echo(f"tinychat: {notice}", err=True)
    if as_json:
        echo_json({name: _finite(value) for name, value in vars(result).items() if name != "notices"})
        return
    bits = _finite(result.bits_per_character)
    echo(f"loss                {result.loss:.4f} nats per token")
    echo(f"perplexity          {result.perplexity:.4g}")
    echo(f"bits per character  {'–' if bits is None else f'{bits:.4f}'}")
    if result.accuracy is not None:
        echo(f"accuracy            {100 * result.accuracy:.2f} % of the tokens were the likeliest")
    if result.exact_match is not None:
        echo(f"exact match         {100 * result.exact_match:.2f} % of the pairs, translated greedily")
    echo(f"over                {count(result.tokens, 'token')}, {count(result.characters, 'character')} ({split})")


def _finite(figure: float | None) -> float | None:
    """Return a figure, or None for NaN and infinity, which JSON lacks."""
    return figure if figure is not None and math.isfinite(figure) else None


@click.command("bench")
@click.argument("model", required=False, shell_complete=complete_models)
@setting_options
@json_option
@debug_option
def bench(model: str | None, as_json: bool, **flags: Any) -> None:
    """Measure prefill, decoding, training and start-up speed of MODEL here, and how close each comes to the limit."""
    session = make_session(flags | {"model": model})
    check_torch()

    from tinychat.evaluate.bench import run_bench

    result = run_bench(session)
    if as_json:
        echo_json(result.to_dict())
        return
    echo(f"{result.model.summary} on {result.device}")
    echo(f"{'tokens a second':16}threads{'prefill':>9}{'decode':>30}")
    for rates in result.engines:
        shown = f"{_show(rates.prefill, 'GFLOP/s'):31}{_show(rates.decode, 'GB/s')}"
        echo(f"{rates.engine + ' ' + rates.precision:16}{rates.threads:5}{shown}")
    training = f"{result.training_threads:5}{_show(result.training, 'GFLOP/s')}"
    echo(f"{'training ' + result.training_precision:16}{training}")
    echo(f"{'':21}{percent(result.loop_overhead):>11} of it goes to batches, events and checkpoints")
    echo(f"{'start-up':21}{result.start_up:9.2f}  s to an answer of one token")


def _show(rate: "Rate", unit: str) -> str:
    """Return `   22,540  36 % of 193 GFLOP/s`."""
    fraction = f"{percent(rate.fraction_of_limit, 0)} of {rate.limit / 1e9:,.0f} {unit}"
    return f"{rate.tokens_per_second:9,.0f}  {fraction}"


def _run_suite(model: str, path: Path, flags: Mapping[str, str | None], *, as_json: bool, verbose: bool) -> None:
    """Run a suite with greedy decoding and again with sampling, and print how many checks passed."""
    suite, settings = read_suite(path), SettingStore()
    set_flags(settings, flags)
    session = Session(settings)
    session.open_model(model)
    current = settings.current
    variants = {"greedy": dataclasses.replace(current, temperature=0.0)}
    if current.temperature:
        variants[f"temperature {current.temperature:g}"] = current
    outcomes = {label: _run(session, suite, variant, label) for label, variant in variants.items()}
    if as_json:
        echo_json({label: _to_dict(found) for label, found in outcomes.items()})
        return
    if verbose:
        for line in itertools.chain(*(_failures(label, found) for label, found in outcomes.items())):
            echo(escape_controls(line))
    _print_table({label: tally(found) for label, found in outcomes.items()})


def _run(session: Session, suite: Suite, settings: Settings, label: str) -> list[Outcome]:
    """Run a suite, with a progress count on stderr if it is a terminal; return the outcomes in the suite's order."""
    outcomes = []
    for done, outcome in enumerate(run(session, suite, settings), 1):
        outcomes.append(outcome)
        if done % 20 == 0:
            echo_progress(f"{label}: {done:,} of {len(suite.checks):,}")
    echo_progress()
    return sorted(outcomes, key=lambda outcome: outcome.index)


def _print_table(tallies: Mapping[str, Mapping[str, Tally]]) -> None:
    """Print a line for each group: its number of checks, and the number and percentage passed by each variant."""
    names = list(next(iter(tallies.values())))
    labels = {name: one_line(name) for name in names}
    width = max(map(len, labels.values()))
    echo(f"{'':{width}} {'checks':>7}" + "".join(f"{label:>18}" for label in tallies))
    for name, label in labels.items():
        groups = [groups[name] for groups in tallies.values()]
        passed = "".join(f"{group.passed:>10,} {100 * group.pass_rate:5.1f} %" for group in groups)
        echo(f"{label:{width}} {max(group.count for group in groups):>7,}{passed}")


def _failures(label: str, outcomes: Iterable[Outcome]) -> Iterable[str]:
    """Yield lines with the turns of each check that failed or had a malformed reply."""
    for outcome in filter(_is_faulty, outcomes):
        yield " · ".join([outcome.check.group, label, *filter(None, outcome.faults)])
        for turn in outcome.turns:
            yield f"  › {turn.prompt}"
            yield f"    {turn.answer}"
        if not outcome.passed:
            yield f"    wanted: {_wanted(outcome)}"


def _is_faulty(outcome: Outcome) -> bool:
    return not outcome.passed or any(outcome.faults)


def _wanted(outcome: Outcome) -> str:
    check = outcome.check
    conditions = [" or ".join(check.answers)] if check.answers else []
    conditions += [f"with {check.pattern.pattern}"] if check.pattern else []
    conditions += [f"without {check.without.pattern}"] if check.without else []
    return ", ".join(conditions)


def _to_dict(outcomes: list[Outcome]) -> dict[str, Any]:
    groups = {
        name: {"passed": group.passed, "count": group.count, "share": group.pass_rate}
        for name, group in tally(outcomes).items()
    }
    failures = [
        {
            "group": outcome.check.group,
            "turns": [{"said": turn.prompt, "answered": turn.answer} for turn in outcome.turns],
            "wanted": "" if outcome.passed else _wanted(outcome),
            "faults": list(filter(None, outcome.faults)),
        }
        for outcome in filter(_is_faulty, outcomes)
    ]
    return {"groups": groups, "failures": failures}
