"""Training runs: processes of their own, which are started, watched, ended and compared from here; and their past."""

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from tinychat.commands.models import introduce
from tinychat.commands.registry import (
    Command,
    Suggestion,
    command,
    complete_models,
    complete_paths,
    complete_recipes,
    complete_run,
    complete_runs,
    complete_texts,
    split_flags,
    unquote,
)
from tinychat.commands.results import Answer, Message, Result, Table, Watch
from tinychat.config.option import Option
from tinychat.config.settings import Settings
from tinychat.errors import RunError, UsageError
from tinychat.events import Ended, Failed, Finished, Part, Record, Stepped
from tinychat.generate.stream import stream
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import read_info
from tinychat.store.runs import RunFolder, find_run, list_runs
from tinychat.store.weights import list_snapshots
from tinychat.textutil import compact, duration, percent

if TYPE_CHECKING:
    from tinychat.train.run_summary import RunSummary

OWN_FLAGS = {"name": "of the run and its model", "recipe": "to train by", "out": "folder", "resume": "a stopped run"}
"""Flags of `/train` that are no field of a recipe."""

BEHIND = "&"
"""at the end of `/train`: in the background, as in a shell"""

GLIMPSE = 100
"""tokens of one answer of `/when`, at most: several are to be seen at once"""

NONE = "–"


def _flags() -> dict[str, str]:
    """Every flag of `/train`, without its dashes, with what it means."""
    from tinychat.train.recipe import RECIPE_FIELDS

    fields = {field.flag[2:]: field.help for name, field in RECIPE_FIELDS.items() if name != "sources"}
    return OWN_FLAGS | fields


def _complete_train(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.train.recipe import RECIPE_FIELDS

    before = words[-2] if len(words) > 1 else ""
    if before == "--recipe":
        yield from complete_recipes(session, words[-1:])
    elif before == "--resume":
        yield from complete_run(session, words[-1:])
    elif before == "--from":
        yield from complete_models(session, words[-1:])
    elif before == "--out":
        yield from complete_paths(session, words)
    elif before.startswith("--") and "=" not in before:
        field = RECIPE_FIELDS.get(before.removeprefix("--").replace("-", "_"))
        yield from _values_of(field) if field is not None else ()
    elif words[-1].startswith("-"):
        yield from (Suggestion(f"--{name}", about) for name, about in _flags().items())
    else:
        yield from complete_texts(session, words)
        if before:
            yield Suggestion(BEHIND, "in the background")


def _values_of(field: Option) -> Iterator[Suggestion]:
    """Values that a field can take; the first says what it is, and its bounds."""
    default = field.typed(field.default)
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
    model = session.open_model(last.folder)
    model.preload()
    return introduce(model.info)


@command("attach", "training", "watch one", usage="[NAME]", example="/attach my-novel", complete=complete_run)
def attach(session: Session, text: str) -> Result:
    """Watch a training run that is at work in the background; without a name, the newest."""
    run = _running(text)
    return Watch(run, next((one.process for one in session.runs.all if one.run == run), None))


@command("finish", "training", "end one", usage="[NAME]", example="/finish my-novel", complete=complete_run)
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


# --- a prompt answered by a model as it once was, at several times: noise that becomes words -------------------------


@command("when", "training", "an answer over time", usage="TEXT", example='/when "ROMEO:"')
def when(session: Session, text: str) -> Result:
    """Answer a prompt by the model as it was at the beginning of its training, and on its way to the end.

    The seed is the same for all, and the answers are short. Runs keep a few snapshots of their weights, from the first
    step to the last.
    """
    if not text:
        raise UsageError("/when needs a prompt", 'for example `/when "ROMEO:"`')
    model = session.model.info
    run = RunFolder(paths.runs_folder() / model.name)
    snapshots = list_snapshots(run)
    if not snapshots or read_info(run.model).architecture != model.architecture:
        raise UsageError(f"there are no snapshots of {model.name}", "models keep some when `/train` makes them")
    stepped = [event for event in run.events() if isinstance(event, Stepped)]
    past = [(_moment(snapshot.step, stepped), snapshot.path) for snapshot in snapshots]
    return Answer(partial(look_back, session, unquote(text), past))


def _moment(step: int, stepped: Sequence[Stepped]) -> str:
    """A moment of a run: `step 16 · loss 2.31`."""
    near = next((event for event in stepped if step <= event.step <= 2 * step), None)
    return f"step {step:,} · loss {near.loss:.2f}" if near else f"step {step:,}"


def look_back(
    session: Session, prompt: str, past: Sequence[tuple[str, Path]], should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Record]:
    """Answers a prompt by the session's model as it once was, each time from one seed; none of it becomes a turn.

    Args:
        past: files of weights, each with the name of its answer; a file that is gone is passed over.
    """
    model = session.model
    finished = Finished("interrupted", 0, 0.0, model.make_answer(prompt).request.seed)
    if notice := model.unknown_notice(prompt):
        yield notice
    if model.wait(should_stop):
        engine = model.engine
        try:
            for name, path in past:
                if should_stop() or not path.exists():
                    continue
                engine.reload(replace(model.info, snapshot=path))
                yield Part(name)
                answer = model.make_answer(prompt, settings=lambda: _shortened(session), seed=finished.seed)
                for record in stream(engine, answer, should_stop):
                    if isinstance(record, Finished):
                        tokens, seconds = finished.tokens + record.tokens, finished.seconds + record.seconds
                        finished = replace(record, tokens=tokens, seconds=seconds)
                    else:
                        yield record
        finally:
            engine.reload(model.info)
    yield finished


def _shortened(session: Session) -> Settings:
    settings = session.settings.current
    return replace(settings, max_tokens=min(settings.max_tokens, GLIMPSE))


# --- the training runs there are, and some of them side by side ------------------------------------------------------


@command("runs", "training", "list or compare", usage="[RUN…]", example="/runs guide*", complete=complete_runs)
def runs(session: Session, text: str) -> Result:
    """List the training runs, the newest first; or compare some of them, and what their recipes differ in.

    RUN is a name or a pattern: `/runs guide*`. Losses are in nats per token, accuracy is the share of the next tokens
    that the model found likeliest, and speed is that of steps.
    """
    return runs_table(text.split())


def runs_table(patterns: Sequence[str]) -> Table:
    """The runs of those names, each with what sets it apart; without names, what all of them are doing.

    Raises:
        RunError: there is none of a name.
    """
    if patterns:
        return _compared(find_run_summaries(patterns))
    notes = ("/attach NAME watches, /train --resume NAME goes on, /runs NAME NAME compares",)
    columns = ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    return Table(columns, tuple(map(_listed, find_run_summaries())), right=(2, 3, 4, 5, 6), notes=notes)


def find_run_summaries(patterns: Sequence[str] = ()) -> "list[RunSummary]":
    """How runs stand: in the order of the patterns that name them, each once; without patterns all, the newest first.

    Raises:
        RunError: a pattern names none.
    """
    from tinychat.train.run_summary import read_run_summary

    found = {run.name: run for run in list_runs()}
    names: dict[str, None] = {} if patterns else dict.fromkeys(found)
    for pattern in patterns:
        matching = sorted(name for name in found if fnmatchcase(name, pattern))
        if not matching:
            raise RunError(f"there is no run {pattern!r}", f"runs: {', '.join(found) or 'none yet'}")
        names |= dict.fromkeys(matching)
    return [read_run_summary(found[name]) for name in names]


def _listed(summary: "RunSummary") -> tuple[str, ...]:
    over = summary.step == summary.steps and summary.state not in ("at work", "interrupted")
    return (
        summary.name,
        summary.state,
        f"{summary.step:,}" if over or not summary.steps else f"{summary.step:,}/{summary.steps:,}",
        NONE if summary.parameters is None else compact(summary.parameters),
        NONE if summary.loss is None else f"{summary.loss:.3f}",
        NONE if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
        duration(summary.remaining) if summary.state == "at work" else "",
    )


def _compared(summaries: "Sequence[RunSummary]") -> Table:
    from tinychat.train.recipe import RECIPE_FIELDS
    from tinychat.train.run_summary import find_differences

    differences = find_differences(summaries)
    facts = [
        (
            summary.name,
            f"{summary.step:,}",
            NONE if summary.parameters is None else f"{summary.parameters:,}",
            NONE if summary.loss is None else f"{summary.loss:.4f}",
            NONE if summary.accuracy is None else percent(summary.accuracy),
            NONE if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
            duration(summary.seconds),
            *(RECIPE_FIELDS[name].show(summary.recipe.get(name)) for name in differences),
        )
        for summary in summaries
    ]
    heads = ("run", "steps", "parameters", "val loss", "accuracy", "tok/s", "time", *differences)
    columns, *rows = zip(heads, *facts, strict=True)  # runs beside each other, as facts are more
    return Table(columns, tuple(rows), right=tuple(range(1, len(columns))))


COMMANDS = (train, attach, finish, when, runs)
