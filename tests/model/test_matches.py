"""What followed earlier places that are like the last one, against comparing by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tinychat.model.config import LONGEST_MATCH
from tinychat.model.matches import BLOCK, Matches

SIZE = 4


def expected(matches: Matches, ids: list[int]) -> tuple[list[float], int]:
    """What follows the last of the ids, by comparing tails."""
    weights, lengths = [0.0] * SIZE, [0]
    for place in range(len(ids) - 1):
        same = 0
        while same < LONGEST_MATCH and place - same >= 0 and ids[place - same] == ids[len(ids) - 1 - same]:
            same += 1
        lengths.append(same)
        if same:
            distance = len(ids) - 1 - place
            weights[ids[place + 1]] += math.exp(same * matches.worth.item()) * distance ** -matches.distance.item()
    total = sum(weights) or 1.0
    return [weight / total for weight in weights], max(lengths)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=40), st.integers(0, 5), st.data())
def test_earlier_places_weigh_by_what_is_the_same(ids: list[int], behind: int, data: st.DataObject) -> None:
    matches = Matches()
    with torch.no_grad():
        matches.worth.fill_(0.7)
        matches.distance.fill_(0.3)
    history = torch.tensor([ids + [0] * behind])  # what stands behind is not looked at
    first = data.draw(st.integers(0, len(ids) - 1))  # as in decoding: not all places are asked for
    probabilities, lengths = matches(history, torch.arange(first, len(ids)), SIZE)
    assert probabilities.shape == (1, len(ids) - first, SIZE)
    for place in range(first, len(ids)):
        want, longest = expected(matches, ids[: place + 1])
        assert lengths[0, place - first] == longest
        torch.testing.assert_close(probabilities[0, place - first], torch.tensor(want), atol=1e-5, rtol=1e-4)


def test_many_places_are_looked_at_in_blocks() -> None:
    matches = Matches()
    history = torch.randint(SIZE, (2, 2 * BLOCK + 7), generator=torch.Generator().manual_seed(0))
    places = torch.arange(history.shape[1])
    whole, lengths = matches._look(history, places.unsqueeze(0), SIZE)
    got, got_lengths = matches(history, places, SIZE)
    torch.testing.assert_close(got, whole)
    assert torch.equal(got_lengths, lengths)


@pytest.mark.parametrize("behind", [2, -1])  # what stands behind a row's last token: anything, or nothing yet
def test_rows_may_be_asked_for_different_places(behind: int) -> None:
    matches, history = Matches(), torch.tensor([[0, 1, 0, behind, behind], [3, 3, 3, 3, 3]])
    for first in (0, 1):  # one place, and several at a time
        places = torch.tensor([[1, 2], [3, 4]])[:, first:]
        probabilities, lengths = matches(history, places, SIZE)
        assert probabilities[:, -1].argmax(-1).tolist() == [1, 3]
        assert lengths[:, -1].tolist() == [1, 4]


def test_numbers_without_a_dimension_are_taken() -> None:
    matches = Matches()
    matches.load_state_dict({"worth": torch.tensor(0.7), "distance": torch.tensor(0.3)})
    assert matches.state_dict() == {"worth": torch.tensor([0.7]), "distance": torch.tensor([0.3])}
