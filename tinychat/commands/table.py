"""The table of all slash commands, and finding one by what was typed."""

import difflib

from tinychat.commands import (
    branching,
    comparing,
    conversation,
    copied,
    helping,
    inspecting,
    internals,
    models,
    playing,
    plotting,
    recipes,
    repeating,
    runs,
    settings,
    snapshots,
    training,
)  # fmt: skip
from tinychat.commands.command import Command
from tinychat.commands.results import Result
from tinychat.errors import UsageError
from tinychat.session import Session

MARK = "/"


def is_command(line: str) -> bool:
    """Whether a line is a command; `//x` is the prompt `/x`."""
    return line.startswith(MARK) and not line.startswith(MARK * 2)


def prompt_of(line: str) -> str:
    """The prompt that a line stands for; empty for a command."""
    if is_command(line):
        return ""
    return line.removeprefix(MARK) if line.startswith(MARK) else line


def find_command(name: str) -> Command:
    """The command of that name or alias, or the only one that begins so; `_` and `-` are the same.

    Raises:
        UsageError: there is none, or several begin so.
    """
    wanted = name.lower().replace("_", "-")
    named = {known: command for command in COMMANDS.values() for known in command.names}
    if wanted in named:
        return named[wanted]
    begun = {command.name: command for known, command in named.items() if wanted and known.startswith(wanted)}
    if len(begun) == 1:
        return next(iter(begun.values()))
    if begun:
        candidates = ", ".join(MARK + known for known in sorted(begun))
        raise UsageError(f"/{name} could be {candidates}", "type some more of it")
    near = difflib.get_close_matches(wanted, named, n=1)
    raise UsageError(f"there is no command /{name}", f"did you mean /{near[0]}?" if near else "/help lists them")


def dispatch(session: Session, line: str) -> Result:
    """Runs a command as it was typed, with its `/`.

    Raises:
        TinychatError: there is no such command, or it cannot do what it was asked.
    """
    command, text = split_line(line)
    return command.function(session, text)


def split_line(line: str) -> tuple[Command, str]:
    """The command that a line begins with, and what stands behind it; `/` alone asks for help.

    Raises:
        UsageError: there is no such command.
    """
    words = line.removeprefix(MARK).split(maxsplit=1)
    if not words:
        return COMMANDS["help"], ""
    return find_command(words[0]), words[1].strip() if len(words) > 1 else ""


def command_of(line: str) -> Command | None:
    """The command that a line begins with; None where it is a prompt, or there is no such command."""
    try:
        return split_line(line)[0] if is_command(line) else None
    except UsageError:
        return None


COMMANDS: dict[str, Command] = {}
"""Every command by its name, in the order in which they are shown."""

for _module in (
    conversation, repeating, branching, comparing, settings, models, training, snapshots, runs, recipes, plotting,
    inspecting, internals, copied, playing, helping,
):  # fmt: skip
    COMMANDS |= {command.name: command for command in _module.COMMANDS}
COMMANDS["stop"] = training.or_finish(COMMANDS["stop"])
