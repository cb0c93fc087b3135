"""Finding a command by what was typed, and what every command must tell of itself."""

import re
from pathlib import Path

import pytest
from scripted import Talk

from tinychat.commands import COMMANDS
from tinychat.commands.models import complete_models
from tinychat.commands.registry import (
    CATEGORIES,
    Command,
    complete_paths,
    is_command,
    parse_number,
    parse_token,
)
from tinychat.commands.results import Change, Help, Message, Quit
from tinychat.config.settings import SETTINGS
from tinychat.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("temperature", "temperature"),
        ("temp", "temperature"),
        ("tem", "temperature"),
        ("TOP_P", "top-p"),
        ("max", "max-tokens"),
        ("q", "quit"),
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
        ("to", "/to could be /tokens, /top-k, /top-p", "type some more of it"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(typed: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        COMMANDS.find(typed)
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


def test_what_is_a_command_and_what_a_prompt() -> None:
    assert is_command("/help")
    assert is_command("/")
    assert not is_command("//help")
    assert not is_command("help")
    assert not is_command(" /help")


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
    assert command.brief or command.category == "settings"
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


def test_help_lists_every_command_once_by_theme(talk: Talk) -> None:
    result = talk.do("/help")
    assert isinstance(result, Help)
    assert sorted(name for entries in result.categories.values() for name in entries) == sorted(COMMANDS)


def test_help_of_one_command_has_its_usage_its_bounds_and_an_example(talk: Talk) -> None:
    assert talk.do("/help /temp") == Message(
        (
            "/temperature [N]",
            "  randomness: 0 always takes the most likely token, 1 samples from the model's own probabilities",
            "  Takes a number from 0 to 100; default 0.8.",
        ),
        ("example: /temperature 1.2", "also: /temp"),
    )


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
