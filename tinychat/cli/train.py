"""`tinychat train`: makes a run, starts its trainer, and watches."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.options import add_flags, debug_option, json_option, load_ui_options, ui_option_flags
from tinychat.config.ui_options import UiOptions
from tinychat.errors import UsageError
from tinychat.events import Ended, Failed
from tinychat.store.runs import RunFolder, find_run
from tinychat.textutil import escape_controls
from tinychat.train.launch import change_recipe, launch, name_for, prepare_run
from tinychat.train.processes import become_worker, find_process_rank
from tinychat.train.recipe import RECIPE_FIELDS, choose_recipe

if TYPE_CHECKING:
    from tinychat.repl.training_view import Last

STARTED = time.monotonic()
"""when this command was given, or near enough: `--minutes` counts from here"""


class TrainCommand(click.Command):
    """A command whose fields are listed by the sections of a recipe."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options first, then those of each section."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                field = RECIPE_FIELDS.get(parameter.name or "")
                groups.setdefault(f"Recipe: {field.section}" if field else "Options", []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


@click.command("train", cls=TrainCommand)
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--recipe", "recipe_name", metavar="R", help="a recipe's name (see `tinychat recipes`) or file")
@click.option("--name", help="of the run and its model [after the first source]")
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="where the model goes [your own models]")
@click.option("--resume", is_flag=False, flag_value="", metavar="[NAME]", help="go on with a run that was stopped")
@json_option
@ui_option_flags("plain", "theme")
@debug_option
@add_flags(field for name, field in RECIPE_FIELDS.items() if name != "sources")
def train(
    sources: tuple[str, ...],
    recipe_name: str | None,
    name: str | None,
    out: Path | None,
    resume: str | None,
    as_json: bool,
    plain: bool | None,
    theme: str | None,
    **given: Any,
) -> int:
    """Train a model on SOURCE: files, folders, globs, known data sets, or - for stdin.

    Weights make a mix: of a.txt:2 b.txt:1 two thirds of what the model sees is of a.txt, however long they are, and
    each keeps its own last tenth to measure the model by.

    --from MODEL goes on with a model on other text: it keeps its architecture and its tokenizer.

    All that is left open is chosen from the text and the machine. A run that is stopped or killed goes on with
    --resume NAME, on other --devices if need be. Several processes share each step with --devices N; on several
    machines, start this under `torchrun` or SLURM's `srun`.
    """
    if find_process_rank().rank > 0:
        become_worker()
    ui_options = load_ui_options({"plain": plain, "theme": theme})
    overrides = {key: value for key, value in given.items() if value not in (None, ())}
    if resume is not None:
        run = _find(resume or name, sources)
        if run.is_running():
            # A trainer whose command was killed a moment ago is still saving; or it is at work in the background.
            last = watch(run, as_json=as_json, ui_options=ui_options)
            if not (isinstance(last, Ended) and last.reason == "stopped"):
                return _exit_code(last)
        change_recipe(run, overrides)
    else:
        recipe = choose_recipe(recipe_name, overrides | ({"sources": sources} if sources else {}))
        _fetch(recipe.sources, ui_options)
        run = prepare_run(recipe, name, recipe_name=None if sources else recipe_name, out=out, stdin=sys.stdin.buffer)
    process = launch(run, tied=True, started=STARTED)
    return _exit_code(watch(run, as_json=as_json, ui_options=ui_options, process=process))


def _fetch(sources: tuple[str, ...], ui_options: UiOptions) -> None:
    """Downloads the known data sets among the sources, here where a progress bar can be shown."""
    from tinychat.corpus.registry import KNOWN
    from tinychat.corpus.sources import split_weight

    for source in sources:
        source, _ = split_weight(source)
        name = source.partition("/")[0]
        if name in KNOWN and not Path(source).exists():
            from tinychat.cli.manage import fetch_with_bar

            fetch_with_bar(name, plain=ui_options.plain)


def _find(name: str | None, sources: tuple[str, ...]) -> RunFolder:
    """The run that is to go on."""
    name = name or (name_for(sources) if sources else "")
    if not name:
        raise UsageError("which run is to go on?", "`tinychat train --resume NAME`")
    return find_run(name)


def watch(
    run: RunFolder, *, as_json: bool, ui_options: UiOptions, process: "subprocess.Popen[bytes] | None" = None
) -> "Last":
    """Shows a run until it ends, at a terminal as a dashboard; Ctrl-C stops it and keeps what it has learned.

    Args:
        as_json: write each event to stdout, a line each, and nothing but errors to stderr.
        process: the trainer, where it is a child of this process.

    Raises:
        Interrupted: Ctrl-C came twice, before the trainer had stopped.
    """
    from tinychat.repl.keys import Keyboard
    from tinychat.repl.render.terminal import Terminal
    from tinychat.repl.training_view import Dashboard, farewell, write_lines

    # A terminal that closes, or `kill`: the trainer is told, stops after its step, and keeps everything.
    signal.signal(signal.SIGTERM, lambda *_: run.send("stop"))
    terminal = Terminal.standard(sys.stdout, plain=ui_options.plain, theme=ui_options.theme)
    if as_json:
        last = write_lines(run, process, click.echo, as_json=True)
    elif sys.stdout.isatty() and sys.stderr.isatty() and not terminal.dumb:
        last = Dashboard(terminal, Keyboard()).show(run, process)
    else:
        last = write_lines(run, process, _tell)
    if isinstance(last, Failed):
        _tell(f"tinychat: {last.problem}")
        if last.remedy:
            _tell(f"  {last.remedy}")
    elif last is None:
        terminal.line(f"{run.name} trains on in the background: `tinychat train --resume {run.name}` shows it again")
    elif not as_json:
        for line in farewell(run, last):
            _tell(line)
    return last


def _tell(line: str) -> None:
    click.echo(escape_controls(line), err=True)


def _exit_code(last: "Last") -> int:
    """0: done, or left in the background; 1: it failed; 130: stopped before its end."""
    match last:
        case Failed():
            return 1
        case Ended(reason="stopped"):
            return 130
        case _:
            return 0
