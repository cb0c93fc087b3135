"""Capture work of a GPU as a CUDA graph, which one call launches again.

A tiny model's pass is a thousand small kernels, and Python takes longer to launch them one by one than a GPU to run
them. A graph launches them all at once; in exchange, all that it reads and writes must stay in the same tensors.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch


class Capturable(Protocol):
    """Work without a look at any number, between tensors that stay where they are."""

    def run(self) -> None:
        """Do the work once."""


Capture = Callable[[Capturable], Callable[[], None]]
"""Turns work, which it does once, into a function that does it again."""


def capture_graph(work: Capturable, pool: Any = None) -> Callable[[], None]:
    """Capture work as a CUDA graph, and return the function that replays it.

    Graphs whose results are all in tensors that were there before may share a `pool` of memory (see
    `torch.cuda.graph_pool_handle`), as one is done before the next begins.

    Raises:
        RuntimeError: something in it cannot be captured, or memory runs out.
    """
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work.run()  # warm up: what libraries do only the first time must not be captured
    torch.cuda.current_stream().wait_stream(stream)
    graph, usual = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, pool, capture_error_mode="thread_local"):  # does not restrict other threads
            work.run()
    except RuntimeError:
        torch.cuda.set_stream(usual)  # a failure leaves the capturing stream current, and random numbers in the capture
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())
        raise
    return graph.replay


def first_cause(error: BaseException) -> str:
    """Return the first line of what went wrong first, as ending a capture that has failed fails as well."""
    while error.__context__ is not None:
        error = error.__context__
    return next(iter(str(error).splitlines()), type(error).__name__)
