"""A model folder that another process replaces: each opening finds one version of it, whole."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tinychat.atomic import atomic_folder
from tinychat.cli.main import run
from tinychat.config.settings import Settings, SettingStore
from tinychat.generate.loading import open_engine
from tinychat.session.open_model import OpenModel
from tinychat.store import models
from tinychat.store.models import read_info, read_weights
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import Recipe


@pytest.mark.slow
def test_every_opening_finds_a_whole_model(letters: Path, chatter: Path, tmp_path: Path, compiled: Path) -> None:
    folder = tmp_path / "model"
    program = Path(__file__).with_name("replaced.py")
    call = [sys.executable, str(program), str(folder), str(letters), str(chatter)]
    sizes = {read_info(one).name: read_info(one).architecture["vocab_size"] for one in (letters, chatter)}
    settings = Settings(engine="native", threads=1)
    found = Counter[str]()
    with subprocess.Popen(call, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        while not (folder / "config.json").exists():
            assert process.poll() is None
        for _ in range(60):
            model = OpenModel(str(folder), SettingStore())
            engine = open_engine(model.info, settings)
            size = sizes[model.name]
            assert model.info.architecture["vocab_size"] == model.tokenizer.vocab_size == size
            assert model.source_tokenizer is model.tokenizer
            assert engine.context_length == 32
            assert read_weights(model.info)["head.weight"].shape == (size, 16)
            found[model.name] += 1
        process.stdin.close()
    assert min(found.values()) > 3
    assert len(found) == 2


@pytest.mark.parametrize(
    "command",
    [
        "eval model text.txt --split all", "show model --json", "export model --to tinychat --out written",
        "import model --name model --out written", "train",
    ],
)  # fmt: skip
def test_a_model_that_is_replaced_after_its_config_was_read_is_the_old_one(
    command: str,
    letters: Path,
    chatter: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("hello there, how are you")
    model, written, read_json = tmp_path / "model", tmp_path / "written", models.read_json

    def read_and_replace(file: Any, limit: int, **options: Any) -> Any:
        values = read_json(file, limit, **options)
        monkeypatch.setattr(models, "read_json", read_json)
        with atomic_folder(model) as draft:
            shutil.copytree(chatter, draft, dirs_exist_ok=True)
        return values

    def call() -> tuple[str, dict[str, bytes]]:
        if command == "train":
            folder = prepare_run(Recipe(sources=("text.txt",), from_model="./model")).base_model
        else:
            folder = written
            assert run(command.split()) == 0, capsys.readouterr().err
        files = {path.name: path.read_bytes() for path in folder.glob("*")}
        shutil.rmtree(written, ignore_errors=True)
        return capsys.readouterr().out, files

    shutil.copytree(letters, model)
    undisturbed = call()
    assert any(undisturbed)
    monkeypatch.setattr(models, "read_json", read_and_replace)
    assert call() == undisturbed
    assert read_info(model).name == "chatter"
