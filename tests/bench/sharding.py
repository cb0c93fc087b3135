"""How much memory each of several processes takes, one line of JSON each:

    python -m torch.distributed.run --nproc-per-node 2 tests/bench/sharding.py --strategy fsdp

    --strategy S   ddp, where each holds all, or fsdp; fsdp by default
    --optimizer O  muon by default
    --n-layer N    12 by default
    --d-model N    768 by default
    --steps N      3 by default

`weights` and `optimizers` are bytes that a process holds between two steps; `memory` is all that it then has, `most`
what it had at any time, `before` what the libraries take; `seconds` is the quickest step. The C library keeps memory
that is let go for later, unless MALLOC_MMAP_THRESHOLD_=1000000 stands in the environment.
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
from tinychat.train.machine import set_up, used_memory
from tinychat.train.processes import find_process_rank
from tinychat.train.recipe import RATES, Recipe
from tinychat.train.step import Learner

CONTEXT, ROWS, VOCABULARY = 64, 1, 256


class Peers(ProcessGroup):
    """Processes that all do the same, so that nothing has to be broadcast."""

    def broadcast(self, method: str, *arguments: object) -> None:
        """Broadcasts to nobody."""


def size(tensor: Tensor) -> int:
    """The bytes of it that are here."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).nbytes


def main() -> None:
    """Trains a few steps on noise, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=("ddp", "fsdp"), default="fsdp")
    parser.add_argument("--optimizer", choices=RATES, default="muon")
    parser.add_argument("--n-layer", type=int, default=12)
    parser.add_argument("--d-model", type=int, default=768)
    parser.add_argument("--steps", type=int, default=3)
    given = parser.parse_args()
    recipe = Recipe(device="cpu", precision="f32", strategy=given.strategy, optimizer=given.optimizer)
    process = find_process_rank()
    set_up(recipe, "cpu", process.local_size)
    group = Peers(process)
    before = used_memory(torch.device("cpu"))
    heads = max(1, given.d_model // 64)
    config = ModelConfig(VOCABULARY, context=CONTEXT, n_layer=given.n_layer, n_head=heads, d_model=given.d_model)
    learner = Learner(config, recipe, group)
    rows = ROWS * process.size
    ids = torch.randint(VOCABULARY, (rows, CONTEXT), generator=torch.Generator().manual_seed(0))
    batch = Batch(ids, ids.roll(-1, dims=1), torch.zeros(rows, dtype=torch.long))
    seconds = []
    for step in range(given.steps):
        began = time.perf_counter()
        learner.step(batch, 1.0, step)
        seconds.append(time.perf_counter() - began)
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
    os._exit(0)  # as a trainer ends: at Python's own end, threads of torch's connections may abort the process


if __name__ == "__main__":
    main()
