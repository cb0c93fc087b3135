"""Completion at the prompt: commands, and what may stand behind them."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tinychat.commands.command import Suggestion
from tinychat.commands.help import first_line
from tinychat.commands.table import COMMANDS, is_command, split_line
from tinychat.errors import UsageError
from tinychat.session import Session

WORDS = re.compile(r"(?<!\\)\s+")
"""what lies between words: space, but for one behind a backslash"""


class CommandCompleter(Completer):
    """Completes commands and what may stand behind them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What the word before the cursor may become."""
        line = document.text_before_cursor
        if is_command(line) and "\n" not in line:
            word = WORDS.split(line)[-1]
            for one in suggest(self._session, line):
                if one.text.lower().startswith(word.lower()):
                    yield Completion(one.text, start_position=-len(word), display_meta=one.about)


def suggest(session: Session, line: str) -> Iterable[Suggestion]:
    """What the last word of a line that begins with `/` could be, whatever has been typed of it."""
    words = WORDS.split(line)
    if len(words) == 1:
        return [Suggestion(f"/{one.name}", first_line(one.help)) for one in COMMANDS.values()]
    try:
        command = split_line(words[0])[0]
    except UsageError:
        return []
    return command.complete(session, words[1:]) if command.complete else []
