"""Compute gradients on a GPU by replaying CUDA graphs: one for each shape of batch that comes again.

On an H200, a step of a default model takes 4.6 ms instead of the 36 in which Python launches its kernels one by one
(tests/bench/RESULTS.md).
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from tinychat.model.graph_capture import Capture, capture_graph, first_cause
from tinychat.train.batches import Batch

MAX_GRAPHS = 32
"""Graphs at most; batches of other shapes are computed as usual."""

Compute = Callable[[Batch], Tensor]
"""Adds the gradients of a batch on the device to those of the parameters; returns its loss, a scalar."""


class GradientGraphs:
    """Graphs by shape of batch, which add to the gradients of `parameters`. `capture` defaults to `capture_graph`.

    The gradients must be 0 before each batch and stay in the same tensors: see `clear`.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], device: torch.device, capture: Capture | None = None
    ) -> None:
        self.failure = ""
        """Why passes cannot be captured; empty as long as they can."""
        self._parameters, self._device = parameters, device
        self._capture = capture or partial(capture_graph, pool=torch.cuda.graph_pool_handle())
        self._seen: set[Hashable] = set()
        self._captured: dict[Hashable, tuple[_Pass, Callable[[], None]]] = {}

    def replay(self, compute: Compute, batch: Batch, variant: Hashable) -> Tensor | None:
        """Add the gradients of a batch by its graph, and return its loss, which the next replay overwrites.

        Return None where they must be computed as usual: at the first batch of a shape, which prepares what a capture
        needs, or if its pass cannot be captured. `variant` stands for all that changes the computation but the batch.
        """
        key = (variant, *(None if tensor is None else tensor.shape for tensor in batch))
        if key not in self._captured:
            if self.failure or key not in self._seen or len(self._captured) == MAX_GRAPHS:
                self._seen.add(key)
                return None
            try:
                self._captured[key] = self._record(compute, batch)
            except RuntimeError as error:
                self.failure = first_cause(error)
            if self.failure:  # here, where the error and the tensors that it holds are gone
                self._captured.clear()
                self.clear()
                return None
        recorded, replay = self._captured[key]
        pinned = batch.pinned() if self._device.type == "cuda" else batch
        for static, tensor in zip(recorded.batch, pinned, strict=True):
            if static is not None and tensor is not None:
                static.copy_(tensor, non_blocking=True)
        replay()
        return recorded.loss

    def forget(self) -> None:
        """Capture all anew, as the model has other tensors now."""
        self._captured.clear()

    def clear(self) -> None:
        """Set the gradients to 0 where they are."""
        if gradients := [one.grad for one in self._parameters if one.grad is not None]:
            torch._foreach_zero_(gradients)

    def _record(self, compute: Compute, batch: Batch) -> "tuple[_Pass, Callable[[], None]]":
        for parameter in self._parameters:
            if parameter.grad is None and parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        recorded = _Pass(compute, batch.to(self._device))
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices):  # dropout draws the same numbers as in a pass that is not captured
            replay = self._capture(recorded)
        recorded.compute = None  # nothing but its tensors is needed any more
        self.clear()
        return recorded, replay


class _Pass:
    """The forward and backward pass of all batches of a shape."""

    def __init__(self, compute: Compute, batch: Batch) -> None:
        self.compute: Compute | None = compute
        self.batch, self.loss = batch, torch.zeros((), device=batch.ids.device)

    def run(self) -> None:
        assert self.compute is not None
        self.loss.copy_(self.compute(self.batch))
