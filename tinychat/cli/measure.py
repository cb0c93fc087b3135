"""`tinychat eval` and `tinychat bench`."""

import dataclasses
import json
from typing import Any

import click

from tinychat.cli.options import debug_option, json_option, make_session, set_flags, setting_options
from tinychat.settings import SettingStore
from tinychat.store.models import find_model, read_info

SPLITS = ("val", "train", "all")


@click.command("eval")
@click.argument("model")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
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
    split: str,
    as_json: bool,
    column: str | None,
    field: str | None,
    exact: bool,
    **given: str,
) -> None:
    """Loss, perplexity, bits per character and accuracy of MODEL on a text."""
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


PARTS = ("prefill", "decode")
"""of an answer, each with a speed of its own"""


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
    rows = [(f"{engine} {name}", getattr(rates, name)) for engine, rates in result.engines.items() for name in PARTS]
    for name, rate in [*rows, ("training", result.training)]:
        share = f"{rate.fraction_of_limit:6.1%} of {rate.limit}"
        click.echo(f"{name:14} {rate.tokens_per_second:12,.0f} tokens/s   {share}")
    click.echo(f"{'':14} {result.loop_share:12.1%} of training goes to batches, events and checkpoints")
    click.echo(f"{'start-up':14} {result.start_up:12.2f} s to an answer of one token")
