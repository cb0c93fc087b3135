"""Choose the engine of a model and load it."""

import ctypes
import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from tinychat.config.settings import Settings
from tinychat.errors import UsageError, check_torch
from tinychat.generate.engine import Engine
from tinychat.store.models import ModelInfo

THREAD_ENVIRONMENT = {"GOMP_SPINCOUNT": "3000"}
"""Environment variables that torch reads when it is imported: how long its threads spin when they wait for each other.
With the default of 300,000, another busy process makes a step take ten times as long."""

MAX_SINGLE_THREAD_PARAMETERS = 4_000_000
"""Number of parameters up to which one thread decodes faster than several, which wait for each other at each layer."""
MAX_NATIVE_PARAMETERS = 20_000_000
"""Number of parameters up to which the native engine takes about a millisecond per token; a GPU may take less, but
torch takes a second or more to load."""
MAX_SHARING_THREADS = 16
"""Maximum number of threads that is asked for where there are fewer processors."""
THREAD_NAME = "loading"
QUIET_SECONDS, POLL_INTERVAL = 0.15, 0.05
"""Seconds of waiting that are not announced, and between two checks whether to stop waiting."""
DEFAULT_MAX_THREADS = 4
"""Maximum number of threads of the native engine: decoding is limited by memory bandwidth, which a few saturate."""


def open_engine(info: ModelInfo, settings: Settings) -> Engine:
    """Load a model into an engine.

    By default, this is the native engine if the model runs on a CPU and the engine supports it, else the torch engine;
    models run on a GPU where that is faster.

    Raises:
        ModelError: If the model is damaged.
        UsageError: If the device does not exist, or does not go with the engine or the precision.
        GenerationError: If the settings require the native engine or int8, and it is not available.
    """
    needs_native = settings.engine == "native" or settings.precision == "int8"
    if needs_native and settings.device in ("cuda", "mps"):
        what = "the native engine" if settings.engine == "native" else "a model in int8"
        raise UsageError(f"{what} runs on the processor, not on {settings.device}", "leave out one of them")
    if settings.precision == "int8" and settings.engine == "torch":
        raise UsageError("the torch engine knows no int8", "leave out --engine, or take --precision bf16")
    if needs_native or (settings.engine == "auto" and device_of(settings, info) == "cpu"):
        from tinychat.generate.native.build import Unavailable, find_compiler, is_compiled, start_compiling

        try:
            if needs_native or is_compiled():
                return _open_native(info, settings)
            find_compiler()
            start_compiling()  # for the next start: torch is ready sooner
            why = "while the native one is compiled, for the next time"
        except Unavailable as error:
            if needs_native:
                raise
            why = f"as {error.problem}"
    elif settings.engine == "auto":
        why = f"as the model runs on {device_of(settings, info)}"
    else:
        why = "as it was asked for"
    return _open_reference(info, settings, why)


def device_of(settings: Settings, info: ModelInfo | None = None) -> str:
    """Return the device that a model runs on or will run on, as far as is known without importing torch."""
    if settings.device != "auto":
        return settings.device
    if settings.engine == "native" or settings.precision == "int8":
        return "cpu"
    if settings.engine == "auto" and info and info.parameters <= MAX_NATIVE_PARAMETERS:
        return "cpu"
    if shutil.which("nvidia-smi"):
        return "cuda"
    return "mps" if sys.platform == "darwin" else "cpu"


def native_threads(info: ModelInfo, settings: Settings) -> tuple[int, int]:
    """Return the number of threads with which the native engine begins, and its maximum number."""
    processors = os.cpu_count() or 1
    if settings.threads:  # threads that share a processor wait for each other, hundreds of them for minutes
        threads = min(settings.threads, max(MAX_SHARING_THREADS, processors))
        return threads, threads
    max_threads = min(DEFAULT_MAX_THREADS, processors)
    return (1 if info.parameters <= MAX_SINGLE_THREAD_PARAMETERS else max_threads), max_threads


def _open_native(info: ModelInfo, settings: Settings) -> Engine:
    from tinychat.generate.native.engine import NativeEngine, choose_precision

    settings = replace(settings, device="cpu")  # so that the reference engine computes in f32 too, unlike on a GPU
    threads, most_threads = native_threads(info, settings)
    precision = choose_precision(info, threads) if settings.precision == "auto" else settings.precision
    return NativeEngine(
        info, threads, most_threads=most_threads, precision=precision,
        load_reference=lambda info: EngineLoader(lambda: _open_reference(info, settings, "to look inside"), "torch"),
    )  # fmt: skip


def _open_reference(info: ModelInfo, settings: Settings, why: str) -> Engine:
    """Load a model into the torch engine. Importing torch takes a second or two."""
    from tinychat.model.shapes import checked_config

    checked_config(info)  # refuses a damaged model before that
    check_torch()
    _load_torch_library()

    import torch

    from tinychat.generate.torch_engine import DEFAULT_THREADS, TorchEngine
    from tinychat.model.graph_capture import capture_graph
    from tinychat.model.loading import choose_device, load_model

    device = choose_device(settings.device)
    is_small = device == "cpu" and info.parameters <= MAX_SINGLE_THREAD_PARAMETERS
    threads = settings.threads or (1 if is_small else DEFAULT_THREADS)
    model = load_model(info, device)
    if settings.precision == "bf16" or (settings.precision == "auto" and device == "cuda"):
        model.round_layers(torch.bfloat16)
    return TorchEngine(model, why, capture_graph if device == "cuda" else None, threads)


def _load_torch_library() -> None:
    """Load the largest library of torch, as its import would, but without Python's lock (GIL).

    The import would hold it for a third of a second or more, in which no thread prints, reads keys or handles Ctrl-C.
    With CUDA, where the import prepares other libraries first, and outside of Linux, it loads this one too.
    """
    specification = importlib.util.find_spec("torch")
    if "torch" in sys.modules or sys.platform != "linux" or specification is None or specification.origin is None:
        return
    folder = Path(specification.origin).parent / "lib"
    if not (folder / "libtorch_cuda.so").exists():
        dlopen = ctypes.CDLL(None).dlopen  # ctypes releases the lock for a function, but not in `CDLL` itself
        dlopen.restype = ctypes.c_void_p
        dlopen(os.fsencode(folder / "libtorch_cpu.so"), os.RTLD_NOW | os.RTLD_LOCAL)


# --- loading in a thread, and waiting for it ---


Announcement = Callable[[str], AbstractContextManager[Callable[[], object]]]
"""Returns, for the name of what is loading, a context of the wait, and a function to call every `POLL_INTERVAL`."""

_announce: ContextVar[Announcement] = ContextVar("announce", default=lambda name: nullcontext(lambda: None))


@contextmanager
def announced_waits(announce: Announcement) -> Iterator[None]:
    """Announce what is loading while this thread has to wait for it inside a `with` block."""
    token = _announce.set(announce)
    try:
        yield
    finally:
        _announce.reset(token)


def is_loading() -> bool:
    """Return whether an engine is being loaded, and torch may be being imported, in another thread."""
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


def load_engine(info: ModelInfo, settings: Settings) -> "EngineLoader":
    """Begin to load a model into an engine, which `open_engine` chooses."""
    return EngineLoader(lambda: open_engine(info, settings), info.name)


class EngineLoader:
    """Loads an engine in a thread, which goes on if waiting for it is interrupted; `name` says what is loading."""

    def __init__(self, load: Callable[[], Engine], name: str) -> None:
        self._name, self._load = name, load
        self._loaded: Engine | BaseException
        # An event, because an exception in `Thread.join` lets Python 3.11 take the thread to have ended.
        self._has_ended = threading.Event()
        threading.Thread(target=self._run, name=THREAD_NAME, daemon=True).start()

    def _run(self) -> None:
        try:
            self._loaded = self._load()
        except BaseException as error:  # raised again by `engine`
            self._loaded = error
        self._has_ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether loading has ended, also with an error."""
        return self._has_ended.wait(seconds)

    def wait_until(self, should_stop: Callable[[], bool]) -> bool:
        """Wait without limit, which may be announced; return whether loading ended before `should_stop` returned true.

        SIGINT may raise KeyboardInterrupt here, though not in the import of torch.
        """
        if self.wait(QUIET_SECONDS):
            return True
        with _announce.get()(self._name) as update:
            while not self.wait(POLL_INTERVAL):
                if should_stop():
                    return False
                update()
        return True

    @property
    def engine(self) -> Engine:
        """The engine; waits until it has loaded.

        Raises:
            TinychatError: If loading failed.
        """
        self.wait_until(lambda: False)
        if isinstance(self._loaded, BaseException):
            raise self._loaded
        return self._loaded
