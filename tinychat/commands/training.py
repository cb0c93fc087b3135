"""`/train` and what belongs to it: runs are processes of their own, which are started, watched and ended from here."""

import difflib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from tinychat.commands import completing
from tinychat.commands.command import Suggestion, command
from tinychat.commands.models import introduce
from tinychat.commands.results import Message, Result, Table, Watch
from tinychat.errors import RunError, UsageError
from tinychat.events import Ended, Evaluated, Event, Failed, Stepped
from tinychat.session import Session
from tinychat.store.runs import RunFolder, find_run, list_runs

OWN_FLAGS = {"name": "of the run and its model", "recipe": "to train by", "out": "folder", "resume": "a stopped run"}
"""Flags of `/train` that are no field of a recipe."""


def _flags() -> dict[str, str]:
    """Every flag of `/train`, without its dashes, with what it means."""
    from tinychat.train.recipe import RECIPE_FIELDS

    fields = {field.flag[2:]: field.help for name, field in RECIPE_FIELDS.items() if name != "sources"}
    return OWN_FLAGS | fields


def _complete_train(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.train.recipe import RECIPE_FIELDS, list_recipes

    before = words[-2] if len(words) > 1 else ""
    field = RECIPE_FIELDS.get(before.removeprefix("--").replace("-", "_"))
    if before == "--recipe":
        yield from (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())
    elif before == "--resume":
        yield from completing.runs(session, words[-1:])
    elif before == "--from":
        yield from completing.models(session, words[-1:])
    elif before.startswith("--") and field is not None and (field.choices or field.kind is bool):
        yield from (Suggestion(choice) for choice in field.choices or ("true", "false"))
    elif words[-1].startswith("-"):
        yield from (Suggestion(f"--{name}", about) for name, about in _flags().items())
    else:
        from tinychat.text.datasets import KNOWN

        yield from completing.paths(session, words)
        yield from (Suggestion(name, known.about) for name, known in KNOWN.items())


@command(
    "train", "training", "make a model", usage="TEXT… [--minutes N] [--name NAME] [--FIELD VALUE]",
    example="/train my-novel.txt --minutes 5", complete=_complete_train,
)  # fmt: skip
def train(session: Session, text: str) -> Result:
    """Train a model on a text, and open it when it is done.

    TEXT is a file, a folder, a pattern or a known data set; `a.txt:2 b.txt:1` is a mix by weights.
    What is left open is chosen from the text and the machine. Flags are those of `tinychat train`: --minutes, --steps,
    --name, --recipe, --tokenizer …
    """
    from tinychat.text.weights import split_weight
    from tinychat.train.launch import STANDARD_INPUT, change_recipe, launch, prepare_run, resume_run
    from tinychat.train.recipe import choose_recipe

    started = time.monotonic()
    sources, flags = _parse(text)
    own = {name: flags.pop(name) for name in OWN_FLAGS if name in flags}
    if STANDARD_INPUT in (split_weight(source)[0] for source in sources):
        raise UsageError("- is the keyboard here", "name a file, or pipe the text into `tinychat train -`")
    if "resume" in own:
        if sources:
            raise UsageError("a run goes on with the text it began with", "begin a new run instead")
        run = resume_run(own["resume"])
        change_recipe(run, flags)
    else:
        recipe = choose_recipe(own.get("recipe"), flags | ({"sources": sources} if sources else {}))
        if not recipe.sources:
            raise UsageError("there is nothing to train on", "name a text: `/train my-novel.txt`")
        run = prepare_run(recipe, own.get("name"), out=Path(own["out"]) if "out" in own else None)
    return Watch(run, launch(run, tied=True, started=started))


def finish_training(session: Session, run: RunFolder, last: Ended | Failed | None) -> Result:
    """What comes after a run was watched: its model is opened; None is a run that trains on in the background.

    Raises:
        RunError: it failed.
    """
    if isinstance(last, Failed):
        raise RunError(last.problem, last.remedy)
    if last is None:
        line = f"{run.name} trains on in the background"
        return Message((line,), (f"/attach shows it, /finish ends it, /model {run.name} talks to its newest weights",))
    info = session.open_model(last.folder)
    session.preload()
    return introduce(info)


@command("runs", "training", "list all")
def runs(session: Session, text: str) -> Result:
    """List the training runs, the newest first: what they are doing, how far they came, how good they are."""
    rows = tuple(_row(run) for run in list_runs())
    notes = ("/attach NAME watches one, /train --resume NAME goes on with one",)
    return Table(("run", "state", "step", "val loss"), rows, right=(2, 3), notes=notes)


@command("attach", "training", "watch one", usage="[NAME]", example="/attach my-novel", complete=completing.runs)
def attach(session: Session, text: str) -> Result:
    """Watch a training run that is at work in the background; without a name, the newest."""
    return Watch(_running(text))


@command("finish", "training", "end one", usage="[NAME]", example="/finish my-novel", complete=completing.runs)
def finish(session: Session, text: str) -> Result:
    """End a training run after its step, and keep everything; without a name, the newest that is at work."""
    run = _running(text)
    run.send("stop")
    return Message((f"{run.name} stops after its step and keeps everything",), (f"/model {run.name} opens it then",))


@command("recipes", "training", "to train by")
def recipes(session: Session, text: str) -> Result:
    """List the recipes: `/train TEXT --recipe NAME`."""
    from tinychat.train.recipe import list_recipes

    return Table(("recipe", "about"), tuple((recipe.name, recipe.about) for recipe in list_recipes()))


def _parse(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of `/train`: sources, and flags with their values; `--steps=5` is `--steps 5`."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark stands alone", "put names with spaces between two of them") from None
    sources: list[str] = []
    flags: dict[str, str] = {}
    known = _flags()
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("--"):
            sources.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        name = name.lower().replace("_", "-")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(f"/train has no --{name}", f"did you mean --{near[0]}?" if near else "see /help train")
        if not equals:
            value = next(waiting, "")
        if not value:
            raise UsageError(f"--{name} needs a value", known[name])
        flags[name] = value
    return tuple(sources), flags


def _running(name: str) -> RunFolder:
    if name:
        run = find_run(name)
        if not run.is_running():
            raise RunError(f"the run {run.name!r} is not at work", f"`/train --resume {run.name}` goes on with it")
        return run
    found = next((run for run in list_runs() if run.is_running()), None)
    if found is None:
        raise RunError("no run is at work", "/runs lists them all, `/train TEXT` begins one")
    return found


def _row(run: RunFolder) -> tuple[str, str, str, str]:
    """A run in one line: its name, state, step, and best loss."""
    last: Event | None = None
    step, loss = 0, None
    for last in run.events():
        if isinstance(last, Stepped | Ended):
            step = last.step
        if isinstance(last, Evaluated) and last.best:
            loss = last.loss
    if run.is_running():
        state = "at work"
    elif isinstance(last, Ended):
        state, loss = last.reason, last.loss
    else:
        state = "failed" if isinstance(last, Failed) else "interrupted"
    return run.name, state, f"{step:,}", "–" if loss is None else f"{loss:.3f}"


COMMANDS = (train, runs, attach, finish, recipes)
