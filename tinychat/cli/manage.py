"""`tinychat models`, `show`, `rm`, `rename`, `recipes`, `runs`, `data`, `config`, `export` and `import`."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinychat.cli.completion import (
    complete_data_sets,
    complete_formats,
    complete_models,
    complete_recipes,
    complete_runs,
)
from tinychat.cli.options import debug_option, json_option, load_settings, load_ui_options
from tinychat.cli.output import echo, echo_columns, echo_json, is_terminal
from tinychat.errors import ModelError, UsageError, check_torch
from tinychat.formats.registry import FORMATS, check_importable, export_model, import_model, list_models, open_model
from tinychat.store import paths
from tinychat.store.housekeeping import find_taken, read_file_facts, taken_error
from tinychat.store.models import ModelInfo, read_training
from tinychat.store.names import check_name, nearest_name, typed
from tinychat.textutil import byte_size

if TYPE_CHECKING:
    from tinychat.commands.results import Drawable, Question


@click.command("models")
@json_option
@debug_option
def models(as_json: bool) -> None:
    """List the models with date, size on disk and validation loss; damaged ones with the reason."""
    found = list_models()
    if as_json:
        damaged = [{"name": one.name, "folder": str(one.folder), "error": one.error} for one in found.damaged]
        echo_json([_model_facts(info) | _file_facts(info) for info in found.sound] + damaged)
    elif any(found):
        from tinychat.commands.models import models_table

        table = models_table(found)
        if sys.stdout.isatty():
            _draw(table)
        else:
            echo_columns([table.columns, *table.rows], right=table.right)
    else:
        echo("no models yet: `tinychat train TEXT` makes one")


@click.command("show")
@click.argument("model", shell_complete=complete_models)
@json_option
@debug_option
def show(model: str, as_json: bool) -> None:
    """Show the architecture of MODEL, part by part; with --json also how it was trained."""
    info = open_model(model)
    if as_json:
        from tinychat.model.loading import list_parts
        from tinychat.model.shapes import checked_config

        checked_config(info)
        parts = [dataclasses.asdict(part) for part in list_parts(info.architecture)]
        facts = {"parts": parts, "config": info.architecture, "training": read_training(info.folder, info.files)}
        echo_json(_model_facts(info) | facts)
    else:
        from tinychat.commands.models import describe_model

        _draw(describe_model(info))


yes_option = click.option("-y", "--yes", is_flag=True, help="do not ask")


@click.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_models)
@yes_option
@debug_option
def rm(names: tuple[str, ...], yes: bool) -> int:
    """Remove your own models and their runs, after a question.

    A model and the run that made it have one name and go together. Bundled models and a run that is training stay.
    """
    from tinychat.commands.models import removal_of

    return _ask(removal_of(names), yes=yes)


@click.command("rename")
@click.argument("old", shell_complete=complete_models)
@click.argument("new")
@yes_option
@debug_option
def rename(old: str, new: str, yes: bool) -> int:
    """Rename your own model and its run, after a question.

    Names take letters and digits of any script, -, _, . and inner spaces.
    """
    from tinychat.commands.models import renaming_of

    return _ask(renaming_of(old, new), yes=yes)


def _ask(question: "Question", *, yes: bool) -> int:
    """Ask a question at the terminal, and act after a yes; return the exit code."""
    from tinychat.commands.results import YES_OR_NO, Message

    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise UsageError(f"nobody can be asked: {question.text}", "--yes does it without a question")
        echo(question.text, err=True, end=YES_OR_NO)
        if not question.is_yes(sys.stdin.readline()):
            echo(question.refused, err=True)
            return 1
    result = question.act()
    assert isinstance(result, Message)
    for line in result.lines:
        echo(line, err=True)
    return 0


@click.command("recipes")
@click.argument("recipe", required=False, shell_complete=complete_recipes)
@click.option("--toml", "as_toml", is_flag=True, help="write RECIPE as a TOML file with every value")
@json_option
@debug_option
def recipes(recipe: str | None, as_toml: bool, as_json: bool) -> None:
    """List the training recipes, or show the architecture of the model that RECIPE trains."""
    from tinychat.train.recipe import find_recipe, list_recipes, load_recipe

    if recipe is None:
        found = list_recipes()
        if as_json:
            echo_json([info.to_dict() for info in found])
        else:
            echo_columns([(info.name, info.about) for info in found])
    elif as_toml:
        echo(load_recipe(recipe).to_toml(), end="")
    else:
        from tinychat.commands.models import describe_recipe

        described = describe_recipe(recipe)
        if not as_json:
            _draw(described)
            return
        diagram = described.diagram
        sizes = {"parameters": diagram.parameters, "stages": diagram.to_list()} if described.is_sized else {}
        echo_json(find_recipe(recipe).to_dict() | sizes | load_recipe(recipe).to_dict())


@click.command("runs")
@click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@json_option
@debug_option
def runs(names: tuple[str, ...], as_json: bool) -> None:
    """List the training runs, or compare those named: parameters, loss, speed, and the differences of their recipes.

    RUN is a name or a pattern such as 'guide*'.
    """
    from tinychat.commands.training import find_run_summaries, runs_table

    if as_json:
        echo_json([dataclasses.asdict(summary) for summary in find_run_summaries(names)])
        return
    table = runs_table(names)
    if table.rows:
        echo_columns([table.columns, *table.rows], right=table.right)
    else:
        echo("no runs yet: `tinychat train TEXT` begins one")


@click.group("data", invoke_without_command=True)
@json_option
@debug_option
@click.pass_context
def data(context: click.Context, as_json: bool) -> None:
    """List the known data sets; `data get NAME` downloads one, `data make NAME` generates one of tinychat's own."""
    if context.invoked_subcommand is not None:
        return
    from tinychat.corpus.registry import KNOWN

    if as_json:
        echo_json([dataclasses.asdict(dataset) for dataset in KNOWN.values()])
    else:
        rows = [(name, byte_size(known.bytes), known.licence, known.description) for name, known in KNOWN.items()]
        echo_columns(rows)


@data.command("get")
@click.argument("name", shell_complete=complete_data_sets)
@debug_option
def data_get(name: str) -> None:
    """Download a known data set.

    Its checksum is verified. With TINYCHAT_MIRROR, it is read from that folder instead.
    """
    echo(fetch_with_bar(name, plain=load_ui_options().plain))


@data.command("make")
@click.argument("name", shell_complete=complete_data_sets)
@click.option("--out", type=click.Path(path_type=Path), help="the folder to write to [among your data sets]")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="the same seed gives the same text on every machine"
)
@click.option("--count", type=click.IntRange(min=1), help="number of training documents [the data set's own]")
@debug_option
def data_make(name: str, out: Path | None, seed: int, count: int | None) -> None:
    """Generate a data set of tinychat's own.

    NAME is smalltalk, tales, fables, phrases or phrases-es-en. The folder gets a training and a held-out split. With
    another seed or count than the data set's own, --out is needed.
    """
    from tinychat.corpus.registry import find_dataset, generate

    if not find_dataset(name).is_generated:
        raise UsageError(f"{name} is not made but published", f"`tinychat data get {name}` fetches it")
    if out is None and (seed != 1 or count is not None):  # a known data set is always the same
        remedy = "give --out FOLDER: what is made is a text of its own"
        raise UsageError(f"--seed and --count make another text than {name}", remedy)
    folder = out or paths.datasets_folder() / name
    echo(generate(name, folder, seed, count), err=True)
    echo(folder)


@click.command("config")
@json_option
@debug_option
def config(as_json: bool) -> None:
    """Show the folders in use, and every setting with its value and origin."""
    settings, ui_options = load_settings()
    folders = {
        "config_file": paths.config_file(), "data": paths.data_folder(), "models": paths.models_folder(),
        "runs": paths.runs_folder(), "transcripts": paths.transcripts_folder(), "cache": paths.cache_folder(),
        "bundled_models": paths.bundled_models(), "mirror": paths.mirror(),
    }  # fmt: skip
    in_force = [
        (setting, value, origin.name.lower())
        for setting, value, origin in (*ui_options.effective_values(), *settings.effective_values())
    ]
    if as_json:
        values = {setting.name: {"value": value, "from": origin} for setting, value, origin in in_force}
        paths_json = {name: str(path) if path else None for name, path in folders.items()}
        echo_json({**paths_json, "model": ui_options.current.model, "settings": values})
        return
    echo_columns([(name, str(path) if path else "–") for name, path in folders.items()])
    echo()
    echo_columns([(setting.name, setting.show(value), origin) for setting, value, origin in in_force])


class ExportCommand(click.Command):
    """A command whose help lists the formats."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of the formats that models can be exported to."""
        with formatter.section("Formats"):
            formatter.write_dl([(name, format.description) for name, format in FORMATS.items() if format.write])


@click.command("export", cls=ExportCommand)
@click.argument("model", shell_complete=complete_models)
@click.option(
    "--to", "to", required=True, metavar="FORMAT", shell_complete=complete_formats,
    help="the format to write, such as gguf or html",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="the folder or file to write to [NAME-FORMAT]")
@click.option("--chat", type=click.Path(path_type=Path), help="html: a conversation to begin with, which `/save` wrote")
@debug_option
def export(model: str, to: str, out: Path | None, chat: Path | None) -> None:
    """Export MODEL for another tool."""
    info = open_model(model)
    if chat is not None and to != "html":
        raise UsageError(
            f"--chat goes with --to html, not with --to {to}", "a model of another format holds no conversation"
        )
    suffix = FORMATS[to].suffix if to in FORMATS else ""
    path = out or Path(f"{nearest_name(info.name)}{suffix or f'-{to}'}")
    if suffix:
        from tinychat.commands.registry import with_ending

        path = with_ending(path, suffix)
    if path.exists() and (not path.is_dir() or suffix or any(path.iterdir())):
        raise UsageError(f"{path} already exists", "give another --out")
    if to not in FORMATS or FORMATS[to].needs_torch:
        check_torch()
    if chat is None:
        export_model(info, to, path)
    else:
        from tinychat.formats.page import write_page
        from tinychat.session.transcript import read_transcript

        write_page(info, path, chat=[(turn.prompt, turn.answer) for turn in read_transcript(chat).turns])
    if caveat := FORMATS[to].caveat(info):
        echo(caveat, err=True)
    echo(path)


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="the name of the model [the name of the folder]")
@click.option("--out", type=click.Path(path_type=Path), help="the folder to write to [among your own models]")
@debug_option
def import_(path: Path, name: str | None, out: Path | None) -> None:
    """Import a model of another tool, or one of tinychat's own; without that, `tinychat -m PATH` opens it, too.

    PATH is a folder that transformers saved, a GGUF file, a folder of llama2.c or nanoGPT, or one of tinychat;
    docs/training.md lists the architectures.
    """
    check_importable(path)
    name = check_name(name or (path.resolve().stem if path.is_file() else path.resolve().name))
    if out is None and (taken := find_taken(name)) is not None:  # a run would replace the model at its end
        raise taken_error(taken, "take another --name")
    folder = out or paths.models_folder() / name
    if folder.exists():
        raise ModelError(f"{folder} already exists", "give another --out, or remove it")
    check_torch()
    info = import_model(path, name, folder)
    echo(f"{info.summary}: `tinychat -m {typed(str(out or name))}` talks to it")


def fetch_with_bar(name: str, *, plain: bool = False) -> Path:
    """Download or generate a known data set, with a progress bar if stderr is a terminal; return its folder.

    Raises:
        SourceError: If there is no such data set, it cannot be reached, or its checksum differs.
    """
    from tinychat.corpus.registry import fetch, find_dataset, is_complete

    dataset, cache, mirror = find_dataset(name), paths.datasets_folder(), paths.mirror()
    if dataset.is_generated and not is_complete(dataset, cache / name):
        echo(f"making {name}, which takes some seconds, once", err=True)
    if dataset.is_generated or plain or mirror is not None or not is_terminal(sys.stderr):
        return fetch(name, cache=cache, mirror=mirror)

    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

    from tinychat.repl.render.console import SafeConsole

    columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=SafeConsole(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        return fetch(
            name, cache=cache, mirror=mirror, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )


def _draw(result: "Drawable") -> None:
    """Write a result as the REPL does; without lines, colours and limit of width if stdout is no terminal."""
    from tinychat.repl.render.results import draw
    from tinychat.repl.render.terminal import Terminal

    terminal = Terminal(sys.stdout, lambda: (10_000, 24), colour=False, dumb=True)
    if sys.stdout.isatty():
        options = load_ui_options()
        terminal = Terminal.standard(sys.stdout, plain=options.plain, theme=options.theme)
    draw(terminal, result)


def _file_facts(info: ModelInfo) -> dict[str, Any]:
    facts = read_file_facts(info)
    date = facts.date and facts.date.isoformat(timespec="seconds")
    return {"date": date, "bytes": facts.bytes, "loss": facts.loss}


def _model_facts(info: ModelInfo) -> dict[str, Any]:
    return {
        "name": info.name, "mode": info.mode, "tokenizer": info.tokenizer_kind, "parameters": info.parameters,
        "folder": str(info.folder), "format": info.foreign.format if info.foreign else "tinychat",
        "description": info.description,
    }  # fmt: skip
