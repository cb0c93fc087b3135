"""One training step of a model and its optimizers. Device and precision are Fabric's business."""

import importlib
import logging
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from tinychat.errors import RunError
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import IGNORED, Transformer
from tinychat.tokenizer.token_cache import Ids
from tinychat.train.batches import Batch
from tinychat.train.distributed import (
    ProcessGroup,
    empty,
    empty_copy,
    fill,
    find_mesh,
    gather,
    outline,
    scatter,
    whole,
)
from tinychat.train.optim import make_optimizers, set_rate
from tinychat.train.processes import SMALLER_PARTS, is_out_of_memory
from tinychat.train.recipe import Recipe

for _name in ("lightning.fabric", "lightning.pytorch"):  # one package, which logs under either name
    logging.getLogger(_name).setLevel(logging.WARNING)  # which precision is used, the plan says


class Learner:
    """Learns from batches, together with the learners of the group's other processes.

    What the leader's learner does, it broadcasts to the others first.

    Args:
        config: of the model, which is made anew.
        recipe: with device, precision and everything of the optimizer filled in.
        group: of processes that share each step; None: this process alone.
        counted: the folds of a text, whose n-grams a model counts that wants them.
        weights: to begin with, counts among them; None: random ones.
    """

    def __init__(
        self,
        config: ModelConfig,
        recipe: Recipe,
        group: ProcessGroup | None = None,
        counted: Sequence[Ids] | None = None,
        weights: dict[str, Tensor] | None = None,
    ) -> None:
        self.group = group or ProcessGroup()
        counted = counted if config.ngram_order else None
        self.group.broadcast("make", config, recipe, counted)
        self.fabric = self.group.fabric(recipe)
        self.config, self.recipe, self._counted, self._first = config, recipe, counted, weights
        self.grad_accum_steps = recipe.grad_accum_steps
        """the parts that a step is computed in; doubled where memory runs out"""
        torch.manual_seed(recipe.seed)
        self._trained = Transformer(config)
        if self._trained.ngrams is not None and counted is not None:
            self._trained.ngrams.count(counted)
        self._mesh = find_mesh(self.fabric)
        self._whole = self._trained if self._mesh is None else empty_copy(self._trained)
        self._is_whole = self._mesh is None
        # A sharded model never is on its device as a whole, and optimizers are made for the shards.
        self._wrapped = self.fabric.setup_module(self._trained, move_to_device=self._mesh is None)
        self._wrapped.mark_forward_method("loss")
        self.optimizers = make_optimizers(self._trained, recipe)
        wrapped = self.fabric.setup_optimizers(*self.optimizers)
        self._wrapped_optimizers = wrapped if isinstance(wrapped, tuple) else (wrapped,)
        self.rate = 0.0
        """the learning rate of the last step"""
        self.gradient_norm = torch.zeros(())
        """of the last step, before it was clipped"""
        if weights is not None:
            self.load(weights, self.optimizer_states())

    def anew(self) -> Self:
        """A learner as this one was at its beginning."""
        learner = type(self)(self.config, self.recipe, self.group, self._counted, self._first)
        learner._trained.compile(on=bool(self._trained.decoder.compiled))
        return learner

    @property
    def model(self) -> Transformer:
        """The model with all of its weights, to measure, to talk to and to save.

        Where these are sharded, the leader gathers them at the first look after a step; the next step lets them go.
        """
        if not self._is_whole:
            self.gather_weights()
        return self._whole

    def gather_weights(self) -> None:
        """Brings the weights together in the leader, where they are sharded."""
        self.group.broadcast("gather_weights")
        if self._mesh is not None:
            fill(self._whole, self._trained, keep=self.group.leads)
        self._is_whole = True

    def optimizer_states(self) -> list[dict[str, Any]]:
        """The state of each optimizer, of all weights; in the leader alone where they are sharded."""
        self.group.broadcast("optimizer_states")
        return [gather(optimizer.state_dict(), keep=self.group.leads) for optimizer in self.optimizers]

    def load(self, weights: dict[str, Tensor], optimizers: list[dict[str, Any]], grad_accum_steps: int = 1) -> None:
        """Goes on from a state.

        Args:
            optimizers: the state of each.
            accumulation: the parts that a step is computed in, unless there are more of them already.
        """
        if self._mesh is None:
            self.group.broadcast("load", weights, optimizers, grad_accum_steps)
        else:
            self.group.broadcast("load", outline(weights), outline(optimizers), grad_accum_steps)
            counts = {name: values for name, values in weights.items() if not values.is_floating_point()}
            self._whole.load_state_dict(counts, strict=False)
            weights, optimizers = scatter(weights, self._mesh), scatter(optimizers, self._mesh)
            self._let_go()
        self._trained.load_state_dict(weights)
        for optimizer, values in zip(self.optimizers, optimizers, strict=True):
            optimizer.load_state_dict(values)
        self.grad_accum_steps = max(self.grad_accum_steps, grad_accum_steps)

    def compile(self, batch: Batch) -> str:
        """Compiles the layers for steps of a batch like this, which takes half a minute.

        Returns:
            What stood in the way, in which case all is as it was; else nothing.
        """
        self.group.broadcast("compile", batch)
        # Processes that compile side by side would outlive a trainer that is killed.
        importlib.import_module("torch._inductor.config").compile_threads = 1  # type: ignore[attr-defined]
        self._trained.compile()
        try:
            self._gradients(batch)
        except Exception as error:  # whatever a compiler that is missing, or broken, makes of it
            if is_out_of_memory(error):
                raise
            self._trained.compile(on=False)
            return str(error).strip().partition("\n")[0]
        finally:
            self._forget_gradients()
        return ""

    def step(self, batch: Batch, factor: float, step: int = 0) -> Tensor:
        """Learns from one batch; returns its mean loss, on the device.

        Where memory runs out, the step is computed anew in twice as many parts.

        Args:
            batch: of the whole group.
            factor: what the highest learning rate is multiplied by.
            step: from 0; the random numbers that are drawn follow from it.

        Raises:
            RunError: there is not enough memory, or nothing to share out.
        """
        if len(batch.ids) < self.group.size:
            raise RunError(
                f"a batch of {len(batch.ids)} cannot be shared by {self.group.size} processes",
                f"try --batch-size {self.group.size}, or fewer --devices",
            )
        self.group.broadcast("step", batch, factor, step)
        self._let_go()
        self.rate = set_rate(self.optimizers, factor)
        loss: Tensor = self.fabric.all_reduce(self._gradients(batch, step), reduce_op="mean")  # type: ignore[assignment]
        norm = clip_grad_norm_(self._trained.parameters(), self.recipe.grad_clip or float("inf"))
        self.gradient_norm = whole(norm)
        for optimizer in self._wrapped_optimizers:
            optimizer.step()
        self._forget_gradients()
        return loss

    def _gradients(self, batch: Batch, step: int = 0) -> Tensor:
        """Computes gradients; returns the part of the mean loss that this process has seen, times the group's size.

        Args:
            batch: of the whole group.
        """
        while True:
            parts = self._parts(batch)
            try:
                return self._accumulate(parts, int((batch.targets != IGNORED).sum()), step)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                rows = len(parts[0].ids)
                if self.group.size > 1:  # the others wait for gradients that will not come
                    problem = f"process {self.group.process.rank + 1} of {self.group.size} ran out of memory"
                    raise MemoryShortage(f"{problem} computing {rows} rows at once", SMALLER_PARTS) from None
                if rows == 1:
                    raise MemoryShortage(
                        f"there is not enough memory for a step, not even of one row of "
                        f"{self.config.context_length} tokens",
                        "train with a smaller --context-length, --d-model or --n-layer",
                    ) from None
            self.grad_accum_steps *= 2  # now that the error, and all that it holds, is gone
            self._forget_gradients()
            if self.fabric.device.type == "cuda":
                torch.cuda.empty_cache()

    def _accumulate(self, parts: Sequence[Batch], predicted: int, step: int) -> Tensor:
        """The same, part by part, of which so many tokens of the whole group are predicted."""
        self._seed(step)
        total = torch.zeros((), device=self.fabric.device)
        for number, (ids, targets, folds, source) in enumerate(parts, 1):
            # What the group averages comes from parts that differ in size: each counts by what is predicted in it.
            share = self.group.size * int((targets != IGNORED).sum()) / max(1, predicted)
            # Gradients go round once, after the last part; but until they do, none of them is sharded.
            apart = self.group.size > 1 and number < len(parts) and self._mesh is None
            with self.fabric.no_backward_sync(self._wrapped, enabled=apart):
                with self.fabric.autocast():  # Fabric brings it along with `forward` alone, not with `loss`
                    # Where nothing is predicted, anything will do: it counts nothing, and has no mean.
                    part = self.fabric.to_device(Batch(ids, targets if share else ids, folds, source))
                    loss: Tensor = self._wrapped.loss(part.ids, part.targets, folds=part.folds, source=part.source)
                loss = loss * share
                self.fabric.backward(loss)
            total += loss.detach()
        return total

    def _parts(self, batch: Batch) -> list[Batch]:
        """This process's share of a batch, in parts. All have as many: each computes its own as the others do."""
        return self.group.share(batch).tensor_split(min(self.grad_accum_steps, len(batch.ids) // self.group.size))

    def _let_go(self) -> None:
        """Lets go of weights that were gathered."""
        if self._mesh is not None:
            empty(self._whole)
            self._is_whole = False

    def _forget_gradients(self) -> None:
        for optimizer in self._wrapped_optimizers:
            optimizer.zero_grad()

    def _seed(self, step: int) -> None:
        """Random numbers follow from the seed and the step; each process has its own."""
        rank = self.group.process.rank
        words = (self.recipe.seed, step, rank) if rank else (self.recipe.seed, step)
        torch.manual_seed(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1))


class MemoryShortage(RunError, MemoryError):
    """Memory ran out, and smaller parts do not help."""
