"""`tinychat train`: creates or resumes a run, starts its trainer and shows its progress."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.completion import complete_data_sets, complete_recipes, complete_runs
from tinychat.cli.options import add_flags, debug_option, json_option, load_ui_options
from tinychat.cli.output import echo, is_terminal
from tinychat.config.settings import UI_OPTIONS, UiOptions
from tinychat.corpus.sources import join_words
from tinychat.errors import UsageError, check_torch
from tinychat.events import Ended, Failed
from tinychat.store.runs import RunFolder
from tinychat.train.launch import (
    become_worker,
    change_recipe,
    check_goes_on,
    describe_done,
    find_process_rank,
    find_resumable,
    launch,
    name_for,
    start_run,
)
from tinychat.train.recipe import RECIPE_FIELDS, choose_recipe

if TYPE_CHECKING:
    from tinychat.repl.training_view import RunOutcome


MAX_START_SECONDS = 60.0
"""Seconds within which a process imports this module, at most; more is a mistake of its clock."""


def _start_of_process() -> float:
    """Return `time.monotonic()` at the start of this process, or now where the system does not tell."""
    now = time.monotonic()
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - min(max(0.0, age), MAX_START_SECONDS)


STARTED = _start_of_process()
"""Start of the command, from which `--minutes` counts."""

COMMON_OPTIONS = (
    "--recipe", "--name", "--minutes", "--steps", "--from", "--resume",
    "--tokenizer", "--n-layer", "--d-model", "--context-length", "--batch-size", "--device",
    "--help", "--help-all",
)  # fmt: skip
"""The options that `--help` shows, in this order; `--help-all` shows all of them."""
HELP_ALL = "tinychat.help_all"
STOPPED = 130
"""Exit code of a run that was stopped."""


class TrainCommand(click.Command):
    """A command with a help of the common options, and a full help by the sections of a recipe."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options or, for `--help-all`, the command's own options and those of each section."""
        parameters, show_all = self.get_params(context), HELP_ALL in context.meta
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        if not show_all:
            by_flag = {flag: parameter for parameter in parameters for flag in parameter.opts}
            parameters = [by_flag[flag] for flag in COMMON_OPTIONS]
        for parameter in parameters:
            if record := parameter.get_help_record(context):
                field = RECIPE_FIELDS.get(parameter.name or "") if show_all else None
                groups.setdefault(f"Recipe: {field.section}" if field else "Options", []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _show_full_help(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.meta[HELP_ALL] = True
        echo(context.get_help())
        context.exit()


@click.command("train", cls=TrainCommand)
@click.argument("sources", nargs=-1, metavar="SOURCE...", shell_complete=complete_data_sets)
@click.option(
    "--recipe", "recipe_name", metavar="R", shell_complete=complete_recipes,
    help="a recipe's name (see `tinychat recipes`) or file",
)  # fmt: skip
@click.option("--name", help="the name of the run and its model [from the first source]")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FOLDER",
    help="the folder to write the model to [among your own models]",
)  # fmt: skip
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    shell_complete=complete_runs,
    help="continue a stopped run, or extend one with --minutes, --steps or --epochs",
)
@json_option
@add_flags([UI_OPTIONS["plain"], UI_OPTIONS["theme"]])
@debug_option
@click.option(
    "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_show_full_help,
    help="Show every option and recipe field, and exit.",
)  # fmt: skip
@add_flags(field for name, field in RECIPE_FIELDS.items() if name != "sources")
def train(
    sources: tuple[str, ...], recipe_name: str | None, name: str | None, out: Path | None, resume: str | None,
    as_json: bool, plain: bool | None, theme: str | None, **fields: Any,
) -> int:  # fmt: skip
    """Train a model on SOURCE: files, folders, globs, known data sets, or - for stdin.

    Several sources are joined, and a tenth of all is held out for validation: the end of a running text, or documents
    from all over it. Weights mix them instead: with a.txt:2 b.txt:1, two thirds of the training data come from a.txt,
    however long the files are, and each source holds out its own tenth.

    --from MODEL trains an existing model further on other text; its architecture and tokenizer stay the same.

    Everything that is not given is chosen to suit the text and the machine. --resume NAME continues a run that was
    stopped or killed, with other --devices if need be; --resume NAME --minutes 10 extends one to ten minutes in all.
    With --devices N, several processes share each step; on several machines, start this command under `torchrun` or
    SLURM's `srun`.
    """
    if find_process_rank().rank > 0:
        become_worker()
    check_torch()
    ui_options = load_ui_options({"plain": plain, "theme": theme})
    overrides = {key: value for key, value in fields.items() if value not in (None, ())}
    sources = join_words(sources)
    if resume is not None:
        # Without a name of its own, `--resume` takes that of --name, or of the run that the text would make.
        check_goes_on(sources if resume or name else (), recipe=recipe_name, out=out, name=name if resume else None)
        wanted = resume or name or (name_for(sources) if sources else "")
        if not wanted:
            raise UsageError("which run is to go on?", "`tinychat train --resume NAME`")
        run = find_resumable(wanted)
        if run.is_running():
            # It trains in the background, or its command was killed a moment ago and it is still saving.
            code = _exit_code(watch(run, as_json=as_json, ui_options=ui_options))
            if code != STOPPED or run.was_told_to_stop:
                return code
        if not change_recipe(run, overrides):
            for line in describe_done(run):
                echo(line, err=True)
            return 0
        process = launch(run, stop_with_parent=True, started=STARTED)
    else:
        recipe = choose_recipe(recipe_name, overrides | ({"sources": sources} if sources else {}))
        _fetch(recipe.sources, ui_options)
        run, process = start_run(
            recipe, name, recipe_name=None if sources else recipe_name, out=out, stdin=sys.stdin.buffer,
            stop_with_parent=True, started=STARTED,
        )  # fmt: skip
    return _exit_code(watch(run, as_json=as_json, ui_options=ui_options, process=process))


def _fetch(sources: tuple[str, ...], ui_options: UiOptions) -> None:
    """Download the known data sets among the sources, since only this process can show a progress bar."""
    from tinychat.corpus.registry import KNOWN
    from tinychat.corpus.sources import split_weight

    for path in (split_weight(source)[0] for source in sources):
        name = path.partition("/")[0]
        if name in KNOWN and not Path(path).exists():
            from tinychat.cli.manage import fetch_with_bar

            fetch_with_bar(name, plain=ui_options.plain)


def watch(
    run: RunFolder, *, as_json: bool, ui_options: UiOptions, process: "subprocess.Popen[bytes] | None" = None
) -> "RunOutcome":
    """Show a run until it ends, and return its last event, or None if it trains on in the background.

    With a terminal it is shown as a dashboard, which reads keys: so stdin must be one, too. `as_json` writes each event
    to stdout, and only errors to stderr.
    `process` is the trainer if it is a child of this process. Ctrl-C stops the run and saves the model.

    Raises:
        Interrupted: If Ctrl-C is pressed again before the trainer has stopped.
    """
    from tinychat.repl.keys import Keyboard
    from tinychat.repl.render.terminal import Terminal
    from tinychat.repl.training_view import Dashboard, next_steps, write_lines

    # On SIGTERM the trainer finishes its step and saves everything.
    signal.signal(signal.SIGTERM, lambda *_: run.send("stop"))
    echo_error = partial(echo, err=True)
    terminal = Terminal.standard(sys.stdout, plain=ui_options.plain, theme=ui_options.theme)
    if as_json:
        last = write_lines(run, process, echo, as_json=True)
    elif all(map(is_terminal, (sys.stdin, sys.stdout, sys.stderr))) and not terminal.dumb:
        last = Dashboard(terminal, Keyboard()).show(run, process)
    else:
        last = write_lines(run, process, echo_error)
    if isinstance(last, Failed):
        run.undo_failed_start()
        echo_error(f"tinychat: {last.problem}")
        if last.remedy:
            echo_error(f"  {last.remedy}")
    elif last is None:
        how_to_watch = f"`tinychat train --resume {run.typed_name}` shows it again"
        terminal.line(f"{run.name} trains on in the background: {how_to_watch}")
    elif not as_json:
        for line in next_steps(run, last):
            echo_error(line)
    return last


def _exit_code(last: "RunOutcome") -> int:
    """Return 0 if the run is done or left in the background, 1 if it failed, `STOPPED` if it was stopped."""
    if isinstance(last, Failed):
        return STOPPED if last.is_stopped else 1
    return STOPPED if isinstance(last, Ended) and last.reason == "stopped" else 0
