"""The processes that learn together: how the leader tells the others what to do, and how a step is shared out.

Orders go from the leader to all others as they come: to make a learner, and then which of its methods to call. That of
a step brings its batch along: ids are few beside the gradients that go round afterwards, and so followers need no text,
no files, and no clock.
"""

import os
from datetime import timedelta
from typing import Any, Literal

import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.strategies.ddp import DDPStrategy
from lightning.fabric.strategies.strategy import Strategy

from tinychat.train.batches import Batch
from tinychat.train.processes import ALONE, Place
from tinychat.train.recipe import Recipe
from tinychat.train.sharding import fsdp

PATIENCE = timedelta(minutes=30)
"""A process waits so long for another one that lives but does not answer; the leader evaluates meanwhile."""

KEPT: list[object] = []
"""Connections that are cut are never taken apart, as the process ends soon: torch would wait for a thread of its own
then, which may wait for Python meanwhile, for ever."""

PRECISIONS: dict[str, Literal["32-true", "bf16-mixed"]] = {"f32": "32-true", "bf16": "bf16-mixed"}


Order = tuple[str, tuple[Any, ...]]
"""The name of a method of `Learner`, or `make`, and its arguments; the others do what the leader does."""


class Team:
    """This process and those that it learns together with.

    Args:
        place: of this process.
    """

    def __init__(self, place: Place = ALONE) -> None:
        self.place = place
        self._joined = False
        if self.size > 1:
            self._join()

    @property
    def size(self) -> int:
        """How many there are, this one included."""
        return self.place.size

    @property
    def leads(self) -> bool:
        """Whether the others do what this process tells them."""
        return self.place.rank == 0

    def tell(self, method: str, *arguments: Any) -> None:
        """Lets all others do what this process is about to do, where it leads."""
        if self._joined and self.leads:
            dist.broadcast_object_list([(method, arguments)], src=0)

    def hear(self) -> Order:
        """Waits for the next order of the leader."""
        heard: list[Any] = [None]
        dist.broadcast_object_list(heard, src=0)
        order: Order = heard[0]
        return order

    def end(self) -> None:
        """Tells the others that it is over, and goes on alone."""
        self.tell("leave")
        self.leave()

    def leave(self) -> None:
        """Cuts the connection."""
        if self._joined:
            self._joined = False
            KEPT.extend(dist.distributed_c10d._world.pg_map)
            dist.destroy_process_group()

    def share(self, batch: Batch) -> Batch:
        """The rows of a batch that this process learns from."""
        return batch.tensor_split(self.size)[self.place.rank]

    def fabric(self, recipe: Recipe) -> Fabric:
        """What knows device, precision, and how a model is shared by the team: all of it, or sharded."""
        strategy: str | Strategy = "auto"
        if self.size > 1 and recipe.strategy == "fsdp":
            strategy = fsdp(self.size)
        elif self.size > 1:
            strategy = DDPStrategy(gradient_as_bucket_view=True, broadcast_buffers=False)
        fabric = Fabric(
            accelerator=recipe.device,
            devices=self.place.local_size,
            num_nodes=max(1, self.size // self.place.local_size),
            strategy=strategy,
            precision=PRECISIONS[recipe.precision],
            plugins=[LightningEnvironment()],
        )
        fabric.launch()
        return fabric

    def _join(self) -> None:
        """Meets the others, where the environment says; what is in it is also for Fabric."""
        place = self.place
        if "MASTER_ADDR" not in os.environ and "SLURM_PROCID" in os.environ:
            slurm = SLURMEnvironment()
            os.environ |= {"MASTER_ADDR": slurm.main_address, "MASTER_PORT": str(slurm.main_port)}
        os.environ |= {"RANK": str(place.rank), "WORLD_SIZE": str(place.size), "LOCAL_RANK": str(place.local_rank)}
        os.environ["NODE_RANK"] = str(place.rank // place.local_size)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # else Fabric decides on threads, which we do
        dist.init_process_group(timeout=PATIENCE)  # for each kind of device what suits it
        self._joined = True
