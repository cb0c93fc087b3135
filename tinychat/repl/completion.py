"""Completion at the prompt: commands, and what may stand behind them."""

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Suggestion, is_command
from tinychat.session import Session

WORD = re.compile(r"""(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote)).)*)(?P<end>(?P=quote)?)|(?:\\\s|\S)+""")
"""one in quotation marks, of which the last may be missing, or one whose spaces have a backslash before them"""
SPACE = re.compile(r"\\(\s)")


class CommandCompleter(Completer):
    """Completes commands and what may stand behind them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What the word before the cursor may become."""
        typed, offered = complete(self._session, document.text_before_cursor)
        for text, one in offered:
            yield Completion(text, start_position=-len(typed), display=one.text, display_meta=one.about)


def complete(session: Session, line: str) -> tuple[str, list[tuple[str, Suggestion]]]:
    """The last word of a line as it was typed, and what it may become: how that is typed, and what it is.

    Spaces are typed as they were begun: in quotation marks, or each with a backslash.
    """
    if not is_command(line) or "\n" in line:
        return "", []
    words, typed, quote = parse_line(line)
    begun = words[-1].lower()
    return typed, [
        (_typed(one.text, quote), one) for one in suggest(session, words) if one.text.lower().startswith(begun)
    ]


def parse_line(line: str) -> tuple[list[str], str, str]:
    """The words of a line, the last of them, perhaps empty, as it was typed, and the quotation mark it begins with."""
    words, typed, quote, end = [], "", "", 0
    for found in WORD.finditer(line):
        typed, quote, end = found[0], found["quote"] or "", found.end()
        words.append(found["quoted"] if quote else SPACE.sub(r"\1", typed))
        if found["end"]:
            quote = ""
    if end < len(line):
        return [*words, ""], "", ""
    return words, typed, quote


def suggest(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """What the last word of a command could be, whatever has been typed of it."""
    if len(words) == 1:
        yield from (Suggestion(f"/{one.name}", one.summary) for one in COMMANDS.values())
    elif command := COMMANDS.command_of(words[0]):
        yield from command.complete(session, words[1:])


def _typed(text: str, quote: str) -> str:
    """How a text is typed; the name of a folder may go on, so that its quotation mark stays open."""
    if not quote and ("'" in text or '"' in text):
        quote = "'" if '"' in text else '"'
    if quote:
        return quote + text + ("" if text.endswith("/") else quote)
    return text.replace(" ", r"\ ")
