"""Which tokens of a chat are learned."""

import numpy as np

from tinychat.train.batches import UserLossMask

USER, BOT, END = 1, 2, 3
ROW = np.array([USER, 10, 11, END, BOT, 20, 21, END, USER, 12, END, BOT, 22, END], np.uint16)


def test_answers_are_learned_with_their_ends_and_nothing_of_what_is_asked() -> None:
    learned = UserLossMask(USER, BOT, share=0.0, seed=1).learned(ROW, 0)
    assert ROW[1:][learned].tolist() == [BOT, 20, 21, END, BOT, 22, END]


def test_a_share_of_what_is_asked_is_learned_and_other_parts_of_it_at_other_places() -> None:
    asked = UserLossMask(USER, BOT, share=0.25, seed=1)
    chosen = [asked.learned(ROW, place)[:3] for place in range(400)]
    assert 0.2 < np.mean(chosen) < 0.3
    assert np.array_equal(asked.learned(ROW, 7), asked.learned(ROW, 7))
    assert len({tuple(one) for one in chosen}) == 8


def test_what_stands_before_the_first_mark_is_learned() -> None:
    assert UserLossMask(USER, BOT, share=0.0, seed=1).learned(np.array([20, 21, END, USER, 10]), 0).tolist() == [
        True, True, False, False
    ]  # fmt: skip
