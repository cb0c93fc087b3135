"""Load a model from its folder onto a device, and list its parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tinychat.errors import ModelError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import checked_config
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, read_weights
from tinychat.store.weights import DAMAGED

MATMUL_SIZES = (64, 300, 1000)
"""Sizes of the products by which rounding is noticed: a processor may round large ones alone."""


def choose_device(name: str) -> str:
    """Return the device that the setting `name` stands for; `auto` prefers a GPU.

    Raises:
        UsageError: torch finds no such device.
    """
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(device for device, present in has.items() if present)
    if not has[name]:
        raise UsageError(f"there is no {name} device here", "use --device " + " or ".join(d for d in has if has[d]))
    return name


def choose_matmul_precision(device: str) -> None:
    """Let torch multiply f32 matrices as fast as the device can: with TF32 on a GPU, in full f32 on a CPU.

    On a CPU, "medium" allows oneDNN in place of MKL, which is slow on some processors. With matrix units (AMX), oneDNN
    would round the factors to bf16; there MKL is fast, and stays.
    """
    torch.set_float32_matmul_precision("medium" if device == "cpu" else "high")
    for size in MATMUL_SIZES if device == "cpu" else ():
        numbers = torch.full((size, size), 1 + 2**-12)  # bf16 would round them to 1
        if not torch.equal(numbers @ torch.eye(size), numbers):
            torch.set_float32_matmul_precision("highest")


class _NoInitialization(TorchFunctionMode):
    """Leaves out the functions of `torch.nn.init`: what is loaded at once needs no random numbers."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return function(*args, **(kwargs or {}))


def load_model(info: ModelInfo, device: str = "cpu") -> Transformer:
    """Load a model in f32 onto `device`, in evaluation mode.

    Raises:
        ModelError: its weights are missing, damaged, or of another architecture.
    """
    config = checked_config(info)
    with _NoInitialization():
        model = Transformer(config)
    if config.ngram_order:  # tables are made from the counts that are loaded
        load_weights(model, info)
    else:
        _load(model, info, read_weights(info, copy=True), assign=True)
        if config.tie_embeddings:
            model.head.weight = model.decoder.embedding.weight
    return model.to(device).eval()


def load_weights(model: Transformer, info: ModelInfo) -> None:
    """Load the weights of a stored model into one of the same architecture.

    Raises:
        ModelError: they are missing, damaged, or of another architecture.
    """
    _load(model, info, read_weights(info))


def _load(model: Transformer, info: ModelInfo, weights: Mapping[str, Tensor], *, assign: bool = False) -> None:
    try:
        model.load_state_dict(weights, assign=assign)
    except RuntimeError as error:
        first = " ".join(str(error).split("\n")[1:2]).strip()
        raise ModelError(f"the weights in {info.folder} do not fit its architecture: {first}", DAMAGED) from None


@dataclass(frozen=True)
class Part:
    """A module that holds parameters: `decoder.blocks.0.attention.sublayer.query`, `Linear`, 65,536."""

    name: str
    kind: str
    parameters: int


def list_parts(architecture: Mapping[str, Any]) -> list[Part]:
    """List the modules that hold parameters, in the order in which data flows; a shared matrix counts once."""
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
