"""The REPL: asks, runs a command or shows an answer, and asks again."""

import os
import signal
import sys
import traceback
from contextlib import nullcontext
from functools import partial

from tinychat import __version__
from tinychat.commands import COMMANDS
from tinychat.commands.registry import is_command, prompt_of
from tinychat.commands.results import Answer, Answers, EditPrompt, Export, Leave, Play, Plot, Result, Walk, Watch
from tinychat.commands.training import finish_training
from tinychat.errors import TinychatError, failure
from tinychat.generate.loading import device_of
from tinychat.repl.answer_view import Player
from tinychat.repl.keys import Keyboard, counted_interrupts, raised_interrupts
from tinychat.repl.plain import PlainPrompt
from tinychat.repl.prompt import Prompt, training
from tinychat.repl.render.terminal import DIM, Terminal
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave
from tinychat.store import paths
from tinychat.store.runs import list_runs

FIRST_HINT = "try: hello there · /model · /train my-novel.txt --minutes 5"
BARE_WORDS = ("exit", "quit", "bye", "help")
"""words that people type for commands; they are prompts here, with a hint"""


def run(session: Session, *, debug: bool = False) -> int:
    """Opens the REPL on a session whose model has been chosen; returns the exit code."""
    # Being told to end, the process leaves the terminal as it found it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        Repl(session, debug=debug).run()
    finally:
        ready = session.is_ready
        session.close()
    if not ready:
        # A thread is importing torch: if Python were taken apart under it, the process could abort.
        sys.stdout.flush()
        os._exit(0)
    return 0


def greet(terminal: Terminal, session: Session, *, first: bool) -> None:
    """`tinychat 0.1 · smalltalk (wordpiece, 3.4M, chat) · cpu · /help`; the first time also what to try."""
    version = ".".join(__version__.split(".")[:2])
    model = session.info.summary if session.info else "no model yet"
    terminal.line(f"tinychat {version} · {model} · {device_of(session.settings.current, session.info)} · /help")
    if first:
        terminal.line(FIRST_HINT, DIM)
    for run in list_runs():
        if run.is_running():
            session.runs.all.insert(0, BackgroundRun(run))
            session.runs.all[0].poll()
            terminal.line(f"{training(session.runs.all[0])} · /attach, /model {run.name}", DIM)


class Repl:
    """One session at a terminal."""

    def __init__(self, session: Session, *, debug: bool) -> None:
        ui_options, history = session.ui_options.current, paths.history_file()
        self._session, self._debug = session, debug
        self._terminal, self._keyboard = Terminal.standard(plain=ui_options.plain, theme=ui_options.theme), Keyboard()
        self._autosave = None if ui_options.private else Autosave(session)
        self._begun = ""  # what stands in the prompt already
        self._left = False
        greet(self._terminal, session, first=not history.exists())
        self._prompt: Prompt | PlainPrompt
        if self._terminal.dumb:
            session.model.preload()
            self._prompt = PlainPrompt(session, self._terminal, self._keyboard, history)
        else:
            self._prompt = Prompt(session, self._terminal, history)

    def run(self) -> None:
        """Goes on until the person leaves. Whatever goes wrong costs one line, never the session."""
        # Plain lines are echoed by the system, as are those of any program.
        with nullcontext() if self._terminal.dumb else self._keyboard.quiet(), counted_interrupts():
            while not self._left:
                try:
                    begun, self._begun = self._begun, ""
                    line = self._prompt.ask(begun)
                    with raised_interrupts():
                        self._act(line)
                except EOFError:
                    self._left = True
                except KeyboardInterrupt:
                    self._terminal.line("Ctrl-D or /quit leaves", DIM)
                except TinychatError as error:
                    self._report(error.problem, error.remedy)
                except OSError as error:  # of a file that somebody named: too long a name, say
                    self._report(failure(error), "")
                except Exception as error:
                    self._report(f"unexpected {type(error).__name__}: {error}", "`tinychat --debug` shows where")
            for one in self._session.runs.all:
                self._terminal.line(f"{one.run.name} trains on; tinychat finds it again", DIM)
            if self._autosave is not None and self._autosave.path is not None:
                self._terminal.line(f"kept: /open {self._autosave.path.stem}", DIM)

    def _act(self, line: str) -> None:
        """Does what a line says; a blank one says nothing."""
        if not line.strip():
            return
        self._session.runs.keep_up()
        if is_command(line):
            self._take(COMMANDS.dispatch(self._session, line))
            return
        self._take(Answer(partial(self._session.answer, prompt_of(line))))
        if line.strip().lower() in BARE_WORDS:
            self._terminal.line(f"that was a prompt: the command is /{line.strip().lower()}", DIM)

    def _take(self, result: Result) -> None:
        match result:
            case Leave():
                self._left = True
            case EditPrompt():
                self._begun = result.text
            case Answer():
                Player(result, self._session, self._terminal, self._keyboard).play()
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
            case Play():
                from tinychat.repl.game import play

                play(result, self._session, self._terminal)
            case Answers():
                from tinychat.repl.comparison_view import AnswersPlayer

                AnswersPlayer(result, self._session, self._terminal, self._keyboard).play()
            case Walk():
                from tinychat.repl.answer_view import walk

                if (chosen := walk(result, self._terminal, self._keyboard)) is not None:
                    self._take(chosen)
            case Watch():
                from tinychat.repl.training_view import Dashboard

                last = Dashboard(self._terminal, self._keyboard).show(result.run, result.process)
                self._take(finish_training(self._session, result.run, last, result.process))
            case _:
                from tinychat.repl.render.results import draw

                draw(self._terminal, result)

    def _save(self) -> None:
        """Keeps the conversation; where that fails it is said once, and given up."""
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
