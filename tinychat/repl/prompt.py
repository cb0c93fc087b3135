"""The mark before what is typed: it says what the model makes of it, an answer, the rest of a text or a translation.

One line asked for by prompt_toolkit, whose own handler of the interrupt signal fails where the line is just sent.

What was typed at the prompt, kept in a file.

Completion at the prompt: commands, and what may stand behind them.

What is told of runs in the background: how far they have come, and how they ended.

The words at the bottom of the screen: the model and the settings in force.

A line that is typed while something else is on screen.

The prompt: one line or several, with completion, history and the toolbar under it.
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
from tinychat.repl.keys import counted_interrupts, is_printable, prompt_bindings, unblock, use_keys, wants_vi
from tinychat.repl.render.terminal import SEPARATOR, Terminal, fit
from tinychat.repl.ruler import Ruler
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.textutil import duration, escape_controls

MARKS = {"chat": "›", "completion": "¶", "translation": "→"}
PLAIN_MARKS = {"chat": ">", "completion": "text>", "translation": "translate>"}
"""in lines of text alone, which may be read aloud"""


def mark(session: Session, *, plain: bool = False) -> str:
    """The mark of the model at hand, and a space."""
    marks = PLAIN_MARKS if plain else MARKS
    return f"{marks[session.info.mode if session.info else 'chat']} "


# ---- from tinychat.repl.prompt ----


def ask(
    prompt: PromptSession[str],
    message: AnyFormattedText = None,
    *,
    text: str = "",
    begin: Callable[[], None] = lambda: None,
) -> str:
    """What was typed.

    Args:
        text: that stands there already.
        begin: called when it begins to ask.

    Raises:
        EOFError: Ctrl-D on an empty line.
        KeyboardInterrupt: Ctrl-C, or the signal, at any moment.
    """

    def begin_unless_interrupted() -> None:
        if interrupts.count:
            _end()
        begin()

    with counted_interrupts(_end) as interrupts:
        line = prompt.prompt(message, default=text, pre_run=begin_unless_interrupted, handle_sigint=False)
    if interrupts.count:
        raise KeyboardInterrupt
    return line


def _end() -> None:
    """Ends the prompt that is on screen."""
    app = get_app_or_none()
    if app is not None and app.loop is not None:
        with suppress(RuntimeError):  # it has ended by itself
            app.loop.call_soon_threadsafe(_interrupt, app)


def _interrupt(app: Application[str]) -> None:
    if app.is_running and not app.is_done:
        app.exit(exception=KeyboardInterrupt)


# ---- from tinychat.repl.prompt ----


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


# ---- from tinychat.repl.prompt ----


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


# ---- from tinychat.repl.prompt ----


def training(run: BackgroundRun) -> str:
    """`shakespeare trains: step 1,480/4,000 · loss 1.71 · 1:02 left`."""
    now = run.stepped
    if now is None:
        return f"{run.run.name} is starting"
    return (
        f"{run.run.name} trains: step {now.step:,}/{now.steps:,} · loss {now.loss:.2f} · {duration(now.remaining)} left"
    )


def tell_ended(runs: Sequence[BackgroundRun], session: Session, terminal: Terminal) -> None:
    """How runs have ended, and how to talk to what they made."""
    for one in runs:
        if isinstance(one.last, Failed):
            terminal.problem(f"{one.run.name}: {one.last.problem}", one.last.remedy)
        elif one.last is not None:
            now = session.info is not None and str(session.info.folder) == one.last.folder
            talk = "it answers now" if now else f"/model {one.run.name} talks to it"
            step, loss = one.last.step, one.last.loss
            terminal.line(f"{one.run.name} is {one.last.reason}: step {step:,}, loss {loss:.3f} · {talk}")


# ---- from tinychat.repl.prompt ----


GAP = 2
"""cells, at least, between the words at the left and those at the right"""


def toolbar(session: Session) -> str:
    """`smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`."""
    current = session.settings.current
    words = [session.info.name if session.info else "no model", *describe_sampling(current)]
    for name, setting in SETTINGS.items():
        if name not in SAMPLING and setting.toolbar:
            words += filter(None, [setting.toolbar(getattr(current, name))])
    return " │ ".join([*(training(run) for run in session.runs.all[-1:]), SEPARATOR.join(words)])


def beside(words: str, aside: str, width: int) -> str:
    """Words at the left and others at the right, in so many cells; of those at the left, the last give way."""
    kept = words.split(SEPARATOR)
    while kept and get_cwidth(SEPARATOR.join(kept)) + get_cwidth(aside) + GAP > width:
        kept.pop()
    left = SEPARATOR.join(kept)
    return left + " " * max(0, width - get_cwidth(left) - get_cwidth(aside)) + aside


# ---- from tinychat.repl.prompt ----


CURSOR = "▏"
NEW_LINE = "↵"


class LineEditor:
    """Takes keys; Ctrl-J is a new line, ↑ brings an earlier text back."""

    def __init__(self, earlier: str = "") -> None:
        self._buffer = Buffer()
        self._earlier = earlier

    @property
    def text(self) -> str:
        """What has been typed."""
        return self._buffer.text

    def press(self, key: KeyPress) -> None:
        """Types, deletes or moves the cursor; any other key does nothing."""
        buffer, document = self._buffer, self._buffer.document
        match key.key:
            case Keys.Up:
                buffer.text = self._earlier
                buffer.cursor_position = len(self._earlier)
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
                buffer.insert_text(key.data.replace("\r\n", "\n").replace("\r", "\n"))
            case _ if is_printable(key):
                buffer.insert_text(key.data)

    def view(self, width: int) -> str:
        """The text with its cursor, in so many cells, moved so that the cursor is seen."""
        document = self._buffer.document
        before, after = (
            escape_controls(part.replace("\n", NEW_LINE).replace("\t", " "))
            for part in (document.text_before_cursor, document.text_after_cursor)
        )
        while before and get_cwidth(before + CURSOR + after[:1]) > width:
            before = before[1:]
        line = before + CURSOR + after
        while get_cwidth(line) > width:
            line = line[:-1]
        return line


# ---- from tinychat.repl.prompt ----


CONTINUATION = "… "
MENU_HEIGHT = 6
LOOK = 1.0
"""seconds between two looks at the runs in the background"""

COLOURS = {
    "mark": "bold ansicyan",
    "continuation": "dim",
    "lacking": "underline ansired",
    "bottom-toolbar": "noreverse dim",
    "auto-suggestion": "dim",
}
STYLES = {"dark": Style.from_dict(COLOURS), "light": Style.from_dict(COLOURS | {"mark": "bold #008787"})}
PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


class Prompt:
    """Asks for what comes next; torch is imported once it is on screen, behind it.

    While a run trains in the background, each second a look is taken at it, and its end told above the prompt.
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
        use_keys(self._prompt.app, vi=wants_vi(ui_options.keys))
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
        self._ruler.begin()
        return unblock(ask(self._prompt, text=text, begin=self._begin_to_look))

    def _begin_to_look(self) -> None:
        if self._session.runs.all:
            self._prompt.app.create_background_task(self._look())

    async def _look(self) -> None:
        """Keeps the toolbar up to date, and tells of runs that end."""
        while self._session.runs.all:
            if ended := self._session.runs.take_ended():
                await run_in_terminal(partial(tell_ended, ended, self._session, self._terminal))
            self._prompt.app.invalidate()
            await asyncio.sleep(LOOK)

    def _after_render(self, _: object) -> None:
        self._prompt.app.after_render -= self._after_render
        self._session.model.preload()

    def _toolbar(self) -> FormattedText:
        """The settings; at the right the keys, where they are vi's, and the ruler, while something is typed."""
        app = self._prompt.app
        aside = [f"vi {app.vi_state.input_mode.value[3:]}"] if app.editing_mode is EditingMode.VI else []
        if (measure := self._ruler.look(self._prompt.default_buffer.text)) is not None:
            aside.append(measure.words)
        width = app.output.get_size().columns
        words = f" {toolbar(self._session)}"
        if aside:
            words = beside(words, SEPARATOR.join(aside), width - 1)
        return FormattedText([("", fit(words, width))])
