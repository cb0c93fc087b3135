"""One line asked for by prompt_toolkit, whose own handler of the interrupt signal fails where the line is just sent."""

from collections.abc import Callable
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app_or_none
from prompt_toolkit.formatted_text import AnyFormattedText

from tinychat.repl.interrupts import counted_interrupts


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
