"""Training runs, each a folder, through which other processes also watch and control the trainer."""

import difflib
import fcntl
import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.errors import RunError
from tinychat.events import Ended, Event, Failed, LineReader
from tinychat.store import paths
from tinychat.store.names import find_named, typed

if TYPE_CHECKING:
    import subprocess

    from filelock import FileLock

LOCK_TIMEOUT = 1.0
"""Seconds to wait for the lock of a run, which a process that checks on the run holds for a moment."""
MAX_SUGGESTED = 10
"""Maximum number of runs that an error names."""
POLL_INTERVAL, LIVENESS_INTERVAL = 0.1, 1.0
"""Seconds between two polls of events, and two checks that a trainer is alive."""
EXIT_SECONDS = 2.0
"""Seconds to wait for a trainer that has written its last event to exit."""
FULL = 1 << 16
"""Free bytes of a disk below which not even a trainer's last event may fit on it."""


@dataclass(unsafe_hash=True)
class RunFolder:
    """Paths of a run, named like its folder, with its lock, control file and events."""

    path: Path

    def __post_init__(self) -> None:
        path = self.path
        self.name = path.name
        self.typed_name = typed(self.name)
        self.recipe_file = path / "recipe.toml"  # all values as used
        self.events_file = path / "events.jsonl"  # one event a line
        self.control_file = path / "control.jsonl"  # one command to the trainer a line
        self.checkpoints = path / "checkpoints"  # the state from which training can resume; the newest two
        self.snapshots = path / "snapshots"  # weights of some steps, from the first to the newest
        self.model = path / "model"  # its newest weights, or the best ones once the run has ended
        self.base_model = path / "base_model"  # the model that the run started from, with `--from`
        self.earlier = path / "earlier"  # of a run that goes on: its recipe and events before, until its next step
        self.tokenizer_file = path / "tokenizer.json"
        self.source_tokenizer_file = path / "source_tokenizer.json"  # of translation models only
        self.logs = path / "logs"  # the same figures for other tools, with `--log`
        self.out_file = path / "out"  # path of the final model's folder, with `--out`
        self.lock_file = path / "trainer.lock"  # held while the trainer lives; the system releases it in any case
        self.log_file = path / "trainer.log"  # the trainer's stderr
        self.was_told_to_stop = False  # through this object: another process may have told the trainer too

    @property
    def final_folder(self) -> Path:
        """Folder of the final model."""
        if self.out_file.is_file():
            return Path(self.out_file.read_text(encoding="utf-8"))
        return paths.models_folder() / self.name

    def lock(self, timeout: float = 0) -> "FileLock":
        """Return the lock that the trainer holds while it lives, not yet acquired.

        The trainer waits for it for a `timeout` of some seconds, since `is_running` acquires it for a moment; then a
        TimeoutError is raised.
        """
        from filelock import FileLock

        return FileLock(self.lock_file, timeout=timeout)

    def is_running(self) -> bool:
        """Return whether a trainer process works on this run."""
        if not self.lock_file.is_file():
            return False
        try:
            with self.lock_file.open("rb") as file:  # closing it releases the lock
                # A shared lock: processes that ask at the same moment do not take each other for the trainer.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, TimeoutError):
            return True
        except OSError:  # nobody trains in a folder that cannot be read or locked
            return False
        return False

    def send(self, command: str, **arguments: object) -> None:
        """Send a command to the trainer: `stop`, `sample`, `evaluate`, `publish` or `background`."""
        line = json.dumps({"command": command, "time": time.time(), **arguments}, ensure_ascii=False) + "\n"
        with self.control_file.open("a", encoding="utf-8") as file:
            file.write(line)
        self.was_told_to_stop |= command == "stop"

    def events(self) -> Iterator[Event]:
        """Yield the events so far."""
        return LineReader(self.events_file).events()

    def is_void(self) -> bool:
        """Return whether the run failed before its first checkpoint: it gives its name back."""
        return self._early_failure() is not None and not self.is_running()

    def undo_failed_start(self) -> None:
        """Remove the run if a mistake in its recipe or its text ended it before its first checkpoint.

        If it had ended before, and has taken no step since, it becomes again what it was.
        """
        if not self.path.exists():  # the lock would make the folder anew
            return
        with suppress(OSError), self.lock(timeout=EXIT_SECONDS):
            failure = self._early_failure()
            if failure is not None and failure.is_mistake:
                self.remove()
        self.restore_earlier()

    def restore_earlier(self) -> None:
        """Restore the recipe and the events of a run that was to go on, if it has taken no step since."""
        if not self.earlier.is_dir():
            return
        with suppress(OSError), self.lock(timeout=EXIT_SECONDS):  # else a trainer is at work: its next step decides
            for kept in self.earlier.iterdir():
                kept.replace(self.path / kept.name)
            self.earlier.rmdir()

    def remove(self) -> None:
        """Remove the folder with all that is in it; what cannot be removed stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def failure_without_event(self, process: "subprocess.Popen[bytes] | None", remedy: str) -> Failed:
        """Return the event that a trainer which is gone did not write; `process` is the trainer if it was a child."""
        if process is not None and process.returncode == -signal.SIGKILL:
            return Failed("the trainer was killed (signal 9): memory may have run out", remedy)
        if not self.path.exists():  # removed by another process: no `--resume` brings it back
            return Failed("the run was removed")
        with suppress(OSError):
            if shutil.disk_usage(self.path).free < FULL:
                return Failed(f"the trainer ended: the disk of {self.path} is full", f"make room; {remedy}")
        return Failed("the trainer ended without a word", f"its log is {self.log_file}; {remedy}")

    def _early_failure(self) -> Failed | None:
        """Return the event that ended the run before its first checkpoint; None if there is a checkpoint or no such."""
        if any(self.checkpoints.glob("step-*")):
            return None
        *_, last = (None, *self.events())
        return last if isinstance(last, Failed) else None


def follow(run: RunFolder, process: "subprocess.Popen[bytes] | None" = None) -> Iterator[Event | None]:
    """Yield the events of a run up to `Ended` or `Failed`, and None whenever there are no new events.

    `process` is the trainer if it is a child of this process.
    """
    reader = LineReader(run.events_file)
    is_alive, checked_at = True, time.monotonic()
    while True:
        # Check the trainer before reading its events, so that none of its last events is missed.
        if process is not None:
            is_alive = process.poll() is None
        elif time.monotonic() - checked_at > LIVENESS_INTERVAL:
            is_alive, checked_at = run.is_running(), time.monotonic()
        for event in reader.events():
            yield event
            if isinstance(event, Ended | Failed):
                if process is not None:
                    process.wait()
                while process is None and run.is_running():
                    time.sleep(POLL_INTERVAL)
                return
        if not is_alive and process is not None and run.is_running():
            process, is_alive = None, True  # another trainer was first, and does the work
        if not is_alive:
            resume = f"train --resume {run.typed_name}`"
            remedy = f"`tinychat {resume}, or `/{resume} in the REPL, goes on from its last checkpoint"
            yield run.failure_without_event(process, remedy)
            return
        yield None


def find_run(name: str) -> RunFolder:
    """Return the run with a name, whatever its case.

    Raises:
        RunError: If there is none.
    """
    folder = find_named(paths.runs_folder(), name)
    if folder is None or not RunFolder(folder).recipe_file.is_file():
        raise RunError(f"there is no run {name!r}", _suggest_runs(name))
    return RunFolder(folder)


def _suggest_runs(name: str) -> str:
    """Return the run whose name is near to one that does not exist, or else the newest runs."""
    names = [run.name for run in list_runs()]
    if near := difflib.get_close_matches(name.strip(), names, n=1):
        return f"did you mean {near[0]}?"
    more = [f"and {len(names) - MAX_SUGGESTED} older ones"] if len(names) > MAX_SUGGESTED else []
    return f"runs: {', '.join([*names[:MAX_SUGGESTED], *more]) or 'none yet'}"


def list_runs() -> list[RunFolder]:
    """Return all runs, newest first."""
    times: dict[Path, float] = {}
    for recipe in paths.runs_folder().glob("[!.]*/recipe.toml"):
        with suppress(FileNotFoundError):  # another process has removed the run meanwhile
            times[recipe.parent] = recipe.stat().st_mtime
    return [RunFolder(path) for path in sorted(times, key=times.__getitem__, reverse=True)]
