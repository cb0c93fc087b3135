"""Finding a command by what was typed, and what every command must tell of itself."""

import re
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Talk

from tinychat.cli.main import COMMANDS as SHELL_COMMANDS
from tinychat.commands import COMMANDS
from tinychat.commands.models import complete_models
from tinychat.commands.registry import (
    CATEGORIES,
    IN_SHELL,
    Command,
    complete_paths,
    escape_prompt,
    for_the_prompt,
    is_command,
    is_shell_line,
    parse_number,
    parse_token,
    prompt_of,
)
from tinychat.commands.results import Change, Help, Message, Quit
from tinychat.config.settings import SETTINGS
from tinychat.errors import UsageError
from tinychat.session.session import Session


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("temperature", "temperature"),
        ("temp", "temperature"),
        ("tem", "temperature"),
        ("TOP_P", "top-p"),
        ("max", "max-tokens"),
        ("q", "quit"),
        ("redo", "retry"),
        ("regen", "retry"),
        ("exit", "quit"),
        ("bye", "quit"),
        ("?", "help"),
        ("load", "model"),
        ("model", "model"),
        ("repet", "repetition-penalty"),
        ("sho", "show"),
    ],
)
def test_a_name_an_alias_or_a_unique_beginning_is_enough(typed: str, name: str) -> None:
    assert COMMANDS.find(typed).name == name


@pytest.mark.parametrize(
    ("typed", "problem", "remedy"),
    [
        ("tempreature", "there is no command /tempreature", "did you mean /temperature?"),
        ("setings", "there is no command /setings", "did you mean /settings?"),
        ("xyzzy", "there is no command /xyzzy", "/help lists them"),
        ("quti", "there is no command /quti", "did you mean /quit?"),
        ("delete", "there is no command /delete", "did you mean /rm?"),
        ("histroy", "there is no command /histroy", "did you mean /tree?"),
        ("num_predict", "there is no command /num_predict", "did you mean /max-tokens?"),
        ("clear2", "there is no command /clear2", "did you mean /clear?"),
        ("private", "private is chosen when tinychat starts", "`tinychat --private`, or config.toml"),
        ("theme", "theme is chosen when tinychat starts", "`tinychat --theme`, or config.toml"),
        ("to", "/to could be /token-healing, /tokens, /top-k, /top-p", "type some more of it"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(typed: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        COMMANDS.find(typed)
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


@pytest.mark.parametrize("line", ["/help", "/", "exit", " Quit ", ":q", "?", "help"])
def test_what_is_a_command(line: str) -> None:
    assert is_command(line)
    assert prompt_of(line) == ""


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        (" /help", " /help"),
        ("//x", "/x"),
        ("///x", "//x"),
        ("//", "/"),
        ("//help", "help"),
        ("//?", "?"),
        ("///help", "/help"),
        ("//!ls", "!ls"),
        ("help me", "help me"),
        ("bye", "bye"),
        ("!", "!"),
        ("!!", "!!"),
        ("!ls\n", "!ls\n"),
    ],
)
def test_what_is_a_prompt(line: str, prompt: str) -> None:
    assert not is_command(line)
    assert not is_shell_line(line)
    assert prompt_of(line) == prompt


def test_what_is_for_the_shell() -> None:
    assert all(map(is_shell_line, ("!ls", "! ls -l", "!./x", "!$EDITOR a", "!/bin/ls")))


@given(st.lists(st.sampled_from(["/", "!", " ", "?", "\n", ":q", "help", "ls", "x"]), min_size=1).map("".join))
def test_every_prompt_can_be_sent(prompt: str) -> None:
    line = escape_prompt(prompt)
    assert not is_command(line)
    assert not is_shell_line(line)
    assert prompt_of(line) == prompt


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("/temp0.5", "temperature", "0.5"),
        ("/temp=0.5", "temperature", "0.5"),
        ("/temp:", "temperature", ""),
        ("/top-k40", "top-k", "40"),
        ("/TOP_P.9", "top-p", ".9"),
        ("/device=cpu", "device", "cpu"),
        ("/samples4 hello there", "samples", "4 hello there"),
        ("/why-1", "why", "-1"),
    ],
)
def test_a_value_may_follow_a_name_without_a_space(line: str, name: str, text: str) -> None:
    command, rest = COMMANDS.split(line)
    assert (command.name, rest) == (name, text)


@pytest.mark.parametrize("line", ["/q2", "/clear1", "/model2", "/gpt2", "/clear=1", "/x=1"])
def test_other_names_with_a_number_are_no_commands(line: str) -> None:
    with pytest.raises(UsageError, match="there is no command /"):
        COMMANDS.split(line)


def test_a_path_is_no_command_and_can_be_sent() -> None:
    for line in ("/usr/bin/env python", "/xyzzy", "/train/x"):
        with pytest.raises(UsageError) as caught:
            COMMANDS.split(line)
        assert caught.value.remedy == "/help lists them · // sends it to the model"


@pytest.mark.parametrize(
    "line",
    ["/temperature 1.2\n/top-p 0.9\nhello there", "/clear\nhello", "/tokens to be\n/why", "/train a.txt\nb.txt"],
)
def test_several_lines_are_no_command(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError, match="one command at a time: this has several lines"):
        talk.do(line)


def test_a_command_without_arguments_takes_no_text(talk: Talk) -> None:
    talk.ask("hello")
    bare = [command for command in COMMANDS.values() if not command.usage]
    names = "retry continue edit clear tree greedy sample settings models color quit"
    assert {command.name for command in bare} == set(names.split())
    for name in (name for command in bare for name in command.names):
        with pytest.raises(UsageError) as caught:
            talk.do(f"/{name} x 3")
        problem = f"/{COMMANDS.find(name).name} takes nothing after it, not 'x 3'"
        assert (caught.value.problem, caught.value.remedy) == (problem, "type it alone")
    assert [turn.prompt for turn in talk.session.turns] == ["hello"]
    assert not talk.session.settings.current.greedy


def test_a_text_of_a_command_may_have_several_lines(talk: Talk) -> None:
    for line in ("/tokens to be\nor not\n/usr/bin", "/system\nno\n", "/set begin a\nb", "/clear\n"):
        with suppress(UsageError) if line.startswith("/system") else nullcontext():  # parrot reads none
            talk.do(line)
    assert talk.session.settings.current.begin == "a\nb"


def test_a_remedy_for_the_shell_is_told_as_a_command() -> None:
    assert for_the_prompt("`tinychat train --resume x`, or `tinychat rm x`") == "`/train --resume x`, or `/rm x`"
    assert for_the_prompt("`tinychat --debug`, `tinychat trainer`") == "`tinychat --debug`, `tinychat trainer`"
    assert for_the_prompt("`/attach 'x y'` in the REPL shows it") == "`/attach 'x y'` shows it"
    assert for_the_prompt("`--max-tokens 12`, or `--n-layer 2`") == "`/max-tokens 12`, or `--n-layer 2`"
    assert set(IN_SHELL) <= set(COMMANDS) & set(SHELL_COMMANDS)


def test_synonyms_are_no_names_and_lead_to_commands() -> None:
    names = {name for command in COMMANDS.values() for name in command.names}
    assert names.isdisjoint(COMMANDS.synonyms)
    assert names.issuperset(COMMANDS.synonyms.values())


def test_a_line_is_a_command_and_the_text_behind_it() -> None:
    command, text = COMMANDS.split("/tokens  to be,\n  or not ")
    assert (command.name, text) == ("tokens", "to be,\n  or not")
    assert COMMANDS.split("/")[0].name == "help"


def test_no_name_stands_for_two_commands() -> None:
    names = [name for command in COMMANDS.values() for name in command.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_every_command_says_what_it_is(command: Command) -> None:
    assert command.category in CATEGORIES
    assert command.help
    assert len(command.help.partition("\n")[0]) <= 110
    assert len(command.brief) <= 20
    assert command.brief or command.category == "settings" or command.name == "lesson"  # listed beside /help
    assert not command.example or COMMANDS.split(command.example)[0] is command
    assert not command.usage or command.usage[0] == "[" or command.example


@pytest.mark.parametrize("name", ["why", "lens", "attention", "show", "plot", "tokens", "copied", "color", "score"])
def test_the_help_of_a_picture_is_three_lines_that_fit_a_small_screen(name: str) -> None:
    summary, empty, *lines = COMMANDS[name].help.splitlines()
    assert (empty, len(lines)) == ("", 3)
    assert max(map(len, (summary, *lines))) <= 77


def test_every_setting_has_its_command_and_its_aliases() -> None:
    for setting in SETTINGS.values():
        assert {setting.name.replace("_", "-"), *setting.aliases} == set(COMMANDS.find(setting.name).names)


def test_help_lists_commands_once_by_theme(talk: Talk) -> None:
    result = talk.do("/help")
    assert isinstance(result, Help)
    listed = [name for entries in result.categories.values() for name in entries]
    assert sorted(listed) == sorted(name for name, command in COMMANDS.items() if command.is_listed)
    settings = {setting.spelling for setting in SETTINGS.values()}
    assert set(COMMANDS) - set(listed) < settings  # `/settings` shows those


def test_help_of_one_command_has_its_usage_its_bounds_and_an_example(talk: Talk) -> None:
    assert talk.do("/help /temp") == Message(
        (
            "randomness: 0 always takes the most likely token, 1 samples from the model's own probabilities",
            "Takes a number from 0 to 100; default 0.8.",
        ),
        ("now 0.8 · from: default", "example: /temperature 1.2", "also: /temp"),
        "/temperature [N]",
    )


def test_help_of_several_words_is_that_of_the_first(talk: Talk) -> None:
    assert talk.do("/help why lens") == talk.do("/help /why lens") == talk.do("/help why")


def test_help_of_a_setting_tells_the_value_in_force_and_the_default_of_the_model(talk: Talk) -> None:
    talk.session.open_model("smalltalk")
    talk.do("/temperature 1")
    result = talk.do("/help temperature")
    assert isinstance(result, Message)
    assert result.notes[0] == "now 1 · from: command · default of smalltalk: 0.4"


def test_quit_leaves(talk: Talk) -> None:
    assert talk.do("/bye") == Quit()


def test_a_change_tells_old_and_new() -> None:
    assert Change("top-p", "0.95", "0.9").text == "top-p 0.95 → 0.9"
    assert Change("top-p", "0.9", "0.9").text == "top-p is 0.9 already"


def test_models_and_paths_are_completed(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text("x")
    (tmp_path / ".hidden").write_text("x")
    assert [one.text for one in complete_models(talk.session, [""])][:3] == ["parrot", "other", "smalltalk"]
    assert list(complete_models(talk.session, ["parrot", ""])) == []
    assert [one.text for one in complete_paths(talk.session, ["n"])] == ["novel.txt"]
    assert "models/" in [one.text for one in complete_paths(talk.session, [""])]
    assert ".hidden" not in [one.text for one in complete_paths(talk.session, [""])]
    assert [one.text for one in complete_paths(talk.session, ["./.h"])] == ["./.hidden"]
    assert list(complete_paths(talk.session, ["nowhere/x"])) == []


def test_a_link_that_leads_nowhere_is_completed_as_a_file(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("gone")
    assert [one.text for one in complete_paths(talk.session, ["lo"])] == ["loop", "lost"]


def test_a_number_is_whole_and_within_its_bounds() -> None:
    wrong = UsageError("wrong")
    assert [parse_number(text, 0, 3, wrong) for text in ("0", "3")] == [0, 3]
    for text in ("", "x", "1.5", "-1", "4", "+3", "0_1", " 1", "1\n", "٣", "9" * 5000):
        with pytest.raises(UsageError) as caught:
            parse_number(text, 0, 3, wrong)
        assert caught.value is wrong


def test_tokens_are_counted_from_either_end() -> None:
    assert [parse_token(text, 5, "why") for text in ("1", "5", "-1", "-5")] == [0, 4, 4, 0]
    for text in ("", "0", "6", "-6", "x", "+3", "--1", "0_1"):
        with pytest.raises(UsageError, match=re.escape(f"/why takes the number of a token, from 1 to 5, not '{text}'")):
            parse_token(text, 5, "why")


@pytest.mark.parametrize("typed", ["~no such user/a", "a\0/b", "no/such/folder/a"])
def test_a_path_in_no_folder_has_no_completion(typed: str) -> None:
    assert list(complete_paths(Session(), [typed])) == []
