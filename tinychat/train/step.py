"""One training step of a model and its optimizers, on the device and in the precision that Fabric sets up."""

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
from tinychat.model.ngrams import COUNT_BUFFERS, Counts
from tinychat.model.transformer import IGNORED, Transformer
from tinychat.tokenizer.token_cache import Ids
from tinychat.train import distributed
from tinychat.train.batches import Batch
from tinychat.train.distributed import ProcessGroup
from tinychat.train.gradient_graphs import GradientGraphs
from tinychat.train.launch import OUT_OF_MEMORY_REMEDY, is_out_of_memory
from tinychat.train.optim import make_optimizers, set_learning_rate
from tinychat.train.recipe import Recipe

for _name in ("lightning_fabric", "lightning.pytorch"):  # one package, which logs under either name
    logging.getLogger(_name).setLevel(logging.WARNING)  # the plan reports the precision

SHARE_HELD = 0.2
"""Fraction of a run in which the layers keep the share in the mixture that they begin with.

They would lose it in the steps in which they know nothing yet, and in a text that n-grams predict well never win it
back: the less their share, the less they learn (tests/bench/EXPERIMENTS.md, "A share that waits for the layers").
"""


class Learner:
    """A new model and its optimizers, which take steps together with the learners of the group's other processes.

    The leader's learner broadcasts each public call to the workers' learners before it acts. N-grams are counted in
    `ngram_folds`, the token ids of each fold of the text, if `config.ngram_order` is not 0. `weights` are initial
    weights; None for random weights. `earlier_counts`, of another text, are united with those of the folds.
    """

    def __init__(
        self,
        config: ModelConfig,
        recipe: Recipe,
        group: ProcessGroup | None = None,
        ngram_folds: Sequence[Ids] | None = None,
        weights: dict[str, Tensor] | None = None,
        earlier_counts: Counts | None = None,
    ) -> None:
        self.group = group or ProcessGroup()
        ngram_folds = ngram_folds if config.ngram_order else None
        self.group.broadcast("make", config, recipe, ngram_folds, earlier_counts)
        self.fabric = self.group.make_fabric(recipe)
        self.config, self.recipe, self._ngram_folds, self._initial_weights = config, recipe, ngram_folds, weights
        self.earlier_counts = earlier_counts
        self.grad_accum_steps = recipe.grad_accum_steps
        """Micro-batches of a step; doubled when memory runs out."""
        torch.manual_seed(recipe.seed)
        self._module = Transformer(config)
        if self._module.ngrams is not None and ngram_folds is not None:
            self._module.ngrams.count(ngram_folds, earlier_counts)
        self._mesh = distributed.find_mesh(self.fabric)
        self._full_model = self._module if self._mesh is None else distributed.empty_copy(self._module)
        self._is_gathered = self._mesh is None
        # A sharded model is never on its device as a whole, and optimizers are made for the shards.
        self._wrapped = self.fabric.setup_module(self._module, move_to_device=self._mesh is None)
        self._wrapped.mark_forward_method("loss")
        self.optimizers = make_optimizers(self._module, recipe)
        wrapped = self.fabric.setup_optimizers(*self.optimizers)
        self._wrapped_optimizers = wrapped if isinstance(wrapped, tuple) else (wrapped,)
        self.graphs: GradientGraphs | None = None
        """Graphs of the passes, on a single GPU."""
        if self.fabric.device.type == "cuda" and self.group.size == 1:
            self.graphs = GradientGraphs(list(self._module.parameters()), self.fabric.device)
        self.learning_rate, self.gradient_norm = 0.0, torch.zeros(())
        """Those of the last step; the norm is that before clipping."""
        if weights is not None:
            names = [f"ngrams.{name}" for name in COUNT_BUFFERS]
            counted = {name: values for name, values in self._module.state_dict().items() if name in names}
            self.load(weights | counted, self.optimizer_states())

    def fresh_copy(self) -> Self:
        """Return a new learner in the initial state of this one."""
        initial = self._ngram_folds, self._initial_weights, self.earlier_counts
        learner = type(self)(self.config, self.recipe, self.group, *initial)
        learner._module.compile(on=bool(self._module.decoder.compiled))
        return learner

    @property
    def model(self) -> Transformer:
        """The model with all of its weights, to evaluate, to sample from and to save.

        Sharded weights are gathered in the leader at the first access after a step and freed by the next step.
        """
        if not self._is_gathered:
            self.gather_weights()
        return self._full_model

    def gather_weights(self) -> None:
        """Gather sharded weights in the leader; do nothing if weights are not sharded."""
        self.group.broadcast("gather_weights")
        if self._mesh is not None:
            distributed.fill_weights(self._full_model, self._module, keep=self.group.is_leader)
        self._is_gathered = True

    def optimizer_states(self) -> list[dict[str, Any]]:
        """Return the full state of each optimizer; sharded state is gathered in the leader, and None in workers."""
        self.group.broadcast("optimizer_states")
        return [distributed.gather(optimizer.state_dict(), keep=self.group.is_leader) for optimizer in self.optimizers]

    def load(self, weights: dict[str, Tensor], optimizers: list[dict[str, Any]], grad_accum_steps: int = 1) -> None:
        """Load weights and optimizer states; from then on a step has at least `grad_accum_steps` micro-batches."""
        if self._mesh is None:
            self.group.broadcast("load", weights, optimizers, grad_accum_steps)
        else:
            self.group.broadcast("load", *distributed.to_meta((weights, optimizers)), grad_accum_steps)
            counts = {name: values for name, values in weights.items() if not values.is_floating_point()}
            self._full_model.load_state_dict(counts, strict=False)
            weights, optimizers = distributed.scatter((weights, optimizers), self._mesh)
            self._free_gathered_weights()
        self._module.load_state_dict(weights)
        if self.graphs is not None:  # n-gram counts may be in other tensors now
            self.graphs.forget()
        for optimizer, values in zip(self.optimizers, optimizers, strict=True):
            optimizer.load_state_dict(values)
        self.grad_accum_steps = max(self.grad_accum_steps, grad_accum_steps)

    def compile(self, batch: Batch) -> str:
        """Compile the layers for this shape of batch, in half a minute; return why they cannot be, or an empty text."""
        self.group.broadcast("compile", batch)
        # Compile in this process: compiler processes would outlive a trainer that is killed.
        importlib.import_module("torch._inductor.config").compile_threads = 1  # type: ignore[attr-defined]
        self._module.compile()
        try:
            self._gradients(batch)
        except Exception as error:  # a missing or broken compiler raises many kinds
            if is_out_of_memory(error):
                raise
            self._module.compile(on=False)
            return str(error).strip().partition("\n")[0]
        finally:
            self._clear_gradients()
        return ""

    def step(self, batch: Batch, factor: float, step: int = 0, progress: float = 1.0) -> Tensor:
        """Take one optimizer step; return the mean loss of the batch, a scalar on the device.

        The batch is that of the whole group, `factor` multiplies the peak learning rates, and the number of the step,
        from 0, seeds random numbers. `progress` is the fraction of the run that is over: see `SHARE_HELD`. If memory
        runs out, compute the step again in twice as many micro-batches.

        Raises:
            RunError: If memory does not suffice, or the batch has fewer rows than the group has processes.
        """
        if len(batch.ids) < self.group.size:
            raise RunError(
                f"a batch of {len(batch.ids)} cannot be shared by {self.group.size} processes",
                f"try --batch-size {self.group.size}, or fewer --devices",
            )
        self.group.broadcast("step", batch, factor, step, progress)
        self._free_gathered_weights()
        if self._module.ngrams is not None:
            self._module.ngrams.holds_share = progress < SHARE_HELD and self.recipe.from_model is None
        self.learning_rate = set_learning_rate(self.optimizers, factor)
        loss: Tensor = self.fabric.all_reduce(self._gradients(batch, step), reduce_op="mean")  # type: ignore[assignment]
        norm = clip_grad_norm_(self._module.parameters(), self.recipe.grad_clip or float("inf"))
        self.gradient_norm = distributed.full_tensor(norm)
        for optimizer in self._wrapped_optimizers:
            optimizer.step()
        self._clear_gradients()
        return loss

    def _gradients(self, batch: Batch, step: int = 0) -> Tensor:
        """Compute gradients of a batch; return this process's part of the mean loss, times the group's size."""
        while True:
            # As many micro-batches as in each other process.
            count = min(self.grad_accum_steps, len(batch.ids) // self.group.size)
            micro_batches = self.group.local_batch(batch).tensor_split(count)
            try:
                return self._accumulate(micro_batches, int((batch.targets != IGNORED).sum()), step)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                rows = len(micro_batches[0].ids)
                if self.group.size > 1:  # the others would wait for gradients for ever
                    problem = f"process {self.group.process.rank + 1} of {self.group.size} ran out of memory"
                    raise MemoryShortage(f"{problem} computing {rows} rows at once", OUT_OF_MEMORY_REMEDY) from None
                if rows == 1:
                    row = f"one row of {self.config.context_length} tokens"
                    raise MemoryShortage(
                        f"there is not enough memory for a step, not even of {row}",
                        "train with a smaller --context-length, --d-model or --n-layer",
                    ) from None
            self.grad_accum_steps *= 2  # here, where the error and the tensors it holds are gone
            self._clear_gradients()
            if self.fabric.device.type == "cuda":
                torch.cuda.empty_cache()

    def _clear_gradients(self) -> None:
        """Forget the gradients; those that graphs add to stay where they are, and become 0."""
        if self.graphs is None:
            self._module.zero_grad()
        else:
            self.graphs.clear()

    def _accumulate(self, micro_batches: Sequence[Batch], predicted: int, step: int) -> Tensor:
        """Accumulate the gradients of this process's micro-batches; `predicted` counts the targets of the group."""
        seed = np.random.SeedSequence((self.recipe.seed, step, self.group.process.rank))
        torch.manual_seed(int(seed.generate_state(1, np.uint64)[0] >> 1))
        total = torch.zeros((), device=self.fabric.device)
        if self.graphs is not None and len(micro_batches) == 1 and predicted:
            variant = self._module.ngrams is not None and self._module.ngrams.holds_share
            if (replayed := self.graphs.replay(self._backward, micro_batches[0], variant)) is not None:
                return total + replayed
        for number, batch in enumerate(micro_batches, 1):
            # The group averages over processes: weight each micro-batch by its number of targets.
            weight = self.group.size * int((batch.targets != IGNORED).sum()) / max(1, predicted)
            # Gradients are synchronized once, after the last micro-batch; until then none of them is sharded.
            defer_sync = self.group.size > 1 and number < len(micro_batches) and self._mesh is None
            with self.fabric.no_backward_sync(self._wrapped, enabled=defer_sync):
                # Without targets the mean loss would be undefined; any targets will do, as the weight is 0.
                part = batch if weight else batch._replace(targets=batch.ids)
                total += self._backward(part.to(self.fabric.device), weight)
        return total

    def _backward(self, batch: Batch, weight: float = 1.0) -> Tensor:
        """Add the gradients of a batch on the device, times a weight, to the others; return its loss, weighted too."""
        with self.fabric.autocast():  # Fabric applies it to `forward` alone, not to `loss`
            loss: Tensor = self._wrapped.loss(
                batch.ids,
                batch.targets,
                source=batch.source,
                folds=batch.folds,
                preceding=batch.preceding,
                followers=batch.followers,
            )
        if weight != 1:
            loss = loss * weight
        self.fabric.backward(loss)
        return loss.detach()

    def _free_gathered_weights(self) -> None:
        if self._mesh is not None:
            distributed.free_weights(self._full_model)
            self._is_gathered = False


class MemoryShortage(RunError, MemoryError):
    """Memory ran out, and smaller micro-batches cannot help."""
