"""Drawing an answer while it is generated, the keys that act on it, and walking through it afterwards."""

import itertools
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prompt_toolkit.input import PipeInput
from prompt_toolkit.input.typeahead import get_typeahead
from screens import Person, Screen, answered
from test_at_a_terminal import CTRL_C, CTRL_L, ENTER, ESCAPE

from tinychat.commands.results import StreamAnswer, summary
from tinychat.errors import GenerationError
from tinychat.events import (
    AnswerStart,
    Candidates,
    ChoiceProbabilities,
    ChoiceProbability,
    Finished,
    Notice,
    Record,
    SettingsChanged,
    Token,
)
from tinychat.repl.answer_view import AnswerView, Producer, Throughput
from tinychat.repl.keys import Keyboard
from tinychat.session.session import Session

PATIENCE = 60.0


def poll(producer: Producer[Any], count: int) -> list[Any]:
    """Return the next `count` records."""
    records: list[Any] = []
    while len(records) < count:
        records += producer.poll(PATIENCE)
    return records


def test_a_paused_producer_makes_single_steps_and_stopping_ends_the_pause() -> None:
    go = threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count())

    producer = Producer(count, lambda number: 0.0)
    producer.toggle_pause()
    go.set()
    assert poll(producer, 1) == [0]
    producer.step(3)
    assert poll(producer, 3) == [1, 2, 3]
    assert producer.is_paused
    producer.stop()
    assert not producer.is_paused
    assert poll(producer, 1) == [None]


def test_a_held_producer_generates_nothing_and_stopping_ends_the_hold() -> None:
    go, resumed = threading.Event(), threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from range(2)
        resumed.set()
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count(2))

    producer = Producer(count, lambda number: 0.0)
    producer.hold(True)
    go.set()
    assert poll(producer, 1) == [0]
    assert not resumed.is_set()
    producer.hold(False)
    assert poll(producer, 1)[0] == 1
    producer.hold(True)
    producer.stop()
    while poll(producer, 1)[-1] is not None:
        pass


def test_records_without_a_delay_come_even_in_a_pause() -> None:
    go = threading.Event()

    def letters(should_stop: Callable[[], bool]) -> Iterator[str]:
        go.wait(PATIENCE)
        yield from "abcd"

    producer = Producer(letters, lambda letter: 0.0 if letter == "c" else None)
    producer.toggle_pause()
    go.set()
    assert poll(producer, 3) == ["a", "b", "c"]
    producer.toggle_pause()
    assert poll(producer, 2) == ["d", None]


def test_an_error_comes_in_place_of_the_record_that_it_prevented() -> None:
    def fail(should_stop: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("no")

    one, error, end = poll(Producer(fail, lambda number: None), 3)
    assert (one, str(error), end) == (1, "no", None)


# --- drawing an answer ---


END = Finished("end", 2, 0.001, 123)


def token(text: str) -> Token:
    return Token(1, text, -1.0, 0.0)


Play = Callable[..., Screen]


@pytest.fixture
def play(session: Session, input: PipeInput) -> Play:
    def play(records: Iterable[Record], *, dumb: bool = True, before: str = "", screen: Screen | None = None) -> Screen:
        screen = screen or Screen()
        answer = StreamAnswer(lambda should_stop: iter(records), before)
        AnswerView(answer, session, screen.terminal(dumb=dumb), Keyboard(input)).play()
        return screen

    session.model.preload()
    assert session.model.engine
    return play


def test_tokens_are_written_forward_and_followed_by_a_summary(play: Play) -> None:
    screen = play([token("he"), token("llo"), END])
    assert screen.getvalue() == "hello\n2 tokens · 2,000 tok/s · stop: end of turn · seed 123\n"


def test_a_text_that_ends_its_line_is_not_ended_twice(play: Play) -> None:
    assert play([token("hello\n"), END]).lines[:2] == ["hello", "2 tokens · 2,000 tok/s · stop: end of turn · seed 123"]


def test_each_answer_of_several_stands_under_its_name(play: Play) -> None:
    screen = play([AnswerStart("step 0"), token("xq"), AnswerStart("step 2"), token("hello"), END])
    assert screen.lines[:4] == ["step 0", "xq", "step 2", "hello"]


def test_a_continued_answer_begins_with_the_end_of_the_text_so_far(play: Play) -> None:
    assert play([token(" there"), END], before="hello").lines[0] == "hello there"


def test_notices_stand_before_the_text_or_behind_it(play: Play) -> None:
    records = [Notice("unknown: 'x'"), token("he"), Notice("longer than the context"), token("llo"), END]
    assert play(records).lines[:3] == ["unknown: 'x'", "hello", "longer than the context"]


def test_what_an_answer_was_chosen_from_stands_below_it(play: Play) -> None:
    chances = (ChoiceProbability("no", 0.75, 1.0), ChoiceProbability("yes", 0.25, 0.0))
    records = [ChoiceProbabilities(chances), token("no"), END]
    assert play(records).lines[:3] == ["no", "choices: no 75.0 % · yes 25.0 %", "as sampled: no 100.0 % · yes 0.0 %"]
    candidates = Candidates((("b", -0.5), ("a", -0.75), ("c", -2.0)))
    line = "best of 3: log-probability -0.50 per token, the others -0.75 to -2.00"
    assert play([token("b"), candidates, END]).lines[:2] == ["b", line]


def test_an_error_is_raised_after_the_text_so_far(play: Play) -> None:
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
def test_the_summary(session: Session, finished: Finished, line: str) -> None:
    assert summary(finished, session, show_seed=False) == line
    assert summary(finished, session, show_seed=True) == f"{line} · seed 1"


def waiting(condition: Callable[[], bool], first: str = "a") -> Iterator[Record]:
    """Yield one token, wait for the condition, and yield the rest."""
    yield token(first)
    wait_for(condition)
    yield token("b")
    yield END


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("the condition never held")


def test_without_a_status_line_a_change_is_written_into_the_text(
    play: Play, input: PipeInput, session: Session
) -> None:
    input.send_text("\x1b[C")
    screen = play(waiting(lambda: session.settings.current.max_tokens == 272))
    assert screen.lines[0] == "a⟨max-tokens 256 → 272⟩b"


def test_a_change_of_the_sampling_settings_is_marked_where_it_acts(play: Play, input: PipeInput) -> None:
    screen = play([token("a"), SettingsChanged("temp 1.3 · top-p 0.9"), token("b"), END])
    assert screen.lines[0] == "a⟨temp 1.3 · top-p 0.9⟩b"


def test_throughput_is_that_of_the_last_second() -> None:
    now = [0.0]
    throughput = Throughput(lambda: now[0])
    assert throughput.tokens_per_second() == 0
    for _ in range(30):
        now[0] += 0.1
        throughput.record()
    assert throughput.tokens_per_second() == pytest.approx(11, abs=1)
    now[0] += 0.5
    assert throughput.tokens_per_second() == pytest.approx(5, abs=1)
    now[0] += 1
    assert throughput.tokens_per_second() == 0


def test_letters_are_keys_until_something_is_typed(play: Play, input: PipeInput, session: Session) -> None:
    input.send_text("ggg")

    def records() -> Iterator[Record]:
        yield token("a")
        wait_for(lambda: session.settings.current.greedy)
        input.send_text("one giant\x7f leap\rand\x04\x1a one")
        yield from waiting(lambda: _is_read(input))

    play(records())
    assert session.settings.current.greedy
    assert "".join(key.data for key in get_typeahead(input)) == "one gian leap\rand one"


def test_letters_that_others_follow_at_once_are_no_keys(play: Play, input: PipeInput, session: Session) -> None:
    before = session.settings.current
    input.send_text("good [me]?\r[2] no\r]")
    play(waiting(lambda: _is_read(input)))
    assert session.settings.current == replace(before, top_p=1.0), "the last bracket stands alone"
    assert "".join(key.data for key in get_typeahead(input)) == "good [me]?\r[2] no\r"


def _is_read(input: PipeInput) -> bool:
    """Return whether the pipe is empty."""
    return not select.select([input.fileno()], [], [], 0)[0]


def test_a_pasted_block_is_kept_whole(play: Play, input: PipeInput) -> None:
    input.send_text("\x1b[200~one\ntwo\x1b[201~")
    play(waiting(lambda: _is_read(input)))
    (key,) = get_typeahead(input)
    assert key.data == "one\ntwo"


def test_a_command_allowed_while_busy_runs_at_once_and_others_wait(
    play: Play, input: PipeInput, session: Session
) -> None:
    input.send_text("/models\r/seed 7\r")
    play(waiting(lambda: session.settings.current.seed == 7))
    assert "".join(key.data for key in get_typeahead(input)) == "/models\r"


@pytest.mark.parametrize("line", ["/help", "help", "/set"])
def test_a_command_that_shows_more_than_a_message_waits_for_the_prompt(play: Play, input: PipeInput, line: str) -> None:
    input.send_text(f"{line}\r/set seed\r")
    screen = play(waiting(lambda: _is_read(input)))
    assert "".join(key.data for key in get_typeahead(input)) == f"{line}\r"
    assert ("esc stop" in screen.getvalue()) is ("help" in line)


@pytest.mark.slow
def test_the_beginning_of_a_word_shows_before_its_end_comes(play: Play) -> None:
    screen = Screen(24, 8)

    def letters() -> Iterator[Record]:
        yield token("a word ")
        for end in range(1, 6):
            shown = f"a word {'inter'[:end]}"
            yield token(shown[-1])
            wait_for(lambda shown=shown: screen.lines[0] == shown)  # type: ignore[misc]
        yield END

    play(letters(), dumb=False, screen=screen)


def test_a_word_shows_at_once_in_a_pause(play: Play, input: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.repl.answer_view.WORD_PATIENCE", 1000.0)
    screen = Screen(40, 8)

    def go_on() -> None:
        wait_for(lambda: "paused" in screen.getvalue() and screen.lines[0].startswith("wor"))
        input.send_text(" ")

    input.send_text(" ")
    threading.Thread(target=go_on, daemon=True).start()
    play(waiting(lambda: "paused" in screen.getvalue(), "wor"), dumb=False, screen=screen)
    assert screen.lines[0] == "worb"


# --- walking through an answer ---


SitDown = Callable[..., Person]
HINT = "←/→ walk · q or any other key ends · ↑/↓ choose, Enter goes on from there"


@pytest.fixture
def person(sit_down: SitDown) -> Person:
    person = sit_down()
    person.type("hello", ENTER)
    person.sees(answered)
    return person


def titled(words: str) -> Callable[[list[str]], bool]:
    """Return a condition: the probabilities of only this token are on screen."""
    return lambda lines: [line.split(" · ")[0] for line in lines if line.startswith("token ")] == [words]


@pytest.mark.slow
def test_arrows_walk_and_enter_goes_on_from_the_selected_token(person: Person) -> None:
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


@pytest.mark.slow
def test_in_a_narrow_window_the_hint_tells_how_to_leave(sit_down: SitDown) -> None:
    person = sit_down(columns=40)
    person.type("hello", ENTER)
    person.sees("you said: hello", "›")
    person.type("/why 2", ENTER)
    person.sees(lambda lines: any(line.startswith("←/→ walk · q or any other key ends") for line in lines))


@pytest.mark.slow
def test_in_a_low_window_the_selected_token_is_on_screen(sit_down: SitDown) -> None:
    person = sit_down(rows=10)
    person.type("hello", ENTER)
    person.sees(answered)
    person.type("/why 2", ENTER)
    person.sees(HINT)
    for _ in range(7):
        person.type("down")
    person.sees(HINT, "you› said‹: hello", lambda lines: any(line.startswith('» "') for line in lines))


@pytest.mark.slow
def test_keys_end_the_walk_and_the_probabilities_stay(person: Person) -> None:
    for key in (ESCAPE, CTRL_C, ENTER, "q"):
        person.type("/why 2", ENTER)
        person.sees(HINT)
        person.type(key)
        person.sees(titled("token 2 of 4"), lambda lines: HINT not in lines and "›" in lines)
        person.type(CTRL_L)
        person.sees(lambda lines: lines[0] == "›")
    person.type("/why", ENTER, "and you", ENTER)  # any other key begins the next prompt
    person.sees("› and you", "you said: and you", answered)


@pytest.mark.slow
def test_a_dumb_terminal_shows_one_token(sit_down: SitDown) -> None:
    person = sit_down(TERM="dumb")
    person.type("hello", ENTER)
    person.sees("you said: hello")
    person.type("/why 2", ENTER, "and you", ENTER)
    person.sees("you said: and you", titled("token 2 of 4"), lambda lines: HINT not in lines)
