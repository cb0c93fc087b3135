"""Which engine serves a model."""

import threading

from tinychat.generate.engine import Engine
from tinychat.settings import Settings
from tinychat.store.models import ModelInfo

PATIENT_THREADS = {"GOMP_SPINCOUNT": "3000"}
"""for the environment: how long torch's threads spin when they wait for each other; torch reads it when it is imported.
With the usual 300,000, another busy process makes a step take ten times as long."""

SMALL = 4_000_000
"""parameters up to which one thread decodes quicker than several, which would wait for each other at each layer"""


def open_engine(info: ModelInfo, settings: Settings) -> Engine:
    """Loads a model and the engine for it; imports torch, which takes a second or two.

    Raises:
        ModelError: the model is damaged.
        UsageError: the device is not there.
    """
    import torch

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
    return TorchEngine(model)


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
