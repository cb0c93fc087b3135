"""The container of GGUF files: metadata, the places of tensors, and their numbers, mapped into memory.

The reader of the `gguf` package trusts the sizes in a file, and makes an array for each token: this one does neither.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tinychat.errors import ModelError
from tinychat.store.weights import MappedTensor
from tinychat.untrusted import open_regular

T = TypeVar("T")

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Formats of `struct` for the types of values."""
STRING, ARRAY = 8, 9
MAX_HEADER = 256 << 20
"""Maximum size of what precedes the numbers, in bytes."""
MAX_FIELDS, MAX_TENSORS, MAX_VALUES = 4096, 1 << 17, 1 << 21
"""Maximum numbers of fields, of tensors, and of the values in all lists, which are tokens, merges and scores."""
MAX_DIMENSIONS, MAX_NAME = 4, 256
PLAIN_TYPES = {0: "F32", 1: "F16", 30: "BF16"}
"""Types of tensors that are not quantized."""
INCOMPLETE = "download or export the file again"


@dataclass(frozen=True)
class Place:
    """Position of the numbers of a tensor."""

    type: int
    """Number of the type: a key of `PLAIN_TYPES`, or of a quantized one."""
    shape: tuple[int, ...]
    """Rows first, as in numpy."""
    offset: int
    """From the beginning of the file."""
    size: int
    """In bytes."""


@dataclass(frozen=True)
class Content:
    """A file that is mapped into memory."""

    path: Path
    memory: mmap.mmap
    fields: Mapping[str, Any]
    tensors: Mapping[str, Place]

    def get(self, name: str, kind: type[T], default: T | None = None) -> T:
        """Return a field of a type.

        Raises:
            ModelError: If it is missing, without a default, or of another type.
        """
        value = self.fields.get(name, default)
        if value is None:
            raise ModelError(f"{self.path} lacks {name}", INCOMPLETE)
        if type(value) is int and kind is float:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
            raise ModelError(f"{self.path} has a {name} that is no {kind.__name__}", INCOMPLETE)
        return value

    def texts(self, name: str) -> list[str]:
        """Return a field that is a list of texts; empty if there is none."""
        return self._list(name, str)

    def numbers(self, name: str) -> list[Any]:
        """Return a field that is a list of numbers; empty if there is none."""
        return self._list(name, int, float)

    def _list(self, name: str, *kinds: type) -> list[Any]:
        values = self.get(name, list, [])
        if values and type(values[0]) not in kinds:
            raise ModelError(f"{self.path} has a {name} that is no list of {kinds[0].__name__}", INCOMPLETE)
        return values


class _Reader:
    """Reads values one after the other; never beyond the end of the file."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory, self.at, self.end = memory, 0, min(len(memory), MAX_HEADER)
        self._room = MAX_VALUES

    def take(self, count: int) -> int:
        """Return where the next `count` bytes begin, and go on after them."""
        begin = self.at
        if count > self.end - begin:
            raise ValueError("it ends too soon, or its header is too large")
        self.at += count
        return begin

    def numbers(self, letter: str, count: int = 1) -> tuple[Any, ...]:
        size = struct.calcsize(f"<{letter}")
        begin = self.take(size * count)  # before the values are made: there may not be so many
        return struct.unpack_from(f"<{count}{letter}", self.memory, begin)

    def number(self, letter: str) -> Any:
        return self.numbers(letter)[0]

    def text(self, most: int = MAX_HEADER) -> str:
        length = self.number("Q")
        if length > most:
            raise ValueError(f"it has a name of {length:,} bytes")
        begin = self.take(length)
        return self.memory[begin : begin + length].decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise ValueError(f"it has a value of the unknown type {kind}")
        inner, count = self.numbers("I")[0], self.number("Q")
        self._room -= count
        if self._room < 0 or inner not in (STRING, *SCALARS):
            raise ValueError(f"it has a list of {count:,} values of type {inner}")
        if inner in SCALARS:
            return list(self.numbers(SCALARS[inner], count))
        return [self.text() for _ in range(count)]


def read_content(path: Path) -> Content:
    """Map a file, and read everything but the numbers of its tensors.

    Raises:
        ModelError: If it cannot be read, or is no GGUF file.
    """
    try:
        with open_regular(path) as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return _read(path, memory)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, struct.error) as error:
        raise ModelError(f"{path} is no GGUF file that can be read: {error}", INCOMPLETE) from None


def _read(path: Path, memory: mmap.mmap) -> Content:
    reader = _Reader(memory)
    if memory[reader.take(4) : 4] != MAGIC:
        raise ValueError("it does not begin with GGUF")
    version, num_tensors, num_fields = reader.number("I"), *reader.numbers("Q", 2)
    if version not in VERSIONS:
        raise ValueError(f"its version is {version}, not {' or '.join(map(str, VERSIONS))}")
    if num_tensors > MAX_TENSORS or num_fields > MAX_FIELDS:
        raise ValueError(f"it has {num_tensors:,} tensors and {num_fields:,} fields")
    fields: dict[str, Any] = {}
    for _ in range(num_fields):
        name = reader.text(MAX_NAME)
        fields[name] = reader.value(reader.number("I"))
    infos = [_read_info(reader) for _ in range(num_tensors)]
    alignment = fields.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 1 << 16 or alignment % 8:
        raise ValueError(f"its alignment is {str(alignment)[:40]}")
    begin = -(-reader.at // alignment) * alignment
    tensors: dict[str, Place] = {}
    for name, place in infos:
        if name in tensors or place.offset % alignment or begin + place.offset + place.size > len(memory):
            raise ValueError(f"its tensor {name[:80]} is there twice, is not aligned, or does not lie within it")
        tensors[name] = replace(place, offset=begin + place.offset)
    return Content(path, memory, fields, tensors)


def _read_info(reader: _Reader) -> tuple[str, Place]:
    name, dimensions = reader.text(MAX_NAME), reader.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise ValueError(f"its tensor {name[:80]} has {dimensions} dimensions")
    shape = reader.numbers("Q", dimensions)[::-1]
    kind, offset = reader.number("I"), reader.number("Q")
    block, size = _block_sizes(kind)
    if not shape or shape[-1] % block:
        raise ValueError(f"its tensor {name[:80]} has rows that are no whole blocks of {block}")
    return name, Place(kind, shape, offset, math.prod(shape) // block * size)


def _block_sizes(kind: int) -> tuple[int, int]:
    """Return how many numbers of a type are one block, and how many bytes that is."""
    if kind in PLAIN_TYPES:
        return 1, 4 if kind == 0 else 2
    library = import_library()
    try:
        block, size = library.GGML_QUANT_SIZES[library.GGMLQuantizationType(kind)]
    except (KeyError, ValueError):
        raise ValueError(f"it has a tensor of the unknown type {kind}") from None
    return int(block), int(size)


def import_library() -> Any:
    """Import the `gguf` package, which knows the quantized types and writes files.

    Raises:
        ModelError: If it is not installed.
    """
    try:
        import gguf
    except ImportError:
        raise ModelError("this needs the package gguf, which is not installed", "`pip install gguf`") from None
    return gguf


def map_tensor(content: Content, place: Place) -> MappedTensor:
    """Map a tensor; a quantized one is widened to f32.

    Raises:
        ModelError: If its type cannot be read.
    """
    if place.type in PLAIN_TYPES:
        return MappedTensor.at(PLAIN_TYPES[place.type], place.shape, content.memory, place.offset)
    import numpy as np

    library, kind = import_library(), place.type
    rows = np.frombuffer(content.memory, np.uint8, place.size, place.offset).reshape(*place.shape[:-1], -1)
    try:
        widened = library.quants.dequantize(rows, library.GGMLQuantizationType(kind))
    except NotImplementedError:
        name = library.GGMLQuantizationType(kind).name
        raise ModelError(f"{content.path} has numbers of the type {name}, which cannot be read here") from None
    return MappedTensor.from_numpy(widened, "F32")
