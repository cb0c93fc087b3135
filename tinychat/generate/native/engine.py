"""The native engine: models of every architecture in C, on a CPU, without torch."""

import ctypes
import itertools
import math
import os
import struct
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import c_char, c_char_p, c_double, c_float, c_int, c_int64, c_void_p
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

from tinychat.config.settings import CONTROLS, SAMPLING, SETTINGS
from tinychat.errors import GenerationError, ModelError
from tinychat.generate.computation import Computation
from tinychat.generate.engine import (
    Engine,
    Head,
    LensRow,
    Request,
    SampledToken,
    TokenProbability,
    nonfinite_error,
    score_windows,
    window_start,
)
from tinychat.generate.native.build import Unavailable, levels_here, load_library
from tinychat.model.config import ModelConfig
from tinychat.model.kernel_layout import (
    DTYPES,
    QUANTIZED,
    encoder_tensor_names,
    pack_config,
    pack_encoder_config,
    tensor_names,
)
from tinychat.model.precision import MIN_PARAMETERS, is_int8_accurate, read_losses, write_losses
from tinychat.model.shapes import check_shapes
from tinychat.store.models import (
    MAX_VALIDATION_IDS,
    VALIDATION_IDS,
    ModelInfo,
    map_weights,
    read_training,
    refuse_infinite,
)
from tinychat.store.weights import DAMAGED, EMBEDDING, MappedTensor
from tinychat.textutil import count

DRAFTS: Mapping[str, int] = {"never": 0, "auto": 1, "always": 2}
LIMITS = {
    "context_length": 1 << 16, "vocab_size": 1 << 18, "d_model": 1 << 14, "attention_width": 1 << 16,
    "feed_forward_width": 1 << 20,
    "n_layer": 1 << 12, "previous_token_embeddings": 1 << 12,
}  # fmt: skip
"""Largest sizes that the kernel supports: its threads' stacks hold a few vectors of each."""

SUPPORTED = ("temperature", "top_p", "min_p", "repetition_penalty", "top_k")
"""Sampling settings that the kernel supports, in the order of its `Sampling`; None is 0 there."""
UNSUPPORTED = tuple(name for name in SAMPLING if name not in SUPPORTED and name not in CONTROLS)
"""The other sampling settings, but for controls: where one of them is in force, the reference engine generates."""

# The memory layout of the kernel's structures of these names.
TENSOR = "Pqq"
REQUEST = struct.Struct("8P5q" + "".join({float: "d", int: "q"}[SETTINGS[name].kind] for name in SUPPORTED) + "3Q")
NUM_GENERATED = 12
"""Index in a request of the number of tokens that the kernel has generated."""
UNKNOWN_TOKEN, NO_MEMORY = -2, -3
MIN_TOKENS_TIMED, MIN_SECONDS_TIMED, MAX_READ_RATIO = 8, 0.01, 2
"""A call measures the speed of its threads if it generated so many tokens or took so many seconds, and read at most
MAX_READ_RATIO tokens per token generated. Other calls measure how fast threads wake up, or how fast a prompt is
read."""


class EngineLoading(Protocol):
    """An engine that is being loaded."""

    @property
    def engine(self) -> Engine:
        """The engine; waits until it has loaded."""


class Work(NamedTuple):
    """Counts of the tokens that an engine has processed."""

    read: int  # tokens that went through the layers, drafts included
    drafted: int  # tokens that were guessed and checked
    accepted: int  # drafts that the model confirmed

    @property
    def read_without_rejected(self) -> int:
        """Tokens read, without drafts that the model rejected."""
        return self.read - self.drafted + self.accepted


class NativeEngine:
    """Implements `Engine` in C.

    Args:
        info: of the model.
        threads: number to begin with.
        most_threads: number of threads at most; default: `threads`. If there are more, the engine uses one or all of
            them, whichever is faster.
        precision: of the matrices: f32 (bf16 if the file has bf16, which loses nothing), bf16, or int8. In int8, each
            64 columns of a row have a scale of their own, and so have their factors (Dettmers et al. 2022); the head of
            a vocabulary up to `SMALL_VOCABULARY` is in f32.
        level: instruction set to use, one of `build.levels_here()`; None: the best.
        drafts: whether to guess tokens and check several at once (speculative decoding, Leviathan et al. 2023):
            `never`, `always`, or `auto`, if that is measured to be faster. The tokens generated are the same.
        load_reference: begins to load the engine for `heads`, `attention`, `lens` and `trace`; None: they are not
            supported.

    Raises:
        Unavailable: there is no compiler, or the model is too large, or has an encoder and parallel sublayers.
        ModelError: the weights are missing, damaged, or of another architecture.
    """

    batch_size = 8  # the keys and values of more would not fit into the nearest cache
    can_steer = False

    def __init__(
        self,
        info: ModelInfo,
        threads: int = 1,
        *,
        most_threads: int | None = None,
        precision: str = "f32",
        level: str | None = None,
        drafts: str = "auto",
        load_reference: Callable[[ModelInfo], EngineLoading] | None = None,
    ) -> None:
        self.config = ModelConfig.from_dict(info.architecture)
        if self.config.encoder_decoder and self.config.parallel:
            raise Unavailable("the native engine knows no parallel sublayers beside an encoder")
        for name, most in LIMITS.items():
            if getattr(self.config, name) > most:
                raise Unavailable(f"the native engine takes models of a {name} up to {most}")
        self.context_length = self.config.context_length
        self._precision, self._drafts = precision, drafts
        self._tuner = ThreadTuner(threads, most_threads or threads)
        self._process = os.getpid()
        """Id of the process that the threads of the model are in."""
        self._level = level or levels_here()[0]
        self._kernel = _declare(load_library(), self._level)
        self._model: int | None = None
        self._sequences: dict[int, int] = {}  # by slot, that of the latest call last
        self._scoring: int | None = None
        self._load_reference = load_reference
        self._reference: EngineLoading | None = None
        self.reload(info)

    def reload(self, info: ModelInfo) -> None:
        """Implement `Engine.reload`."""
        tensors = map_weights(info)
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        check_shapes(self.config, shapes, f"the weights in {info.folder}")
        refuse_infinite(tensors, info.weights_file)
        tensors |= {name: tensor.joined() for name, tensor in tensors.items() if tensor.largest}
        packed = [_pack_tensor(tensors.get(name)) for name in tensor_names(self.config)]
        is_half = EMBEDDING in tensors and tensors[EMBEDDING].dtype == "BF16"
        is_half = is_half and not any(one.largest for one in tensors.values())
        self.precision = "bf16" if self._precision == "f32" and is_half else self._precision
        config = pack_config(self.config, self.precision)
        model = self._kernel.native_new_model(config, b"".join(packed), len(packed), self._tuner.most)
        if not model or not self._add_encoder(model, tensors):
            self._kernel.native_free_model(model)
            if not self.config.ngram_order:  # all shapes were checked, and there are no counts to be wrong
                raise MemoryError
            raise ModelError(f"the weights in {info.folder} do not fit its architecture", DAMAGED)
        self.close()
        self._model, self._info, self._reference = model, info, None
        self._process = os.getpid()
        self.set_drafting(self._drafts)
        threads = "up to " * (self._tuner.most > self._tuner.default) + count(self._tuner.most, "thread")
        self.about = f"native engine, {self.precision}, {self._level}, {threads}"

    def _add_encoder(self, model: int, tensors: Mapping[str, MappedTensor]) -> bool:
        """Give a model of the kernel its encoder, if it has one; return whether that succeeded."""
        if not self.config.encoder_decoder:
            return True
        packed = [_pack_tensor(tensors.get(name)) for name in encoder_tensor_names(self.config)]
        config = pack_encoder_config(self.config, self.precision)
        return bool(self._kernel.native_add_encoder(model, config, b"".join(packed), len(packed)))

    def set_drafting(self, mode: str) -> None:
        """Draft `never`, `auto` or `always` from now on."""
        self._drafts = mode
        self._kernel.native_set_drafting(self._model, DRAFTS[mode])

    def close(self) -> None:
        """Free the model and all sequences."""
        for sequence in (*self._sequences.values(), self._scoring):
            self._kernel.native_free_sequence(self._model, sequence)
        self._sequences, self._scoring = {}, None
        if self._process == os.getpid():  # it waits for the threads, which a forked process does not have
            self._kernel.native_free_model(self._model)
        self._model = None

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    @property
    def _threads(self) -> "ThreadTuner":
        """What chooses the number of threads: of those that a model was loaded with, a forked process has one."""
        if self._process != os.getpid():
            self._tuner = ThreadTuner(1, 1)
        return self._tuner

    @property
    def work(self) -> Work:
        """Counts since the model was loaded."""
        counts = (c_int64 * 3)()
        self._kernel.native_count_work(self._model, counts)
        return Work(*counts)

    def check(self, request: Request) -> None:
        """Implement `Engine.check`; an error of loading the reference engine concerns this request alone, too."""
        if not self._supports(request):
            self._inside.check(request)

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        """Implement `Engine.extend`. A prefix that sequences share is read once.

        The reference engine extends the sequences that the kernel does not support, and no others: what a sequence gets
        must not depend on those beside it.
        """
        supported = [request for request in requests if self._supports(request)]
        if len(supported) == len(requests):
            return self._extend(requests, n, top_logprobs, seconds)
        others = [request for request in requests if not self._supports(request)]
        end = time.perf_counter() + seconds
        own = iter(self._extend(supported, n, top_logprobs, seconds / 2) if supported else ())
        inside = iter(self._inside.extend(others, n, top_logprobs, max(0.0, end - time.perf_counter())))
        return [next(own if self._supports(request) else inside) for request in requests]

    def _extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int, seconds: float
    ) -> list[list[SampledToken]]:
        """Extend sequences that the kernel supports."""
        end = time.perf_counter() + seconds
        self._arrange(requests)
        top_logprobs = min(top_logprobs, self.config.vocab_size)
        answers = [_Answer(request, n) for request in requests]
        while waiting := [answer for answer in answers if not answer.is_done]:  # one call per window of the context
            self._extend_in_window(waiting, top_logprobs, max(0.0, end - time.perf_counter()))
            if time.perf_counter() >= end:
                break
        return [answer.tokens for answer in answers]

    def _extend_in_window(self, answers: "Sequence[_Answer]", top_logprobs: int, seconds: float) -> None:
        """Extend answers, at most to the ends of their windows."""
        most = min(self.context_length, max(answer.left for answer in answers))
        size = len(answers) * most
        ids, top_ids = array("i", bytes(4 * size)), array("i", bytes(4 * size * top_logprobs))
        logprobs, top_values = array("f", bytes(4 * size)), array("f", bytes(4 * size * top_logprobs))
        packed = bytearray()
        for index, answer in enumerate(answers):
            first = 4 * index * most
            packed += answer.pack(
                self._sequences[answer.request.slot], self.context_length, min(most, answer.left),
                _address(ids) + first, _address(logprobs) + first,
                _address(top_ids) + first * top_logprobs, _address(top_values) + first * top_logprobs,
            )  # fmt: skip
        requests = (c_char * len(packed)).from_buffer(packed)
        is_wide = len(answers) > 1
        threads, before, began = self._threads.choose(is_wide), self.work, time.perf_counter()
        self._check(self._kernel.native_extend(self._model, requests, len(answers), top_logprobs, seconds, threads))
        taken, read = time.perf_counter() - began, self.work.read_without_rejected - before.read_without_rejected
        num_generated = [one[NUM_GENERATED] for one in REQUEST.iter_unpack(packed)]
        total = sum(num_generated)
        if (total >= MIN_TOKENS_TIMED or taken >= MIN_SECONDS_TIMED) and read <= MAX_READ_RATIO * total:
            self._tuner.record(is_wide, threads, taken / total)
        for index, (answer, count_here) in enumerate(zip(answers, num_generated, strict=True)):
            here = slice(index * most, index * most + count_here)
            tops: Iterable[tuple[tuple[int, float], ...]] = itertools.repeat(())
            if top_logprobs:
                slices = [slice(at * top_logprobs, (at + 1) * top_logprobs) for at in range(here.start, here.stop)]
                tops = [tuple(zip(top_ids[top], top_values[top], strict=True)) for top in slices]
            answer.tokens += map(SampledToken, ids[here], logprobs[here], tops)
            answer.ids += ids[here]

    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Implement `Engine.probabilities`."""
        if not self._supports(request):
            return self._inside.probabilities(request)
        self._arrange([request])
        size = self.config.vocab_size
        logprobs, probabilities = (c_float * size)(), (c_double * size)()
        answer = _Answer(request, 1)
        packed = answer.pack(self._sequences[request.slot], self.context_length, 1, 0, 0, 0, 0)
        threads = self._threads.faster(is_wide=False)
        self._check(self._kernel.native_probabilities(self._model, packed, logprobs, probabilities, threads))
        tokens = map(TokenProbability, range(size), logprobs, probabilities)
        return sorted(tokens, key=lambda one: -one.logprob)

    def score(self, ids: Sequence[int]) -> list[float]:
        """Implement `Engine.score`."""
        if self.config.encoder_decoder:
            return self._inside.score(ids)
        return [logprob for logprobs, _ in self._windows(ids) for logprob in logprobs]

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """Implement `Engine.entropies`."""
        if self.config.encoder_decoder:
            return self._inside.entropies(ids)
        return [entropy for _, entropies in self._windows(ids) for entropy in entropies]

    def _windows(self, ids: Sequence[int]) -> Iterator[tuple[list[float], list[float]]]:
        """Yield the log-probabilities of each window's tokens but the first, and the entropies of their predictions."""
        sequence = self._scoring = self._scoring or self._new_sequence()
        for ids_here, scored in score_windows(ids, self.context_length):
            window = _array(ids_here)
            length = len(window)
            logprobs, entropies = (c_float * length)(), (c_float * length)()
            arguments = (_address(window), length, logprobs, entropies, self._threads.faster(is_wide=True))
            self._check(self._kernel.native_score(self._model, sequence, *arguments))
            yield logprobs[scored : length - 1], entropies[scored : length - 1]

    @property
    def _inside(self) -> Engine:
        """The engine that looks inside the model, loaded when it is first needed."""
        if self._reference is None:
            if self._load_reference is None:
                raise GenerationError("the native engine does not look inside", "--engine torch does")
            self._reference = self._load_reference(self._info)
        return self._reference.engine

    def heads(self, ids: Sequence[int], **options: Any) -> list[list[Head]]:
        """Implement `Engine.heads`."""
        return self._inside.heads(ids, **options)

    def attention(self, ids: Sequence[int], layer: int, head: int, **options: Any) -> list[list[float]]:
        """Implement `Engine.attention`."""
        return self._inside.attention(ids, layer, head, **options)

    def lens(self, ids: Sequence[int], token: int, **options: Any) -> list[LensRow]:
        """Implement `Engine.lens`."""
        return self._inside.lens(ids, token, **options)

    def trace(self, request: Request, *labels: Callable[[int], str], **options: Any) -> Computation:
        """Implement `Engine.trace`."""
        if self._precision != "f32" and self._supports(request):
            options["precision"] = self._precision
        return self._inside.trace(request, *labels, **options)

    def _supports(self, request: Request) -> bool:
        """Return whether the kernel supports each sampling setting that is in force; its encoder needs a source."""
        settings = request.settings
        is_known = all(getattr(settings, name) == SETTINGS[name].neutral for name in UNSUPPORTED)
        return is_known and (bool(request.source) or not self.config.encoder_decoder)

    def _arrange(self, requests: Sequence[Request]) -> None:
        """Give each request the kernel's sequence of its slot, or else an unused one.

        Sequences of other slots are kept, up to `batch_size` in all: they may be asked for again in the next call.
        """
        slots = dict.fromkeys(request.slot for request in requests)
        others = [slot for slot in self._sequences if slot not in slots]  # that of the earliest call first
        missing = sum(slot not in self._sequences for slot in slots)
        excess = len(self._sequences) + missing - max(self.batch_size, len(slots))
        unused = [self._sequences.pop(slot) for slot in others[: max(0, excess)]]
        for slot in slots:
            known = self._sequences.pop(slot, None)
            self._sequences[slot] = known or (unused.pop() if unused else self._new_sequence())
        for sequence in unused:
            self._kernel.native_free_sequence(self._model, sequence)
        for request in requests if self.config.encoder_decoder else ():
            source = _array(request.source or ())
            sequence = self._sequences[request.slot]
            self._check(self._kernel.native_set_source(self._model, sequence, _address(source), len(source)))

    def _check(self, result: int) -> None:
        if result == UNKNOWN_TOKEN:
            raise ModelError(f"a token is unknown: the model knows {self.config.vocab_size} tokens", DAMAGED)
        if result == NO_MEMORY:
            raise GenerationError("there is no memory for what the encoder reads", "ask for fewer at once")
        if result < 0:
            raise nonfinite_error()

    def _new_sequence(self) -> int:
        sequence: int | None = self._kernel.native_new_sequence(self._model)
        if not sequence:
            raise GenerationError("there is no memory for another sequence", "ask for fewer at once")
        return sequence


class _Answer:
    """The tokens generated for a request, over one or more calls of the kernel."""

    def __init__(self, request: Request, n: int) -> None:
        self.request, self.tokens = request, list[SampledToken]()
        self.ids, self.ends = _array(request.ids), _array(request.end_ids)
        self.most = min(n, request.left) if request.biases is None else min(n, request.left, 1)

    @property
    def left(self) -> int:
        return self.most - len(self.tokens)

    @property
    def is_done(self) -> bool:
        return self.left <= 0 or (bool(self.tokens) and self.tokens[-1].id in self.request.end_ids)

    def pack(self, sequence: int, context_length: int, most: int, *rooms: int) -> bytes:
        """Return the request as the kernel's structure, for up to `most` tokens of the sequence at that address.

        `rooms` are the addresses of the outputs: ids, log-probabilities, likeliest ids and their log-probabilities.
        """
        settings = self.request.settings
        biases = self.request.biases
        return REQUEST.pack(
            sequence, _address(self.ids), _address(self.ends), 0 if biases is None else _address(biases), *rooms,
            len(self.ids), window_start(len(self.ids), context_length), len(self.ends), most, 0,
            *(getattr(settings, name) or 0 for name in SUPPORTED), self.request.seed & (1 << 64) - 1,
            self.request.prompt_index, self.request.num_generated + len(self.tokens),
        )  # fmt: skip


def _declare(kernel: ctypes.CDLL, level: str) -> SimpleNamespace:
    """Return a level's functions with their types declared. Structures are passed as bytes."""
    functions = {
        "native_new_model": (c_void_p, [c_char_p, c_char_p, c_int64, c_int]),
        "native_free_model": (None, [c_void_p]),
        "native_new_sequence": (c_void_p, [c_void_p]),
        "native_free_sequence": (None, [c_void_p, c_void_p]),
        "native_add_encoder": (c_int, [c_void_p, c_char_p, c_char_p, c_int64]),
        "native_set_source": (c_int, [c_void_p, c_void_p, c_void_p, c_int]),
        "native_extend": (c_int, [c_void_p, c_void_p, c_int, c_int, c_double, c_int]),
        "native_probabilities": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, c_int]),
        "native_set_drafting": (None, [c_void_p, c_int]),
        "native_count_work": (None, [c_void_p, c_void_p]),
        "native_score": (c_int, [c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int]),
    }
    declared = SimpleNamespace()
    for name, (result, arguments) in functions.items():
        function = getattr(kernel, f"{name}_{level}")
        function.restype, function.argtypes = result, arguments
        setattr(declared, name, function)
    return declared


def _pack_tensor(tensor: MappedTensor | None) -> bytes:
    if tensor is None:
        return struct.pack(TENSOR, 0, 0, 0)
    return struct.pack(TENSOR, tensor.address, QUANTIZED if tensor.largest else DTYPES[tensor.dtype], tensor.numel)


def _array(ids: Iterable[int]) -> "array[int]":
    """Return ids as 32-bit integers; an id that is none becomes −1, which no model knows."""
    try:
        return array("i", ids)
    except OverflowError:
        return array("i", [-1])


def _address(numbers: "array[int] | array[float]") -> int:
    return numbers.buffer_info()[0]


# --- precision --------------------------------------------------------------------------------------------------------


def choose_precision(info: ModelInfo, threads: int) -> str:
    """Return `int8` if it increases the perplexity by less than half a per cent, else `f32`.

    The losses are measured on the model's validation text, with `threads`, when a model is first opened, and cached
    until its weights change. Without a measurement, the precision is `f32` for small models and on processors without
    integer dot products, where int8 gains nothing; for models in training, whose weights change all the time; and for
    translators and models without a validation text.

    Raises:
        Unavailable: If there is no compiler, or the model is too large.
        ModelError: If the weights are missing, damaged, or of another architecture.
    """
    if info.parameters <= MIN_PARAMETERS or info.snapshot or info.mode == "translation" or levels_here()[0] == "plain":
        return "f32"
    if (losses := read_losses(info)) is not None:
        return _choose(losses)
    if not (documents := read_validation_documents(info)):
        return "f32"
    losses = {}
    for precision in ("f32", "int8"):
        engine = NativeEngine(info, threads, precision=precision)
        logprobs = [logprob for ids in documents for logprob in engine.score(ids)]
        losses[precision] = -sum(logprobs) / len(logprobs)
    write_losses(info, losses)
    return _choose(losses)


def read_validation_documents(info: ModelInfo) -> list[list[int]]:
    """Return the ids of the validation documents that a model brings and that have a token to predict, if any.

    Those beyond the first `MAX_VALIDATION_IDS` in all are left out: no more are written, but the file may be anybody's.

    Each is scored on its own, as in training: a model that has only met whole documents is at a loss in a text of
    many, and its losses there say nothing of a precision.
    """
    documents = read_training(info.folder, info.files).get(VALIDATION_IDS)
    if not isinstance(documents, list) or not all(isinstance(ids, list) for ids in documents):
        return []
    if not all(isinstance(id, int) for ids in documents for id in ids):
        return []
    begins = itertools.accumulate(map(len, documents), initial=0)
    kept = (ids[: max(0, MAX_VALIDATION_IDS - begin)] for ids, begin in zip(documents, begins, strict=False))
    return [ids for ids in kept if len(ids) > 1]


def _choose(losses: dict[str, float]) -> str:
    return "int8" if is_int8_accurate(losses) else "f32"


# --- threads ----------------------------------------------------------------------------------------------------------

CALLS_TO_KNOW = 3
"""Calls measured with each number before they are compared: new threads often share a processor at first."""
TRIAL_INTERVAL, MAX_TRIAL_INTERVAL = 32, 1024
"""Calls after which the slower number is tried again; doubled each time that it is still slower. Other programs come
and go, and a call whose thread waits for a processor may take as long as many others."""
MAX_TRIAL_CALLS = 4
"""Calls that a trial lasts if none of them is measured."""
SLOWER_WEIGHT = 0.3
"""Weight of a call that took longer than those before in their average. A faster call replaces it: nothing can make a
call too fast."""


class ThreadTuner:
    """Chooses how many threads take part in a call of the kernel, one or all, by measuring which number is faster.

    It chooses separately for one sequence, at first `default` threads, and for many, which leave more to share.
    """

    def __init__(self, default: int, most: int) -> None:
        self.default, self.most = default, most
        self._seconds, self._measured = dict[tuple[bool, int], float](), Counter[tuple[bool, int]]()
        self._faster, self._interval, self._calls = dict[bool, int](), dict[bool, int](), Counter[bool]()

    def faster(self, is_wide: bool) -> int:
        """Return the faster number of threads as far as is known, without a trial, for one sequence or (wide) many."""
        default = self.most if is_wide else self.default
        other = self.most + 1 - default
        if all(self._is_known(is_wide, one) for one in (default, other)):
            return min(default, other, key=lambda one: self._seconds[is_wide, one])
        return default

    def choose(self, is_wide: bool) -> int:
        """Return the number of threads for the next call: now and then the slower one, which may be faster by now."""
        faster = self.faster(is_wide)
        if faster != self._faster.get(is_wide):
            self._interval[is_wide] = TRIAL_INTERVAL if is_wide in self._faster else 1
            self._faster[is_wide], self._calls[is_wide] = faster, 0
        if self.most == 1 or not self._is_known(is_wide, faster):
            return faster
        self._calls[is_wide] += 1
        if self._calls[is_wide] >= self._interval[is_wide] + MAX_TRIAL_CALLS:
            self._calls[is_wide], self._interval[is_wide] = 1, max(TRIAL_INTERVAL, self._interval[is_wide])
        return self.most + 1 - faster if self._calls[is_wide] >= self._interval[is_wide] else faster

    def record(self, is_wide: bool, threads: int, seconds: float) -> None:
        """Record the seconds per token of a call with that number of threads."""
        self._measured[is_wide, threads] += 1
        before = self._seconds.get((is_wide, threads), seconds)
        self._seconds[is_wide, threads] = min(seconds, before + SLOWER_WEIGHT * (seconds - before))
        if threads == self._faster.get(is_wide):
            return
        interval = self._interval.get(is_wide, TRIAL_INTERVAL)
        if self._is_known(is_wide, threads):
            self._calls[is_wide] = 0
            self._interval[is_wide] = min(max(2 * interval, TRIAL_INTERVAL), MAX_TRIAL_INTERVAL)
        else:
            self._calls[is_wide] = interval - 1  # the trial continues

    def _is_known(self, is_wide: bool, threads: int) -> bool:
        return self._measured[is_wide, threads] >= CALLS_TO_KNOW
