"""Start trainers: prepare the folder of a run, start the process that trains in it, and its workers. Needs no torch.

The process of rank 0 leads: it reads the text, plans, evaluates and writes all files. The others are workers, which
compute rows of each batch. A trainer starts them (`--devices`), or `torchrun` or SLURM's `srun` starts all processes.
"""

import glob
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from tinychat.atomic import atomic_file, atomic_folder, atomic_write
from tinychat.corpus.registry import KNOWN
from tinychat.corpus.sources import (
    STDIN,
    begins_as_json,
    check_is_file,
    check_sources,
    source_name,
    split_weight,
    with_weight,
)
from tinychat.corpus.types import Mode
from tinychat.errors import ModelError, RunError, SourceError, UsageError
from tinychat.events import Ended, Stepped
from tinychat.formats.registry import find_format, import_model, open_model
from tinychat.generate.loading import THREAD_ENVIRONMENT
from tinychat.model.shapes import checked_config
from tinychat.store import paths
from tinychat.store.housekeeping import find_taken, taken_error
from tinychat.store.models import (
    CONFIG,
    SOURCE_TOKENIZER,
    TOKENIZER,
    TRAINING,
    WEIGHTS,
    ModelFiles,
    ModelInfo,
)
from tinychat.store.names import check_name, find_named, slug, typed
from tinychat.store.runs import LOCK_TIMEOUT, RunFolder, find_run
from tinychat.textutil import count, shorten
from tinychat.tokenizer.tokenizer import load_tokenizer
from tinychat.tokenizer.training import VOCAB_SIZES, check_kind
from tinychat.train.checkpoint import newest_step
from tinychat.train.event_log import rewind
from tinychat.train.loggers import check_loggers
from tinychat.train.recipe import (
    LENGTH_FIELDS,
    MODEL_FIELDS,
    RECIPE_FIELDS,
    Recipe,
    load_recipe,
    parse_overrides,
    planned_interval,
)
from tinychat.train.sizes import check_architecture
from tinychat.untrusted import call_module, expand_home, replace_surrogates

FREE_FIELDS = ("context_length", "dropout", "attention_dropout", "initialization")
"""Fields of the architecture that a base model's weights do not depend on; the context length may only shrink."""
CHANGEABLE = ("devices", "strategy", "threads", "grad_accum_steps", "log")
"""Recipe fields that any resumed run may change, as they affect how a step is computed or logged but not its result."""
OUT_OF_MEMORY = 77
"""Exit code of a worker that ran out of memory."""
DETECTION_SECONDS, EXIT_SECONDS = 10.0, 2.0
"""Seconds for the leader to notice by itself that a worker is gone, and for a worker to exit."""
POLL_INTERVAL = 0.5
"""Seconds between two checks on other processes."""
OUT_OF_MEMORY_REMEDY = (
    "go on in smaller parts, --resume NAME --grad-accum-steps 2, 4 or 8, or with a shard each, --strategy fsdp"
)
"""Remedy for a run of several processes that ran out of memory."""
WORKER_LOST = ("another process of this run is gone", "its log may say why; --resume goes on from the last checkpoint")


def prepare_run(
    recipe: Recipe,
    name: str | None = None,
    *,
    recipe_name: str | None = None,
    out: Path | None = None,
    stdin: BinaryIO | None = None,
) -> RunFolder:
    """Make the folder of a new run, with the recipe in it; of a mistake that can be found before, nothing is left.

    Paths in the recipe become absolute and standard input (`stdin`) is saved in the folder, so that the run can resume
    from any working directory at any time. Without a name, the run is named after its recipe if that brings the data
    (`recipe_name`), else after the first source, with a number if the name is taken. The final model goes to `out`, or
    to the user's models folder under the run's name.

    Raises:
        SourceError: If a source cannot be found, or its beginning cannot be read as a text.
        UsageError: If there is no source, the name is invalid, `out` cannot become a model's folder, or the recipe
            contradicts the base model.
        RunError: If the name is taken.
        ModelError: If there is no such base model, or two choices of the architecture contradict each other.
        TokenizerError: If there is no such tokenizer.
    """
    if out is not None:
        out = expand_home(out).absolute()
        _check_out(out)
    if not recipe.sources and not recipe.texts:
        raise UsageError(
            "there is nothing to train on", "name a text, or - for what is piped: `tinychat train my-novel.txt`"
        )
    for source in recipe.sources:
        _check_source(source)
    try:
        f"{recipe.to_toml()}{out}".encode()
    except UnicodeEncodeError as error:
        line = error.object[: error.end].splitlines()[-1].strip(' "')
        raise UsageError(f"not UTF-8: {shorten(ascii(line), 200)}", "rename the file: a recipe is text") from None
    check_loggers(recipe.log)
    if name is not None:
        name = _free_name(name, among_bundled=out is None)
    model = None if recipe.from_model is None else open_model(recipe.from_model)
    if model is not None:
        recipe = adopt_architecture(recipe, model).merged({"from_model": portable_reference(str(recipe.from_model))})
    check_architecture(recipe)
    tokenizer = recipe.tokenizer
    if tokenizer is not None:
        tokenizer = _check_tokenizer(tokenizer)
    if recipe.sources:
        mode = cast("Mode | None", recipe.mode)
        cache = paths.datasets_folder()
        check_sources(recipe.sources, cache=cache, column=recipe.column, field=recipe.field, mode=mode)
    # Only now, as reading may take minutes, in which other runs begin.
    names = [name] if name is not None else _new_names(recipe, recipe_name)
    run = _make_folder(names, among_bundled=out is None)
    with removed_on_error(run):
        run.checkpoints.mkdir()
        if model is not None:
            copy_base_model(model, run)
        sources = [_absolute_source(source, recipe, run, stdin) for source in recipe.sources]
        if out is not None:
            atomic_write(run.out_file, str(out))
        save_recipe(run, recipe.merged({"sources": sources, "tokenizer": tokenizer}))
    return run


def _new_names(recipe: Recipe, recipe_name: str | None) -> Iterator[str]:
    """Yield names for a run, after its recipe or its first source: `novel`, `novel-2`, …"""
    recipe_slug = slug(Path(recipe_name or "texts").stem)
    base = name_for(recipe.sources) if recipe.sources and not recipe_name else recipe_slug
    yield base
    yield from (f"{base}-{number}" for number in itertools.count(2))


def _make_folder(names: Iterable[str], *, among_bundled: bool) -> RunFolder:
    """Make the folder of a run under the first name that is free, in place of a void run of that name.

    `among_bundled` is as in `find_taken`.

    Raises:
        RunError: If all names are taken.
    """
    from filelock import FileLock

    paths.cache_folder().mkdir(parents=True, exist_ok=True)
    with FileLock(paths.cache_folder() / "names.lock"):  # else another process could make a run where the void one was
        for name in names:
            if find_taken(name, among_bundled=among_bundled) is None:
                if (void := find_named(paths.runs_folder(), name)) is not None:
                    RunFolder(void).remove()
                run = RunFolder(paths.runs_folder() / name)
                with suppress(FileExistsError):  # what could not be removed
                    run.path.mkdir(parents=True)
                    return run
    raise _taken(name)


def _free_name(name: str, *, among_bundled: bool) -> str:
    """Return a name that a person gave, in the form that is stored; it must be valid and free, as in `find_taken`."""
    name = check_name(name)
    if find_taken(name, among_bundled=among_bundled) is not None:
        raise _taken(name)
    return name


def _taken(name: str) -> RunError:
    taken, has_run = find_taken(name) or name, find_named(paths.runs_folder(), name) is not None
    return taken_error(taken, "take another --name", f"go on with it: --resume {typed(taken)}" if has_run else "")


@contextmanager
def removed_on_error(run: RunFolder) -> Iterator[None]:
    """Remove the folder of a new run if the block raises, as on a full disk: a run that cannot begin leaves nothing."""
    try:
        yield
    except BaseException:
        run.remove()
        raise


def start_run(
    recipe: Recipe,
    name: str | None = None,
    *,
    recipe_name: str | None = None,
    out: Path | None = None,
    stdin: BinaryIO | None = None,
    stop_with_parent: bool,
    started: float | None = None,
) -> "tuple[RunFolder, subprocess.Popen[bytes]]":
    """Prepare a new run and start its trainer; arguments and errors are those of `prepare_run` and `launch`."""
    run = prepare_run(recipe, name, recipe_name=recipe_name, out=out, stdin=stdin)
    with removed_on_error(run):
        return run, launch(run, stop_with_parent=stop_with_parent, started=started)


def adopt_architecture(recipe: Recipe, info: ModelInfo) -> Recipe:
    """Fill the architecture of the model that a run starts from (`--from`) into the recipe.

    Raises:
        UsageError: If the recipe sets another architecture or a tokenizer, or a translator should do something else.
    """
    config = checked_config(info)
    translates = info.mode == "translation"
    if translates and recipe.mode is None:
        recipe = recipe.merged({"mode": info.mode})
    if translates != (recipe.mode == "translation"):
        kind = "translates" if translates else "has no encoder to translate with"
        raise UsageError(f"{info.name} {kind}, so --mode {recipe.mode} cannot go on with it", "name another model")
    if recipe.tokenizer is not None:
        raise UsageError(f"--tokenizer cannot be changed: {info.name} brings its own", "leave it out")
    architecture = config.to_dict()
    for name in ("vocab_size", *MODEL_FIELDS):
        value, own, field = getattr(recipe, name), architecture[name], RECIPE_FIELDS[name]
        if name not in FREE_FIELDS and value not in (None, own):
            raise UsageError(
                f"{field.flag} {field.show(value)} contradicts {info.name}, which has {field.show(own)}",
                "leave it out, or train without --from",
            )
    if recipe.context_length is not None and recipe.context_length > config.context_length:
        problem = f"--context-length {recipe.context_length} is more than {info.name} was trained for"
        raise UsageError(f"{problem}, {config.context_length}", "leave it out")
    values = {name: architecture[name] for name in MODEL_FIELDS if name != "dropout" and getattr(recipe, name) is None}
    return recipe.merged({name: value for name, value in values.items() if value is not None})


def portable_reference(model: str) -> str:
    """Return a reference to a model that holds in any working directory: its name, or its absolute path."""
    path = expand_home(model)
    return str(path.absolute()) if (path / CONFIG).is_file() or find_format(path) else model


def copy_base_model(info: ModelInfo, run: RunFolder) -> None:
    """Copy a base model into the folder of a run, so that the run can resume when the model is gone."""
    if info.foreign is not None:
        import_model(info.folder, info.name, run.base_model)
        shutil.copyfile(run.base_model / TOKENIZER, run.tokenizer_file)
        return
    files = info.files or ModelFiles(info.folder)
    run.base_model.mkdir()
    for name in (CONFIG, TOKENIZER, WEIGHTS):
        _copy_file(files, name, run.base_model / name)
    if files.has(TRAINING):
        _copy_file(files, TRAINING, run.base_model / TRAINING)
    shutil.copyfile(run.base_model / TOKENIZER, run.tokenizer_file)
    if info.mode == "translation":
        _copy_file(files, SOURCE_TOKENIZER if files.has(SOURCE_TOKENIZER) else TOKENIZER, run.source_tokenizer_file)


def _copy_file(files: ModelFiles, name: str, target: Path) -> None:
    with target.open("xb") as file:
        shutil.copyfileobj(files.open(name), file)


def resume_run(name: str) -> RunFolder:
    """Return the run of a name, to resume it.

    Raises:
        RunError: If there is no such run, or a trainer is at work on it.
    """
    run = find_resumable(name)
    if run.is_running():
        raise _already_running(run)
    return run


def find_resumable(name: str) -> RunFolder:
    """Return the run of a name.

    Raises:
        RunError: If there is none; it says if there is a model of that name.
    """
    try:
        return find_run(name)
    except RunError:
        with suppress(ModelError):  # there is neither: the names of the runs help more
            open_model(name)
            problem = f"there is no run {name!r}, only a model"
            raise RunError(problem, f"train TEXT --from {typed(name)} goes on from it") from None
        raise


def check_goes_on(sources: Sequence[str], **flags: object) -> None:
    """Check that neither a text nor a flag of new runs only, such as `--out`, is given for a run that goes on.

    Raises:
        UsageError: If one is.
    """
    if sources:
        raise UsageError("a run goes on with the text it began with", "begin a new run instead")
    if given := ", ".join(f"--{name}" for name, value in flags.items() if value is not None):
        raise UsageError(f"a run goes on as it began: {given} cannot change it", "begin a new run instead")


def change_recipe(run: RunFolder, overrides: Mapping[str, object], *, more: bool = False) -> bool:
    """Change fields of a run's recipe before it resumes; return whether there is anything left to do.

    A field of `LENGTH_FIELDS` extends the run: to that length in all or, if `more`, by it; None leaves it as long as it
    was planned.

    Raises:
        UsageError: If a field is neither a length nor in `CHANGEABLE`, a value is invalid, the run is that long, or
            there should be more of a run that has not ended.
    """
    values = parse_overrides(overrides)
    values = {name: value for name, value in values.items() if value is not None or name not in LENGTH_FIELDS}
    allowed = (*LENGTH_FIELDS, *CHANGEABLE)
    if flags := ", ".join(RECIPE_FIELDS[name].flag for name in values if name not in allowed):
        free = ", ".join(RECIPE_FIELDS[name].flag for name in allowed)
        raise UsageError(f"a run goes on as it began: {flags} cannot change it", f"begin a new run; {free} may change")
    run.restore_earlier()  # where nobody has seen that a trainer failed
    old = load_recipe(run.recipe_file)
    recipe, used = old.merged(values), measure_length(run, old)
    check_loggers(recipe.log)
    extends = any(name in LENGTH_FIELDS for name in values)
    if more:
        if not _has_ended(run):  # more than it has behind it may be less than what is planned
            remedy = f"`/train --resume {run.typed_name}` goes on with it"
            raise UsageError(f"{run.name} has not ended, so that nothing can be added to it", remedy)
        if not extends:
            raise UsageError("how much more?", f"for example `/train more {run.typed_name} --minutes 5`")
        if not recipe.length.keys() <= used.keys():
            raise UsageError(f"{run.name} has no epochs to add to", "--minutes 5 or --steps 500 can be added")
        recipe = recipe.merged({name: value + used[name] for name, value in recipe.length.items()})
    for name, value in recipe.length.items() if extends else ():
        if value <= used.get(name, 0):
            raise length_error(run, name, value, used[name])
    if extends and old.steps is not None and old.evaluate_every == planned_interval(old.steps):
        recipe = recipe.merged({"evaluate_every": None})  # planned for the old length, and for the new one anew
    if recipe != old:
        _keep_earlier(run)
        save_recipe(run, recipe)
    return extends or not is_done(run)


def _keep_earlier(run: RunFolder) -> None:
    """Keep the recipe and the events of a run that has ended, for `restore_earlier`, until its next step."""
    if _has_ended(run) and not run.earlier.is_dir():
        with atomic_folder(run.earlier) as draft:
            for file in (run.recipe_file, run.events_file):
                shutil.copyfile(file, draft / file.name)


def _has_ended(run: RunFolder) -> bool:
    """Return whether a run has come to an end, planned or asked for, and was not interrupted."""
    last = deque(run.events(), maxlen=1)
    return bool(last) and isinstance(last[0], Ended)


def measure_length(run: RunFolder, recipe: Recipe) -> dict[str, float]:
    """Return how many minutes, steps and, if the recipe counts them, epochs a run has trained for."""
    stepped = None
    for event in run.events():
        stepped = event if isinstance(event, Stepped) else stepped
    if stepped is None:
        return {"minutes": 0.0, "steps": 0} | dict.fromkeys(recipe.length, 0)
    used: dict[str, float] = {"minutes": stepped.seconds / 60, "steps": stepped.step}
    if recipe.epochs is not None:
        used["epochs"] = recipe.epochs * stepped.progress
    return used | (recipe.length if is_done(run) else {})


def _figure(length: float, separator: str = "") -> str:
    """Format a length: a number of steps in full, minutes or epochs to four digits, or more before the point."""
    return f"{length:{separator}.4g}" if isinstance(length, float) and length < 1000 else f"{length:{separator}.0f}"


def length_error(run: RunFolder, name: str, length: float, used: float) -> UsageError:
    """Return the error for a length, by its name of `LENGTH_FIELDS`, that is not more than a run has `used`."""
    flag, now = RECIPE_FIELDS[name].flag, f"{_figure(used, ',')} that {run.name} has behind it"
    remedy = f"name the length in all, such as {flag} {_figure(2 * used)}"
    return UsageError(f"{flag} {_figure(length, ',')} is not more than the {now}", remedy)


def describe_done(run: RunFolder) -> tuple[str, str]:
    """Return a line that says that a run is done, and one that says how to extend it."""
    ended = deque(run.events(), maxlen=1)[0]
    assert isinstance(ended, Ended)
    ((name, length),) = load_recipe(run.recipe_file).length.items()
    more = f"{RECIPE_FIELDS[name].flag} {_figure(2 * length)}"
    problem = f"{run.name} is done: {count(ended.step, 'step')}, {ended.split} loss {ended.loss:.4f}"
    return problem, f"it goes on with a new length in all: `tinychat train --resume {run.typed_name} {more}`"


def is_done(run: RunFolder) -> bool:
    """Return whether a run has ended as planned and its model is there."""
    last = deque(run.events(), maxlen=1)
    return bool(last) and isinstance(last[0], Ended) and last[0].reason == "done" and run.final_folder.is_dir()


def save_recipe(run: RunFolder, recipe: Recipe) -> None:
    """Write a run's recipe."""
    atomic_write(run.recipe_file, recipe.to_toml())


def launch(run: RunFolder, *, stop_with_parent: bool, started: float | None = None) -> "subprocess.Popen[bytes]":
    """Start the trainer of a run in a session of its own; its output other than events goes to the run's log.

    With `stop_with_parent`, it stops, saving everything, when this process exits, unless `background` was sent before.
    `--minutes` counts from `started`, `time.monotonic()` when the person gave the command; None means now.

    Raises:
        RunError: If another trainer is at work on the run.
        OSError: If the run's folder cannot be written.
    """
    try:
        with run.lock(timeout=LOCK_TIMEOUT):  # never while another trainer writes
            run.control_file.unlink(missing_ok=True)
            _keep_earlier(run)
            # Before anyone reads the events: remove those that will happen again, and the one that ended the run.
            rewind(run.events_file, newest_step(run.checkpoints))
    except TimeoutError:
        raise _already_running(run) from None
    parent = ("--parent", str(os.getpid())) if stop_with_parent else ()
    began = repr(started or time.monotonic())
    command, environment = call_module("tinychat.train", str(run.path), "--started", began, *parent)
    with run.log_file.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**THREAD_ENVIRONMENT, **environment},
        )


def name_for(sources: Sequence[str]) -> str:
    """Return a name for a run after its first source: `texts/My Novel.txt` → `my-novel`.

    Raises:
        UsageError: If the weight of the source is not a finite number above 0.
    """
    return slug(source_name(split_weight(sources[0])[0]))


def _already_running(run: RunFolder) -> RunError:
    return RunError(f"the run {run.name!r} is at work already", f"`/attach {run.typed_name}` in the REPL shows it")


def _check_out(folder: Path) -> None:
    """Check before training that a model can be written to a folder, which must be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder} already exists", "name a folder that is new or empty")
    parent = next(parent for parent in folder.parents if parent.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out {folder}: nothing can be written in {parent}", "name another folder")


def _check_tokenizer(kind: str) -> str:
    """Check a tokenizer that is given as a kind, a file or a data set; the path of a file becomes absolute."""
    if kind not in VOCAB_SIZES and (path := expand_home(kind)).exists():
        load_tokenizer(path)
        return str(path.absolute())
    if kind not in KNOWN:
        check_kind(kind)
    return kind


def _check_source(source: str) -> None:
    """Check the weight of a source, that it is no device or socket, and that a recipe can hold its path."""
    path = expand_home(split_weight(source)[0])
    absolute = str(path.absolute())
    if source != STDIN and (shown := replace_surrogates(absolute)) != absolute:
        raise SourceError(f"{shown} has a name that is not UTF-8", "rename it")
    if path.exists() and not (path.is_dir() or path.is_fifo()):
        check_is_file(path)


def _absolute_source(source: str, recipe: Recipe, run: RunFolder, stdin: BinaryIO | None) -> str:
    """Return a source that can be read again from any working directory; save one that can be read only once."""
    source, weight = split_weight(source)
    path = expand_home(source)
    if source == STDIN:
        source = str(_save_stream(stdin or sys.stdin.buffer, recipe, run))
    elif path.is_fifo():  # such as the shell's <(…)
        with path.open("rb") as stream:
            source = str(_save_stream(stream, recipe, run))
    elif path.exists() or glob.has_magic(source):
        source = str(path.absolute())
    return with_weight(source, weight)  # else a data set by name, or a mistake reported when the text is read


def _save_stream(stream: BinaryIO, recipe: Recipe, run: RunFolder) -> Path:
    """Copy a stream into the run's folder, with a suffix that follows from its format."""
    first = stream.read(1 << 20)
    is_json = recipe.field is not None or begins_as_json(first)
    suffix = ".jsonl" if is_json else ".csv" if recipe.column is not None else ".txt"
    number = sum(1 for _ in run.path.glob("stdin*"))
    copy = run.path / f"stdin{f'-{number + 1}' if number else ''}{suffix}"
    with atomic_file(copy) as file:
        file.write(first)
        shutil.copyfileobj(stream, file)
    return copy


# --- processes that train together ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProcessRank:
    """The rank of a process, from 0, and the number of processes: in the whole group and on this machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


ALONE = ProcessRank()


def find_process_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank:
    """Return the rank set by `torchrun`, SLURM's `srun` or the leader; `ALONE` if none of them started this process."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return ProcessRank(*(int(environment.get(name, default)) for name, default in zip(names, "0101", strict=True)))
    # SLURM sets it for each task of a step, not in the batch script around it.
    size = int(environment.get("SLURM_STEP_NUM_TASKS", 1))
    if size > 1 and "SLURM_PROCID" in environment:
        # `2(x3),1`: two tasks on each of three machines, then one
        groups = re.findall(r"(\d+)(?:\(x(\d+)\))?", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
        sizes = [int(tasks) for tasks, times in groups for _ in range(int(times or 1))]
        local_size = dict(enumerate(sizes)).get(int(environment.get("SLURM_NODEID", 0)), size)
        return ProcessRank(int(environment["SLURM_PROCID"]), size, int(environment.get("SLURM_LOCALID", 0)), local_size)
    return ALONE


class Workers:
    """The workers that the leader of `size` processes starts on its machine; they exit when it does, in any case.

    If a worker exits too soon, waiting for it would never end: the leader calls `on_failure` with the problem and the
    remedy, and exits.
    """

    def __init__(self, size: int, on_failure: Callable[[str, str], object]) -> None:
        self._stopping = False
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        rendezvous = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
        os.environ.update(rendezvous, LOCAL_WORLD_SIZE=str(size), RANK="0", LOCAL_RANK="0")
        loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
        if loopback:  # this machine's host name may resolve to anything, or to nothing
            os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
        command, environment = call_module("tinychat.train", "--parent", str(os.getpid()))
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**environment, "RANK": rank, "LOCAL_RANK": rank})
            for rank in map(str, range(1, size))
        ]
        threading.Thread(target=self._watch, args=(on_failure,), daemon=True).start()

    def _watch(self, on_failure: Callable[[str, str], object]) -> None:
        while (failure := self._find_failure()) is None:
            if self._stopping:
                return
            time.sleep(POLL_INTERVAL)
        time.sleep(DETECTION_SECONDS)
        if not self._stopping:
            on_failure(*failure)
            os._exit(1)

    def describe_failure(self) -> tuple[str, str]:
        """Return the problem and the remedy after the connection to a worker was lost."""
        until = time.monotonic() + EXIT_SECONDS
        while (failure := self._find_failure()) is None and time.monotonic() < until:
            time.sleep(0.05)
        return failure or WORKER_LOST

    def _find_failure(self) -> tuple[str, str] | None:
        """Return the problem and the remedy if a worker has exited too soon; else None."""
        for rank, process in enumerate(self._processes, 1):
            code = process.poll()
            if code is None or self._stopping:
                continue
            who = f"process {rank + 1} of {len(self._processes) + 1}"
            if code == OUT_OF_MEMORY:
                return f"{who} ran out of memory", OUT_OF_MEMORY_REMEDY
            if code == -signal.SIGKILL:
                return f"{who} was killed (signal 9): memory may have run out", OUT_OF_MEMORY_REMEDY
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            return f"{who} {how}", "the run's trainer.log may say why; --resume goes on from the last checkpoint"
        return None

    def stop(self) -> None:
        """Wait for the workers to exit; kill those that do not."""
        self._stopping = True
        until = time.monotonic() + EXIT_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python, torch or a library under torch means that memory ran out."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    # Messages of torch on CPU; of CUDA, cuBLAS and MPS; of C++.
    told = _mentions(error, "can't allocate memory", "out of memory", "bad_alloc")
    return told or bool(kinds & {"MemoryError", "OutOfMemoryError"})


def is_disconnected(error: BaseException) -> bool:
    """Return whether an error of torch means that another process is gone."""
    return _mentions(error, "gloo", "nccl", "connection", "peer")


def _mentions(error: BaseException, *words: str) -> bool:
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def become_worker() -> NoReturn:
    """Replace this process, started by `torchrun` or SLURM, with a worker."""
    command, environment = call_module("tinychat.train", "--parent", str(os.getppid()))
    os.execve(sys.executable, command, environment)


def exit_with_parent(parent: int) -> None:
    """Exit this process soon after its parent has exited."""

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL)
        os._exit(1)

    threading.Thread(target=poll, daemon=True).start()
