"""Safetensors files: where tensors may lie in them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from tinychat.errors import ModelError
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots, map_tensors, pack_weights, snapshot_file

UP = "decoder.blocks.0.feed_forward.sublayer.up.weight"


def write(path: Path, tensors: dict[str, tuple[int, int]]) -> Path:
    """Write a file of bytes 0, 1, 2, … as tensors of type U8, each from an index to another."""
    header: dict[str, Any] = {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, (begin, end) in tensors.items()
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(range(max(end for _, end in tensors.values()))))
    return path


@pytest.mark.parametrize("b", [(0, 8), (4, 8), (7, 12), (0, 12)])
def test_tensors_that_share_bytes_are_refused(tmp_path: Path, b: tuple[int, int]) -> None:
    path = write(tmp_path / "x.safetensors", {"c": (12, 16), "a": (0, 8), "b": b})
    with pytest.raises(ModelError, match=r"[ab] overlaps another tensor"):
        map_tensors(path)


def test_empty_tensors_may_lie_anywhere(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.safetensors", {"a": (0, 4), "b": (4, 8), "c": (4, 4), "d": (0, 0), "e": (8, 8), "f": (2, 2)}
    )
    assert {name: tensor.to_numpy().tolist() for name, tensor in map_tensors(path).items()} == {
        "a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "c": [], "d": [], "e": [], "f": [],
    }  # fmt: skip


def test_our_own_files_of_tied_and_empty_weights_are_read(tmp_path: Path) -> None:
    embedding = torch.ones(3, 2)
    weights = {"decoder.embedding.weight": embedding, "head.weight": embedding, "empty": torch.ones(0, 2)}
    path = tmp_path / "x.safetensors"
    path.write_bytes(pack_weights(weights, tied=True))
    assert {name: tensor.shape for name, tensor in map_tensors(path).items()} == {
        "decoder.embedding.weight": (3, 2), "empty": (0, 2),
    }  # fmt: skip


@pytest.mark.parametrize("columns", [1, 63, 64, 130])
def test_matrices_in_int8_stand_for_steps_of_their_largest_weights(tmp_path: Path, columns: int) -> None:
    torch.manual_seed(1)
    name, matrix, path = UP, torch.randn(3, columns), tmp_path / "x.safetensors"
    matrix[1, :64] = 0
    path.write_bytes(pack_weights({name: matrix, "table": matrix}, tied=False, precision="int8"))
    tensors = map_tensors(path)
    assert list(tensors) == ["table", name] or list(tensors) == [name, "table"]
    assert tensors["table"].to_torch().equal(matrix.half())
    stored = tensors[name].to_torch()
    for begin in range(0, columns, 64):
        group, got = matrix[:, begin : begin + 64], stored[:, begin : begin + 64]
        largest = group.abs().amax(1, keepdim=True)
        assert ((got - group).abs() <= largest / 127 / 2 * 1.0001).all()
        assert got.abs().amax(1, keepdim=True).equal(largest)
    path.write_bytes(pack_weights({name: stored}, tied=False, precision="int8"))
    assert map_tensors(path)[name].to_torch().equal(stored)


@pytest.mark.parametrize("name", ["decoder.embedding", "encoder.earlier.11", "decoder.pairs"])
def test_tables_of_embeddings_are_in_int8(tmp_path: Path, name: str) -> None:
    path, name = tmp_path / "x.safetensors", f"{name}.weight"
    table = torch.randn(7, 100, generator=torch.Generator().manual_seed(1))
    path.write_bytes(pack_weights({name: table}, tied=False, precision="int8"))
    stored = map_tensors(path)[name]
    assert stored.largest is not None
    assert (stored.to_torch() - table).abs().max() <= table.abs().max() / 127 / 2 * 1.0001


def test_an_embedding_that_is_the_head_is_not_in_int8(tmp_path: Path) -> None:
    path, matrix = tmp_path / "x.safetensors", torch.ones(7, 10)
    names = ("decoder.embedding.weight", "head.weight", "encoder.embedding.weight")
    path.write_bytes(pack_weights(dict.fromkeys(names, matrix), tied=True, precision="int8"))
    tensors = map_tensors(path)
    assert "head.weight" not in tensors
    assert tensors["decoder.embedding.weight"].dtype == "F16"
    assert tensors["encoder.embedding.weight"].largest is not None


def write_int8(path: Path, name: str, largest: "torch.Tensor | None") -> Path:
    tensors = {name: torch.ones(2, 65, dtype=torch.int8)} | ({} if largest is None else {f"{name}.largest": largest})
    path.write_bytes(save(tensors))
    return path


@pytest.mark.parametrize(
    ("name", "largest", "error"),
    [
        (UP, None, "is of type I8"),
        ("head.weight", torch.ones(2, 2), "is of type I8"),
        ("decoder.position.table.weight", torch.ones(2, 2), "is of type I8"),  # the kernel reads it as numbers
        (UP, torch.ones(2, 1), "has not one largest weight for each 64 columns of a row"),
        (UP, torch.ones(4), "has not one largest weight for each 64 columns of a row"),
        (UP, torch.ones(2, 2, dtype=torch.float16), "is of type I8"),
        (UP, torch.ones(2, 2, dtype=torch.float64), "is of type (I8|F64)"),
    ],
)
def test_int8_without_its_largest_weights_is_refused(
    tmp_path: Path, name: str, largest: "torch.Tensor | None", error: str
) -> None:
    path = write_int8(tmp_path / "x.safetensors", name, largest)
    with pytest.raises(ModelError, match=error):
        map_tensors(path)
    if error.startswith("is of type"):  # as in files of other tools
        assert name not in map_tensors(path, skip_unsupported=True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_largest_weights_that_are_not_finite_are_found(tmp_path: Path, bad: float) -> None:
    largest = torch.ones(2, 2)
    assert map_tensors(write_int8(tmp_path / "x.safetensors", UP, largest))[UP].is_finite()
    largest[1, 1] = bad
    assert not map_tensors(write_int8(tmp_path / "y.safetensors", UP, largest))[UP].is_finite()


def test_no_step_goes_beyond_the_largest_weight(tmp_path: Path) -> None:
    steps = torch.full((1, 3), -128, dtype=torch.int8)
    (tmp_path / "x.safetensors").write_bytes(save({UP: steps, f"{UP}.largest": torch.full((1, 1), 3.4e38)}))
    assert not map_tensors(tmp_path / "x.safetensors")[UP].is_finite()


def test_a_group_of_tiny_weights_is_zero_in_int8(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(pack_weights({UP: torch.tensor([[1e-38, -1e-39], [1.0, 1e-38]])}, tied=False, precision="int8"))
    assert map_tensors(path)[UP].to_torch().tolist() == [[0, 0], [1, 0]]


def test_only_snapshots_are_listed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.snapshots.mkdir()
    for step in (16, 3):
        snapshot_file(run, step).touch()
    for stray in ("step-00000003 copy", "step-", "old step-00000003", "step-x"):
        (run.snapshots / f"{stray}.safetensors").touch()
    assert [(found.step, found.path) for found in list_snapshots(run)] == [
        (step, snapshot_file(run, step)) for step in (3, 16)
    ]
