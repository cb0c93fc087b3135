"""The engine in C: decoder-only models of every architecture, on a CPU, without torch."""

import ctypes
import itertools
import math
import struct
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import c_char, c_char_p, c_double, c_float, c_int, c_int64, c_void_p
from types import SimpleNamespace
from typing import Any, NamedTuple

from tinychat.errors import GenerationError, ModelError
from tinychat.generate.engine import Drawn, Engine, Odds, Request, window_start
from tinychat.generate.looking import Head, Voice
from tinychat.generate.native.library import Unavailable, levels_here, load_library
from tinychat.generate.native.team import Team
from tinychat.model.config import ModelConfig
from tinychat.store.models import DAMAGED, WEIGHTS, ModelInfo
from tinychat.store.tensors import Tensor, TensorFile
from tinychat.textutil import count

KINDS: Mapping[str, int] = {"F32": 1, "BF16": 2, "I16": 4, "I32": 5, "I64": 6}
PRECISIONS: Mapping[str, int] = {"f32": 1, "bf16": 2, "int8": 3}
DRAFTS: Mapping[str, int] = {"never": 0, "auto": 1, "always": 2}
NORMS: Mapping[str, int] = {"none": 0, "layernorm": 1, "rmsnorm": 2}
FEED_FORWARDS: Mapping[str, int] = {"none": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "relu2": 4, "swiglu": 5}
POSITIONS: Mapping[str, int] = {"none": 0, "rotary": 1, "learned": 2, "sinusoidal": 3}
MASK = (1 << 64) - 1
LIMITS = {
    "context": 1 << 16,
    "vocab_size": 1 << 18,
    "d_model": 1 << 14,
    "feed_forward_width": 1 << 20,
    "n_layer": 1 << 12,
    "earlier_tokens": 1 << 12,
}
"""of the sizes that the kernel takes: its threads' stacks hold a few vectors of each"""
EMBEDDING = "decoder.embedding.weight"

# As the kernel's structures of these names lie in memory.
CONFIG, TENSOR, REQUEST = "18i3f", "Pqq", struct.Struct("7P5q4dq3Q")
MADE = struct.calcsize("7P4q")
"""where a request tells how many tokens it has got"""
UNKNOWN_TOKEN = -2
FEWEST_TIMED, LONG_ENOUGH, LARGEST_SHARE = 8, 0.01, 2
"""how quick its threads are is told by a call that made so many tokens, or took so many seconds, and read at most twice
as many tokens as it made: else it tells how soon they awoke, or of a prompt, whose tokens are read together"""


class Work(NamedTuple):
    """What an engine has done with its model."""

    read: int
    """tokens that went through the layers, drafts included"""
    drafts: int
    """tokens that were guessed, and checked"""
    kept: int
    """those that the model said as well"""

    @property
    def read_for_good(self) -> int:
        """Without what was guessed in vain."""
        return self.read - self.drafts + self.kept


class NativeEngine:
    """Decodes in C; as `Engine`, for a decoder-only model.

    Args:
        info: of the model.
        threads: that compute; where there may be more, with how many it begins.
        most_threads: as many as `threads` by default. More: it goes on with one or with all, whichever is quicker.
        precision: of the matrices: f32 (bf16 where the file has them so, which loses nothing), bf16, or int8: each row
            of 64 columns with a scale of its own, and what they are multiplied with likewise (Dettmers et al. 2022).
        level: the instructions to use, one of `library.levels_here()`; None: the best.
        drafts: whether tokens are guessed and checked together: `never`, `always`, or `auto`, where it is measured to
            gain. What is said is the same.
        open_reference: opens the engine that looks inside a model, which this one does not.

    Raises:
        Unavailable: there is no compiler, or the model has an encoder or is too large.
        ModelError: the weights are missing, damaged, or those of another architecture.
    """

    batch_size = 8  # with more, their keys and values no longer fit into the nearest memory

    def __init__(
        self,
        info: ModelInfo,
        threads: int = 1,
        *,
        most_threads: int | None = None,
        precision: str = "f32",
        level: str | None = None,
        drafts: str = "auto",
        open_reference: Callable[[ModelInfo], Engine] | None = None,
    ) -> None:
        self.config = ModelConfig.from_dict(info.architecture)
        if self.config.encoder_decoder:
            raise Unavailable("the native engine knows no encoder")
        for name, most in LIMITS.items():
            if getattr(self.config, name) > most:
                raise Unavailable(f"the native engine takes models of a {name} up to {most}")
        self.context = self.config.context
        self._precision, self._drafts = precision, drafts
        self._team = Team(threads, most_threads or threads)
        self._level = level or levels_here()[0]
        self._kernel = _declare(load_library(), self._level)
        self._model: int | None = None
        self._sequences: dict[int, int] = {}
        self._spare: list[int] = []
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
        self.precision = "bf16" if self._precision == "f32" and is_half else self._precision
        model = self._kernel.native_new_model(_config(self.config, self.precision), handed, len(names), self._team.most)
        if not model:
            raise ModelError(f"the weights in {info.folder} do not fit its architecture", DAMAGED)
        self.close()
        self._model, self._info, self._reference = model, info, None
        self.draft(self._drafts)
        threads = "up to " * (self._team.most > self._team.usual) + count(self._team.most, "thread")
        self.about = f"native engine, {self.precision}, {self._level}, {threads}"

    def draft(self, when: str) -> None:
        """From now on `never`, `auto` or `always`."""
        self._drafts = when
        self._kernel.native_draft(self._model, DRAFTS[when])

    def close(self) -> None:
        """Lets go of the model and all sequences."""
        for sequence in (*self._sequences.values(), *self._spare):
            self._kernel.native_free_sequence(self._model, sequence)
        self._sequences, self._spare = {}, []
        self._kernel.native_free_model(self._model)
        self._model = None

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    @property
    def work(self) -> Work:
        """What it has done so far."""
        told = (c_int64 * 3)()
        self._kernel.native_tell(self._model, told)
        return Work(*told)

    def extend(
        self, requests: Sequence[Request], n: int, alternatives: int = 0, seconds: float = math.inf
    ) -> list[list[Drawn]]:
        """As `Engine.extend`. Sequences that begin alike are read once as far as they do."""
        end = time.perf_counter() + seconds
        self._arrange(requests)
        alternatives = min(alternatives, self.config.vocab_size)
        answers = [_Answer(request, n) for request in requests]
        while waiting := [answer for answer in answers if not answer.is_done]:  # once for each window that they lie in
            self._go_on(waiting, alternatives, max(0.0, end - time.perf_counter()))
            if time.perf_counter() >= end:
                break
        return [answer.drawn for answer in answers]

    def _go_on(self, answers: "Sequence[_Answer]", alternatives: int, seconds: float) -> None:
        """Goes on with answers up to the ends of the windows that they lie in."""
        most = min(self.context, max(answer.left for answer in answers))
        places = len(answers) * most
        drawn, likeliest = array("i", bytes(4 * places)), array("i", bytes(4 * places * alternatives))
        logprobs, values = array("f", bytes(4 * places)), array("f", bytes(4 * places * alternatives))
        handed = bytearray()
        for place, answer in enumerate(answers):
            first = 4 * place * most
            handed += answer.pack(
                self._sequences[answer.request.slot], self.context, min(most, answer.left),
                _address(drawn) + first, _address(logprobs) + first,
                _address(likeliest) + first * alternatives, _address(values) + first * alternatives,
            )  # fmt: skip
        calls = (c_char * len(handed)).from_buffer(handed)
        is_wide = len(answers) > 1
        threads, before, began = self._team.choose(is_wide), self.work, time.perf_counter()
        self._check(self._kernel.native_extend(self._model, calls, len(answers), alternatives, seconds, threads))
        taken, read = time.perf_counter() - began, self.work.read_for_good - before.read_for_good
        made = [struct.unpack_from("q", handed, place * REQUEST.size + MADE)[0] for place in range(len(answers))]
        if (sum(made) >= FEWEST_TIMED or taken >= LONG_ENOUGH) and read <= LARGEST_SHARE * sum(made):
            self._team.note(is_wide, threads, taken / sum(made))
        for place, (answer, made_here) in enumerate(zip(answers, made, strict=True)):
            here = slice(place * most, place * most + made_here)
            told: Iterable[tuple[tuple[int, float], ...]] = itertools.repeat(())
            if alternatives:
                tops = [slice(at * alternatives, (at + 1) * alternatives) for at in range(here.start, here.stop)]
                told = [tuple(zip(likeliest[top], values[top], strict=True)) for top in tops]
            answer.drawn += map(Drawn, drawn[here], logprobs[here], told)
            answer.ids += drawn[here]

    def odds(self, request: Request) -> list[Odds]:
        """As `Engine.odds`."""
        self._arrange([request])
        size = self.config.vocab_size
        logprobs, shares = (c_float * size)(), (c_double * size)()
        answer = _Answer(request, 1)
        handed = answer.pack(self._sequences[request.slot], self.context, 1, 0, 0, 0, 0)
        threads = self._team.quicker(is_wide=False)
        self._check(self._kernel.native_odds(self._model, handed, logprobs, shares, threads))
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
        sequence = self._spare_sequence()
        for start in range(0, len(ids) - 1, self.context):
            window = _array(ids[start : start + self.context + 1])
            length = len(window)
            logprobs, entropies = (c_float * length)(), (c_float * length)()
            handed = (_address(window), length, logprobs, entropies, self._team.quicker(is_wide=True))
            self._check(self._kernel.native_score(self._model, sequence, *handed))
            yield logprobs[: length - 1], entropies[: length - 1]
        self._spare.append(sequence)

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

    def _arrange(self, requests: Sequence[Request]) -> None:
        """Gives each request its sequence: the one that its slot had, or any other."""
        slots = {request.slot for request in requests}
        self._spare += [self._sequences.pop(slot) for slot in list(self._sequences) if slot not in slots]
        for slot in slots - set(self._sequences):
            self._sequences[slot] = self._spare_sequence()

    def _check(self, result: int) -> None:
        if result == UNKNOWN_TOKEN:
            raise ModelError(f"a token is unknown: the model knows {self.config.vocab_size} tokens", DAMAGED)
        if result < 0:
            raise GenerationError(
                "the model gave NaN or infinite logits", "its weights are damaged: train it again at a lower rate"
            )

    def _spare_sequence(self) -> int:
        if self._spare:
            return self._spare.pop(0)
        sequence: int | None = self._kernel.native_new_sequence(self._model)
        if not sequence:
            raise GenerationError("there is no memory for another sequence", "ask for fewer at once")
        return sequence


class _Answer:
    """What comes of a request, over one or more calls of the kernel."""

    def __init__(self, request: Request, n: int) -> None:
        self.request, self.drawn = request, list[Drawn]()
        self.ids, self.ends = _array(request.ids), _array(request.end_ids)
        self.most = min(n, request.left)

    @property
    def left(self) -> int:
        return self.most - len(self.drawn)

    @property
    def is_done(self) -> bool:
        return self.left <= 0 or (bool(self.drawn) and self.drawn[-1].id in self.request.end_ids)

    def pack(self, sequence: int, context: int, most: int, *rooms: int) -> bytes:
        """What the kernel is handed.

        Args:
            sequence: its own of the kernel.
            context: of the model.
            most: tokens to make.
            rooms: where what is made goes.
        """
        settings = self.request.settings
        return REQUEST.pack(
            sequence, _address(self.ids), _address(self.ends), *rooms,
            len(self.ids), window_start(len(self.ids), context), len(self.ends), most, 0,
            settings.temperature, settings.top_p, settings.min_p, settings.repetition_penalty,
            settings.top_k or 0, self.request.seed & MASK, self.request.place, self.request.made + len(self.drawn),
        )  # fmt: skip


def _declare(kernel: ctypes.CDLL, level: str) -> SimpleNamespace:
    """A level's functions; ctypes is told what they take and give. Structures are handed over as bytes."""
    functions = {
        "native_new_model": (c_void_p, [c_char_p, c_char_p, c_int64, c_int]),
        "native_free_model": (None, [c_void_p]),
        "native_new_sequence": (c_void_p, [c_void_p]),
        "native_free_sequence": (None, [c_void_p, c_void_p]),
        "native_extend": (c_int, [c_void_p, c_void_p, c_int, c_int, c_double, c_int]),
        "native_odds": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, c_int]),
        "native_draft": (None, [c_void_p, c_int]),
        "native_tell": (None, [c_void_p, c_void_p]),
        "native_score": (c_int, [c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int]),
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


def _array(ids: Iterable[int]) -> "array[int]":
    """As the kernel takes them. What is no 32-bit number is a token that no model knows, as −1 is."""
    try:
        return array("i", ids)
    except OverflowError:
        return array("i", [-1])


def _address(numbers: "array[int] | array[float]") -> int:
    return numbers.buffer_info()[0]
