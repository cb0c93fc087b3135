"""A training run ↔ a folder, which is also how the trainer is watched and told what to do.

recipe.toml    every value as used
events.jsonl   what happened, a line each
control.jsonl  what the trainer is asked to do, a line each
checkpoints/   all that going on needs; the newest two
snapshots/     the model's weights as they were, from the first to the newest; a few
model/         the model as it stands: its newest weights, and the best once the run has ended
start/         the model that the run began from, where it goes on with one
tokenizer.json the tokenizer; of translations, source_tokenizer.json is that of what is translated
out            the folder of the model at the end, where that is not the usual one
trainer.lock   held by the trainer while it lives: the system lets go of it whatever happens
trainer.log    what the trainer had to say on stderr
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from tinychat.errors import RunError
from tinychat.events import Event, LineReader
from tinychat.store import paths


class RunFolder:
    """One run."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.recipe_file = path / "recipe.toml"
        self.events_file = path / "events.jsonl"
        self.control_file = path / "control.jsonl"
        self.checkpoints = path / "checkpoints"
        self.snapshots = path / "snapshots"
        self.model = path / "model"
        self.start = path / "start"
        self.tokenizer_file = path / "tokenizer.json"
        self.source_tokenizer_file = path / "source_tokenizer.json"
        self.out_file = path / "out"
        self.lock_file = path / "trainer.lock"
        self.log_file = path / "trainer.log"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunFolder) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def final_folder(self) -> Path:
        """Where the model is at the end."""
        if self.out_file.is_file():
            return Path(self.out_file.read_text(encoding="utf-8"))
        return paths.models_folder() / self.name

    def lock(self, timeout: float = 0) -> FileLock:
        """What the trainer holds while it lives; it waits a little, as a watcher may just be trying the lock."""
        return FileLock(self.lock_file, timeout=timeout)

    def is_running(self) -> bool:
        """Whether a trainer is alive and at work on this run."""
        if not self.lock_file.exists():
            return False
        try:
            with self.lock():
                return False
        except Timeout:
            return True
        except OSError:  # where nothing can be written, nobody trains
            return False

    def send(self, command: str, **arguments: object) -> None:
        """Asks the trainer for something: `stop`, `sample`, `evaluate`, `publish`, `background`."""
        line = json.dumps({"command": command, "time": time.time(), **arguments}, ensure_ascii=False) + "\n"
        with self.control_file.open("a", encoding="utf-8") as file:
            file.write(line)

    def events(self) -> Iterator[Event]:
        """What has happened so far."""
        return LineReader(self.events_file).events()


def find_run(name: str) -> RunFolder:
    """The run of that name.

    Raises:
        RunError: there is none.
    """
    run = RunFolder(paths.runs_folder() / name)
    if not name or not run.recipe_file.is_file():
        names = ", ".join(run.name for run in list_runs()) or "none yet"
        raise RunError(f"there is no run {name!r}", f"runs: {names}")
    return run


def list_runs() -> list[RunFolder]:
    """Every run, the newest first."""
    folder = paths.runs_folder()
    if not folder.is_dir():
        return []
    runs = [run for run in map(RunFolder, folder.iterdir()) if run.recipe_file.is_file()]
    return sorted(runs, key=lambda run: run.recipe_file.stat().st_mtime, reverse=True)
