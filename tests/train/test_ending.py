"""How much time is kept back for the end of a run, by what was measured."""

import math

import pytest

from tinychat.train.ending import (
    EXIT_SECONDS,
    MAX_COPY_SEARCH_SECONDS,
    MAX_FINAL_SAMPLE_FRACTION,
    MAX_SAMPLE_FRACTION,
    Ending,
)


def make(**fields: object) -> Ending:
    values = {"available": 50.0, "part_tokens": 8_000, "final_tokens": 100_000, "searched_tokens": 1_000_000,
              "samples": 3, "token_seconds": 1e-5}  # fmt: skip
    return Ending(**{**values, **fields})  # type: ignore[arg-type]


def test_the_slowest_evaluation_so_far_counts_and_the_first_replaces_the_estimate() -> None:
    ending = make()
    ending.record_evaluation(8_000, 0.04)
    assert ending.token_seconds == pytest.approx(5e-6)
    before = ending.seconds()
    ending.record_evaluation(8_000, 0.32)
    ending.record_evaluation(8_000, 0.08)
    assert ending.token_seconds == pytest.approx(4e-5)
    assert ending.seconds() - before == pytest.approx((100_000 + 2 * 8_000) * 35e-6)
    assert ending.seconds() - ending.seconds(last_evaluation=False) == pytest.approx(8_000 * 4e-5)


def test_all_that_comes_last_is_kept_back() -> None:
    ending = make()
    ending.record_write(0.5)
    ending.record_save(0.9)
    evaluations = (100_000 + 2 * 8_000) * 1e-5
    rest = MAX_FINAL_SAMPLE_FRACTION * 50 + 0.04 + 0.9 + 2 * 0.5 + EXIT_SECONDS
    assert ending.seconds() == pytest.approx(evaluations + rest)


def test_samples_and_the_search_for_copies_give_way_when_time_is_short() -> None:
    ending = make()
    last = 50 - ending.writing_seconds
    assert ending.final_sample_seconds(40) == MAX_FINAL_SAMPLE_FRACTION * 50
    assert ending.final_sample_seconds(last - 0.5) == pytest.approx(0.5 - ending.search_seconds)
    assert ending.final_sample_seconds(last + 1) < 0
    assert ending.final_search_seconds(40) == MAX_COPY_SEARCH_SECONDS
    assert ending.final_search_seconds(last - 0.5) == pytest.approx(0.5)
    assert ending.final_search_seconds(last + 1) == 0
    assert ending.training_text_tokens(40) == 8_000
    assert ending.training_text_tokens(last - 0.1) == 5_000
    assert ending.training_text_tokens(last + 1) == 1


def test_samples_take_a_small_share_of_a_run() -> None:
    ending = make()
    assert ending.sample_seconds(50) == MAX_SAMPLE_FRACTION * 50
    assert 0 < ending.sample_seconds(0) < ending.sample_seconds(25)
    ending.sampling_seconds = 2.0
    assert ending.sample_seconds(50) < ending.sample_seconds(50, on_request=True)
    ending.sampling_seconds = 3.0
    assert ending.sample_seconds(0, on_request=True) == 0


def test_a_run_without_a_time_limit_has_time_for_all() -> None:
    ending = make(available=None)
    assert ending.sample_seconds(1e6) == ending.final_sample_seconds(1e6) == math.inf
    assert ending.final_search_seconds(1e6) == MAX_COPY_SEARCH_SECONDS
    assert ending.training_text_tokens(1e6) == 8_000
