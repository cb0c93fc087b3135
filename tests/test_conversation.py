"""The conversation as a tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.conversation import Conversation, Turn
from tinychat.errors import UsageError


def prompts(conversation: Conversation) -> list[str]:
    return [turn.prompt for turn in conversation.turns]


def test_what_is_said_follows_where_the_conversation_stands() -> None:
    conversation = Conversation()
    assert conversation.back() is None
    for prompt in ("a", "b"):
        conversation.add(Turn(prompt))
    assert conversation.back() == Turn("b")
    conversation.add(Turn("c"))
    assert prompts(conversation) == ["a", "c"]
    conversation.go_to(2)
    assert prompts(conversation) == ["a", "b"]
    a, b, c = conversation.all
    assert conversation.children(None) == [a]
    assert conversation.children(a) == [b, c]
    assert [conversation.number(turn) for turn in (a, b, c)] == [1, 2, 3]
    for number in (0, 4):
        with pytest.raises(UsageError, match=f"there is no turn {number}"):
            conversation.go_to(number)


@given(st.lists(st.integers(min_value=-1, max_value=20)))
def test_nothing_that_was_said_is_ever_lost(moves: list[int]) -> None:
    """Of any row of moves (-1: back; to a turn, where there is one; else something is said)."""
    conversation, path, paths = Conversation(), [], {}
    for move in moves:
        if move < 0:
            conversation.back()
            path = path[:-1]
        elif 1 <= move <= len(conversation.all):
            conversation.go_to(move)
            path = paths[move]
        else:
            path = [*path, f"{len(conversation.all)}"]
            conversation.add(Turn(path[-1]))
            paths[len(conversation.all)] = path
        assert prompts(conversation) == path
    assert [turn.prompt for turn in conversation.all] == [f"{place}" for place in range(len(conversation.all))]
