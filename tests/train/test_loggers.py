"""The losses of a run in the formats of other tools are those of its events."""

import csv
from pathlib import Path

import pytest
import training
from training import events, train, write_text

from tinychat.errors import SettingError, UsageError
from tinychat.events import Ended, Evaluated, Event, Noticed, Stepped
from tinychat.store import paths
from tinychat.store.runs import RunFolder
from tinychat.train import loggers
from tinychat.train.launch import change_recipe, prepare_run
from tinychat.train.loggers import MetricsLog
from tinychat.train.loop import Loop
from tinychat.train.recipe import Recipe, load_recipe

Points = list[tuple[int, float]]


def read_tensorboard(run: RunFolder) -> dict[str, Points]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(run.logs / "tensorboard"))
    accumulator.Reload()
    return {
        tag: [(point.step, point.value) for point in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
    }


def read_csv(run: RunFolder) -> dict[str, Points]:
    points: dict[str, Points] = {}
    with (run.logs / "csv" / "metrics.csv").open() as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            for name, value in row.items():
                if value:
                    points.setdefault(name, []).append((step, float(value)))
    return points


def close_to(points: Points) -> Points:
    return [(step, pytest.approx(value, rel=1e-6)) for step, value in points]


@pytest.mark.slow
def test_tensorboard_and_csv_have_the_losses_of_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loop, "_report_interval", 0.0)
    write_text(Path("text.txt"), ["la", "lu", "mi", "mo"], 2000)
    run = training.make("text.txt", steps=6, evaluate_every=3, log=["TensorBoard", "csv"])
    assert train(run) == 0
    stepped, evaluated, (ended,) = (events(run, kind) for kind in (Stepped, Evaluated, Ended))
    assert len(stepped) == 6
    expected = {
        "train_loss": [(event.step, event.loss) for event in stepped],
        "learning_rate": [(event.step, event.learning_rate) for event in stepped],
        "val_loss": [(event.step, event.loss) for event in evaluated],
        "final_val_loss": [(ended.step, ended.loss)],
    }
    for read in (read_tensorboard, read_csv):
        seen = read(run)
        assert {name: seen[name] for name in expected} == {name: close_to(points) for name, points in expected.items()}


STEP = Stepped(1, 0.1, 2.5, 1e-3, 1.0, 100.0, 1.0, 9.0, 10)


@pytest.mark.parametrize("name", loggers.LOGGERS)
def test_a_log_is_made_anew_of_the_events_that_stay(tmp_path: Path, name: str) -> None:
    run, read = RunFolder(tmp_path), {"tensorboard": read_tensorboard, "csv": read_csv}[name]
    evaluated = Evaluated(2, 2.0, 7.4, 2.9, True, split="train", accuracy=0.5)
    so_far: list[Event] = [Noticed("hello"), STEP]
    for later in ([evaluated, evaluated], [evaluated]):  # the second time after a kill, which took an event back
        log = MetricsLog(run, [name, name], so_far)
        for event in later:
            log.write(event)
        log.close()
        seen = read(run)
        assert seen["train_loss"] == [(1, 2.5)]
        assert seen["evaluated_train_loss"] == [(2, 2.0)] * len(later)
        assert seen["evaluated_train_accuracy"] == [(2, 0.5)] * len(later)


def test_without_the_field_nothing_is_written(tmp_path: Path) -> None:
    log = MetricsLog(RunFolder(tmp_path), (), [STEP])
    log.write(STEP)
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_told_before_anything_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("text.txt").write_text("once upon a time")
    run = prepare_run(load_recipe().merged({"sources": ["text.txt"]}), "first")
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    recipe = load_recipe().merged({"sources": ["text.txt"], "log": "tensorboard"})
    for refused in (lambda: prepare_run(recipe, "second"), lambda: change_recipe(run, {"log": "tensorboard"})):
        with pytest.raises(UsageError) as caught:
            refused()
        assert str(caught.value) == (
            "--log tensorboard needs a library that is not installed: pip install 'tinychat[log]'"
        )
    assert [path.name for path in paths.runs_folder().iterdir()] == ["first"]
    assert load_recipe(run.recipe_file).log == ()
    change_recipe(run, {"log": "csv"})
    assert load_recipe(run.recipe_file).log == ("csv",)


def test_only_known_loggers_are_taken() -> None:
    assert Recipe().merged({"log": ["CSV"]}).log == ("csv",)
    for names in ("csv,tensorboard", ["csv, tensorboard"], ("csv", "tensorboard")):
        assert Recipe().merged({"log": names}).log == ("csv", "tensorboard")
    for none in ("none", ("none",)):
        assert Recipe(log=("csv",)).merged({"log": none}).log == ()
    with pytest.raises(SettingError, match="log takes any of tensorboard, csv or none, not 'wandb'"):
        Recipe().merged({"log": ("wandb",)})
    with pytest.raises(SettingError, match="log takes any of tensorboard, csv or none, not 'wandb'"):
        Recipe().merged({"log": "wandb"})
    with pytest.raises(SettingError, match="log takes any of tensorboard, csv or none, not 'none': it stands alone"):
        Recipe().merged({"log": "csv,none"})
    assert Recipe().merged({"log": "csv,"}).log == ("csv",)
