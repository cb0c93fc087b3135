"""`/help`, written from the table of commands; and `/quit`."""

from collections.abc import Callable, Iterator, Mapping

from tinychat.commands.command import THEMES, Command, Suggestion, command
from tinychat.commands.results import Help, HelpEntry, Leave, Message, Result
from tinychat.session import Session


def help_command(commands: Mapping[str, Command], find: Callable[[str], Command]) -> Command:
    """`/help` over a table of commands.

    Args:
        commands: by their names; looked at when help is asked for.
        find: the command that a name, an alias or a beginning stands for.
    """

    def complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
        if len(words) == 1:
            yield from (Suggestion(one.name, first_line(one.help)) for one in commands.values())

    @command(
        "help", "session", "of one command", usage="[COMMAND]", example="/help temperature", aliases=("?",),
        while_busy=True, complete=complete,
    )  # fmt: skip
    def help(session: Session, text: str) -> Result:
        """All commands on one screen, or one of them with an example."""
        if not text:
            return Help(
                tuple(
                    (theme, tuple(HelpEntry(one.name, one.brief) for one in commands.values() if one.theme == theme))
                    for theme in THEMES
                )
            )
        one = find(text.removeprefix("/"))
        notes = []
        if one.example:
            notes.append(f"example: {one.example}")
        if one.aliases:
            notes.append("also: " + " ".join(f"/{alias}" for alias in one.aliases))
        return Message((one.synopsis, *(f"  {line}".rstrip() for line in one.help.splitlines())), tuple(notes))

    return help


def first_line(text: str) -> str:
    """The first line, which stands for itself."""
    return text.partition("\n")[0]


@command("quit", "session", "leave", aliases=("exit", "bye", "q"))
def quit_(session: Session, text: str) -> Result:
    """Leave; Ctrl-D on an empty line does the same."""
    return Leave()
