"""What this machine can train."""

import time

import pytest
import torch

from tinychat.errors import RunError
from tinychat.model.config import ModelConfig
from tinychat.train.machine import check_memory, find_machine
from tinychat.train.planner import Machine
from tinychat.train.recipe import Recipe


def test_a_model_that_no_memory_holds_is_refused() -> None:
    machine = Machine("cpu", "f32", 1)
    check_memory(ModelConfig(100), machine)
    huge = ModelConfig(100, n_layer=1 << 12, d_model=1 << 15)
    with pytest.raises(RunError, match="52777B parameters need at least 1,055,531 GB of memory, and this machine has "):
        check_memory(huge, machine)
    check_memory(huge, Machine("cuda", "bf16", 1))


def test_bf16_is_timed_in_one_thread_as_others_may_use_the_other_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """And f32 with the kernel that training uses, which follows from the precision of matrix products."""
    seen, read_clock = set(), time.perf_counter

    def read_clock_and_state() -> float:
        seen.add((torch.get_num_threads(), torch.get_float32_matmul_precision()))
        return read_clock()

    monkeypatch.setattr(time, "perf_counter", read_clock_and_state)
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert find_machine(Recipe(device="cpu", threads=2)).threads == torch.get_num_threads() == 2
        assert seen == {(1, torch.get_float32_matmul_precision())}
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
