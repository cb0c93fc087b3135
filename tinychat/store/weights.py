"""Weight files (safetensors), which may hold the number of their training step, and snapshots of a run."""

import ctypes
import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.errors import ModelError
from tinychat.store.runs import RunFolder

if TYPE_CHECKING:
    from torch import Tensor

SUFFIX = ".safetensors"
LENGTH_BYTES = 8
"""Size of the header's length at the beginning of a file, little-endian."""
MAX_HEADER = 100_000_000
"""Maximum size of the header in bytes, as in the safetensors library."""
METADATA = "__metadata__"
ELEMENT_SIZES: Mapping[str, int] = {"F32": 4, "BF16": 2, "I16": 2, "I32": 4, "I64": 8}
"""Bytes of an element, for each supported dtype."""


@dataclass(frozen=True)
class Snapshot:
    """Learned weights of a run at some step, in bf16; n-gram counts never change and are in the run's model only."""

    step: int
    path: Path


def pack_weights(weights: "Mapping[str, Tensor]", *, tied: bool, bf16: bool = False, step: int | None = None) -> bytes:
    """Serialize the `state_dict()` of a model, after a training step if that is known, as a safetensors file.

    If the head is `tied` to the embedding, their matrix is stored once. Floating-point tensors are stored in f32 or
    bf16; n-gram counts keep their type.
    """
    import torch
    from safetensors.torch import save

    dtype = torch.bfloat16 if bf16 else torch.float32
    state = {
        key: value.detach().to("cpu", dtype if value.is_floating_point() else value.dtype).contiguous()
        for key, value in weights.items()
    }
    if tied:
        del state["head.weight"]
    return bytes(save(state, metadata={"format": "pt"} | ({} if step is None else {"step": str(step)})))


def read_step(path: Path) -> int | None:
    """Read the training step of a weight file, without torch; None if the file is unreadable or has none."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            header = json.loads(file.read(min(length, MAX_HEADER)))
        return int(header[METADATA]["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def snapshot_file(run: RunFolder, step: int) -> Path:
    """Return the path of the snapshot of a step."""
    return run.snapshots / f"step-{step:08d}{SUFFIX}"


def list_snapshots(run: RunFolder) -> list[Snapshot]:
    """Return the snapshots of a run in the order of their steps."""
    paths = sorted(run.snapshots.glob(f"step-*{SUFFIX}"))
    return [Snapshot(int(path.stem.removeprefix("step-")), path) for path in paths]


@dataclass(frozen=True)
class MappedTensor:
    """Address and shape of a tensor in a `TensorFile`."""

    dtype: str
    shape: tuple[int, ...]
    address: int
    """Memory address of the first element; valid as long as the `TensorFile` lives."""

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


class TensorFile:
    """Safetensors file mapped into memory, without a copy and without torch; `tensors` holds its tensors by name.

    Raises:
        ModelError: If the file cannot be read or is not a valid safetensors file.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self.tensors = self._read_header()
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} cannot be read: {error}", "train or import the model again") from None

    def _read_header(self) -> dict[str, MappedTensor]:
        length = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        if length > min(MAX_HEADER, len(self._memory)):
            raise ValueError("its header is longer than the file")
        begin = LENGTH_BYTES + length
        header = json.loads(self._memory[LENGTH_BYTES:begin])
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + begin
        tensors: dict[str, MappedTensor] = {}
        for name, values in header.items():
            if name == METADATA:
                continue
            dtype, shape, (first, end) = values["dtype"], tuple(values["shape"]), values["data_offsets"]
            is_shape = all(type(length) is int and length >= 0 for length in shape)
            lies_within = 0 <= first <= end <= len(self._memory) - begin
            if not (is_shape and lies_within and end - first == math.prod(shape) * ELEMENT_SIZES[dtype]):
                raise ValueError(f"{name} does not lie within it")
            tensors[name] = MappedTensor(dtype, shape, base + first)
        return tensors
