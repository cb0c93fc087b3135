"""`tinychat.train` and its runs; those that train are in docs/python.md and the notebook."""

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tinychat
from tinychat.events import Ended, Evaluated, Event, Failed, Planned, Stepped, to_json
from tinychat.store.runs import RunFolder
from tinychat.train.recipe import Recipe, load_recipe

ENDED = Ended("done", 20, 1.5, 4.5, 2.1, 3.0, "/nowhere")
STEPS = [Planned(("text  novel",), 1000, 5000, 20, None, "cpu", 1), Stepped(10, 0.5, 2.0, 0.1, 1, 9, 1.5, 60.0, 20),
         Evaluated(10, 1.8, 6.0, 2.5, True), Stepped(20, 1.0, 1.6, 0.1, 1, 9, 3.0, 0.0, 20)]  # fmt: skip


@pytest.fixture
def write_run(home: Path) -> Callable[..., RunFolder]:
    """Writes the folder of a run, whose trainer is gone."""

    def write(name: str, *events: Event) -> RunFolder:
        run = RunFolder(home / "runs" / name)
        run.checkpoints.mkdir(parents=True)
        run.recipe_file.write_text(Recipe(steps=20).to_toml(), encoding="utf-8")
        run.events_file.write_text("".join(to_json(event) + "\n" for event in events), encoding="utf-8")
        return run

    return write


def test_train_is_a_function_whose_folder_is_a_package() -> None:
    import tinychat.train.launch

    assert callable(tinychat.train)
    assert list(inspect.signature(tinychat.train).parameters)[:3] == ["sources", "name", "recipe"]
    assert "Raises:" in (tinychat.train.__doc__ or "")
    with pytest.raises(tinychat.UsageError, match="there is nothing to train on"):
        tinychat.train()


def test_a_run_that_is_done(write_run: Callable[..., RunFolder]) -> None:
    write_run("novel", *STEPS, ENDED)
    (run,) = tinychat.runs()
    assert list(run) == run.events == [*STEPS, ENDED]
    assert run.wait() == run.stop() == run.last_event == ENDED
    assert repr(run) == repr(tinychat.runs()) == "<Run novel · done · step 20 · val loss 1.500>"
    assert "<svg" in run._repr_html_()
    assert "novel" in tinychat.runs()._repr_html_()
    with pytest.raises(tinychat.ModelError):
        _ = run.model
    with pytest.raises(tinychat.UsageError, match=r"watch\(\) draws in a notebook"):
        run.watch()


def test_a_run_that_failed(write_run: Callable[..., RunFolder]) -> None:
    folder = write_run("novel", *STEPS[:1], Failed("the text is empty", "give more", is_mistake=True))
    (run,) = tinychat.runs()
    assert [type(event) for event in run] == [Planned, Failed]
    assert not folder.path.exists()  # it gives its name back
    assert repr(run) == "<Run novel · failed: the text is empty>"
    for wrong in (run.wait, run.stop, lambda: run.model):
        with pytest.raises(tinychat.RunError, match="the text is empty\ngive more"):
            wrong()


def test_a_run_whose_trainer_is_gone(write_run: Callable[..., RunFolder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.store.runs.LIVENESS_INTERVAL", 0.0)
    write_run("novel", *STEPS)
    (run,) = tinychat.runs()
    assert isinstance(list(run)[-1], Failed)
    with pytest.raises(tinychat.RunError, match="the trainer ended"):
        run.wait()


def test_a_run_whose_events_cannot_be_read_hides_no_others(write_run: Callable[..., RunFolder]) -> None:
    damaged = write_run("novel", *STEPS)
    damaged.events_file.unlink()
    damaged.events_file.mkdir()
    write_run("poem", *STEPS)
    assert {run.name: run.state.partition(":")[0] for run in tinychat.runs()} == {"novel": "damaged", "poem": "failed"}


def test_waiting_has_an_end(write_run: Callable[..., RunFolder]) -> None:
    folder = write_run("novel", *STEPS[:2])
    with folder.lock():  # as a trainer at work holds it
        (run,) = tinychat.runs()
        with pytest.raises(tinychat.RunError, match="novel is still training after 0 s\n"):
            run.wait(0)
        assert repr(run) == "<Run novel · at work · step 10/20 · 1:00 left>"
        run.background()
        with pytest.raises(tinychat.RunError, match="novel has no weights yet"):
            _ = run.model
    assert '"background"' in folder.control_file.read_text("utf-8")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tinychat.train("nowhere.txt"), "there is no file, folder or known data set 'nowhere.txt'"),
        (lambda: tinychat.train("x" * 5000), "the run cannot start: xxx"),
        (lambda: tinychat.train("nowhere.txt", steps=np.int64(1)), "there is no file, folder or known data"),
        (lambda: tinychat.train(None), "a name or a path is wanted, not None"),
        (lambda: tinychat.train("-"), "- is the standard input of a command"),
        (lambda: tinychat.train(Path(__file__), d_modle=3), "a recipe has no field 'd_modle'\ndid you mean d_model"),
        (lambda: tinychat.train(Path(__file__), steps=0), "steps takes a whole number of at least 1 or auto, not 0"),
        (lambda: tinychat.train(Path(__file__), steps=3, minutes=1), "--minutes and --steps both say how long"),
        (lambda: tinychat.train(Path(__file__), steps=3, minutes=1, epochs=2), "--minutes, --steps and --epochs all"),
        (lambda: tinychat.train("x", resume="novel"), "a run goes on as it began"),
        (lambda: tinychat.train(resume="nobody"), "there is no run 'nobody'"),
    ],
)
def test_mistakes_are_told_before_training(call: Callable[[], object], message: str, home: Path) -> None:
    with pytest.raises(tinychat.TinychatError) as error:
        call()
    assert str(error.value).startswith(message)
    assert not (home / "runs").exists()


def test_a_run_goes_on(write_run: Callable[..., RunFolder], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    monkeypatch.setattr("tinychat.train.launch.launch", lambda run, **_: launched.append(run.name))
    (home / "models" / "novel").mkdir(parents=True)
    folder = write_run("novel", *STEPS, ENDED)
    assert tinychat.train(resume="novel").wait() == ENDED  # it is done
    assert launched == []
    tinychat.train(resume="Novel", steps=30)
    assert launched == ["novel"]
    assert load_recipe(folder.recipe_file).steps == 30
