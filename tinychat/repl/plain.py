"""The prompt in plain lines, for screen readers, slow connections and terminals without control sequences.

Input is edited, completed and searched by readline, as in a shell.
"""

import os
from pathlib import Path
from types import ModuleType

from tinychat.repl.keys import Keyboard, is_open_block, raised_interrupts, strip_block
from tinychat.repl.prompt import QuietHistory, complete, mark, report_ended
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session

CONTINUATION = "... "
EDITLINE_BINDINGS = {
    "tab: complete": "bind ^I rl_complete",
    "set editing-mode vi": "bind -v",
    "set editing-mode emacs": "bind -e",
}
"""readline's bindings in the syntax of editline, which macOS ships as readline."""
MAX_HISTORY = 1000
"""Number of history lines that can be recalled."""


class PlainPrompt:
    """A prompt in plain lines; background runs that have ended are reported before it."""

    def __init__(self, session: Session, terminal: Terminal, keyboard: Keyboard, history: Path) -> None:
        self._session, self._terminal, self._keyboard = session, terminal, keyboard
        self._history = QuietHistory(history, private=session.ui_options.current.private)
        self._completions: list[str] = []
        self._readline = _load_readline()
        if self._readline is not None:
            self._set_up(self._readline)

    @property
    def _mark(self) -> str:
        return mark(self._session, plain=True)

    def ask(self, text: str = "") -> str:
        '''Return the text that the user enters, without the marks of a `"""` block.

        Args:
            text: initial content of the input.

        Raises:
            EOFError: On Ctrl-D at an empty line.
            KeyboardInterrupt: On Ctrl-C.
        '''
        report_ended(self._session.runs.pop_ended(), self._session, self._terminal)
        line, is_complete = self._keyboard.pop_line()
        if is_complete:
            self._terminal.line(self._mark + line)
        else:
            line = read_line(self._terminal, self._mark, text + line)
            while is_open_block(line):
                line += "\n" + read_line(self._terminal, CONTINUATION)
        if line.strip():
            self._history.store_string(line)
            if self._readline is not None:
                self._readline.add_history(line)
        return strip_block(line)

    def _set_up(self, readline: ModuleType) -> None:
        bindings = ["tab: complete", "set show-all-if-ambiguous on"]
        if (keys := self._session.ui_options.current.keys) != "auto":
            bindings.append(f"set editing-mode {keys}")
        is_editline = "libedit" in (readline.__doc__ or "")
        for binding in bindings:
            readline.parse_and_bind(EDITLINE_BINDINGS.get(binding, "") if is_editline else binding)
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(self._complete)
        readline.set_completion_display_matches_hook(self._show_suggestions)
        for line in list(self._history.load_history_strings())[MAX_HISTORY - 1 :: -1]:
            readline.add_history(line)

    def _complete(self, line: str, index: int) -> str | None:
        """Return the whole line as completed by suggestion `index`; None after the last."""
        if index == 0:
            typed, completions = complete(self._session, line)
            self._completions = [line[: len(line) - len(typed)] + text for text, _ in completions]
        return self._completions[index] if index < len(self._completions) else None

    def _show_suggestions(self, line: str, matches: list[str], longest: int) -> None:
        """Write each suggestion with its description on its own line, then the prompt again."""
        assert self._readline is not None
        typed = self._readline.get_line_buffer()
        self._terminal.write("\n")
        for _, suggestion in complete(self._session, typed)[1]:
            self._terminal.line(": ".join(filter(None, (suggestion.text, suggestion.about))))
        self._terminal.write(self._mark + typed)
        self._terminal.column = 0


def read_line(terminal: Terminal, mark: str, prefill: str = "") -> str:
    """Read a line that is typed after a mark.

    Args:
        terminal: where the line ends if the user breaks off.
        mark: text before the input.
        prefill: initial content of the input, if there is a readline.

    Raises:
        EOFError: On Ctrl-D at an empty line.
        KeyboardInterrupt: On Ctrl-C.
    """
    readline = _load_readline()
    if readline is not None:
        readline.set_startup_hook(lambda: readline.insert_text(prefill))
    try:
        with raised_interrupts():
            return input(mark)
    except (EOFError, KeyboardInterrupt):
        terminal.write("\n")
        raise


def _load_readline() -> ModuleType | None:
    """Import readline under TERM=dumb, so that it writes no control sequences; return None if there is none."""
    before = os.environ.get("TERM")
    os.environ["TERM"] = "dumb"
    try:
        import readline
    except ImportError:  # Windows, and some builds of Python
        return None
    finally:
        del os.environ["TERM"]
        if before is not None:
            os.environ["TERM"] = before
    return readline
