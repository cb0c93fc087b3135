"""Wrapping of growing texts, their layout in columns, and the view of several answers."""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.utils import get_cwidth
from screens import Person, Screen

from tinychat.commands.results import ParallelAnswers
from tinychat.errors import GenerationError
from tinychat.events import Finished, Notice, Record, Token
from tinychat.repl.comparison_view import ComparisonView, GrowingText, columns
from tinychat.repl.keys import Keyboard
from tinychat.session.session import Session


def lines_of(texts: list[str], width: int, height: int | None = None) -> list[str]:
    headings = [str(index) for index in range(len(texts))]
    return [line.text for line in columns(headings, [GrowingText(text) for text in texts], width, height)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("one two\nthree\n", ["one two", "three", ""]),
        ("wonderfully so", ["wonderfu", "lly so"]),
        ("a  你好你好 b", ["a", "你好你好", "b"]),
        ("你好你好你好", ["你好你好", "你好"]),
        ("x你好你好", ["x你好你", "好"]),
        ("\x1b[31m a\tb", ["␛[31m a", "b"]),
    ],
)
def test_text_wraps_between_words_and_wide_characters_take_two_cells(text: str, lines: list[str]) -> None:
    assert GrowingText(text).lines(8) == lines


@given(
    pieces=st.lists(st.text(" ab\t\n你\x1b\u0301\u00a0", max_size=9), max_size=20),
    widths=st.lists(st.integers(1, 9), min_size=1),
)
def test_a_growing_text_wraps_as_the_whole_text_does(pieces: list[str], widths: list[int]) -> None:
    text = GrowingText()
    for piece, width in zip(pieces, itertools.cycle(widths), strict=False):
        text.append(piece)
        text.lines(width, newest=1)
    assert str(text) == "".join(pieces)
    whole = GrowingText("".join(pieces)).lines(widths[0])
    assert text.lines(widths[0]) == whole
    assert text.lines(widths[0], newest=2) == whole[-2:]


def test_each_character_of_a_growing_text_is_measured_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    num_measured = 0

    def counted(text: str) -> int:
        nonlocal num_measured
        num_measured += len(text)
        return get_cwidth(text)

    monkeypatch.setattr("tinychat.repl.comparison_view.get_cwidth", counted)
    for piece in ("word ", "unbroken", " ", "a\n", "\t"):
        num_measured = 0
        text = GrowingText()
        for _ in range(1000):
            text.append(piece)
            columns(["head"], [text], 30, 10)
        assert num_measured <= 2 * len(str(text).expandtabs())


def test_columns_stand_side_by_side_if_there_is_room() -> None:
    assert lines_of(["one", "two\nlines"], 51) == [
        "0                        │ 1",
        "one                      │ two",
        "                         │ lines",
    ]
    assert lines_of(["one", "two\nlines"], 50) == ["0", "one", "1", "two", "lines"]


def test_four_texts_stand_two_by_two_if_three_fit() -> None:
    headings = [line for line in lines_of(["a", "b", "c", "d"], 80) if line[0].isdigit()]
    assert [line.split(" │ ")[1].strip() for line in headings] == ["1", "3"]
    assert all(get_cwidth(line) <= 79 for line in lines_of(["你" * 99] * 5, 79))


def test_a_limited_height_shows_the_end_of_each_text() -> None:
    assert lines_of(["1\n2\n3\n4", "x"], 60, 3)[1:] == [f"{'3':28} │ x", "4" + " " * 27 + " │"]
    assert lines_of(["1\n2\n3", "x\ny"], 20, 6) == ["0", "2", "3", "1", "x", "y"]


RECORDS = [
    (0, Notice("unknown: 'x'")),
    (1, Notice("unknown: 'x'")),
    (1, Token(1, "hi\x1b", -1.0, 0.0)),
    (0, Token(1, "hello", -1.0, 0.0)),
    (0, Finished("end", 1, 0.5, 7)),
    (1, Token(1, " there", -1.0, 0.0)),
    (1, Finished("end", 2, 1.0, 7)),
]
SUMMARY = "2 answers · 3 tokens · 3 tok/s · seed 7 · /pick N goes on from one"


def play(session: Session, records: list[tuple[int, Record]], *, dumb: bool) -> Screen:
    screen = Screen()

    def start(should_stop: object) -> Iterator[tuple[int, Record]]:
        yield from records

    with create_pipe_input() as input:
        try:
            answers = ParallelAnswers(("1 · a", "2 · b"), start)
            ComparisonView(answers, session, screen.terminal(dumb=dumb), Keyboard(input)).play()
        finally:
            clear_typeahead(input)
    return screen


def test_on_a_terminal_answers_stand_in_columns(session: Session) -> None:
    screen = play(session, RECORDS, dumb=False)
    assert screen.lines == [
        f"{'1 · a':38} │ 2 · b",
        f"{'hello':38} │ hi␛ there",
        "unknown: 'x'",
        SUMMARY,
    ]


def test_a_text_longer_than_the_screen_can_be_scrolled_back_to(session: Session) -> None:
    text = "".join(f"line {number}\n" for number in range(60))
    screen = play(session, [(0, Token(1, text, -1.0, 0.0)), *RECORDS[2:]], dumb=False)
    assert all(f"\nline {number} " in screen.getvalue().replace("\x1b[K", "") for number in range(60))
    assert screen.lines[-1].startswith("2 answers · 4 tokens · ")


def test_on_a_dumb_terminal_answers_are_written_one_after_the_other_at_the_end(session: Session) -> None:
    screen = play(session, RECORDS, dumb=True)
    assert screen.getvalue() == f"1 · a\nhello\n2 · b\nhi␛ there\nunknown: 'x'\n{SUMMARY}\n"


def test_an_error_is_raised_after_the_text_so_far(session: Session) -> None:
    screen = Screen()

    def start(should_stop: object) -> Iterator[tuple[int, Record]]:
        yield 0, Token(1, "hel", -1.0, 0.0)
        raise GenerationError("the model gave NaN")

    with create_pipe_input() as input, pytest.raises(GenerationError):
        ComparisonView(ParallelAnswers(("1", "2"), start), session, screen.terminal(dumb=True), Keyboard(input)).play()
    assert screen.getvalue() == "1\nhel\n2\n\n"


def last_number(lines: list[str]) -> int:
    """Return the highest number that the first answer has counted to."""
    texts = [line.split(" │ ")[0] for line in lines if " │ " in line and "seed" not in line]
    return max(int(number) for number in " ".join(texts).split())


@pytest.mark.slow
def test_answers_stream_side_by_side_until_esc_and_one_is_picked(sit_down: Callable[..., Person]) -> None:
    person = sit_down(TINYCHAT_TEST_DELAY="0.02")
    person.type("/samples 2 count\r")
    person.sees(lambda lines: any(line.count("0 1 2 3") == 2 for line in lines))
    person.sees(lambda lines: any(line.endswith("tokens · esc stop · ? keys") for line in lines))
    person.type("?")
    person.sees("esc stop · space pause, then → one token of each · /slow N sets a pace")
    person.type("? ")
    person.sees("paused · space goes on · → one token of each")
    paused = last_number(person.lines)
    person.type("right", "right", "right")  # a space is a token too
    person.sees(lambda lines: last_number(lines) > paused, "paused · space goes on · → one token of each")
    person.type("/slow 100\r", " ")
    person.sees(lambda lines: any(re.match(r"slow – → 100 · 0 of 2 done · \d+ tokens · esc", line) for line in lines))
    person.sees(lambda lines: last_number(lines) > paused + 3)
    person.type("next\x1b")
    person.sees(lambda lines: any(" · interrupted · /pick N goes on from one" in line for line in lines), "› next")
    person.type("\x15/pick 2\r")
    person.sees(lambda lines: any(line.startswith("the conversation goes on from answer 2: seed ") for line in lines))
    person.type("/undo\r")
    person.sees("taken back: 'count'")
