"""Models and runs are removed and renamed, together, and nothing else is."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tinychat.commands.registry import for_the_prompt
from tinychat.errors import ModelError, RunError, UsageError
from tinychat.events import Ended, to_json
from tinychat.store.housekeeping import (
    check_new_name,
    count_bytes,
    find_own,
    find_taken,
    read_file_facts,
    remove,
    rename,
)
from tinychat.store.models import find_model, read_info, read_training
from tinychat.store.runs import RunFolder, find_run

Make = Callable[[str], RunFolder]


@pytest.fixture
def make(home: Path, letters: Path) -> Make:
    """Makes a run and its model, as training does."""

    def make(name: str) -> RunFolder:
        run = RunFolder(home / "runs" / name)
        run.checkpoints.mkdir(parents=True)
        recipe = f'[data]\nsources = ["{run.path}/stdin.txt", "/texts/{name}.txt"]\n'
        run.recipe_file.write_text(recipe)
        for folder in (run.model, home / "models" / name):
            shutil.copytree(letters, folder)
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps(config | {"name": name}))
            data = {"sources": [f"{run.path}/stdin.txt"]}
            (folder / "training.json").write_text(json.dumps({"run": name, "loss": 1.5, "recipe": {"data": data}}))
            (folder / "README.md").write_text(f"# {name}\n\nA model.\n\n    tinychat -m {name}\n")
        return run

    return make


def test_a_model_is_removed_with_its_run(home: Path, make: Make) -> None:
    for name in ("Novel", "other"):
        make(name)
    own = find_own("novel")
    assert str(own) == "the model and the run 'Novel'"
    assert own.bytes == count_bytes(home / "models" / "Novel") + count_bytes(home / "runs" / "Novel")
    remove(own)
    assert [path.name for path in home.rglob("*") if path.parent.name in ("models", "runs")] == ["other", "other"]


def test_a_link_is_removed_and_what_it_points_to_stays(home: Path, letters: Path) -> None:
    (home / "models").mkdir()
    (home / "models" / "link").symlink_to(letters)
    with pytest.raises(UsageError, match="is a symbolic link"):
        check_new_name(find_own("link"), "new")
    remove(find_own("link"))
    assert list((home / "models").iterdir()) == []
    assert (letters / "config.json").exists()


def test_nothing_is_written_where_a_link_points_to(home: Path, tmp_path: Path) -> None:
    (home / "runs").mkdir()
    (tmp_path / "run").mkdir()
    for name, target in (("gone", tmp_path / "moved" / "away"), ("there", tmp_path / "run")):
        (home / "runs" / name).symlink_to(target)
        remove(find_own(name))
    assert list((home / "runs").iterdir()) == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "run"]


def test_a_link_to_a_run_that_trains_stays(home: Path, tmp_path: Path) -> None:
    (home / "runs").mkdir()
    (tmp_path / "run").mkdir()
    link = home / "runs" / "link"
    link.symlink_to(tmp_path / "run")
    own = find_own("link")
    with RunFolder(tmp_path / "run").lock(), pytest.raises(RunError, match="link is training"):
        remove(own)
    assert link.is_symlink()


def test_only_what_is_in_the_data_folder_is_found(make: Make, letters: Path, tmp_path: Path) -> None:
    make("mine")
    for name, problem, remedy in (
        ("smalltalk", "smalltalk comes with tinychat, and stays as it is", "see `tinychat models`"),
        (str(letters), f"{letters} is not in ", "only what is there is removed or renamed"),
        ("nobody", "you have no model or run 'nobody'", "yours: mine"),
        ("../runs/mine", "you have no model or run '../runs/mine'", "yours: mine"),
        ("", "you have no model or run ''", "yours: mine"),
    ):
        with pytest.raises(ModelError) as caught:
            find_own(name)
        assert caught.value.problem.startswith(problem)
        assert caught.value.remedy == remedy


@pytest.mark.slow
def test_a_run_that_trains_stays(make: Make) -> None:
    run = make("mine")
    own = find_own("mine")
    with run.lock():
        for act in (lambda: find_own("mine"), lambda: remove(own), lambda: rename(own, "new")):
            with pytest.raises(RunError, match="mine is training") as caught:
                act()
            assert caught.value.remedy == (
                "end it first: `/finish mine` in the REPL, or q in `tinychat train --resume mine`"
            )
            assert for_the_prompt(caught.value.remedy) == "end it first: `/finish mine`, or q in `/train --resume mine`"
    assert find_run("mine").model.is_dir()


def test_a_new_name_is_written_into_the_files(home: Path, make: Make) -> None:
    make("novel")
    own = find_own("novel")
    renamed = rename(own, check_new_name(own, "My Novel"))
    assert renamed.folders == [home / "models" / "My Novel", home / "runs" / "My Novel"]
    assert find_taken("novel") is None
    run = find_run("my novel")
    assert run.recipe_file.read_text().split('"')[1::2] == [f"{run.path}/stdin.txt", "/texts/novel.txt"]
    for folder in (find_model("my novel"), run.model):
        assert read_info(folder).name == "My Novel"
        training = read_training(folder)
        assert (training["run"], training["recipe"]["data"]["sources"]) == ("My Novel", [f"{run.path}/stdin.txt"])
        card = "# My Novel\n\nA model.\n\n    tinychat -m 'My Novel'\n"
        assert (folder / "README.md").read_text() == card


def test_the_last_event_of_a_renamed_run_names_the_folder_of_its_model(home: Path, make: Make) -> None:
    run = make("novel")
    sample = f'"folder": "{home / "models" / "novel"}" is what a model may say'
    ended = Ended("done", 9, 1.5, 4.5, 2.2, 60.0, str(run.final_folder), samples=(sample,))
    run.earlier.mkdir()
    for folder in (run.path, run.earlier):
        (folder / run.events_file.name).write_text(f'{to_json(ended)}\n{{"eve')  # the last line is incomplete
    rename(find_own("novel"), "My Novel")
    run = find_run("My Novel")
    renamed = replace(ended, folder=str(find_model("My Novel")))
    assert list(run.events()) == [renamed]
    run.restore_earlier()
    assert list(run.events()) == [renamed]


def test_the_last_event_of_a_renamed_run_keeps_a_folder_elsewhere(make: Make, tmp_path: Path) -> None:
    ended = Ended("done", 9, 1.5, 4.5, 2.2, 60.0, str(tmp_path / "novel"))
    make("novel").events_file.write_text(f"{to_json(ended)}\n")
    rename(find_own("novel"), "other")
    assert list(find_run("other").events()) == [ended]


def test_a_new_name_is_written_into_the_recipe_that_may_be_restored(make: Make) -> None:
    run = make("novel")
    run.earlier.mkdir()
    shutil.copy(run.recipe_file, run.earlier)
    rename(find_own("novel"), "other")
    run = find_run("other")
    run.restore_earlier()
    assert run.recipe_file.read_text().split('"')[1::2] == [f"{run.path}/stdin.txt", "/texts/novel.txt"]


def test_a_new_name_must_be_valid_and_free(home: Path, make: Make) -> None:
    make("one")
    make("two")
    own = find_own("one")
    for name, error, problem in (
        ("Two", RunError, "there is a run or a model 'two' already"),
        ("Tales", RunError, "there is a run or a model 'tales' already"),  # a bundled one
        ("one", UsageError, "'one' is its name already"),
        ("a/b", UsageError, "'a/b' cannot be a name: it has '/'"),
    ):
        with pytest.raises(error) as caught:
            check_new_name(own, name)
        assert caught.value.problem == problem
    assert rename(own, check_new_name(own, "One")).name == "One"
    assert sorted(path.name for path in (home / "runs").iterdir()) == ["One", "two"]


def test_facts_about_the_files_of_a_model(home: Path, make: Make) -> None:
    make("mine")
    facts = read_file_facts(read_info(find_model("mine")))
    assert facts.date is not None
    assert (facts.bytes, facts.loss) == (count_bytes(home / "models" / "mine"), 1.5)
    assert read_file_facts(read_info(find_model("smalltalk"))).date is None
    (home / "models" / "mine" / "training.json").write_text("[")
    assert read_file_facts(read_info(find_model("mine"))).loss is None


def test_a_run_that_got_the_name_meanwhile_stays(home: Path, make: Make) -> None:
    make("one")
    own = find_own("one")
    name = check_new_name(own, "two")
    make("two")  # while the person reads the question
    with pytest.raises(RunError, match="there is a run or a model 'two' already"):
        rename(own, name)
    assert find_run("two").model.is_dir()
    assert find_own("one").name == "one"


def test_a_run_whose_name_differs_in_case_alone_stays(make: Make) -> None:
    make("Baz")
    make("baz")
    with pytest.raises(RunError, match="there is a run or a model 'baz' already"):
        check_new_name(find_own("Baz"), "baz")


@pytest.mark.parametrize("damaged", ["recipe.toml", "model/training.json"])
def test_nothing_is_renamed_by_half(home: Path, make: Make, damaged: str) -> None:
    run = make("one")
    (run.path / damaged).write_text("[")
    own = find_own("one")
    with pytest.raises((RunError, ModelError), match="one/"):
        rename(own, check_new_name(own, "two"))
    for folder in (run.model, home / "models" / "one"):
        assert read_info(folder).name == "one"


def test_a_file_is_no_model_of_ones_own(home: Path, make: Make) -> None:
    make("mine")
    (home / "models" / "llama.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError):
        find_own("llama.gguf")
    (home / "models" / "gone").symlink_to(home / "nowhere")
    remove(find_own("gone"))
    assert sorted(path.name for path in (home / "models").iterdir()) == ["llama.gguf", "mine"]
