"""The engine in C: decoder-only models of every architecture, on a CPU, without torch."""

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tinychat.errors import GenerationError, ModelError
from tinychat.formatting import count
from tinychat.generate.engine import Drawn, Engine, Odds, Request, window_start
from tinychat.generate.looking import Head, Voice
from tinychat.generate.native.library import Unavailable, levels_here, load_library
from tinychat.model.config import ModelConfig
from tinychat.store.models import DAMAGED, WEIGHTS, ModelInfo
from tinychat.store.tensors import Tensor, TensorFile

KINDS: Mapping[str, int] = {"F32": 1, "BF16": 2, "I16": 4, "I32": 5, "I64": 6}
PRECISIONS: Mapping[str, int] = {"f32": 1, "bf16": 2, "int8": 3}
NORMS: Mapping[str, int] = {"none": 0, "layernorm": 1, "rmsnorm": 2}
FEED_FORWARDS: Mapping[str, int] = {"none": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "relu2": 4, "swiglu": 5}
POSITIONS: Mapping[str, int] = {"none": 0, "rotary": 1, "learned": 2, "sinusoidal": 3}
LONGEST_CALL = 1 << 16
"""tokens of one call, at most"""
MASK = (1 << 64) - 1
LIMITS = {
    "context": 1 << 16,
    "vocab_size": 1 << 18,
    "d_model": 1 << 14,
    "feed_forward_width": 1 << 20,
    "n_layer": 1 << 12,
}
"""of the sizes that the kernel takes: its threads' stacks hold a few vectors of each"""
EMBEDDING = "decoder.embedding.weight"

# As the kernel's structures of these names lie in memory.
CONFIG, TENSOR, SAMPLING = "18i3f", "Pqq", "4dq3Q"


@dataclass
class _Row:
    """A sequence in the kernel, and the ids whose keys and values it holds."""

    sequence: int
    seen: list[int] = field(default_factory=list)


class NativeEngine:
    """Decodes in C; as `Engine`, for a decoder-only model.

    Args:
        info: of the model.
        threads: that compute.
        precision: of the matrices: f32 (bf16 where the file has them so, which loses nothing), bf16, or int8: each row
            of 64 columns with a scale of its own, and what they are multiplied with likewise (Dettmers et al. 2022).
        level: the instructions to use, one of `library.levels_here()`; None: the best.
        open_reference: opens the engine that looks inside a model, which this one does not.

    Raises:
        Unavailable: there is no compiler, or the model has an encoder or is too large.
        ModelError: the weights are missing, damaged, or those of another architecture.
    """

    def __init__(
        self,
        info: ModelInfo,
        threads: int = 1,
        *,
        precision: str = "f32",
        level: str | None = None,
        open_reference: Callable[[ModelInfo], Engine] | None = None,
    ) -> None:
        self.config = ModelConfig.from_dict(info.architecture)
        if self.config.encoder_decoder:
            raise Unavailable("the native engine knows no encoder")
        for name, most in LIMITS.items():
            if getattr(self.config, name) > most:
                raise Unavailable(f"the native engine takes models of a {name} up to {most}")
        self.context = self.config.context
        self._threads, self._precision = threads, precision
        self._level = level or levels_here()[0]
        self._kernel = _declare(load_library(), self._level)
        self._model: int | None = None
        self._rows: dict[int, _Row] = {}
        self._spare: list[_Row] = []
        self._open_reference = open_reference
        self._reference: Engine | None = None
        self.reload(info)

    def reload(self, info: ModelInfo) -> None:
        """As `Engine.reload`."""
        files = [TensorFile(info.folder / WEIGHTS), *([TensorFile(info.snapshot)] if info.snapshot else [])]
        tensors = {name: tensor for file in files for name, tensor in file.tensors.items()}
        names = list(_names(self.config))
        handed = b"".join(_handed(tensors.get(name)) for name in names)
        embedding = tensors.get(EMBEDDING)
        is_half = embedding is not None and embedding.kind == "BF16"
        precision = "bf16" if self._precision == "f32" and is_half else self._precision
        model = self._kernel.native_new_model(_config(self.config, precision), handed, len(names), self._threads)
        if not model:
            raise ModelError(f"the weights in {info.folder} do not fit its architecture", DAMAGED)
        self.close()
        self._model, self._info, self._reference = model, info, None
        self.about = f"native engine, {precision}, {self._level}, {count(self._threads, 'thread')}"

    def close(self) -> None:
        """Lets go of the model and all sequences."""
        for row in (*self._rows.values(), *self._spare):
            self._kernel.native_free_sequence(row.sequence)
        self._rows, self._spare = {}, []
        self._kernel.native_free_model(self._model)
        self._model = None

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    def extend(self, requests: Sequence[Request], n: int, alternatives: int = 0) -> list[list[Drawn]]:
        """As `Engine.extend`."""
        self._arrange(requests)
        return [self._extend(request, n, min(alternatives, self.config.vocab_size)) for request in requests]

    def odds(self, request: Request) -> list[Odds]:
        """As `Engine.odds`."""
        self._arrange([request])
        size = self.config.vocab_size
        logprobs, shares = (c_float * size)(), (c_double * size)()
        row, window, start = self._window(request.slot, request.ids)
        _check(
            self._kernel.native_odds(
                self._model, row.sequence, _array(window, size), len(window), start, _sampling(request, 0),
                _marked(request.ids, size), logprobs, shares,
            )
        )  # fmt: skip
        row.seen = window
        odds = [Odds(id, logprobs[id], shares[id]) for id in range(size)]
        return sorted(odds, key=lambda one: -one.logprob)

    def score(self, ids: Sequence[int]) -> list[float]:
        """As `Engine.score`."""
        return [logprob for logprobs, _ in self._windows(ids) for logprob in logprobs]

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """As `Engine.entropies`."""
        return [entropy for _, entropies in self._windows(ids) for entropy in entropies]

    def _windows(self, ids: Sequence[int]) -> Iterator[tuple[list[float], list[float]]]:
        """Of each token of a window but its first: its log-probability, and the entropy of what could have come."""
        row, size = self._spare_row(), self.config.vocab_size
        for start in range(0, len(ids) - 1, self.context):
            window = ids[start : start + self.context + 1]
            count = len(window)
            logprobs, entropies = (c_float * count)(), (c_float * count)()
            _check(
                self._kernel.native_score(self._model, row.sequence, _array(window, size), count, logprobs, entropies)
            )
            yield logprobs[: count - 1], entropies[: count - 1]
        self._spare.append(_Row(row.sequence))

    @property
    def _inside(self) -> Engine:
        """The reference, which is opened when something is looked at for the first time."""
        if self._reference is None:
            if self._open_reference is None:
                raise GenerationError("the native engine does not look inside", "--engine torch does")
            self._reference = self._open_reference(self._info)
        return self._reference

    def heads(self, ids: Sequence[int], **wishes: Any) -> list[list[Head]]:
        """As `Engine.heads`."""
        return self._inside.heads(ids, **wishes)

    def attention(self, ids: Sequence[int], layer: int, head: int, **wishes: Any) -> list[list[float]]:
        """As `Engine.attention`."""
        return self._inside.attention(ids, layer, head, **wishes)

    def lens(self, ids: Sequence[int], token: int, **wishes: Any) -> list[Voice]:
        """As `Engine.lens`."""
        return self._inside.lens(ids, token, **wishes)

    def _extend(self, request: Request, n: int, alternatives: int) -> list[Drawn]:
        """Up to n tokens of one sequence; a call of the kernel for each window that they lie in."""
        size = self.config.vocab_size
        ids, out = list(request.ids), list[Drawn]()
        used, ends = _marked(ids, size), _marked(request.end_ids, size)
        n = min(n, LONGEST_CALL)
        while len(out) < n and not (out and out[-1].id in request.end_ids):
            row, window, start = self._window(request.slot, ids)
            most = n - len(out)
            drawn, logprobs = (c_int32 * most)(), (c_float * most)()
            likeliest, values = (c_int32 * (most * alternatives))(), (c_float * (most * alternatives))()
            made = _check(
                self._kernel.native_extend(
                    self._model, row.sequence, _array(window, size), len(window), start,
                    _sampling(request, request.made + len(out)), used, most, ends, alternatives,
                    drawn, logprobs, likeliest, values,
                )
            )  # fmt: skip
            for place in range(made):
                first = place * alternatives
                tops = zip(likeliest[first : first + alternatives], values[first : first + alternatives], strict=True)
                out.append(Drawn(drawn[place], logprobs[place], tuple(tops)))
            row.seen = [*window, *drawn[: made - 1]]
            ids += drawn[:made]
        return out

    def _window(self, slot: int, ids: Sequence[int]) -> tuple[_Row, list[int], int]:
        """The row of a slot, the part of a sequence that the model sees, and how much of that its cache holds."""
        row = self._rows[slot]
        window = list(ids[window_start(len(ids), self.context) :])
        same = next((i for i, (a, b) in enumerate(zip(row.seen, window, strict=False)) if a != b), None)
        known = min(len(row.seen), len(window)) if same is None else same
        return row, window, min(known, len(window) - 1)

    def _arrange(self, requests: Sequence[Request]) -> None:
        """Gives each request its row: the one that its slot had, or any other."""
        slots = {request.slot for request in requests}
        self._spare += [self._rows.pop(slot) for slot in list(self._rows) if slot not in slots]
        for slot in slots - set(self._rows):
            self._rows[slot] = self._spare_row()

    def _spare_row(self) -> _Row:
        if self._spare:
            return self._spare.pop()
        sequence = self._kernel.native_new_sequence(self._model)
        if not sequence:
            raise GenerationError("there is no memory for another sequence", "ask for fewer at once")
        return _Row(sequence)


def _declare(kernel: ctypes.CDLL, level: str) -> SimpleNamespace:
    """A level's functions; ctypes is told what they take and give. Structures are handed over as bytes."""
    begun = [c_void_p, c_void_p, c_void_p, c_int]
    functions = {
        "native_new_model": (c_void_p, [c_char_p, c_char_p, c_int64, c_int]),
        "native_free_model": (None, [c_void_p]),
        "native_new_sequence": (c_void_p, [c_void_p]),
        "native_free_sequence": (None, [c_void_p]),
        "native_extend": (
            c_int,
            [*begun, c_int, c_char_p, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p],
        ),
        "native_odds": (c_int, [*begun, c_int, c_char_p, c_void_p, c_void_p, c_void_p]),
        "native_score": (c_int, [*begun, c_void_p, c_void_p]),
    }
    declared = SimpleNamespace()
    for name, (result, arguments) in functions.items():
        function = getattr(kernel, f"{name}_{level}")
        function.restype, function.argtypes = result, arguments
        setattr(declared, name, function)
    return declared


def _config(config: ModelConfig, precision: str) -> bytes:
    return struct.pack(
        CONFIG,
        config.vocab_size, config.context, config.n_layer, config.n_head, config.kv_heads, config.d_model,
        config.feed_forward_width, NORMS[config.norm], config.norm_position == "pre",
        config.final_norm and config.norm_position == "pre", FEED_FORWARDS[config.feed_forward],
        POSITIONS[config.position], config.qk_norm, config.output_projection, config.earlier_tokens,
        config.token_pairs, config.ngram_order, PRECISIONS[precision],
        config.norm_eps, config.rotary_base, config.d_model**0.5 if config.scale_embedding else 1.0,
    )  # fmt: skip


def _names(config: ModelConfig) -> Iterator[str]:
    """The tensors of a model in the order in which the kernel takes them; it may lack norms' weights and all biases."""
    yield EMBEDDING
    yield from (f"decoder.earlier.{place}.weight" for place in range(config.earlier_tokens))
    if config.token_pairs:
        yield "decoder.pairs.weight"
    if config.position == "learned":
        yield "decoder.position.table.weight"
    for layer in range(config.n_layer):
        block = f"decoder.blocks.{layer}"
        yield from _pair(f"{block}.attention.norm")
        attention = f"{block}.attention.sublayer"
        yield from (f"{attention}.{part}.{kind}" for kind in ("weight", "bias") for part in ("query", "key", "value"))
        if config.output_projection:
            yield from _pair(f"{attention}.output")
        if config.feed_forward == "none":
            continue
        yield from _pair(f"{block}.feed_forward.norm")
        feed_forward = f"{block}.feed_forward.sublayer"
        yield from _pair(f"{feed_forward}.up")
        if config.feed_forward == "swiglu":
            yield from _pair(f"{feed_forward}.gate")
        yield from _pair(f"{feed_forward}.output")
    if config.final_norm and config.norm_position == "pre":
        yield from _pair("decoder.norm")
    yield EMBEDDING if config.tie_embeddings else "head.weight"
    yield "head.bias"
    if config.ngram_order:
        yield from (name for part in ("trust", "share", "strength") for name in _pair(f"ngrams.{part}"))
        yield from (f"ngrams.{part}" for part in ("worth", "variety", "matches.worth", "matches.distance"))
        yield from (f"ngrams.{part}" for part in ("contexts", "widths", "tokens", "counts"))


def _pair(name: str) -> tuple[str, str]:
    return f"{name}.weight", f"{name}.bias"


def _handed(tensor: Tensor | None) -> bytes:
    return struct.pack(TENSOR, *((0, 0, 0) if tensor is None else (tensor.address, KINDS[tensor.kind], tensor.count)))


def _sampling(request: Request, place: int) -> bytes:
    settings = request.settings
    return struct.pack(
        SAMPLING, settings.temperature, settings.top_p, settings.min_p, settings.repetition_penalty,
        settings.top_k or 0, request.seed & MASK, request.place, place,
    )  # fmt: skip


def _array(ids: Sequence[int], size: int) -> "ctypes.Array[c_int32]":
    if min(ids) < 0 or max(ids) >= size:
        raise ModelError(f"a token has the id {max(ids)}, and the model knows {size} tokens", DAMAGED)
    return (c_int32 * len(ids))(*ids)


def _marked(ids: Sequence[int] | frozenset[int], size: int) -> "ctypes.Array[c_uint8]":
    """A byte for each token: 1 where it is one of the ids."""
    marks = bytearray(size)
    for id in ids:
        if 0 <= id < size:
            marks[id] = 1
    return (c_uint8 * size).from_buffer(marks)


def _check(result: int) -> int:
    if result < 0:
        raise GenerationError(
            "the model gave NaN or infinite logits", "its weights are damaged: train it again at a lower rate"
        )
    return result
