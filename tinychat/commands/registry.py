"""What a slash command is, how its text is taken apart, what completes it, and the registry that finds commands.

A command is declared once: a function, its usage, its completion and whether it may run while an answer is printed.
Dispatch, near-miss hints, completion and `/help` are read from there.
"""

import difflib
import inspect
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinychat.commands.results import Help, Leave, Message, Result
from tinychat.errors import UsageError
from tinychat.session.session import Session
from tinychat.store.paths import kept_transcripts

MARK = "/"
THEMES = ("talk", "settings", "models", "training", "inside", "session")
"""In the order in which `/help` shows them."""
ESCAPED_SPACE = "\\ "
"""how a space is typed within a word"""
MOST_KEPT = 20
"""conversations that are offered at once"""


# --- a command -------------------------------------------------------------------------------------------------------


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
        return f"{MARK}{self.name} {self.usage}".rstrip()

    @property
    def summary(self) -> str:
        """The first line of its help, which stands for itself."""
        return self.help.partition("\n")[0]


def command(name: str, theme: str, brief: str = "", **facts: Any) -> Callable[[Function], Command]:
    """Make a command of a function; its docstring is the help.

    Args:
        name: of the command.
        theme: one of `THEMES`.
        brief: what it does, for the overview.
        facts: the other fields of `Command`.
    """
    return lambda function: Command(name, function, theme, inspect.getdoc(function) or "", brief, **facts)


# --- finding commands ------------------------------------------------------------------------------------------------


def is_command(line: str) -> bool:
    """Whether a line is a command; `//x` is the prompt `/x`."""
    return line.startswith(MARK) and not line.startswith(MARK * 2)


def prompt_of(line: str) -> str:
    """Return the prompt that a line stands for; empty for a command."""
    if is_command(line):
        return ""
    return line.removeprefix(MARK) if line.startswith(MARK) else line


class Registry(dict[str, Command]):
    """Commands by name, in the order in which they are shown; adds `/help`, which is written from it, and `/quit`."""

    def __init__(self, commands: Iterable[Command]) -> None:
        super().__init__((one.name, one) for one in (*commands, self._make_help(), quit_))

    def find(self, name: str) -> Command:
        """Return the command of that name or alias, or the only one that begins so; `_` and `-` are the same.

        Raises:
            UsageError: there is none, or several begin so.
        """
        wanted = name.lower().replace("_", "-")
        named = {known: command for command in self.values() for known in command.names}
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

    def split(self, line: str) -> tuple[Command, str]:
        """Return the command that a line begins with, and what stands behind it; `/` alone asks for help.

        Raises:
            UsageError: there is no such command.
        """
        words = line.removeprefix(MARK).split(maxsplit=1)
        if not words:
            return self["help"], ""
        return self.find(words[0]), words[1].strip() if len(words) > 1 else ""

    def command_of(self, line: str) -> Command | None:
        """Return the command that a line begins with; None if it is a prompt, or there is no such command."""
        try:
            return self.split(line)[0] if is_command(line) else None
        except UsageError:
            return None

    def dispatch(self, session: Session, line: str) -> Result:
        """Run a command as it was typed, with its `/`.

        Raises:
            TinychatError: there is no such command, or it cannot do what it was asked.
        """
        command, text = self.split(line)
        return command.function(session, text)

    def _make_help(self) -> Command:
        def complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
            if len(words) == 1:
                yield from (Suggestion(one.name, one.summary) for one in self.values())

        @command(
            "help", "session", "of one command", usage="[COMMAND]", example="/help temperature", aliases=("?",),
            while_busy=True, complete=complete,
        )  # fmt: skip
        def help(session: Session, text: str) -> Result:
            """All commands on one screen, or one of them with an example."""
            if not text:
                every = self.values()
                return Help({theme: {one.name: one.brief for one in every if one.theme == theme} for theme in THEMES})
            one = self.find(text.removeprefix(MARK))
            notes = []
            if one.example:
                notes.append(f"example: {one.example}")
            if one.aliases:
                notes.append("also: " + " ".join(f"/{alias}" for alias in one.aliases))
            return Message((one.synopsis, *(f"  {line}".rstrip() for line in one.help.splitlines())), tuple(notes))

        return help


@command("quit", "session", "leave", aliases=("exit", "bye", "q"))
def quit_(session: Session, text: str) -> Result:
    """Leave; Ctrl-D on an empty line does the same."""
    return Leave()


# --- what stands behind a command's name: words, flags, numbers, quoted texts, files ---------------------------------


def split_words(text: str) -> list[str]:
    """Return the words, as a shell splits them.

    Raises:
        UsageError: a quotation mark is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark stands alone", "put names with spaces between two of them") from None


def split_flags(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words, and the flags with their values, which may be empty: `--steps=5` is `--steps 5`.

    Raises:
        UsageError: a quotation mark is not closed.
    """
    words: list[str] = []
    flags: list[tuple[str, str]] = []
    waiting = iter(split_words(text))
    for word in waiting:
        if not word.startswith("--"):
            words.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        flags.append((name, value if equals else next(waiting, "")))
    return words, flags


def parse_number(text: str, low: int, high: float, error: UsageError) -> int:
    """Return the whole number that was typed.

    Raises:
        UsageError: the error that was handed in: it is no whole number from `low` to `high`.
    """
    try:
        number = int(text)
    except ValueError:
        raise error from None
    if not low <= number <= high:
        raise error
    return number


def parse_token(text: str, count: int, name: str) -> int:
    """Return the position (from 0) of the token of an answer that is meant: 1 is the first, -1 the last, as is nothing.

    Args:
        text: what was typed.
        count: of the answer's tokens.
        name: of the command.

    Raises:
        UsageError: there is no such token.
    """
    error = UsageError(f"/{name} takes the number of a token, from 1 to {count}, not {text!r}")
    number = parse_number(text or str(count), -count, count, error)
    if number == 0:
        raise error
    return number - 1 if number > 0 else number + count


def unquote(text: str) -> str:
    """Return a text without the quotation marks around it, if it has some."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def to_path(text: str) -> Path:
    """Return the file that is named, whose spaces may be typed as `\\ `."""
    return Path(text.replace(ESCAPED_SPACE, " ")).expanduser()


# --- what could be typed next, where several commands take the same --------------------------------------------------


def complete_models(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer the names of models."""
    from tinychat.store.models import list_models

    if len(words) == 1:
        yield from (Suggestion(info.name, info.summary.partition(" ")[2]) for info in list_models())


def complete_recipes(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer the names of recipes."""
    from tinychat.train.recipe import list_recipes

    if len(words) == 1:
        yield from (Suggestion(recipe.name, recipe.about) for recipe in list_recipes())


def complete_run(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer the names of training runs, the newest first."""
    if len(words) == 1:
        yield from complete_runs(session, words)


def complete_runs(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer the names of training runs that are not typed yet, the newest first."""
    from tinychat.store.runs import list_runs

    yield from (
        Suggestion(run.name, "at work" if run.is_running() else "") for run in list_runs() if run.name not in words[:-1]
    )


def complete_paths(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer files and folders that begin as the last word does; hidden ones need their dot."""
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


def complete_texts(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer files and folders, then the known data sets."""
    from tinychat.corpus.registry import KNOWN

    yield from complete_paths(session, words)
    yield from (Suggestion(name, known.about) for name, known in KNOWN.items())


def complete_transcripts(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Offer kept conversations, the newest first, with how each began; then files and folders."""
    if len(words) == 1:
        for path in [path for path in kept_transcripts() if path.name.startswith(words[0])][:MOST_KEPT]:
            yield Suggestion(path.stem, _first_prompt(path))
    yield from complete_paths(session, words)


def _first_prompt(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["turns"][0]["prompt"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
