"""Read pickles without running anything: values of plain types, and tensors that torch saved, mapped into memory.

A pickle is a program for a stack machine that may call any function. This machine knows the instructions that build
plain values, and of functions only those that its caller lists by name.
"""

import io
import mmap
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tinychat.errors import ModelError
from tinychat.store.weights import ELEMENT_SIZES, MAX_DIMENSIONS, MappedTensor
from tinychat.untrusted import open_regular, read_bytes

MAX_PICKLE = 4 << 20
"""Maximum size of a pickle in bytes; the numbers of tensors are not in it."""
MAX_INSTRUCTIONS = 400_000
MAX_BITS = 64
"""Maximum number of bits of a whole number."""
MAX_KEY = 1 << 31
"""Bound of whole numbers as keys: larger ones can be chosen so that all have one hash, and take time without end."""
MAX_DIRECTORY = 4 << 20
"""Maximum size of the directory of a zip file in bytes."""
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
LITERALS = {
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "BINFLOAT", "FLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "UNICODE",
}  # fmt: skip
"""Instructions that push their argument."""
LOCAL_HEADER, NAME_LENGTH, EXTRA_LENGTH = 30, 26, 28
"""Size of the header before each file in a zip file, and where it says how long its name and the rest are."""
STORAGES = {
    "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16", "LongStorage": "I64", "IntStorage": "I32",
    "ShortStorage": "I16", "ByteStorage": "U8", "BoolStorage": "U8", "DoubleStorage": "",
}  # fmt: skip

Functions = Mapping[tuple[str, str], Callable[..., Any]]
"""Functions that a pickle may call, by module and name."""
_MARK = object()


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values: dictionaries, lists, texts, numbers.

    Raises:
        ModelError: If it cannot be read, or holds anything else, such as a class.
    """
    try:
        return parse_pickle(read_bytes(path, MAX_PICKLE))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(f"{path} cannot be read: {error}") from None


def parse_pickle(data: bytes, functions: Functions | None = None, load: Callable[[Any], Any] | None = None) -> Any:
    """Return the value of a pickle, which may call `functions`; `load` is given its persistent ids.

    Raises:
        ValueError: If it is damaged, or needs anything else.
    """
    try:
        return _run(data, functions or {}, load)
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"it is a damaged pickle ({type(error).__name__})") from None


def _run(data: bytes, functions: Functions, load: Callable[[Any], Any] | None) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def pop_marked() -> list[Any]:
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = stack[at + 1 :]
        del stack[at:]
        return items

    for count, (instruction, argument, _) in enumerate(pickletools.genops(data)):
        if count > MAX_INSTRUCTIONS:
            raise ValueError(f"it is a pickle of more than {MAX_INSTRUCTIONS:,} instructions")
        name = instruction.name
        if name in LITERALS:
            if isinstance(argument, int) and argument.bit_length() > MAX_BITS:  # Python writes no number of any size
                raise ValueError(f"it has a whole number of more than {MAX_BITS} bits")
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE", "PUT"):
            _set_items(memo, [len(memo) if name == "MEMOIZE" else int(argument or 0), stack[-1]])
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[int(argument or 0)])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        elif name == "TUPLE":
            stack.append(tuple(pop_marked()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            items = [stack.pop() for _ in range(int(name[-1]))]
            stack.append(tuple(reversed(items)))
        elif name == "DICT":
            items = pop_marked()
            stack.append({})
            _set_items(stack[-1], items)
        elif name == "LIST":
            stack.append(pop_marked())
        elif name in ("SETITEM", "SETITEMS"):
            items = pop_marked() if name == "SETITEMS" else [stack.pop() for _ in range(2)][::-1]
            _set_items(stack[-1], items)
        elif name in ("APPEND", "APPENDS"):
            items = pop_marked() if name == "APPENDS" else [stack.pop()]
            if type(stack[-1]) is not list:
                raise TypeError
            stack[-1].extend(items)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            parts = str(argument).split(" ", 1) if name == "GLOBAL" else [stack.pop() for _ in range(2)][::-1]
            place = (parts[0], parts[1])
            if not all(type(part) is str for part in place):  # the text of nested lists could be endless
                raise TypeError
            if place not in functions:
                raise ValueError(f"it holds {'.'.join(place)[:80]}: no classes are read, nor functions called")
            stack.append(functions[place])
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            if function not in functions.values():
                raise TypeError
            stack.append(function(*arguments))
        elif name == "BUILD":  # attributes of a dictionary, such as `_metadata`
            stack.pop()
        elif name == "BINPERSID" and load is not None:
            stack.append(load(stack.pop()))
        elif name == "STOP":
            return stack.pop()
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"its instruction {name} is not needed for plain values")
    raise ValueError("it is a pickle without an end")


def _set_items(target: Any, items: list[Any]) -> None:
    """Set keys and values; a key may only be a text or a small whole number, as others could take any time to hash."""
    keys, values = items[::2], items[1::2]
    if type(target) is not dict or len(keys) != len(values) or not all(map(_is_key, keys)):
        raise TypeError
    target.update(zip(keys, values, strict=True))


def _is_key(key: Any) -> bool:
    return type(key) is str or (type(key) is int and abs(key) < MAX_KEY)


# --- files of torch ---------------------------------------------------------------------------------------------------


class _Storage(NamedTuple):
    dtype: str
    offset: int
    size: int


class _Bounded(io.RawIOBase):
    """A file of which no more than `MAX_DIRECTORY` bytes are read at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(MAX_DIRECTORY + 1 if size < 0 else min(size, MAX_DIRECTORY + 1))
        if len(data) > MAX_DIRECTORY:
            raise ValueError("its directory is too large")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def read_torch(path: Path) -> Any:
    """Read a file that `torch.save` wrote since torch 1.6: plain values, and tensors mapped from the file.

    Raises:
        ModelError: If it cannot be read, or holds anything else.
    """
    try:
        with open_regular(path) as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            with zipfile.ZipFile(_Bounded(file)) as archive:
                entries = {entry.filename: entry for entry in archive.infolist()}
        return _read_archive(memory, entries)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"{path} cannot be read: {error}", "it must be a file of torch.save") from None


def _read_archive(memory: mmap.mmap, entries: Mapping[str, zipfile.ZipInfo]) -> Any:
    name = next((name for name in entries if name.endswith("/data.pkl")), "")
    if not name:
        raise ValueError("it has no data.pkl")
    root = name.removesuffix("data.pkl")
    begin, size = _find(memory, entries[name])
    if size > MAX_PICKLE:
        raise ValueError(f"its data.pkl has {size:,} bytes")

    def load(id: Any) -> _Storage:
        kind, dtype, key, _, _ = id
        if kind != "storage" or not isinstance(dtype, str) or not isinstance(key, str):
            raise TypeError
        return _Storage(dtype, *_find(memory, entries[f"{root}data/{key}"]))

    def rebuild(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> MappedTensor | None:
        if len(shape) != len(stride) or len(shape) > MAX_DIMENSIONS:  # before products: they may need all memory
            raise ValueError("it has a tensor without a valid shape")
        numbers = (offset, *shape, *stride)
        if not isinstance(storage, _Storage) or not all(type(one) is int and 0 <= one < 1 << 40 for one in numbers):
            raise TypeError
        if not storage.dtype:
            return None
        element, count, plain = ELEMENT_SIZES[storage.dtype], 1, list[int]()
        for length in reversed(shape):
            plain.insert(0, count)
            count *= length
        if any(length > 1 and one != other for length, one, other in zip(shape, stride, plain, strict=True)):
            raise ValueError("it has a tensor whose numbers do not lie side by side")
        if (offset + count) * element > storage.size:
            raise ValueError("it has a tensor that is larger than its numbers")
        return MappedTensor.at(storage.dtype, tuple(shape), memory, storage.offset + offset * element)

    functions: dict[tuple[str, str], Any] = {("torch", storage): dtype for storage, dtype in STORAGES.items()}
    functions |= {("collections", "OrderedDict"): _empty, ("torch._utils", "_rebuild_tensor_v2"): rebuild}
    return parse_pickle(memory[begin : begin + size], functions, load)


def _empty() -> dict[str, Any]:
    return {}


def _find(memory: mmap.mmap, entry: zipfile.ZipInfo) -> tuple[int, int]:
    """Return where the bytes of a file in the archive begin, and how many they are."""
    if entry.header_offset < 0:  # `zipfile` adds to it what the end of the file says
        raise ValueError(f"{entry.filename[:80]} does not lie within it")
    lengths = memory[entry.header_offset + NAME_LENGTH : entry.header_offset + LOCAL_HEADER]
    name, extra = (int.from_bytes(lengths[at : at + 2], "little") for at in (0, EXTRA_LENGTH - NAME_LENGTH))
    begin = entry.header_offset + LOCAL_HEADER + name + extra
    if entry.compress_type != zipfile.ZIP_STORED or begin + entry.file_size > len(memory):
        raise ValueError(f"{entry.filename[:80]} is compressed, or does not lie within it")
    return begin, entry.file_size
