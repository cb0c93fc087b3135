"""Folders of training runs."""

import os
import threading
from pathlib import Path

import pytest

from tinychat.store.runs import RunFolder, list_runs


def test_a_run_is_at_work_while_its_trainer_holds_the_lock(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert not run.is_running()
    with run.lock():
        assert run.is_running()
    assert not run.is_running()


def test_those_who_ask_at_once_are_not_taken_for_the_trainer(tmp_path: Path) -> None:
    with RunFolder(tmp_path).lock():  # a trainer has been here
        pass
    answers: list[bool] = []

    def ask() -> None:
        answers.extend(RunFolder(tmp_path).is_running() for _ in range(300))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 600
    assert not any(answers)


def test_a_run_that_is_removed_while_runs_are_listed_is_left_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("older", "newer", "gone"):
        recipe = RunFolder(home / "runs" / name).recipe_file
        recipe.parent.mkdir(parents=True)
        recipe.touch()
    os.utime(home / "runs" / "older" / "recipe.toml", (1, 1))
    find = Path.glob

    def find_and_remove(path: Path, pattern: str) -> list[Path]:
        found = list(find(path, pattern))
        (home / "runs" / "gone" / "recipe.toml").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "glob", find_and_remove)
    assert [run.name for run in list_runs()] == ["newer", "older"]
