"""With how many threads the native engine goes on."""

import itertools

from tinychat.generate.native.engine import (
    CALLS_TO_KNOW,
    MAX_TRIAL_CALLS,
    MAX_TRIAL_INTERVAL,
    TRIAL_INTERVAL,
    ThreadTuner,
)

ONE, MANY = False, True


def chosen(tuner: ThreadTuner, is_wide: bool, seconds: dict[int, float], calls: int) -> list[int]:
    """The threads of some calls, in each of which a token takes the seconds of that many threads."""
    choices = []
    for _ in range(calls):
        choices.append(tuner.choose(is_wide))
        tuner.record(is_wide, choices[-1], seconds[choices[-1]])
    return choices


def test_the_quicker_number_stays_once_both_were_tried() -> None:
    assert chosen(ThreadTuner(1, 4), ONE, {1: 0.2, 4: 0.1}, 20) == [1] * CALLS_TO_KNOW + [4] * (20 - CALLS_TO_KNOW)
    assert chosen(ThreadTuner(4, 4), ONE, {1: 0.1, 4: 0.2}, 20) == [4] * CALLS_TO_KNOW + [1] * (20 - CALLS_TO_KNOW)


def test_a_first_call_in_which_threads_share_a_processor_does_not_decide() -> None:
    tuner = ThreadTuner(1, 2)
    chosen(tuner, ONE, {1: 0.2}, CALLS_TO_KNOW)
    chosen(tuner, ONE, {2: 3.0}, 1)
    assert chosen(tuner, ONE, {2: 0.1}, 20) == [2] * 20


def test_many_sequences_begin_with_all_threads_whatever_one_has_shown() -> None:
    tuner = ThreadTuner(1, 2)
    chosen(tuner, ONE, {1: 0.1, 2: 0.2}, 6)
    assert chosen(tuner, MANY, {1: 0.2, 2: 0.1}, 2 * CALLS_TO_KNOW + 2) == [2] * CALLS_TO_KNOW + [1] * CALLS_TO_KNOW + [
        2,
        2,
    ]


def test_a_processor_that_is_taken_is_noticed_at_once_and_tried_less_and_less() -> None:
    tuner = ThreadTuner(1, 2)
    chosen(tuner, ONE, {1: 0.2, 2: 0.1}, 6)
    taken = chosen(tuner, ONE, {1: 0.2, 2: 3.0}, 20 * MAX_TRIAL_INTERVAL)
    trials = [call for call, threads in enumerate(taken) if threads == 2]
    assert trials[0] == 0
    waits = [later - trial for trial, later in itertools.pairwise(trials)]
    assert waits[:4] == [TRIAL_INTERVAL, 2 * TRIAL_INTERVAL, 4 * TRIAL_INTERVAL, 8 * TRIAL_INTERVAL]
    assert waits[-1] == MAX_TRIAL_INTERVAL


def test_one_that_is_free_again_is_used_from_the_first_trial_on() -> None:
    tuner = ThreadTuner(1, 2)
    chosen(tuner, ONE, {1: 0.2, 2: 3.0}, 40 * MAX_TRIAL_INTERVAL)
    free = chosen(tuner, ONE, {1: 0.2, 2: 0.1}, 2 * MAX_TRIAL_INTERVAL)
    assert free.index(2) < MAX_TRIAL_INTERVAL
    assert 1 not in free[free.index(2) : free.index(2) + TRIAL_INTERVAL - 1]


def test_with_one_thread_there_is_nothing_to_choose() -> None:
    assert chosen(ThreadTuner(1, 1), ONE, {1: 0.1}, 2 * TRIAL_INTERVAL) == [1] * (2 * TRIAL_INTERVAL)


def test_it_is_tried_until_a_call_has_told_of_it() -> None:
    tuner = ThreadTuner(2, 2)
    chosen(tuner, ONE, {1: 0.1, 2: 3.0}, 2 * CALLS_TO_KNOW)
    choices = [tuner.choose(ONE) for _ in range(2 * TRIAL_INTERVAL)]
    assert choices[0] == 1
    first = choices.index(2)
    assert choices[first:][: MAX_TRIAL_CALLS + 2] == [2] * MAX_TRIAL_CALLS + [1, 1]
    while tuner.choose(ONE) == 1:
        pass
    tuner.record(ONE, 2, 0.05)
    assert tuner.choose(ONE) == 2


def test_calls_that_tell_nothing_leave_it_at_what_is_usual() -> None:
    for told in (0, CALLS_TO_KNOW, CALLS_TO_KNOW + 1):
        tuner = ThreadTuner(2, 2)
        chosen(tuner, ONE, {1: 0.1, 2: 0.2}, told)
        choices = [tuner.choose(ONE) for _ in range(20 * TRIAL_INTERVAL)]
        assert choices.count(1) <= MAX_TRIAL_CALLS * (len(choices) // TRIAL_INTERVAL + 1)


def test_asking_for_the_quicker_one_tries_nothing() -> None:
    tuner = ThreadTuner(2, 2)
    assert [tuner.faster(ONE) for _ in range(2 * TRIAL_INTERVAL)] == [2] * (2 * TRIAL_INTERVAL)
    chosen(tuner, ONE, {1: 0.1, 2: 0.2}, 2 * CALLS_TO_KNOW)
    assert [tuner.faster(ONE) for _ in range(2 * TRIAL_INTERVAL)] == [1] * (2 * TRIAL_INTERVAL)
