"""Batches follow from the seed and the step alone, and miss nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.train.batches import WindowBatches


def rows(batches: WindowBatches, steps: range) -> np.ndarray:
    return np.concatenate([batches.batch(step).ids.numpy() for step in steps])


@settings(max_examples=50)
@given(st.integers(2, 400), st.integers(1, 30), st.integers(1, 20), st.integers(0, 5))
def test_targets_are_what_follows(length: int, context: int, batch_size: int, step: int) -> None:
    context = min(context, length - 1)
    ids, targets = WindowBatches(np.arange(length, dtype=np.uint16), context, batch_size, seed=1).batch(step)
    assert ids.shape == targets.shape == (batch_size, context)
    assert (targets == ids + 1).all()
    assert int(ids.min()) >= 0
    assert int(targets.max()) < length


def test_an_epoch_shows_each_window_once() -> None:
    batches = WindowBatches(np.arange(1001), context=10, batch_size=11, seed=3)
    assert batches.windows == 99
    starts = rows(batches, range(9))[:, 0]
    assert len(set(starts)) == 99
    assert sorted(starts)[-1] - sorted(starts)[0] == 980  # side by side
    assert batches.epochs(9) == 1


def test_epochs_differ_in_order_and_in_where_windows_begin() -> None:
    batches = WindowBatches(np.arange(1001), context=10, batch_size=99, seed=3)
    first, second = (batches.batch(step).ids[:, 0].numpy() for step in (0, 1))
    assert not np.array_equal(first, second)
    assert len({int(batches.batch(step).ids[0, 0]) % 10 for step in range(20)}) > 3


def test_a_step_is_the_same_whatever_came_before() -> None:
    ids = np.arange(5000, dtype=np.uint32)
    onward, fresh = WindowBatches(ids, 16, 8, seed=5), WindowBatches(ids, 16, 8, seed=5)
    wanted = [onward.batch(step) for step in range(100)][77]
    assert wanted.ids.equal(fresh.batch(77).ids)
    assert not wanted.ids.equal(WindowBatches(ids, 16, 8, seed=6).batch(77).ids)


def test_a_text_of_one_window_is_shown_again_and_again() -> None:
    batches = WindowBatches(np.arange(5), context=4, batch_size=3, seed=0)
    assert batches.batch(9).ids.tolist() == [[0, 1, 2, 3]] * 3


def test_a_text_without_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="4 ids"):
        WindowBatches(np.arange(4), context=4, batch_size=3, seed=0)
