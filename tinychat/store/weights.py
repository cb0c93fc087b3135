"""Weights ↔ a file, which also says after how many steps of training they are; and the snapshots of a run.

A snapshot is the model as it once was: a file of what it had learned, in bf16, named after its step. What the model
counts in its text is the same from first to last, and is kept in the run's model alone.

The tensors of a safetensors file, mapped into memory: no torch, and no copy.
"""

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
"""at the beginning of a file: the length of its header, the least significant byte first"""
LONGEST_HEADER = 100_000_000
"""bytes: what safetensors allows"""


@dataclass(frozen=True)
class Snapshot:
    """The weights of a run after some steps."""

    step: int
    path: Path


def pack_weights(weights: "Mapping[str, Tensor]", *, tied: bool, half: bool = False, step: int | None = None) -> bytes:
    """A safetensors file.

    Args:
        weights: a model's `state_dict()`.
        tied: the head is the embedding, which is kept once.
        half: in bf16, else in f32.
        step: of training; None: not known.
    """
    import torch
    from safetensors.torch import save

    dtype = torch.bfloat16 if half else torch.float32
    state = {  # what is counted stays whole
        key: value.detach().to("cpu", dtype if value.is_floating_point() else value.dtype).contiguous()
        for key, value in weights.items()
    }
    if tied:
        del state["head.weight"]  # the same matrix as the embedding, which is kept
    return bytes(save(state, metadata={"format": "pt"} | ({} if step is None else {"step": str(step)})))


def read_step(path: Path) -> int | None:
    """After how many steps of training the weights in a file are; None where it does not say. Needs no torch."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            header = json.loads(file.read(min(length, LONGEST_HEADER)))
        return int(header["__metadata__"]["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def snapshot_file(run: RunFolder, step: int) -> Path:
    """Where the snapshot of a step lies."""
    return run.snapshots / f"step-{step:08d}{SUFFIX}"


def list_snapshots(run: RunFolder) -> list[Snapshot]:
    """The snapshots of a run, from the first to the last."""
    paths = sorted(run.snapshots.glob(f"step-*{SUFFIX}"))
    return [Snapshot(int(path.stem.removeprefix("step-")), path) for path in paths]


# ---- from tinychat.store.weights ----


SIZES: Mapping[str, int] = {"F32": 4, "BF16": 2, "I16": 2, "I32": 4, "I64": 8}
"""bytes of a number, of each type that is known here"""
METADATA = "__metadata__"


@dataclass(frozen=True)
class MappedTensor:
    """Where the numbers of a tensor lie."""

    kind: str
    """one of `SIZES`"""
    shape: tuple[int, ...]
    address: int
    """valid as long as the file that it came from"""

    @property
    def count(self) -> int:
        """Of its numbers."""
        return math.prod(self.shape)


class TensorFile:
    """Holds a file in memory, as far as it is read.

    Args:
        path: of a safetensors file.

    Raises:
        ModelError: it cannot be read, or is no such file.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self.tensors = self._find()
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} cannot be read: {error}", "train or import the model again") from None

    def _find(self) -> dict[str, MappedTensor]:
        length = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        if length > min(LONGEST_HEADER, len(self._memory)):
            raise ValueError("its header is longer than the file")
        begin = LENGTH_BYTES + length
        header = json.loads(self._memory[LENGTH_BYTES:begin])
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + begin
        found: dict[str, MappedTensor] = {}
        for name, values in header.items():
            if name == METADATA:
                continue
            kind, shape, (first, end) = values["dtype"], tuple(values["shape"]), values["data_offsets"]
            size = math.prod(shape) * SIZES[kind]
            if (
                not all(type(length) is int and length >= 0 for length in shape)
                or not 0 <= first <= end <= len(self._memory) - begin
                or end - first != size
            ):
                raise ValueError(f"{name} does not lie within it")
            found[name] = MappedTensor(kind, shape, base + first)
        return found
