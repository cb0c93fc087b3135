"""Round numbers for axes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.repl.ticks import labels, ticks


@pytest.mark.parametrize(
    ("low", "high", "most", "texts"),
    [
        (0, 4000, 4, ["0", "1,000", "2,000", "3,000", "4,000"]),
        (1.26, 2.1, 4, ["1.5", "2.0"]),
        (0.999, 1.004, 5, ["0.999", "1.000", "1.001", "1.002", "1.003", "1.004"]),
        (1, 3, 10, ["1.0", "1.2", "1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6", "2.8", "3.0"]),
        (7, 7, 5, ["7"]),
    ],
)
def test_round_numbers_with_as_many_decimals_as_they_need(low: float, high: float, most: int, texts: list[str]) -> None:
    assert labels(ticks(low, high, most)) == texts


def test_steps_are_whole() -> None:
    assert ticks(1, 3, 10, least_step=1) == [1, 2, 3]


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9), st.integers(1, 50))
def test_they_lie_within_the_range_and_are_few(low: float, span: float, most: int) -> None:
    values = ticks(low, low + span, most)
    assert len(values) <= most + 1
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in values)
