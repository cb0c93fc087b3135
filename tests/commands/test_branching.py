"""The conversation as a tree: `/branch`, `/tree`, `/goto`, and going on from a token that `/why` shows."""

import pytest
import torch
from scripted import Talk

from tinychat.commands import COMMANDS
from tinychat.commands.results import Answer, Message, Outline, Walk
from tinychat.errors import UsageError
from tinychat.events import Finished, Token
from tinychat.generate.engine import Request
from tinychat.model.loading import load_model
from tinychat.session import Session


def said(session: Session, line: str) -> str:
    """What the model says to a command, the tokens chosen for it included."""
    result = COMMANDS.dispatch(session, line)
    assert isinstance(result, Answer)
    return result.before + "".join(record.text for record in result.start(lambda: False) if isinstance(record, Token))


def tree(session: Session) -> list[str]:
    outline = COMMANDS.dispatch(session, "/tree")
    assert isinstance(outline, Outline)
    return [f"{'›' if row.is_here else ' '}{row.prefix}{row.text}" for row in outline.rows]


def test_what_follows_one_another_stands_flat_and_what_has_siblings_branches(talk: Talk) -> None:
    for line in ("a", "b", "/retry", "c", "/goto 1", "d"):
        talk.do(line) if line.startswith("/goto") else talk.said(line) if line.startswith("/") else talk.ask(line)
    assert tree(talk.session) == [
        " 1  a → you said: a",
        " ├─ 2  b → you said: b",
        " ├─ 3  b → you said: b",
        " │  4  c → you said: c",
        "›└─ 5  d → you said: d",
    ]
    assert talk.do("/goto 4") == Message(("› c", "you said: c"), ("turn 4, after 2 others",))
    assert [turn.prompt for turn in talk.session.turns] == ["a", "b", "c"]
    assert talk.do("/goto 0") == Message(("before the first turn",))
    talk.ask("e")
    assert tree(talk.session)[-1] == "›└─ 6  e → you said: e"


@pytest.mark.parametrize("line", ["/tree", "/goto 1", "/branch 1 a"])
def test_before_anything_is_said_there_is_no_tree(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError):
        talk.do(line)


@pytest.mark.parametrize("line", ["/goto 2", "/goto x", "/goto", "/branch", "/branch 99 a", "/branch 1", "/branch x y"])
def test_what_is_not_there_is_refused(talk: Talk, line: str) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError):
        talk.do(line)
    assert len(talk.session.conversation.all) == 1


def test_a_branch_says_the_answer_anew_as_far_as_a_token(spelled: Session) -> None:
    (old,) = spelled.turns
    text = said(spelled, '/branch 4 "xyz"')
    (new,) = spelled.turns
    assert text == new.answer
    assert new.answer.startswith(old.answer[:3] + "xyz")
    assert (len(new.tokens), new.finished and new.finished.reason) == (12, "length")
    assert spelled.conversation.all == [old, new]
    assert new.obstacle  # no call makes it again


def test_the_tokens_of_a_branch_have_the_odds_that_the_model_gave_them(spelled: Session) -> None:
    said(spelled, "/branch 4 xyz")
    (turn,) = spelled.turns
    model = load_model(spelled.model.info)
    ids = torch.tensor([[*turn.prompt_ids, *(token.id for token in turn.tokens)]])
    with torch.inference_mode():
        logprobs = model(ids)[0].log_softmax(-1)
    begin = len(turn.prompt_ids)
    for place, token in enumerate(turn.tokens):
        assert token.logprob == pytest.approx(logprobs[begin + place - 1, token.id].item(), abs=1e-4)


def test_the_same_token_with_the_same_seed_says_what_was_said(spelled: Session) -> None:
    answer = spelled.turns[0].answer
    assert said(spelled, f"/branch 5 {answer[4]}") == answer


def test_a_branch_in_a_chat_is_of_the_last_answer_of_the_path(talk: Talk) -> None:
    talk.ask("one")
    talk.ask("two")
    said(talk.session, "/branch 3 -2")
    assert [turn.prompt for turn in talk.session.turns] == ["one", "two"]
    assert len(talk.session.conversation.all) == 3


def test_characters_that_the_model_does_not_know_cannot_be_said(spelled: Session) -> None:
    with pytest.raises(UsageError, match="letters does not know '★'"):
        COMMANDS.dispatch(spelled, "/branch 2 ★")


def test_another_token_that_why_shows_is_gone_on_from(spelled: Session) -> None:
    (old,) = spelled.turns
    looks = COMMANDS.dispatch(spelled, "/why 3")
    assert isinstance(looks, Walk)
    bars = looks.at(looks.place).bars
    other = next(place for place, bar in enumerate(bars) if not bar.marked)
    records = list(looks.choose(looks.place, other).start(lambda: False))
    (turn,) = spelled.turns
    assert turn.tokens[:2] == old.tokens[:2]
    assert repr(turn.tokens[2].text) == bars[other].label
    assert isinstance(records[-1], Finished)
    list(looks.choose(0, 0).start(lambda: False))  # of the answer that was looked at, wherever the conversation went
    assert spelled.conversation.all[:2] == [old, turn]


def test_a_token_that_ends_the_answer_ends_the_branch(talk: Talk) -> None:
    talk.ask("hello")
    end = talk.session.model.tokenizer.special("end")
    assert end is not None
    name = talk.session.model.tokenizer.token_text(end)
    result = talk.do(f"/branch 2 {name}")
    assert isinstance(result, Answer)
    (record,) = result.start(lambda: False)
    assert isinstance(record, Finished)
    assert (record.reason, talk.session.turns[-1].answer) == ("end", "you")


def test_what_the_model_saw_at_a_place_is_told(spelled: Session) -> None:
    (turn,) = spelled.turns
    ids = spelled.model.ids_before(turn, 3)
    assert ids == turn.prompt_ids + [token.id for token in turn.tokens[:3]]
    best = spelled.model.engine.odds(Request(0, ids, 3, spelled.settings.current, seed=0))[0]
    assert best.logprob <= 0
