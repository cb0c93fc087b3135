"""The REPL's loop: prompt, run a command or show an answer, repeat."""

import os
import signal
import sys
import traceback
from contextlib import nullcontext
from functools import partial

from tinychat import __version__
from tinychat.commands import COMMANDS
from tinychat.commands.registry import is_command, prompt_of
from tinychat.commands.results import (
    Answer,
    EditPrompt,
    Export,
    GuessingGame,
    ParallelAnswers,
    Plot,
    Quit,
    Result,
    TokenBrowser,
    WatchRun,
)
from tinychat.commands.training import finish_training
from tinychat.errors import TinychatError, describe_os_error
from tinychat.generate.loading import device_of
from tinychat.repl.answer_view import AnswerView
from tinychat.repl.keys import Keyboard, counted_interrupts, raised_interrupts
from tinychat.repl.plain import PlainPrompt
from tinychat.repl.prompt import Prompt, describe_run
from tinychat.repl.render.terminal import DIM, Terminal
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave
from tinychat.store import paths
from tinychat.store.runs import list_runs

FIRST_HINT = "try: hello there · /model · /train my-novel.txt --minutes 5"
BARE_WORDS = ("exit", "quit", "bye", "help")
"""Words often typed as commands: they are answered as prompts, with a hint."""


def run(session: Session, *, debug: bool = False) -> int:
    """Open the REPL on a session whose model is open; return the exit code."""
    # SIGTERM exits by an exception, so that the terminal is restored.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        Repl(session, debug=debug).run()
    finally:
        ready = session.is_ready
        session.close()
    if not ready:
        # A thread is importing torch: if the interpreter were finalized now, the process could abort.
        sys.stdout.flush()
        os._exit(0)
    return 0


def greet(terminal: Terminal, session: Session, *, first: bool) -> None:
    """Write `tinychat 0.1 · smalltalk (wordpiece, 3.4M, chat) · cpu · /help`, and a line for each run that trains.

    Args:
        terminal: where to write.
        session: the session that begins.
        first: also write a hint on what to try.
    """
    version = ".".join(__version__.split(".")[:2])
    model = session.info.summary if session.info else "no model yet"
    terminal.line(f"tinychat {version} · {model} · {device_of(session.settings.current, session.info)} · /help")
    if first:
        terminal.line(FIRST_HINT, DIM)
    for run in list_runs():
        if run.is_running():
            session.runs.all.insert(0, BackgroundRun(run))
            session.runs.all[0].poll()
            terminal.line(f"{describe_run(session.runs.all[0])} · /attach, /model {run.name}", DIM)


class Repl:
    """A session at a terminal."""

    def __init__(self, session: Session, *, debug: bool) -> None:
        ui_options, history = session.ui_options.current, paths.history_file()
        self._session, self._debug = session, debug
        self._terminal, self._keyboard = Terminal.standard(plain=ui_options.plain, theme=ui_options.theme), Keyboard()
        self._autosave = None if ui_options.private else Autosave(session)
        self._prefill = ""  # initial text of the next prompt
        self._done = False
        greet(self._terminal, session, first=not history.exists())
        self._prompt: Prompt | PlainPrompt
        if self._terminal.dumb:
            session.model.preload()
            self._prompt = PlainPrompt(session, self._terminal, self._keyboard, history)
        else:
            self._prompt = Prompt(session, self._terminal, history)

    def run(self) -> None:
        """Run until the user leaves. An error is reported in a line or two and never ends the session."""
        # In plain mode the terminal itself echoes what is typed.
        with nullcontext() if self._terminal.dumb else self._keyboard.no_echo(), counted_interrupts():
            while not self._done:
                try:
                    prefill, self._prefill = self._prefill, ""
                    line = self._prompt.ask(prefill)
                    with raised_interrupts():
                        self._handle(line)
                except EOFError:
                    self._done = True
                except KeyboardInterrupt:
                    self._terminal.line("Ctrl-D or /quit leaves", DIM)
                except TinychatError as error:
                    self._report(error.problem, error.remedy)
                except OSError as error:  # such as a file name that is too long
                    self._report(describe_os_error(error), "")
                except Exception as error:
                    self._report(f"unexpected {type(error).__name__}: {error}", "`tinychat --debug` shows where")
            for run in self._session.runs.all:
                self._terminal.line(f"{run.run.name} trains on; tinychat finds it again", DIM)
            if self._autosave is not None and self._autosave.path is not None:
                self._terminal.line(f"kept: /open {self._autosave.path.stem}", DIM)

    def _handle(self, line: str) -> None:
        """Run a command, or answer a prompt; ignore a blank line."""
        if not line.strip():
            return
        self._session.runs.open_followed()
        if is_command(line):
            self._show(COMMANDS.dispatch(self._session, line))
            return
        self._show(Answer(partial(self._session.answer, prompt_of(line))))
        if line.strip().lower() in BARE_WORDS:
            self._terminal.line(f"that was a prompt: the command is /{line.strip().lower()}", DIM)

    def _show(self, result: Result) -> None:
        match result:
            case Quit():
                self._done = True
            case EditPrompt():
                self._prefill = result.text
            case Answer():
                AnswerView(result, self._session, self._terminal, self._keyboard).play()
                self._save()
            case Export():
                from tinychat.repl.render.export import export

                export(self._session, self._terminal, result.path)
                self._terminal.line(f"written: {result.path}")
            case Plot():
                from tinychat.repl.training_view import draw_curves, write_picture

                if result.out is None:
                    draw_curves(self._terminal, result)
                else:
                    write_picture(result, result.out)
                    self._terminal.line(f"written: {result.out}")
            case GuessingGame():
                from tinychat.repl.game import play

                play(result, self._session, self._terminal)
            case ParallelAnswers():
                from tinychat.repl.comparison_view import ComparisonView

                ComparisonView(result, self._session, self._terminal, self._keyboard).play()
            case TokenBrowser():
                from tinychat.repl.answer_view import walk

                if (chosen := walk(result, self._terminal, self._keyboard)) is not None:
                    self._show(chosen)
            case WatchRun():
                from tinychat.repl.training_view import Dashboard

                last = Dashboard(self._terminal, self._keyboard).show(result.run, result.process)
                self._show(finish_training(self._session, result.run, last, result.process))
            case _:
                from tinychat.repl.render.results import draw

                draw(self._terminal, result)

    def _save(self) -> None:
        """Save the conversation; if that fails, report it once and stop saving."""
        if self._autosave is None:
            return
        try:
            self._autosave.save()
        except TinychatError as error:
            self._autosave = None
            remedy = "nothing is kept from now on; `/save FILE` writes it elsewhere"
            raise TinychatError(error.problem, remedy) from None

    def _report(self, problem: str, remedy: str) -> None:
        if self._debug:
            self._terminal.line(traceback.format_exc().rstrip("\n"), DIM)
        self._terminal.problem(problem, remedy)
