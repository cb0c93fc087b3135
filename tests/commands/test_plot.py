"""`/plot`: which curves are meant, and by what they are drawn."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from scripted import Talk

from tinychat.commands.results import LossCurve, Plot
from tinychat.errors import RunError, TinychatError
from tinychat.events import Evaluated, Stepped
from tinychat.store.runs import RunFolder


def stepped(step: int, loss: float, seconds: float) -> Stepped:
    return Stepped(step, step / 100, loss, 0.01, 0.5, 1000.0, seconds, 1.0, 100)


def evaluated(step: int, loss: float) -> Evaluated:
    return Evaluated(step, loss, 4.0, 2.0, True)


MakeRun = Callable[..., RunFolder]


@pytest.fixture
def run(make_run: MakeRun) -> RunFolder:
    losses = [stepped(10, 3.0, 60), stepped(20, 2.0, 120), evaluated(20, 2.5), stepped(40, 1.0, 360)]
    return make_run("novel", *losses, evaluated(40, 1.5), evaluated(20, 2.4))


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
    make_run("back", stepped(10, 3.0, 60), stepped(20, 9.0, 120), stepped(15, 2.0, 90))
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
    make_run("mine", stepped(1, 2.5, 1))
    assert talk.do("/plot") == Plot((LossCurve("mine", ((1, 2.5),), ()),))
    with FileLock(run.lock_file):
        assert talk.do("/plot") == Plot((NOVEL,))


def test_several_are_plotted_over_each_other_each_once(talk: Talk, run: RunFolder, make_run: MakeRun) -> None:
    make_run("poem", stepped(1, 2.5, 1))
    result = talk.do("/plot poem novel poem")
    assert isinstance(result, Plot)
    assert [curve.name for curve in result.curves] == ["poem", "novel"]


def test_a_picture_is_told_by_its_ending_and_replaces_nothing(talk: Talk, run: RunFolder) -> None:
    assert talk.do("/plot novel --out 'my curves.PNG'") == Plot((NOVEL,), out=Path("my curves.PNG"))
    Path("curves.svg").touch()
    with pytest.raises(TinychatError, match=r"curves.svg exists already"):
        talk.do("/plot novel --out curves.svg")


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("/plot nvel", "there is no run or model 'nvel'", "did you mean novel?"),
        ("/plot xyz", "there is no run or model 'xyz'", "runs: empty, novel"),
        ("/plot empty", "the run 'empty' has no losses yet", "try again in a moment"),
        ("/plot other", "the model 'other' carries no loss curve", "models that `/train` makes have one"),
        ("/plot --by hours", "--by takes steps or minutes, not 'hours'", ""),
        ("/plot --out", "--out needs a value", "for example `/plot --by minutes --out curves.svg`"),
        ("/plot --out a.pdf", "a.pdf has no ending that says what to write", "one of .svg .png"),
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
