"""Nothing is lost by a full or read-only disk, kill -9 while writing, a second trainer, or a clock that jumps."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import training
from training import TINY, events, train, weights, write_text

from tinychat.cli import main
from tinychat.commands.training import train as train_command
from tinychat.errors import RunError, UsageError
from tinychat.events import Ended, Evaluated, Failed, LineReader, Noticed, Saved, Stepped
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import find_model
from tinychat.store.runs import RunFolder, follow
from tinychat.train.checkpoint import State, load_checkpoint, newest_step, save_checkpoint
from tinychat.train.event_log import EventLog
from tinychat.train.launch import launch, prepare_run
from tinychat.train.recipe import load_recipe


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "letters.txt", "abcdefgh \n", 4000, between="")


def make(text: Path, **fields: object) -> RunFolder:
    return training.make(text, **{"steps": 30, "evaluate_every": 10, **fields})


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Limit the size of files to so many bytes, as on a disk that is almost full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- a full disk -------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_begin_leaves_nothing(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_file_longer_than(0), pytest.raises(OSError, match="File too large"):
        make(text)
    assert not list(paths.runs_folder().iterdir())

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tinychat.train.launch.subprocess.Popen", refuse)
    assert main.run(["train", str(text)]) == 1
    with pytest.raises(OSError, match="No space left"):
        train_command.function(Session(), str(text))
    assert not list(paths.runs_folder().iterdir())


@pytest.mark.slow
def test_a_full_disk_ends_no_run_and_leaves_saved_files_whole(text: Path) -> None:
    whole, starved = make(text), make(text)
    assert train(whole) == 0
    starved.send("stop")
    assert train(starved) == 0  # after a step, with a checkpoint and a model
    before = newest_step(starved.checkpoints)
    starved.control_file.unlink()

    with no_file_longer_than(20_000):
        assert train(starved) == 1
    assert events(starved, Stepped)[-1].step == 30  # training continued to the end
    (notice,) = (event.text for event in events(starved, Noticed) if "checkpoint" in event.text)
    assert "File too large" in notice  # reported once, though four could not be written
    (failed,) = events(starved, Failed)
    assert str(starved.model) in failed.problem
    assert f"--resume {starved.name}" in failed.remedy
    state = load_checkpoint(starved.checkpoints)
    assert state is not None
    assert state.step == before
    assert weights(find_model(starved.name))  # those saved before the disk was full
    assert not list(starved.path.rglob("*.tmp"))

    assert train(starved) == 0
    one, other = weights(whole.model), weights(starved.model)
    assert all(one[name].equal(other[name]) for name in one)


@pytest.mark.slow
def test_a_model_whose_final_folder_cannot_be_written_stays_in_the_run(text: Path, tmp_path: Path) -> None:
    run = prepare_run(load_recipe().merged({**TINY, "sources": [str(text)]}), out=tmp_path / "out" / "model")
    (tmp_path / "out").touch()  # a file appears in place of the parent folder
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert "out" in failed.problem
    assert str(run.model) in failed.remedy
    assert weights(run.model)


def test_an_unusable_final_folder_is_refused_before_training(text: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter.txt").write_text("dear reader")
    for name in ("precious", "letters.txt"):
        with pytest.raises(UsageError, match="already exists"):
            prepare_run(load_recipe().merged({"sources": [str(text)]}), out=tmp_path / name)
    assert (tmp_path / "precious" / "letter.txt").exists()


def test_events_are_held_until_the_disk_has_room(tmp_path: Path) -> None:
    path = tmp_path / "events"
    log = EventLog(path)
    notices = [Noticed(f"{number} " + "x" * 100) for number in range(5)]
    log.write(notices[0])
    with no_file_longer_than(200):
        log.write(notices[1])  # partly written
        log.write(notices[2])
        assert list(LineReader(path).events()) == notices[:1]
    log.write(notices[3])
    assert list(LineReader(path).events()) == notices[:4]
    with no_file_longer_than(path.stat().st_size + 10):
        log.write(notices[4])
        log.close()
    assert path.read_bytes().endswith(b"\n")
    assert list(LineReader(path).events()) == notices[:4]


def test_readers_skip_damaged_lines(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text('{"event": "saved", "step": 1}\n{"event": "sav\0\n{"event": "saved"}\n[]\n{"event": "later"}\n\n')
    with path.open("a") as file:
        file.write(json.dumps({"event": "saved", "step": 2}) + "\n")
    assert list(LineReader(path).events()) == [Saved(1), Saved(2)]


# --- a folder that cannot be written -----------------------------------------------------------------------------


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only: by a mount for root, whom permissions do not stop."""
    if os.geteuid():
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    for arguments in (["--bind", folder, folder], ["-o", "remount,bind,ro", folder]):
        if subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
def test_a_run_that_cannot_be_written_fails_with_one_line(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = make(text)
    with read_only(run.path):
        assert train(run) == 1
        (line,) = capfd.readouterr().err.splitlines()
        assert str(run.path) in line
        assert not run.is_running()
        with pytest.raises(OSError, match=run.name):
            launch(run, stop_with_parent=True)
    assert train(run) == 0


# --- kill -9 while writing ---------------------------------------------------------------------------------------


def state(step: int) -> State:
    return State(
        step=step,
        seconds=0.0,
        available=None,
        weights={"weight": torch.full((1000, 300), float(step))},
        optimizers=[{"state": {0: {"momentum": torch.full((1000, 300), float(step))}}}],
    )


@pytest.mark.slow
def test_the_newest_checkpoint_is_whole_after_a_kill_while_writing(tmp_path: Path) -> None:
    moments = random.Random(0)
    step = 1
    save_checkpoint(tmp_path, state(step))
    unfinished = 0
    for _ in range(15):
        child = os.fork()
        if not child:
            while True:  # write until killed, so that most kills fall within a write
                step += 1
                save_checkpoint(tmp_path, state(step))
        time.sleep(moments.uniform(0.002, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        unfinished += any(tmp_path.glob(".*.tmp"))
        newest = newest_step(tmp_path)
        loaded = load_checkpoint(tmp_path)
        assert loaded is not None
        assert loaded.step == newest >= step
        assert loaded.weights["weight"].eq(newest).all()
        assert loaded.optimizers[0]["state"][0]["momentum"].eq(newest).all()
        step = newest
    assert unfinished  # some kills fell within a write


# --- a second trainer --------------------------------------------------------------------------------------------


def test_a_second_trainer_leaves_a_run_at_work_alone(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.train.launch.LOCK_TIMEOUT", 0.05)
    run = make(text)
    log = EventLog(run.events_file)
    with run.lock():
        log.write(Stepped(5, 0.1, 3.0, 0.1, 1.0, 1000.0, 1.0, 10.0, 30))
        impatient = "from tinychat.train import __main__ as trainer; trainer.LOCK_TIMEOUT = 0.05; trainer.main()"
        call = [sys.executable, "-c", impatient, str(run.path)]
        second = subprocess.run(call, capture_output=True, text=True, check=False)
        with pytest.raises(RunError, match="at work already"):
            launch(run, stop_with_parent=True)
        log.write(Saved(6))
        assert [type(event) for event in events(run, Stepped, Saved, Failed)] == [Stepped, Saved]
    log.close()
    assert second.stderr.splitlines() == [f"the run {run.name!r} is at work already"]


@pytest.mark.slow
def test_follow_shows_the_first_trainer_if_the_second_came_too_late(text: Path) -> None:
    run = make(text)
    late = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])
    log = EventLog(run.events_file)
    last = Ended("done", 30, 1.0, 2.7, 1.4, 10.0, "model")
    with run.lock():
        late.wait()
        seen = follow(run, late)
        assert next(seen) is None
        log.write(last)
        assert next(seen) == last
    log.close()
    assert list(seen) == []


# --- a clock that jumps ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jumps_of_the_clock_change_nothing(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, jumping = make(text), make(text)
    assert train(whole) == 0
    hours = random.Random(0)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 3600 * hours.uniform(-24, 24))
    assert train(jumping) == 0
    assert [event.step for event in events(jumping, Evaluated)] == [10, 20, 30]
    assert 0 <= events(jumping, Ended)[0].seconds < 60
    one, other = weights(whole.model), weights(jumping.model)
    assert all(one[name].equal(other[name]) for name in one)
