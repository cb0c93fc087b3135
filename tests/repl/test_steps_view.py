"""The keys of `/steps`."""

from pathlib import Path

import pytest
import torch
from prompt_toolkit.input import PipeInput
from prompt_toolkit.input.typeahead import get_typeahead
from screens import Person, Screen, answered
from test_at_a_terminal import ENTER, ESCAPE

from tinychat.generate.computation import Computation, Matrix
from tinychat.generate.operations import Tracer
from tinychat.repl.keys import Keyboard
from tinychat.repl.render.steps import HINT
from tinychat.repl.steps_view import walk_steps

TOYS = Path(__file__).parents[1] / "toys"
RIGHT, LEFT, UP, DOWN, HOME, END = "\x1b[C", "\x1b[D", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F"
PAGE_DOWN, PAGE_UP, TAB, BACK_TAB = "\x1b[6~", "\x1b[5~", "\t", "\x1b[Z"


def sums() -> Computation:
    """Five operations in three parts, each adding 1 to a matrix."""
    tracer = Tracer()
    x, one = Matrix("x", torch.zeros(2, 3), ("a", "b")), Matrix("one", torch.ones(2, 3), ("a", "b"))
    for number, part in enumerate(("one", "two", "two", "three", "three"), 1):
        tracer.part = part
        x = tracer.add([x, one], f"sum {number}", f"x{number}", "")
    return Computation("sums", tuple(tracer.operations), "the sum is 5")


@pytest.mark.parametrize(
    ("keys", "title", "derived"),
    [
        ("", "1/5  one: sum 1", ""),
        (RIGHT + "n", "3/5  two: sum 3", ""),
        (END + LEFT + "p", "3/5  two: sum 3", ""),
        (END + RIGHT, "5/5  three: sum 5", "the sum is 5"),
        (END + HOME, "1/5  one: sum 1", ""),
        (PAGE_DOWN, "2/5  two: sum 2", ""),
        (PAGE_DOWN * 2, "4/5  three: sum 4", ""),
        (PAGE_DOWN * 3, "5/5  three: sum 5", "the sum is 5"),
        (END + PAGE_UP * 2, "2/5  two: sum 2", ""),
        (END + PAGE_UP * 5, "1/5  one: sum 1", ""),
        (DOWN, "1/5  one: sum 1", "x1[b, 1] = 0.000 + 1.000 = 1.000"),
        (DOWN + UP, "1/5  one: sum 1", "x1[a, 1] = 0.000 + 1.000 = 1.000"),
        (DOWN + DOWN, "1/5  one: sum 1", "x1[a, 2] = 0.000 + 1.000 = 1.000"),
        (RIGHT + DOWN + TAB, "2/5  two: sum 2", "x2[b, 2] = 1.000 + 1.000 = 2.000"),
        (RIGHT + DOWN + BACK_TAB, "2/5  two: sum 2", "x2[b, 3] = 1.000 + 1.000 = 2.000"),
        (DOWN + RIGHT, "2/5  two: sum 2", ""),
    ],
)
def test_keys_walk_through_the_steps(input: PipeInput, keys: str, title: str, derived: str) -> None:
    input.send_text(keys + "q")
    screen = Screen()
    walk_steps(sums(), screen.terminal(), Keyboard(input))
    assert screen.lines[0] == title
    assert [
        line for line in screen.lines if (" = " in line and "[" in line) or ("5" in line[-1:] and "is" in line)
    ] == ([derived] if derived else [])


@pytest.mark.parametrize(
    ("keys", "left"), [("q/help", "/help"), ("\x03next", "next"), ("\rnext", "next"), ("/why", "/why")]
)
def test_leaving_keys_are_eaten_and_others_begin_the_next_prompt(input: PipeInput, keys: str, left: str) -> None:
    input.send_text(keys)
    walk_steps(sums(), Screen().terminal(), Keyboard(input))
    assert "".join(key.data for key in get_typeahead(input)) == left


def test_a_narrow_screen_tells_how_to_leave(input: PipeInput) -> None:
    input.send_text("q")
    screen = Screen(30, 24)
    walk_steps(sums(), screen.terminal(), Keyboard(input))
    assert "←/→ step · q ends · " in screen.getvalue()


def test_a_dumb_terminal_gets_all_steps_at_once(input: PipeInput) -> None:
    screen = Screen(80, 100)
    walk_steps(sums(), screen.terminal(dumb=True), Keyboard(input))
    titles = [line for line in screen.lines if ": sum" in line]
    assert titles == ["1. one: sum 1", "2. two: sum 2", "3. two: sum 3", "4. three: sum 4", "5. three: sum 5"]
    assert screen.lines[-1] == "the sum is 5"
    assert "\x1b" not in screen.getvalue()


@pytest.mark.slow
def test_a_person_walks_through_a_toy_at_a_terminal(home: Path) -> None:
    person = Person(TOYS / "statquest", home, TINYCHAT_TEST_TORCH="1", TINYCHAT_ENGINE="torch")
    try:
        person.sees("›")
        person.type("what is statquest", ENTER)
        person.sees("awesome", answered)
        person.type("/steps", ENTER)
        person.sees("1/16  input: tokens", HINT)
        person.type("right", "n", "right", "right", "down")
        person.sees(
            "5/16  attention: queries", lambda lines: any(line.startswith("Q[<|end|>, 1] = ") for line in lines)
        )
        person.type(ESCAPE)
        person.sees("5/16  attention: queries", "›", lambda lines: HINT not in lines)
        person.type("/steps train", ENTER)
        person.sees("1/22  text 1 of 2: tokens")
        person.type("\x1b[F")
        person.sees("loss 2.124 → 1.807 by one step of Adam, learning rate 0.1")
        person.type("/quit", ENTER)  # any other key begins the next prompt
        assert person.wait_for_exit() == 0
    finally:
        person.kill()
