"""The run monitor: which model answers while runs train."""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from tinychat.config.settings import SettingStore
from tinychat.events import Ended, Event, Failed, Planned, Stepped, to_json
from tinychat.session.open_model import OpenModel
from tinychat.session.run_monitor import BackgroundRun, RunMonitor
from tinychat.store.runs import RunFolder


class Holder:
    """A stand-in for a session: records how the model was opened."""

    def __init__(self) -> None:
        self.model: OpenModel | None = None
        self.calls: list[str] = []
        self.runs = RunMonitor(lambda: self.model, self.open, self.reopen)

    def open(self, name: str) -> OpenModel:
        self.calls.append("open")
        self.model = OpenModel(name, SettingStore())
        return self.model

    def reopen(self, name: str) -> OpenModel:
        self.calls.append("reopen")
        return self.open(name)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path / "runs" / "mine")
    run.path.mkdir(parents=True)
    run.events_file.touch()
    return run


def write_event(run: RunFolder, event: Event) -> None:
    with run.events_file.open("a") as file:
        file.write(to_json(event) + "\n")


def test_a_trainer_that_cannot_be_asked_for_weights_is_not_waited_for(run: RunFolder) -> None:
    run.control_file.mkdir()  # nothing can be written to it, as on a full disk
    BackgroundRun(run, None).request_weights(lambda: pytest.fail("waited"))


def test_the_model_of_a_followed_run_opens_once_it_has_weights(run: RunFolder, letters: Path) -> None:
    holder = Holder()
    holder.open(str(letters))
    holder.calls.clear()
    with FileLock(run.lock_file):
        holder.runs.add(run, None)
        holder.runs.open_followed()
        assert (holder.calls, holder.runs.training_label) == ([], "")  # the run has no weights yet
        shutil.copytree(letters, run.model)
        holder.runs.open_followed()
        holder.runs.open_followed()
        assert holder.calls == ["open"]
        assert holder.model is not None
        assert holder.model.info.folder == run.model


def test_the_final_model_of_a_run_opens_and_the_conversation_goes_on(run: RunFolder, letters: Path) -> None:
    holder = Holder()
    shutil.copytree(letters, run.model)
    with FileLock(run.lock_file):
        holder.runs.add(run, None)
        holder.runs.open_followed()
    write_event(run, Ended("finished", 4, 1.0, 2.0, 1.0, 1.0, str(letters)))
    assert [one.run for one in holder.runs.pop_ended()] == [run]
    assert holder.calls == ["open", "reopen", "open"]
    assert (holder.runs.all, holder.runs.followed) == ([], None)


def test_steps_before_a_run_went_on_are_not_its_present(run: RunFolder) -> None:
    plan, background = Planned(("a plan",), 9, 9, 9, None, "cpu", 1), BackgroundRun(run)
    with FileLock(run.lock_file):
        write_event(run, plan)
        write_event(run, Stepped(4, 0.5, 1.0, 0.1, 1.0, 9.0, 60.0, 62.0, 8))
        background.poll()
        assert background.stepped is not None
        write_event(run, plan)
        background.poll()
        assert background.stepped is None


def test_a_run_that_goes_on_is_starting_before_its_next_step(run: RunFolder) -> None:
    step = Stepped(4, 0.5, 1.0, 0.1, 1.0, 9.0, 60.0, 62.0, 8)
    background = BackgroundRun(run)
    run.earlier.mkdir()
    with FileLock(run.lock_file):
        write_event(run, step)
        background.poll()
        assert background.stepped is None
        run.earlier.rmdir()
        write_event(run, step)
        background.poll()
        assert background.stepped == step


def test_a_run_whose_folder_is_gone_has_failed(run: RunFolder, letters: Path) -> None:
    holder = Holder()
    shutil.copytree(letters, run.model)
    with FileLock(run.lock_file):
        holder.runs.add(run, None)
        holder.runs.open_followed()
    shutil.rmtree(run.path)
    (ended,) = holder.runs.pop_ended()
    assert ended.last == Failed("the run was removed")
    assert (holder.runs.all, holder.runs.followed) == ([], None)
    assert not run.path.exists()


def test_an_answer_of_a_model_in_training_is_not_reproducible(run: RunFolder, letters: Path) -> None:
    holder = Holder()
    other = OpenModel(str(letters), SettingStore())
    shutil.copytree(letters, run.model)
    with FileLock(run.lock_file):
        holder.runs.add(run, None)
        holder.runs.open_followed()
        assert holder.model is not None
        holder.runs._step = 3
        assert holder.runs.training_label == "letters (training, step 3)"
        assert holder.runs.why_not_reproducible(holder.model) == "the model was still in training"
        assert holder.runs.why_not_reproducible(other) == ""
        holder.runs.follow(None)
        assert holder.runs.why_not_reproducible(holder.model) == ""
