"""Device, precision and threads of this machine; the speed of a step and the memory in use."""

import os
import resource
import sys
import time
from pathlib import Path

import torch

from tinychat.errors import RunError, UsageError
from tinychat.model.config import CONTEXT_LENGTHS, MAX_RECENT, ModelConfig, make_diagram
from tinychat.model.loading import choose_device, choose_matmul_precision
from tinychat.textutil import compact
from tinychat.train.batches import Batch
from tinychat.train.distributed import ProcessGroup
from tinychat.train.launch import ALONE, ProcessRank
from tinychat.train.planner import Machine
from tinychat.train.recipe import Recipe
from tinychat.train.step import Learner

BF16_MIN_SPEEDUP = 1.3
"""Speed-up over f32 at a matrix product from which bf16 is used; without hardware support it is many times slower."""
TIMED_STEPS = 3
STATM = Path("/proc/self/statm")


def find_machine(recipe: Recipe, process: ProcessRank = ALONE) -> Machine:
    """Return the device, precision and threads that the recipe names, or the best available, and set up torch for them.

    Raises:
        UsageError: If this machine lacks the device, or has too few of them.
    """
    device = choose_device(recipe.device)
    if device != "cpu" and process.local_size > 1:
        available = torch.cuda.device_count() if device == "cuda" else 1
        if available < process.local_size:
            problem = f"{process.local_size} processes need as many devices: {device} has {available}"
            raise UsageError(problem, f"try --devices {available}, or --device cpu")
    use_bf16 = recipe.precision == "bf16"
    if recipe.precision == "auto" and device != "mps":
        use_bf16 = torch.cuda.is_bf16_supported() if device == "cuda" else _is_bf16_faster()
    threads = configure_torch(recipe, device, process.local_size)
    return Machine(device, "bf16" if use_bf16 else "f32", threads, process.size)


def configure_torch(recipe: Recipe, device: str, processes: int = 1) -> int:
    """Set torch's threads and precision of matrix products; return the threads of all `processes` of this machine."""
    threads = recipe.threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    threads = max(processes, threads or 1)
    torch.set_num_threads(threads // processes)
    choose_matmul_precision(device)
    return threads


def _is_bf16_faster() -> bool:
    """Return whether a matrix product on the processor is clearly faster in bf16 than in f32 as training computes it.

    The two alternate in a single thread, as the machine may be shared: two threads wait for the one whose core is busy.
    """
    choose_matmul_precision("cpu")
    torch.set_num_threads(1)
    matrices = [torch.ones(512, 512, dtype=dtype) for dtype in (torch.float32, torch.bfloat16)]
    fastest = [float("inf")] * 2
    for _ in range(12):
        for index, matrix in enumerate(matrices):
            began = time.perf_counter()
            matrix @ matrix
            fastest[index] = min(fastest[index], time.perf_counter() - began)
    return fastest[1] * BF16_MIN_SPEEDUP < fastest[0]


class StepTimer:
    """Times training steps of candidates on noise; may time one again, later, when the machine is less busy.

    The recipe has its device and precision filled in. Rows are `row_tokens` long; 0 for the context length.
    """

    def __init__(self, recipe: Recipe, group: ProcessGroup | None = None, row_tokens: int = 0) -> None:
        self._recipe, self._group, self._row_tokens = recipe, group, row_tokens
        self._learners: dict[tuple[ModelConfig, int], Learner] = {}

    def __call__(self, config: ModelConfig, batch_size: int) -> float:
        """Take a few steps; return the seconds of the fastest, as other programs only add to it."""
        learner = self._learners.get((config, batch_size))
        if learner is None:
            learner = Learner(config, self._recipe, self._group)
            if self._group is None or self._group.size == 1:  # workers have one learner each
                self._learners[config, batch_size] = learner
        shape = (batch_size, min(self._row_tokens, config.context_length) or config.context_length)
        ids = torch.randint(config.vocab_size, shape)
        source = torch.randint(config.source_vocab_size or config.vocab_size, shape) if config.encoder_decoder else None
        batch = Batch(ids, ids.roll(-1, dims=1), torch.zeros(batch_size, dtype=torch.long), source)
        if config.ngram_order and not self._row_tokens:
            followers = torch.randint(config.vocab_size, (*shape, len(CONTEXT_LENGTHS), MAX_RECENT))
            batch = batch._replace(followers=followers.short())
        times = []
        for _ in range(TIMED_STEPS):
            began = time.perf_counter()
            learner.step(batch, 1.0).item()
            times.append(time.perf_counter() - began)
        return min(times)


def check_memory(config: ModelConfig, machine: Machine) -> None:
    """Check that a model can be trained in this machine's memory, which a process that takes too much is killed for.

    Raises:
        RunError: If the weights, gradients, moments and best weights alone, in f32, need more than there is.
    """
    if machine.device != "cpu" or machine.processes > 1:
        return
    parameters = make_diagram(config).parameters
    needed, available = 20 * parameters, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > available:
        sizes = f"at least {needed / 1e9:,.0f} GB of memory, and this machine has {available / 1e9:,.0f}"
        problem = f"{compact(parameters)} parameters need {sizes}"
        raise RunError(problem, "try a smaller --d-model, --n-layer or --vocab-size")


def used_memory(device: torch.device) -> int:
    """Return the memory in use, in bytes: on CUDA the peak allocated on the device, else the process's resident set.

    On macOS it is the peak of the resident set.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if STATM.is_file():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
