"""Which engine serves a model."""

import os
import shutil
import sys
import threading
from dataclasses import replace

from tinychat.errors import UsageError
from tinychat.generate.engine import Engine
from tinychat.settings import Settings
from tinychat.store.models import ModelInfo

PATIENT_THREADS = {"GOMP_SPINCOUNT": "3000"}
"""for the environment: how long torch's threads spin when they wait for each other; torch reads it when it is imported.
With the usual 300,000, another busy process makes a step take ten times as long."""

SMALL = 4_000_000
"""parameters up to which one thread decodes quicker than several, which would wait for each other at each layer"""
QUICK_ENOUGH = 20_000_000
"""parameters up to which the native engine makes a token in about a millisecond or less; a GPU may be quicker still,
but torch takes a second and more to load"""
MOST_THREADS = 4
"""of the native engine, unless more are asked for: reading the weights is what takes time, and soon no quicker"""


def open_engine(info: ModelInfo, settings: Settings) -> Engine:
    """Loads a model and the engine for it: the native one on a processor, where it knows the model, else torch's.

    Where nothing else is asked for, a GPU serves models for which it is quicker.

    Raises:
        ModelError: the model is damaged.
        UsageError: the device is not there, or does not go with the engine or the precision.
        GenerationError: the native engine was asked for, or int8, and it is not available here.
    """
    needs_native = settings.engine == "native" or settings.precision == "int8"
    if needs_native and settings.device in ("cuda", "mps"):
        what = "the native engine" if settings.engine == "native" else "a model in int8"
        raise UsageError(f"{what} runs on the processor, not on {settings.device}", "leave out one of them")
    if settings.precision == "int8" and settings.engine == "torch":
        raise UsageError("the torch engine knows no int8", "leave out --engine, or take --precision bf16")
    if needs_native or (settings.engine == "auto" and device_of(settings, info) == "cpu"):
        from tinychat.generate.native.library import Unavailable, find_compiler, is_compiled, start_compiling

        try:
            if needs_native or is_compiled():
                return _open_native(info, settings)
            find_compiler()
            start_compiling()  # for the next time: torch is here sooner
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
    """Where a model runs, or will, as far as can be told without torch."""
    if settings.device != "auto":
        return settings.device
    if settings.engine == "native" or settings.precision == "int8":
        return "cpu"
    if settings.engine == "auto" and info and info.mode != "translation" and info.parameters <= QUICK_ENOUGH:
        return "cpu"
    if shutil.which("nvidia-smi"):
        return "cuda"
    return "mps" if sys.platform == "darwin" else "cpu"


def native_threads(info: ModelInfo, settings: Settings) -> tuple[int, int]:
    """With how many the native engine begins, and how many it may take where more are quicker."""
    most = settings.threads or min(MOST_THREADS, os.cpu_count() or 1)
    return settings.threads or (1 if info.parameters <= SMALL else most), most


def _open_native(info: ModelInfo, settings: Settings) -> Engine:
    from tinychat.generate.native.engine import NativeEngine
    from tinychat.generate.native.precision import choose_precision

    settings = replace(settings, device="cpu")  # what looks inside says what this engine says: not in bf16, on a GPU
    threads, most_threads = native_threads(info, settings)
    precision = choose_precision(info, threads) if settings.precision == "auto" else settings.precision
    return NativeEngine(
        info,
        threads,
        most_threads=most_threads,
        precision=precision,
        open_reference=lambda info: _open_reference(info, settings, "to look inside"),
    )


def _open_reference(info: ModelInfo, settings: Settings, why: str) -> Engine:
    """Imports torch, which takes a second or two."""
    import torch

    from tinychat.generate.replay import record_graph
    from tinychat.generate.torch_engine import TorchEngine
    from tinychat.model.loading import choose_device, load_model

    device = choose_device(settings.device)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    elif device == "cpu" and info.parameters <= SMALL:
        torch.set_num_threads(1)
    model = load_model(info, device)
    if settings.precision == "bf16" or (settings.precision == "auto" and device == "cuda"):
        model = model.to(torch.bfloat16)
    return TorchEngine(model, why, record_graph if device == "cuda" else None)


class Loading:
    """A model that loads in a thread of its own."""

    def __init__(self, info: ModelInfo, settings: Settings) -> None:
        self._engine: Engine | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._load, args=(info, settings), name="loading", daemon=True)
        self._thread.start()

    def _load(self, info: ModelInfo, settings: Settings) -> None:
        try:
            self._engine = open_engine(info, settings)
        except BaseException as error:  # handed to whoever waits
            self._error = error

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it is over, within that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def engine(self) -> Engine:
        """Waits for it.

        Raises:
            TinychatError: what went wrong while it loaded.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._engine is not None
        return self._engine
