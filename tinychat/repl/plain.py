"""The prompt in plain lines, for screen readers, slow lines and terminals that know no control sequences.

What is typed is edited, completed and searched by readline, as in a shell.
"""

import os
from pathlib import Path
from types import ModuleType

from tinychat.repl.keys import Keyboard, is_open_block, raised_interrupts, unblock
from tinychat.repl.prompt import QuietHistory, complete, mark, tell_ended
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session

CONTINUATION = "... "
EDITLINE = {
    "tab: complete": "bind ^I rl_complete",
    "set editing-mode vi": "bind -v",
    "set editing-mode emacs": "bind -e",
}
"""the same in the words of editline, which is called readline on a Mac"""
MOST = 1000
"""lines of history that can be gone back to"""


class PlainPrompt:
    """Asks for what comes next; before that, tells of runs in the background that have ended."""

    def __init__(self, session: Session, terminal: Terminal, keyboard: Keyboard, history: Path) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._history = QuietHistory(history, private=session.ui_options.current.private)
        self._offered: list[str] = []
        self._readline = _load_readline()
        if self._readline is not None:
            self._set_up(self._readline)

    @property
    def _mark(self) -> str:
        return mark(self._session, plain=True)

    def ask(self, text: str = "") -> str:
        """What was typed; the quotation marks of a block are taken off.

        Args:
            text: that stands there already.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C.
        """
        tell_ended(self._session.runs.take_ended(), self._session, self._terminal)
        line, is_whole = self._keyboard.take_line()
        if is_whole:
            self._terminal.line(self._mark + line)
        else:
            line = read_line(self._terminal, self._mark, text + line)
            while is_open_block(line):
                line += "\n" + read_line(self._terminal, CONTINUATION)
        if line.strip():
            self._history.store_string(line)
            if self._readline is not None:
                self._readline.add_history(line)
        return unblock(line)

    def _set_up(self, readline: ModuleType) -> None:
        wanted = ["tab: complete", "set show-all-if-ambiguous on"]
        if (keys := self._session.ui_options.current.keys) != "auto":
            wanted.append(f"set editing-mode {keys}")
        is_editline = "libedit" in (readline.__doc__ or "")
        for one in wanted:
            readline.parse_and_bind(EDITLINE.get(one, "") if is_editline else one)
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(self._complete)
        readline.set_completion_display_matches_hook(self._show_offered)
        for line in list(self._history.load_history_strings())[MOST - 1 :: -1]:
            readline.add_history(line)

    def _complete(self, line: str, number: int) -> str | None:
        """The whole line as it would be with the suggestion of that number."""
        if number == 0:
            typed, offered = complete(self._session, line)
            self._offered = [line[: len(line) - len(typed)] + text for text, _ in offered]
        return self._offered[number] if number < len(self._offered) else None

    def _show_offered(self, line: str, offered: list[str], longest: int) -> None:
        """Each suggestion on a line of its own, with what it is; then the prompt again."""
        assert self._readline is not None
        begun = self._readline.get_line_buffer()
        self._terminal.write("\n")
        for _, one in complete(self._session, begun)[1]:
            self._terminal.line(f"{one.text}: {one.about}" if one.about else one.text)
        self._terminal.write(self._mark + begun)
        self._terminal.column = 0


def read_line(terminal: Terminal, mark: str, begun: str = "") -> str:
    """A line that is typed behind a mark, where something may stand already.

    Raises:
        EOFError: Ctrl-D on an empty line.
        KeyboardInterrupt: Ctrl-C.
    """
    readline = _load_readline()
    if readline is not None:
        readline.set_startup_hook(lambda: readline.insert_text(begun))
    try:
        with raised_interrupts():
            return input(mark)
    except (EOFError, KeyboardInterrupt):
        terminal.write("\n")
        raise


def _load_readline() -> ModuleType | None:
    """The module, told that the terminal is dumb, so that it writes no control sequences; None where there is none."""
    before = os.environ.get("TERM")
    os.environ["TERM"] = "dumb"
    try:
        import readline
    except ImportError:  # Windows, and a few builds of Python: lines are read as the system does
        return None
    finally:
        del os.environ["TERM"]
        if before is not None:
            os.environ["TERM"] = before
    return readline
