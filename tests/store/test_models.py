"""Model folders: saving, lookup by name, and errors."""

import json
import os
import re
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
    read_card,
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
    assert next(info for info in list_models().sound if info.folder.name == "m").mode == "chat"


@pytest.mark.parametrize("name", ["nowhere", "", "../x", ".", "x" * 5000, "~nobody/x", "x\0y"])
def test_a_missing_model_is_an_error(name: str) -> None:
    with pytest.raises(ModelError):
        find_model(name)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", "{", "is damaged: no JSON at column 2"),
        ("config.json", "[]", "holds no object"),
        ("config.json", "{}", "lacks format, mode, architecture, tokenizer, parameters"),
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


DAMAGES = {
    "template": ('"template": 5', "template is 5, not an object"),
    "user": ('"template": {"user": 5}', "user of the template must be text"),
    "end ids": ('"end_ids": [1, "x"]', 'end_ids is \\[1, "x"], not a list of ids'),
    "jinja": ('"template": {"jinja": 5}', "a template has `jinja`, a text"),
    "unknown role": ('"template": {"robot": "x"}', "the template has no field 'robot'"),
    "name": ('"name": 5', "name is 5, not text"),
    "description": ('"description": ["x"]', 'description is \\["x"], not text'),
    "boolean": ('"parameters": true', "parameters is true, not a whole number"),
    "negative": ('"parameters": -1', "parameters is -1, which is negative"),
    "infinite": ('"parameters": Infinity', "Infinity is no number of JSON"),
    "huge": ('"parameters": 1' + "0" * 400, "the number 1000000000… of 401 digits does not fit in 64 bits"),
    "architecture": ('"architecture": [["d_model", 16]]', "architecture is .*, not an object"),
    "mode": ('"mode": {}', "mode is {}, not one of"),
    "setting": ('"settings": {"temperature": "hot"}', "temperature takes a number from 0 to 100, not 'hot'"),
    "unknown setting": ('"settings": {"heat": 1}', "there is no setting 'heat'"),
    "settings": ('"settings": 1', "settings is 1, not an object"),
    "deep": ('"name": ' + "[" * 100_000, "nested more than 64 deep"),
    "twice": ('"x": 1, "x": 2', "it has the key 'x' twice"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_never_hides_others(letters: Path, damage: str) -> None:
    text, said = DAMAGES[damage]
    good, bad = paths.models_folder() / "good", paths.models_folder() / "bad"
    shutil.copytree(letters, good)
    shutil.copytree(letters, bad)
    fields = json.loads((bad / "config.json").read_text())
    fields.pop(text.split('"')[1], None)
    (bad / "config.json").write_text(f"{json.dumps(fields)[:-1]}, {text}}}")
    with pytest.raises(ModelError, match=said):
        read_info(find_model("bad"))
    found = list_models()
    assert good in [info.folder for info in found.sound]
    [one] = found.damaged
    assert (one.name, one.folder) == ("bad", bad)
    assert re.search(said, one.error)


@pytest.mark.parametrize("name", ["config.json", "training.json", "README.md"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device"])
def test_what_is_no_file_is_never_read(letters: Path, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(letters, folder)
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"loop": path.name, "device": "/dev/zero"}[kind])
    read = {"config.json": read_info, "training.json": read_training, "README.md": read_card}[name]
    with pytest.raises(ModelError, match=f"{name} cannot be read: (it is a|Too many levels)"):
        read(find_model(str(folder)))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"recipe": []}, r"recipe is \[\], not an object"),
        ({"recipe": {"data": {"sources": [5]}}}, r"recipe.data.sources is \[5\], not a list of texts"),
        ({"data": None}, "data is null, not an object"),
        ({"data": {"tokens": "x"}}, 'data.tokens is "x", not a number'),
        ({"from": {"name": 1}}, "from.name is 1, not text"),
        ({"curve": {"training": [[1, "x"]]}}, "curve.training is .*, not a list of pairs of numbers"),
        ({"seconds": "x"}, 'seconds is "x", not a number'),
        ({"loss": [1.0, 2.0]}, r"loss is \[1.0, 2.0\], not a number"),
        ({"data": {"val_fraction": -1e308}}, r"data.val_fraction is -1e\+308, not a number from 0 to 1"),
    ],
)
def test_a_damaged_record_of_training_is_an_error(tmp_path: Path, values: dict[str, object], said: str) -> None:
    (tmp_path / "training.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match=f"training.json is damaged: {said}"):
        read_training(tmp_path)


def test_neither_drafts_nor_hidden_folders_are_listed_and_the_nearest_of_a_name_is(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(letters, paths.models_folder() / "m")
    shutil.copytree(letters, paths.models_folder() / ".m.123-abc.tmp")
    (tmp_path / "models" / "m").mkdir(parents=True)
    (tmp_path / "models" / "m" / "config.json").write_text("{")
    found = list_models()
    assert [one.folder for one in found.damaged] == [Path("models/m")]
    assert not {"m", ".m.123-abc.tmp"} & {info.folder.name for info in found.sound}


def test_a_copy_is_listed_by_the_name_that_opens_it(letters: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(letters, paths.models_folder() / name)
    assert {"a", "b"} <= {info.name for info in list_models().sound}
    assert letters.name not in {info.name for info in list_models().sound}


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
    save_model(replace(info, folder=tmp_path / "half"), read_weights(info), read_tokenizer(letters), precision="bf16")
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
