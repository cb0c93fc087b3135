"""The guessing game on a screen."""

import math
from collections.abc import Callable, Sequence

import pytest
from prompt_toolkit.application.current import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from screens import Person, Screen

from tinychat.commands.results import GuessingGame
from tinychat.evaluate.shannon_game import OTHER, Game
from tinychat.generate.engine import TokenProbability
from tinychat.repl.game_view import find_choice, play
from tinychat.session.session import Session
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

CHARACTERS = Tokenizer(train_vocabulary("char", ["to be or not\n"], 300, []))
COUNT = CHARACTERS.vocab_size
TEXT = "to be\nor not to be"


def even(known: Sequence[int]) -> list[TokenProbability]:
    return [TokenProbability(id, -math.log(COUNT), 0.0) for id in range(COUNT)]


def play_game(session: Session, keys: str, *, dumb: bool = False, colour: bool = False) -> list[str]:
    """Return the lines on screen after a game in which `keys` are typed; the prompts themselves are not on it."""
    game = Game(CHARACTERS, CHARACTERS.encode(TEXT), 3, even, TEXT[:3])
    screen = Screen()
    with create_pipe_input() as input, create_app_session(input=input, output=DummyOutput()):
        input.send_text(keys)
        play(GuessingGame(lambda: game), session, screen.terminal(dumb=dumb, colour=colour))
    return screen.lines


def test_each_guess_gets_a_line_with_its_outcome(session: Session) -> None:
    session.model.preload()
    session.model.wait(lambda: False)
    assert play_game(session, "be\\nx\r\ro\rr not\r/quit\r") == [
        "How does it go on? Type a character and Enter, or several if you are sure.",
        "Guesses cost bits, right ones few; parrot pays its surprisal. Fewer bits win.",
        "✓ 'be\\n' ✗ 'x' · bits: you 0.4, parrot 9.0 · it gave 'b' 12 %, 'e' 12 %, '\\n' …",
        "it was 'o' · bits: you 3.4, parrot 12.0 · it gave 'o' 12 %",
        "✗ 'o' · bits: you 4.4, parrot 12.0",
        "✓ 'r not' · bits: you 6.7, parrot 27.0 · it gave 'r' 12 %, ' ' 12 %, 'n' 12 %,…",
        "it goes on:  to be",
        "you 0.74 bits/char · parrot 3.00 bits/char · 9 characters",
        "you won by 20.3 bits · after so few that may be luck",
    ]


def test_a_game_on_a_dumb_terminal_until_the_end_of_the_text(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    guesses = iter(["n", "be\\nor not to be"])
    monkeypatch.setattr("builtins.input", lambda mark: next(guesses))
    lines = play_game(session, "", dumb=True)
    assert lines[-5] == "\\n is a new line · Enter tells · /quit ends"
    assert lines[-4] == "✗ 'n' · bits: you 1.0, parrot 0.0"
    assert lines[-2:] == [
        "you 0.27 bits/char · parrot 3.00 bits/char · 15 characters",
        "you won by 40.9 bits · after so few that may be luck",
    ]


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("1", " the"), ("0", OTHER), ("3", "!"), ("5", None), ("99999999", None), (" the", " the"), ("the", " the"),
        ("7", "7"), ("!", "!"), ("\\n", "\n"), ("th", None), ("", None), (" ", None), ("a", "a"), (" a", " a"),
    ],
)  # fmt: skip
def test_a_piece_is_chosen_by_its_number_or_its_text(typed: str, choice: str | None) -> None:
    assert find_choice(typed, (" the", "7", "!", "\n", " a", "a")[: 4 if typed == "5" else 6]) == choice


def test_a_game_without_guesses_has_no_winner(session: Session) -> None:
    lines = play_game(session, "/quit\r", colour=True)
    assert lines[-1] == "nothing was guessed"
    assert lines[-2] == "or not to be"  # after the new line


@pytest.mark.slow
def test_a_game_at_a_terminal_and_its_end(sit_down: Callable[..., Person]) -> None:
    person = sit_down()
    person.type("/play hello\r")
    person.sees("hello↵▏", lambda lines: lines[-1] == " Enter tells · Esc ends")
    person.type("x\r")
    person.sees("a piece, or its number from 0 to 7, or Enter to be told")
    person.type("\r")
    person.sees(lambda lines: any(line.startswith("it was 'you' · bits: you 3.0, parrot 1.0 · ") for line in lines))
    person.sees(lambda lines: any("' said'" in line for line in lines))
    person.type("said!\r")
    person.sees(lambda lines: any(line.startswith("✓ ' said' · bits: you 3.2, parrot 2.0") for line in lines))
    person.type("\x1b")
    person.sees(
        "it goes on: : hello",
        "you 0.39 bits/char · parrot 0.25 bits/char · 8 characters",
        "parrot won by 1.2 bits · after so few that may be luck",
        "›",
    )
    person.type("hi\r")
    person.sees("you said: hi")


# --- automatic saving ---
