"""Words and lines of other programs at the prompt: bare commands, and lines for the shell."""

from collections.abc import Callable
from pathlib import Path

import pytest
from screens import Person

CTRL_C, CTRL_D, CTRL_BACKSLASH = "\x03", "\x04", "\x1c"
ENTER = "\r"
FACTS = pytest.mark.parametrize("facts", [{}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.slow)])
SitDown = Callable[..., Person]


@FACTS
def test_a_bare_word_is_a_command_and_behind_slashes_a_prompt(sit_down: SitDown, facts: dict[str, str]) -> None:
    mark = ">" if facts else "›"
    person = sit_down(**facts)
    person.type("//exit", ENTER)
    person.sees("you said: exit", mark)  # while an answer streams, ? is a key
    person.type("?", ENTER)
    person.sees("? alone is a command · //? sends it to the model", mark)
    person.type("tinychat train novel.txt", ENTER)
    person.sees("that was a prompt: the command is /train …", mark)
    person.type('/model " "', ENTER)
    person.sees("see `/models`", mark)
    person.type("exit", ENTER)
    assert person.wait_for_exit() == 0
    assert b"exit alone is a command" not in person.raw  # it was said before


@pytest.mark.slow
def test_lines_typed_while_a_command_works_are_prompts_of_their_own_in_plain_mode(sit_down: SitDown) -> None:
    person = sit_down(TERM="dumb")
    person.type("!echo at work; read line", ENTER)
    person.sees("at work")
    person.type("go on", ENTER, "one", ENTER, "two", ENTER, "three", ENTER)
    person.sees("you said: one", "you said: two", "you said: three")


@pytest.mark.slow
def test_lines_of_other_programs_and_questions(sit_down: SitDown, tmp_path: Path) -> None:
    person = sit_down(columns=200)
    for line, shown in (
        ("/temp0.5", "temperature 0.8 → 0.5"),
        ("/set temperature=0.6", "temperature 0.5 → 0.6"),
        ("/set parameter temperature 0.7", "temperature 0.6 → 0.7"),
        ("/slow 0", "slow is – already"),
        ("/delete", "did you mean /rm?"),
        ("/reroll", "did you mean /retry?"),
        ("/set num_predict 9", "did you mean max-tokens?"),
        ("/help temperature", "now 0.7 · from: command"),
        ("/train --resume nothing --minutes 1", "there is no run 'nothing'"),
        ("/recipes guide", "/train --recipe guide"),
        ("//!ls", "you said: !ls"),
        ("help", "/help COMMAND says more, with an example; the beginning of a name is enough"),
        ("hello", "you said: hello"),
        (f"/export {tmp_path / 'talk.txt'}", f"written: {tmp_path / 'talk.txt'}"),
    ):
        person.type(line, ENTER)
        person.sees(shown)
    person.type(f"/export {tmp_path / 'talk.txt'}", ENTER)
    person.sees(f"{tmp_path / 'talk.txt'} exists: replace it? [y/N]")
    person.type("n", ENTER)
    person.sees("nothing is written")
    for count, line in ((2, "/redo"), (3, "/regen")):
        person.type(line, ENTER)
        person.sees(lambda lines, count=count: lines.count("you said: hello") == count)
    person.type("/open", ENTER)
    person.sees("/open N opens one, /open FILE what /save wrote")
    person.type("/open 1", ENTER)
    person.sees(lambda lines: any(line.startswith("2 turns from ") for line in lines))
    person.type("\x0c/help train", ENTER)
    person.sees(
        lambda lines: all(word in " ".join(lines) for word in ("--from MODEL", "--resume", "more RUN", "with & at"))
    )
    person.type(":q", ENTER)
    assert person.wait_for_exit() == 0


@pytest.mark.slow
@FACTS
def test_a_shell_has_the_terminal_while_it_runs(sit_down: SitDown, tmp_path: Path, facts: dict[str, str]) -> None:
    """Lines are edited by the terminal, Ctrl-C and Ctrl-\\ end the command alone, and its output may lack its end."""
    mark = ">" if facts else "›"
    person = sit_down(SHELL="/bin/sh", **facts)
    person.type(f"!echo wait; cat > {tmp_path / 'x'}; printf done", ENTER)
    person.sees("wait")
    person.type("typed", ENTER, CTRL_D)
    person.sees(lambda lines: any(line.startswith("done") for line in lines))
    assert (tmp_path / "x").read_text() == "typed\n"
    for key, name, shown in ((CTRL_C, "one", "^C"), (CTRL_BACKSLASH, "two", "ended by SIGQUIT")):
        person.type(f"!echo {name}; exec sleep 60", ENTER)
        person.sees(name)
        person.type(key)
        person.sees(shown, mark)
    person.type("!nonsense there", ENTER)
    person.sees("! runs a shell command · //!nonsense there sends it to the model", mark)
    person.type("!stty raw -echo; exit 3", ENTER)
    person.sees("exit code 3", mark)
    person.type("hello", ENTER)
    person.sees("you said: hello")


@pytest.mark.slow
def test_what_is_typed_while_a_command_runs_goes_to_the_prompt(sit_down: SitDown, tmp_path: Path) -> None:
    person = sit_down(SHELL="/bin/sh")
    person.type(f"!echo ready; until test -e {tmp_path / 'go'}; do sleep 0.01; done", ENTER)
    person.sees("ready")
    person.type("hello", ENTER)
    person.sees("hello")
    (tmp_path / "go").touch()
    person.sees("you said: hello")
