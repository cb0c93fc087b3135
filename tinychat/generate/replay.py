"""Several steps of decoding at once. On a GPU they are recorded as one graph: alone, each would wait for Python to tell
of a hundred small things to do, which take longer to tell than to do.

Shapes: B rows, V vocabulary.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tinychat.generate.engine import Request
from tinychat.generate.sampling import looks_back, random_numbers, rules, sample
from tinychat.model.attention import Cache
from tinychat.model.transformer import Memory, Transformer
from tinychat.settings import Settings

STEPS = 8
"""tokens of each row: more take longer to record, and an answer's last ones are made in vain"""
PATIENCE = 2 * STEPS
"""steps that rows go one by one before some are recorded, which takes as long: others come and go, settings change"""


class Steps:
    """So many steps that look at no number on their way: what they read and make lies in tensors that stay.

    Args:
        model: in evaluation mode; its weights may change, but not the tensors that hold them.
        cache: which holds all but the last token of each row, and takes up what comes.
        memory: of the rows' sources.
        settings: of all rows, none of which looks back at the text.
    """

    def __init__(self, model: Transformer, cache: Cache, memory: Memory | None, settings: Settings) -> None:
        self.model, self.cache, self.memory, self.settings = model, cache, memory, settings
        rows, device = len(cache.ids), cache.ids.device
        self.ids = torch.zeros(rows, dtype=torch.long, device=device)
        """[B], the last token of each row"""
        self.places = torch.zeros(rows, dtype=torch.long, device=device)
        """[B], where it stands"""
        self.uniforms = torch.zeros(rows, STEPS, dtype=torch.float64, device=device)
        """[B, STEPS], the random numbers to draw with"""
        self.drawn = torch.zeros(rows, STEPS, dtype=torch.long, device=device)
        """[B, STEPS], what came"""
        self.logits = torch.zeros(rows, STEPS, model.config.vocab_size, device=device)
        """[B, STEPS, V], f32, what the model said there"""

    def run(self) -> None:
        """Makes the tokens."""
        ids = self.ids
        for step in range(STEPS):
            logits = self.model(ids.unsqueeze(1), cache=self.cache, start=self.places + step, memory=self.memory)
            self.logits[:, step] = logits[:, -1]
            ids = sample(self.logits[:, step], self.settings, (), partial(self.uniforms.select, 1, step))
            ids = ids.clamp(max=self.model.config.vocab_size - 1)  # what is no number draws a token that there is not
            self.drawn[:, step] = ids


Record = Callable[[Steps], Callable[[], None]]
"""makes of steps what runs them once more"""


class Replayer:
    """Records steps where that is due, and runs them again.

    Args:
        model: in evaluation mode.
        record: on a GPU `record_graph`.
    """

    def __init__(self, model: Transformer, record: Record) -> None:
        self.failure = ""
        """why steps cannot be recorded; empty as long as they can"""
        self._model, self._record = model, record
        self._arrangement: tuple[Cache, Memory | None, tuple[float | None, ...]] | None = None
        self._waited = 0
        self._recorded: tuple[Steps, Callable[[], None]] | None = None

    def replay(
        self,
        cache: Cache,
        memory: Memory | None,
        requests: Sequence[Request],
        ids: Sequence[int],
        places: Sequence[int],
        made: int,
    ) -> tuple[Tensor, Tensor] | None:
        """The logits of the next places of each row, [B, STEPS, V], and what was drawn there, [B, STEPS].

        Args:
            cache: which holds what is before the last token of each row, and has slots for what comes.
            ids: these last tokens.
            places: where they stand.
            made: tokens since the requests were made.

        Returns:
            Tensors that the next replay writes over; None where the rows are to go on one step at a time.
        """
        settings = requests[0].settings
        if looks_back(settings) or any(rules(one.settings) != rules(settings) for one in requests):
            return None
        before = self._arrangement
        if before is None or before[0] is not cache or before[1] is not memory or before[2] != rules(settings):
            self._arrangement, self._waited, self._recorded = (cache, memory, rules(settings)), 0, None
        self._waited += 1
        if self._waited <= PATIENCE:
            return None
        steps = self._recorded[0] if self._recorded else Steps(self._model, cache, memory, settings)
        steps.ids.copy_(torch.tensor(ids))
        steps.places.copy_(torch.tensor(places))
        if not settings.greedy:
            steps.uniforms.copy_(random_numbers(requests, made, STEPS))
        if self._recorded is None:
            try:
                self._recorded = steps, self._record(steps)  # a first run writes where nothing stands yet
            except RuntimeError as error:
                self.failure = _first_cause(error)
                return None
        self._recorded[1]()
        return steps.logits, steps.drawn


def _first_cause(error: BaseException) -> str:
    while error.__context__ is not None:
        error = error.__context__
    return next(iter(str(error).splitlines()), type(error).__name__)


def record_graph(steps: Steps) -> Callable[[], None]:
    """What runs steps on a GPU once more, all of them at one call.

    Raises:
        RuntimeError: something of them cannot be recorded.
    """
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        steps.run()  # what libraries do at the first time only is not to be recorded
    torch.cuda.current_stream().wait_stream(stream)
    graph, usual = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may do what they like
            steps.run()
    except RuntimeError:
        torch.cuda.set_stream(usual)  # where a failure leaves it at the one that was recorded
        raise
    return graph.replay
