"""Commands on training runs: start, watch, finish, compare and plot them; `/when` answers from earlier snapshots."""

import difflib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from tinychat.commands.conversation import ask_to_replace
from tinychat.commands.models import complete_models, complete_recipes, opened_message, recipes
from tinychat.commands.registry import (
    Command,
    Complete,
    Suggestion,
    command,
    complete_paths,
    complete_sources,
    first_word,
    refuse_ending,
    split_flags,
    split_words,
    to_name,
    to_path,
    unquote,
)
from tinychat.commands.results import LossCurve, Message, Plot, Result, StreamAnswer, Table, WatchRun
from tinychat.config.option import Option
from tinychat.config.settings import Settings
from tinychat.errors import ModelError, RunError, UsageError, check_torch
from tinychat.events import AnswerStart, Ended, Evaluated, Failed, Finished, Record, Stepped
from tinychat.formats.registry import list_models, open_model
from tinychat.generate.stream import stream
from tinychat.session.open_model import ShouldStop
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import ModelInfo, read_info, read_training
from tinychat.store.names import find_spelling, fold, join_name
from tinychat.store.runs import RunFolder, find_run, list_runs
from tinychat.store.weights import list_snapshots
from tinychat.textutil import compact, duration, percent
from tinychat.train.event_log import Curves

if TYPE_CHECKING:
    from tinychat.train.report import RunSummary

RUN_FLAGS = {
    "name": "the name of the run and its model",
    "recipe": "the name of a recipe (see /recipes), or its file",
    "out": "the folder to write the model to",
    "resume": "the name of a stopped run, which goes on",
}
"""Flags of `/train` that are not fields of a recipe, with their descriptions."""

MORE = "more"
"""First word of `/train more NAME --minutes 5`."""
BACKGROUND = "&"
"""End of `/train` for a run in the background, as in a shell."""
MAX_SNAPSHOT_TOKENS = 100
"""Maximum number of tokens of one answer of `/when`, so that several fit the screen."""
UNKNOWN = "–"
UNITS = {"steps": "of training", "minutes": "of training: tells which is the quicker"}
SUFFIXES = (".svg", ".png")
MAX_CURVES = 6
"""Number of curves whose colours can be told apart."""

Points = list[tuple[float, float]]
"""(step, loss) or (step, seconds)"""


def _complete_runs(session: Session, words: list[str]) -> Iterable[Suggestion]:
    """Complete the names of runs, newest first, without those already typed."""
    runs = (run for run in list_runs() if run.name not in words[:-1])
    return (Suggestion(run.name, "at work" if run.is_running() else "") for run in runs)


_complete_run = first_word(_complete_runs)
FLAG_COMPLETIONS: dict[str, Complete] = {
    "--recipe": complete_recipes, "--resume": _complete_runs, "--from": complete_models, "--out": complete_paths,
}  # fmt: skip


def _flags() -> dict[str, str]:
    """Return all flags of `/train`, without dashes, with their descriptions."""
    from tinychat.train.recipe import RECIPE_FIELDS

    fields = {field.flag[2:]: field.help for name, field in RECIPE_FIELDS.items() if name != "sources"}
    return RUN_FLAGS | fields


def _complete_train(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.train.recipe import RECIPE_FIELDS

    previous = words[-2] if len(words) > 1 else ""
    if previous in FLAG_COMPLETIONS:
        yield from FLAG_COMPLETIONS[previous](session, words[-1:])
    elif previous.startswith("--") and "=" not in previous:
        if field := RECIPE_FIELDS.get(previous.removeprefix("--").replace("-", "_")):
            yield from _suggest_values(field, words[-1])
    elif words[-1].startswith("-"):
        yield from (Suggestion(f"--{name}", about) for name, about in _flags().items())
    elif len(words) == 2 and previous == MORE:
        yield from _complete_runs(session, words[-1:])
    else:
        if not previous and list_runs():
            yield Suggestion(MORE, "of a run: /train more NAME --minutes 5")
        yield from complete_sources(session, words)
        if previous:
            yield Suggestion(BACKGROUND, "in the background")


def _suggest_values(field: Option, typed: str) -> Iterator[Suggestion]:
    """Suggest values of a field that a typed text may become, the default first, with its bounds and help."""
    default = field.typed(field.default)
    about = " · ".join(filter(None, (field.bounds, field.help)))
    booleans = ("true", "false") * (field.kind is bool)
    for value in dict.fromkeys((default, *field.values, *field.next_choices(typed), *booleans)):
        descriptions = [field.values.get(value, ""), f"default · {about}" if value == default else ""]
        yield Suggestion(value, " · ".join(filter(None, descriptions)))


@command(
    "train", "training", "make a model", usage="TEXT…|more RUN [--minutes N] [--name NAME] [--FIELD VALUE] [&]",
    example="/train my-novel.txt --minutes 5", complete=_complete_train,
)  # fmt: skip
def train(session: Session, text: str) -> Result:
    """Train a model on a text, and open it when training ends.

    TEXT is a file, a folder, a glob pattern or a known data set; `a.txt:2 b.txt:1` mixes two by weight. With & at the
    end the run trains in the background, and its newest weights answer prompts meanwhile. Flags are those of `tinychat
    train`: --minutes, --steps, --name, --recipe, --tokenizer …; fields left unset are chosen for the text and the
    machine.

    `/train TEXT --from MODEL` goes on from a model, with its tokenizer and architecture, as a new one. `/train --resume
    RUN` goes on with a run that was stopped or killed, or shows one at work. `/train more RUN --minutes 5` trains a run
    that has ended for five more minutes, and with & at the end does so in the background.
    """
    check_torch()  # before numpy is imported

    from tinychat.corpus.sources import STDIN, join_words, split_weight
    from tinychat.train.launch import (
        change_recipe,
        check_goes_on,
        describe_done,
        find_resumable,
        launch,
        resume_run,
        start_run,
    )
    from tinychat.train.recipe import choose_recipe

    started = time.monotonic()
    in_background = text.rstrip().endswith(BACKGROUND)
    words, flags = _parse_train(text.rstrip().removesuffix(BACKGROUND))
    # A text called `more` is trained on by that name, unless one word follows: that is a run.
    more = words[:1] == (MORE,) and "resume" not in flags and (len(words) == 2 or not Path(MORE).exists())
    if more and len(words) == 1:
        raise UsageError("/train more needs a run", "for example `/train more my-novel --minutes 5`")
    sources = () if more else join_words(words)
    run_flags = {name: flags.pop(name) for name in RUN_FLAGS if name in flags}
    if STDIN in (split_weight(source)[0] for source in sources):
        raise UsageError("- is the keyboard here", "name a file, or pipe the text into `tinychat train -`")
    if more or "resume" in run_flags:
        resumed = " ".join(words[1:]) if more else run_flags.pop("resume")
        check_goes_on(sources, **run_flags)
        if not (more or flags or in_background) and (run := find_resumable(resumed)).is_running():
            return _watch(session, run)
        run = resume_run(resumed)
        if not change_recipe(run, flags, more=more):
            done, _ = describe_done(run)
            return Message((done,), (f"/train more {run.typed_name} --minutes 5 goes on with it",))
        process = launch(run, stop_with_parent=not in_background, started=started)
    else:
        recipe = choose_recipe(run_flags.get("recipe"), flags | ({"sources": sources} if sources else {}))
        if not recipe.sources and not recipe.texts:
            raise UsageError("there is nothing to train on", "name a text: `/train my-novel.txt`")
        recipe_name = None if sources else run_flags.get("recipe")
        out = Path(run_flags["out"]) if "out" in run_flags else None
        run, process = start_run(
            recipe, run_flags.get("name"), recipe_name=recipe_name, out=out, stop_with_parent=not in_background,
            started=started,
        )  # fmt: skip
    return _keep_in_background(session, run, process) if in_background else WatchRun(run, process)


def _keep_in_background(session: Session, run: RunFolder, process: "Popen[bytes] | None") -> Message:
    """Let a run train in the background; a run new to the session answers from now on."""
    session.runs.add(run, process)
    note = "prompts are answered by its newest weights · /attach shows it, /finish ends it"
    return Message((f"{run.name} trains on in the background",), (note,))


def finish_training(
    session: Session, run: RunFolder, last_event: Ended | Failed | None, process: "Popen[bytes] | None" = None
) -> Result:
    """Open the model of a run that was watched; if it has no last event yet, let it train on in the background.

    Raises:
        RunError: If the run failed.
    """
    if last_event is None:
        return _keep_in_background(session, run, process)
    session.runs.remove(run)
    if isinstance(last_event, Failed):
        run.undo_failed_start()
        raise RunError(last_event.problem, last_event.remedy)
    session.runs.follow(None)  # the finished model answers, not the weights of another run
    model = session.open_model(last_event.folder)
    model.preload()
    return opened_message(model.info)


@command("attach", "training", "watch one", usage="[NAME]", example="/attach my-novel", complete=_complete_run)
def attach(session: Session, text: str) -> Result:
    """Watch a training run in the background; the default is the newest."""
    name = to_name(text)
    known = session.runs.find(name)  # its trainer may not have taken the lock yet
    return _watch(session, known.run if known else _find_active(name))


def _watch(session: Session, run: RunFolder) -> WatchRun:
    return WatchRun(run, next((one.process for one in session.runs.all if one.run == run), None))


@command("finish", "training", "end one", usage="[NAME]", example="/finish my-novel", complete=_complete_run)
def finish(session: Session, text: str) -> Result:
    """End a training run after its current step and keep everything; the default is the newest active run."""
    run = _find_active(to_name(text))
    run.send("stop")
    return Message((f"{run.name} stops after its step and keeps everything",), (f"/model {run.name} opens it then",))


def _parse_train(text: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the words of the sources and the flags of `/train`; a flag that may be repeated has a list of values."""
    from tinychat.train.recipe import RECIPE_FIELDS

    sources, typed_flags = split_flags(text)
    flags: dict[str, Any] = {}
    known = _flags()
    for typed, value in typed_flags:
        name = typed.lower().replace("_", "-")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(f"/train has no --{name}", f"did you mean --{near[0]}?" if near else "see /help train")
        if not value:
            raise UsageError(f"--{name} needs a value", known[name])
        field = RECIPE_FIELDS.get(name.replace("-", "_"))
        flags[name] = [*flags.get(name, ()), value] if field and field.kind is tuple else value
    return tuple(sources), flags


def with_finish_hint(setting: Command) -> Command:
    """Return the `/stop` command of a setting, with a hint to `/finish` while a run trains in the background."""

    def stop(session: Session, text: str) -> Result:
        result = setting.function(session, text)
        active = [one for one in session.runs.all if one.last is None]
        if isinstance(result, Message) and active:
            result = replace(result, notes=(*result.notes, f"to end the training of {active[-1].run.name}: /finish"))
        return result

    return replace(setting, function=stop)


def _find_active(name: str) -> RunFolder:
    """Return the active run of a name; if the name is empty, the newest active one."""
    from tinychat.train.launch import is_done

    if name:
        run = find_run(name)
        if not run.is_running():
            call = f"more {run.typed_name} --minutes 5" if is_done(run) else f"--resume {run.typed_name}"
            remedy = f"`/train {call}` goes on with it"
            raise RunError(f"the run {run.name!r} is not at work", remedy)
        return run
    newest = next((run for run in list_runs() if run.is_running()), None)
    if newest is None:
        raise RunError("no run is at work", "/runs lists them all, `/train TEXT` begins one")
    return newest


# --- `/when`: answers from earlier snapshots --------------------------------------------------------------------------


@command("when", "training", "an answer over time", usage="TEXT", example='/when "ROMEO:"')
def when(session: Session, text: str) -> Result:
    """Answer a prompt with snapshots of the model from the beginning of its training to the end.

    All answers are short and use the same seed. Runs keep a few snapshots of their weights from the first step to the
    last.
    """
    if not text:
        raise UsageError("/when needs a prompt", 'for example `/when "ROMEO:"`')
    model = session.model.info
    run = RunFolder(paths.runs_folder() / model.name)
    snapshots = list_snapshots(run)
    if not snapshots or read_info(run.model).architecture != model.architecture:
        raise UsageError(f"there are no snapshots of {model.name}", "models keep some when `/train` makes them")
    stepped = [event for event in run.events() if isinstance(event, Stepped)]
    named = [(_snapshot_name(snapshot.step, stepped), snapshot.path) for snapshot in snapshots]
    return StreamAnswer(partial(answer_with_snapshots, session, unquote(text), named))


def _snapshot_name(step: int, stepped: Sequence[Stepped]) -> str:
    """Return the heading of a snapshot: `step 16 · loss 2.31`."""
    near = next((event for event in stepped if step <= event.step <= 2 * step), None)
    return f"step {step:,} · loss {near.loss:.2f}" if near else f"step {step:,}"


def answer_with_snapshots(
    session: Session, prompt: str, snapshots: Sequence[tuple[str, Path]], should_stop: ShouldStop = lambda: False
) -> Iterator[Record]:
    """Answer a prompt with snapshots of the open model, all from one seed, without adding turns.

    The snapshots are names and weight files; missing files are skipped. Yields the records of all answers, each answer
    after an `AnswerStart` with its name, then one `Finished`.
    """

    def settings() -> Settings:
        current = session.settings.current
        return replace(current, max_tokens=min(current.max_tokens, MAX_SNAPSHOT_TOKENS))

    model = session.model
    finished = Finished("interrupted", 0, 0.0, model.make_answer(prompt).request.seed)
    if notice := model.unknown_notice(prompt):
        yield notice
    if model.wait(should_stop):
        engine = model.engine
        try:
            for name, path in snapshots:
                if should_stop() or not path.exists():
                    continue
                engine.reload(replace(model.info, snapshot=path))
                yield AnswerStart(name)
                answer = model.make_answer(prompt, settings=settings, seed=finished.seed)
                for record in stream(engine, answer, should_stop):
                    if isinstance(record, Finished):
                        tokens, seconds = finished.tokens + record.tokens, finished.seconds + record.seconds
                        finished = replace(record, tokens=tokens, seconds=seconds)
                    else:
                        yield record
        finally:
            engine.reload(model.info)
    yield finished


# --- `/runs` ----------------------------------------------------------------------------------------------------------


@command("runs", "training", "list or compare", usage="[RUN…]", example="/runs guide*", complete=_complete_runs)
def runs(session: Session, text: str) -> Result:
    """List the training runs, newest first, or compare some of them and the fields in which their recipes differ.

    RUN is a name or a pattern, as in `/runs guide*`. Losses are in nats per token; accuracy is the fraction of tokens
    that the model found likeliest; speed leaves out evaluations and samples.
    """
    return runs_table(split_words(text), [one.run.name for one in session.runs.all if one.last is None])


def runs_table(patterns: Sequence[str], started: Sequence[str] = ()) -> Table:
    """Return a table that compares the runs of some names or patterns or, without any, lists all runs.

    Trainers of the runs `started` are at work, though they may not have taken the lock yet.

    Raises:
        RunError: If a pattern matches no run.
    """
    if patterns:
        return _comparison_table(find_run_summaries(patterns))
    notes = ("/attach NAME watches, /train --resume NAME goes on, /runs NAME NAME compares",)
    columns = ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    rows = (
        _list_row(replace(one, state="at work") if one.state == "interrupted" and one.name in started else one)
        for one in find_run_summaries()
    )
    return Table(columns, tuple(rows), right=(2, 3, 4, 5, 6), notes=notes)


def find_run_summaries(patterns: Sequence[str] = ()) -> "list[RunSummary]":
    """Return summaries of runs, each once, in the order of the patterns; without any, of all runs, newest first.

    Raises:
        RunError: If a pattern matches no run.
    """
    from tinychat.train.report import read_run_summary

    runs_by_name = {run.name: run for run in list_runs()}
    names: dict[str, None] = {} if patterns else dict.fromkeys(runs_by_name)
    for pattern in join_name(patterns, runs_by_name):
        matching = sorted(name for name in runs_by_name if fnmatchcase(fold(name), fold(pattern)))
        if not matching:
            raise RunError(f"there is no run {pattern!r}", f"runs: {', '.join(runs_by_name) or 'none yet'}")
        names |= dict.fromkeys(matching)
    return [read_run_summary(runs_by_name[name]) for name in names]


def _loss(summary: "RunSummary", digits: int) -> str:
    """Return the loss of a run; a provisional one, which is no measure of the model yet, after a `~`.

    Where nothing was held out, the loss on the training text is named as one.
    """
    if summary.loss is None:
        return UNKNOWN
    return f"{'~' * summary.is_provisional}{summary.loss:.{digits}f}{' (train)' * (summary.split == 'train')}"


def _list_row(summary: "RunSummary") -> tuple[str, ...]:
    is_over = summary.step == summary.steps and summary.state not in ("at work", "interrupted")
    return (
        summary.name,
        summary.state,
        f"{summary.step:,}" if is_over or not summary.steps else f"{summary.step:,}/{summary.steps:,}",
        UNKNOWN if summary.parameters is None else compact(summary.parameters),
        _loss(summary, 3),
        UNKNOWN if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
        "" if summary.state != "at work" else UNKNOWN if summary.remaining is None else duration(summary.remaining),
    )


def _comparison_table(summaries: "Sequence[RunSummary]") -> Table:
    """Return a table with a column for each run, as there are more fields than runs."""
    from tinychat.train.recipe import RECIPE_FIELDS
    from tinychat.train.report import find_differences

    differences = find_differences(summaries)
    values = [_show_apart(RECIPE_FIELDS[name], [one.recipe.get(name) for one in summaries]) for name in differences]
    run_columns = [
        (
            summary.name,
            f"{summary.step:,}",
            UNKNOWN if summary.parameters is None else f"{summary.parameters:,}",
            _loss(summary, 4),
            UNKNOWN if summary.accuracy is None else percent(summary.accuracy),
            UNKNOWN if summary.tokens_per_second is None else f"{summary.tokens_per_second:,.0f}",
            duration(summary.seconds),
            *of_run,
        )
        for summary, *of_run in zip(summaries, *values, strict=True)
    ]
    headings = ("run", "step", "parameters", "val loss", "accuracy", "tok/s", "time", *differences)
    columns, *rows = zip(headings, *run_columns, strict=True)
    return Table(columns, tuple(rows), right=tuple(range(1, len(columns))))


def _show_apart(field: Option, values: Sequence[Any]) -> list[str]:
    """Format the values of runs, rounded to three digits, or to as many as tell different ones apart."""
    shown = [field.show(value) for value in values]
    for digits in (3, 4, 5):
        rounded = [
            field.show(float(f"{value:.{digits}g}")) if isinstance(value, float) else text
            for value, text in zip(values, shown, strict=True)
        ]
        if len(set(rounded)) == len(set(shown)):
            return rounded
    return shown


# --- `/plot` ----------------------------------------------------------------------------------------------------------


def _complete_plot(session: Session, words: list[str]) -> Iterator[Suggestion]:
    previous = words[-2] if len(words) > 1 else ""
    if previous == "--out":
        yield from complete_paths(session, words[-1:])
    elif previous == "--by":
        yield from (Suggestion(unit, about) for unit, about in UNITS.items())
    elif words[-1].startswith("-"):
        yield Suggestion("--by", "steps or minutes")
        yield Suggestion("--out", "a picture: .svg or .png")
    else:
        kinds = {run.name: "at work" if run.is_running() else "run" for run in list_runs()}
        for info in list_models().sound:
            kinds.setdefault(info.name, "model")
        yield from (Suggestion(name, kind) for name, kind in kinds.items() if name not in words[:-1])


@command(
    "plot", "training", "loss curves", usage="[RUN…] [--by steps|minutes] [--out FILE]",
    example="/plot one two --out curves.svg", complete=_complete_plot,
)  # fmt: skip
def plot(session: Session, text: str) -> Result:
    """Plot the losses of runs in one diagram; `--out` writes an `.svg` or `.png`.

    Lower is better, and `val`, on text not trained on, counts: where it rises
    while `train` falls, a run overfits. Only runs of one tokenizer compare.
    RUN is a run or a model; default: the active run, else the open model's.
    """
    names, by, out = _parse_plot(text)
    curves = tuple(_find_curve(name, by) for name in names) or (_default_curve(session, by),)
    plot = Plot(curves, by, out)
    return plot if out is None else ask_to_replace(out, plot)


def _parse_plot(text: str) -> tuple[list[str], str, Path | None]:
    """Return the names without duplicates, the unit, and the file to write."""
    words, typed = split_flags(text)
    flags = {"by": "steps", "out": ""}
    for name, value in typed:
        if name not in flags:
            raise UsageError(f"/plot has no --{name}", "it has --by and --out: see /help plot")
        if not value:
            raise UsageError(f"--{name} needs a value", "for example `/plot --by minutes --out curves.svg`")
        flags[name] = value
    known = [*(run.name for run in list_runs()), *(info.name for info in list_models().sound)]
    names = list(dict.fromkeys(join_name(words, known)))
    if len(names) > MAX_CURVES:
        raise UsageError(f"/plot takes up to {MAX_CURVES} runs, not {len(names)}", "plot some of them")
    if flags["by"] not in UNITS:
        raise UsageError(f"--by takes {' or '.join(UNITS)}, not {flags['by']!r}")
    return names, flags["by"], _picture_file(flags["out"]) if flags["out"] else None


def _picture_file(name: str) -> Path:
    path = to_path(name)
    if path.suffix.lower() not in SUFFIXES:
        raise refuse_ending(path, SUFFIXES)
    return path


def _find_curve(name: str, by: str) -> LossCurve:
    """Return the curve of a run or, if there is none of that name, of a model."""
    runs = {run.name: run for run in list_runs()}
    if (found := find_spelling(name, list(runs))) is not None:
        return _of_run(runs[found], by)
    try:
        info = open_model(name)
    except ModelError:
        near = difflib.get_close_matches(name, runs, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"runs: {', '.join(runs) or 'none yet'}"
        raise RunError(f"there is no run or model {name!r}", remedy) from None
    return _of_model(info, by)


def _default_curve(session: Session, by: str) -> LossCurve:
    runs = list_runs()
    if at_work := next((run for run in runs if run.is_running()), None):
        return _of_run(at_work, by)
    if session.info is not None:
        training = read_training(session.info.folder)
        if own := next((run for run in runs if run.name == training.get("run")), None):
            return _of_run(own, by)
        if training.get("curve"):
            return _of_model(session.info, by)
    if not runs:
        raise RunError("there is no run to plot", "`/train TEXT` begins one")
    return _of_run(runs[0], by)


def _of_run(run: RunFolder, by: str) -> LossCurve:
    """Return the curve recorded in the events of a run."""
    curves, times, split = Curves(), [(0.0, 0.0)], "val"
    for event in run.events():
        curves.update(event)
        if isinstance(event, Stepped):
            while times[-1][0] >= event.step:  # the run resumed from an earlier step
                times.pop()
            times.append((event.step, event.seconds))
        elif isinstance(event, Evaluated):
            split = event.split
    if not curves.training:
        raise RunError(f"the run {run.name!r} has no losses yet", "try again in a moment")
    return _curve(run.name, curves.training, curves.validation, split, by, times)


def _of_model(info: ModelInfo, by: str) -> LossCurve:
    """Return the thinned-out curve stored with a model, spreading its training time evenly over the steps."""
    training = read_training(info.folder)
    curve = training.get("curve") or {}
    losses, evaluations = ([(x, y) for x, y in curve.get(part, [])] for part in ("training", "validation"))
    if not losses:
        raise RunError(f"the model {info.name!r} carries no loss curve", "models that `/train` makes have one")
    times = [(0.0, 0.0), (losses[-1][0], float(training.get("seconds", 0.0)))]
    return _curve(info.name, losses, evaluations, training.get("split", "val"), by, times)


def _curve(name: str, training: Points, validation: Points, split: str, by: str, times: Points) -> LossCurve:
    """Return a curve by steps or by minutes, interpolated from `times` as (step, seconds)."""

    def rescale(points: Points) -> tuple[tuple[float, float], ...]:
        points = sorted(dict(points).items())  # the final evaluation may repeat an earlier step
        if by == "steps":
            return tuple(points)
        import numpy as np

        steps, seconds = zip(*times, strict=True)
        minutes = np.interp([step for step, _ in points], steps, seconds) / 60
        return tuple((float(minute), loss) for minute, (_, loss) in zip(minutes, points, strict=True))

    return LossCurve(name, rescale(training), rescale(validation), split)


COMMANDS = (train, attach, finish, when, runs, recipes, plot)
