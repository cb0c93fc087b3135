"""The choice of the precision with `--precision auto`."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.generate.loading import open_engine
from tinychat.generate.native import build, engine
from tinychat.generate.native.engine import NativeEngine
from tinychat.model import precision
from tinychat.store.models import TRAINING, ModelInfo, read_info


@pytest.fixture(autouse=True)
def bytes_are_multiplied(native: None) -> None:
    if build.levels_here()[0] == "plain":
        pytest.skip("this processor has no products of bytes")


@pytest.fixture
def info(letters: Path, tmp_path: Path) -> ModelInfo:
    """Return a model of 10,000 parameters that counts as a large one, with validation tokens."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in letters.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    write_training_record(folder, validation_ids=[[1, 2, 3, 4, 5, 6, 7, 8] * 9])
    return dataclasses.replace(read_info(folder), parameters=precision.MIN_PARAMETERS + 1)


def write_training_record(folder: Path, **training: Any) -> None:
    (folder / TRAINING).write_text(json.dumps(training), encoding="utf-8")


def test_int8_is_used_if_the_loss_hardly_increases(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.choose_precision(info, 1) == "int8"
    monkeypatch.setattr(precision, "MAX_PERPLEXITY_INCREASE", -0.5)
    assert engine.choose_precision(info, 1) == "f32"


def test_losses_are_measured_once_for_the_same_weights(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.choose_precision(info, 1) == "int8"
    measured: list[str] = []

    class Counted(NativeEngine):
        def __init__(self, info: ModelInfo, threads: int, *, precision: str) -> None:
            measured.append(precision)
            super().__init__(info, threads, precision=precision)

    monkeypatch.setattr(engine, "NativeEngine", Counted)
    assert engine.choose_precision(info, 1) == "int8"
    assert not measured
    os.utime(info.weights_file, ns=(0, 0))
    assert engine.choose_precision(info, 1) == "int8"
    assert measured == ["f32", "int8"]


@pytest.mark.parametrize("ids", [None, [], [[1]], [1, 2], "text", [[1, "2"]]])
def test_a_model_without_validation_tokens_stays_in_f32(info: ModelInfo, ids: Any) -> None:
    write_training_record(info.folder, validation_ids=ids)
    assert engine.choose_precision(info, 1) == "f32"


def test_of_many_validation_tokens_only_the_first_are_scored(info: ModelInfo) -> None:
    documents = [[index % 28] * 7 for index in range(1_000)]
    write_training_record(info.folder, validation_ids=[*documents, [1] * 100_000])
    found = engine.read_validation_documents(info)
    assert found == [*documents[:285], [285 % 28] * 5]
    assert sum(map(len, found)) == 2_000
    write_training_record(info.folder, validation_ids=[[1] * 100_000])
    assert engine.read_validation_documents(info) == [[1] * 2_000]


def test_a_model_stays_in_f32_without_integer_dot_products(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "levels_here", lambda: ["plain"])
    assert engine.choose_precision(info, 1) == "f32"


def test_a_small_model_and_one_in_training_stay_in_f32(info: ModelInfo) -> None:
    assert engine.choose_precision(dataclasses.replace(info, parameters=precision.MIN_PARAMETERS), 1) == "f32"
    assert engine.choose_precision(dataclasses.replace(info, snapshot=info.weights_file), 1) == "f32"


def test_the_setting_is_obeyed(info: ModelInfo) -> None:
    for setting, expected in {"auto": "int8", "f32": "f32", "bf16": "bf16", "int8": "int8"}.items():
        engine = open_engine(info, Settings(precision=setting, engine="native"))
        assert isinstance(engine, NativeEngine)
        assert engine.precision == expected
    for settings in (Settings(precision="int8", engine="torch"), Settings(precision="int8", device="cuda")):
        with pytest.raises(UsageError, match="int8"):
            open_engine(info, settings)
