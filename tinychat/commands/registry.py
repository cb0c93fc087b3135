"""Slash commands, each declared once for dispatch, typo hints, completion and `/help`, and their arguments."""

import difflib
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tinychat.commands.results import Help, Message, Quit, Result
from tinychat.config.option import Option
from tinychat.config.settings import SETTINGS, UI_OPTIONS
from tinychat.errors import UsageError
from tinychat.session.session import Session
from tinychat.textutil import quote
from tinychat.untrusted import expand_home

PREFIX = "/"
CATEGORIES = ("talk", "settings", "models", "training", "inside", "session")
"""Categories of commands, in the order in which `/help` shows them."""
BARE_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("exit", "quit", "exit()", "quit()", ":q", ":q!", ":wq", ":x"), "quit"),
    **dict.fromkeys(("help", "?"), "help"),
}
"""Lines that are commands without a slash, as in other programs."""
SHELL_LINE = re.compile(r"! ?[A-Za-z0-9_./~$].*")
"""A line for the shell, as in ipython; `!` before anything else, such as another one, begins a prompt."""
GLUED_VALUE = re.compile(r"(?P<name>[a-z][a-z_-]*?)(?P<sign>[=:]?)(?P<value>(?<=[=:]).*|-?[0-9.].*)", re.IGNORECASE)
"""`/temp0.5` and `/temp=0.5`, without the slash."""
IN_SHELL = ("train", "models", "show", "runs", "rm", "rename", "recipes")
"""Commands that the shell's `tinychat` has under the same names, for the same."""
NAMED_IN_SHELL = re.compile(rf"`tinychat (?=(?:{'|'.join(IN_SHELL)})\b)")
SETTING_IN_SHELL = re.compile(rf"`--(?=(?:{'|'.join(option.spelling for option in SETTINGS.values())})\b)")
FREE_TEXT = re.compile(r"\b(?:TEXT|PROMPT|PATTERN)\b(?!…)|NAME VALUE")
"""Part of the usage of a command that takes a text, which may have several lines."""
NUMBER_USAGE = re.compile(r"\[?(N|LAYER)\b")
"""Beginning of the usage of a command that takes a number first."""
MIN_SIMILARITY = 0.65
"""Of the nearest name to one that was typed; at 0.6, `/greedy` would be near to `/redo`."""


@dataclass(frozen=True)
class Suggestion:
    """A completion, with a description, and a brief one where there is no room for that."""

    text: str
    about: str = ""
    brief: str = ""


Function = Callable[[Session, str], Result]
"""Runs a command; receives the session and the stripped text after the command's name."""

Complete = Callable[[Session, list[str]], Iterable[Suggestion]]
"""Completes a command; receives the words after its name. The last one, which may be empty, is being typed."""


@dataclass(frozen=True)
class Command:
    """A slash command."""

    name: str
    function: Function
    category: str
    help: str
    """Full text, for `/help NAME`; its first line is the summary."""
    brief: str = ""
    """Up to 20 characters for the overview; empty if the name says enough."""
    usage: str = ""
    """Arguments, as in `NAME [VALUE]`."""
    example: str = ""
    aliases: tuple[str, ...] = ()
    while_busy: bool = False
    """Whether it may run while an answer is printed."""
    complete: Complete = lambda session, words: ()
    describe_state: Callable[[Session], tuple[str, ...]] = lambda session: ()
    """Returns notes on what it would change, for `/help NAME`."""
    is_listed: bool = True
    """Whether the overview names it; the help of another command tells of those that it does not."""

    @property
    def names(self) -> tuple[str, ...]:
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
    """Return a decorator that turns a function into a command, with its docstring as the help."""
    return lambda function: Command(name, function, category, inspect.getdoc(function) or "", brief, **fields)


def is_command(line: str) -> bool:
    """Return whether a line is a command: `/x`, or a bare word such as `exit`; `//x` is a prompt."""
    return (line.startswith(PREFIX) and not line.startswith(PREFIX * 2)) or is_bare_word(line)


def is_bare_word(line: str) -> bool:
    """Return whether a line is a command without a slash."""
    return line.strip().lower() in BARE_WORDS


def is_shell_line(line: str) -> bool:
    """Return whether a line is for the shell: `!ls`."""
    return SHELL_LINE.fullmatch(line) is not None


def prompt_of(line: str) -> str:
    """Return the prompt in a line, without its escape; empty for a command and a line for the shell."""
    if is_command(line) or is_shell_line(line):
        return ""
    unescaped = line.removeprefix(PREFIX * 2)
    return unescaped if escape_prompt(unescaped) == line else line.removeprefix(PREFIX)


def escape_prompt(prompt: str) -> str:
    """Return the line that sends a prompt: `//x` sends `/x`, and `//help` and `//!ls` send what follows the slashes."""
    rest = prompt.lstrip(PREFIX)
    if is_bare_word(rest) or is_shell_line(rest):
        return PREFIX * 2 + prompt
    return PREFIX + prompt if prompt.startswith(PREFIX) else prompt


def for_the_prompt(remedy: str) -> str:
    """Return a remedy as it is told at the prompt.

    With `/rm X` for `tinychat rm X` and `/seed 7` for the flag `--seed 7`, and without "in the REPL".
    """
    for spelling in (NAMED_IN_SHELL, SETTING_IN_SHELL):
        remedy = spelling.sub(f"`{PREFIX}", remedy)
    return remedy.replace(" in the REPL", "")


class Registry(dict[str, Command]):
    """Commands by name, in the order of `/help`. Adds `/help` and `/quit` to those passed in.

    `synonyms`: words that are no commands, each with the name of the command that means the same.
    """

    def __init__(self, commands: Iterable[Command], synonyms: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__((command.name, command) for command in (*commands, self._make_help(), quit_))
        self.synonyms = synonyms

    def find(self, name: str, remedy: str = "/help lists them") -> Command:
        """Return the command with a name, an alias or a unique prefix of either; `_` and `-` are the same.

        `remedy` is that of the error where no name is near.

        Raises:
            UsageError: If no command matches, or the prefix is ambiguous.
        """
        typed = name.lower().replace("_", "-")
        by_name = {known: command for command in self.values() for known in command.names}
        if typed in by_name:
            return by_name[typed]
        matches = {command.name: command for known, command in by_name.items() if typed and known.startswith(typed)}
        if len(matches) == 1:
            return matches.popitem()[1]
        if matches:
            candidates = ", ".join(PREFIX + known for known in sorted(matches))
            raise UsageError(f"/{name} could be {candidates}", "type some more of it")
        if (option := UI_OPTIONS.get(typed)) is not None:
            raise chosen_at_start(option)
        near = None if PREFIX in typed else self._find_near(typed)  # a path is meant for the model
        raise UsageError(f"there is no command /{name}", f"did you mean /{near}?" if near else remedy)

    def _find_near(self, typed: str) -> str | None:
        """Return the name that a word means or, by its spelling, may mean; None if there is none."""
        if typed in self.synonyms:
            return self.synonyms[typed]
        names = [name for command in self.values() for name in command.names]
        for words in (names, list(self.synonyms)):
            if near := difflib.get_close_matches(typed, words, n=1, cutoff=MIN_SIMILARITY):
                return self.synonyms.get(near[0], near[0])
        return None

    def split(self, line: str) -> tuple[Command, str]:
        """Split a line into its command and the text of the arguments; `/` alone is `/help`.

        A number may follow the name of a command without a space, and the value of a setting an `=`.

        Raises:
            UsageError: If there is no such command.
        """
        if is_bare_word(line):
            return self[BARE_WORDS[line.strip().lower()]], ""
        name, text, *_ = (*line.removeprefix(PREFIX).split(maxsplit=1), "", "")
        try:
            return self.find(name or "help", f"/help lists them · {PREFIX * 2} sends it to the model"), text.strip()
        except UsageError:
            if (found := self._find_with_value(name)) is None:
                raise
        command, value = found
        return command, f"{value} {text}".strip()

    def _find_with_value(self, typed: str) -> tuple[Command, str] | None:
        """Return the command and the value in a word such as `temp0.5` or `temp=0.5`; None if there are none."""
        if (glued := GLUED_VALUE.fullmatch(typed)) is None:
            return None
        try:
            command = self.find(glued["name"])
        except UsageError:
            return None
        takes = command.category == "settings" if glued["sign"] else NUMBER_USAGE.match(command.usage) is not None
        return (command, glued["value"]) if takes else None

    def command_of(self, line: str) -> Command | None:
        """Return the command of a line; None if the line is a prompt or there is no such command."""
        try:
            return self.split(line)[0] if is_command(line) else None
        except UsageError:
            return None

    def dispatch(self, session: Session, line: str) -> Result:
        """Run a command line, such as `/top-p 0.9`.

        Raises:
            TinychatError: If there is no such command, or it fails; if the line is several commands, or text follows
                a command that takes none.
        """
        command, text = self.split(line)
        later = line.strip().split("\n")[1:]
        takes_lines = FREE_TEXT.search(command.usage) is not None
        if later and not (takes_lines and all(self.command_of(one) is None for one in later if one[:1] == PREFIX)):
            remedy = "a pasted block is one prompt; type the lines one after the other"
            raise UsageError("one command at a time: this has several lines", remedy)
        if text and not command.usage:
            raise UsageError(f"{command.synopsis} takes nothing after it, not {quote(text)}", "type it alone")
        return command.function(session, text)

    def _make_help(self) -> Command:
        @first_word
        def complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
            return (Suggestion(command.name, command.summary, command.brief) for command in self.values())

        @command(
            "help", "session", "of one command", usage="[COMMAND]", example="/help temperature", aliases=("?",),
            while_busy=True, complete=complete,
        )  # fmt: skip
        def help(session: Session, text: str) -> Result:
            """List the commands on one screen, or describe one with an example; `/settings` lists all settings."""
            if not text:
                briefs: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES}
                for command in self.values():
                    if command.is_listed:
                        briefs[command.category][command.name] = command.brief
                return Help(briefs)
            command = self.find(text.split()[0].removeprefix(PREFIX))
            lines = [paragraph.replace("\n", " ") for paragraph in command.help.split("\n\n")]
            notes = [*command.describe_state(session), *([f"example: {command.example}"] if command.example else [])]
            if command.aliases:
                notes.append("also: " + " ".join(f"/{alias}" for alias in command.aliases))
            return Message(tuple(lines), tuple(notes), command.synopsis)

        return help


@command("quit", "session", "leave", aliases=("exit", "bye", "q"))
def quit_(session: Session, text: str) -> Result:
    """Leave tinychat; Ctrl-D on an empty line does the same, and so do `exit`, `quit` and `:q` without a slash."""
    return Quit()


def chosen_at_start(option: Option) -> UsageError:
    """Return the error where an option of the user interface is set in the middle of a session."""
    return UsageError(f"{option.spelling} is chosen when tinychat starts", f"`tinychat {option.flag}`, or config.toml")


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
    """Split a text into positional words and (flag without dashes, value or "") pairs; `--steps=5` is `--steps 5`.

    Raises:
        UsageError: If a quotation mark is not closed.
    """
    words: list[str] = []
    flags: list[tuple[str, str]] = []
    remaining = iter(split_words(text))
    for word in remaining:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            flags.append((name, value if equals else next(remaining, "")))
        else:
            words.append(word)
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


def parse_token(text: str, count: int, name: str, remedy: str = "") -> int:
    """Parse the number of a token and return its index from 0; 1 is the first token, -1 the last one.

    `remedy` is that of the error.

    Raises:
        UsageError: If there is no such token.
    """
    error = UsageError(f"/{name} takes the number of a token, from 1 to {count}, not {text!r}", remedy)
    number = parse_number(text, -count, count, error)
    if number == 0:
        raise error
    return number - 1 if number > 0 else number + count


def with_ending(path: Path, *endings: str) -> Path:
    """Return a path with the first of some endings if it has none; that of a folder as it is.

    Raises:
        UsageError: If it has another one.
    """
    if path.suffix.lower() in endings or path.is_dir():
        return path
    if path.suffix:
        raise refuse_ending(path, endings)
    return path.with_name(path.name + endings[0])


def refuse_ending(path: Path, endings: Iterable[str]) -> UsageError:
    """Return the error where nothing writes files with the ending of a path."""
    problem = f"{path.suffix} cannot be written" if path.suffix else "it has no ending that says what to write"
    return UsageError(f"{path}: {problem}", "one of " + " ".join(endings))


def unquote(text: str) -> str:
    """Return a text without the quotation marks around it, if any."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def to_name(text: str) -> str:
    """Return the name or path that a text is as a whole, in quotation marks or with spaces written `\\ ` or not."""
    return unquote(text).replace("\\ ", " ")


def to_path(text: str) -> Path:
    """Return the path of a typed file name, in which a space may be written `\\ ` and the home folder `~`.

    Raises:
        UsageError: If no file can have that name.
    """
    if "\0" in text:
        raise UsageError(f"{text!r} is not a file name: it contains a NUL character", "type the name anew")
    return expand_home(text.replace("\\ ", " "))


# --- completion shared by several commands ---------------------------------------------------------------------------


def first_word(complete: Complete) -> Complete:
    """Limit a completion to the first word."""
    return lambda session, words: complete(session, words) if len(words) == 1 else ()


def complete_paths(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the path of a file or folder; hidden ones only after a typed dot."""
    folder, name = os.path.split(words[-1])
    try:
        entries = sorted(os.scandir(expand_home(folder or ".")), key=lambda entry: entry.name)
    except (OSError, ValueError):  # there is no such folder, or it holds a NUL
        return
    for entry in entries:
        if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
            path = os.path.join(folder, entry.name)  # noqa: PTH118 - `./` and `~/` stay as they were typed
            yield Suggestion(path + "/" * _is_folder(entry))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of symbolic links, or one into a folder that may not be read
        return False


def complete_sources(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete a training source: files and folders, then the known data sets."""
    from tinychat.corpus.registry import KNOWN

    yield from complete_paths(session, words)
    yield from (Suggestion(name, known.description) for name, known in KNOWN.items())
