"""Events written, taken back, and read again; and what their loss curves say."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.events import Ended, Evaluated, Event, Failed, LineReader, Noticed, Saved, Stepped
from tinychat.train.event_log import (
    MAX_CURVE_POINTS,
    Curves,
    EventLog,
    loss_curve,
    overfits_since,
    recent_loss,
    rewind,
    smoothed,
)


def stepped(step: int) -> Stepped:
    return Stepped(step, 0.5, 3.0 - step / 1000, 0.1, 1.0, 1000.0, step / 10, 10.0, 100)


def ended(step: int) -> Ended:
    return Ended("stopped", step, 1.0, 2.7, 1.4, 10.0, "model")


def write(path: Path, *events: Event) -> None:
    log = EventLog(path)
    for event in events:
        log.write(event)
    log.close()


def read(path: Path) -> list[Event]:
    return list(LineReader(path).events())


def test_each_event_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events")
    log.write(Noticed("«text» is in UTF-16"))
    assert read(tmp_path / "events") == [Noticed("«text» is in UTF-16")]
    log.close()


@pytest.mark.parametrize("last", [ended(30), Failed("no")])
def test_what_came_after_the_checkpoint_is_taken_back(tmp_path: Path, last: Event) -> None:
    path = tmp_path / "events"
    events = [Noticed("begin"), stepped(10), Saved(10), stepped(20), Saved(20)]
    write(path, *events, stepped(30), last)
    rewind(path, 20)
    assert read(path) == events
    write(path, stepped(30))
    assert read(path) == [*events, stepped(30)]


def test_a_last_word_is_taken_back_wherever_the_checkpoint_is(tmp_path: Path) -> None:
    write(tmp_path / "events", stepped(10), ended(10))
    rewind(tmp_path / "events", 10)
    assert read(tmp_path / "events") == [stepped(10)]


def test_a_run_that_went_back_is_taken_back_to_where_it_was_last(tmp_path: Path) -> None:
    path = tmp_path / "events"
    events = [stepped(10), stepped(20), stepped(30), Noticed("back to step 10"), stepped(11), stepped(20), Saved(20)]
    write(path, *events, stepped(30), Noticed("later"))
    rewind(path, 20)
    assert read(path) == events


def test_a_line_that_was_cut_short_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events"
    write(path, stepped(10), stepped(20))
    for cut in range(1, 60):
        path.write_bytes(path.read_bytes()[:-cut])
        rewind(path, 100)
        assert read(path) in ([stepped(10)], [stepped(10), stepped(20)])
        path.unlink()
        write(path, stepped(10), stepped(20))


def test_without_a_checkpoint_nothing_has_happened(tmp_path: Path) -> None:
    write(tmp_path / "events", Noticed("begin"), stepped(10))
    rewind(tmp_path / "events", -1)
    assert read(tmp_path / "events") == []
    rewind(tmp_path / "absent", -1)


def test_a_long_curve_is_thinned_out_and_keeps_its_end(tmp_path: Path) -> None:
    write(tmp_path / "events", *map(stepped, range(1, 1502)), Evaluated(1500, 1.5, 4.5, 2.2, True))
    curve = loss_curve(tmp_path / "events")
    assert len(curve["training"]) <= MAX_CURVE_POINTS
    assert curve["training"][-1][0] == 1501
    assert curve["validation"] == [[1500, 1.5]]


def test_an_epoch_has_the_mean_loss_of_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    steps = [Stepped(step, 0.1, loss, 0.1, 1.0, 1.0, 1.0, 1.0, 9) for step, loss in ((1, 4.0), (3, 2.5), (5, 1.0))]
    first = Evaluated(3, 2.0, 7.4, 2.9, True, accuracy=0.4, epoch=1)
    glance, whole = (Evaluated(5, loss, 4.5, 2.2, True, accuracy=0.5, epoch=2) for loss in (1.5, 1.6))
    write(path, *steps[:2], first, steps[2], glance, whole)
    assert loss_curve(path)["epochs"] == [
        {"epoch": 1, "step": 3, "loss": 2.0, "perplexity": 7.4, "accuracy": 0.4, "training_loss": 3.0},
        {"epoch": 2, "step": 5, "loss": 1.6, "perplexity": 4.5, "accuracy": 0.5, "training_loss": 1.0},
    ]


FALLING = [(step, 4.0 - step / 100) for step in range(0, 201, 5)]
NOISY = [(step, loss + (0.1 if step % 2 else -0.1)) for step, loss in FALLING]


def test_noise_goes_and_the_course_stays() -> None:
    means = smoothed(NOISY, 0.1)
    assert [step for step, _ in means] == [step for step, _ in NOISY]
    assert all(abs(mean - loss) < 0.04 for (_, mean), (_, loss) in zip(means[4:-4], FALLING[4:-4], strict=True))
    assert smoothed([(3, 1.5)]) == [(3, 1.5)]
    assert smoothed([]) == []


def test_a_steep_beginning_stays_where_it_is() -> None:
    points = [(step, 4.0 if step < 2 else 2.0) for step in range(100)]
    assert next(loss for _, loss in smoothed(points)) == 4.0


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=60), st.floats(0, 1))
def test_means_lie_within_what_they_are_means_of(losses: list[float], span: float) -> None:
    means = [loss for _, loss in smoothed(list(enumerate(losses)), span)]
    assert all(min(losses) - 1e-6 <= mean <= max(losses) + 1e-6 for mean in means)


def test_the_loss_lately_is_a_mean_over_a_twentieth_of_the_run() -> None:
    points = [(float(step), float(step)) for step in range(101)]
    assert recent_loss(points) == pytest.approx(97.5)
    assert recent_loss(points, 50) == pytest.approx(47.5)
    assert recent_loss([]) is None


@pytest.mark.parametrize(
    ("validation", "since"),
    [
        ([], None),
        ([3.0], None),
        ([3.0, 2.5, 2.0], None),
        ([3.0, 2.5, 2.6], 100),
        ([3.0, 2.5, 2.503], None),  # no more than noise
        ([2.5, 2.7, 2.6], 50),
    ],
)
def test_a_model_overfits_where_validation_loss_rises_while_that_of_training_falls(
    validation: list[float], since: int | None
) -> None:
    evaluations = [(50.0 * (index + 1), loss) for index, loss in enumerate(validation)]
    assert overfits_since(FALLING, evaluations) == since
    assert overfits_since([(step, 4.0 + step) for step, _ in FALLING], evaluations) is None
    assert overfits_since([], evaluations) is None


def test_a_run_that_goes_back_takes_back_what_came_after() -> None:
    curves = Curves()
    for step in (10, 20, 30, 15):
        curves.update(Stepped(step, 0.5, 4.0 - step / 10, 0.1, 1.0, 1000.0, 1.0, 1.0, 100))
        curves.update(Evaluated(step, 2.0 + step / 10, 1.0, 1.0, False))
    assert curves.training == [(10, 3.0), (15, 2.5)]
    assert curves.validation == [(10, 3.0), (15, 3.5)]
    assert curves.overfits_since == 10
    curves.update(Evaluated(15, 3.5, 1.0, 1.0, False, "train"))
    assert curves.overfits_since is None


def test_the_last_evaluation_of_the_weights_kept_is_not_the_last_step() -> None:
    """The whole split is looked at in the end, with the weights of an earlier step."""
    assert overfits_since(FALLING, [(100, 2.5), (200, 2.9), (100, 2.52)]) == 100
    assert not math.isnan(overfits_since(FALLING, [(100, 2.5), (200, 2.9)]) or 0)
