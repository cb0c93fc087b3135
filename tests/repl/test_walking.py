"""Walking through an answer, and going on from another token, at a terminal."""

from collections.abc import Callable

import pytest
from screens import Person, answered
from test_at_a_terminal import CTRL_C, ENTER, ESCAPE

SitDown = Callable[..., Person]
HINT = "←/→ walk · ↑/↓ choose, Enter goes on from there · any other key ends"


@pytest.fixture
def person(sit_down: SitDown) -> Person:
    person = sit_down()
    person.type("hello", ENTER)
    person.sees(answered)
    return person


def titled(words: str) -> Callable[[list[str]], bool]:
    """Whether the odds of one token alone are on screen."""
    return lambda lines: [line.split(" · ")[0] for line in lines if line.startswith("token ")] == [words]


def test_arrows_walk_and_enter_goes_on_from_the_token_that_is_marked(person: Person) -> None:
    person.type("/why 2", ENTER)
    person.sees(HINT, "you› said‹: hello", titled("token 2 of 4"))
    person.type("left", "left")
    person.sees("›you‹ said: hello", titled("token 1 of 4"))
    person.type("right", "down")
    lines = person.sees(titled("token 2 of 4"), lambda lines: any(line.startswith("» ") for line in lines))
    other = next(line for line in lines if line.startswith("» ")).split("'")[1]
    person.type(ENTER)
    lines = person.sees(answered, lambda lines: HINT not in lines)
    assert any(line.startswith(f"you{other}") for line in lines)
    person.type("/tree", ENTER)
    person.sees("  ├─ 1  hello → you said: hello", lambda lines: any(f"› └─ 2  hello → you{other}" in x for x in lines))


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C, ENTER])
def test_a_key_ends_it_and_the_odds_stay(person: Person, key: str) -> None:
    person.type("/why 2", ENTER)
    person.sees(HINT)
    person.type(key)
    person.sees(titled("token 2 of 4"), lambda lines: HINT not in lines and "›" in lines)


def test_what_is_typed_instead_is_the_next_prompt(person: Person) -> None:
    person.type("/why", ENTER, "and you", ENTER)
    person.sees("› and you", "you said: and you", answered)


def test_a_dumb_terminal_is_shown_one_token(sit_down: SitDown) -> None:
    person = sit_down(TERM="dumb")
    person.type("hello", ENTER)
    person.sees("you said: hello")
    person.type("/why 2", ENTER, "and you", ENTER)
    person.sees("you said: and you", titled("token 2 of 4"), lambda lines: HINT not in lines)
