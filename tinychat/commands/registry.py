"""Slash commands: the registry that finds and runs them, and helpers to parse and complete their arguments.

A command is declared once: a function, its usage, its completion and whether it may run while an answer is printed.
Dispatch, hints for typos, completion and `/help` all read that declaration.
"""

import difflib
import inspect
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinychat.commands.results import Help, Message, Quit, Result
from tinychat.errors import UsageError
from tinychat.session.session import Session
from tinychat.store.paths import list_transcripts

PREFIX = "/"
CATEGORIES = ("talk", "settings", "models", "training", "inside", "session")
"""Categories of commands, in the order in which `/help` shows them."""
ESCAPED_SPACE = "\\ "
"""A space within a file name."""
MAX_TRANSCRIPTS = 20
"""Number of saved conversations offered by completion."""


@dataclass(frozen=True)
class Suggestion:
    """A completion, with a short description."""

    text: str
    about: str = ""


Function = Callable[[Session, str], Result]
"""Runs a command; receives the session and the stripped text after the command's name."""

Complete = Callable[[Session, list[str]], Iterable[Suggestion]]
"""Completes a command; receives the words after its name. The last one, which may be empty, is being typed."""


@dataclass(frozen=True)
class Command:
    """A slash command.

    Args:
        name: without the slash.
        function: runs the command.
        category: one of `CATEGORIES`.
        help: full text, for `/help NAME`; its first line is the summary.
        brief: up to 20 characters for the overview; empty if the name says enough.
        usage: arguments, as in `NAME [VALUE]`.
        example: a complete line, with the slash.
        aliases: other names.
        while_busy: whether it may run while an answer is printed.
        complete: completes the arguments.
    """

    name: str
    function: Function
    category: str
    help: str
    brief: str = ""
    usage: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    while_busy: bool = False
    complete: Complete = lambda session, words: ()

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases."""
        return (self.name, *self.aliases)

    @property
    def synopsis(self) -> str:
        """Name and usage: `/save FILE`."""
        return f"{PREFIX}{self.name} {self.usage}".rstrip()

    @property
    def summary(self) -> str:
        """First line of the help."""
        return self.help.partition("\n")[0]


def command(name: str, category: str, brief: str = "", **fields: Any) -> Callable[[Function], Command]:
    """Return a decorator that turns a function into a command, with its docstring as the help.

    Args:
        name: without the slash.
        category: one of `CATEGORIES`.
        brief: up to 20 characters for the overview.
        fields: the other fields of `Command`.
    """
    return lambda function: Command(name, function, category, inspect.getdoc(function) or "", brief, **fields)


def is_command(line: str) -> bool:
    """Return whether a line is a command; `//x` is the prompt `/x`."""
    return line.startswith(PREFIX) and not line.startswith(PREFIX * 2)


def prompt_of(line: str) -> str:
    """Return the prompt in a line, without the escape of `//x`; empty for a command."""
    if is_command(line):
        return ""
    return line.removeprefix(PREFIX) if line.startswith(PREFIX) else line


class Registry(dict[str, Command]):
    """Commands by name, in the order of `/help`. Adds `/help` and `/quit` to those passed in."""

    def __init__(self, commands: Iterable[Command]) -> None:
        super().__init__((command.name, command) for command in (*commands, self._make_help(), quit_))

    def find(self, name: str) -> Command:
        """Return the command with a name, an alias or a unique prefix of either; `_` and `-` are the same.

        Raises:
            UsageError: If no command matches, or the prefix is ambiguous.
        """
        typed = name.lower().replace("_", "-")
        by_name = {known: command for command in self.values() for known in command.names}
        if typed in by_name:
            return by_name[typed]
        matches = {command.name: command for known, command in by_name.items() if typed and known.startswith(typed)}
        if len(matches) == 1:
            return next(iter(matches.values()))
        if matches:
            candidates = ", ".join(PREFIX + known for known in sorted(matches))
            raise UsageError(f"/{name} could be {candidates}", "type some more of it")
        near = difflib.get_close_matches(typed, by_name, n=1)
        raise UsageError(f"there is no command /{name}", f"did you mean /{near[0]}?" if near else "/help lists them")

    def split(self, line: str) -> tuple[Command, str]:
        """Split a line into its command and the text of the arguments; `/` alone is `/help`.

        Raises:
            UsageError: If there is no such command.
        """
        words = line.removeprefix(PREFIX).split(maxsplit=1)
        if not words:
            return self["help"], ""
        return self.find(words[0]), words[1].strip() if len(words) > 1 else ""

    def command_of(self, line: str) -> Command | None:
        """Return the command of a line; None if the line is a prompt or there is no such command."""
        try:
            return self.split(line)[0] if is_command(line) else None
        except UsageError:
            return None

    def dispatch(self, session: Session, line: str) -> Result:
        """Run a command line, such as `/top-p 0.9`.

        Raises:
            TinychatError: If there is no such command, or it fails.
        """
        command, text = self.split(line)
        return command.function(session, text)

    def _make_help(self) -> Command:
        def complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
            if len(words) == 1:
                yield from (Suggestion(command.name, command.summary) for command in self.values())

        @command(
            "help", "session", "of one command", usage="[COMMAND]", example="/help temperature", aliases=("?",),
            while_busy=True, complete=complete,
        )  # fmt: skip
        def help(session: Session, text: str) -> Result:
            """List all commands on one screen, or describe one of them with an example."""
            if not text:
                briefs: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES}
                for command in self.values():
                    briefs[command.category][command.name] = command.brief
                return Help(briefs)
            command = self.find(text.removeprefix(PREFIX))
            lines = [command.synopsis, *(f"  {line}".rstrip() for line in command.help.splitlines())]
            notes = []
            if command.example:
                notes.append(f"example: {command.example}")
            if command.aliases:
                notes.append("also: " + " ".join(f"/{alias}" for alias in command.aliases))
            return Message(tuple(lines), tuple(notes))

        return help


@command("quit", "session", "leave", aliases=("exit", "bye", "q"))
def quit_(session: Session, text: str) -> Result:
    """Leave tinychat; Ctrl-D on an empty line does the same."""
    return Quit()


# --- arguments -------------------------------------------------------------------------------------------------------


def split_words(text: str) -> list[str]:
    """Split a text into words, as a shell does.

    Raises:
        UsageError: If a quotation mark is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark stands alone", "put names with spaces between two of them") from None


def split_flags(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Split a text into positional words and (flag, value) pairs; `--steps=5` is `--steps 5`.

    Flags come without their dashes, in the order typed; a missing value is empty.

    Raises:
        UsageError: If a quotation mark is not closed.
    """
    words: list[str] = []
    flags: list[tuple[str, str]] = []
    remaining = iter(split_words(text))
    for word in remaining:
        if not word.startswith("--"):
            words.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        flags.append((name, value if equals else next(remaining, "")))
    return words, flags


def parse_number(text: str, low: int, high: float, error: UsageError) -> int:
    """Parse a whole number from `low` to `high`, written in plain digits; a minus sign may precede them.

    Raises:
        UsageError: `error`, if the text is no such number.
    """
    # `int` alone would take `+3`, `1_0`, spaces and the digits of other scripts, and fails on thousands of digits.
    if not re.fullmatch("-?[0-9]{1,100}", text) or not low <= (number := int(text)) <= high:
        raise error
    return number


def parse_token(text: str, count: int, name: str) -> int:
    """Parse the number of a token of an answer and return its index from 0.

    Args:
        text: as typed: 1 is the first token, -1 the last; empty is the last, too.
        count: number of tokens of the answer.
        name: name of the command, for the error.

    Raises:
        UsageError: If there is no such token.
    """
    error = UsageError(f"/{name} takes the number of a token, from 1 to {count}, not {text!r}")
    number = parse_number(text or str(count), -count, count, error)
    if number == 0:
        raise error
    return number - 1 if number > 0 else number + count


def unquote(text: str) -> str:
    """Return a text without the quotation marks around it, if any."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def to_path(text: str) -> Path:
    """Return the path of a typed file name, in which a space may be written `\\ ` and the home folder `~`."""
    return Path(text.replace(ESCAPED_SPACE, " ")).expanduser()


# --- completion shared by several commands ---------------------------------------------------------------------------


def complete_models(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the name of a model."""
    from tinychat.store.models import list_models

    if len(words) == 1:
        yield from (Suggestion(info.name, info.summary.partition(" ")[2]) for info in list_models())


def complete_recipes(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the name of a recipe."""
    from tinychat.train.recipe import list_recipes

    if len(words) == 1:
        yield from (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())


def complete_run(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the name of one training run, newest first."""
    if len(words) == 1:
        yield from complete_runs(session, words)


def complete_runs(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the names of several training runs, newest first, without those already typed."""
    from tinychat.store.runs import list_runs

    yield from (
        Suggestion(run.name, "at work" if run.is_running() else "") for run in list_runs() if run.name not in words[:-1]
    )


def complete_paths(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the path of a file or folder; hidden ones only after a typed dot."""
    folder, name = os.path.split(words[-1])
    try:
        entries = sorted(os.scandir(Path(folder or ".").expanduser()), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        hidden = entry.name.startswith(".") and not name.startswith(".")
        if entry.name.startswith(name) and not hidden:
            path = os.path.join(folder, entry.name)  # noqa: PTH118 - `./` and `~/` stay as they were typed
            yield Suggestion(path + ("/" if entry.is_dir() else ""))


def complete_sources(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete a training source: files and folders, then the known data sets."""
    from tinychat.corpus.registry import KNOWN

    yield from complete_paths(session, words)
    yield from (Suggestion(name, known.description) for name, known in KNOWN.items())


def complete_transcripts(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete a transcript: saved conversations, newest first, each with its first prompt; then files and folders."""
    if len(words) == 1:
        matches = [path for path in list_transcripts() if path.name.startswith(words[0])]
        for path in matches[:MAX_TRANSCRIPTS]:
            yield Suggestion(path.stem, _first_prompt(path))
    yield from complete_paths(session, words)


def _first_prompt(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["turns"][0]["prompt"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
