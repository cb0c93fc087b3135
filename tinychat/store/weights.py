"""Weight files (safetensors), which may hold the number of their training step, and snapshots of a run.

The matrices of layers and the tables of embeddings may be in int8, the former as the native engine computes with them:
`X` holds steps up to ±127, and `X.largest`, of type F32, for each row and group of 64 columns the largest weight, which
127 steps stand for.
"""

import ctypes
import math
import mmap
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeGuard

from tinychat.errors import ModelError
from tinychat.store.packed_counts import UNPACKED, pack_counts
from tinychat.store.runs import RunFolder
from tinychat.untrusted import open_regular, parse_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

SUFFIX = ".safetensors"
LENGTH_BYTES = 8
"""Size of the header's length at the beginning of a file, little-endian."""
MAX_HEADER = 16 << 20
"""Maximum size of the header in bytes: a model of thousands of layers has 10 MB."""
MAX_DIMENSIONS = 8
METADATA = "__metadata__"
ELEMENT_SIZES: Mapping[str, int] = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I16": 2, "I32": 4, "I64": 8}
"""Bytes of an element, for each supported dtype."""
NUMPY_DTYPES: Mapping[str, str] = {
    "F32": "<f4", "F16": "<f2", "BF16": "<u2", "U8": "u1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
}  # fmt: skip
FLOATING = ("F32", "F16", "BF16")
Precision = Literal["f32", "f16", "bf16", "int8"]
"""Precision of floating-point weights in a file; int8 is for the matrices of layers and for embeddings, and all others
are in f16: in int8 the head alone costs `smalltalk` 0.0085 nats, all layers 0.0003, and the embeddings 0.0002."""
GROUP = 64
"""Columns of a row that share a scale in int8, as in kernel.c."""
SMALLEST = 1e-36
"""Smallest weight of which a step can be told from none: groups without a larger one are 0 in int8."""
EMBEDDING = "decoder.embedding.weight"
STEPS, LARGEST = "I8", ".largest"
"""Dtype of a matrix in int8 in a file, and what the name of its largest weights ends with."""
INFINITE_F16 = bytes((*range(0x7C, 0x80), *range(0xFC, 0x100)))
"""Highest bytes of f16 numbers that are NaN or infinite."""
DAMAGED = "the model is incomplete or damaged: train or import it again"


@dataclass(frozen=True)
class Snapshot:
    """Learned weights of a run at some step, in bf16; n-gram counts never change and are in the run's model only."""

    step: int
    path: Path


def pack_weights(
    weights: "Mapping[str, Tensor]", *, tied: bool, precision: Precision = "f32", step: int | None = None
) -> bytes:
    """Serialize the `state_dict()` of a model, after a training step if that is known, as a safetensors file.

    If the head is `tied` to the embedding, their matrix is stored once. Floating-point tensors are stored in a
    `precision`, but those beyond the range of f16 in f32; with int8, all but the matrices of layers and the tables of
    embeddings are in f16, and so is a table that is the head's matrix, too. N-gram counts are packed.
    """
    import torch
    from safetensors.torch import save

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}.get(precision, torch.float16)
    state: dict[str, Tensor] = {}
    for name, value in weights.items():
        if precision == "int8" and may_be_int8(name) and not (tied and name == EMBEDDING):
            steps, largest = quantize(value.detach().to("cpu", torch.float32).numpy())
            state[name], state[name + LARGEST] = torch.from_numpy(steps), torch.from_numpy(largest)
            continue
        rounded = value.detach().to("cpu", dtype if value.is_floating_point() else value.dtype)
        too_large = dtype == torch.float16 and bool(rounded.isinf().any())
        state[name] = (value.detach().to("cpu", torch.float32) if too_large else rounded).contiguous()
    if UNPACKED[0] in state:
        counts = {name: state.pop(name) for name in UNPACKED}
        state |= pack_counts(counts, len(state[EMBEDDING]))
    if tied:
        del state["head.weight"]
    return bytes(save(state, metadata={"format": "pt"} | ({} if step is None else {"step": str(step)})))


def is_layer_matrix(name: str) -> bool:
    """Return whether a tensor is a matrix of a layer, of attention or feed-forward."""
    return ".sublayer." in name and name.endswith(".weight") and not name.endswith("_norm.weight")


def may_be_int8(name: str) -> bool:
    """Return whether a tensor may be in int8 in a file: a matrix of a layer, or a table of embeddings of tokens."""
    is_table = re.search(r"\.(embedding|earlier\.\d+|pairs)\.weight$", name) is not None
    return is_table or is_layer_matrix(name)


def quantize(matrix: "npt.NDArray[np.float32]") -> "tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]":
    """Quantize a matrix `[rows, columns]` as kernel.c does (Dettmers et al. 2022, section 2.1, by groups of columns).

    Returns steps up to ±127 `[rows, columns]`, in int8, and the largest weight of each group `[rows, groups]`. To
    quantize again what these stand for changes nothing.
    """
    import numpy as np

    rows, columns = matrix.shape
    grouped = np.pad(matrix, ((0, 0), (0, -columns % GROUP))).reshape(rows, -1, GROUP)
    largest = np.abs(grouped).max(axis=2)  # [rows, groups]
    largest[largest < SMALLEST] = 0
    with np.errstate(divide="ignore", invalid="ignore"):  # what is NaN or infinite is refused when it is read
        share = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
        steps = np.rint(grouped * share[..., None]).astype(np.int8)
    return np.ascontiguousarray(steps.reshape(rows, -1)[:, :columns]), largest


def read_step(path: Path) -> int | None:
    """Read the training step of a weight file, without torch; None if the file is unreadable or has none."""
    try:
        with open_regular(path) as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            header = parse_json(file.read(min(length, MAX_HEADER)).decode())
    except (OSError, ValueError):
        return None
    metadata = header.get(METADATA) if isinstance(header, dict) else None
    step = metadata.get("step") if isinstance(metadata, dict) else None
    return int(step) if isinstance(step, str) and step.isdecimal() and len(step) < 20 else None


def snapshot_file(run: RunFolder, step: int) -> Path:
    """Return the path of the snapshot of a step."""
    return run.snapshots / f"step-{step:08d}{SUFFIX}"


def list_snapshots(run: RunFolder) -> list[Snapshot]:
    """Return the snapshots of a run in the order of their steps; other files in their folder are passed over."""
    found = ((re.fullmatch(r"step-(\d+)", path.stem), path) for path in sorted(run.snapshots.glob(f"*{SUFFIX}")))
    return [Snapshot(int(step[1]), path) for step, path in found if step]


@dataclass(frozen=True)
class MappedTensor:
    """Tensor in a weight file that is mapped into memory."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    """Index of the first byte in `memory`."""
    memory: mmap.mmap
    """The whole file."""
    address: int
    """Memory address of the first element; valid as long as this object lives."""
    largest: "MappedTensor | None" = None
    """Of a matrix in int8, the largest weight of each group `[rows, groups]`: the elements are steps of one byte each,
    but `dtype` is F32, and what is returned are the weights that they stand for."""

    @property
    def is_floating_point(self) -> bool:
        return self.dtype in FLOATING

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def is_finite(self) -> bool:
        """Return whether all elements are finite, without torch; 5 million elements take about 10 ms."""
        if not self.is_floating_point:
            return True
        if self.largest is not None:  # a step of −128 would be beyond the largest
            return self.largest.is_finite() and b"\x80" not in self.memory[self.offset : self.offset + self.numel]
        size = ELEMENT_SIZES[self.dtype]
        end = self.offset + self.numel * size
        # The last byte of an element holds its sign and seven bits of its exponent, the byte before the eighth; in f16
        # all five bits of the exponent.
        high = self.memory[self.offset + size - 1 : end : size]
        if self.dtype == "F16":
            return len(high.translate(None, INFINITE_F16)) == len(high)
        if b"\x7f" not in high and b"\xff" not in high:
            return True
        low = self.memory[self.offset + size - 2 : end : size]
        return not any(one in (0x7F, 0xFF) and other >= 0x80 for one, other in zip(high, low, strict=True))

    def to_torch(self) -> "Tensor":
        """Return the elements as a tensor that shares this memory, or in f32 what steps stand for."""
        import torch

        dtypes = {
            "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
            "U8": torch.uint8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
        }  # fmt: skip
        if not self.numel:
            return torch.empty(self.shape, dtype=dtypes[self.dtype])
        if self.largest is not None:
            return torch.from_numpy(self.to_numpy())
        flat = torch.frombuffer(self.memory, dtype=dtypes[self.dtype], count=self.numel, offset=self.offset)
        return flat.reshape(self.shape)

    def to_numpy(self) -> "np.ndarray[Any, Any]":
        """Return the elements as an array that shares this memory, or in f32 what steps stand for.

        Numbers in bf16, which numpy lacks, are given as their bits, in u16.
        """
        import numpy as np

        if self.largest is not None:
            columns, largest = self.shape[1], self.largest.to_numpy()
            steps = np.frombuffer(self.memory, np.int8, self.numel, self.offset).reshape(self.shape)
            scales = np.repeat(largest / np.float32(127), GROUP, axis=1)[:, :columns]
            # The largest weights are exact, so that quantizing the result again changes nothing.
            exact = np.repeat(largest, GROUP, axis=1)[:, :columns] * np.sign(steps)
            return np.where(np.abs(steps) == 127, exact, steps * scales)
        return np.frombuffer(self.memory, NUMPY_DTYPES[self.dtype], self.numel, self.offset).reshape(self.shape)

    def joined(self) -> "MappedTensor":
        """Return a matrix in int8 in memory of its own, as the kernel takes it: the largest weights behind steps."""
        assert self.largest is not None
        begin, size = self.largest.offset, self.largest.numel * ELEMENT_SIZES[self.largest.dtype]
        memory = mmap.mmap(-1, max(1, self.numel + size))
        memory.write(self.memory[self.offset : self.offset + self.numel])
        memory.write(self.largest.memory[begin : begin + size])
        return replace(self.at(self.dtype, self.shape, memory, 0), largest=self.largest)

    @classmethod
    def at(cls, dtype: str, shape: tuple[int, ...], memory: mmap.mmap, offset: int) -> "MappedTensor":
        """Return the tensor at an offset of a file that is mapped into memory."""
        return cls(dtype, shape, offset, memory, ctypes.addressof(ctypes.c_char.from_buffer(memory)) + offset)

    @classmethod
    def from_numpy(cls, array: "np.ndarray[Any, Any]", dtype: str) -> "MappedTensor":
        """Return a tensor with a copy of an array, in memory of its own; the bits of bf16 are u16."""
        import numpy as np

        memory = mmap.mmap(-1, max(1, array.size * ELEMENT_SIZES[dtype]))
        np.frombuffer(memory, NUMPY_DTYPES[dtype], array.size).reshape(array.shape)[...] = array
        return cls(dtype, array.shape, 0, memory, ctypes.addressof(ctypes.c_char.from_buffer(memory)))

    def rearranged(self, change: "Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]", what: str) -> "MappedTensor":
        """Return a tensor with what `change` makes of the array: a transpose, or some of its rows.

        Raises:
            ModelError: If the tensor, which `what` describes, has another shape than `change` expects.
        """
        try:
            return self.from_numpy(change(self.to_numpy()), self.dtype)
        except (ValueError, IndexError, TypeError):
            shape = " × ".join(map(str, self.shape)) or "of a number"
            raise ModelError(f"{what} has the shape {shape}, which its architecture cannot have", DAMAGED) from None


def map_tensors(path: Path, file: BinaryIO | None = None, *, skip_unsupported: bool = False) -> dict[str, MappedTensor]:
    """Map a safetensors file into memory, without a copy and without torch, and return its tensors by name.

    `file` is that file if it is open already. Tensors of unsupported types are refused, or left out.

    Raises:
        ModelError: If the file cannot be read or is not a valid safetensors file.
    """
    try:
        with open_regular(path) if file is None else nullcontext(file) as opened:
            memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
        return _read_header(memory, skip_unsupported)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}", DAMAGED) from None
    except ValueError as error:
        raise ModelError(f"{path} cannot be read: {error}", DAMAGED) from None


def _read_header(memory: mmap.mmap, skip_unsupported: bool) -> dict[str, MappedTensor]:
    length = int.from_bytes(memory[:LENGTH_BYTES], "little")
    if length > min(MAX_HEADER, len(memory) - LENGTH_BYTES):
        raise ValueError("its header is longer than the file")
    begin = LENGTH_BYTES + length
    header = parse_json(memory[LENGTH_BYTES:begin].decode())
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    tensors: dict[str, MappedTensor] = {}
    for name, values in header.items():
        if name == METADATA or (skip_unsupported and not _is_supported(name, header)):
            continue
        dtype, shape, (first, end) = _read_entry(name, values, may_be_steps=_may_be_steps(name, header))
        if not 0 <= first <= end <= len(memory) - begin or end - first != math.prod(shape) * _element_size(dtype):
            raise ValueError(f"{name[:80]} does not lie within it")
        tensors[name] = MappedTensor(dtype, shape, begin + first, memory, address + begin + first)
    _refuse_overlaps(tensors)
    for name in [name for name, one in tensors.items() if one.dtype == STEPS]:
        _join_quantized(name, tensors)
    return tensors


def _join_quantized(name: str, tensors: dict[str, MappedTensor]) -> None:
    """Let a matrix in int8 have its largest weights.

    Raises:
        ValueError: If these do not fit.
    """
    steps, largest = tensors[name], tensors.pop(name + LARGEST)
    groups = (*steps.shape[:1], *(-(-columns // GROUP) for columns in steps.shape[1:]))
    if len(steps.shape) != 2 or largest.shape != groups:
        raise ValueError(f"{name[:80]} has not one largest weight for each {GROUP} columns of a row")
    tensors[name] = replace(steps, dtype="F32", largest=largest)


def _refuse_overlaps(tensors: Mapping[str, MappedTensor]) -> None:
    """Raise an error if two tensors share bytes, as safetensors forbids: engines take equal places for tied weights."""
    places = sorted(
        (one.offset, one.offset + one.numel * _element_size(one.dtype), name)
        for name, one in tensors.items()
        if one.numel
    )
    for (_, end, _), (first, _, name) in pairwise(places):
        if first < end:
            raise ValueError(f"{name[:80]} overlaps another tensor")


def _is_supported(name: str, header: Mapping[str, Any]) -> bool:
    dtype = header[name].get("dtype") if isinstance(header[name], dict) else None
    return not isinstance(dtype, str) or dtype in ELEMENT_SIZES or (dtype == STEPS and _may_be_steps(name, header))


def _may_be_steps(name: str, header: Mapping[str, Any]) -> bool:
    largest = header.get(name + LARGEST)
    return may_be_int8(name) and isinstance(largest, dict) and largest.get("dtype") == "F32"


def _element_size(dtype: str) -> int:
    return 1 if dtype == STEPS else ELEMENT_SIZES[dtype]


def _read_entry(name: str, values: Any, *, may_be_steps: bool) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """Return dtype, shape and offsets of a tensor from its entry in the header."""
    fields = values if isinstance(values, dict) else {}
    dtype, shape, offsets = (fields.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not (dtype in ELEMENT_SIZES or (may_be_steps and dtype == STEPS)):
        raise ValueError(f"{name[:80]} is of type {str(dtype)[:20]}, not one of {', '.join(ELEMENT_SIZES)}")
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"{name[:80]} has no valid shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"{name[:80]} has no valid offsets")
    return dtype, tuple(shape), (offsets[0], offsets[1])


def _are_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
