"""Files of `torch.save` that no torch would write: their tensors may lie nowhere but in the file."""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from tinychat.errors import ModelError
from tinychat.formats.pickles import parse_pickle, read_torch

STORAGE = ("storage", torch.FloatStorage, "0", "cpu", 4)
VALUES = (1.0, 2.0, 3.0, 4.0)


class Rebuilt:
    """A tensor of `VALUES` in any shape."""

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
        self.shape, self.stride = shape, stride

    def __reduce__(self) -> Any:
        arguments: tuple[Any, ...] = (STORAGE, 0, self.shape, self.stride, False, OrderedDict())
        return torch._utils._rebuild_tensor_v2, arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return obj if obj is STORAGE else None


def write(path: Path, shape: tuple[int, ...], stride: tuple[int, ...]) -> Path:
    pickled = io.BytesIO()
    Pickler(pickled, 2).dump({"a": Rebuilt(shape, stride)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", pickled.getvalue())
        archive.writestr("m/data/0", torch.tensor(VALUES).numpy().tobytes())
    return path


def test_the_name_of_a_storage_is_a_text(tmp_path: Path) -> None:
    nested = b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (id, id, id + 1) for id in range(40))
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", nested + b"(X\x07\0\0\0storageX\3\0\0\0F32h(NNtQ.")
    with pytest.raises(ModelError, match="damaged pickle"):
        read_torch(tmp_path / "m.pt")


@pytest.mark.parametrize("number", [10**5000, -(2**64)], ids=("huge", "65 bits"))
def test_a_whole_number_has_64_bits(number: int) -> None:
    assert parse_pickle(pickle.dumps({"a": 2**64 - 1}, 2)) == {"a": 2**64 - 1}
    with pytest.raises(ValueError, match="it has a whole number of more than 64 bits"):
        parse_pickle(pickle.dumps({"a": number}, 2))


def test_a_tensor_is_mapped(tmp_path: Path) -> None:
    found = read_torch(write(tmp_path / "m.pt", (2, 2), (2, 1)))["a"]
    assert found.to_torch().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("shape", "stride"), [((1 << 39,) * 2_000, (0,) * 2_000), ((4,), ()), ((), (1,)), ((2, 2), (1,))]
)
def test_a_shape_that_no_tensor_has_is_refused(tmp_path: Path, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="a tensor without a valid shape"):
        read_torch(write(tmp_path / "m.pt", shape, stride))


def test_numbers_before_the_beginning_of_the_file_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", (4,), (1,))
    data, shift = bytearray(path.read_bytes()), 4096
    # All offsets in the directory are counted from as far before the beginning, but that of the numbers is not.
    for at in (data.index(b"PK\x01\x02") + 42, data.index(b"PK\x05\x06") + 16):
        data[at : at + 4] = (int.from_bytes(data[at : at + 4], "little") + shift).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ModelError, match="m/data/0 does not lie within it"):
        read_torch(path)
