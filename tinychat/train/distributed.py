"""Training by several processes: how the leader directs the workers, and how a step and a model are shared.

The leader broadcasts orders as they come: to make a learner, and then which of its methods to call. The order for a
step carries its batch: ids are few beside the gradients that are exchanged afterwards, so workers need no text, no
files and no clock.

With fully sharded data parallelism (Rajbhandari et al. 2020; Zhao et al. 2023, torch's `fully_shard`), each process
holds its shard of weights, gradients and optimizer state. Each tensor is sharded by its rows. The weights of a block
are gathered to compute it, forward and backward, and freed afterwards. A shard is a `DTensor`, which knows the whole
shape and computes with the other processes.
"""

import copy
import logging
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.strategies.ddp import DDPStrategy
from lightning.fabric.strategies.model_parallel import ModelParallelStrategy
from lightning.fabric.strategies.strategy import Strategy
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tinychat.model.transformer import Transformer
from tinychat.train.batches import Batch
from tinychat.train.processes import ALONE, ProcessRank
from tinychat.train.recipe import Recipe

# On CPUs what `by_matrix` exchanges goes to all processes, as gloo can do no better: that is no news to anyone.
logging.getLogger("torch.distributed.tensor._collective_utils").setLevel(logging.ERROR)

PATIENCE = timedelta(minutes=30)
"""A process waits so long for another one that lives but does not answer; the leader evaluates meanwhile."""

KEPT: list[object] = []
"""Connections that are cut are never taken apart, as the process ends soon: torch would wait for a thread of its own
then, which may wait for Python meanwhile, for ever."""

PRECISIONS: dict[str, Literal["32-true", "bf16-mixed"]] = {"f32": "32-true", "bf16": "bf16-mixed"}


Order = tuple[str, tuple[Any, ...]]
"""The name of a method of `Learner`, or `make` or `leave`, and its arguments."""


class ProcessGroup:
    """This process and those that it trains with.

    Args:
        process: the rank of this process.
    """

    def __init__(self, process: ProcessRank = ALONE) -> None:
        self.process = process
        self._joined = False
        if self.size > 1:
            self._join()

    @property
    def size(self) -> int:
        """The number of processes, this one included."""
        return self.process.size

    @property
    def leads(self) -> bool:
        """Whether this process is the leader."""
        return self.process.rank == 0

    def broadcast(self, method: str, *arguments: Any) -> None:
        """Make all workers call a method that the leader is about to call; does nothing in a worker."""
        if self._joined and self.leads:
            dist.broadcast_object_list([(method, arguments)], src=0)

    def receive(self) -> Order:
        """Wait for the leader's next order."""
        orders: list[Any] = [None]
        dist.broadcast_object_list(orders, src=0)
        order: Order = orders[0]
        return order

    def end(self) -> None:
        """Dismiss the workers and go on alone."""
        self.broadcast("leave")
        self.leave()

    def leave(self) -> None:
        """Leave the group."""
        if self._joined:
            self._joined = False
            KEPT.extend(dist.distributed_c10d._world.pg_map)
            dist.destroy_process_group()

    def share(self, batch: Batch) -> Batch:
        """The rows of a batch that this process learns from."""
        return batch.tensor_split(self.size)[self.process.rank]

    def fabric(self, recipe: Recipe) -> Fabric:
        """Return a Fabric with the device, precision and strategy: the model replicated or sharded over the group."""
        strategy: str | Strategy = "auto"
        if self.size > 1 and recipe.strategy == "fsdp":
            strategy = fsdp(self.size)
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
        """Connect to the others, as the environment says; Fabric reads it too."""
        process = self.process
        if "MASTER_ADDR" not in os.environ and "SLURM_PROCID" in os.environ:
            slurm = SLURMEnvironment()
            os.environ |= {"MASTER_ADDR": slurm.main_address, "MASTER_PORT": str(slurm.main_port)}
        os.environ |= {
            "RANK": str(process.rank),
            "WORLD_SIZE": str(process.size),
            "LOCAL_RANK": str(process.local_rank),
        }
        os.environ["NODE_RANK"] = str(process.rank // process.local_size)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # else Fabric decides on threads, which we do
        dist.init_process_group(timeout=PATIENCE)  # for each kind of device what suits it
        self._joined = True


# --- shards ------------------------------------------------------------------------------------------------------


def fsdp(processes: int) -> ModelParallelStrategy:
    """The strategy of a Fabric that shards the models it sets up, which are the same in each process, over them."""
    return ModelParallelStrategy(_shard, data_parallel_size=processes, tensor_parallel_size=1)


def find_mesh(fabric: Fabric) -> DeviceMesh | None:
    """The processes that a Fabric shards over; None: each of them holds all there is."""
    strategy = fabric.strategy
    return strategy.device_mesh["data_parallel"] if isinstance(strategy, ModelParallelStrategy) else None


def _shard(model: Transformer, mesh: DeviceMesh) -> Transformer:
    """Block by block, then all that is in none."""
    for stack in model.stacks:
        for block in stack.blocks:
            fully_shard(block, mesh=mesh["data_parallel"])
    fully_shard(model, mesh=mesh["data_parallel"])
    register_fsdp_forward_method(model, "loss")
    return model


def outline(values: Any) -> Any:
    """What is to be told of a state before it is scattered: of what will be sharded, the shapes alone."""
    return apply_to_collection(values, Tensor, lambda tensor: tensor.to("meta") if _is_sharded(tensor) else tensor)


def scatter(values: Any, mesh: DeviceMesh) -> Any:
    """Shards the state that the leader has, tensor by tensor; the others have its outline. All must call it."""

    def one(tensor: Tensor) -> Tensor:
        if not _is_sharded(tensor):
            return tensor
        device = mesh.device_type
        own = torch.empty_like(tensor, device=device) if tensor.is_meta else tensor.to(device)
        return distribute_tensor(own, mesh, [Shard(0)])  # what is in the leader's

    return apply_to_collection(values, Tensor, one)


def gather(values: Any, *, keep: bool = True) -> Any:
    """A state with whole tensors in the place of shards. All must call it; where there are none, it is as it was.

    Args:
        keep: take them to the host's memory; else drop each at once.
    """

    def one(sharded: DTensor) -> Tensor | None:
        tensor = whole(sharded)
        return tensor.cpu() if keep else None

    return apply_to_collection(values, DTensor, one)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, in each process; where it is sharded, all must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def empty_copy(model: Transformer) -> Transformer:
    """Copy a model with empty weights, which `fill` provides."""
    # Buffers are shared, as what is counted takes room.
    weights = {id(weight): nn.Parameter(weight.new_empty(0)) for weight in model.parameters()}
    return copy.deepcopy(model, weights | {id(buffer): buffer for buffer in model.buffers()})


def fill(model: Transformer, sharded: Transformer, *, keep: bool) -> None:
    """Gives a empty_copy model the weights of a sharded one; all must call it.

    Args:
        keep: else it stays empty_copy.
    """
    for weight, part in zip(model.parameters(), sharded.parameters(), strict=True):
        values = whole(part.detach())
        if keep:
            weight.data = values


def empty(model: Transformer) -> None:
    """Makes a model empty_copy."""
    for weight in model.parameters():
        weight.data = weight.new_empty(0)


def by_matrix(compute: Callable[..., Tensor], matrices: Tensor, *others: object) -> Tensor:
    """Computes with whole matrices [N, rows, columns]; where their rows are sharded, each process does it for some.

    Args:
        compute: takes and returns tensors of that shape, with any N.
        others: the other arguments of `compute`.
    """
    if not isinstance(matrices, DTensor):
        return compute(matrices, *others)
    shape, stride = matrices.shape, torch.empty(matrices.shape, device="meta").stride()
    made = compute(matrices.redistribute(placements=[Shard(0)]).to_local(), *others)
    each = DTensor.from_local(made, matrices.device_mesh, [Shard(0)], shape=shape, stride=stride)
    return each.redistribute(placements=matrices.placements)


def _is_sharded(tensor: Tensor) -> bool:
    """Weights and what optimizers remember of them; not counts, and not the number of steps."""
    return tensor.is_floating_point() and tensor.dim() > 0
