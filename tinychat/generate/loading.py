"""Choose the engine of a model and load it."""

import os
import shutil
import sys
import threading
from dataclasses import replace

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
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
    if settings.engine == "auto" and info and info.mode != "translation" and info.parameters <= MAX_NATIVE_PARAMETERS:
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
        open_reference=lambda info: _open_reference(info, settings, "to look inside"),
    )  # fmt: skip


def _open_reference(info: ModelInfo, settings: Settings, why: str) -> Engine:
    """Load a model into the torch engine. Importing torch takes a second or two."""
    from tinychat.model.shapes import checked_config

    checked_config(info)  # refuses a damaged model before that

    import torch

    from tinychat.generate.cuda_graph import capture_graph
    from tinychat.generate.torch_engine import TorchEngine
    from tinychat.model.loading import choose_device, load_model

    device = choose_device(settings.device)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    elif device == "cpu" and info.parameters <= MAX_SINGLE_THREAD_PARAMETERS:
        torch.set_num_threads(1)
    model = load_model(info, device)
    if settings.precision == "bf16" or (settings.precision == "auto" and device == "cuda"):
        model = model.to(torch.bfloat16)
    return TorchEngine(model, why, capture_graph if device == "cuda" else None)


class EngineLoader:
    """Loads the engine of a model in a thread; of the settings, engine, device, precision and threads count."""

    def __init__(self, info: ModelInfo, settings: Settings) -> None:
        self._loaded: Engine | BaseException
        self._thread = threading.Thread(target=self._load, args=(info, settings), name="loading", daemon=True)
        self._thread.start()

    def _load(self, info: ModelInfo, settings: Settings) -> None:
        try:
            self._loaded = open_engine(info, settings)
        except BaseException as error:  # raised again by `engine`
            self._loaded = error

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to `seconds` (None: without limit); return whether loading has ended, also with an error."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def engine(self) -> Engine:
        """The engine; waits until it has loaded.

        Raises:
            TinychatError: If loading failed.
        """
        self._thread.join()
        if isinstance(self._loaded, BaseException):
            raise self._loaded
        return self._loaded
