"""From a folder to a model, on a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tinychat.errors import ModelError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
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


@dataclass(frozen=True)
class Part:
    """One row of a model's table: `decoder.blocks.0.attention.sublayer.query`, `Linear`, 65,536."""

    name: str
    kind: str
    parameters: int


def list_parts(architecture: Mapping[str, Any]) -> list[Part]:
    """The parts of a model that hold parameters, in the order in which data flows; a shared matrix counts once."""
    with torch.device("meta"):
        model = Transformer(ModelConfig.from_dict(architecture))
    parts: list[Part] = []
    seen: set[int] = set()
    for name, module in model.named_modules():
        own = [weight for weight in module.parameters(recurse=False) if id(weight) not in seen]
        seen.update(map(id, own))
        if own:
            parts.append(Part(name, type(module).__name__, sum(weight.numel() for weight in own)))
    return parts
