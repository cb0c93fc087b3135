"""The conversation as a tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.events import Finished, SettingsChanged, Token
from tinychat.session.conversation import Conversation, PackedTokens, Turn


def prompts(conversation: Conversation) -> list[str]:
    return [turn.prompt for turn in conversation.turns]


def test_a_new_turn_follows_the_current_one() -> None:
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
def test_no_turn_is_ever_lost(moves: list[int]) -> None:
    """For any sequence of moves: -1 goes back; the number of a turn goes there; any other number adds a turn."""
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
    assert [turn.prompt for turn in conversation.all] == [f"{position}" for position in range(len(conversation.all))]


TOKEN = Token(1, "a", -1.0, 0.0)


def test_recording_a_token_neither_creates_nor_compares_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    first, paced, equal = Settings(), Settings(slow=5.0), Settings(slow=5.0)
    turn = Turn("hi", settings=first)
    work: list[str] = []
    make, compare = Settings.__init__, Settings.__eq__

    def counted_make(self: Settings, *values: object, **others: object) -> None:
        work.append("made")
        make(self, *values, **others)  # type: ignore[arg-type]

    def counted_compare(self: Settings, other: object) -> bool:
        work.append("compared")
        return compare(self, other)

    monkeypatch.setattr(Settings, "__init__", counted_make)
    monkeypatch.setattr(Settings, "__eq__", counted_compare)
    for settings, most in ((first, 0), (paced, 3), (equal, 3), (first, 2)):
        work.clear()
        for _ in range(1000):
            turn.record(TOKEN, settings)
        assert len(work) <= most
    assert not turn.why_not_reproducible
    assert [(index, settings.slow) for index, settings in turn.changes] == [(0, None), (1000, 5.0), (3000, None)]
    assert len(turn.tokens) == 4000


def test_a_turn_records_the_settings_of_its_tokens_and_whether_it_is_reproducible() -> None:
    first, warm = Settings(seed=1), Settings(temperature=1.3)
    turn = Turn("hi", settings=first)
    turn.record(TOKEN, first)
    turn.record(TOKEN, Settings(seed=2, slow=3.0))  # neither changes the distribution of tokens
    assert turn.why_not_reproducible == ""
    turn.record(SettingsChanged("temp 1.3"), warm)
    assert turn.why_not_reproducible == "its settings changed meanwhile"
    turn.record(TOKEN, warm)
    turn.record(finished := Finished("interrupted", 3, 1.0, 1), warm)
    assert turn.why_not_reproducible == "its settings changed meanwhile"
    assert turn.finished is finished
    assert [turn.settings_at(index) for index in (0, 2)] == [first, warm]

    stopped = Turn("hi", settings=first)
    stopped.record(Finished("interrupted", 0, 0.0, 1), first)
    assert stopped.why_not_reproducible == "it was stopped"

    unknown = Turn("hi")
    unknown.record(TOKEN, first)
    assert unknown.why_not_reproducible == "its settings changed meanwhile"


def test_tokens_are_packed_when_an_answer_has_ended_and_unpacked_when_it_goes_on() -> None:
    tokens = [Token(3, "he", -0.1, 0.25), Token(70_000, "", -1e-9, 0.5), Token(0, "😀", -30.0, 1e6)]
    turn, settings = Turn("hi"), Settings()
    for token in tokens:
        turn.record(token, settings)
    turn.record(Finished("length", 3, 0.5, 7), settings)
    assert isinstance(turn.tokens, PackedTokens)
    assert turn.tokens == tokens
    assert (turn.tokens[-1], turn.tokens[1:], turn.tokens[::-1]) == (tokens[-1], tokens[1:], tokens[::-1])
    assert turn.answer == "he😀"
    with pytest.raises(IndexError):
        turn.tokens[3]
    turn.record(tokens[0], settings)
    assert turn.tokens == [*tokens, tokens[0]]


def test_alternatives_are_kept() -> None:
    turn, token = Turn("hi"), Token(3, "he", -0.1, 0.25, ((3, -0.1), (4, -2.0)))
    turn.record(token, Settings())
    turn.record(Finished("length", 1, 0.5, 7), Settings())
    assert turn.tokens == [token]
