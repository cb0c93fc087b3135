"""Several processes train like one, and all of them exit however the run ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import training
from training import TINY, events, write_text

from tinychat.events import Ended, Failed, Planned, Stepped
from tinychat.store.runs import RunFolder
from tinychat.train.batches import Batch
from tinychat.train.checkpoint import load_checkpoint
from tinychat.train.distributed import ProcessGroup
from tinychat.train.launch import ProcessRank, change_recipe, launch
from tinychat.train.loop import Loop

FIELDS = TINY | {"batch_size": 9, "ngram_order": 0}
BENCH = Path(__file__).parent.parent / "bench"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


def test_a_batch_is_split_over_the_processes_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessGroup, "_join", lambda group: None)
    batch = Batch(torch.arange(10).reshape(5, 2), torch.arange(10).reshape(5, 2), torch.arange(5))
    batches = [ProcessGroup(ProcessRank(rank, 3, rank, 3)).local_batch(batch).ids for rank in range(3)]
    assert [len(ids) for ids in batches] == [2, 2, 1]
    assert torch.cat(batches).equal(batch.ids)
    assert ProcessGroup(ProcessRank(2, 3, 2, 3)).local_batch(batch).folds.tolist() == [4]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", ["la", "lu", "mi", "mo", "na"], 4000)


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report and poll commands after each step; restore the environment variables that the leader sets."""
    monkeypatch.setattr(Loop, "_report_interval", 0.0)
    monkeypatch.setattr("tinychat.train.loop.COMMAND_INTERVAL", 0.0)
    monkeypatch.setattr("tinychat.train.event_log.Control.install_signal_handlers", lambda control: None)
    for name in (*NAMES, "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
        monkeypatch.delenv(name)


def make(text: Path, **fields: object) -> RunFolder:
    return training.make(text, **{**FIELDS, **fields})


def train(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> int:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return training.train(run)


def losses(run: RunFolder) -> dict[int, float]:
    return {event.step: event.loss for event in events(run, Stepped)}


@pytest.mark.slow
@pytest.mark.usefixtures("every_step")
@pytest.mark.parametrize(
    ("fields", "grad_accum_steps"),
    [
        ({"optimizer": "muon"}, 1),
        ({"optimizer": "adamw"}, 1),
        ({"ngram_order": 2}, 2),
        ({"strategy": "fsdp", "optimizer": "muon"}, 1),
        ({"strategy": "fsdp", "optimizer": "adamw", "ngram_order": 2}, 4),
    ],
    ids=["muon", "adamw", "in parts, with n-grams", "sharded, muon", "sharded, adamw, in parts, with n-grams"],
)
def test_two_processes_give_the_losses_of_one(
    text: Path, fields: dict[str, object], grad_accum_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"steps": 24, "dropout": 0, "evaluate_every": 24, **fields}
    one = make(text, **fields)
    two = make(text, devices=2, grad_accum_steps=grad_accum_steps, **fields)
    assert train(one, monkeypatch) == train(two, monkeypatch) == 0
    assert "2 processes" in events(two, Planned)[0].lines[2]
    assert len(losses(one)) == 24
    assert losses(two) == pytest.approx(losses(one), abs=1e-4)
    assert events(two, Ended)[0].loss == pytest.approx(events(one, Ended)[0].loss, abs=1e-4)
    assert len(set(losses(one).values())) == 24  # no two are equal, so the comparison means something


@pytest.mark.slow
@pytest.mark.usefixtures("every_step")
@pytest.mark.parametrize(("strategy", "device_counts"), [("ddp", (1, 2, 1)), ("fsdp", (2, 1, 2))])
def test_a_run_resumes_with_another_number_of_processes(
    text: Path, strategy: str, device_counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"steps": 18, "dropout": 0, "evaluate_every": 18, "ngram_order": 2}
    whole, run = make(text, **fields), make(text, strategy=strategy, **fields)
    assert train(whole, monkeypatch) == 0
    run_commands = Loop._run_commands

    def stop_twice(loop: Loop) -> None:
        run_commands(loop)
        loop.control.stop_requested = loop.step in (6, 12)

    monkeypatch.setattr(Loop, "_run_commands", stop_twice)
    for number, devices in enumerate(device_counts, 1):
        change_recipe(run, {"devices": devices})
        assert train(run, monkeypatch) == 0
        assert events(run, Ended)[0].step == 6 * number
    assert losses(run) == pytest.approx(losses(whole), abs=1e-4)
    assert shapes(run) == shapes(whole)


def shapes(run: RunFolder) -> object:
    """Return the shapes of all tensors of a checkpoint."""

    def one(values: object) -> object:
        if isinstance(values, dict):
            return {key: one(value) for key, value in values.items()}
        return [one(value) for value in values] if isinstance(values, list) else getattr(values, "shape", None)

    state = load_checkpoint(run.checkpoints)
    assert state is not None
    return one([state.weights, state.optimizers, state.best_weights])


@pytest.mark.slow
def test_each_of_two_processes_holds_half_of_a_sharded_model() -> None:
    call = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(BENCH / "sharding.py")]
    done = subprocess.run(
        [*call, "--n-layer=1", "--d-model=64", "--steps=1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Both processes write at the same time.
    held = [json.loads(part + "}") for part in done.stdout.split("}") if part.strip()]
    assert len(held) == 2
    for process in held:
        assert process["weights"] == 4 * (256 * 64 * 2 + 12 * 64**2) / 2
        # Muon stores one number per weight of a layer, AdamW two per other weight, and its step counts.
        assert process["optimizers"] == 4 * (2 * 256 * 64 * 2 + 12 * 64**2) / 2 + 4 * 2


def workers_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def wait_for(true: Callable[[], object], seconds: float = 250) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_when_a_process_dies_the_others_exit_and_the_run_can_resume(text: Path) -> None:
    run = make(text, steps=500_000, devices=2)
    leader = launch(run, stop_with_parent=True)
    wait_for(lambda: events(run, Stepped))
    (worker,) = workers_of(leader.pid)
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait()
    wait_for(lambda: not is_alive(worker), 20)

    leader = launch(run, stop_with_parent=True)
    wait_for(lambda: events(run, Stepped))
    (worker,) = workers_of(leader.pid)
    os.kill(worker, signal.SIGKILL)
    assert leader.wait(60) == 1
    (failed,) = events(run, Failed)
    assert "process 2 of 2 was killed" in failed.problem
    assert "--grad-accum-steps" in failed.remedy

    leader = launch(run, stop_with_parent=True)
    wait_for(lambda: events(run, Stepped))
    (worker,) = workers_of(leader.pid)
    leader.send_signal(signal.SIGINT)
    assert leader.wait(60) == 0
    assert events(run, Ended)[0].reason == "stopped"
    assert not is_alive(worker)


@pytest.mark.slow
def test_torchrun_starts_a_distributed_run(text: Path) -> None:
    call = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "tinychat"]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in FIELDS.items()]
    done = subprocess.run(
        [*call, "train", str(text), "--steps=4", "--name=two", *flags], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stderr
    assert done.stderr.count("done at step 4") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("every_step")
def test_a_batch_with_fewer_rows_than_processes_is_refused(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make(text, steps=4, batch_size=1, devices=2)
    assert train(run, monkeypatch) == 1
    assert "--batch-size 2" in events(run, Failed)[0].remedy


@pytest.mark.slow
def test_connections_are_not_destructed(tmp_path: Path) -> None:
    """The destructor of a process group, called by Python, may deadlock with a thread that waits for Python."""
    code = f"""
import gc, os, weakref
import torch.distributed as dist
from tinychat.train.distributed import ProcessGroup
dist.init_process_group("gloo", init_method="file://{tmp_path / "meeting"}", rank=0, world_size=1)
world, group = weakref.ref(dist.group.WORLD), ProcessGroup()
group._joined = True
group.leave()
gc.collect()
os._exit(dist.is_initialized() or world() is None)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
