"""The reference engine: torch, for every architecture and device."""

import math
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tinychat.errors import GenerationError
from tinychat.generate.engine import Drawn, Odds, Request, window_start
from tinychat.generate.heads import describe_heads
from tinychat.generate.looking import Head, Voice
from tinychat.generate.replay import STEPS, Record, Replayer
from tinychat.generate.sampling import probabilities, random_numbers, sample
from tinychat.model.attention import Cache
from tinychat.model.loading import fill
from tinychat.model.looking import lens, watch_attention
from tinychat.model.stepping import Stepper
from tinychat.model.transformer import NO_TOKEN, Memory, Transformer
from tinychat.settings import Settings
from tinychat.store.models import ModelInfo


class TorchEngine:
    """Decodes with a cache of fixed shape; rows of a batch may stand at different places.

    Args:
        model: in evaluation mode, on its device.
        why: it serves, and not a quicker engine.
        record: makes of some steps what runs them once more, at once; None: they go one by one.
    """

    batch_size = 64

    def __init__(self, model: Transformer, why: str = "as it was asked for", record: Record | None = None) -> None:
        self.model = model
        self.about = f"torch engine, {why}"
        self.context = model.config.context
        self.device = model.head.weight.device
        self._cache: Cache | None = None
        self._slots: list[int] = []
        self._seen: list[list[int]] = []  # for each row, the ids whose keys and values its cache holds
        self._sources: list[tuple[int, ...] | None] = []
        self._memory: Memory | None = None
        self._stepper = Stepper(model) if Stepper.serves(model) else None
        self._replayer = None if record is None else Replayer(model, record)

    def reload(self, info: ModelInfo) -> None:
        """As `Engine.reload`."""
        self._cache, self._sources = None, []  # whatever comes of it; nor is what was recorded with it used again
        fill(self.model, info)

    @torch.inference_mode()
    def extend(
        self, requests: Sequence[Request], n: int, alternatives: int = 0, seconds: float = math.inf
    ) -> list[list[Drawn]]:
        """As `Engine.extend`. What is there is always read to its end, and a token made of it."""
        end = time.perf_counter() + seconds
        self._arrange(requests)
        sequences = [list(request.ids) for request in requests]
        out: list[list[Drawn]] = [[] for _ in requests]
        ended = [False] * len(requests)
        made = 0
        while made < n and not all(ended) and (made == 0 or time.perf_counter() < end):
            logits, ids = (  # [B, N, V], [B, N]
                (n - made > STEPS // 2 and self._replay(requests, sequences, made))
                or self._step(requests, sequences, made)
            )
            _check(logits)
            for row, drawn_here in enumerate(_describe(logits, ids, alternatives)):
                sequences[row] += (drawn.id for drawn in drawn_here)
                for drawn in drawn_here[: n - made]:
                    if not ended[row]:
                        out[row].append(drawn)
                        ended[row] = drawn.id in requests[row].end_ids or len(out[row]) == requests[row].left
            made += ids.shape[1]
        return out

    @torch.inference_mode()
    def odds(self, request: Request) -> list[Odds]:
        """As `Engine.odds`."""
        self._arrange([request])
        logits = self._next_logits([request.ids])  # [1, V]
        _check(logits)
        logprobs, order = logits.log_softmax(dim=-1)[0].sort(descending=True, stable=True)
        drawn = probabilities(logits, request.settings, [request.ids])[0, order]
        return [Odds(*odds) for odds in zip(order.tolist(), logprobs.tolist(), drawn.tolist(), strict=True)]

    @torch.inference_mode()
    def score(self, ids: Sequence[int]) -> list[float]:
        """As `Engine.score`."""
        return [
            logprob
            for ids_of_window, logprobs in self._windows(ids)
            for logprob in logprobs.gather(1, ids_of_window[1:, None]).flatten().tolist()
        ]

    @torch.inference_mode()
    def entropies(self, ids: Sequence[int]) -> list[float]:
        """As `Engine.entropies`."""
        return [
            entropy
            for _, logprobs in self._windows(ids)
            for entropy in torch.special.entr(logprobs.exp()).sum(dim=-1).tolist()
        ]

    def _windows(self, ids: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        """The ids of each window, [T + 1], and the log-probabilities of what could follow all but its last, [T, V]."""
        for start in range(0, len(ids) - 1, self.context):
            window = torch.tensor(ids[start : start + self.context + 1], device=self.device)
            logits = self.model(window[None, :-1]).float()[0]
            _check(logits)
            yield window, logits.log_softmax(dim=-1)

    @torch.inference_mode()
    def heads(
        self,
        ids: Sequence[int],
        *,
        source: Sequence[int] | None = None,
        layer: int | None = None,
        cross: bool = False,
        cells: int = 16,
    ) -> list[list[Head]]:
        """As `Engine.heads`."""
        window, memory = self._window(ids), self._read(source)
        heads: list[list[Head]] = []

        def take(weights: Tensor) -> None:
            heads.append(describe_heads(weights[0], None if cross else window[0], cells))

        with watch_attention(self.model, take, layer=layer, cross=cross):
            self.model(window, memory=memory)
        return heads

    @torch.inference_mode()
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
        """As `Engine.attention`."""
        window, memory = self._window(ids), self._read(source)
        taken: list[Tensor] = []
        with watch_attention(self.model, taken.append, layer=layer, cross=cross):
            self.model(window, memory=memory)
        rows: list[list[float]] = taken[0][0, head, -newest:].tolist()
        return rows

    @torch.inference_mode()
    def lens(
        self, ids: Sequence[int], token: int, *, source: Sequence[int] | None = None, likeliest: int = 5
    ) -> list[Voice]:
        """As `Engine.lens`."""
        said, shares = lens(self.model, self._window(ids), self._read(source))
        parts = ["embeddings", *(f"layer {place}" for place in range(1, self.model.config.n_layer + 1))]
        own: list[float | None] = [None] * len(parts)
        if shares is not None:
            parts += ["counts", "matches", "mixture"]
            own = [*own[:-1], *shares.tolist(), None]
        tops = said.topk(min(likeliest, said.shape[1]))
        return [
            Voice(
                part,
                tuple((id, value) for id, value in zip(ids_of, values, strict=True) if value > 0),
                row[token].item(),
                int((row > row[token]).sum()) + 1,
                share,
            )
            for part, row, ids_of, values, share in zip(
                parts, said, tops.indices.tolist(), tops.values.tolist(), own, strict=True
            )
        ]

    def _window(self, ids: Sequence[int]) -> Tensor:
        """What the model sees of a sequence when it makes the next token, [1, T]."""
        return torch.tensor([ids[window_start(len(ids), self.context) :]], device=self.device)

    def _read(self, *sources: Sequence[int] | None) -> Memory | None:
        """What the encoder makes of sources; None where there are none."""
        rows = [torch.tensor(source) for source in sources if source is not None]
        if not rows:
            return None
        return self.model.encode(pad_sequence(rows, batch_first=True, padding_value=NO_TOKEN).to(self.device))

    def _step(
        self, requests: Sequence[Request], sequences: Sequence[Sequence[int]], made: int
    ) -> tuple[Tensor, Tensor]:
        """The logits of the next place of each row, [B, 1, V], and what is drawn there, [B, 1]."""
        logits = self._next_logits(sequences)
        return logits.unsqueeze(1), self._draw(logits, requests, sequences, made).unsqueeze(1)

    def _draw(
        self, logits: Tensor, requests: Sequence[Request], sequences: Sequence[Sequence[int]], step: int
    ) -> Tensor:
        """One token id for each row, [B]; rows with the same settings are drawn together."""
        groups: dict[Settings, list[int]] = {}
        for row, request in enumerate(requests):
            groups.setdefault(request.settings, []).append(row)
        if len(groups) == 1:
            return self._draw_alike(logits, requests, sequences, step)
        ids = torch.zeros(len(requests), dtype=torch.long, device=self.device)
        for rows in groups.values():
            alike, histories = [requests[row] for row in rows], [sequences[row] for row in rows]
            ids[rows] = self._draw_alike(logits[rows], alike, histories, step)
        return ids

    def _draw_alike(
        self, logits: Tensor, requests: Sequence[Request], histories: Sequence[Sequence[int]], step: int
    ) -> Tensor:
        """One token id for each row, [B], of requests with the same settings."""

        def uniforms() -> Tensor:
            return random_numbers(requests, step, 1)[:, 0].to(self.device)

        return sample(logits, requests[0].settings, histories, uniforms)

    def _replay(
        self, requests: Sequence[Request], sequences: Sequence[Sequence[int]], made: int
    ) -> tuple[Tensor, Tensor] | None:
        """As `Replayer.replay`, where the cache is ready for it."""
        if self._replayer is None or self._cache is None or not all(map(self._is_read, self._seen, sequences)):
            return None
        last, places = [sequence[-1] for sequence in sequences], [len(seen) for seen in self._seen]
        made_here = self._replayer.replay(self._cache, self._memory, requests, last, places, made)
        if made_here is not None:
            for seen, token, drawn in zip(self._seen, last, made_here[1].tolist(), strict=True):
                seen += [token, *drawn[:-1]]
        elif self._replayer.failure:
            self.about += f", step by step ({self._replayer.failure})"
            self._replayer = None
        return made_here

    def _is_read(self, seen: Sequence[int], sequence: Sequence[int]) -> bool:
        """Whether the cache holds all but the last token of a window that has room for what a replay makes."""
        start, last = (window_start(len(sequence) + more, self.context) for more in (0, STEPS - 1))
        return start == last and seen == sequence[start:-1]

    def _next_logits(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Feeds what the cache does not hold yet of each sequence; the logits of what comes next, [B, V], in f32."""
        starts: list[int] = []
        parts: list[Sequence[int]] = []
        for row, sequence in enumerate(sequences):
            window = sequence[window_start(len(sequence), self.context) :]
            known = min(_shared(self._seen[row], window), len(window) - 1)  # the last one is fed to get its logits
            starts.append(known)
            parts.append(window[known:])
            self._seen[row] = list(window)
        if len(set(starts)) > 1:
            # Rows at different places are padded by different lengths, which could reach behind the last slot: what is
            # more than one token is fed first, in groups that start at one place.
            for start in sorted({start for start, part in zip(starts, parts, strict=True) if len(part) > 1}):
                rows = [row for row, part in enumerate(parts) if starts[row] == start and len(part) > 1]
                self._feed([parts[row][:-1] for row in rows], start, rows)
            starts = [start + len(part) - 1 for start, part in zip(starts, parts, strict=True)]
            parts = [part[-1:] for part in parts]
        return self._feed(parts, starts[0] if len(set(starts)) == 1 else starts)

    def _feed(self, parts: Sequence[Sequence[int]], start: int | list[int], rows: list[int] | None = None) -> Tensor:
        """Runs the model over the next tokens of all rows, or of some; the logits behind each one's last, [B, V]."""
        assert self._cache is not None
        if self._stepper is not None and rows is None and isinstance(start, int) and [*map(len, parts)] == [1]:
            return self._stepper.step(parts[0][0], start, self._cache, self._memory)[None]
        cache = self._cache if rows is None else self._cache.select(rows)
        memory = self._memory
        if rows is not None and memory is not None:
            memory = Memory(memory.states[rows], memory.mask[rows])
        lengths = {len(part) for part in parts}
        if len(lengths) == 1:
            ids = torch.tensor(parts, device=self.device)  # [B, T]
        else:
            ids = pad_sequence([torch.tensor(part) for part in parts], batch_first=True).to(self.device)
        logits = self.model(
            ids,
            cache=cache,
            start=start if isinstance(start, int) else torch.tensor(start, device=self.device),
            used=(start if isinstance(start, int) else max(start)) + ids.shape[1],
            memory=memory,
        )
        if rows is not None:
            self._cache.put(rows, cache)
        if len(lengths) == 1:
            return logits[:, -1].float()  # type: ignore[no-any-return]
        last = torch.tensor([len(part) - 1 for part in parts], device=self.device)
        return logits[torch.arange(len(parts), device=self.device), last].float()  # type: ignore[no-any-return]

    def _arrange(self, requests: Sequence[Request]) -> None:
        """Gives each request its row: the one that its slot had, or a copy of one that begins as it does."""
        slots = [request.slot for request in requests]
        sources = [request.source for request in requests]
        if self._cache is None:
            self._cache = self.model.new_cache(len(slots))
            self._seen = [[] for _ in slots]
        elif slots != self._slots:
            rows = [self._row(request) for request in requests]
            self._cache = self._cache.select(rows)
            self._seen = [list(self._seen[row]) for row in rows]
        self._slots = slots
        if sources != self._sources:
            self._sources = sources
            self._memory = self._read(*sources)
            self._seen = [[] for _ in slots]

    def _row(self, request: Request) -> int:
        if request.slot in self._slots:
            return self._slots.index(request.slot)
        window = request.ids[window_start(len(request.ids), self.context) :]
        return max(range(len(self._slots)), key=lambda row: _shared(self._seen[row], window))


def _check(logits: Tensor) -> None:
    if not logits.isfinite().all():
        raise GenerationError(
            "the model gave NaN or infinite logits", "its weights are damaged: train it again at a lower rate"
        )


def _describe(logits: Tensor, ids: Tensor, alternatives: int) -> list[list[Drawn]]:
    """For each row what was drawn, [B, N], of logits [B, N, V]; with the likeliest tokens when they are asked for."""
    logprobs = logits.log_softmax(dim=-1)
    own = logprobs.gather(2, ids.unsqueeze(2)).squeeze(2)
    if not alternatives:
        both = zip(ids.tolist(), own.tolist(), strict=True)
        return [[Drawn(id, logprob) for id, logprob in zip(*row, strict=True)] for row in both]
    values, likeliest = logprobs.topk(min(alternatives, logprobs.shape[-1]))  # [B, N, k]
    told = (values_of.tolist() for values_of in (ids, own, likeliest, values))
    return [
        [
            Drawn(id, logprob, tuple(zip(top_ids, top_values, strict=True)))
            for id, logprob, top_ids, top_values in zip(*row, strict=True)
        ]
        for row in zip(*told, strict=True)
    ]


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginnings."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next(place for place in range(shorter) if first[place] != second[place])
