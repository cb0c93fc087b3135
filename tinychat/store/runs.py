"""A training run ↔ a folder, which is also how the trainer is watched and told what to do.

recipe.toml    every value as used
events.jsonl   what happened, a line each
control.jsonl  what the trainer is asked to do, a line each
checkpoints/   all that going on needs; the newest two
snapshots/     the model's weights as they were, from the first to the newest; a few
model/         the model as it stands: its newest weights, and the best once the run has ended
start/         the model that the run began from, where it goes on with one
tokenizer.json the tokenizer; of translations, source_tokenizer.json is that of what is translated
trainer.lock   held by the trainer while it lives: the system lets go of it whatever happens
trainer.log    what the trainer had to say on stderr
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from tinychat.errors import RunError
from tinychat.events import Event, LineReader
from tinychat.store import places


@dataclass(frozen=True)
class RunFolder:
    """One run."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def recipe_file(self) -> Path:
        return self.path / "recipe.toml"

    @property
    def events_file(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def control_file(self) -> Path:
        return self.path / "control.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def tokenizer_file(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def source_tokenizer_file(self) -> Path:
        return self.path / "source_tokenizer.json"

    @property
    def start(self) -> Path:
        return self.path / "start"

    @property
    def lock_file(self) -> Path:
        return self.path / "trainer.lock"

    @property
    def log_file(self) -> Path:
        return self.path / "trainer.log"

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
    run = RunFolder(places.runs_folder() / name)
    if not name or not run.recipe_file.is_file():
        names = ", ".join(run.name for run in list_runs()) or "none yet"
        raise RunError(f"there is no run {name!r}", f"runs: {names}")
    return run


def list_runs() -> list[RunFolder]:
    """Every run, the newest first."""
    folder = places.runs_folder()
    if not folder.is_dir():
        return []
    runs = [RunFolder(path) for path in folder.iterdir() if (path / "recipe.toml").is_file()]
    return sorted(runs, key=lambda run: run.recipe_file.stat().st_mtime, reverse=True)
