"""What a slash command is: a function and all there is to know of it, declared once.

Dispatch, near-miss hints, completion and `/help` are read from here.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tinychat.commands.results import Result
from tinychat.session import Session

THEMES = ("talk", "settings", "models", "training", "inside", "session")
"""In the order in which `/help` shows them."""


@dataclass(frozen=True)
class Suggestion:
    """What could be typed next, and what it is."""

    text: str
    about: str = ""


Function = Callable[[Session, str], Result]
"""Is handed what stands behind the command's name, without the space around it."""

Complete = Callable[[Session, list[str]], Iterable[Suggestion]]
"""Is handed the words behind the command's name, of which the last, perhaps empty, is the one being typed."""


@dataclass(frozen=True)
class Command:
    """A slash command.

    `usage` is what may follow the name; `brief` (up to 20 characters) stands in the overview, `help` in full with
    `/help NAME`. `while_busy`: it may run while an answer is printed.
    """

    name: str
    function: Function
    theme: str
    help: str
    brief: str = ""
    usage: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    while_busy: bool = False
    complete: Complete = lambda session, words: ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)

    @property
    def synopsis(self) -> str:
        """`/save FILE`."""
        return f"/{self.name} {self.usage}".rstrip()

    @property
    def summary(self) -> str:
        """The first line of its help, which stands for itself."""
        return self.help.partition("\n")[0]


def command(name: str, theme: str, brief: str = "", **facts: Any) -> Callable[[Function], Command]:
    """Makes a command of a function; its docstring is the help.

    Args:
        facts: the other fields of `Command`.
    """
    return lambda function: Command(name, function, theme, inspect.getdoc(function) or "", brief, **facts)
