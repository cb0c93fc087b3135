"""What this machine has, how fast it is, and how much of its memory is taken."""

import os
import sys
import time
from pathlib import Path
from typing import Literal

import torch

from tinychat.errors import UsageError
from tinychat.model.config import ModelConfig
from tinychat.model.loading import choose_device, choose_matmul_precision
from tinychat.train.batches import Batch
from tinychat.train.distributed import ProcessGroup
from tinychat.train.planner import Machine
from tinychat.train.processes import ALONE, ProcessRank
from tinychat.train.recipe import Recipe
from tinychat.train.step import Learner

WORTHWHILE = 1.3
"""bf16 must be so much quicker than f32 at a matrix product: without hardware for it, it is many times slower"""
TIMED_STEPS = 4
STATM = Path("/proc/self/statm")


def find_machine(recipe: Recipe, process: ProcessRank = ALONE) -> Machine:
    """The device, precision and threads that the recipe names, or the best there are.

    Args:
        process: the rank of this process among those that train together.

    Raises:
        UsageError: there is no such device here, or there are not enough of them.
    """
    device = choose_device(recipe.device)
    if device != "cpu" and process.local_size > 1:
        there = torch.cuda.device_count() if device == "cuda" else 1
        if there < process.local_size:
            raise UsageError(
                f"{process.local_size} processes need as many devices: {device} has {there}",
                f"try --devices {there}, or --device cpu",
            )
    threads = set_up(recipe, device, process.local_size)
    return Machine(device, _precision(recipe, device), threads, process.size)


def set_up(recipe: Recipe, device: str, processes: int = 1) -> int:
    """Makes torch compute as it does best; returns the threads of all `processes` of this machine, who share them."""
    threads = recipe.threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    threads = max(processes, threads or 1)
    torch.set_num_threads(threads // processes)
    choose_matmul_precision(device)
    return threads


def _precision(recipe: Recipe, device: str) -> Literal["f32", "bf16"]:
    match recipe.precision, device:
        case ("f32", _) | ("auto", "mps"):
            return "f32"
        case ("bf16", _):
            return "bf16"
        case (_, "cuda"):
            return "bf16" if torch.cuda.is_bf16_supported() else "f32"
        case _:
            return "bf16" if _is_bf16_quicker() else "f32"


def _is_bf16_quicker() -> bool:
    """Whether a matrix product takes clearly less time in bf16; the two take turns, as others may be at work."""
    matrices = [torch.ones(512, 512, dtype=dtype) for dtype in (torch.float32, torch.bfloat16)]
    least = [float("inf"), float("inf")]
    for _ in range(12):
        for index, matrix in enumerate(matrices):
            began = time.perf_counter()
            matrix @ matrix
            least[index] = min(least[index], time.perf_counter() - began)
    return least[1] * WORTHWHILE < least[0]


def step_seconds(
    recipe: Recipe, config: ModelConfig, batch_size: int, group: ProcessGroup | None = None, row_tokens: int = 0
) -> float:
    """Trains a few steps of a model like that on noise, and tells how long one takes: the least, as others only add.

    Args:
        recipe: with device and precision filled in.
        group: the processes that share a step; None: this one alone.
        row_tokens: tokens of a row; 0: as many as the context.
    """
    learner = Learner(config, recipe, group)
    shape = (batch_size, min(row_tokens, config.context_length) or config.context_length)
    ids = torch.randint(config.vocab_size, shape)
    source = torch.randint(config.source_vocab_size or config.vocab_size, shape) if config.encoder_decoder else None
    batch = Batch(ids, ids.roll(-1, dims=1), torch.zeros(batch_size, dtype=torch.long), source)
    times = []
    for _ in range(TIMED_STEPS):
        began = time.perf_counter()
        learner.step(batch, 1.0).item()
        times.append(time.perf_counter() - began)
    return min(times)


def used_memory(device: torch.device) -> int:
    """Bytes: on CUDA the most that was allocated on the device so far; elsewhere what the process holds in memory.

    Where the system tells only the most that a process ever held (macOS), it is that; 0 where it tells nothing.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if STATM.is_file():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
