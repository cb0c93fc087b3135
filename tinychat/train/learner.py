"""A model, its optimizers and the one thing done with them: a step. Device and precision are Fabric's business."""

import logging
from typing import Literal

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.train.batches import Batch
from tinychat.train.optimizers import make_optimizers, set_rate
from tinychat.train.recipe import Recipe

for _name in ("lightning.fabric", "lightning.pytorch"):  # one package, which logs under either name
    logging.getLogger(_name).setLevel(logging.WARNING)  # which precision is used, the plan says

PRECISIONS: dict[str, Literal["32-true", "bf16-mixed"]] = {"f32": "32-true", "bf16": "bf16-mixed"}


class Learner:
    """Learns from batches.

    Args:
        config: of the model, which is made anew.
        recipe: with device, precision and everything of the optimizer filled in.
    """

    def __init__(self, config: ModelConfig, recipe: Recipe) -> None:
        self.fabric = Fabric(accelerator=recipe.device, devices=1, precision=PRECISIONS[recipe.precision])
        self.recipe = recipe
        torch.manual_seed(recipe.seed)
        self.model = Transformer(config)
        self.optimizers = make_optimizers(self.model, recipe)
        self._wrapped, *self._wrapped_optimizers = self.fabric.setup(self.model, *self.optimizers)
        self._wrapped.mark_forward_method("loss")
        self.model.train()
        self.rate = 0.0
        """the learning rate of the last step"""
        self.gradient_norm = torch.zeros(())
        """of the last step, before it was clipped"""

    def step(self, batch: Batch, factor: float) -> Tensor:
        """Learns from one batch; returns its mean loss, on the device.

        Args:
            factor: what the highest learning rate is multiplied by.
        """
        self.rate = set_rate(self.optimizers, factor)
        parts = list(zip(*(tensor.chunk(self.recipe.accumulation) for tensor in batch), strict=True))
        total = torch.zeros((), device=self.fabric.device)
        for ids, targets in parts:
            with self.fabric.autocast():  # Fabric brings it along with `forward` alone, not with `loss`
                loss: Tensor = self._wrapped.loss(*self.fabric.to_device((ids, targets)))
            loss = loss * (len(ids) / len(batch.ids))
            self.fabric.backward(loss)
            total += loss.detach()
        self.gradient_norm = clip_grad_norm_(self.model.parameters(), self.recipe.gradient_clip or float("inf"))
        for optimizer in self._wrapped_optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return total
