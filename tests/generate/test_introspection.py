"""What is said of a head, by heads that are known."""

import math

import pytest
import torch
from torch import Tensor

from tinychat.generate.introspection import describe_heads, shrink

IDS = torch.tensor([5, 1, 2, 3, 1, 2, 7, 3])
TIME = len(IDS)


def one_hot(keys: list[int]) -> Tensor:
    """A head each of whose queries looks at one key."""
    return torch.eye(TIME)[keys].unsqueeze(0)


def uniform() -> Tensor:
    lower = torch.ones(TIME, TIME).tril()
    return (lower / lower.sum(-1, keepdim=True)).unsqueeze(0)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ([0, 0, 1, 2, 3, 4, 5, 6], "previous"),
        ([0] * TIME, "first"),
        (list(range(TIME)), "itself"),
        ([0, 0, 0, 0, 1, 2, 0, 3], "same"),
        ([0, 0, 0, 0, 2, 3, 0, 4], "followed"),
    ],
)
def test_a_head_that_looks_at_one_thing_is_told_by_it(keys: list[int], what: str) -> None:
    (head,) = describe_heads(one_hot(keys), IDS, 4)
    assert getattr(head, what) == 1
    assert head.entropy == 0
    assert head.distance == pytest.approx(sum(position - keys[position] for position in range(2, TIME)) / (TIME - 2))


def test_a_head_that_looks_everywhere() -> None:
    (head,) = describe_heads(uniform(), IDS, 4)
    shares = [1 / (position + 1) for position in range(2, TIME)]
    assert head.first == head.previous == head.itself == pytest.approx(sum(shares) / len(shares))
    assert head.entropy == pytest.approx(sum(-math.log2(share) for share in shares) / len(shares))
    assert head.same == pytest.approx((1 / 5 + 1 / 6 + 1 / 8) / 3)
    assert head.distance == pytest.approx(sum(position / 2 for position in range(2, TIME)) / len(shares))


def test_what_comes_again_hardly_ever_says_nothing_of_a_head() -> None:
    ids = torch.arange(20)
    ids[19] = 3
    (head,) = describe_heads(torch.eye(20)[[*[0] * 19, 3]].unsqueeze(0), ids, 4)
    assert head.same == 0


@pytest.mark.parametrize("length", [1, 2])
def test_the_shortest_sequences(length: int) -> None:
    (head,) = describe_heads(torch.eye(length).unsqueeze(0), torch.arange(length), 4)
    assert head.itself == 1
    assert head.cells == tuple(map(tuple, torch.eye(length).tolist()))


def test_attention_to_an_encoder_has_no_places_of_its_own() -> None:
    (head,) = describe_heads(torch.full((1, 4, 2), 0.5), None, 3)
    assert (head.first, head.entropy, head.previous, head.distance) == (0.5, 1, 0, 0)
    assert head.cells == ((0.5, 0.5),) * 3


@pytest.mark.parametrize("cells", [1, 3, 7, 8, 20])
def test_a_smaller_map_keeps_the_whole_of_each_row(cells: int) -> None:
    small = shrink(uniform(), cells)
    assert small.shape == (1, min(cells, TIME), min(cells, TIME))
    torch.testing.assert_close(small.sum(-1), torch.ones(small.shape[:2]))
    assert small.triu(1).sum() == 0
