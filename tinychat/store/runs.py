"""Training runs, each a folder, through which other processes also watch and control the trainer.

recipe.toml    all values as used
events.jsonl   events, one a line
control.jsonl  commands to the trainer, one a line
checkpoints/   the state from which training can resume; the newest two
snapshots/     weights of some steps, from the first to the newest
model/         the model: its newest weights, or the best ones once the run has ended
base_model/    the model that the run started from, with `--from`
tokenizer.json the tokenizer; translation models also have a source_tokenizer.json
out            path of the final model's folder, with `--out`
trainer.lock   lock held while the trainer lives; the operating system releases it in any case
trainer.log    the trainer's stderr
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
    """Paths of a run, with its lock, control file and events.

    Args:
        path: the folder; its name is the name of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.recipe_file = path / "recipe.toml"
        self.events_file = path / "events.jsonl"
        self.control_file = path / "control.jsonl"
        self.checkpoints = path / "checkpoints"
        self.snapshots = path / "snapshots"
        self.model = path / "model"
        self.base_model = path / "base_model"
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
        """Folder of the final model."""
        if self.out_file.is_file():
            return Path(self.out_file.read_text(encoding="utf-8"))
        return paths.models_folder() / self.name

    def lock(self, timeout: float = 0) -> FileLock:
        """Return the lock that the trainer holds while it lives.

        Args:
            timeout: seconds to wait for it; the trainer waits a little, since `is_running` acquires it for a moment.

        Returns:
            The lock, not yet acquired.
        """
        return FileLock(self.lock_file, timeout=timeout)

    def is_running(self) -> bool:
        """Return whether a trainer process works on this run."""
        if not self.lock_file.exists():
            return False
        try:
            with self.lock():
                return False
        except Timeout:
            return True
        except OSError:  # nobody trains in a folder that cannot be written to
            return False

    def send(self, command: str, **arguments: object) -> None:
        """Send a command to the trainer: `stop`, `sample`, `evaluate`, `publish` or `background`."""
        line = json.dumps({"command": command, "time": time.time(), **arguments}, ensure_ascii=False) + "\n"
        with self.control_file.open("a", encoding="utf-8") as file:
            file.write(line)

    def events(self) -> Iterator[Event]:
        """Yield the events so far."""
        return LineReader(self.events_file).events()


def find_run(name: str) -> RunFolder:
    """Return the run with a name.

    Raises:
        RunError: If there is none.
    """
    run = RunFolder(paths.runs_folder() / name)
    if not name or not run.recipe_file.is_file():
        names = ", ".join(run.name for run in list_runs()) or "none yet"
        raise RunError(f"there is no run {name!r}", f"runs: {names}")
    return run


def list_runs() -> list[RunFolder]:
    """Return all runs, newest first."""
    folder = paths.runs_folder()
    if not folder.is_dir():
        return []
    runs = [run for run in map(RunFolder, folder.iterdir()) if run.recipe_file.is_file()]
    return sorted(runs, key=lambda run: run.recipe_file.stat().st_mtime, reverse=True)
