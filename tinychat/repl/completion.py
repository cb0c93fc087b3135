"""The text being typed: completion of commands and their arguments, in a menu or by readline, and blocks."""

import re
from collections.abc import Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Suggestion, escape_prompt, is_command
from tinychat.repl import keys
from tinychat.repl.render.terminal import fit
from tinychat.session.session import Session
from tinychat.store.names import fold

MENU_FRAME = 5
"""Number of cells of the menu beside the completions and their descriptions: spaces and the scroll bar."""
CLAUSE_END = re.compile(r"[;:] | \(| · ")
WORD = re.compile(r"""(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote)).)*)(?P<end>(?P=quote)?)|(?:\\\s|\S)+""")
"""A word in quotation marks, of which the closing one may be missing, or a word whose spaces are escaped."""
ESCAPED_SPACE = re.compile(r"\\(\s)")


class CommandCompleter(Completer):
    """Completes slash commands and their arguments, with descriptions that fit in a menu on a screen of some width."""

    def __init__(self, session: Session, width: Callable[[], int]) -> None:
        self._session, self._width = session, width

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        try:
            typed, completions = complete(self._session, document.text_before_cursor)
        except OSError:  # what is offered may be read from the disk: the command itself tells what is wrong there
            return
        shown = [keys.show_on_one_line(suggestion.text) for _, suggestion in completions]
        room = self._width() - MENU_FRAME - max(map(get_cwidth, shown), default=0)
        for display, (text, suggestion) in zip(shown, completions, strict=True):
            about, brief = map(keys.show_on_one_line, (suggestion.about, suggestion.brief))
            about = shorten_description(about, brief, room)
            yield Completion(text, start_position=-len(typed), display=display, display_meta=about)


def shorten_description(about: str, brief: str, width: int) -> str:
    """Return a description that fits: all of it, its first clauses, or the brief one.

    Only the first comma ends a clause: later ones may separate the items of a list.
    """
    if get_cwidth(about) <= width:
        return about
    ends = [*(end.start() for end in CLAUSE_END.finditer(about)), about.find(", ")]
    clauses = [about[:end] for end in ends if end > 0]
    return max((one for one in clauses if get_cwidth(one) <= width), key=len, default=brief or fit(about, width))


def complete(session: Session, line: str) -> tuple[str, list[tuple[str, Suggestion]]]:
    """Return the last word of a line as it was typed, and its completions: each the text in its place, and its source.

    Spaces are written in the style that the word was begun in: quoted, or each with a backslash; those of the value of
    a setting, which is all the rest of the line, as they are.
    """
    if not is_command(line) or "\n" in line:
        return "", []
    words, typed, quote = parse_line(line)
    offered: Iterable[Suggestion] = []
    is_value = False
    if len(words) == 1:
        offered = (Suggestion(f"/{command.name}", command.summary, command.brief) for command in COMMANDS.values())
    elif command := COMMANDS.command_of(words[0]):
        offered, is_value = command.complete(session, words[1:]), command.category == "settings" and not quote
    prefix = fold(words[-1])
    found = (one for one in offered if fold(one.text).startswith(prefix))
    return typed, [(one.text if is_value else _quoted(one.text, quote), one) for one in found]


def parse_line(line: str) -> tuple[list[str], str, str]:
    """Return the words of a line, the last one as it was typed, and its open quotation mark; a space begins a word."""
    words, typed, quote, end = [], "", "", 0
    for found in WORD.finditer(line):
        typed, quote, end = found[0], found["quote"] or "", found.end()
        words.append(found["quoted"] if quote else ESCAPED_SPACE.sub(r"\1", typed))
        if found["end"]:
            quote = ""
    if end < len(line):
        return [*words, ""], "", ""
    return words, typed, quote


def _quoted(text: str, quote: str) -> str:
    """Return a text as it is typed at the prompt; the quotation mark of a folder stays open, since a path may go on."""
    if not quote and ("'" in text or '"' in text):
        quote = "'" if '"' in text else '"'
    if quote:
        return quote + text + ("" if text.endswith("/") else quote)
    return text.replace(" ", r"\ ")


def strip_block(text: str) -> str:
    '''Return a text without the `"""` around it and the new lines next to them.

    A block is always a prompt: if its content would be a command, it is escaped.
    '''
    if not text.startswith(keys.BLOCK):
        return text
    inner = text.removeprefix(keys.BLOCK)
    if not keys.is_open_block(text):
        inner = inner.rstrip().removesuffix(keys.BLOCK)
    return escape_prompt(inner.removeprefix("\n").removesuffix("\n"))
