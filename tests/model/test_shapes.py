"""Weights are checked against the architecture before anything is built, by both engines."""

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from tinychat.config.settings import Settings
from tinychat.errors import ModelError
from tinychat.generate.loading import open_engine
from tinychat.model.config import ModelConfig
from tinychat.model.shapes import checked_config, weight_shapes
from tinychat.model.transformer import Transformer
from tinychat.store.models import WEIGHTS, read_info, read_weights
from tinychat.store.weights import Precision, map_tensors, pack_weights, read_step

ARCHITECTURES: tuple[dict[str, Any], ...] = (
    {},
    {"ngram_order": 3, "tie_embeddings": True},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5, "position": "learned"},
    {"bias": True, "norm_affine": True, "n_kv_head": 1, "feed_forward": "swiglu", "d_ff": 24, "position": "learned"},
    {"bias": True, "norm": "rmsnorm", "norm_affine": True, "head_bias": False, "norm_position": "post"},
    {"norm": "none", "qk_norm": False, "feed_forward": "none", "output_projection": False, "head_bias": True},
    {"previous_token_embeddings": 2, "bigram_embedding": True, "final_norm": False, "n_layer": 0},
    {"n_encoder_layer": 2, "source_vocab_size": 7, "norm_affine": True, "bias": True, "position": "sinusoidal"},
    {"norm": "rmsnorm", "norm_affine": True, "qk_norm_affine": True, "d_head": 6, "qkv_bias": True, "n_kv_head": 1},
    {"norm_affine": True, "bias": True, "qkv_bias": False, "qk_norm_affine": True, "d_head": 4, "parallel": True},
)


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_names_and_shapes_are_those_of_the_weights_in_a_file(options: dict[str, Any], tmp_path: Path) -> None:
    values = {"vocab_size": 11, "context_length": 8, "n_layer": 2, "d_model": 16} | options
    config = ModelConfig.from_dict(values)
    path = tmp_path / WEIGHTS
    path.write_bytes(pack_weights(Transformer(config).state_dict(), tied=config.tie_embeddings))
    stored = {name: one.shape if one.is_floating_point else None for name, one in map_tensors(path).items()}
    assert dict(weight_shapes(config)) == stored


@pytest.fixture
def change(letters: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies a model with a changed header, architecture or weights."""

    def copy(header: Callable[[dict[str, Any]], object] | None = None, data: bytes = b"", **fields: Any) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(letters, folder)
        config = json.loads((folder / "config.json").read_text())
        config["architecture"] |= fields
        (folder / "config.json").write_text(json.dumps(config))
        old = (folder / WEIGHTS).read_bytes()
        begin = 8 + int.from_bytes(old[:8], "little")
        values = json.loads(old[8:begin])
        if header is not None:
            header(values)
        text = json.dumps(values).encode()
        (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + data + old[begin + len(data) :])
        return folder

    return copy


HUGE = [
    ({"n_layer": 4096}, "decoder.blocks.1.attention.sublayer.query.weight is missing"),
    ({"n_layer": 10**12}, "n_layer is 1000000000000"),
    ({"vocab_size": 1 << 18}, r"decoder.embedding.weight has the shape 28 × 16, not 262144 × 16"),
    ({"d_model": 1 << 14}, r"decoder.embedding.weight has the shape 28 × 16, not 28 × 16384"),
    ({"context_length": 1 << 16, "position": "learned"}, "decoder.position.table.weight is missing"),
    ({"ngram_order": 3}, "ngrams.share.weight is missing"),
    ({"n_layer": 0}, "it has no decoder.blocks.0"),
]


@pytest.mark.parametrize("engine", ["torch", "native"])
@pytest.mark.parametrize(("fields", "said"), HUGE)
def test_a_larger_architecture_is_refused_before_it_is_built(
    change: Callable[..., Path], engine: str, fields: dict[str, int], said: str, compiled: Path
) -> None:
    info = read_info(change(**fields))
    began = time.process_time()
    with pytest.raises(ModelError, match=said):
        open_engine(info, Settings(engine=engine, device="cpu", threads=1))
    assert time.process_time() - began < 1


BAD_FLOATS = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("engine", ["torch", "native"])
@pytest.mark.parametrize("value", [*BAD_FLOATS, 3e38, -3e38, 1e-45])
def test_only_weights_that_are_not_finite_are_refused(
    change: Callable[..., Path], engine: str, value: float, compiled: Path
) -> None:
    data = torch.tensor([0.5, value]).numpy().tobytes()
    info = read_info(change(data=data))
    settings = Settings(engine=engine, device="cpu", threads=1)
    if math.isfinite(value):
        open_engine(info, settings)
    else:
        with pytest.raises(ModelError, match="has weights that are NaN or infinite, in decoder"):
            open_engine(info, settings)


@pytest.mark.parametrize("value", [*BAD_FLOATS, 3e38, 1.0])
@pytest.mark.parametrize("index", [0, 3, 6])
@pytest.mark.parametrize("precision", get_args(Precision))
def test_each_weight_is_looked_at(tmp_path: Path, value: float, index: int, precision: Precision) -> None:
    before, here, after = torch.full((3,), math.inf), torch.ones(7), torch.full((3,), math.nan)
    here[index] = value
    path = tmp_path / WEIGHTS
    path.write_bytes(pack_weights({"a": before, "b": here, "c": after}, tied=False, precision=precision))
    assert map_tensors(path)["b"].is_finite() == math.isfinite(value)
    assert not map_tensors(path)["a"].is_finite()


def first(header: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of the first tensor."""
    entry: dict[str, Any] = next(values for name, values in header.items() if name != "__metadata__")
    return entry


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "float offsets": (lambda header: first(header).update(data_offsets=[0.0, 1792.0]), "no valid offsets"),
    "one offset": (lambda header: first(header).update(data_offsets=[0]), "no valid offsets"),
    "offsets outside": (lambda header: first(header).update(data_offsets=[10**9, 10**9 + 1792]), "does not lie within"),
    "no number": (lambda header: first(header).update(shape=["x"]), "no valid shape"),
    "boolean": (lambda header: first(header).update(shape=[True, 28]), "no valid shape"),
    "negative": (lambda header: first(header).update(shape=[-28, -16]), "no valid shape"),
    "dimensions": (lambda header: first(header).update(shape=[2**62] * 100_000), "no valid shape"),
    "dtype": (lambda header: first(header).update(dtype="F8"), "is of type F8, not one of F32, F16, BF16"),
    "dtype is a list": (lambda header: first(header).update(dtype=[]), "is of type"),
    "no object": (lambda header: header.update(x=5), "x is of type None"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_header_is_an_error(change: Callable[..., Path], damage: str) -> None:
    header, said = DAMAGES[damage]
    info = read_info(change(header))
    with pytest.raises(ModelError, match=said):
        read_weights(info)


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "nothing", "array"])
def test_what_is_no_file_of_weights_is_refused(letters: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(letters, folder)
    path = folder / WEIGHTS
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "array":
        path.write_bytes((2).to_bytes(8, "little") + b"[]")
    elif kind != "nothing":
        path.symlink_to({"loop": path.name, "device": "/dev/zero"}[kind])
    with pytest.raises(ModelError, match="cannot be read: "):
        checked_config(read_info(folder))
    assert read_step(path) is None
