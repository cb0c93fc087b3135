"""Commands that look inside: the odds of a token, the surprise of a text, its pieces."""

import math
from pathlib import Path

import pytest
import torch
from scripted import Talk

from tinychat.commands import COMMANDS
from tinychat.commands.results import Bars, Message, Shaded, Walk
from tinychat.errors import UsageError
from tinychat.model.loading import load_model
from tinychat.scoring import score
from tinychat.session import Session
from tinychat.settings import Settings


def why(session: Session, line: str) -> Bars:
    """What `/why` shows first."""
    looks = COMMANDS.dispatch(session, line)
    assert isinstance(looks, Walk)
    return looks.at(looks.place)


def test_why_shows_the_odds_at_a_place(talk: Talk) -> None:
    talk.ask("hello")
    token = talk.session.turns[-1].tokens[1]
    result = why(talk.session, "/why 2")
    count, size = len(talk.session.turns[-1].tokens), talk.session.model.tokenizer.vocab_size
    title = f"token 2 of {count} · rank 1 of {size} · log-probability -0.69 · entropy 2.0 bits"
    assert result.title == title
    assert [bar.marked for bar in result.bars] == [True] + [False] * 7
    assert result.bars[0].label == repr(talk.session.model.tokenizer.token_text(token.id))
    assert result.bars[0].share == pytest.approx(0.5)
    assert result.notes == ("before and after temp 0.8 · top-p 0.95 · sample",)
    assert result.where == ("you", " said", ": hello")
    assert why(talk.session, "/why") == why(talk.session, f"/why {count}") == why(talk.session, "/why -1")


def test_why_tells_what_the_settings_made_of_the_odds(spelled: Session) -> None:
    COMMANDS.dispatch(spelled, "/greedy")
    greedy = why(spelled, "/why 5")
    assert 0 not in [bar.after for bar in greedy.bars]  # the answer was not made greedily
    COMMANDS.dispatch(spelled, "/temperature 0.5")
    COMMANDS.dispatch(spelled, "/set top-k 3")
    COMMANDS.dispatch(spelled, "/top-p 1")
    list(spelled.answer("abc"))
    cut = why(spelled, "/why 5")
    squares = [bar.share**2 for bar in cut.bars[:3]]
    assert [bar.after for bar in cut.bars[:3]] == pytest.approx([square / sum(squares) for square in squares])
    assert {bar.after for bar in cut.bars[3:]} == {0}
    assert cut.notes == ("before and after temp 0.5 · top-k 3 · top-p 1 · sample",)
    COMMANDS.dispatch(spelled, "/greedy")
    list(spelled.retry())
    greedy = why(spelled, "/why 5")
    assert [bar.after for bar in greedy.bars] == [1] + [0] * (len(greedy.bars) - 1)
    assert greedy.notes == ("before and after temp 0 · top-k 3 · top-p 1 · greedy",)


def test_why_knows_what_each_token_of_an_answer_was_drawn_with(spelled: Session) -> None:
    for place, _ in enumerate(spelled.answer("abc")):
        if place == 5:
            COMMANDS.dispatch(spelled, "/temperature 0.3")
    drawn_with = [why(spelled, f"/why {number}").notes[0].split(" · ")[0] for number in (6, 7, 12)]
    assert drawn_with == ["before and after temp 0.8", *["before and after temp 0.3"] * 2]


def test_why_adds_the_token_that_was_chosen_against_the_odds(spelled: Session) -> None:
    for place, token in enumerate(spelled.turns[-1].tokens, 1):
        result = why(spelled, f"/why {place}")
        (chosen,) = (bar for bar in result.bars if bar.marked)
        assert chosen.label == repr(token.text)
        assert math.log(chosen.share) == pytest.approx(token.logprob, abs=1e-4)
        assert len(result.bars) in (8, 9)


@pytest.mark.parametrize("place", ["0", "99", "x", "1.5"])
def test_why_refuses_a_place_that_is_not_there(talk: Talk, place: str) -> None:
    talk.ask("hello")
    with pytest.raises(UsageError, match="/why takes the number of a token, from 1 to"):
        talk.do(f"/why {place}")


def test_color_shows_the_surprise_of_each_token_of_the_last_answer(talk: Talk) -> None:
    talk.ask("hello")
    (turn,) = talk.session.turns
    result = talk.do("/color")
    assert isinstance(result, Shaded)
    assert result.pieces == tuple((token.text, pytest.approx(1)) for token in turn.tokens)
    bits = len(turn.tokens) / len(turn.answer)
    assert result.notes == (f"perplexity 2.00 · {bits:.3f} bits/char · {len(turn.tokens)} tokens",)
    assert talk.do("/colour") == result


@torch.inference_mode()
def test_color_tells_how_open_it_was_what_would_come(spelled: Session) -> None:
    result = COMMANDS.dispatch(spelled, "/color")
    assert isinstance(result, Shaded)
    (turn,) = spelled.turns
    ids = torch.tensor([spelled.model.ids_before(turn, len(turn.tokens))])
    logits = load_model(spelled.model.info)(ids[:, :-1])[0, -len(turn.tokens) :]
    expected = torch.distributions.Categorical(logits=logits).entropy() / math.log(2)
    assert result.entropies == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_character_of_several_tokens_has_the_surprise_of_all_of_them(talk: Talk) -> None:
    talk.ask("é")
    (turn,) = talk.session.turns
    assert [token.text for token in turn.tokens[-2:]] == ["", "é"]
    result = talk.do("/color")
    assert isinstance(result, Shaded)
    assert result.pieces[-1] == ("é", pytest.approx(2))


@pytest.mark.parametrize("text", ["ab", "hello there", "the quick brown fox jumps over the lazy dog " * 4])
def test_score_says_what_cross_entropy_and_eval_say(spelled: Session, tmp_path: Path, text: str) -> None:
    result = COMMANDS.dispatch(spelled, f"/score '{text}'")
    assert isinstance(result, Shaded)
    assert "".join(piece for piece, _ in result.pieces) == text
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    expected = score(spelled.model.info, [str(tmp_path / "text.txt")], "all", settings=Settings())
    tokens = f"{expected.tokens} {'token' if expected.tokens == 1 else 'tokens'}"
    facts = f"perplexity {expected.perplexity:,.2f} · {expected.bits_per_character:.3f} bits/char · {tokens}"
    assert result.notes == (facts,)


def test_the_surprise_of_each_token_is_its_cross_entropy(spelled: Session) -> None:
    result = COMMANDS.dispatch(spelled, "/score hello there")
    assert isinstance(result, Shaded)
    ids = torch.tensor(spelled.model.tokenizer.encode("hello there"))
    with torch.inference_mode():
        logits = load_model(spelled.model.info)(ids[None, :-1])[0]
        nats = torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none")
    assert result.pieces[0] == ("h", None)
    assert [bits for _, bits in result.pieces[1:]] == pytest.approx((nats / math.log(2)).tolist(), abs=1e-4)


def test_in_a_chat_a_text_is_scored_as_the_first_thing_said(talk: Talk) -> None:
    result = talk.do("/score hello there")
    assert isinstance(result, Shaded)
    assert "".join(piece for piece, _ in result.pieces) == "hello there"
    assert None not in [bits for _, bits in result.pieces]


def test_score_says_what_it_cannot_predict(spelled: Session) -> None:
    with pytest.raises(UsageError, match="needs a text"):
        COMMANDS.dispatch(spelled, "/score")
    with pytest.raises(UsageError, match="nothing can be predicted in 'a'"):
        COMMANDS.dispatch(spelled, "/score a")
    result = COMMANDS.dispatch(spelled, "/score abÜ")
    assert isinstance(result, Shaded)
    assert result.notes[1:] == ("unknown to this model, left out: 'Ü'",)


def test_tokens_shows_the_pieces_of_a_text(talk: Talk) -> None:
    result = talk.do("/tokens hello there")
    assert isinstance(result, Message)
    pieces = talk.session.model.tokenizer.pieces("hello there")
    assert result.lines == ("  ".join(f"{piece!r} {id}" for piece, id in pieces),)
    assert result.notes == (f"{len(pieces)} tokens for 11 characters",)
