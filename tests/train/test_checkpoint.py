"""Checkpoints: whole or absent, the newest two, read without running code."""

from pathlib import Path

import pytest
import torch

from tinychat.train.checkpoint import STATE, State, load_checkpoint, newest_step, save_checkpoint


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


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
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


def test_where_there_is_none_there_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "absent") is None
    assert newest_step(tmp_path) == -1


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_one_gives_way_to_the_one_before(tmp_path: Path, damage) -> None:
    save_checkpoint(tmp_path, state(1))
    newest = save_checkpoint(tmp_path, state(2)) / STATE
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
    torch.save({"format": 1, "trap": Trap()}, folder / STATE)
    assert load_checkpoint(tmp_path) is None
    assert not (tmp_path / "sprung").exists()
