"""Making answers in a thread that keys can stop and pause.

An answer as it is drawn, and the keys that change it, without a terminal.

Walking through an answer, and going on from another token, at a terminal.
"""

import itertools
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from prompt_toolkit.input import PipeInput
from prompt_toolkit.input.typeahead import get_typeahead
from screens import Person, Screen, answered
from test_at_a_terminal import CTRL_C, ENTER, ESCAPE

from tinychat.commands.results import Answer, summary
from tinychat.errors import GenerationError
from tinychat.events import Changed, Finished, Notice, Part, Record, Token
from tinychat.repl.answer_view import Player, Producer, Rate
from tinychat.repl.keys import Keyboard
from tinychat.session.session import Session

PATIENCE = 60.0


def taken(producer: Producer[Any], count: int) -> list[Any]:
    """The next so many records."""
    records: list[Any] = []
    while len(records) < count:
        records += producer.take(PATIENCE)
    return records


def test_in_a_pause_comes_what_is_asked_for_and_stopping_ends_it() -> None:
    go = threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count())

    producer = Producer(count, lambda number: 0.0)
    producer.pause()
    go.set()
    assert taken(producer, 1) == [0]
    producer.make_more(3)
    assert taken(producer, 3) == [1, 2, 3]
    assert producer.is_pausing
    producer.stop()
    assert not producer.is_pausing
    assert taken(producer, 1) == [None]


def test_nothing_is_made_while_it_is_held_and_stopping_ends_that() -> None:
    go, made = threading.Event(), threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from range(2)
        made.set()
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count(2))

    producer = Producer(count, lambda number: 0.0)
    producer.hold(True)
    go.set()
    assert taken(producer, 1) == [0]
    assert not made.is_set()
    producer.hold(False)
    assert taken(producer, 1)[0] == 1
    producer.hold(True)
    producer.stop()
    while taken(producer, 1)[-1] is not None:
        pass


def test_what_has_no_pace_comes_in_a_pause_too() -> None:
    go = threading.Event()

    def letters(should_stop: Callable[[], bool]) -> Iterator[str]:
        go.wait(PATIENCE)
        yield from "abcd"

    producer = Producer(letters, lambda letter: 0.0 if letter == "c" else None)
    producer.pause()
    go.set()
    assert taken(producer, 3) == ["a", "b", "c"]
    producer.pause()
    assert taken(producer, 2) == ["d", None]


def test_an_error_comes_in_the_place_of_what_it_was_in_the_way_of() -> None:
    def fail(should_stop: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("no")

    one, error, end = taken(Producer(fail, lambda number: None), 3)
    assert (one, str(error), end) == (1, "no", None)


# ---- from tests.repl.test_answer_view ----


END = Finished("end", 2, 0.001, 123)


def token(text: str) -> Token:
    return Token(1, text, -1.0, 0.0)


Play = Callable[..., Screen]


@pytest.fixture
def play(session: Session, input: PipeInput) -> Play:
    def play(records: Iterable[Record], *, dumb: bool = True, before: str = "") -> Screen:
        screen = Screen()
        answer = Answer(lambda should_stop: iter(records), before)
        Player(answer, session, screen.terminal(dumb=dumb), Keyboard(input)).play()
        return screen

    session.model.preload()
    assert session.model.engine
    return play


def test_tokens_are_written_forward_and_followed_by_what_they_took(play: Play) -> None:
    screen = play([token("he"), token("llo"), END])
    assert screen.getvalue() == "hello\n2 tokens · 2,000 tok/s · stop: end of turn · seed 123\n"


def test_a_text_that_ends_its_line_is_not_ended_twice(play: Play) -> None:
    assert play([token("hello\n"), END]).lines[:2] == ["hello", "2 tokens · 2,000 tok/s · stop: end of turn · seed 123"]


def test_each_answer_of_several_stands_under_its_name(play: Play) -> None:
    screen = play([Part("step 0"), token("xq"), Part("step 2"), token("hello"), END])
    assert screen.lines[:4] == ["step 0", "xq", "step 2", "hello"]


def test_an_answer_that_goes_on_begins_with_the_end_of_what_was_said(play: Play) -> None:
    assert play([token(" there"), END], before="hello").lines[0] == "hello there"


def test_notices_stand_before_the_text_or_behind_it(play: Play) -> None:
    records = [Notice("unknown: 'x'"), token("he"), Notice("longer than the context"), token("llo"), END]
    assert play(records).lines[:3] == ["unknown: 'x'", "hello", "longer than the context"]


def test_an_error_is_raised_after_what_was_said(play: Play) -> None:
    def records() -> Iterator[Record]:
        yield token("hel")
        raise GenerationError("the model gave NaN")

    with pytest.raises(GenerationError):
        play(records())


@pytest.mark.parametrize(
    ("finished", "line"),
    [
        (Finished("end", 14, 0.00606, 1), "14 tokens · 2,310 tok/s · stop: end of turn"),
        (Finished("length", 1, 0.5, 1), "1 token · 2 tok/s · stop: max tokens"),
        (Finished("stop", 3, 1.0, 1), "3 tokens · 3 tok/s · stop: stop text"),
        (Finished("interrupted", 0, 0.0, 1), "0 tokens · stop: interrupted"),
    ],
)
def test_the_last_line(session: Session, finished: Finished, line: str) -> None:
    assert summary(finished, session, show_seed=False) == line
    assert summary(finished, session, show_seed=True) == f"{line} · seed 1"


def waiting(for_what: Callable[[], bool], after: str = "a") -> Iterator[Record]:
    """Goes on once something has happened."""
    yield token(after)
    for _ in range(1000):
        if for_what():
            break
        threading.Event().wait(0.01)
    else:
        raise AssertionError("it never happened")
    yield token("b")
    yield END


def test_where_there_is_no_status_line_a_change_stands_in_the_text(
    play: Play, input: PipeInput, session: Session
) -> None:
    input.send_text("\x1b[C")
    screen = play(waiting(lambda: session.settings.current.max_tokens == 272))
    assert screen.lines[0] == "a⟨max-tokens 256 → 272⟩b"


def test_a_change_of_how_tokens_are_chosen_is_marked_where_it_acts(play: Play, input: PipeInput) -> None:
    screen = play([token("a"), Changed("temp 1.3 · top-p 0.9"), token("b"), END])
    assert screen.lines[0] == "a⟨temp 1.3 · top-p 0.9⟩b"


def test_the_rate_is_that_of_the_last_second() -> None:
    now = [0.0]
    rate = Rate(lambda: now[0])
    assert rate.now() == 0
    for _ in range(30):
        now[0] += 0.1
        rate.count()
    assert rate.now() == pytest.approx(11, abs=1)
    now[0] += 0.5
    assert rate.now() == pytest.approx(5, abs=1)
    now[0] += 1
    assert rate.now() == 0


def test_letters_are_keys_until_something_is_typed(play: Play, input: PipeInput, session: Session) -> None:
    input.send_text("ggone giant\x7f leap\rand\x04\x1a one")
    play(waiting(lambda: _is_read(input)))
    assert not session.settings.current.greedy
    assert "".join(key.data for key in get_typeahead(input)) == "one gian leap\rand one"


def _is_read(input: PipeInput) -> bool:
    """Whether nothing is left in the pipe."""
    return not select.select([input.fileno()], [], [], 0)[0]


def test_a_pasted_block_is_kept_whole(play: Play, input: PipeInput) -> None:
    input.send_text("\x1b[200~one\ntwo\x1b[201~")
    play(waiting(lambda: _is_read(input)))
    (key,) = get_typeahead(input)
    assert key.data == "one\ntwo"


def test_a_command_that_may_runs_at_once_and_others_wait(play: Play, input: PipeInput, session: Session) -> None:
    input.send_text("/models\r/seed 7\r")
    play(waiting(lambda: session.settings.current.seed == 7))
    assert "".join(key.data for key in get_typeahead(input)) == "/models\r"


# ---- from tests.repl.test_answer_view ----


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
