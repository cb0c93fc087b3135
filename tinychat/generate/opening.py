"""Which engine serves a model."""

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
