"""A run recovers when memory runs out, and when its loss becomes NaN."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training
from torch import Tensor
from training import events, train, write_text

from tinychat.events import Ended, Failed, Noticed, Stepped
from tinychat.model.transformer import Transformer
from tinychat.store.models import read_info, read_weights
from tinychat.store.runs import RunFolder
from tinychat.train.batches import Batch
from tinychat.train.checkpoint import load_checkpoint
from tinychat.train.event_log import loss_curve
from tinychat.train.launch import change_recipe, is_out_of_memory
from tinychat.train.loop import Loop
from tinychat.train.recipe import load_recipe
from tinychat.train.step import Learner

FIELDS = {"steps": 30, "evaluate_every": 10}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loop, "_report_interval", 0.0)
    monkeypatch.setattr(
        "tinychat.train.loop.FIRST_SAVE", math.inf
    )  # save only after evaluations: by steps, not by time
    write_text(Path("text.txt"), ["la", "lu", "mi", "mo"], 2000)


def make(**fields: object) -> RunFolder:
    return training.make("text.txt", **{**FIELDS, **fields})


def notices(run: RunFolder, words: str) -> list[str]:
    return [event.text for event in events(run, Noticed) if words in event.text]


# --- the loss becomes NaN -------------------------------------------------------------------------------------------


def poison(monkeypatch: pytest.MonkeyPatch, steps: list[int], *, before: bool = True) -> None:
    """Make weights NaN before or after these steps, each as often as the list has it."""
    step = Learner.step

    def poisoned(learner: Learner, batch: Batch, factor: float, number: int = 0, progress: float = 1.0) -> Tensor:
        due = number in steps
        if due:
            steps.remove(number)
        if due and before:
            learner.model.head.weight.data.fill_(math.nan)
        loss = step(learner, batch, factor, number, progress)
        if due and not before:
            learner.model.head.weight.data.fill_(math.nan)
        return loss

    monkeypatch.setattr(Learner, "step", poisoned)


@pytest.mark.slow
def test_a_run_returns_to_its_last_checkpoint_with_half_the_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make(schedule="constant", warmup_steps=0)
    poison(monkeypatch, [15])
    assert train(run) == 0
    assert notices(run, "nan") == [
        "the loss or its gradient became nan by step 16: back to step 10 with half the learning rate"
    ]
    steps = events(run, Stepped)
    assert [event.step for event in steps] == [*range(1, 16), *range(11, 31)]
    first = steps[0].learning_rate
    assert {event.learning_rate for event in steps[:15]} == {first}
    assert {event.learning_rate for event in steps[15:]} == {first / 2}
    ended = events(run, Ended)[0]
    assert (ended.reason, ended.step) == ("done", 30)
    assert [step for step, _ in loss_curve(run.events_file)["training"]] == [*range(1, 31)]
    state = load_checkpoint(run.checkpoints)
    assert state is not None
    assert state.lr_scale == 0.5  # a resumed run keeps it


@pytest.mark.slow
def test_a_run_without_a_checkpoint_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, same = make(optimizer="adamw", learning_rate=0.002), make(optimizer="adamw", learning_rate=0.001)
    assert train(same) == 0
    poison(monkeypatch, [3])
    assert train(run) == 0
    assert "back to step 0" in notices(run, "nan")[0]
    one, other = (read_weights(read_info(run.model)) for run in (run, same))
    assert all(one[name].equal(other[name]) for name in one)


@pytest.mark.slow
def test_the_third_time_ends_the_run_and_keeps_the_last_finite_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()
    poison(monkeypatch, [15, 15, 15])
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert "halved twice" in failed.problem
    assert "--learning-rate" in failed.remedy
    assert len(notices(run, "half the learning rate")) == 2
    state = load_checkpoint(run.checkpoints)
    assert state is not None
    assert (state.step, state.lr_scale) == (10, 0.25)
    for weights in (state.weights, read_weights(read_info(run.model))):
        assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.slow
@pytest.mark.parametrize("step", [19, 29], ids=["on the way", "at the end"])
def test_a_nan_validation_loss_counts_as_well(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    run = make()
    poison(monkeypatch, [step], before=False)
    assert train(run) == 0
    assert f"back to step {step - 9}" in notices(run, "nan")[0]
    assert events(run, Ended)[0].step == 30
    assert math.isfinite(events(run, Ended)[0].loss)


# --- memory runs out -----------------------------------------------------------------------------------------------


def limit(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Raise an out-of-memory error for micro-batches of more rows."""
    loss = Transformer.loss

    def limited(model: Transformer, ids: Tensor, targets: Tensor, **inputs: Tensor | None) -> Tensor:
        if model.training and len(ids) > rows:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return loss(model, ids, targets, **inputs)

    monkeypatch.setattr(Transformer, "loss", limited)


@pytest.mark.slow
def test_smaller_micro_batches_give_the_result_of_a_run_that_started_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, same = make(dropout=0.1), make(dropout=0.1, grad_accum_steps=4)
    assert train(same) == 0
    with monkeypatch.context() as patch:
        limit(patch, rows=2)
        patch.setattr("tinychat.train.loop.COMMAND_INTERVAL", 0.0)
        patch.setattr(Loop, "_run_commands", lambda loop: setattr(loop.control, "stop_requested", loop.step == 12))
        assert train(run) == 0
    assert notices(run, "memory") == ["memory ran out at step 1: steps are computed in 4 parts from now on"]
    assert events(run, Ended)[0].step == 12
    assert train(run) == 0  # memory suffices now, but a run keeps its micro-batches
    assert events(run, Ended)[0].step == 30
    # The last weights: the best ones may be those of step 12, where only the run that was stopped measured itself.
    one, other = load_checkpoint(run.checkpoints), load_checkpoint(same.checkpoints)
    assert one is not None
    assert other is not None
    assert one.step == other.step == 30
    assert all(one.weights[name].equal(other.weights[name]) for name in one.weights)


def test_a_model_too_large_for_one_row_fails_with_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()
    limit(monkeypatch, rows=0)
    assert train(run) == 1
    (failed,) = events(run, Failed)
    assert "not even of one row" in failed.problem
    assert "--context-length" in failed.remedy


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("shapes differ"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_errors_are_recognized(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) == expected


REAL = """
import resource, torch
from tinychat.model.config import ModelConfig
from tinychat.train.batches import Batch
from tinychat.train.step import Learner
from tinychat.train.recipe import load_recipe

torch.set_num_threads(1)
learner = Learner(
    ModelConfig(64, context_length=128, n_layer=2, d_model=128),
    load_recipe().merged({"device": "cpu", "precision": "f32"}),
)
def step(rows):
    ids = torch.arange(rows * 128).reshape(rows, 128) % 64
    return learner.step(Batch(ids, ids.roll(-1, dims=1), torch.zeros(rows, dtype=torch.long)), 1.0).item()
step(1)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 150_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(step(128), learner.grad_accum_steps)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_memory_limited_by_the_system(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loss, grad_accum_steps = done.stdout.split()
    assert math.isfinite(float(loss))
    assert int(grad_accum_steps) > 1


def test_a_resumed_run_may_change_only_how_steps_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()
    change_recipe(run, {"grad_accum_steps": "2", "threads": "1"})
    assert load_recipe(run.recipe_file).grad_accum_steps == 2
    with pytest.raises(Exception, match="--batch-size cannot change"):
        change_recipe(run, {"devices": 1, "batch_size": 3})
