"""With how many threads the native engine goes on."""

import itertools

from tinychat.generate.native.team import FIRST_CALLS, LONGEST_PATIENCE, LONGEST_TRIAL, PATIENCE, Team

ONE, MANY = False, True


def chosen(team: Team, is_wide: bool, seconds: dict[int, float], calls: int) -> list[int]:
    """The threads of some calls, in each of which a token takes the seconds of that many threads."""
    choices = []
    for _ in range(calls):
        choices.append(team.choose(is_wide))
        team.note(is_wide, choices[-1], seconds[choices[-1]])
    return choices


def test_the_quicker_number_stays_once_both_were_tried() -> None:
    assert chosen(Team(1, 4), ONE, {1: 0.2, 4: 0.1}, 20) == [1] * FIRST_CALLS + [4] * (20 - FIRST_CALLS)
    assert chosen(Team(4, 4), ONE, {1: 0.1, 4: 0.2}, 20) == [4] * FIRST_CALLS + [1] * (20 - FIRST_CALLS)


def test_a_first_call_in_which_threads_share_a_processor_does_not_decide() -> None:
    team = Team(1, 2)
    chosen(team, ONE, {1: 0.2}, FIRST_CALLS)
    chosen(team, ONE, {2: 3.0}, 1)
    assert chosen(team, ONE, {2: 0.1}, 20) == [2] * 20


def test_many_sequences_begin_with_all_threads_whatever_one_has_shown() -> None:
    team = Team(1, 2)
    chosen(team, ONE, {1: 0.1, 2: 0.2}, 6)
    assert chosen(team, MANY, {1: 0.2, 2: 0.1}, 2 * FIRST_CALLS + 2) == [2] * FIRST_CALLS + [1] * FIRST_CALLS + [2, 2]


def test_a_processor_that_is_taken_is_noticed_at_once_and_tried_less_and_less() -> None:
    team = Team(1, 2)
    chosen(team, ONE, {1: 0.2, 2: 0.1}, 6)
    taken = chosen(team, ONE, {1: 0.2, 2: 3.0}, 20 * LONGEST_PATIENCE)
    trials = [call for call, threads in enumerate(taken) if threads == 2]
    assert trials[0] == 0
    waits = [later - trial for trial, later in itertools.pairwise(trials)]
    assert waits[:4] == [PATIENCE, 2 * PATIENCE, 4 * PATIENCE, 8 * PATIENCE]
    assert waits[-1] == LONGEST_PATIENCE


def test_one_that_is_free_again_is_used_from_the_first_trial_on() -> None:
    team = Team(1, 2)
    chosen(team, ONE, {1: 0.2, 2: 3.0}, 40 * LONGEST_PATIENCE)
    free = chosen(team, ONE, {1: 0.2, 2: 0.1}, 2 * LONGEST_PATIENCE)
    assert free.index(2) < LONGEST_PATIENCE
    assert 1 not in free[free.index(2) : free.index(2) + PATIENCE - 1]


def test_with_one_thread_there_is_nothing_to_choose() -> None:
    assert chosen(Team(1, 1), ONE, {1: 0.1}, 2 * PATIENCE) == [1] * (2 * PATIENCE)


def test_it_is_tried_until_a_call_has_told_of_it() -> None:
    team = Team(2, 2)
    chosen(team, ONE, {1: 0.1, 2: 3.0}, 2 * FIRST_CALLS)
    choices = [team.choose(ONE) for _ in range(2 * PATIENCE)]
    assert choices[0] == 1
    first = choices.index(2)
    assert choices[first:][: LONGEST_TRIAL + 2] == [2] * LONGEST_TRIAL + [1, 1]
    while team.choose(ONE) == 1:
        pass
    team.note(ONE, 2, 0.05)
    assert team.choose(ONE) == 2


def test_calls_that_tell_nothing_leave_it_at_what_is_usual() -> None:
    for told in (0, FIRST_CALLS, FIRST_CALLS + 1):
        team = Team(2, 2)
        chosen(team, ONE, {1: 0.1, 2: 0.2}, told)
        choices = [team.choose(ONE) for _ in range(20 * PATIENCE)]
        assert choices.count(1) <= LONGEST_TRIAL * (len(choices) // PATIENCE + 1)


def test_asking_for_the_quicker_one_tries_nothing() -> None:
    team = Team(2, 2)
    assert [team.quicker(ONE) for _ in range(2 * PATIENCE)] == [2] * (2 * PATIENCE)
    chosen(team, ONE, {1: 0.1, 2: 0.2}, 2 * FIRST_CALLS)
    assert [team.quicker(ONE) for _ in range(2 * PATIENCE)] == [1] * (2 * PATIENCE)
