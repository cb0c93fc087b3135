"""Fully sharded data parallelism: each process holds its shard of weights, gradients and what optimizers remember.

Each tensor is sharded by its rows (Rajbhandari et al. 2020; Zhao et al. 2023, torch's `fully_shard`). The weights of a
block are gathered when it is computed, forward and backward, and let go after that. A shard is a `DTensor`, which knows
the whole shape and computes with the other processes.
"""

import copy
import logging
from collections.abc import Callable
from typing import Any

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies.model_parallel import ModelParallelStrategy
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tinychat.model.transformer import Transformer

# On CPUs what `by_matrix` exchanges goes to all of them, as gloo can do no better: that is no news to anyone.
logging.getLogger("torch.distributed.tensor._collective_utils").setLevel(logging.ERROR)


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


def hollow(model: Transformer) -> Transformer:
    """A copy of a model whose weights are empty until `fill` gives them."""
    # Buffers are shared, as what is counted takes room.
    weights = {id(weight): nn.Parameter(weight.new_empty(0)) for weight in model.parameters()}
    return copy.deepcopy(model, weights | {id(buffer): buffer for buffer in model.buffers()})


def fill(model: Transformer, sharded: Transformer, *, keep: bool) -> None:
    """Gives a hollow model the weights of a sharded one; all must call it.

    Args:
        keep: else it stays hollow.
    """
    for weight, part in zip(model.parameters(), sharded.parameters(), strict=True):
        values = whole(part.detach())
        if keep:
            weight.data = values


def empty(model: Transformer) -> None:
    """Makes a model hollow."""
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
