"""The trainer's process: `python -m tinychat.train RUN`, started by `launch.py`. Its interface is the run's folder.

Where several processes train together, the workers run this too; they need no folder.
"""

import argparse
import importlib
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from filelock import Timeout

from tinychat.errors import TinychatError, failure
from tinychat.events import Failed
from tinychat.store.runs import RunFolder
from tinychat.train.checkpoint import newest_step
from tinychat.train.data import read_text
from tinychat.train.event_log import Control, EventLog, rewind
from tinychat.train.processes import (
    LOST,
    OUT_OF_MEMORY,
    ProcessRank,
    Workers,
    end_with,
    find_process_rank,
    is_out_of_memory,
    is_severed,
)
from tinychat.train.recipe import load_recipe

PATIENCE = 2.0
"""seconds: a watcher that looks whether the run is alive holds its lock for a moment"""


def main(arguments: list[str] | None = None) -> int:
    """Trains; returns the exit code: 0 where the run has ended, done or stopped, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tinychat.train", description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="the run's folder")
    parser.add_argument("--started", type=float, default=None, help="time.monotonic() when the command was given")
    parser.add_argument("--parent", type=int, default=None, help="stop when this process is no longer the parent")
    given = parser.parse_args(arguments)
    process = find_process_rank()
    if process.rank > 0:
        return run_worker(process, given.parent)
    if given.run is None:
        parser.error("which run?")
    run = RunFolder(given.run)
    started = time.monotonic() if given.started is None else given.started
    try:
        with run.lock(timeout=PATIENCE):
            return _train(run, started, given.parent, process)
    except Timeout:
        problem = f"the run {run.name!r} is at work already"
    except OSError as error:
        problem = failure(error)
    print(problem, file=sys.stderr)  # noqa: T201 - into its log
    return 1


def run_worker(process: ProcessRank, parent: int | None) -> int:
    """Do what the leader broadcasts until the end of training; return the exit code.

    Args:
        parent: end when this process is no longer the parent.
    """
    if parent is not None:
        end_with(parent)
    for number in (signal.SIGINT, signal.SIGTERM):  # who stops, and when, is for the leader to say
        signal.signal(number, signal.SIG_IGN)
    from tinychat.train.distributed import ProcessGroup
    from tinychat.train.machine import set_up
    from tinychat.train.step import Learner

    group = ProcessGroup(process)
    learner: Learner | None = None
    try:
        while (order := group.receive())[0] != "leave":
            method, arguments = order
            if method == "make":
                config, recipe, counted = arguments
                set_up(recipe, recipe.device, process.local_size)
                learner = Learner(config, recipe, group, counted)
            else:
                getattr(learner, method)(*arguments)
    except Exception as error:
        print(f"process {process.rank + 1} of {process.size}: {error}", file=sys.stderr)  # noqa: T201 - into the log
        return OUT_OF_MEMORY if is_out_of_memory(error) else 1
    group.leave()
    return 0


def _train(run: RunFolder, started: float, parent: int | None, process: ProcessRank) -> int:
    control = Control(run.control_file, parent)
    control.listen_to_signals()
    _clear(run)
    rewind(run.events_file, newest_step(run.checkpoints))
    # torch and lightning take three seconds: the text is read meanwhile.
    threading.Thread(target=importlib.import_module, args=("tinychat.train.trainer",), daemon=True).start()
    workers: Workers | None = None
    try:
        recipe = load_recipe(run.recipe_file)
        if process.size == 1 and recipe.devices > 1:
            workers = Workers(recipe.devices)
            workers.watch(lambda story: _fail(run, *story))
            process = ProcessRank(0, recipe.devices, 0, recipe.devices)
        text = read_text(recipe, run)
        from tinychat.train.trainer import train

        train(run, recipe, text, control, started, process)
    except TinychatError as error:
        return _fail(run, error.problem, error.remedy)
    except OSError as error:
        return _fail(run, failure(error), f"`tinychat train --resume {run.name}` goes on from what was saved")
    except Exception as error:
        if is_out_of_memory(error):
            return _fail(run, "there is not enough memory", "try a smaller --batch-size, --context-length or --d-model")
        traceback.print_exc()
        if process.size > 1 and is_severed(error):
            return _fail(run, *(workers.story() if workers else LOST))
        return _fail(run, f"the trainer met an error: {error!r}", f"{run.log_file} has the whole story")
    finally:
        if workers is not None:
            workers.end()
    return 0


def _fail(run: RunFolder, problem: str, remedy: str) -> int:
    log = EventLog(run.events_file)
    log.write(Failed(problem, remedy))
    log.close()
    return 1


def _clear(run: RunFolder) -> None:
    """Removes what a trainer that was killed in the middle of writing left behind."""
    for folder in (run.path, run.checkpoints, run.snapshots, run.model):
        for draft in folder.glob(".*.tmp"):
            shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink(missing_ok=True)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # all is written; torch would take a second of a person's time to take itself apart
