"""Checkpoints are whole or absent and are read without running code; weights are published during training."""

import dataclasses
from pathlib import Path

import pytest
import torch

from tinychat.store.models import WEIGHTS, read_info, read_weights
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots, read_step, snapshot_file
from tinychat.train.checkpoint import (
    FORMAT,
    PUBLISH_INTERVAL,
    SNAPSHOT_ALLOWANCE,
    STATE_FILE,
    Publisher,
    State,
    find_surplus,
    load_checkpoint,
    newest_step,
    save_checkpoint,
)


def state(step: int) -> State:
    weight = torch.nn.Parameter(torch.full((2, 2), float(step)))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return State(
        step=step,
        seconds=1.5,
        available=60.0,
        weights={"weight": weight.detach()},
        optimizers=[optimizer.state_dict()],
        best_weights={"weight": torch.zeros(2)},
        best_loss=2.5,
        fingerprint="abc",
    )


def test_a_saved_state_is_loaded_again(tmp_path: Path) -> None:
    saved = state(3)
    save_checkpoint(tmp_path, saved)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.weights["weight"].equal(saved.weights["weight"])
    assert (loaded.step, loaded.seconds, loaded.best_loss, loaded.fingerprint) == (3, 1.5, 2.5, "abc")
    assert loaded.optimizers[0]["param_groups"] == saved.optimizers[0]["param_groups"]


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (5, 50, 500):
        save_checkpoint(tmp_path, state(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000050", "step-00000500"]
    assert newest_step(tmp_path) == 500


def test_a_copy_of_a_checkpoint_is_passed_over(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, state(5)).with_name("step-00000005 copy").mkdir()
    save_checkpoint(tmp_path, state(6))
    assert newest_step(tmp_path) == 6
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.step == 6


def test_checkpoints_of_later_steps_that_cannot_be_read_do_not_outlive_a_new_one(tmp_path: Path) -> None:
    for step in (4000, 5000):
        (save_checkpoint(tmp_path, state(step)) / STATE_FILE).write_bytes(b"of another version")
    for step in (10, 20):
        save_checkpoint(tmp_path, state(step))
        loaded = load_checkpoint(tmp_path)
        assert loaded is not None
        assert loaded.step == newest_step(tmp_path) == step


def test_a_folder_without_checkpoints(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "absent") is None
    assert newest_step(tmp_path) == -1


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_checkpoint_is_skipped_for_the_previous_one(tmp_path: Path, damage) -> None:
    save_checkpoint(tmp_path, state(1))
    newest = save_checkpoint(tmp_path, state(2)) / STATE_FILE
    newest.write_bytes(damage(newest.read_bytes()))
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.step == 1


def test_reading_runs_no_code(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "sprung",))

    folder = tmp_path / "step-00000001"
    folder.mkdir()
    torch.save({"format": FORMAT, "trap": Trap()}, folder / STATE_FILE)
    assert load_checkpoint(tmp_path) is None
    assert not (tmp_path / "sprung").exists()


MATRIX = {"weight": torch.arange(6.0).reshape(2, 3)}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def publisher(run: RunFolder) -> Publisher:
    def write_model(state: State) -> None:
        run.model.mkdir(parents=True)

    return Publisher(run, write_model, tied=False)


def test_the_whole_model_is_published_first_then_only_its_weights(run: RunFolder, publisher: Publisher) -> None:
    assert publisher.is_due(0.0)
    publisher.publish(State(0, 0.0, weights=MATRIX))
    assert list(run.model.iterdir()) == []
    assert not publisher.is_due(PUBLISH_INTERVAL / 2)
    publisher.publish(State(12, 3.0, weights=MATRIX))
    assert [path.name for path in run.model.iterdir()] == [WEIGHTS]
    assert read_step(run.model / WEIGHTS) == 12


def test_reading_the_step_of_a_file_without_one(tmp_path: Path) -> None:
    assert read_step(tmp_path / "nothing") is None
    (tmp_path / "short").write_bytes(b"\x08")
    assert read_step(tmp_path / "short") is None


def test_a_few_evenly_spaced_snapshots_remain_of_the_powers_of_two(run: RunFolder, publisher: Publisher) -> None:
    for step in range(5000):
        if publisher.snapshot_is_due(step, 1e6):
            publisher.save_snapshot(step, MATRIX)
    publisher.save_snapshot(5000, MATRIX)
    assert [snapshot.step for snapshot in list_snapshots(run)] == [0, 1, 4, 16, 64, 256, 1024, 5000]
    assert read_step(snapshot_file(run, 64)) == 64


def test_surplus_snapshots_exclude_the_first_and_the_last() -> None:
    assert find_surplus([0, 1, 2]) == []
    assert find_surplus([0, 10, 11, 100], max_snapshots=3) == [11]
    assert find_surplus([0, 7, 9], max_snapshots=2) == [7]


def test_snapshots_that_would_take_too_long_are_skipped(publisher: Publisher) -> None:
    publisher._snapshot_seconds = SNAPSHOT_ALLOWANCE + 1.0
    assert not publisher.snapshot_is_due(4, 2.0)
    assert publisher.snapshot_is_due(1024, 200.0)


def test_errors_of_the_disk_do_not_end_the_run(run: RunFolder, publisher: Publisher) -> None:
    run.path.mkdir()
    run.snapshots.write_text("no folder")
    publisher.save_snapshot(1, MATRIX)
    run.model.write_text("no folder")
    publisher.publish(State(1, 0.0, weights=MATRIX))
    assert publisher.is_due(60.0)


def test_a_snapshot_replaces_the_weights_of_a_model(letters: Path, run: RunFolder) -> None:
    info = read_info(letters)
    weights = read_weights(info)
    publisher = Publisher(run, lambda state: None, tied=info.architecture["tie_embeddings"])
    publisher.save_snapshot(3, {name: weight + 1 for name, weight in weights.items()})
    changed = read_weights(dataclasses.replace(info, snapshot=snapshot_file(run, 3)))
    for name, weight in weights.items():
        torch.testing.assert_close(changed[name], weight + 1, atol=0.02, rtol=0.01)
