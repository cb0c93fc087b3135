"""Train a run: `python -m tinychat.train RUN`, the process that `launch.py` starts. Its interface is the run's folder.

When several processes train together, the workers run this module too, without a folder.
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
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NoReturn

from filelock import Timeout

from tinychat.errors import TinychatError, describe_import_error, describe_os_error
from tinychat.events import Failed
from tinychat.store import paths
from tinychat.store.runs import LOCK_TIMEOUT, RunFolder
from tinychat.textutil import escape_controls
from tinychat.train import launch
from tinychat.train.checkpoint import newest_step
from tinychat.train.data import ReadingClock, read_text
from tinychat.train.event_log import Control, EventLog, rewind
from tinychat.train.launch import ProcessRank, Workers, find_process_rank, is_out_of_memory
from tinychat.train.recipe import load_recipe


def main(arguments: list[str] | None = None, *, may_exit: bool = False) -> int:
    """Train a run, or act as a worker; return the exit code: 0 if the run is done or was stopped, else 1.

    With `may_exit`, the process exits if it is to stop before the first step, whatever it waits for.
    """
    parser = argparse.ArgumentParser(prog="python -m tinychat.train", description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="the run's folder")
    now = time.monotonic()
    parser.add_argument("--started", type=float, default=now, help="time.monotonic() when the command was given")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer the parent")
    options = parser.parse_args(arguments)
    process = find_process_rank()
    if process.rank > 0:
        return run_worker(process, options.parent)
    if options.run is None:
        parser.error("which run?")
    run = RunFolder(options.run)
    try:
        with run.lock(timeout=LOCK_TIMEOUT):
            return _train(run, options.started, options.parent, process, may_exit=may_exit)
    except Timeout:
        problem = f"the run {run.name!r} is at work already"
    except OSError as error:
        problem = describe_os_error(error)
    print(escape_controls(problem), file=sys.stderr)  # noqa: T201 - goes to the log
    return 1


def run_worker(process: ProcessRank, parent: int | None) -> int:
    """Run the calls that the leader broadcasts until training ends or `parent` exits; return the exit code."""
    if parent is not None:
        launch.exit_with_parent(parent)
    for number in (signal.SIGINT, signal.SIGTERM):  # the leader decides when to stop
        signal.signal(number, signal.SIG_IGN)
    from tinychat.train.distributed import ProcessGroup
    from tinychat.train.machine import configure_torch
    from tinychat.train.step import Learner

    group = ProcessGroup(process)
    learner: Learner | None = None
    try:
        while (call := group.receive())[0] != "leave":
            method, arguments = call
            if method == "make":
                config, recipe, ngram_folds, earlier_counts = arguments
                configure_torch(recipe, recipe.device, process.local_size)
                learner = Learner(config, recipe, group, ngram_folds, earlier_counts=earlier_counts)
            else:
                getattr(learner, method)(*arguments)
    except Exception as error:
        problem = escape_controls(f"process {process.rank + 1} of {process.size}: {error}")
        print(problem, file=sys.stderr)  # noqa: T201 - goes to the log
        return launch.OUT_OF_MEMORY if is_out_of_memory(error) else 1
    group.leave()
    return 0


def _train(run: RunFolder, started: float, parent: int | None, process: ProcessRank, *, may_exit: bool) -> int:
    """Train the run that this process leads; return the exit code."""
    control = Control(run.control_file, parent)
    control.install_signal_handlers()
    if may_exit:
        control.watch(partial(_exit_early, run))
    _remove_drafts(run)
    rewind(run.events_file, newest_step(run.checkpoints))
    # Importing torch and lightning takes three seconds: read the text meanwhile.
    failed = list[BaseException]()
    importing = threading.Thread(target=_import_trainer, args=(failed,), daemon=True)
    importing.start()
    workers: Workers | None = None
    try:
        recipe = load_recipe(run.recipe_file)
        if process.size == 1 and recipe.devices > 1:
            workers = Workers(recipe.devices, partial(_fail, run))
            process = ProcessRank(0, recipe.devices, 0, recipe.devices)
        minutes = None if newest_step(run.checkpoints) > 0 else recipe.minutes
        text = read_text(recipe, run, ReadingClock(minutes, started))
        importing.join()
        if failed:
            raise failed[0]
        from tinychat.train.trainer import train

        train(run, recipe, text, control, started, process)
    except TinychatError as error:
        return _fail(run, error.problem, error.remedy, is_mistake=True)
    except OSError as error:
        remedy = f"`tinychat train --resume {run.typed_name}` goes on from what was saved"
        return _fail(run, describe_os_error(error), remedy)
    except ImportError as error:
        return _fail(
            run, describe_import_error(error), "end other programs, or raise its limit of memory (`ulimit -v`)"
        )
    except Exception as error:
        if is_out_of_memory(error):
            remedy = "try a smaller --batch-size, --context-length or --d-model"
            return _fail(run, "there is not enough memory", remedy, is_mistake=True)
        traceback.print_exc()
        if process.size > 1 and launch.is_disconnected(error):
            return _fail(run, *(workers.describe_failure() if workers else launch.WORKER_LOST))
        return _fail(run, f"the trainer met an error: {error!r}", f"{run.log_file} has the whole story")
    finally:
        if workers is not None:
            workers.stop()
    return 0


def _import_trainer(failed: list[BaseException]) -> None:
    try:
        importlib.import_module("tinychat.train.trainer")
    except BaseException as error:
        failed.append(error)


def _fail(run: RunFolder, problem: str, remedy: str, *, is_mistake: bool = False, is_stopped: bool = False) -> int:
    """Write a `Failed` event; return the exit code."""
    with closing(EventLog(run.events_file)) as log:
        log.write(Failed(problem, remedy, is_mistake, is_stopped))
    return 1


def _exit_early(run: RunFolder) -> NoReturn:
    """Exit before the first new step, while the main thread still reads or plans; leave no drafts behind."""
    try:
        if (step := newest_step(run.checkpoints)) < 0:
            remedy = f"`tinychat train --resume {run.typed_name}` begins again"
            _fail(run, "stopped before the first step: there is no model yet", remedy, is_stopped=True)
        else:
            problem = f"stopped before its next step: everything to step {step:,} is kept"
            _fail(run, problem, "the same command goes on from there", is_stopped=True)
        _remove_drafts(run)
        for draft in paths.ids_folder().glob(f".*.{os.getpid()}-*.tmp"):
            draft.unlink(missing_ok=True)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # workers, and a program that makes a data set
    finally:
        os._exit(1)


def _remove_drafts(run: RunFolder) -> None:
    """Remove the drafts of a trainer that was killed while writing."""
    for folder in (run.path, run.checkpoints, run.snapshots, run.model):
        for draft in folder.glob(".*.tmp"):
            shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink(missing_ok=True)


if __name__ == "__main__":
    code = main(may_exit=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # everything is written; an ordinary exit would spend a second on torch's clean-up
