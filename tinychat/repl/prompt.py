"""The prompt: one line or several, with completion, history and the toolbar under it."""

import asyncio
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from tinychat.commands.registry import is_command
from tinychat.repl.asking import ask
from tinychat.repl.background import tell_ended
from tinychat.repl.bindings import prompt_bindings, use_keys, wants_vi
from tinychat.repl.blocks import unblock
from tinychat.repl.completion import CommandCompleter
from tinychat.repl.history import QuietHistory
from tinychat.repl.marks import mark
from tinychat.repl.ruler import Ruler
from tinychat.repl.terminal import SEPARATOR, Terminal, fit
from tinychat.repl.toolbar import beside, toolbar
from tinychat.session import Session

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
        face = session.face.current
        self._ruler = Ruler(session, lambda: self._prompt.app.invalidate())
        self._prompt: PromptSession[str] = PromptSession(
            lambda: FormattedText([("class:mark", mark(session))]),
            multiline=True,
            prompt_continuation=FormattedText([("class:continuation", CONTINUATION)]),
            input_processors=[self._ruler],
            completer=CommandCompleter(session),
            complete_while_typing=Condition(lambda: is_command(self._prompt.default_buffer.text)),
            reserve_space_for_menu=MENU_HEIGHT,
            history=QuietHistory(history, private=face.private),
            auto_suggest=AutoSuggestFromHistory(),
            enable_suspend=True,
            key_bindings=prompt_bindings(session, terminal),
            bottom_toolbar=self._toolbar,
            style=STYLES[face.theme] if terminal.colour else PLAIN,
            color_depth=None if terminal.colour else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )
        use_keys(self._prompt.app, vi=wants_vi(face.keys))
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
