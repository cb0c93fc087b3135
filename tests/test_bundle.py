"""The program that makes bundled models: what it measures and asks is written down with the model."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tinychat.cli.main import run
from tinychat.store.models import find_model, read_card, read_training
from tinychat.train.__main__ import main
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import list_recipes, load_recipe

PROGRAM = Path(__file__).parent.parent / "models" / "bundle.py"


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bundle", module)
    spec.loader.exec_module(module)
    return module


def test_each_model_has_a_recipe_that_names_its_corpus(bundle: ModuleType) -> None:
    assert set(bundle.MODELS) <= {recipe.name for recipe in list_recipes()}
    for name, bundled in bundle.MODELS.items():
        assert load_recipe(name).sources == (bundled.corpus,)
        assert load_recipe(name).description
        assert (load_recipe(name).minutes or 99) <= 40


def test_a_model_takes_the_place_of_the_one_before(
    bundle: ModuleType, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "HOME", tmp_path / "home")
    monkeypatch.setattr(bundle, "describe", lambda name, folder: (folder / "described").touch())
    monkeypatch.setitem(bundle.MODELS, "toy", bundle.Bundled("phrases", "held-out.tsv", ()))

    def export(*words: str | Path) -> None:
        if words[0] == "export":
            assert run([*map(str, words)]) == 0

    monkeypatch.setattr(bundle, "tinychat", export)
    old = tmp_path / "models" / "toy"
    old.mkdir(parents=True)
    (old / "left.txt").touch()
    monkeypatch.setattr(sys, "argv", ["bundle.py", "toy", "--trained", str(letters), "--out", str(old.parent)])
    bundle.main()
    bundle.main()
    assert {file.name for file in old.iterdir()} >= {"config.json", "described", "model.safetensors"}
    assert not (old / "left.txt").exists()


@pytest.mark.slow
@pytest.mark.long
def test_what_is_measured_and_said_is_written_down(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.tsv").write_text("let's go\tir vamos\nlove you\tte amo\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundle, "HOME", tmp_path / "home")
    toy = bundle.Bundled(str(tmp_path), "pairs.tsv", ("let's go", "love you"), ("love you",))
    monkeypatch.setitem(bundle.MODELS, "toy", toy)
    trained = prepare_run(load_recipe("translation").merged({"threads": 1}), recipe_name="translation")
    assert main([str(trained.path)]) == 0
    folder = find_model("translation")
    bundle.describe("toy", folder)
    training, card = read_training(folder), read_card(folder)
    assert training["held_out"]["exact_match"] == 1
    assert training["greedy"]["answers"] == [["let's go", "ir vamos"], ["love you", "te amo"]]
    assert "| exact match | 100.0 % of the pairs, translated greedily |" in card
    assert "    love you\n    → te amo\n" in card
    assert "Seed 10, from “love you”:" in card
    bundle.describe("toy", folder)
    assert read_card(folder) == card
    assert json.dumps(read_training(folder)) == json.dumps(training)
