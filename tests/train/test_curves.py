"""What loss curves say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.events import Evaluated, Stepped
from tinychat.train.event_log import Curves, overfits_since, recent_loss, smoothed

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
    evaluations = [(50.0 * (place + 1), loss) for place, loss in enumerate(validation)]
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
