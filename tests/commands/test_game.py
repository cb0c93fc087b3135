"""`/play`: what is guessed."""

import signal
from pathlib import Path
from typing import Any

import pytest
from scripted import Talk

from tinychat.commands.results import GuessingGame
from tinychat.errors import UsageError
from tinychat.evaluate.shannon_game import Game
from tinychat.session.session import Session

TOY = Path(__file__).parents[1] / "toys" / "translation"


def begin(talk: Talk, line: str) -> Game:
    result = talk.do(line)
    assert isinstance(result, GuessingGame)
    return result.start()


def test_the_answer_to_a_prompt_is_hidden_and_becomes_no_turn(talk: Talk) -> None:
    game = begin(talk, "/play hello")
    assert (game.text, game.rest) == ("hello\n", "you said: hello")
    while not game.is_over:
        game.give_up()
    assert game.text == "hello\nyou said: hello"
    assert game.score.characters == len("you said: hello")
    assert talk.session.turns == []


def test_without_one_it_is_the_last_prompt(talk: Talk) -> None:
    talk.ask("one")
    assert begin(talk, "/play").text == "one\n"


def test_a_prompt_may_begin_with_a_tilde(talk: Talk) -> None:
    assert begin(talk, "/play ~hello").text == "~hello\n"


def test_a_prompt_may_be_too_long_for_the_name_of_a_file(talk: Talk) -> None:
    prompt = "hello there " * 30 + "hello"
    assert begin(talk, f"/play {prompt}").text == f"{prompt}\n"


def test_a_completion_goes_on_behind_its_prompt(talk: Talk) -> None:
    talk.do("/model other")
    assert begin(talk, "/play hello").text == "hello"


def test_a_passage_of_a_file_is_out_of_its_last_tenth_and_the_same_by_the_same_seed(talk: Talk) -> None:
    talk.do("/model other")
    talk.do("/seed 7")
    Path("my novel.txt").write_text("you said hello there " * 2000 + "0123456789 " * 400)
    one, other = begin(talk, "/play my novel.txt"), begin(talk, "/play 'my novel.txt'")
    assert one.text == other.text
    assert set(one.text + one.rest) <= set("0123456789 ")
    assert len(one.text) >= 40


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/play", "there is no prompt yet"),
        ("/play short.txt", "the last tenth of short.txt has too few tokens to guess"),
    ],
)
def test_what_cannot_be_played_is_said(talk: Talk, line: str, problem: str) -> None:
    Path("short.txt").write_text("hello " * 20)
    with pytest.raises(UsageError) as caught:
        begin(talk, line)
    assert caught.value.problem == problem


def test_a_translator_does_not_go_on_with_a_text(talk: Talk) -> None:
    Path("novel.txt").write_text("hello there " * 2000)
    talk.do("/model translate")
    with pytest.raises(UsageError, match="translate translates, so it cannot tell how a text goes on"):
        begin(talk, "/play novel.txt")


def test_a_translator_is_asked_for_one_sentence() -> None:
    talk = Talk(Session())
    talk.session.open_model(str(TOY))
    assert begin(talk, "/play let's go").rest == "ir vamos"
    with pytest.raises(UsageError, match="the game takes one sentence, not 2"):
        begin(talk, "/play let's go. love you.")


def test_the_making_of_the_answer_can_be_stopped(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, ends = talk.session.model.engine, []
    extend = engine.extend

    def press_ctrl_c_and_extend(*args: Any, **kwargs: Any) -> object:
        signal.raise_signal(signal.SIGINT)
        tokens = extend(*args, **kwargs)
        ends.append("is not interrupted itself")
        return tokens

    monkeypatch.setattr(engine, "extend", press_ctrl_c_and_extend)
    with pytest.raises(KeyboardInterrupt):
        begin(talk, "/play count")
    assert len(ends) == 1


def test_files_and_data_sets_are_completed(talk: Talk) -> None:
    Path("novel.txt").touch()
    offered = list(talk.completions("play", "no"))
    assert offered[0] == "novel.txt"
    assert "tinyshakespeare" in offered
