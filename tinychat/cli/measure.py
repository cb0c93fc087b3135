"""`tinychat eval` and `tinychat bench`."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.options import debug_option, json_option, make_session, set_flags, setting_options
from tinychat.errors import UsageError
from tinychat.settings import SettingStore
from tinychat.store.models import find_model, read_info
from tinychat.textutil import percent

if TYPE_CHECKING:
    from tinychat.bench import Rate

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
        from tinychat.cli.suites import judge

        judge(model, suite, given, as_json=as_json, verbose=verbose)
        return
    info = read_info(find_model(model))
    settings = SettingStore()
    set_flags(settings, given)

    from tinychat.scoring import score

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

    from tinychat.bench import run_bench

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
