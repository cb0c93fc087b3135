"""Commands that start, watch and compare training runs, with no trainer behind them."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from filelock import FileLock
from scripted import Talk, make_model

from tinychat.cli.main import run as cli
from tinychat.commands.results import LossCurve, Message, Plot, Question, StreamAnswer, Table, WatchRun
from tinychat.commands.training import find_run_summaries, finish_training
from tinychat.errors import RunError, TinychatError, UsageError
from tinychat.events import AnswerStart, Ended, Evaluated, Event, Failed, Planned, Stepped, Token, to_json
from tinychat.store.runs import RunFolder
from tinychat.store.weights import snapshot_file
from tinychat.train.recipe import load_recipe
from tinychat.train.report import read_run_summary


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[RunFolder]:
    """The runs whose trainers would have been started."""
    runs: list[RunFolder] = []

    def launch(run: RunFolder, *, stop_with_parent: bool, started: float) -> None:
        assert stop_with_parent == (run.name != "behind")
        runs.append(run)

    monkeypatch.setattr("tinychat.train.launch.launch", launch)
    return runs


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    path = tmp_path / "My Novel.txt"
    path.write_text("Once upon a time. " * 100)
    return path


def test_train_takes_sources_and_the_fields_of_a_recipe(talk: Talk, launched: list[RunFolder], novel: Path) -> None:
    result = talk.do(f"/train '{novel}' --minutes 5 --n_layer=2 --Batch-Size 8 --qk-norm false --name mine")
    assert isinstance(result, WatchRun)
    assert launched == [result.run]
    recipe = load_recipe(result.run.recipe_file)
    assert result.run.name == "mine"
    assert (recipe.sources, recipe.minutes, recipe.n_layer) == ((str(novel),), 5, 2)
    assert (recipe.batch_size, recipe.qk_norm) == (8, False)


def test_a_flag_may_be_given_several_times_where_that_says_something(
    talk: Talk, launched: list[RunFolder], novel: Path
) -> None:
    talk.do(f"/train '{novel}' --sample-prompt ROMEO: --sample-prompt JULIET: --seed 1 --seed 2")
    recipe = load_recipe(launched[0].recipe_file)
    assert (recipe.sample_prompt, recipe.seed) == (("ROMEO:", "JULIET:"), 2)


def test_a_run_on_the_data_of_its_recipe_is_named_after_that(
    talk: Talk, launched: list[RunFolder], novel: Path
) -> None:
    novel.write_text("what is statquest?\tawesome\n" * 100)
    for line in ("/train --recipe statquest", "/train --recipe statquest", f"/train '{novel}' --recipe statquest"):
        talk.do(line)
    assert [run.name for run in launched] == ["statquest", "statquest-2", "my-novel"]


@pytest.mark.parametrize("ending", [" &", "&"])
def test_a_run_may_train_in_the_background_and_be_stopped(
    talk: Talk, launched: list[RunFolder], novel: Path, ending: str
) -> None:
    said = talk.do(f"/train 'My Novel.txt' --name behind{ending}")
    assert isinstance(said, Message)
    assert said.lines == ("behind trains on in the background",)
    (run,) = launched
    with FileLock(run.lock_file):
        assert said.notes[0].endswith("/attach shows it, /finish ends it")
        stop = talk.do("/stop")
        assert isinstance(stop, Message)
        assert stop.notes[-1] == "to end the training of behind: /finish"
        assert not run.control_file.exists()
        talk.do("/finish")
        assert '"command": "stop"' in run.control_file.read_text()
        assert talk.ask("hello") == "you said: hello"  # until the run has weights
        make_model(run.path, "model", mode="completion")
        talk.session.runs.open_followed()
        assert talk.session.model.info.folder == run.model
        talk.do("/model parrot")
        talk.session.runs.open_followed()
        assert talk.session.model.name == "parrot"
        talk.do("/model behind")
        assert talk.session.model.info.folder == run.model


def test_what_a_run_made_answers_when_it_has_ended(talk: Talk, launched: list[RunFolder], novel: Path) -> None:
    talk.do("/train 'My Novel.txt' --name behind &")
    (run,) = launched
    with FileLock(run.lock_file):
        make_model(run.path, "model", mode="completion")
        talk.session.runs.open_followed()
    folder = make_model(run.path.parent.parent / "models", "behind", mode="completion")
    run.events_file.write_text(to_json(Ended("done", 10, 1.7, 5.5, 2.5, 60.0, str(folder))) + "\n")
    talk.session.runs.open_followed()
    assert talk.session.model.info.folder == folder
    assert talk.session.runs.followed is None


def test_a_run_that_is_done_goes_on_with_a_new_length_only(
    talk: Talk, launched: list[RunFolder], novel: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.do("/train 'My Novel.txt' --minutes 5 --name mine")
    run = launched.pop()
    folder = make_model(home / "models", "mine", mode="completion")
    stepped = Stepped(10, 1.0, 1.7, 0.01, 0.5, 48_000.0, 290.0, 0.0, 10)
    run.events_file.write_text(f"{to_json(stepped)}\n{to_json(Ended('done', 10, 1.7, 5.5, 2.5, 290.0, str(folder)))}\n")
    done = talk.do("/train --resume mine")
    assert isinstance(done, Message)
    assert (*done.lines, *done.notes) == (
        "mine is done: 10 steps, val loss 1.7000",
        "/train more mine --minutes 5 goes on with it",
    )
    assert cli(["train", "--resume", "mine"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "",
        "mine is done: 10 steps, val loss 1.7000\n"
        "it goes on with a new length in all: `tinychat train --resume mine --minutes 10`\n",
    )
    assert launched == []
    for line, problem in {
        "/train more mine": "how much more?",
        "/train more mine --epochs 2": "mine has no epochs to add to",
        "/train --resume mine --minutes 4": "--minutes 4 is not more than the 5 that mine has behind it",
    }.items():
        with pytest.raises(UsageError, match=re.escape(problem)):
            talk.do(line)
    for line, length in {
        "/train more mine --minutes 5": {"minutes": 10},
        "/train more mine --steps 30": {"steps": 40},
        "/train --resume mine --epochs 3": {"epochs": 3},
    }.items():
        result = talk.do(line)
        assert isinstance(result, WatchRun)
        assert load_recipe(run.recipe_file).length == length
        recipe = load_recipe(run.recipe_file)
        run.recipe_file.write_text(recipe.merged({"minutes": 5}).to_toml())


def test_more_of_a_run_takes_its_name_and_no_text(
    talk: Talk, launched: list[RunFolder], make_run: "MakeRun", home: Path
) -> None:
    folder = make_model(home / "models", "My Odd", mode="completion")
    make_run("My Odd", stepped(10, 100), Ended("done", 10, 1.7, 5.5, 2.5, 60.0, str(folder)), steps=10)
    for line in ("/train more", "/train more --minutes 5"):
        with pytest.raises(UsageError) as caught:
            talk.do(line)
        assert caught.value.problem == "/train more needs a run"
        assert caught.value.remedy == "for example `/train more my-novel --minutes 5`"
    assert launched == []
    talk.do("/train more My Odd --steps 5")
    assert [run.name for run in launched] == ["My Odd"]
    Path("more").write_text("Once upon a time. " * 100)
    talk.do("/train more")
    assert [run.name for run in launched] == ["My Odd", "more"]


def test_nothing_is_added_to_a_run_that_has_not_ended(
    talk: Talk, launched: list[RunFolder], make_run: "MakeRun"
) -> None:
    run = make_run("bg", PLANNED, stepped(51, 48_000.0), steps=3000)
    with pytest.raises(UsageError, match="bg has not ended") as caught:
        talk.do("/train more bg --steps 5")
    assert caught.value.remedy == "`/train --resume bg` goes on with it"
    assert (load_recipe(run.recipe_file).steps, launched) == (3000, [])


def test_a_run_is_named_after_its_text(talk: Talk, launched: list[RunFolder], novel: Path) -> None:
    assert [talk.do("/train 'My Novel.txt'").run.name for _ in range(2)] == ["my-novel", "my-novel-2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("/train", "there is nothing to train on", "name a text: `/train my-novel.txt`"),
        ("/train x --minuets 5", "/train has no --minuets", "did you mean --minutes?"),
        ("/train x --xyzzy 5", "/train has no --xyzzy", "see /help train"),
        (
            "/train x --minutes",
            "--minutes needs a value",
            "duration of the run in minutes, evaluations and start-up included",
        ),
        ("/train x --name", "--name needs a value", "the name of the run and its model"),
        ("/train --resume", "--resume needs a value", "the name of a stopped run, which goes on"),
        ("/train -", "- is the keyboard here", "name a file, or pipe the text into `tinychat train -`"),
        ("/train 'x", "a quotation mark stands alone", "put names with spaces between two of them"),
        (
            "/train x --resume y",
            "a run goes on with the text it began with",
            "begin a new run instead",
        ),
        (
            "/train --resume y --name x --out z",
            "a run goes on as it began: --name, --out cannot change it",
            "begin a new run instead",
        ),
    ],
)
def test_a_wrong_call_starts_nothing(
    talk: Talk, launched: list[RunFolder], home: Path, line: str, problem: str, remedy: str
) -> None:
    with pytest.raises(UsageError) as caught:
        talk.do(line)
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)
    assert launched == []
    assert not (home / "runs").exists()


def test_the_model_of_a_run_that_ended_is_opened(talk: Talk, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "runs", "mine", mode="completion")
    ended = Ended("done", 10, 1.7, 5.5, 2.5, 60.0, str(folder))
    result = finish_training(talk.session, RunFolder(tmp_path / "run"), ended)
    assert isinstance(result, Message)
    assert result.lines[0].startswith("mine (wordpiece, 3.4M, completion) is open: ")
    assert talk.session.model.name == "mine"


def test_a_run_that_failed_says_why_and_one_that_goes_on_says_how_to_see_it(talk: Talk, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "mine")
    with pytest.raises(RunError, match="there is no data set"):
        finish_training(talk.session, run, Failed("there is no data set", ""))
    result = finish_training(talk.session, run, None)
    assert isinstance(result, Message)
    assert result.lines == ("mine trains on in the background",)
    assert talk.session.model.name == "parrot"


def test_when_asks_each_snapshot_of_the_run_that_made_the_model(talk: Talk, home: Path) -> None:
    with pytest.raises(UsageError, match="there are no snapshots of parrot"):
        talk.do("/when hello")
    run = RunFolder(home / "runs" / "parrot")
    make_model(run.path, "model")
    run.events_file.write_text(to_json(replace(STEPPED, step=3)) + "\n")
    run.snapshots.mkdir()
    for step in (0, 2, 9):
        snapshot_file(run, step).touch()
    answer = talk.do('/when "hello"')
    assert isinstance(answer, StreamAnswer)
    records = list(answer.start(lambda: False))
    assert [record.name for record in records if isinstance(record, AnswerStart)] == [
        "step 0",
        "step 2 · loss 1.71",
        "step 9",
    ]
    assert "".join(record.text for record in records if isinstance(record, Token)) == "you said: hello" * 3
    with pytest.raises(UsageError, match="/when needs a prompt"):
        talk.do("/when")


MakeRun = Callable[..., RunFolder]


STEPPED = Stepped(1480, 0.37, 1.71, 0.01, 0.5, 48_000.0, 60.0, 62.0, 4000)
EVALUATED = Evaluated(1480, 1.83, 6.23, 2.64, True)


def test_attach_and_finish_need_a_run_at_work(talk: Talk, make_run: MakeRun) -> None:
    run = make_run("a", STEPPED)
    for line in ("/attach", "/finish", "/attach a", "/finish a", "/attach nothing"):
        with pytest.raises(RunError):
            talk.do(line)
    starting = make_run("b")
    talk.session.runs.add(starting, None)
    assert talk.do("/attach b") == WatchRun(starting), "its trainer has not taken the lock yet"
    with FileLock(run.lock_file):
        assert talk.do("/attach") == talk.do("/attach a") == talk.do("/train --resume a") == WatchRun(run)
        for line in ("/train --resume a --minutes 9", "/train --resume a &", "/train more a --minutes 9"):
            with pytest.raises(RunError, match="at work already"):
                talk.do(line)
        talk.do("/finish")
        assert talk.do("/runs").rows[0][1] == "at work"  # type: ignore[union-attr]
    assert '"command": "stop"' in run.control_file.read_text()


@pytest.mark.parametrize(("reason", "call"), [("done", "more a --minutes 5"), ("stopped", "--resume a")])
def test_a_run_that_has_ended_goes_on_as_it_can(
    talk: Talk, make_run: MakeRun, home: Path, reason: Literal["done", "stopped"], call: str
) -> None:
    run = make_run("a", STEPPED, Ended(reason, 9, 1.5, 4.5, 2.2, 60.0, str(home / "models" / "a")))
    run.final_folder.mkdir(parents=True)
    with pytest.raises(RunError) as caught:
        talk.do("/finish a")
    assert caught.value.remedy == f"`/train {call}` goes on with it"


def test_flags_their_values_recipes_and_texts_are_completed(talk: Talk, novel: Path) -> None:
    def offered(*words: str) -> list[str]:
        return list(talk.completions("train", *words))

    assert offered("My")[:1] == ["My Novel.txt"]
    assert offered("My N")[:1] == ["My Novel.txt"]
    assert "tinyshakespeare" in offered("")
    assert {"--minutes", "--n-layer", "--name", "--recipe"} <= set(offered("x", "--"))
    assert offered("x", "--norm", "") == ["auto", "layernorm", "rmsnorm", "none"]
    assert offered("x", "--bias", "") == ["auto", "true", "false"]
    assert offered("x", "--log", "csv,")[1:] == ["csv,tensorboard"]
    assert offered("x", "--minutes", "") == ["auto", "1", "5", "15"]
    assert offered("x", "--name", "") == []
    assert offered("x", "")[-1] == "&"
    assert "default" in offered("x", "--recipe", "")


@pytest.mark.slow
def test_commands_need_no_torch() -> None:
    code = "import sys, tinychat.commands; sys.exit(bool({'torch', 'rich', 'prompt_toolkit'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- `/runs`: what runs are doing, and several side by side ----------------------------------------------------------


PLANNED = Planned(("a plan",), 413_249, 900, 4000, None, "cpu", 1)
MEASURED = Evaluated(1480, 1.83, 6.23, 2.64, True, accuracy=0.45)


def stepped(step: int, speed: float) -> Stepped:
    return Stepped(step, step / 4000, 1.71, 0.01, 0.5, speed, 60.0, 62.0, 4000)


def test_runs_tells_what_each_is_doing(talk: Talk, make_run) -> None:
    run = make_run("a", PLANNED, stepped(1480, 48_000.4), MEASURED)
    make_run("b", stepped(1480, 48_000.4), Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "there"))
    make_run("c", Failed("no"))
    make_run("d", stepped(1480, 48_000.4), dataclasses.replace(MEASURED, is_part=True))
    table = talk.do("/runs")
    assert isinstance(table, Table)
    assert table.columns == ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    assert sorted(table.rows) == [
        ("a", "interrupted", "1,480/4,000", "413k", "1.830", "48,000", ""),
        ("b", "done", "4,000", "–", "1.700", "48,000", ""),
        ("c", "failed", "0", "–", "–", "–", ""),
        ("d", "interrupted", "1,480/4,000", "–", "~1.830", "48,000", ""),
    ]
    with FileLock(run.lock_file):
        assert ("a", "at work", "1,480/4,000", "413k", "1.830", "48,000", "1:02") in talk.do("/runs").rows
        with run.events_file.open("a") as file:
            file.write(to_json(PLANNED) + "\n")  # it goes on
        assert ("a", "at work", "1,480/4,000", "413k", "1.830", "48,000", "–") in talk.do("/runs").rows


def test_a_run_that_goes_on_has_no_time_left_until_its_next_step(talk: Talk, make_run: MakeRun) -> None:
    run = make_run("a", PLANNED, stepped(1480, 48_000.4))
    run.earlier.mkdir()
    with FileLock(run.lock_file):
        assert talk.do("/runs").rows[0][-1] == "–"
        run.earlier.rmdir()
        assert talk.do("/runs").rows[0][-1] == "1:02"


NO_EVENTS = ("3", "[" * 100_000, to_json(stepped(1500, 1.0)).replace(": 1500", ': "x"'))


@pytest.mark.parametrize("line", NO_EVENTS)
def test_a_line_that_is_no_event_is_left_out(talk: Talk, make_run, line: str) -> None:
    with make_run("a", PLANNED, stepped(1480, 48_000.4)).events_file.open("a") as file:
        file.write(f"{line}\n")
    assert [row[:3] for row in talk.do("/runs").rows] == [("a", "interrupted", "1,480/4,000")]


@pytest.mark.parametrize("damage", ["recipe", "events"])
def test_a_damaged_run_hides_no_others(talk: Talk, make_run, damage: str) -> None:
    make_run("a", PLANNED, stepped(1480, 48_000.4), MEASURED)
    bad = make_run("b", PLANNED)
    if damage == "recipe":
        bad.recipe_file.write_text('[schedule]\nsteps = "many"\n')
    else:
        bad.events_file.unlink()
        bad.events_file.mkdir()
    assert {row[0]: row[1] for row in talk.do("/runs").rows} == {"a": "interrupted", "b": "damaged"}
    assert talk.do("/runs a b").columns == ("run", "a", "b")


def test_a_run_whose_trainer_has_just_been_started_is_at_work(
    talk: Talk, launched: list[RunFolder], novel: Path
) -> None:
    talk.do("/train 'My Novel.txt' --name behind &")
    assert [row[:2] for row in talk.do("/runs").rows] == [("behind", "at work")]


def test_a_run_that_was_stopped_before_a_step_has_not_failed(make_run) -> None:
    assert read_run_summary(make_run("a", PLANNED, Failed("stopped", is_stopped=True))).state == "stopped"


def test_a_run_that_ends_while_its_summary_is_read_is_not_interrupted(make_run, monkeypatch) -> None:
    run = make_run("a", PLANNED)
    lock, events = run.lock(), run.events

    def read_and_end() -> Iterator[Event]:
        yield from events()
        lock.release()

    monkeypatch.setattr(run, "events", read_and_end)
    with lock:
        assert read_run_summary(run).state == "at work"


def test_a_loss_on_the_training_text_is_named_as_one(talk: Talk, make_run) -> None:
    make_run("short", PLANNED, stepped(10, 100), replace(MEASURED, split="train"))
    table, (summary,) = talk.do("/runs"), find_run_summaries(["short"])
    assert (table.rows[0][4], summary.split) == ("1.830 (train)", "train")
    assert ("val loss", "1.8300 (train)") in talk.do("/runs short").rows


def test_named_ones_stand_side_by_side_with_what_their_recipes_differ_in(talk: Talk, make_run) -> None:
    make_run("x", PLANNED, MEASURED)
    make_run("guide", PLANNED, stepped(10, 100), MEASURED, norm_position="pre", n_layer=2)
    make_run("guide-after", PLANNED, stepped(10, 200), MEASURED, norm_position="post", n_layer=2)
    table = talk.do("/runs guide* guide")
    assert table.columns == ("run", "guide", "guide-after")
    assert table.rows == (
        ("step", "10", "10"),
        ("parameters", "413,249", "413,249"),
        ("val loss", "1.8300", "1.8300"),
        ("accuracy", "45.0 %", "45.0 %"),
        ("tok/s", "100", "200"),
        ("time", "1:00", "1:00"),
        ("norm_position", "pre", "post"),
    )
    for name, rates in (("a", {"learning_rate": 0.00123456}), ("b", {"learning_rate": 0.00123999, "beta2": 0.98765})):
        make_run(name, PLANNED, **rates)
    assert talk.do("/runs a b x").rows[-2:] == (
        ("learning_rate", "0.00123", "0.00124", "–"),
        ("beta2", "0.95", "0.988", "0.95"),
    )
    with pytest.raises(RunError) as error:
        talk.do("/runs guide y*")
    assert error.value.problem == "there is no run 'y*'"
    assert "guide" in error.value.remedy


def test_a_name_with_spaces_needs_no_quotation_marks(talk: Talk, make_run: MakeRun) -> None:
    make_run("My Odd", stepped(10, 100))
    make_run("My", stepped(10, 100))
    assert talk.do("/runs My Odd").columns == talk.do("/runs 'my odd'").columns == ("run", "My Odd")
    assert talk.do("/plot My Odd") == talk.do("/plot 'my odd'")
    make_run("Odd", stepped(10, 100))
    assert talk.do("/runs My Odd").columns == ("run", "My", "Odd")


def test_speed_is_that_of_all_steps_however_often_they_were_told_of(make_run) -> None:
    run = make_run("a", stepped(10, 100), stepped(40, 300))
    assert read_run_summary(run).tokens_per_second == pytest.approx(40 / (10 / 100 + 30 / 300))


def test_a_recipe_that_cannot_be_read_hides_no_run(make_run) -> None:
    run = make_run("a", PLANNED)
    run.recipe_file.write_text("[kitchen]\nstove = 1")
    assert (read_run_summary(run).recipe, read_run_summary(run).parameters) == ({}, 413_249)


def test_names_are_completed_that_are_not_there_yet(talk: Talk, make_run) -> None:
    make_run("a")
    make_run("b")
    assert set(talk.completions("runs", "")) == {"a", "b"}
    assert list(talk.completions("runs", "a", "")) == ["b"]


# --- `/plot`: which curves are meant, and by what they are drawn ------------------------------------------------------


def loss_at(step: int, loss: float, seconds: float) -> Stepped:
    return Stepped(step, step / 100, loss, 0.01, 0.5, 1000.0, seconds, 1.0, 100)


def evaluated(step: int, loss: float) -> Evaluated:
    return Evaluated(step, loss, 4.0, 2.0, True)


MakeRun = Callable[..., RunFolder]


@pytest.fixture
def run(make_run: MakeRun) -> RunFolder:
    losses = [loss_at(10, 3.0, 60), loss_at(20, 2.0, 120), evaluated(20, 2.4), loss_at(40, 1.0, 360)]
    return make_run("novel", *losses, evaluated(40, 1.5))


NOVEL = LossCurve("novel", ((10, 3.0), (20, 2.0), (40, 1.0)), ((20, 2.4), (40, 1.5)))


def with_curve(folder: Path, curve: object, **facts: object) -> None:
    (folder / "training.json").write_text(json.dumps({"curve": curve, "split": "val", "seconds": 240.0, **facts}))


def test_a_run_is_plotted_as_its_events_have_it(talk: Talk, run: RunFolder) -> None:
    assert talk.do("/plot novel") == Plot((NOVEL,))


def test_by_minutes_each_loss_stands_at_the_time_of_its_step(talk: Talk, run: RunFolder) -> None:
    result = talk.do("/plot novel --by minutes")
    assert isinstance(result, Plot)
    assert result.unit == "minutes"
    assert result.curves == (LossCurve("novel", ((1, 3.0), (2, 2.0), (6, 1.0)), ((2, 2.4), (6, 1.5))),)


def test_where_a_run_went_back_its_later_losses_count(talk: Talk, make_run: MakeRun) -> None:
    make_run("back", loss_at(10, 3.0, 60), loss_at(20, 9.0, 120), loss_at(15, 2.0, 90))
    result = talk.do("/plot back --by=minutes")
    assert isinstance(result, Plot)
    assert result.curves[0].training == ((1, 3.0), (1.5, 2.0))


def test_a_model_carries_its_curve(talk: Talk) -> None:
    with_curve(talk.session.model.info.folder, {"training": [[1, 3.0], [4, 2.0]], "validation": [[4, 2.2]]})
    curve = LossCurve("parrot", ((1, 3.0), (4, 2.0)), ((4, 2.2),))
    assert talk.do("/plot parrot") == talk.do("/plot") == Plot((curve,))
    by_minutes = talk.do("/plot --by minutes")
    assert isinstance(by_minutes, Plot)
    assert by_minutes.curves[0].training == ((1, 3.0), (4, 2.0))  # a minute each


def test_without_a_name_it_is_the_run_at_work_or_that_of_the_model_or_the_newest(
    talk: Talk, run: RunFolder, make_run: MakeRun
) -> None:
    assert talk.do("/plot") == Plot((NOVEL,))
    with_curve(talk.session.model.info.folder, {"training": [[1, 3.0]], "validation": []}, run="mine")
    assert talk.do("/plot") == Plot((LossCurve("parrot", ((1, 3.0),), ()),))
    make_run("mine", loss_at(1, 2.5, 1))
    assert talk.do("/plot") == Plot((LossCurve("mine", ((1, 2.5),), ()),))
    with FileLock(run.lock_file):
        assert talk.do("/plot") == Plot((NOVEL,))


def test_several_are_plotted_over_each_other_each_once(talk: Talk, run: RunFolder, make_run: MakeRun) -> None:
    make_run("poem", loss_at(1, 2.5, 1))
    result = talk.do("/plot poem novel poem")
    assert isinstance(result, Plot)
    assert [curve.name for curve in result.curves] == ["poem", "novel"]


def test_a_picture_is_told_by_its_ending_and_replaces_nothing_unasked(talk: Talk, run: RunFolder) -> None:
    assert talk.do("/plot novel --out 'my curves.PNG'") == Plot((NOVEL,), out=Path("my curves.PNG"))
    Path("curves.svg").touch()
    question = talk.do("/plot novel --out curves.svg")
    assert isinstance(question, Question)
    assert question.act() == Plot((NOVEL,), out=Path("curves.svg"))


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("/plot nvel", "there is no run or model 'nvel'", "did you mean novel?"),
        ("/plot xyz", "there is no run or model 'xyz'", "runs: empty, novel"),
        ("/plot empty", "the run 'empty' has no losses yet", "try again in a moment"),
        ("/plot other", "the model 'other' carries no loss curve", "models that `/train` makes have one"),
        ("/plot --by hours", "--by takes steps or minutes, not 'hours'", ""),
        ("/plot --out", "--out needs a value", "for example `/plot --by minutes --out curves.svg`"),
        ("/plot --out a.pdf", "a.pdf: .pdf cannot be written", "one of .svg .png"),
        ("/plot --out a", "a: it has no ending that says what to write", "one of .svg .png"),
        ("/plot --colour red", "/plot has no --colour", "it has --by and --out: see /help plot"),
        ("/plot 1 2 3 4 5 6 7", "/plot takes up to 6 runs, not 7", "plot some of them"),
        ("/plot 'a", "a quotation mark stands alone", "put names with spaces between two of them"),
    ],
)
def test_what_is_wrong_is_said(
    talk: Talk, run: RunFolder, make_run: MakeRun, line: str, problem: str, remedy: str
) -> None:
    os.utime(run.recipe_file, (0, 0))
    make_run("empty")
    with pytest.raises(TinychatError) as caught:
        talk.do(line)
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


def test_where_nothing_was_ever_trained_that_is_said(talk: Talk) -> None:
    with pytest.raises(RunError, match="there is no run to plot"):
        talk.do("/plot")


def test_runs_then_models_are_completed(talk: Talk, run: RunFolder) -> None:
    assert list(talk.completions("plot", "").items())[:2] == [("novel", "run"), ("parrot", "model")]
    assert next(iter(talk.completions("plot", "novel", ""))) == "parrot"
    assert list(talk.completions("plot", "novel", "--by", "")) == ["steps", "minutes"]
    assert list(talk.completions("plot", "--")) == ["--by", "--out"]
