"""The prompt: editing, history, completion, blocks of several lines, and the toolbar under it."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from tinychat.commands.command import Suggestion
from tinychat.commands.help import first_line
from tinychat.commands.table import COMMANDS, is_command, split_line
from tinychat.errors import UsageError
from tinychat.repl.terminal import fit
from tinychat.repl.toolbar import toolbar
from tinychat.session import Session

MARK, CONTINUATION = "› ", "… "
BLOCK = '"""'
MENU_HEIGHT = 6
LOOK = 1.0
"""seconds between two looks at the runs in the background"""
WORDS = re.compile(r"(?<!\\)\s+")
"""what lies between words: space, but for one behind a backslash"""

COLOURS = Style.from_dict(
    {"mark": "bold ansicyan", "continuation": "dim", "bottom-toolbar": "noreverse dim", "auto-suggestion": "dim"}
)
PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


class Prompt:
    """Asks for what comes next.

    Args:
        session: whose commands and models are completed, and whose settings stand in the toolbar.
        history: the file that keeps what was typed.
        on_shown: called once, when the prompt is on screen for the first time.
        news: asked each second while a run trains in the background; what it gives back is called to write above the
            prompt.
        colour: whether to use colours.
        vi: whether keys are vi's, else emacs's.
        private: whether what is typed is kept out of the history.
        input: of prompt_toolkit; None: the terminal's.
        output: likewise.
    """

    def __init__(
        self,
        session: Session,
        history: Path,
        *,
        on_shown: Callable[[], None] = lambda: None,
        news: Callable[[], Callable[[], None] | None] = lambda: None,
        colour: bool = True,
        vi: bool = False,
        private: bool = False,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session, self._on_shown = session, on_shown
        self._news = news
        self._prompt: PromptSession[str] = PromptSession(
            FormattedText([("class:mark", MARK)]),
            multiline=True,
            prompt_continuation=FormattedText([("class:continuation", CONTINUATION)]),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            completer=CommandCompleter(session),
            complete_while_typing=Condition(lambda: is_command(self._prompt.default_buffer.text)),
            reserve_space_for_menu=MENU_HEIGHT,
            history=QuietHistory(history, private=private),
            auto_suggest=AutoSuggestFromHistory(),
            enable_open_in_editor=True,
            enable_suspend=True,
            key_bindings=_bindings(),
            bottom_toolbar=self._toolbar,
            style=COLOURS if colour else PLAIN,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )
        # A terminal that does not tell where its cursor stands has no toolbar; there is no need to warn of that.
        self._prompt.app.renderer.cpr_not_supported_callback = None
        self._prompt.app.after_render += self._after_render

    def ask(self, text: str = "") -> str:
        """What was typed; the quotation marks of a block are taken off.

        Args:
            text: that stands there already.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C on an empty line; elsewhere it clears the line.
        """
        return unblock(self._prompt.prompt(default=text, pre_run=self._begin_to_look))

    def _begin_to_look(self) -> None:
        if self._session.background:
            self._prompt.app.create_background_task(self._look())

    async def _look(self) -> None:
        """Keeps the toolbar up to date, and tells of runs that end."""
        while self._session.background:
            tell = self._news()
            if tell is not None:
                await run_in_terminal(tell)
            self._prompt.app.invalidate()
            await asyncio.sleep(LOOK)

    def _after_render(self, _: object) -> None:
        self._prompt.app.after_render -= self._after_render
        self._on_shown()

    def _toolbar(self) -> FormattedText:
        width = self._prompt.app.output.get_size().columns
        return FormattedText([("", fit(f" {toolbar(self._session)}", width))])


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


def unblock(text: str) -> str:
    '''Takes the marks off a `"""` block, with the new lines next to them; a block is a prompt, whatever is in it.'''
    if not text.startswith(BLOCK):
        return text
    inner = text.removeprefix(BLOCK)
    if inner.rstrip().endswith(BLOCK):
        inner = inner.rstrip().removesuffix(BLOCK)
    inner = inner.removeprefix("\n").removesuffix("\n")
    return "/" + inner if inner.startswith("/") else inner


def is_open_block(text: str) -> bool:
    '''Whether a `"""` block has begun and not ended.'''
    return text.startswith(BLOCK) and not text.removeprefix(BLOCK).rstrip().endswith(BLOCK)


def wants_vi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the person has set vi keys for all programs that read lines, in `~/.inputrc`."""
    path = Path(environment.get("INPUTRC") or "~/.inputrc")
    try:
        return bool(re.search(r"(?m)^\s*set\s+editing-mode\s+vi\b", path.expanduser().read_text(errors="replace")))
    except (OSError, RuntimeError):
        return False


class QuietHistory(FileHistory):
    """History in a file; where that cannot be written, or is not to be, it lasts as long as the session."""

    def __init__(self, path: Path, *, private: bool = False) -> None:
        super().__init__(str(path))
        self._private = private

    def load_history_strings(self) -> Iterable[str]:
        """What the file holds, the newest first."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Adds a line to the file."""
        if self._private:
            return
        try:
            Path(os.fsdecode(self.filename)).parent.mkdir(parents=True, exist_ok=True)
            super().store_string(string)
        except (OSError, UnicodeError):
            return


def _bindings() -> KeyBindings:
    """Enter sends, but in an open block; Alt-Enter and Ctrl-J begin a new line; Ctrl-C clears; F4 changes vi/emacs."""
    bindings = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)

    @bindings.add("enter", filter=editing)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_open_block(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=editing)
    @bindings.add("c-j", filter=editing)
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("c-c", filter=editing)
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    @bindings.add("f4")
    def change_keys(event: KeyPressEvent) -> None:
        vi = event.app.editing_mode is EditingMode.VI
        event.app.editing_mode = EditingMode.EMACS if vi else EditingMode.VI

    return bindings
