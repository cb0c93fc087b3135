"""The REPL in plain lines, at a pseudo-terminal: for screen readers, slow lines and dumb terminals."""

import re
from collections.abc import Callable

import pytest
from screens import Person, answered

SitDown = Callable[..., Person]

CTRL_C, CTRL_D, ENTER, BACKSPACE = "\x03", "\x04", "\r", "\x7f"


@pytest.mark.parametrize(
    "facts", [{"TINYCHAT_PLAIN": "1"}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.slow)], ids=["plain", "dumb"]
)
def test_only_plain_text_is_written(sit_down: SitDown, facts: dict[str, str]) -> None:
    person = sit_down(**facts)
    person.type("helo", BACKSPACE, "lo", ENTER)
    person.sees("> hello", "you said: hello", lambda lines: any("stop: end of turn" in line for line in lines))
    person.type("/temp 2", ENTER)
    person.sees("temperature 0.8 → 2")
    person.type('"""one', ENTER, 'two"""', ENTER)
    person.sees("you said: one", "two")
    person.type("/samples 2 count", ENTER)
    person.sees(lambda lines: any("/pick N goes on from one" in line for line in lines))
    ends = {
        "/help": "/help COMMAND says more", "/settings": "theme: dark", "/models": "/model NAME opens",
        "/why": "before and after",
        "/color": "perplexity", "/tokens one": "characters",
    }  # fmt: skip
    for command, end in ends.items():
        person.type(command, ENTER)
        person.sees(lambda lines, end=end: any(end in line for line in lines), lambda lines: ">" in lines[-3:])
    person.type(CTRL_C)
    person.sees("Ctrl-D or /quit leaves")
    person.type(CTRL_D)
    assert person.wait_for_exit() == 0
    assert b"\x1b" not in person.raw
    assert re.search("[─━│┃▇▁]", person.raw.decode()) is None


@pytest.mark.slow
def test_completion_and_history_search(sit_down: SitDown) -> None:
    first = sit_down(TINYCHAT_PLAIN="1")
    first.type("remember me", ENTER)
    first.sees("you said: remember me", answered)
    first.type(CTRL_D)
    first.wait_for_exit()
    second = sit_down(TINYCHAT_PLAIN="1")
    second.type("\x12memb")
    second.sees(lambda lines: any("remember me" in line for line in lines))
    second.type(CTRL_C)
    second.sees("Ctrl-D or /quit leaves")
    second.type("/tempe\t ", "\t\t")
    second.sees(lambda lines: any(line.startswith("0.8: now") for line in lines), "> /temperature")


@pytest.mark.slow
def test_keys_still_act_during_an_answer_and_typed_lines_are_kept(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1", TINYCHAT_TEST_DELAY="0.03")
    person.type("temp", ENTER)
    person.sees(lambda lines: any("<0.8>" in line for line in lines))
    person.type("up", "another one", ENTER, "half")
    person.sees(lambda lines: re.search("⟨temp 0.9⟩.*<0.9>", "".join(lines)) is not None)  # the note may split a <0.8>
    person.type(CTRL_C)
    person.sees("> another one", "you said: another one", "> half")


def test_a_pasted_line_longer_than_the_screen_is_complete(sit_down: SitDown) -> None:
    person = sit_down(TINYCHAT_PLAIN="1")
    person.type("hello " * 30 + "there", ENTER)
    person.sees(lambda lines: any(line.endswith("there") and "hello" in line for line in lines))
