"""Safetensors files: where tensors may lie in them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tinychat.errors import ModelError
from tinychat.store.runs import RunFolder
from tinychat.store.weights import list_snapshots, map_tensors, pack_weights, snapshot_file


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
