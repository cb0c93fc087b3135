"""Decode several tokens at once: on a GPU, the steps are captured as one CUDA graph and replayed.

Shapes: B rows, V vocabulary.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tinychat.config.settings import Settings
from tinychat.generate.engine import Request
from tinychat.generate.sampling import needs_history, random_numbers, sample, sampling_values
from tinychat.model.graph_capture import Capture, first_cause
from tinychat.model.kv_cache import KVCache
from tinychat.model.transformer import EncoderOutput, Transformer

STEPS = 8
"""Tokens of each row per replay: more take longer to capture, and more of an answer's last ones are wasted."""
STEPS_BEFORE_CAPTURE = 2 * STEPS
"""Steps that rows take one by one first: capturing takes as long, and rows and settings may change soon."""


class DecodeSteps:
    """`STEPS` decoding steps without a look at any number: all that they read and write stays in the same tensors.

    The cache holds all but the last token of each row, and takes up what is generated. The settings are those of all
    rows, without a repetition penalty.
    """

    def __init__(
        self, model: Transformer, cache: KVCache, encoder_output: EncoderOutput | None, settings: Settings
    ) -> None:
        self.model, self.cache, self.encoder_output, self.settings = model, cache, encoder_output, settings
        rows, device = len(cache.ids), cache.ids.device
        self.ids = torch.zeros(rows, dtype=torch.long, device=device)  # [B], the last token of each row
        self.positions = torch.zeros(rows, dtype=torch.long, device=device)  # [B], its position
        self.uniforms = torch.zeros(rows, STEPS, dtype=torch.float64, device=device)  # [B, STEPS], to sample with
        self.sampled = torch.zeros(rows, STEPS, dtype=torch.long, device=device)  # [B, STEPS], the tokens generated
        self.logits = torch.zeros(rows, STEPS, model.config.vocab_size, device=device)  # [B, STEPS, V], f32

    def run(self) -> None:
        """Generate the tokens."""
        ids = self.ids
        for step in range(STEPS):
            logits = self.model(
                ids.unsqueeze(1), cache=self.cache, start=self.positions + step, encoder_output=self.encoder_output
            )
            self.logits[:, step] = logits[:, -1]
            ids = sample(self.logits[:, step], self.settings, (), partial(self.uniforms.select, 1, step))
            ids = ids.clamp(max=self.model.config.vocab_size - 1)  # NaN logits sample an id beyond the vocabulary
            self.sampled[:, step] = ids


class GraphReplayer:
    """Captures steps once that pays, and replays them; on a GPU, `capture_graph` captures."""

    def __init__(self, model: Transformer, capture: Capture) -> None:
        self.failure = ""
        """Why steps cannot be captured; empty as long as they can."""
        self._model, self._capture = model, capture
        self._arrangement: tuple[KVCache, EncoderOutput | None, tuple[float | None, ...]] | None = None
        self._steps_waited = 0
        self._captured: tuple[DecodeSteps, Callable[[], None]] | None = None

    def replay(
        self,
        cache: KVCache,
        encoder_output: EncoderOutput | None,
        requests: Sequence[Request],
        ids: Sequence[int],
        positions: Sequence[int],
        step: int,
    ) -> tuple[Tensor, Tensor] | None:
        """Generate `STEPS` tokens of each row, after its last one, of `ids`, at `positions`.

        The cache holds all before these, and has slots for what is generated; `step` tokens have been generated since
        the requests were made.

        Returns:
            Logits [B, STEPS, V] and the tokens sampled from them [B, STEPS], in tensors that the next replay
            overwrites; None if the rows must take a step by themselves.
        """
        settings = requests[0].settings
        values = sampling_values(settings)
        if needs_history(settings) or any(sampling_values(one.settings) != values for one in requests):
            return None
        before = self._arrangement
        if before is None or before[0] is not cache or before[1] is not encoder_output or before[2] != values:
            self._arrangement, self._steps_waited, self._captured = (cache, encoder_output, values), 0, None
        self._steps_waited += 1
        if self._steps_waited <= STEPS_BEFORE_CAPTURE:
            return None
        steps = self._captured[0] if self._captured else DecodeSteps(self._model, cache, encoder_output, settings)
        steps.ids.copy_(torch.tensor(ids))
        steps.positions.copy_(torch.tensor(positions))
        if not settings.greedy:
            steps.uniforms.copy_(random_numbers(requests, step, STEPS))
        if self._captured is None:
            try:
                self._captured = steps, self._capture(steps)  # its first run writes to slots that are still unused
            except RuntimeError as error:
                self.failure = first_cause(error)
                return None
        self._captured[1]()
        return steps.logits, steps.sampled
