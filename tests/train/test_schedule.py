"""The learning rate over a run, and when the run is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.train.schedule import SCHEDULES, Budget, Schedule, lr_factor

LINEAR = Schedule("linear", warmup_steps=9, lr_decay_fraction=0.8, min_lr_ratio=0.1)


def test_the_rate_rises_holds_and_falls_to_where_it_should_end() -> None:
    assert lr_factor(LINEAR, 0.0, step=0) == pytest.approx(0.1)
    assert lr_factor(LINEAR, 0.2, step=50) == pytest.approx(1.0)
    assert lr_factor(LINEAR, 0.6, step=50) == pytest.approx(0.55)
    assert lr_factor(LINEAR, 1.0, step=50) == pytest.approx(0.1)


@given(st.sampled_from(list(SCHEDULES)), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_after_the_warm_up_the_rate_never_rises(
    shape: str, lr_decay_fraction: float, final: float, one: float, two: float
) -> None:
    schedule = Schedule(shape, warmup_steps=10, lr_decay_fraction=lr_decay_fraction, min_lr_ratio=final)
    earlier, later = sorted((one, two))
    first, second = (lr_factor(schedule, progress, step=100) for progress in (earlier, later))
    assert 1 + 1e-9 >= first >= second - 1e-9 >= -1e-9


def test_a_budget_of_steps_is_used_after_them() -> None:
    budget = Budget(steps=10)
    assert not budget.is_exhausted(9, seconds=1e6, step_seconds=1)
    assert budget.is_exhausted(10, seconds=0, step_seconds=1)
    assert budget.progress(5, seconds=1e6) == 0.5
    assert budget.expected_steps(3, 0, 1) == 10
    assert budget.remaining(4, 0, step_seconds=2) == 12


def test_a_budget_of_seconds_has_no_room_for_a_step_that_would_end_too_late() -> None:
    budget = Budget(seconds=60)
    assert not budget.is_exhausted(1, seconds=58, step_seconds=1.5)
    assert budget.is_exhausted(1, seconds=59, step_seconds=1.5)
    assert budget.progress(1, seconds=30) == 0.5
    assert budget.expected_steps(100, seconds=30, step_seconds=0.5) == 160
    assert budget.remaining(100, seconds=30, step_seconds=0.5) == 30
