"""The prompt at a terminal: multi-line input with history, completion, a toolbar and the token ruler.

`Prompt` is built on prompt_toolkit; the plain prompt (`repl/plain.py`) shares its marks, history and completion.
`LineEditor` edits a single line while something else, such as a training run, is on screen.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app_or_none, run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import AnyFormattedText, FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from tinychat.commands import COMMANDS
from tinychat.commands.registry import Suggestion, is_command
from tinychat.config.settings import SAMPLING, SETTINGS, describe_sampling
from tinychat.events import Failed
from tinychat.repl.keys import (
    counted_interrupts,
    is_printable,
    normalize_newlines,
    prompt_bindings,
    set_editing_mode,
    strip_block,
    wants_vi,
)
from tinychat.repl.render.terminal import SEPARATOR, Terminal, fit
from tinychat.repl.ruler import Ruler
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.textutil import duration, escape_controls

MARKS = {"chat": "›", "completion": "¶", "translation": "→"}
"""The prompt mark of each mode."""
PLAIN_MARKS = {"chat": ">", "completion": "text>", "translation": "translate>"}
"""The marks of plain mode: ASCII, as a screen reader may speak them."""
CONTINUATION = "… "
CURSOR = "▏"
NEW_LINE = "↵"
MENU_HEIGHT = 6
POLL_INTERVAL = 1.0
"""Seconds between two polls of the background runs."""
TOOLBAR_GAP = 2
"""Minimum number of cells between the left and the right part of the toolbar."""

COLOURS = {
    "mark": "bold ansicyan",
    "continuation": "dim",
    "unknown": "underline ansired",
    "bottom-toolbar": "noreverse dim",
    "auto-suggestion": "dim",
}
STYLES = {"dark": Style.from_dict(COLOURS), "light": Style.from_dict(COLOURS | {"mark": "bold #008787"})}
PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


def mark(session: Session, *, plain: bool = False) -> str:
    """Return the prompt mark of the open model's mode, followed by a space."""
    marks = PLAIN_MARKS if plain else MARKS
    return f"{marks[session.info.mode if session.info else 'chat']} "


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
            completer=CommandCompleter(session),
            complete_while_typing=Condition(lambda: is_command(self._prompt.default_buffer.text)),
            reserve_space_for_menu=MENU_HEIGHT,
            history=QuietHistory(history, private=ui_options.private),
            auto_suggest=AutoSuggestFromHistory(),
            enable_suspend=True,
            key_bindings=prompt_bindings(session, terminal),
            bottom_toolbar=self._toolbar,
            style=STYLES[ui_options.theme] if terminal.colour else PLAIN,
            color_depth=None if terminal.colour else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )
        set_editing_mode(self._prompt.app, vi=wants_vi(ui_options.keys))
        # A terminal that cannot report its cursor position gets no toolbar; prompt_toolkit's warning is not needed.
        self._prompt.app.renderer.cpr_not_supported_callback = None
        self._prompt.app.after_render += self._after_render

    def ask(self, text: str = "") -> str:
        '''Return the text that the user enters, without the marks of a `"""` block.

        Args:
            text: initial content of the input.

        Raises:
            EOFError: On Ctrl-D at an empty prompt.
            KeyboardInterrupt: On Ctrl-C at an empty prompt; otherwise Ctrl-C clears it.
        '''
        self._ruler.reset()
        return strip_block(ask(self._prompt, text=text, on_start=self._start_polling))

    def _start_polling(self) -> None:
        if self._session.runs.all:
            self._prompt.app.create_background_task(self._poll_runs())

    async def _poll_runs(self) -> None:
        """Refresh the toolbar and report runs that end."""
        while self._session.runs.all:
            if ended := self._session.runs.pop_ended():
                await run_in_terminal(partial(report_ended, ended, self._session, self._terminal))
            self._prompt.app.invalidate()
            await asyncio.sleep(POLL_INTERVAL)

    def _after_render(self, _: object) -> None:
        self._prompt.app.after_render -= self._after_render
        self._session.model.preload()

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
        return FormattedText([("", fit(line, width))])


def ask(
    prompt: PromptSession[str],
    message: AnyFormattedText = None,
    *,
    text: str = "",
    on_start: Callable[[], None] = lambda: None,
) -> str:
    """Run a prompt and return the text that the user enters.

    SIGINT is handled here because prompt_toolkit's own handler fails if the signal arrives just as a line is sent.

    Args:
        prompt: the prompt to run.
        message: what to show before the input; by default, the prompt's own message.
        text: initial content of the input.
        on_start: called once the prompt is running.

    Raises:
        EOFError: On Ctrl-D at an empty prompt.
        KeyboardInterrupt: On Ctrl-C or SIGINT at any moment.
    """

    def start() -> None:
        if interrupts.count:
            _interrupt_prompt()
        on_start()

    with counted_interrupts(_interrupt_prompt) as interrupts:
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


# Toolbar and background runs


def toolbar(session: Session) -> str:
    """Return `smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`, after the newest background run."""
    current = session.settings.current
    words = [session.info.name if session.info else "no model", *describe_sampling(current)]
    for name, setting in SETTINGS.items():
        if name not in SAMPLING and setting.toolbar:
            words += filter(None, [setting.toolbar(getattr(current, name))])
    return " │ ".join([*(describe_run(run) for run in session.runs.all[-1:]), SEPARATOR.join(words)])


def justify(left: str, right: str, width: int) -> str:
    """Return a line of `width` cells with text on both sides, dropping the last parts of `left` that do not fit."""
    parts = left.split(SEPARATOR)
    while parts and get_cwidth(SEPARATOR.join(parts)) + get_cwidth(right) + TOOLBAR_GAP > width:
        parts.pop()
    left = SEPARATOR.join(parts)
    return left + " " * max(0, width - get_cwidth(left) - get_cwidth(right)) + right


def describe_run(run: BackgroundRun) -> str:
    """Return `shakespeare trains: step 1,480/4,000 · loss 1.71 · 1:02 left`."""
    now = run.stepped
    if now is None:
        return f"{run.run.name} is starting"
    return (
        f"{run.run.name} trains: step {now.step:,}/{now.steps:,} · loss {now.loss:.2f} · {duration(now.remaining)} left"
    )


def report_ended(runs: Sequence[BackgroundRun], session: Session, terminal: Terminal) -> None:
    """Write how runs ended and how to talk to their models."""
    for run in runs:
        if isinstance(run.last, Failed):
            terminal.problem(f"{run.run.name}: {run.last.problem}", run.last.remedy)
        elif run.last is not None:
            is_open = session.info is not None and str(session.info.folder) == run.last.folder
            hint = "it answers now" if is_open else f"/model {run.run.name} talks to it"
            step, loss = run.last.step, run.last.loss
            terminal.line(f"{run.run.name} is {run.last.reason}: step {step:,}, loss {loss:.3f} · {hint}")


# History


class QuietHistory(FileHistory):
    """A history file that never raises.

    If the file cannot be written, or the session is private, new lines last only as long as the session.
    """

    def __init__(self, path: Path, *, private: bool = False) -> None:
        super().__init__(str(path))
        self._private = private

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, newest first; none if it cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Append a line to the file."""
        if self._private:
            return
        try:
            Path(os.fsdecode(self.filename)).parent.mkdir(parents=True, exist_ok=True)
            super().store_string(string)
        except (OSError, UnicodeError):
            return


# Completion


WORD = re.compile(r"""(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote)).)*)(?P<end>(?P=quote)?)|(?:\\\s|\S)+""")
"""A word in quotation marks, of which the closing one may be missing, or a word whose spaces are escaped."""
ESCAPED_SPACE = re.compile(r"\\(\s)")


class CommandCompleter(Completer):
    """Completes slash commands and their arguments."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions of the word before the cursor."""
        typed, completions = complete(self._session, document.text_before_cursor)
        for text, suggestion in completions:
            yield Completion(text, start_position=-len(typed), display=suggestion.text, display_meta=suggestion.about)


def complete(session: Session, line: str) -> tuple[str, list[tuple[str, Suggestion]]]:
    """Return the last word of a line as it was typed, and its completions.

    Each completion is the text that replaces the word, and the suggestion that it comes from. Spaces are written in the
    style that the word was begun in: quoted, or each with a backslash.
    """
    if not is_command(line) or "\n" in line:
        return "", []
    words, typed, quote = parse_line(line)
    prefix = words[-1].lower()
    return typed, [
        (_quoted(suggestion.text, quote), suggestion)
        for suggestion in suggest(session, words)
        if suggestion.text.lower().startswith(prefix)
    ]


def parse_line(line: str) -> tuple[list[str], str, str]:
    """Split a line into words; return them, the last word as it was typed, and its open quotation mark.

    The last word is empty if the line ends with a space.
    """
    words, typed, quote, end = [], "", "", 0
    for found in WORD.finditer(line):
        typed, quote, end = found[0], found["quote"] or "", found.end()
        words.append(found["quoted"] if quote else ESCAPED_SPACE.sub(r"\1", typed))
        if found["end"]:
            quote = ""
    if end < len(line):
        return [*words, ""], "", ""
    return words, typed, quote


def suggest(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Yield all values of the last word of a command, whatever has been typed of it."""
    if len(words) == 1:
        yield from (Suggestion(f"/{command.name}", command.summary) for command in COMMANDS.values())
    elif command := COMMANDS.command_of(words[0]):
        yield from command.complete(session, words[1:])


def _quoted(text: str, quote: str) -> str:
    """Return a text as it is typed at the prompt; the quotation mark of a folder stays open, since a path may go on."""
    if not quote and ("'" in text or '"' in text):
        quote = "'" if '"' in text else '"'
    if quote:
        return quote + text + ("" if text.endswith("/") else quote)
    return text.replace(" ", r"\ ")


# The line editor


class LineEditor:
    """A line that is edited key by key. Ctrl-J inserts a new line; ↑ recalls the previous text."""

    def __init__(self, previous: str = "") -> None:
        self._buffer = Buffer()
        self._previous = previous

    @property
    def text(self) -> str:
        """The text typed so far."""
        return self._buffer.text

    def press(self, key: KeyPress) -> None:
        """Apply a key that types, deletes or moves the cursor; ignore any other."""
        buffer, document = self._buffer, self._buffer.document
        match key.key:
            case Keys.Up:
                buffer.text = self._previous
                buffer.cursor_position = len(self._previous)
            case Keys.Left | Keys.ControlB:
                buffer.cursor_position = max(0, buffer.cursor_position - 1)
            case Keys.Right | Keys.ControlF:
                buffer.cursor_position = min(len(buffer.text), buffer.cursor_position + 1)
            case Keys.Home | Keys.ControlA:
                buffer.cursor_position = 0
            case Keys.End | Keys.ControlE:
                buffer.cursor_position = len(buffer.text)
            case Keys.Backspace:
                buffer.delete_before_cursor()
            case Keys.Delete | Keys.ControlD:
                buffer.delete()
            case Keys.ControlU:
                buffer.delete_before_cursor(buffer.cursor_position)
            case Keys.ControlK:
                buffer.delete(len(buffer.text) - buffer.cursor_position)
            case Keys.ControlW:
                buffer.delete_before_cursor(-(document.find_start_of_previous_word() or 0))
            case Keys.ControlJ:
                buffer.insert_text("\n")
            case Keys.BracketedPaste:
                buffer.insert_text(normalize_newlines(key.data))
            case _ if is_printable(key):
                buffer.insert_text(key.data)

    def view(self, width: int) -> str:
        """Return the text and its cursor in at most `width` cells, scrolled so that the cursor is visible."""
        document = self._buffer.document
        before, after = show_on_one_line(document.text_before_cursor), show_on_one_line(document.text_after_cursor)
        while before and get_cwidth(before + CURSOR + after[:1]) > width:
            before = before[1:]
        line = before + CURSOR + after
        while get_cwidth(line) > width:
            line = line[:-1]
        return line


def show_on_one_line(text: str) -> str:
    """Return a text with `↵` for new lines and control characters escaped."""
    return escape_controls(text.replace("\n", NEW_LINE).replace("\t", " "))
