"""`/train` and what belongs to it: runs are processes of their own, which are started, watched and ended from here."""

import difflib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from tinychat.commands import completing
from tinychat.commands.arguments import split_flags
from tinychat.commands.command import Command, Suggestion, command
from tinychat.commands.models import introduce
from tinychat.commands.results import Message, Result, Watch
from tinychat.errors import RunError, UsageError
from tinychat.events import Ended, Failed
from tinychat.session import Session
from tinychat.store.runs import RunFolder, find_run, list_runs

if TYPE_CHECKING:
    from tinychat.train.fields import RecipeField

OWN_FLAGS = {"name": "of the run and its model", "recipe": "to train by", "out": "folder", "resume": "a stopped run"}
"""Flags of `/train` that are no field of a recipe."""

BEHIND = "&"
"""at the end of `/train`: in the background, as in a shell"""


def _flags() -> dict[str, str]:
    """Every flag of `/train`, without its dashes, with what it means."""
    from tinychat.train.recipe import RECIPE_FIELDS

    fields = {field.flag[2:]: field.help for name, field in RECIPE_FIELDS.items() if name != "sources"}
    return OWN_FLAGS | fields


def _complete_train(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.train.recipe import RECIPE_FIELDS, list_recipes

    before = words[-2] if len(words) > 1 else ""
    if before == "--recipe":
        yield from (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())
    elif before == "--resume":
        yield from completing.runs(session, words[-1:])
    elif before == "--from":
        yield from completing.models(session, words[-1:])
    elif before == "--out":
        yield from completing.paths(session, words)
    elif before.startswith("--") and "=" not in before:
        field = RECIPE_FIELDS.get(before.removeprefix("--").replace("-", "_"))
        yield from _values_of(field) if field is not None else ()
    elif words[-1].startswith("-"):
        yield from (Suggestion(f"--{name}", about) for name, about in _flags().items())
    else:
        from tinychat.corpus.registry import KNOWN

        yield from completing.paths(session, words)
        yield from (Suggestion(name, known.about) for name, known in KNOWN.items())
        if before:
            yield Suggestion(BEHIND, "in the background")


def _values_of(field: "RecipeField") -> Iterator[Suggestion]:
    """Values that a field can take; the first says what it is, and its bounds."""
    default = field.show(field.default).replace("–", "auto")
    about = " · ".join(filter(None, (field.bounds, field.help)))
    for value in dict.fromkeys((default, *field.values, *field.choices, *(("true", "false") * (field.kind is bool)))):
        told = [field.values.get(value, ""), f"default · {about}" if value == default else ""]
        yield Suggestion(value, " · ".join(filter(None, told)))


@command(
    "train", "training", "make a model", usage="TEXT… [--minutes N] [--name NAME] [--FIELD VALUE] [&]",
    example="/train my-novel.txt --minutes 5", complete=_complete_train,
)  # fmt: skip
def train(session: Session, text: str) -> Result:
    """Train a model on a text, and open it when it is done.

    TEXT is a file, a folder, a pattern or a known data set; `a.txt:2 b.txt:1` is a mix by weights.
    With & at the end it trains in the background, and prompts are answered by its newest weights meanwhile.
    What is left open is chosen from the text and the machine. Flags are those of `tinychat train`: --minutes, --steps,
    --name, --recipe, --tokenizer …
    """
    from tinychat.corpus.sources import STDIN, split_weight
    from tinychat.train.launch import change_recipe, launch, prepare_run, resume_run
    from tinychat.train.recipe import choose_recipe

    started = time.monotonic()
    behind = text.split()[-1:] == [BEHIND]
    sources, flags = _parse(text.rstrip().removesuffix(BEHIND) if behind else text)
    own = {name: flags.pop(name) for name in OWN_FLAGS if name in flags}
    if STDIN in (split_weight(source)[0] for source in sources):
        raise UsageError("- is the keyboard here", "name a file, or pipe the text into `tinychat train -`")
    if "resume" in own:
        if sources:
            raise UsageError("a run goes on with the text it began with", "begin a new run instead")
        run = resume_run(own["resume"])
        change_recipe(run, flags)
    else:
        recipe = choose_recipe(own.get("recipe"), flags | ({"sources": sources} if sources else {}))
        if not recipe.sources and not recipe.texts:
            raise UsageError("there is nothing to train on", "name a text: `/train my-novel.txt`")
        run = prepare_run(
            recipe,
            own.get("name"),
            recipe_name=None if sources else own.get("recipe"),
            out=Path(own["out"]) if "out" in own else None,
        )
    process = launch(run, tied=not behind, started=started)
    return _leave_behind(session, run, process) if behind else Watch(run, process)


def _leave_behind(session: Session, run: RunFolder, process: "Popen[bytes] | None") -> Message:
    """Lets a run train on in the background; from now on it answers, if the session has not known of it before."""
    session.runs.add(run, process)
    notes = ("prompts are answered by its newest weights · /attach shows it, /stop ends it",)
    return Message((f"{run.name} trains on in the background",), notes)


def finish_training(
    session: Session, run: RunFolder, last: Ended | Failed | None, process: "Popen[bytes] | None" = None
) -> Result:
    """What comes after a run was watched: its model is opened; None is a run that trains on in the background.

    Raises:
        RunError: it failed.
    """
    if last is None:
        return _leave_behind(session, run, process)
    session.runs.remove(run)
    if isinstance(last, Failed):
        raise RunError(last.problem, last.remedy)
    session.runs.follow(None)  # what the run has made takes the place of whatever answered
    info = session.open_model(last.folder)
    session.preload()
    return introduce(info)


@command("attach", "training", "watch one", usage="[NAME]", example="/attach my-novel", complete=completing.runs)
def attach(session: Session, text: str) -> Result:
    """Watch a training run that is at work in the background; without a name, the newest."""
    run = _running(text)
    return Watch(run, next((one.process for one in session.runs.all if one.run == run), None))


@command("finish", "training", "end one", usage="[NAME]", example="/finish my-novel", complete=completing.runs)
def finish(session: Session, text: str) -> Result:
    """End a training run after its step, and keep everything; without a name, the newest that is at work."""
    run = _running(text)
    run.send("stop")
    return Message((f"{run.name} stops after its step and keeps everything",), (f"/model {run.name} opens it then",))


def _parse(text: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The words of `/train`: sources, and flags with their values; `--steps=5` is `--steps 5`.

    A flag that may be given several times has a list of them.
    """
    from tinychat.train.recipe import RECIPE_FIELDS

    sources, given = split_flags(text)
    flags: dict[str, Any] = {}
    known = _flags()
    for typed, value in given:
        name = typed.lower().replace("_", "-")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(f"/train has no --{name}", f"did you mean --{near[0]}?" if near else "see /help train")
        if not value:
            raise UsageError(f"--{name} needs a value", known[name])
        field = RECIPE_FIELDS.get(name.replace("-", "_"))
        flags[name] = [*flags.get(name, ()), value] if field and field.kind is tuple else value
    return tuple(sources), flags


def or_finish(setting: Command) -> Command:
    """The command of a setting, `/stop`, that without a value ends the run in the background where there is one."""

    def stop(session: Session, text: str) -> Result:
        at_work = [one for one in session.runs.all if one.last is None]
        return (
            setting.function(session, text) if text or not at_work else finish.function(session, at_work[-1].run.name)
        )

    more = "Without a text, while a run trains in the background: end that run and keep everything."
    return replace(setting, function=stop, help=f"{setting.help}\n{more}")


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


COMMANDS = (train, attach, finish)
