"""The tensors of a safetensors file, mapped into memory: no torch, and no copy."""

import ctypes
import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinychat.errors import ModelError
from tinychat.store.weights import LENGTH_BYTES, LONGEST_HEADER

SIZES: Mapping[str, int] = {"F32": 4, "BF16": 2, "I16": 2, "I32": 4, "I64": 8}
"""bytes of a number, of each type that is known here"""
METADATA = "__metadata__"


@dataclass(frozen=True)
class Tensor:
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

    def _find(self) -> dict[str, Tensor]:
        length = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        if length > min(LONGEST_HEADER, len(self._memory)):
            raise ValueError("its header is longer than the file")
        begin = LENGTH_BYTES + length
        header = json.loads(self._memory[LENGTH_BYTES:begin])
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + begin
        found: dict[str, Tensor] = {}
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
            found[name] = Tensor(kind, shape, base + first)
        return found
