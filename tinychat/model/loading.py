"""From a folder to a model, on a device."""

import torch

from tinychat.errors import ModelError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Part, Transformer
from tinychat.store.models import DAMAGED, ModelInfo, read_weights


def choose_device(name: str) -> str:
    """The device that a setting names; `auto` takes a GPU where there is one.

    Raises:
        UsageError: torch has no such device here.
    """
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(device for device, present in has.items() if present)
    if not has[name]:
        raise UsageError(f"there is no {name} device here", "use --device " + " or ".join(d for d in has if has[d]))
    return name


def load_model(info: ModelInfo, device: str = "cpu") -> Transformer:
    """The model itself, in f32 on `device`, ready to generate.

    Raises:
        ModelError: its weights are missing, damaged, or those of another architecture.
    """
    model = Transformer(ModelConfig.from_dict(info.architecture))
    fill(model, info)
    return model.to(device).eval()


def fill(model: Transformer, info: ModelInfo) -> None:
    """Gives a model its weights.

    Raises:
        ModelError: they are missing, damaged, or those of another architecture.
    """
    try:
        model.load_state_dict(read_weights(info))
    except RuntimeError as error:
        first = " ".join(str(error).split("\n")[1:2]).strip()
        raise ModelError(f"the weights in {info.folder} do not fit its architecture: {first}", DAMAGED) from None


def list_parts(info: ModelInfo) -> list[Part]:
    """The parts of a model that hold parameters, without its weights."""
    with torch.device("meta"):
        return Transformer(ModelConfig.from_dict(info.architecture)).parts()
