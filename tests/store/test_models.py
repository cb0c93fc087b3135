"""Model folders: saving, lookup by name, and errors."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tinychat.errors import ModelError, TokenizerError
from tinychat.model.loading import list_parts, load_model
from tinychat.store import paths
from tinychat.store.models import (
    SOURCE_TOKENIZER,
    find_model,
    list_models,
    read_info,
    read_source_tokenizer,
    read_tokenizer,
    read_tokenizers,
    read_training,
)


def test_saving_and_loading_preserves_a_model(letters: Path) -> None:
    info = read_info(letters)
    model = load_model(info)
    assert (info.name, info.mode, info.tokenizer_kind, info.parameters) == (
        "letters",
        "completion",
        "char",
        model.parameter_count,
    )
    assert model.config.to_dict() == info.architecture
    assert not model.training
    assert read_tokenizer(letters).vocab_size == model.config.vocab_size
    assert read_training(letters) == {}
    assert sum(part.parameters for part in list_parts(info.architecture)) == info.parameters


def test_the_folder_holds_no_executable_files(letters: Path) -> None:
    names = {path.name for path in letters.iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "training.json", "README.md"}


def test_names_are_looked_up_nearest_first(
    letters: Path, chatter: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own, near = paths.models_folder() / "m", tmp_path / "models" / "m"
    shutil.copytree(letters, own)
    assert find_model("m").resolve() == own
    shutil.copytree(chatter, near)
    assert find_model("m").resolve() == near
    assert find_model(str(own)) == own
    running = paths.runs_folder() / "r" / "model"
    shutil.copytree(letters, running)
    assert find_model("r") == running
    assert next(info for info in list_models() if info.folder.name == "m").mode == "chat"


@pytest.mark.parametrize("name", ["nowhere", "", "../x", "."])
def test_a_missing_model_is_an_error(name: str) -> None:
    with pytest.raises(ModelError):
        find_model(name)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", "{", "is no JSON"),
        ("config.json", "[]", "holds no object"),
        ("config.json", "{}", "cannot be read"),
        ("config.json", '{"format": 99}', "has format 99"),
        ("model.safetensors", "garbage", "cannot be read"),
        ("model.safetensors", "", "cannot be read"),
    ],
)
def test_a_damaged_model_is_an_error(letters: Path, tmp_path: Path, file: str, content: str, said: str) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(letters, folder)
    (folder / file).write_text(content)
    with pytest.raises(ModelError, match=said):
        load_model(read_info(folder))


def test_weights_of_another_architecture_are_refused(letters: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(letters, folder)
    config = json.loads((folder / "config.json").read_text())
    config["architecture"]["d_model"] = 32
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="do not fit"):
        load_model(read_info(folder))


def test_bf16_weights_load_as_f32(letters: Path, tmp_path: Path) -> None:
    from tinychat.store.models import read_weights, save_model

    info = read_info(letters)
    save_model(replace(info, folder=tmp_path / "half"), read_weights(info), read_tokenizer(letters), bf16=True)
    whole, half = load_model(info), load_model(read_info(tmp_path / "half"))
    assert half.head.weight.dtype is torch.float32
    torch.testing.assert_close(half.head.weight, whole.head.weight.bfloat16().float())


def test_a_tokenizer_with_ids_that_the_model_does_not_know_is_refused(letters: Path) -> None:
    info = read_info(letters)
    tokenizer, source = read_tokenizers(info)
    assert tokenizer is source
    vocab_size = info.architecture["vocab_size"]
    assert tokenizer.vocab_size == vocab_size
    read_tokenizers(replace(info, architecture=info.architecture | {"vocab_size": vocab_size + 1}))
    smaller = replace(info, architecture=info.architecture | {"vocab_size": vocab_size - 1})
    with pytest.raises(TokenizerError, match=f"ids up to {vocab_size - 1}, and the model has {vocab_size - 1} tokens"):
        read_tokenizers(smaller)
    encoder = info.architecture | {"source_vocab_size": vocab_size - 1}
    with pytest.raises(TokenizerError, match="ids up to"):
        read_tokenizers(replace(info, mode="translation", architecture=encoder))


def test_a_pipe_in_a_tokenizers_place_is_refused(letters: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(letters, folder)
    os.mkfifo(folder / SOURCE_TOKENIZER)
    with pytest.raises(TokenizerError, match="named pipe"):
        read_source_tokenizer(folder)
