"""Distributed training: the group of processes that share a step, and the sharding of a model over them.

The leader broadcasts calls: one that makes a learner, then calls of its methods. The call for a step carries the batch,
as token ids are few beside the gradients exchanged afterwards; so workers need no text, no files and no clock.
"""

import copy
import logging
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.model_parallel import ModelParallelStrategy
from lightning_fabric.strategies.strategy import Strategy
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tinychat.model.transformer import Transformer
from tinychat.train.batches import Batch
from tinychat.train.launch import ALONE, ProcessRank
from tinychat.train.recipe import Recipe

# gloo sends what `map_matrices` exchanges to all processes on CPUs: silence its warning.
logging.getLogger("torch.distributed.tensor._collective_utils").setLevel(logging.ERROR)

TIMEOUT = timedelta(minutes=30)
"""Time that a process waits for one that does not answer; the leader may be evaluating meanwhile."""
KEPT_ALIVE: list[object] = []
"""Closed connections, kept from being destructed: the destructor may deadlock with one of torch's threads."""
PRECISIONS: dict[str, Literal["32-true", "bf16-mixed"]] = {"f32": "32-true", "bf16": "bf16-mixed"}


class ProcessGroup:
    """The processes that train together, seen from this one."""

    def __init__(self, process: ProcessRank = ALONE) -> None:
        self.process, self.size = process, process.size
        self.is_leader = process.rank == 0
        self._joined = self.size > 1
        if self._joined:
            self._join()

    def broadcast(self, method: str, *arguments: Any) -> None:
        """Make all workers call a method that the leader is about to call; do nothing in a worker."""
        if self._joined and self.is_leader:
            dist.broadcast_object_list([(method, arguments)], src=0)

    def receive(self) -> tuple[str, tuple[Any, ...]]:
        """Wait for the leader's next call: a method of `Learner`, `make` or `leave`, and its arguments."""
        calls: list[Any] = [None]
        dist.broadcast_object_list(calls, src=0)
        method, arguments = calls[0]
        return method, arguments

    def leave(self) -> None:
        """Leave the group and close its connections; the leader dismisses the workers and continues alone."""
        self.broadcast("leave")
        if self._joined:
            self._joined = False
            KEPT_ALIVE.extend(dist.distributed_c10d._world.pg_map)
            dist.destroy_process_group()

    def local_batch(self, batch: Batch) -> Batch:
        """Return the rows of a batch that this process computes."""
        return batch.tensor_split(self.size)[self.process.rank]

    def make_fabric(self, recipe: Recipe) -> Fabric:
        """Return a Fabric with the device, precision and strategy: the model replicated or sharded over the group."""
        strategy: str | Strategy = "auto"
        if self.size > 1 and recipe.strategy == "fsdp":
            strategy = ModelParallelStrategy(_shard_model, data_parallel_size=self.size, tensor_parallel_size=1)
        elif self.size > 1:
            strategy = DDPStrategy(gradient_as_bucket_view=True, broadcast_buffers=False)
        fabric = Fabric(
            accelerator=recipe.device,
            devices=self.process.local_size,
            num_nodes=max(1, self.size // self.process.local_size),
            strategy=strategy,
            precision=PRECISIONS[recipe.precision],
            plugins=[LightningEnvironment()],
        )
        fabric.launch()
        return fabric

    def _join(self) -> None:
        """Connect to the other processes, and set the environment variables that Fabric reads."""
        process = self.process
        if "MASTER_ADDR" not in os.environ and "SLURM_PROCID" in os.environ:
            slurm = SLURMEnvironment()
            os.environ |= {"MASTER_ADDR": slurm.main_address, "MASTER_PORT": str(slurm.main_port)}
        os.environ |= {
            "RANK": str(process.rank),
            "WORLD_SIZE": str(process.size),
            "LOCAL_RANK": str(process.local_rank),
            "NODE_RANK": str(process.rank // process.local_size),
        }
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # else Fabric would set the number of threads
        dist.init_process_group(timeout=TIMEOUT)  # with the default backend of each device type


# --- sharding --------------------------------------------------------------------------------------------------------
#
# With fully sharded data parallelism (Rajbhandari et al. 2020; Zhao et al. 2023, torch's `fully_shard`), each process
# holds a shard of weights, gradients and optimizer state: `DTensor`s, sharded along dimension 0. The weights of a block
# are gathered for its forward and backward pass and freed afterwards.


def find_mesh(fabric: Fabric) -> DeviceMesh | None:
    """Return the device mesh that a Fabric shards over; None if each process holds the whole model."""
    strategy = fabric.strategy
    return strategy.device_mesh["data_parallel"] if isinstance(strategy, ModelParallelStrategy) else None


def _shard_model(model: Transformer, mesh: DeviceMesh) -> Transformer:
    """Shard the blocks one by one, then the remaining weights; before, all processes hold the same weights."""
    for module in (*(block for stack in model.stacks for block in stack.blocks), model):
        fully_shard(module, mesh=mesh["data_parallel"])
    register_fsdp_forward_method(model, "loss")
    return model


def to_meta(values: Any) -> Any:
    """Return a state in which tensors to be sharded are on the meta device: shapes for the workers before `scatter`."""
    return _map_sharded(values, lambda tensor: tensor.to("meta"))


def scatter(values: Any, mesh: DeviceMesh) -> Any:
    """Shard the leader's state, tensor by tensor; all processes call it, workers with the result of `to_meta`."""

    def convert(tensor: Tensor) -> Tensor:
        device = mesh.device_type
        local = torch.empty_like(tensor, device=device) if tensor.is_meta else tensor.to(device)
        return distribute_tensor(local, mesh, [Shard(0)])  # sends the leader's values

    return _map_sharded(values, convert)


def _map_sharded(values: Any, convert: Callable[[Tensor], Tensor]) -> Any:
    """Convert the tensors that FSDP shards: weights and optimizer state, but neither counts nor step numbers."""
    return apply_to_collection(
        values, Tensor, lambda tensor: convert(tensor) if tensor.is_floating_point() and tensor.dim() else tensor
    )


def gather(values: Any, *, keep: bool) -> Any:
    """Return a state with its sharded tensors gathered on the CPU, or None unless `keep`; all processes call it."""

    def convert(sharded: DTensor) -> Tensor | None:
        tensor = full_tensor(sharded)
        return tensor.cpu() if keep else None

    return apply_to_collection(values, DTensor, convert)


def full_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor [...] whole; if it is sharded, all processes must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def empty_copy(model: Transformer) -> Transformer:
    """Copy a model with empty weights, which `fill_weights` fills."""
    # Buffers are shared with the original: n-gram counts are large.
    weights = {id(weight): nn.Parameter(weight.new_empty(0)) for weight in model.parameters()}
    return copy.deepcopy(model, weights | {id(buffer): buffer for buffer in model.buffers()})


def fill_weights(model: Transformer, sharded: Transformer, *, keep: bool) -> None:
    """Gather the weights of a sharded model into its empty copy if `keep`; all processes call it."""
    for weight, shard in zip(model.parameters(), sharded.parameters(), strict=True):
        values = full_tensor(shard.detach())
        if keep:
            weight.data = values


def free_weights(model: Transformer) -> None:
    """Empty a model that `fill_weights` filled."""
    for weight in model.parameters():
        weight.data = weight.new_empty(0)


def map_matrices(compute: Callable[..., Tensor], matrices: Tensor, *others: object) -> Tensor:
    """Apply a function to whole matrices; if their rows are sharded, each process computes some of the matrices.

    `compute` takes [any N, rows, columns] and `others`, and returns the same shape; `matrices` are [N, rows, columns].
    """
    if not isinstance(matrices, DTensor):
        return compute(matrices, *others)
    shape, stride = matrices.shape, torch.empty(matrices.shape, device="meta").stride()
    result = compute(matrices.redistribute(placements=[Shard(0)]).to_local(), *others)
    sharded = DTensor.from_local(result, matrices.device_mesh, [Shard(0)], shape=shape, stride=stride)
    return sharded.redistribute(placements=matrices.placements)
