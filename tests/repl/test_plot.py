"""Loss curves in braille."""

from hypothesis import given
from hypothesis import strategies as st

from tinychat.repl.plot import plot


def test_a_falling_curve() -> None:
    points = [(0, 4.0), (100, 2.9), (200, 1.7), (300, 1.3), (400, 1.25)]
    assert plot(points, 26, 5, [(200, 1.9), (400, 1.6)]) == [
        " 4.00 ⠉⠒⠤⢄⡀",
        "          ⠈⠑⠢⡀",
        "             ⠈⠑⠤◆",
        " 1.25            ⠉⠑⠒⠤⠤⠤⢄⣀◆",
        "      0                400",
    ]


def test_where_there_is_nothing_to_draw_nothing_is_drawn() -> None:
    assert plot([], 40, 8) == []
    assert plot([(1, 1.0)], 8, 8) == []
    assert plot([(1, float("nan"))], 40, 8) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e6)), max_size=50),
    st.integers(10, 120),
    st.integers(2, 20),
)
def test_it_keeps_within_its_bounds(points: list[tuple[int, float]], width: int, height: int) -> None:
    lines = plot(sorted(points), width, height)
    assert len(lines) in (0, height)
    assert all(len(line) <= width for line in lines)
