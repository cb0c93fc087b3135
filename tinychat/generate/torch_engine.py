"""The reference engine: torch, for every architecture and device.

Shapes: B rows, T time, N tokens generated at once, V vocabulary.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tinychat.generate.computation import Computation
from tinychat.generate.cuda_graph import STEPS, GraphReplayer
from tinychat.generate.engine import (
    Head,
    LensRow,
    Request,
    SampledToken,
    Steering,
    TokenProbability,
    nonfinite_error,
    score_windows,
    window_start,
)
from tinychat.generate.introspection import describe_heads, logit_lens, watch_attention
from tinychat.generate.sampling import probabilities, random_numbers, sample, stack_biases
from tinychat.generate.steering import Steerer
from tinychat.generate.tracing import trace
from tinychat.model.cpu_decoder import CPUDecoder
from tinychat.model.graph_capture import Capture
from tinychat.model.kv_cache import KVCache
from tinychat.model.loading import load_weights
from tinychat.model.transformer import NO_TOKEN, EncoderOutput, Transformer
from tinychat.store.models import ModelInfo

DEFAULT_THREADS = torch.get_num_threads()
"""Number of threads that torch takes where none is set; an engine that computes may change it for a while."""

P = ParamSpec("P")
R = TypeVar("R")


def _computing(method: "Callable[Concatenate[TorchEngine, P], R]") -> "Callable[Concatenate[TorchEngine, P], R]":
    """Run a method in inference mode, with the engine's number of threads: torch keeps one for each thread."""

    @wraps(method)
    def run(self: "TorchEngine", /, *args: P.args, **kwargs: P.kwargs) -> R:
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.inference_mode():
                return method(self, *args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return run


class TorchEngine:
    """Decodes with a model in evaluation mode, on its device; rows of a batch may be at different positions.

    `about` says `why` this engine serves and not a faster one. `capture` makes decoding steps replayable at once; None:
    they run one by one. It computes with that number of `threads`; default: those of the thread that makes it.
    """

    batch_size = 64
    can_steer = True

    def __init__(
        self,
        model: Transformer,
        why: str = "as it was asked for",
        capture: Capture | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.device = model, model.head.weight.device
        self.about = f"torch engine, {why}"
        self.threads = threads or torch.get_num_threads()
        self.context_length = model.config.context_length
        self._cache: KVCache | None = None
        self._slots: list[int] = []
        self._cached: list[list[int]] = []  # for each row, the ids whose keys and values its cache holds
        self._sources: list[tuple[int, ...] | None] = []
        self._encoder_output: EncoderOutput | None = None
        self._steerer = Steerer(model)
        self._steerings: list[Steering | None] = []
        self._cpu_decoder = CPUDecoder(model) if CPUDecoder.supports(model) else None
        self._replayer = None if capture is None else GraphReplayer(model, capture)

    def reload(self, info: ModelInfo) -> None:
        """Implement `Engine.reload`."""
        self._cache, self._sources = None, []  # even if loading fails; what was captured with it is not used again
        self._steerer.forget()
        load_weights(self.model, info)

    @_computing
    def check(self, request: Request) -> None:
        """Implement `Engine.check`."""
        if request.steering is not None:
            self._steerer.shift(request.steering)

    @_computing
    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        """Implement `Engine.extend`. Prompts are always read to their ends, and one token generated."""
        end = time.perf_counter() + seconds
        self._arrange(requests)
        n = n if all(request.biases is None for request in requests) else min(n, 1)
        sequences = [list(request.ids) for request in requests]
        out: list[list[SampledToken]] = [[] for _ in requests]
        ended = [False] * len(requests)
        step = 0
        while step < n and not all(ended) and (step == 0 or time.perf_counter() < end):
            logits, ids = (  # [B, N, V], [B, N]
                (n - step > STEPS // 2 and self._replay(requests, sequences, step))
                or self._decode_one_token(requests, sequences, step)
            )
            _check(logits)
            rows = zip(requests, ids.tolist(), _describe(logits, ids, top_logprobs), strict=True)
            for row, (request, new_ids, tokens) in enumerate(rows):
                sequences[row] += new_ids
                if not ended[row]:
                    room = min(n, request.left) - len(out[row])
                    if not request.end_ids.isdisjoint(new_ids):
                        tokens = tokens[: 1 + next(place for place, id in enumerate(new_ids) if id in request.end_ids)]
                    out[row] += tokens[:room]
                    ended[row] = out[row][-1].id in request.end_ids or len(out[row]) == request.left
            step += ids.shape[1]
        return out

    @_computing
    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Implement `Engine.probabilities`."""
        self._arrange([request])
        logits = self._next_logits([request.ids])  # [1, V]
        _check(logits)
        own = logits
        if request.steering is not None:
            own = self.model(self._window(request.ids), encoder_output=self._encoder_output)[:, -1].float()
        logprobs, order = own.log_softmax(dim=-1)[0].sort(descending=True, stable=True)  # [V]
        biases = stack_biases([request], logits)
        filtered = probabilities(logits, request.settings, [request.ids], biases)[0, order]  # [V]
        return list(map(TokenProbability, order.tolist(), logprobs.tolist(), filtered.tolist()))

    @_computing
    def score(self, ids: Sequence[int]) -> list[float]:
        """Implement `Engine.score`."""
        scores = (logprobs.gather(1, window[1:, None]).flatten() for window, logprobs in self._windows(ids))
        return [logprob for window in scores for logprob in window.tolist()]

    @_computing
    def entropies(self, ids: Sequence[int]) -> list[float]:
        """Implement `Engine.entropies`."""
        entropies = (torch.special.entr(logprobs.exp()).sum(dim=-1) for _, logprobs in self._windows(ids))
        return [entropy for window in entropies for entropy in window.tolist()]

    def _windows(self, ids: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each window's ids [T + 1] and the log-probabilities of what may follow all but the last, [T, V]."""
        for ids_here, scored in score_windows(ids, self.context_length):
            window = torch.tensor(ids_here, device=self.device)
            logits = self.model(window[None, :-1]).float()[0, scored:]
            _check(logits)
            yield window[scored:], logits.log_softmax(dim=-1)

    @_computing
    def heads(
        self,
        ids: Sequence[int],
        *,
        source: Sequence[int] | None = None,
        layer: int | None = None,
        cross: bool = False,
        cells: int = 16,
    ) -> list[list[Head]]:
        """Implement `Engine.heads`."""
        window, heads = self._window(ids), list[list[Head]]()

        def record(weights: Tensor) -> None:
            heads.append(describe_heads(weights[0], None if cross else window[0], cells))

        with watch_attention(self.model, record, layer=layer, cross=cross):
            self.model(window, encoder_output=self._encode(source))
        return heads

    @_computing
    def attention(
        self,
        ids: Sequence[int],
        layer: int,
        head: int,
        *,
        source: Sequence[int] | None = None,
        cross: bool = False,
        newest: int = 256,
    ) -> list[list[float]]:
        """Implement `Engine.attention`."""
        recorded: list[Tensor] = []
        with watch_attention(self.model, recorded.append, layer=layer, cross=cross):
            self.model(self._window(ids), encoder_output=self._encode(source))
        return recorded[0][0, head, -newest:].tolist()

    @_computing
    def lens(
        self, ids: Sequence[int], token: int, *, source: Sequence[int] | None = None, likeliest: int = 5
    ) -> list[LensRow]:
        """Implement `Engine.lens`."""
        predicted, shares = logit_lens(self.model, self._window(ids), self._encode(source))  # [rows, V], [3]
        parts = ["embeddings", *(f"layer {number}" for number in range(1, self.model.config.n_layer + 1))]
        own: list[float | None] = [None] * len(parts)
        if shares is not None:
            parts += ["counts", "matches", "mixture"]
            own = [*own[:-1], *shares.tolist(), None]
        tops = predicted.topk(min(likeliest, predicted.shape[1]))
        rows: list[LensRow] = []
        for part, row, top_ids, values, share in zip(parts, predicted, tops.indices, tops.values, own, strict=True):
            top = tuple((id, value) for id, value in zip(top_ids.tolist(), values.tolist(), strict=True) if value > 0)
            rows.append(LensRow(part, top, row[token].item(), int((row > row[token]).sum()) + 1, share))
        return rows

    @_computing
    def trace(
        self,
        request: Request,
        label: Callable[[int], str],
        source_label: Callable[[int], str],
        *,
        uniform: float | None = None,
        drawn: int | None = None,
        precision: str | None = None,
    ) -> Computation:
        """Implement `Engine.trace`."""
        window = request.ids[window_start(len(request.ids), self.context_length) :]
        shift = None if request.steering is None else self._steerer.shift(request.steering)
        return trace(
            self.model, request, label, source_label, window=window, uniform=uniform, drawn=drawn, shift=shift,
            precision=precision,
        )  # fmt: skip

    def _window(self, ids: Sequence[int]) -> Tensor:
        """Return what the model sees of a sequence when it predicts the next token, [1, T]."""
        return torch.tensor([ids[window_start(len(ids), self.context_length) :]], device=self.device)

    def _encode(self, *sources: Sequence[int] | None) -> EncoderOutput | None:
        """Run the encoder over sources; None if there are none."""
        rows = [torch.tensor(source) for source in sources if source is not None]
        if not rows:
            return None
        return self.model.encode(pad_sequence(rows, batch_first=True, padding_value=NO_TOKEN).to(self.device))

    def _decode_one_token(
        self, requests: Sequence[Request], sequences: Sequence[Sequence[int]], step: int
    ) -> tuple[Tensor, Tensor]:
        """Return the logits of the next token of each row, [B, 1, V], and the token sampled from them, [B, 1]."""
        logits = self._next_logits(sequences)
        return logits.unsqueeze(1), self._sample(logits, requests, sequences, step).unsqueeze(1)

    def _sample(
        self, logits: Tensor, requests: Sequence[Request], histories: Sequence[Sequence[int]], step: int
    ) -> Tensor:
        """Sample one token id for each row, [B], from logits [B, V]; rows with equal settings are sampled together."""
        distinct = {request.settings for request in requests}
        if len(distinct) == 1:
            numbers = partial(random_numbers, requests, step, steps=1)
            biases = stack_biases(requests, logits)
            return sample(logits, requests[0].settings, histories, lambda: numbers()[:, 0].to(self.device), biases)
        ids = torch.zeros(len(requests), dtype=torch.long, device=self.device)
        for settings in distinct:
            rows = [row for row, request in enumerate(requests) if request.settings == settings]
            alike, texts = [requests[row] for row in rows], [histories[row] for row in rows]
            ids[rows] = self._sample(logits[rows], alike, texts, step)
        return ids

    def _replay(
        self, requests: Sequence[Request], sequences: Sequence[Sequence[int]], step: int
    ) -> tuple[Tensor, Tensor] | None:
        """Call `GraphReplayer.replay`, if the cache is ready for it."""
        if self._replayer is None or self._cache is None or any(self._steerings):
            return None
        if not all(map(self._can_replay, self._cached, sequences)):
            return None
        last, positions = [sequence[-1] for sequence in sequences], [len(cached) for cached in self._cached]
        replayed = self._replayer.replay(self._cache, self._encoder_output, requests, last, positions, step)
        if replayed is not None:
            for cached, token, sampled in zip(self._cached, last, replayed[1].tolist(), strict=True):
                cached += [token, *sampled[:-1]]
        elif self._replayer.failure:
            self.about += f", step by step ({self._replayer.failure})"
            self._replayer = None
        return replayed

    def _can_replay(self, cached: Sequence[int], sequence: Sequence[int]) -> bool:
        """Whether the cache holds all but the last token of a window with room for the tokens of a replay."""
        start, last = (window_start(len(sequence) + more, self.context_length) for more in (0, STEPS - 1))
        return start == last and cached == sequence[start:-1]

    def _next_logits(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Read what the cache lacks of each sequence; return the logits of the next tokens, [B, V], in f32."""
        starts: list[int] = []
        parts: list[Sequence[int]] = []
        windows: list[list[int]] = []
        for row, sequence in enumerate(sequences):
            window = list(sequence[window_start(len(sequence), self.context_length) :])
            known = min(_shared(self._cached[row], window), len(window) - 1)  # the last is read again, for its logits
            starts.append(known)
            parts.append(window[known:])
            windows.append(window)
            self._cached[row] = window[:known]  # a pass that fails has overwritten the rest, in part
        if len(set(starts)) > 1:
            # Padding rows at different positions could reach beyond the last slot. So all but the last token of each
            # row is read first, in groups that start at the same position.
            for start in sorted({start for start, part in zip(starts, parts, strict=True) if len(part) > 1}):
                rows = [row for row, part in enumerate(parts) if starts[row] == start and len(part) > 1]
                self._prefill([parts[row][:-1] for row in rows], start, rows)
            starts = [start + len(part) - 1 for start, part in zip(starts, parts, strict=True)]
            parts = [part[-1:] for part in parts]
        logits = self._prefill(parts, starts[0] if len(set(starts)) == 1 else starts)
        self._cached = windows
        return logits

    def _prefill(self, parts: Sequence[Sequence[int]], start: int | list[int], rows: list[int] | None = None) -> Tensor:
        """Read parts of some or all rows of the cache; return the logits after the last token of each, [B, V], in f32.

        `start` is the position of their first tokens; one per row where they differ.
        """
        assert self._cache is not None
        is_single = rows is None and isinstance(start, int) and [*map(len, parts)] == [1]
        if self._cpu_decoder is not None and is_single and isinstance(start, int) and not any(self._steerings):
            return self._cpu_decoder.decode_one_token(parts[0][0], start, self._cache, self._encoder_output)[None]
        cache = self._cache if rows is None else self._cache.select(rows)
        encoder_output = self._encoder_output
        if rows is not None and encoder_output is not None:
            encoder_output = EncoderOutput(encoder_output.states[rows], encoder_output.mask[rows])
        lengths = {len(part) for part in parts}
        if len(lengths) == 1:
            ids = torch.tensor(parts, device=self.device)  # [B, T]
        else:
            ids = pad_sequence([torch.tensor(part) for part in parts], batch_first=True).to(self.device)
        steerings = self._steerings if rows is None else [self._steerings[row] for row in rows]
        with self._steerer.steer(steerings):
            logits = self.model(  # [B, T, V]
                ids,
                cache=cache,
                start=start if isinstance(start, int) else torch.tensor(start, device=self.device),
                num_slots=(start if isinstance(start, int) else max(start)) + ids.shape[1],
                encoder_output=encoder_output,
            )
        if rows is not None:
            self._cache.write_rows(rows, cache)
        if len(lengths) == 1:
            return logits[:, -1].float()  # type: ignore[no-any-return]
        last = torch.tensor([len(part) - 1 for part in parts], device=self.device)
        return logits[torch.arange(len(parts), device=self.device), last].float()  # type: ignore[no-any-return]

    def _arrange(self, requests: Sequence[Request]) -> None:
        """Give each request a row of the cache: its slot's, or a copy of the one that shares most with it."""
        slots = [request.slot for request in requests]
        if self._cache is None:
            self._cache = self.model.new_cache(len(slots))
            self._cached = [[] for _ in slots]
        elif slots != self._slots:
            rows = [self._row(request) for request in requests]
            self._cache = self._cache.select(rows)
            self._cached = [list(self._cached[row]) for row in rows]
        self._slots = slots
        if (sources := [request.source for request in requests]) != self._sources:
            self._cached = [[] for _ in slots]
            self._encoder_output = self._encode(*sources)
            self._sources = sources  # only now: encoding may fail
        if (steerings := [request.steering for request in requests]) != self._steerings:
            self._steerings = steerings
            self._cached = [[] for _ in slots]

    def _row(self, request: Request) -> int:
        if request.slot in self._slots:
            return self._slots.index(request.slot)
        window = request.ids[window_start(len(request.ids), self.context_length) :]
        return max(range(len(self._slots)), key=lambda row: _shared(self._cached[row], window))


def _check(logits: Tensor) -> None:
    """Raise GenerationError for logits that are not finite."""
    if not logits.isfinite().all():
        raise nonfinite_error()


def _describe(logits: Tensor, ids: Tensor, top_logprobs: int) -> list[list[SampledToken]]:
    """Return the records of tokens [B, N] that were sampled from logits [B, N, V], row by row."""
    logprobs = logits.log_softmax(dim=-1)
    own = logprobs.gather(2, ids.unsqueeze(2)).squeeze(2)  # [B, N]
    if not top_logprobs:
        return [list(map(SampledToken, *row)) for row in zip(ids.tolist(), own.tolist(), strict=True)]
    values, likeliest = logprobs.topk(min(top_logprobs, logprobs.shape[-1]))  # [B, N, k]
    rows = zip(*(column.tolist() for column in (ids, own, likeliest, values)), strict=True)
    return [
        [SampledToken(id, logprob, tuple(zip(*tops, strict=True))) for id, logprob, *tops in zip(*row, strict=True)]
        for row in rows
    ]


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest common prefix."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next(index for index in range(shorter) if first[index] != second[index])
