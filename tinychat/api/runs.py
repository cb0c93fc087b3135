"""Training runs: start one, follow its events, use its model; each is a process and a folder of its own."""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tinychat.api.arguments import check_name, to_plain
from tinychat.api.keywords import RecipeValues
from tinychat.corpus.sources import STDIN, split_weight
from tinychat.errors import RunError, UsageError, check_torch, describe_os_error
from tinychat.events import Ended, Event, Failed
from tinychat.session.run_monitor import BackgroundRun
from tinychat.store.runs import POLL_INTERVAL, RunFolder, follow, list_runs
from tinychat.textutil import duration, one_line, shorten

if TYPE_CHECKING:
    import subprocess

    from tinychat.api.model import Model

MAX_PROBLEM = 200
"""Maximum number of characters of what the system says about a file."""
WATCH_INTERVAL = 0.5
"""Seconds between two pictures of a run that is watched."""


def train(
    *sources: str | os.PathLike[str],
    name: str | None = None,
    recipe: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    **fields: Unpack[RecipeValues],
) -> "Run":
    """Train a model, as `tinychat train` does: in a process of its own, whose interface is the run's folder.

    It returns at once. The trainer stops, and saves everything, when this process exits before it is done, unless
    `Run.background()` was called.

    Args:
        *sources: files, folders, globs and known data sets; a weight may follow a colon, as in `a.txt:2`. None are
            needed if the recipe brings its data, or with `texts`.
        name: name of the run and of its model. Default: after the first source.
        recipe: name or file of a recipe. Default: what suits the text and the machine.
        out: folder to write the model to. Default: among your own models.
        resume: name of a run to go on with, or to watch if it is at work; `minutes`, `steps` or `epochs` extend it to
            that length in all.
        **fields: fields of the recipe by the names in docs/recipes.md, such as `minutes` or `n_layer`. Default: what
            is chosen for the text and the machine.

    Returns:
        The run, in training.

    Raises:
        SourceError: If a source cannot be found or read.
        UsageError: If there is nothing to train on, an argument is no name or path, or some exclude each other.
        SettingError: If a field has a wrong value.
        RunError: If the name is taken, there is no such recipe, field or run, or a file cannot be read or written.
        ModelError: If there is no such model to start from, or two choices of the architecture contradict each other.
        TokenizerError: If there is no such tokenizer.
    """
    check_torch()  # before numpy is imported

    from tinychat.train.launch import change_recipe, find_resumable, launch, start_run
    from tinychat.train.recipe import choose_recipe

    started, texts = time.monotonic(), [check_name(source) for source in sources]
    if STDIN in (split_weight(text)[0] for text in texts):
        raise UsageError("- is the standard input of a command", "name a file, or give `texts`")
    if resume is not None:
        if texts or name or recipe or out:
            raise UsageError("a run goes on as it began", "resume takes a name, and a new length")
        folder = find_resumable(resume)
        is_left = not folder.is_running() and change_recipe(folder, to_plain(fields))
        return Run(folder, launch(folder, stop_with_parent=True, started=started) if is_left else None)
    recipe_name = None if recipe is None else check_name(recipe)
    chosen = choose_recipe(recipe_name, {**to_plain(fields), **({"sources": texts} if texts else {})})
    try:
        folder, process = start_run(
            chosen, name, recipe_name=None if texts else recipe_name, out=None if out is None else Path(out),
            stop_with_parent=True, started=started,
        )  # fmt: skip
    except OSError as error:  # such as a full disk, or a name that is too long
        raise RunError(f"the run cannot start: {shorten(describe_os_error(error), MAX_PROBLEM)}") from None
    return Run(folder, process)


class Run:
    """A training run, in training or ended; `tinychat.train` starts one, `tinychat.runs` finds all.

    Iterate over it for its events, from the first to the last, which is `Ended` or `Failed`; they are those of
    `tinychat train --json`, described in docs/files.md. Ctrl-C while you wait for the next leaves the run training.
    """

    def __init__(self, folder: RunFolder, process: "subprocess.Popen[bytes] | None" = None) -> None:
        self._run, self._process = folder, process
        self._monitor = BackgroundRun(folder, process)

    @property
    def name(self) -> str:
        """Name of the run and of its model."""
        return self._run.name

    @property
    def folder(self) -> Path:
        """Folder of the run, with its recipe, events, checkpoints and the log of its trainer."""
        return self._run.path

    @property
    def events(self) -> list[Event]:
        """The events so far."""
        return list(self._run.events())

    @property
    def last_event(self) -> Ended | Failed | None:
        """The event that ended the run; None while it is training."""
        self._monitor.poll()
        return self._monitor.last

    def __iter__(self) -> Iterator[Event]:
        for event in follow(self._run, self._process):
            if event is None:
                time.sleep(POLL_INTERVAL)
                continue
            if isinstance(event, Ended | Failed):
                self._end(event)
            yield event

    def wait(self, seconds: float | None = None) -> Ended:
        """Wait until the run has ended, and return its last event, with the loss of the model.

        Args:
            seconds: how long to wait at most. Default: as long as it takes.

        Raises:
            RunError: If the run failed, or is still training after so long.
        """
        until = math.inf if seconds is None else time.monotonic() + seconds
        last = self._monitor.last
        for event in follow(self._run, self._process) if last is None else ():
            if isinstance(event, Ended | Failed):
                last = event
            elif event is None:
                if time.monotonic() >= until:
                    remedy = "wait longer, or stop() ends it"
                    raise RunError(f"{self.name} is still training after {seconds:g} s", remedy)
                time.sleep(POLL_INTERVAL)
        self._end(last)
        if isinstance(last, Failed):
            raise RunError(last.problem, last.remedy)
        assert last is not None  # with it, `follow` ends
        return last

    def stop(self) -> Ended:
        """End the run after its current step, keep everything, and return its last event.

        Raises:
            RunError: If the run failed, or was stopped before its first step: then there is no model.
        """
        if self.last_event is None:
            self._run.send("stop")
        return self.wait()

    def background(self) -> None:
        """Let the run train on when this process exits; `tinychat.train(resume=NAME)` finds it again."""
        if self.last_event is None:
            self._run.send("background")

    @property
    def model(self) -> "Model":
        """The model, loaded anew at each call: the newest weights while the run trains, the best ones at its end.

        Raises:
            RunError: If the run has no weights yet, or failed before it had any.
        """
        from tinychat.api.model import load

        last = self.last_event
        if isinstance(last, Ended):
            return load(last.folder)
        if not self._monitor.has_weights:
            if isinstance(last, Failed):
                raise RunError(last.problem, last.remedy)
            raise RunError(f"{self.name} has no weights yet", "wait for its first steps")
        if last is None:
            self._monitor.request_weights(lambda: False)
        return load(self._run.model)

    def watch(self) -> None:
        """Show the run in a notebook, and update the picture in place until it has ended.

        Interrupting the cell ends the watching, not the run.

        Raises:
            RunError: If the run failed.
            UsageError: Outside of a notebook.
        """
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            shell = None
        else:
            shell = get_ipython()
        if shell is None:
            remedy = f"`tinychat train --resume {self._run.typed_name}` draws at a terminal"
            raise UsageError("watch() draws in a notebook", remedy)
        picture: Any = display(self, display_id=True)  # type: ignore[no-untyped-call]
        try:
            while self.last_event is None:
                time.sleep(WATCH_INTERVAL)
                picture.update(self)
        finally:
            picture.update(self)
        self.wait()

    def _end(self, last: Ended | Failed | None) -> None:
        self._monitor.last = last
        if isinstance(last, Failed):
            self._run.undo_failed_start()

    @property
    def state(self) -> str:
        """State, step and validation loss, in a line; a provisional loss, of a part of the split, after a `~`."""
        from tinychat.train.report import read_run_summary

        try:
            last = self.last_event
        except OSError:
            return "damaged"
        if isinstance(last, Failed):
            return f"failed: {last.problem}"
        summary = read_run_summary(self._run)
        steps = f"step {summary.step:,}" + (f"/{summary.steps:,}" if summary.steps and last is None else "")
        state = "at work" if last is None else summary.state  # a trainer that starts holds no lock yet
        facts = [state, steps]
        if summary.loss is not None:
            facts.append(f"{'~' * summary.is_provisional}{summary.split} loss {summary.loss:.3f}")
        if state == "at work" and summary.remaining:
            facts.append(f"{duration(summary.remaining)} left")
        return " · ".join(facts)

    def __repr__(self) -> str:
        return one_line(f"<Run {self.name} · {self.state}>")

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.run(self.name, self.state, self.events)


class Runs(list[Run]):
    """Training runs; a notebook shows them as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no runs yet"

    def _repr_html_(self) -> str:
        from tinychat.api import html
        from tinychat.commands.results import Table

        return html.table(Table(("run", "state"), tuple((run.name, run.state) for run in self)))


def runs() -> Runs:
    """Return all training runs, newest first."""
    return Runs(map(Run, list_runs()))
