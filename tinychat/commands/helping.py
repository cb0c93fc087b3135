"""`/help`, written from the table of commands; and `/quit`."""

from collections.abc import Iterator

from tinychat.commands.command import THEMES, Suggestion, command
from tinychat.commands.results import Help, Leave, Message, Result
from tinychat.session import Session


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    from tinychat.commands.table import COMMANDS

    if len(words) == 1:
        yield from (Suggestion(one.name, one.summary) for one in COMMANDS.values())


@command(
    "help", "session", "of one command", usage="[COMMAND]", example="/help temperature", aliases=("?",),
    while_busy=True, complete=_complete,
)  # fmt: skip
def help(session: Session, text: str) -> Result:
    """All commands on one screen, or one of them with an example."""
    from tinychat.commands.table import COMMANDS, find_command  # which has this command too

    if not text:
        every = COMMANDS.values()
        return Help({theme: {one.name: one.brief for one in every if one.theme == theme} for theme in THEMES})
    one = find_command(text.removeprefix("/"))
    notes = []
    if one.example:
        notes.append(f"example: {one.example}")
    if one.aliases:
        notes.append("also: " + " ".join(f"/{alias}" for alias in one.aliases))
    return Message((one.synopsis, *(f"  {line}".rstrip() for line in one.help.splitlines())), tuple(notes))


@command("quit", "session", "leave", aliases=("exit", "bye", "q"))
def quit_(session: Session, text: str) -> Result:
    """Leave; Ctrl-D on an empty line does the same."""
    return Leave()


COMMANDS = (help, quit_)
