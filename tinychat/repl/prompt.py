"""The prompt: `Prompt` at a terminal, and `PlainPrompt` in plain lines, which readline edits, completes and searches.

`Prompt` is built on prompt_toolkit, with a toolbar and the token ruler. Both share history and completion.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app_or_none
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import AnyFormattedText, FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from tinychat.commands import COMMANDS, lesson
from tinychat.commands.registry import is_command
from tinychat.commands.results import MARKS, PLAIN_MARKS
from tinychat.commands.settings import toggle_greedy
from tinychat.repl import keys
from tinychat.repl.completion import CommandCompleter, complete, strip_block
from tinychat.repl.render.terminal import SEPARATOR, Terminal, fit_items
from tinychat.repl.toolbar import Ruler, justify, report_ended, style_toolbar, toolbar
from tinychat.session.session import Session
from tinychat.textutil import escape_controls

QUESTION_MARK, PLAIN_QUESTION_MARK = "?", "answer>"
"""The marks while a lesson waits for an answer."""
CONTINUATION, PLAIN_CONTINUATION = "… ", "... "
MENU_HEIGHT = 6
POLL_INTERVAL = 1.0
"""Seconds between two polls of the background runs."""
MAX_HISTORY = 1000
"""Number of history lines that can be recalled in plain mode."""
EDITLINE_BINDINGS = {
    "tab: complete": "bind ^I rl_complete",
    "set editing-mode vi": "bind -v",
    "set editing-mode emacs": "bind -e",
}
"""readline's bindings in the syntax of editline, which macOS ships as readline."""

PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


def mark(session: Session, *, plain: bool = False) -> str:
    """Return the prompt mark of the open model's mode, or of a lesson's question, followed by a space."""
    if lesson.is_asking(session):
        return f"{PLAIN_QUESTION_MARK if plain else QUESTION_MARK} "
    return f"{(PLAIN_MARKS if plain else MARKS)[session.mode]} "


class Prompt:
    """The prompt on screen.

    The model (and with it torch) is preloaded in the background after the prompt is first drawn. While a run trains in
    the background, the toolbar is refreshed every second and the end of the run is reported above the prompt.
    """

    def __init__(
        self,
        session: Session,
        terminal: Terminal,
        history: Path,
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session, self._terminal = session, terminal
        ui_options = session.ui_options.current
        self._ruler = Ruler(session, lambda: self._prompt.app.invalidate())
        self._prompt: PromptSession[str] = PromptSession(
            lambda: FormattedText([("class:mark", mark(session))]),
            multiline=True,
            prompt_continuation=FormattedText([("class:continuation", CONTINUATION)]),
            input_processors=[self._ruler],
            completer=CommandCompleter(session, lambda: terminal.width),
            complete_while_typing=Condition(lambda: is_command(self._prompt.default_buffer.text)),
            reserve_space_for_menu=MENU_HEIGHT,
            history=QuietHistory(history, private=ui_options.private),
            auto_suggest=AutoSuggestFromHistory(),
            enable_suspend=True,
            key_bindings=self._bindings(),
            bottom_toolbar=self._toolbar,
            placeholder=self._placeholder,
            style=Style.from_dict(terminal.theme.prompt_styles()) if terminal.colour else PLAIN,
            color_depth=None if terminal.colour else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )
        keys.set_editing_mode(self._prompt.app, vi=keys.wants_vi(ui_options.keys))
        # A terminal that cannot report its cursor position gets no toolbar; prompt_toolkit's warning is not needed.
        self._prompt.app.renderer.cpr_not_supported_callback = None
        self._prompt.app.after_render += self._after_render

    def ask(self, text: str = "") -> str:
        '''Return the text that the user enters, which begins as `text`, without the marks of a `"""` block.

        Raises:
            EOFError: On Ctrl-D at an empty prompt.
            KeyboardInterrupt: On Ctrl-C at an empty prompt; otherwise Ctrl-C clears it.
        '''
        self._ruler.reset()
        self._prompt.app.erase_when_done = False
        return strip_block(ask(self._prompt, text=text, on_start=self._start_polling))

    def _bindings(self) -> KeyBindings:
        """Return the keys that edit, F1 for the help of the command being typed, and F2 for greedy decoding.

        While a lesson waits at an empty prompt, Enter sends the line that it asks for, and Tab types it.
        """
        bindings = keys.prompt_bindings(self._terminal)
        is_led = has_focus(DEFAULT_BUFFER) & Condition(
            lambda: self._session.lesson is not None and not self._prompt.default_buffer.text
        )

        @bindings.add("enter", filter=is_led)
        def go_on(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(lesson.line_on_enter(self._session))
            event.app.erase_when_done = not event.current_buffer.text
            event.current_buffer.validate_and_handle()

        @bindings.add("tab", filter=is_led)
        def edit(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(lesson.line_on_enter(self._session))

        @bindings.add("f1")
        def help(event: KeyPressEvent) -> None:
            keys.run_above_prompt(partial(self._show_help, event.current_buffer.text))

        @bindings.add("f2")
        def on_f2(event: KeyPressEvent) -> None:
            toggle_greedy(self._session)

        return bindings

    def _show_help(self, typed: str) -> None:
        """Show the help of the command that a line begins with, or of all commands."""
        from tinychat.repl.render.results import draw

        command = COMMANDS.command_of(typed) if len(typed) > 1 else None
        result = COMMANDS.dispatch(self._session, f"/help {command.name if command else ''}")
        draw(self._terminal, result)  # type: ignore[arg-type]

    def _start_polling(self) -> None:
        if self._session.runs.all:
            self._prompt.app.create_background_task(self._poll_runs())

    async def _poll_runs(self) -> None:
        """Refresh the toolbar and report runs that end."""
        while self._session.runs.all:
            if ended := self._session.runs.pop_ended():
                await keys.run_above_prompt(partial(report_ended, ended, self._session, self._terminal))
            self._prompt.app.invalidate()
            await asyncio.sleep(POLL_INTERVAL)

    def _after_render(self, _: object) -> None:
        self._prompt.app.after_render -= self._after_render
        self._session.model.preload()

    def _placeholder(self) -> FormattedText:
        """Return what Enter does while nothing is typed, if a lesson is going on."""
        return FormattedText(
            [("class:auto-suggestion", "" if self._prompt.app.is_done else lesson.hint(self._session))]
        )

    def _toolbar(self) -> FormattedText:
        """Return the settings in force; on the right, the vi mode and, while a prompt is typed, its token count."""
        app = self._prompt.app
        right = [f"vi {app.vi_state.input_mode.value[3:]}"] if app.editing_mode is EditingMode.VI else []
        if (measure := self._ruler.update(self._prompt.default_buffer.text)) is not None:
            right.append(measure.text)
        width = app.output.get_size().columns
        line = f" {toolbar(self._session)}"
        if right:
            line = justify(line, SEPARATOR.join(right), width - 1)
        return style_toolbar(fit_items(line, width), self._session)


def ask(
    prompt: PromptSession[str],
    message: AnyFormattedText = None,
    *,
    text: str = "",
    on_start: Callable[[], None] = lambda: None,
) -> str:
    """Run a prompt and return the text that the user enters, which begins as `text`; call `on_start` once it runs.

    SIGINT is handled here because prompt_toolkit's own handler fails if the signal arrives just as a line is sent.

    Raises:
        EOFError: On Ctrl-D at an empty prompt.
        KeyboardInterrupt: On Ctrl-C or SIGINT at any moment.
    """

    def start() -> None:
        if interrupts.count:
            _interrupt_prompt()
        on_start()

    with keys.counted_interrupts(_interrupt_prompt) as interrupts:
        line = prompt.prompt(message, default=text, pre_run=start, handle_sigint=False)
    if interrupts.count:
        raise KeyboardInterrupt
    return line


def _interrupt_prompt() -> None:
    """Make the prompt on screen raise KeyboardInterrupt."""

    def interrupt(app: Application[str]) -> None:
        if app.is_running and not app.is_done:
            app.exit(exception=KeyboardInterrupt)

    app = get_app_or_none()
    if app is not None and app.loop is not None:
        with suppress(RuntimeError):  # its event loop has already closed
            app.loop.call_soon_threadsafe(interrupt, app)


# --- history ---


class QuietHistory(FileHistory):
    """A history file that never raises; only its owner may read it.

    If private or not writable, new lines last only as long as the session.
    """

    def __init__(self, path: Path, *, private: bool = False) -> None:
        super().__init__(str(path))
        self._private = private

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        if self._private:
            return
        with suppress(OSError, UnicodeError):
            path = Path(os.fsdecode(self.filename))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            super().store_string(string)


# --- the prompt in plain lines, for screen readers, slow connections and terminals without control sequences ---


class PlainPrompt:
    """A prompt in plain lines; background runs that have ended are reported before it."""

    def __init__(self, session: Session, terminal: Terminal, keyboard: keys.Keyboard, history: Path) -> None:
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
        """Return the text that the user enters, as `Prompt.ask` does, but Ctrl-C always raises."""
        report_ended(self._session.runs.pop_ended(), self._session, self._terminal)
        line, is_complete = self._keyboard.pop_line()
        if hint := lesson.hint(self._session, plain=True):
            self._terminal.line(hint)
        if is_complete:
            self._terminal.line(self._mark + line)
        else:
            line = read_line(self._terminal, self._mark, text + line)
            while keys.is_open_block(line):
                line += "\n" + read_line(self._terminal, PLAIN_CONTINUATION)
        if line.strip():
            self._history.store_string(line)
            if self._readline is not None:
                self._readline.add_history(escape_controls(line))
        return strip_block(line)

    def _set_up(self, readline: ModuleType) -> None:
        bindings = ["tab: complete", "set show-all-if-ambiguous on"]
        if (mode := self._session.ui_options.current.keys) != "auto":
            bindings.append(f"set editing-mode {mode}")
        is_editline = "libedit" in (readline.__doc__ or "")
        for binding in bindings:
            readline.parse_and_bind(EDITLINE_BINDINGS.get(binding, "") if is_editline else binding)
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(self._complete)
        readline.set_completion_display_matches_hook(self._show_suggestions)
        for line in list(self._history.load_history_strings())[MAX_HISTORY - 1 :: -1]:
            readline.add_history(escape_controls(line))

    def _complete(self, line: str, index: int) -> str | None:
        """Return the whole line as completed by suggestion `index`; None after the last."""
        if index == 0:
            typed, completions = complete(self._session, line)
            # readline would write the control characters of a name as they are
            safe = (text for text, _ in completions if escape_controls(text) == text)
            self._completions = [line[: len(line) - len(typed)] + text for text in safe]
        return self._completions[index] if index < len(self._completions) else None

    def _show_suggestions(self, line: str, matches: list[str], longest: int) -> None:
        """Write each suggestion with its description on its own line, then the prompt again."""
        assert self._readline is not None
        typed = self._readline.get_line_buffer()
        self._terminal.write("\n")
        for _, suggestion in complete(self._session, typed)[1]:
            self._terminal.line(": ".join(filter(None, (suggestion.text, suggestion.about))))
        self._terminal.write(self._mark + typed)
        self._terminal.start_line()


def read_line(terminal: Terminal, before: str, prefill: str = "") -> str:
    """Read a line that is typed after `before`; it begins as `prefill`, if there is a readline.

    Raises:
        EOFError: On Ctrl-D at an empty line.
        KeyboardInterrupt: On Ctrl-C.
    """
    readline = _load_readline()
    if readline is not None:
        readline.set_startup_hook(lambda: readline.insert_text(escape_controls(prefill)))
    try:
        with keys.raised_interrupts():
            return input(before)
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
