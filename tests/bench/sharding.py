"""Measure the memory of each of several training processes, as one line of JSON each:

    python -m torch.distributed.run --nproc-per-node 2 tests/bench/sharding.py --strategy fsdp

    --strategy S   ddp (full replicas) or fsdp (default)
    --optimizer O  optimizer (default: muon)
    --n-layer N    number of layers (default: 12)
    --d-model N    model width (default: 768)
    --steps N      number of steps (default: 3)

`weights` and `optimizers` are the bytes that a process holds between two steps; `memory` is its total then, `most` its
peak, `before` the memory of the libraries alone; `seconds` is the fastest step. The C library retains freed memory
unless MALLOC_MMAP_THRESHOLD_=1000000 is set in the environment.
"""

import argparse
import json
import os
import resource
import time

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from tinychat.model.config import ModelConfig
from tinychat.train.batches import Batch
from tinychat.train.distributed import ProcessGroup
from tinychat.train.launch import find_process_rank
from tinychat.train.machine import configure_torch, used_memory
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe
from tinychat.train.step import Learner

CONTEXT, ROWS, VOCABULARY = 64, 1, 256


class Peers(ProcessGroup):
    """Processes that all run the same code, so that nothing has to be broadcast."""

    def broadcast(self, method: str, *arguments: object) -> None:
        """Do nothing."""


def size(tensor: Tensor) -> int:
    """Return the bytes of a tensor that this process holds."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).nbytes


def main() -> None:
    """Train a few steps on random tokens and print the memory use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=("ddp", "fsdp"), default="fsdp")
    parser.add_argument("--optimizer", choices=PEAK_LEARNING_RATES, default="muon")
    parser.add_argument("--n-layer", type=int, default=12)
    parser.add_argument("--d-model", type=int, default=768)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    recipe = Recipe(device="cpu", precision="f32", strategy=args.strategy, optimizer=args.optimizer)
    process = find_process_rank()
    configure_torch(recipe, "cpu", process.local_size)
    group = Peers(process)
    before = used_memory(torch.device("cpu"))
    heads = max(1, args.d_model // 64)
    config = ModelConfig(VOCABULARY, context_length=CONTEXT, n_layer=args.n_layer, n_head=heads, d_model=args.d_model)
    learner = Learner(config, recipe, group)
    rows = ROWS * process.size
    ids = torch.randint(VOCABULARY, (rows, CONTEXT), generator=torch.Generator().manual_seed(0))
    batch = Batch(ids, ids.roll(-1, dims=1), torch.zeros(rows, dtype=torch.long))
    seconds = []
    for step in range(args.steps):
        start = time.perf_counter()
        learner.step(batch, 1.0, step)
        seconds.append(time.perf_counter() - start)
    groups = [group for optimizer in learner.optimizers for group in optimizer.param_groups]
    states = [state for optimizer in learner.optimizers for state in optimizer.state.values()]
    figures = {
        "process": process.rank + 1,
        "weights": sum(size(weight) for group in groups for weight in group["params"]),
        "optimizers": sum(size(value) for state in states for value in state.values()),
        "before": before,
        "memory": used_memory(torch.device("cpu")),
        "most": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "seconds": round(min(seconds), 3),
        "parameters": learner.model.parameter_count,
    }
    print(json.dumps(figures), flush=True)  # noqa: T201
    group.leave()
    os._exit(0)  # like the trainer: at interpreter exit, torch's connection threads may abort the process


if __name__ == "__main__":
    main()
