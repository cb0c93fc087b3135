"""Formatting of numbers and durations."""

import pytest

from tinychat.textutil import compact, count, duration, percent


@pytest.mark.parametrize(
    ("number", "shown"), [(37, "37"), (999, "999"), (12_345, "12.3k"), (984_320, "984k"), (3_400_000, "3.4M")]
)
def test_compact(number: int, shown: str) -> None:
    assert compact(number) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(-1, "0:00"), (62, "1:02"), (59.6, "1:00"), (7322, "2:02:02")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts_and_percentages() -> None:
    assert [count(number, "step") for number in (0, 1, 1200, 0.5)] == ["0 steps", "1 step", "1,200 steps", "0.5 steps"]
    assert [percent(0.0512), percent(0.0512, 0), percent(1)] == ["5.1 %", "5 %", "100.0 %"]
