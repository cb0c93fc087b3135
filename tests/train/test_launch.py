"""Runs are prepared so that they can resume later, from any working directory."""

import io
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tinychat.errors import RunError, SourceError, TinychatError, UsageError
from tinychat.events import Ended, Event, Failed, Stepped, to_json
from tinychat.store import paths
from tinychat.store.models import find_model
from tinychat.store.runs import RunFolder
from tinychat.train.launch import (
    ALONE,
    ProcessRank,
    become_worker,
    change_recipe,
    describe_done,
    find_process_rank,
    launch,
    name_for,
    prepare_run,
    resume_run,
)
from tinychat.train.recipe import Recipe, load_recipe


@pytest.fixture(autouse=True)
def novel(tmp_path: Path) -> Path:
    path = tmp_path / "novel.txt"
    path.write_text("once upon a time")
    return path


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("texts/My Novel.txt", "my-novel"),
        ("tinyshakespeare", "tinyshakespeare"),
        ("notes", "notes"),
        ("notes/*.md", "notes"),
        ("archive.txt.gz", "archive"),
        ("-", "stdin"),
        ("Война и мир.txt", "война-и-мир"),
        ("...", "model"),
    ],
)
def test_a_run_is_named_after_its_first_source(source: str, name: str) -> None:
    assert name_for((source, "other.txt")) == name


def test_the_recipe_of_a_new_run_has_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.md").write_text("text")
    run = prepare_run(load_recipe().merged({"sources": ["novel.txt", "notes/*.md", "tinyshakespeare"]}))
    assert run.path == paths.runs_folder() / "novel"
    saved = load_recipe(run.recipe_file)
    assert saved.sources == (str(tmp_path / "novel.txt"), str(tmp_path / "notes" / "*.md"), "tinyshakespeare")
    assert run.final_folder == paths.models_folder() / "novel"
    assert not run.is_running()


def test_sources_keep_their_weights(tmp_path: Path) -> None:
    (tmp_path / "draft:2").write_text("text")
    run = prepare_run(Recipe(sources=("novel.txt:2", "-:0.5", "draft:2", "names:1")), stdin=io.BytesIO(b"piped"))
    assert run.name == "novel"
    saved = load_recipe(run.recipe_file).sources
    assert saved == (f"{tmp_path}/novel.txt:2.0", f"{run.path}/stdin.txt:0.5", f"{tmp_path}/draft:2", "names:1.0")
    with pytest.raises(UsageError, match="the weight of"):
        prepare_run(Recipe(sources=("novel.txt:0",)))


def test_standard_input_is_saved_in_the_run() -> None:
    run = prepare_run(Recipe(sources=("-",)), stdin=io.BytesIO(b"a text\nfrom a pipe"))
    (source,) = load_recipe(run.recipe_file).sources
    assert Path(source).read_bytes() == b"a text\nfrom a pipe"


def test_a_default_name_gets_a_number_and_an_explicit_one_must_be_free(tmp_path: Path) -> None:
    recipe = Recipe(sources=("novel.txt",))
    assert [prepare_run(recipe).name for _ in range(3)] == ["novel", "novel-2", "novel-3"]
    with pytest.raises(RunError, match="'novel'"):
        prepare_run(recipe, "novel")
    (paths.models_folder() / "imported").mkdir(parents=True)
    with pytest.raises(RunError, match="'imported'"):
        prepare_run(recipe, "imported")


def test_names_in_any_script_are_kept_as_given_and_taken_whatever_their_case() -> None:
    recipe = Recipe(sources=("novel.txt",))
    for name in ("Улисс", "My Novel", "v1.2"):
        assert prepare_run(recipe, name).path == paths.runs_folder() / name
    assert [resume_run(name).name for name in ("УЛИСС", "my novel", "V1.2")] == ["Улисс", "My Novel", "v1.2"]
    with pytest.raises(RunError) as caught:
        prepare_run(recipe, "MY NOVEL")
    assert caught.value.problem == "there is a run or a model 'My Novel' already"
    assert caught.value.remedy == "take another --name, or go on with it: --resume 'My Novel'"
    (paths.models_folder() / "NOVEL").mkdir(parents=True)
    assert prepare_run(recipe).name == "novel-2"


@pytest.mark.parametrize("mode", ["chat", "translation", None])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_records_of_pairs_are_recognized_on_standard_input(mode: str | None, mark: bytes) -> None:
    pairs = b'{"source": "one", "target": "uno"}\n{"source": "two", "target": "dos"}\n'
    run = prepare_run(Recipe(sources=("-",), mode=mode), stdin=io.BytesIO(mark + pairs))
    assert (run.path / "stdin.jsonl").read_bytes() == mark + pairs


def test_runs_that_begin_at_the_same_time_leave_each_other_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, all_have_read = Recipe(sources=("novel.txt",)), threading.Barrier(3)
    void = prepare_run(recipe)
    void.events_file.write_text(to_json(Failed("stopped", is_stopped=True)) + "\n")
    monkeypatch.setattr("tinychat.train.launch.check_sources", lambda *_, **__: all_have_read.wait(10))
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(prepare_run, [recipe] * 3))
    assert sorted(run.name for run in runs) == ["novel", "novel-2", "novel-3"]
    assert all(run.recipe_file.is_file() for run in runs)


def test_a_name_that_is_taken_while_the_text_is_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(sources=("novel.txt",))

    def begin_another(*_: object, **__: object) -> None:
        (paths.runs_folder() / "mine").mkdir(parents=True)

    monkeypatch.setattr("tinychat.train.launch.check_sources", begin_another)
    with pytest.raises(RunError, match="there is a run or a model 'mine' already"):
        prepare_run(recipe, "mine")
    assert (paths.runs_folder() / "mine").is_dir()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"sources": ["nofile.txt"]}, "there is no file, folder or known data set 'nofile.txt'"),
        ({"sources": ["~no such user/a.txt"]}, "there is no file, folder or known data set '~no such user/a.txt'"),
        ({"sources": ["empty.txt"]}, "empty.txt is empty"),
        ({"sources": ["binary"]}, "binary is binary data, not text"),
        ({"sources": ["binary", "novel.txt"]}, "binary is binary data, not text"),
        ({"sources": ["novel.txt:2", "nofile.txt"]}, "there is no file, folder or known data set 'nofile.txt'"),
        ({"sources": ["-", "nofile.txt"]}, "there is no file, folder or known data set 'nofile.txt'"),
        ({"sources": ["none/*.txt"]}, "there is no text in none/*.txt"),
        ({"sources": ["names/nothing"]}, "there is no file 'nothing' in names"),
        ({"sources": ["table.csv"], "column": "wrong"}, "table.csv has no column 'wrong'"),
        ({"mode": "chat"}, "novel.txt holds no conversations or pairs of texts"),
        ({"n_head": 3}, "n_head is 3"),
        ({"norm": "none", "qk_norm": True}, "qk_norm is True"),
        ({"tokenizer": "nothing"}, "there is no tokenizer 'nothing'"),
        ({"tokenizer": "novel.txt"}, "novel.txt: this is no BERT vocabulary"),
        ({"from_model": "nobody"}, "there is no model 'nobody'"),
    ],
)
def test_a_mistake_is_found_before_anything_is_created(fields: dict[str, object], problem: str) -> None:
    Path("empty.txt").touch()
    Path("binary").write_bytes(bytes(range(256)) * 9)
    Path("table.csv").write_text("text,label\nhello there,1\n" * 9)
    with pytest.raises(TinychatError) as caught:
        prepare_run(load_recipe().merged({"sources": ["novel.txt"], **fields}), "my", stdin=io.BytesIO(b"piped"))
    assert caught.value.problem.startswith(problem)
    assert not paths.runs_folder().exists()


def test_sources_that_can_be_read_pass_the_check() -> None:
    Path("empty.txt").touch()
    for sources in (["empty.txt", "novel.txt"], ["."], ["-", "empty.txt"], ["tinyshakespeare:2", "novel.txt"]):
        prepare_run(Recipe(sources=tuple(sources)), stdin=io.BytesIO(b"piped"))


def test_nothing_is_left_of_a_run_whose_text_cannot_be_saved() -> None:
    stream = io.BytesIO()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        prepare_run(Recipe(sources=("-",)), stdin=stream)
    assert list(paths.runs_folder().iterdir()) == []


def test_a_run_that_failed_before_its_first_checkpoint_gives_its_name_back() -> None:
    recipe = Recipe(sources=("novel.txt",))
    run = prepare_run(recipe, "My")
    run.events_file.write_text(to_json(Failed("stopped", is_stopped=True)) + "\n")
    run.undo_failed_start()  # it was stopped: nobody made a mistake
    again = prepare_run(recipe, "my")
    assert [path.name for path in paths.runs_folder().iterdir()] == ["my"]
    again.events_file.write_text(to_json(Failed("too large", "", is_mistake=True)) + "\n")
    (again.checkpoints / "step-00000001").mkdir()
    again.undo_failed_start()
    with pytest.raises(RunError):
        prepare_run(recipe, "my")
    (again.checkpoints / "step-00000001").rmdir()
    again.undo_failed_start()
    assert list(paths.runs_folder().iterdir()) == []


def test_a_tokenizer_may_be_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    tokenizer = tmp_path / "tokenizer.json"
    shutil.copyfile(find_model("tales") / "tokenizer.json", tokenizer)
    run = prepare_run(Recipe(sources=("novel.txt",), tokenizer="~/tokenizer.json"))
    assert load_recipe(run.recipe_file).tokenizer == str(tokenizer)


def run_until(step: int, *last: Event, **fields: object) -> RunFolder:
    """Return a run that has trained for some steps and minutes."""
    run = prepare_run(Recipe(sources=("novel.txt",)).merged(fields), "s1")
    (run.checkpoints / f"step-{step:08d}").mkdir()
    run.final_folder.mkdir(parents=True)
    stepped = Stepped(step, 1.0, 2.5, 0.1, 1.0, 1e4, seconds=60.0 * step, remaining=0.0, steps=step, memory=1)
    run.events_file.write_text("".join(f"{to_json(event)}\n" for event in (stepped, *last)))
    return run


DONE = Ended("done", 600, 2.0, 7.4, 1.0, 60.0, "folder")


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
def test_a_run_whose_extension_fails_to_start_is_as_it_was(monkeypatch: pytest.MonkeyPatch, seen: bool) -> None:
    run = run_until(600, DONE, steps=600)
    recipe, events = load_recipe(run.recipe_file), list(run.events())
    monkeypatch.setattr("tinychat.train.launch.subprocess.Popen", lambda *_, **__: None)
    for _ in range(2):
        assert change_recipe(run, {"steps": 700})
        launch(run, stop_with_parent=False)
        assert list(run.events()) == events[:-1]
        with run.events_file.open("a") as file:
            file.write(to_json(Failed("novel.txt has changed since this run began", is_mistake=True)) + "\n")
        if seen:
            run.undo_failed_start()
            assert load_recipe(run.recipe_file) == recipe
    assert not change_recipe(run, {})
    assert list(run.events()) == events
    assert load_recipe(run.recipe_file) == recipe
    assert not run.earlier.exists()


@pytest.mark.parametrize(
    ("step", "fields", "refused", "problem", "remedy"),
    [
        (12_345, {"steps": 12_345}, {"steps": 12_000}, "--steps 12,000 is not more than the 12,345", "--steps 24690"),
        (1_200_000, {"steps": 9}, {"steps": 8}, "--steps 8 is not more than the 1,200,000", "--steps 2400000"),
        (12_345, {"minutes": 9}, {"minutes": 0.5}, "--minutes 0.5 is not more than the 12,345", "--minutes 24690"),
    ],
)
def test_a_length_that_is_too_short_is_told_with_all_its_digits(
    step: int, fields: dict[str, object], refused: dict[str, object], problem: str, remedy: str
) -> None:
    run = run_until(step, **fields)
    with pytest.raises(UsageError) as caught:
        change_recipe(run, refused)
    assert caught.value.problem == f"{problem} that s1 has behind it"
    assert caught.value.remedy == f"name the length in all, such as {remedy}"


def test_a_run_that_is_done_names_the_double_of_its_steps_in_full() -> None:
    run = run_until(600, DONE, steps=2_000_000)
    assert describe_done(run)[1].endswith("--steps 4000000`")


def test_a_damaged_last_event_is_none() -> None:
    run = run_until(600, DONE, steps=600)
    run.events_file.write_text(run.events_file.read_text().replace('"loss": 2.0', '"loss": null'))
    assert [type(event) for event in run.events()] == [Stepped]
    assert change_recipe(run, {})  # it goes on from its checkpoint


def test_a_length_that_is_left_open_does_not_extend_a_run() -> None:
    run = run_until(600, DONE, steps=600)
    assert not change_recipe(run, {"minutes": "auto", "steps": "auto"})
    assert load_recipe(run.recipe_file).length == {"steps": 600}
    with pytest.raises(UsageError, match="how much more"):
        change_recipe(run, {"minutes": "auto"}, more=True)


@pytest.mark.parametrize(("before", "after"), [(75, None), (25, 25)], ids=["planned", "chosen"])
def test_evaluations_that_were_planned_for_the_old_length_are_planned_anew(before: int, after: int | None) -> None:
    run = run_until(600, steps=600, evaluate_every=before)
    change_recipe(run, {"threads": 2})
    assert load_recipe(run.recipe_file).evaluate_every == before
    change_recipe(run, {"steps": 6000})
    assert load_recipe(run.recipe_file).evaluate_every == after


@pytest.mark.parametrize("name", ["tales", "Tales"])
def test_no_model_takes_the_name_of_a_bundled_one(name: str) -> None:
    Path("tales.txt").write_text("A model of this text is not the bundled one.\n" * 100)
    recipe = Recipe(sources=("tales.txt",))
    with pytest.raises(RunError) as caught:
        prepare_run(recipe, name)
    assert caught.value.problem == "there is a run or a model 'tales' already"
    assert caught.value.remedy == "take another --name: tales comes with tinychat"
    assert [prepare_run(recipe).name, prepare_run(recipe).name] == ["tales-2", "tales-3"]
    assert prepare_run(recipe, name, out=Path("elsewhere")).name == name  # `-m` finds no model there by its name


def test_a_model_in_the_final_folder_stays(letters: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(letters, folder)
    with pytest.raises(UsageError) as caught:
        prepare_run(Recipe(sources=("novel.txt",)), out=folder)
    assert caught.value.problem == f"--out {folder} already exists"
    assert not paths.runs_folder().exists()


def test_the_final_folder_can_be_chosen(tmp_path: Path) -> None:
    run = prepare_run(Recipe(sources=("novel.txt",)), out=Path("there/model"))
    assert run.final_folder == tmp_path / "there" / "model"


def test_a_folder_may_begin_with_a_tilde_that_is_no_users(tmp_path: Path) -> None:
    run = prepare_run(Recipe(sources=("novel.txt",)), out=Path("~no such user/model"))
    assert run.final_folder == Path("~no such user/model").absolute()


def test_a_run_needs_a_source() -> None:
    with pytest.raises(UsageError, match="nothing to train on"):
        prepare_run(Recipe())


@pytest.mark.parametrize("name", ["../outside", "a/b", "", "."])
def test_a_name_cannot_be_a_path(name: str) -> None:
    with pytest.raises(UsageError):
        prepare_run(Recipe(sources=("novel.txt",)), name)


def test_a_run_at_work_cannot_be_resumed() -> None:
    run = prepare_run(Recipe(sources=("novel.txt",)))
    assert resume_run("novel").path == run.path
    with run.lock(), pytest.raises(RunError, match="at work"):
        resume_run("novel")
    odd = prepare_run(Recipe(sources=("novel.txt",)), "My Odd")
    with odd.lock(), pytest.raises(RunError) as caught:
        resume_run("my odd")
    assert caught.value.remedy == "`/attach 'My Odd'` in the REPL shows it"
    with pytest.raises(RunError):
        resume_run("absent")


def test_what_cannot_be_resumed_says_what_there_is() -> None:
    for name in ("novel", "poem"):
        prepare_run(Recipe(sources=("novel.txt",)), name)
    shutil.copytree(find_model("tales"), paths.models_folder() / "copy")
    for name, remedy in (
        ("xyz", "runs: poem, novel"),
        ("nvel", "did you mean novel?"),
        ("tales", "train TEXT --from tales goes on from it"),
        ("copy", "train TEXT --from copy goes on from it"),
    ):
        with pytest.raises(RunError, match=f"there is no run '{name}'") as caught:
            resume_run(name)
        assert sorted(caught.value.remedy) == sorted(remedy)


def test_launching_needs_no_torch() -> None:
    modules = "sys, tinychat.train.launch, tinychat.train.recipe, tinychat.train.planner"
    code = f"import {modules}; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert out.stdout.strip() == "False"


WAITING = """
import os, sys, types
from tinychat.train import __main__ as trainer, event_log

def wait(recipe, run, *_):
    print("waiting", flush=True)
    open(run.path / "pipe")

event_log.STOP_SECONDS, trainer.read_text = 0.1, wait
trainer.importlib = types.SimpleNamespace(import_module=lambda name: None)  # torch takes seconds
os._exit(trainer.main(sys.argv[1:], may_exit=True))
"""
"""A trainer whose main thread waits for a named pipe that nobody writes to, instead of reading its text."""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "SIGTERM", "its starter is gone", "stop of a resumed run"])
def test_a_trainer_ends_when_asked_whatever_it_waits_for(how: str) -> None:
    run = prepare_run(Recipe(sources=("novel.txt",)))
    told = (
        "stopped before the first step: there is no model yet",
        f"`tinychat train --resume {run.name}` begins again",
    )
    if how == "stop of a resumed run":
        (run.checkpoints / "step-00001200").mkdir()
        told = ("stopped before its next step: everything to step 1,200 is kept", "the same command goes on from there")
    os.mkfifo(run.path / "pipe")
    draft = run.path / ".recipe.toml.1-a.tmp"
    arguments = [sys.executable, "-c", WAITING, str(run.path)]
    if how == "its starter is gone":
        arguments += ["--parent", str(os.getpid() + 1)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as trainer:
        try:
            assert trainer.stdout is not None
            assert trainer.stdout.readline() == b"waiting\n"
            draft.touch()
            if how.startswith("stop"):
                run.send("stop")
            elif how == "SIGTERM":
                trainer.terminate()
            assert trainer.wait(30) != 0
        finally:
            trainer.kill()
    assert list(run.events()) == [Failed(*told, is_stopped=True)]
    assert not run.is_running()
    assert not draft.exists()


def test_a_worker_ends_with_what_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[str] = []
    monkeypatch.setattr(os, "execve", lambda program, arguments, environment: replaced.extend(arguments))
    become_worker()
    assert replaced[-2:] == ["--parent", str(os.getppid())]
    orphan = [*replaced[:-1], str(os.getpid() + 1)]
    two = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    assert subprocess.run(orphan, env=os.environ | two, timeout=30, check=False).returncode == 1


def test_a_device_is_refused_before_anything_is_written() -> None:
    with pytest.raises(SourceError, match="/dev/null is a device"):
        prepare_run(Recipe(sources=("/dev/null:2",)))
    assert not paths.runs_folder().exists()


def test_a_name_that_a_recipe_cannot_hold_is_refused() -> None:
    with pytest.raises(SourceError, match="has a name that is not UTF-8"):
        prepare_run(Recipe(sources=("novel\udcff.txt",)))


def test_a_named_pipe_is_saved_in_the_run(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"through a pipe")
    os.close(write_end)
    run = prepare_run(Recipe(sources=(f"/dev/fd/{read_end}",)), "piped")
    os.close(read_end)
    (source,) = load_recipe(run.recipe_file).sources
    assert Path(source).read_bytes() == b"through a pipe"


@pytest.mark.parametrize(
    ("environment", "process"),
    [
        ({}, ALONE),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, ProcessRank(5, 8, 1, 4)),
        ({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, ALONE),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, ALONE),  # a batch script, outside of srun
        (
            {
                "SLURM_STEP_NUM_TASKS": "4",
                "SLURM_PROCID": "3",
                "SLURM_LOCALID": "1",
                "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
            },
            ProcessRank(3, 4, 1, 2),
        ),
        (
            {
                "SLURM_STEP_NUM_TASKS": "7",
                "SLURM_PROCID": "6",
                "SLURM_LOCALID": "0",
                "SLURM_NODEID": "3",
                "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
            },
            ProcessRank(6, 7, 0, 1),
        ),
    ],
    ids=["alone", "torchrun", "torchrun alone", "batch script", "srun", "srun on uneven machines"],
)
def test_the_rank_is_read_from_the_environment(environment: dict[str, str], process: ProcessRank) -> None:
    assert find_process_rank(environment) == process
