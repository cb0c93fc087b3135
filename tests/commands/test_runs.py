"""`/runs`: what runs are doing, and several side by side."""

import pytest
from filelock import FileLock
from scripted import Talk

from tinychat.commands.results import Table
from tinychat.errors import RunError
from tinychat.events import Ended, Evaluated, Failed, Planned, Stepped
from tinychat.train.run_summary import read_run_summary

PLANNED = Planned(("a plan",), 413_249, 900, 4000, None, "cpu", 1)
EVALUATED = Evaluated(1480, 1.83, 6.23, 2.64, True, accuracy=0.45)


def stepped(step: int, speed: float) -> Stepped:
    return Stepped(step, step / 4000, 1.71, 0.01, 0.5, speed, 60.0, 62.0, 4000)


def test_runs_tells_what_each_is_doing(talk: Talk, make_run) -> None:
    run = make_run("a", PLANNED, stepped(1480, 48_000.4), EVALUATED)
    make_run("b", stepped(1480, 48_000.4), Ended("done", 4000, 1.7, 5.5, 2.5, 60.0, "there"))
    make_run("c", Failed("no"))
    table = talk.do("/runs")
    assert isinstance(table, Table)
    assert table.columns == ("run", "state", "step", "parameters", "val loss", "tok/s", "time left")
    assert sorted(table.rows) == [
        ("a", "interrupted", "1,480/4,000", "413k", "1.830", "48,000", ""),
        ("b", "done", "4,000", "–", "1.700", "48,000", ""),
        ("c", "failed", "0", "–", "–", "–", ""),
    ]
    with FileLock(run.lock_file):
        assert ("a", "at work", "1,480/4,000", "413k", "1.830", "48,000", "1:02") in talk.do("/runs").rows


def test_named_ones_stand_side_by_side_with_what_their_recipes_differ_in(talk: Talk, make_run) -> None:
    make_run("x", PLANNED, EVALUATED)
    make_run("guide", PLANNED, stepped(10, 100), EVALUATED, norm_position="pre", n_layer=2)
    make_run("guide-after", PLANNED, stepped(10, 200), EVALUATED, norm_position="post", n_layer=2)
    table = talk.do("/runs guide* guide")
    assert table.columns == ("run", "guide", "guide-after")
    assert table.rows == (
        ("steps", "10", "10"),
        ("parameters", "413,249", "413,249"),
        ("val loss", "1.8300", "1.8300"),
        ("accuracy", "45.0 %", "45.0 %"),
        ("tok/s", "100", "200"),
        ("time", "1:00", "1:00"),
        ("norm_position", "pre", "post"),
    )
    with pytest.raises(RunError) as error:
        talk.do("/runs guide y*")
    assert error.value.problem == "there is no run 'y*'"
    assert "guide" in error.value.remedy


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
    assert set(talk.offered("runs", "")) == {"a", "b"}
    assert list(talk.offered("runs", "a", "")) == ["b"]
