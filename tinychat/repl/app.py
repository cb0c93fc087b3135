"""The REPL's loop: prompt, run a command or show an answer, repeat."""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from prompt_toolkit import PromptSession

from tinychat import __version__
from tinychat.commands import COMMANDS, lesson, results
from tinychat.commands.registry import (
    IN_SHELL,
    escape_prompt,
    for_the_prompt,
    is_bare_word,
    is_command,
    is_shell_line,
    prompt_of,
)
from tinychat.commands.training import finish_training
from tinychat.errors import TinychatError, UsageError, describe_os_error
from tinychat.generate.loading import announced_waits, device_of, is_loading
from tinychat.repl.answer_view import AnswerView, walk
from tinychat.repl.game_view import play
from tinychat.repl.keys import (
    INTERRUPT_HINT,
    Keyboard,
    base_bindings,
    counted_interrupts,
    ignored_quits,
    raised_interrupts,
)
from tinychat.repl.prompt import PlainPrompt, Prompt, QuietHistory, ask, mark, read_line
from tinychat.repl.render.palette import ACCENT, BOLD, DIM
from tinychat.repl.render.terminal import SEPARATOR, Terminal, spinner
from tinychat.repl.toolbar import describe_run
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.session.transcript import Autosave
from tinychat.store import paths
from tinychat.store.runs import list_runs
from tinychat.textutil import escape_controls

FIRST_HINT = "try: hello there · /lesson · /model · /train my-novel.txt --minutes 5"
BYE = ("bye", "q")
"""Words that may be meant as commands: they are answered as prompts, with a hint."""
LESSON_ROWS, LEAST_ROWS = 10, 24
"""Rows for the text of a lesson below a drawing, at most, and rows of the screen that the two of them need."""
NOT_FOUND = 127
"""Exit code of a shell that does not find a command."""


def run(session: Session, *, debug: bool = False) -> int:
    """Open the REPL on a session whose model is open; return the exit code."""
    # SIGTERM exits by an exception, so that the terminal is restored.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        Repl(session, debug=debug).run()
    finally:
        session.close()
    if is_loading():
        # A thread may be importing torch: if the interpreter were finalized now, the process could abort.
        sys.stdout.flush()
        os._exit(0)
    return 0


def greet(terminal: Terminal, session: Session, *, first: bool) -> None:
    """Write `tinychat 0.1 · smalltalk (wordpiece, 3.4M, chat) · cpu · /help`, and a line for each run that trains."""
    version = ".".join(__version__.split(".")[:2])
    model = session.info.summary if session.info else "no model yet"
    terminal.fresh_line()
    terminal.flow("tinychat", ACCENT + BOLD)
    terminal.flow(f" {version}{SEPARATOR}", DIM)
    terminal.flow(model)
    terminal.flow(f"{SEPARATOR}{device_of(session.settings.current, session.info)}{SEPARATOR}/help\n", DIM)
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
        self._done = self._has_explained = False
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
                line = ""
                try:
                    prefill, self._prefill = self._prefill, ""
                    line = self._prompt.ask(prefill)
                    with raised_interrupts(), announced_waits(self._announce):
                        self._handle(line)
                except EOFError:
                    self._done = True
                except KeyboardInterrupt:
                    if line:
                        self._terminal.start_line_after_others(ended=False)
                    self._terminal.line("stopped" if line else "Ctrl-D or /quit leaves", DIM)
                except TinychatError as error:
                    self._report(error.problem, error.remedy)
                    if lesson.asks_for(self._session, line.strip() or lesson.line_on_enter(self._session)):
                        self._terminal.line(lesson.WITHOUT, DIM)
                except OSError as error:  # such as a file name that is too long
                    self._report(describe_os_error(error), "")
                except Exception as error:
                    self._report(f"unexpected {type(error).__name__}: {error}", "`tinychat --debug` shows where")
            for run in self._session.runs.all:
                self._terminal.line(f"{run.run.name} trains on; tinychat finds it again", DIM)
            if self._autosave is not None and self._autosave.path is not None:
                self._terminal.line(f"kept: /open {self._autosave.path.stem}", DIM)

    def _handle(self, line: str) -> None:
        """Run a command, or answer a prompt, and go on with the lesson if it waits for that; a blank line is Enter."""
        session = self._session
        if not line.strip() and (line := lesson.line_on_enter(session)):
            self._terminal.line(mark(session, plain=self._terminal.dumb) + line)
        if not line.strip():
            if session.lesson is not None:
                self._show(lesson.go_on(session))
            return
        if lesson.is_answer(session, line):
            self._show(lesson.answer(session, line))
            return
        before = session.lesson
        spare = max(0, self._terminal.size()[1] - LEAST_ROWS)
        self._terminal.rows_below = min(LESSON_ROWS, spare) if before else 0
        self._run(line)
        if session.lesson is before and (page := lesson.follow(session, line)):
            self._show(page)

    def _run(self, line: str) -> None:
        """Run a command, or answer a prompt."""
        self._session.runs.open_followed()
        if is_shell_line(line):
            run_in_shell(line[1:].strip(), self._terminal, self._keyboard)
            return
        if is_command(line):
            before = self._session.conversation.current
            self._show(COMMANDS.dispatch(self._session, line))
            if COMMANDS.command_of(line) is COMMANDS["pick"] and self._session.conversation.current is not before:
                self._save()
            if is_bare_word(line):
                self._explain_bare_word(line.strip())
            return
        self._show(results.StreamAnswer(partial(self._session.answer, prompt_of(line))))
        if command := _meant_command(line.lower().split()):
            self._terminal.line(f"that was a prompt: the command is {command}", DIM)

    def _explain_bare_word(self, word: str) -> None:
        """Say how a bare word reaches the model, when the first one is typed: later ones are meant as commands."""
        typed = QuietHistory(paths.history_file()).load_history_strings()
        if not self._has_explained and sum(map(is_bare_word, typed)) <= 1:
            self._has_explained = True
            self._terminal.line(f"{word} alone is a command · {escape_prompt(word)} sends it to the model", DIM)

    def _announce(self, name: str) -> AbstractContextManager[Callable[[], None]]:
        return spinner(self._terminal, f"{name} is loading{SEPARATOR}{INTERRUPT_HINT}")

    def _show(self, result: results.Result) -> None:
        match result:
            case results.Quit():
                self._done = True
            case results.EditPrompt():
                self._prefill = result.text
            case results.Question():
                yes = confirms(result, self._terminal)
                self._show(result.act() if yes else results.Message(notes=(result.refused,)))
            case results.StreamAnswer():
                AnswerView(result, self._session, self._terminal, self._keyboard).play()
                self._save()
            case results.Export():
                from tinychat.repl.render.export import export

                export(self._session, self._terminal, result.path)
                self._terminal.line(f"written: {result.path}")
            case results.Plot():
                from tinychat.repl.render.plot import draw_curves, write_picture

                if result.out is None:
                    draw_curves(self._terminal, result)
                else:
                    write_picture(result, result.out)
                    self._terminal.line(f"written: {result.out}")
            case results.GuessingGame():
                play(result, self._session, self._terminal)
            case results.ParallelAnswers():
                from tinychat.repl.comparison_view import ComparisonView

                ComparisonView(result, self._session, self._terminal, self._keyboard).play()
            case results.TokenBrowser():
                if (chosen := walk(result, self._terminal, self._keyboard)) is not None:
                    self._show(chosen)
            case results.Steps():
                from tinychat.repl.steps_view import walk_steps

                walk_steps(result.computation, self._terminal, self._keyboard)
            case results.WatchRun():
                from tinychat.repl.training_view import Dashboard

                dashboard = Dashboard(self._terminal, self._keyboard, prompt_mark=mark(self._session))
                last = dashboard.show(result.run, result.process)
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
        self._terminal.problem(problem, for_the_prompt(remedy))


def _meant_command(words: Sequence[str]) -> str:
    """Return the command that the words of a prompt may have been meant as; empty if there is none."""
    match words:
        case [word] if word in BYE:
            return f"/{word}"
        case ["tinychat", word, *more] if word in IN_SHELL:
            return f"/{word}{' …' * bool(more)}"
    return ""


def run_in_shell(command: str, terminal: Terminal, keyboard: Keyboard) -> None:
    """Run a command in the user's shell, to which the terminal belongs meanwhile; Ctrl-C ends only the command.

    Raises:
        UsageError: If no shell can run it.
    """
    if "\0" in command:
        raise UsageError("the command contains a NUL character", "type it anew")
    shell = os.environ.get("SHELL") or "/bin/sh"
    with counted_interrupts(), ignored_quits(), keyboard.handed_over():
        code = subprocess.run([shell, "-c", command], check=False).returncode
    terminal.start_line_after_others(ended=code >= 0)
    if code == NOT_FOUND:
        terminal.line(f"! runs a shell command · {escape_prompt(f'!{command}')} sends it to the model", DIM)
    elif code < 0 and -code != signal.SIGINT:
        names = {one.value: one.name for one in signal.Signals}  # most real-time signals have none
        terminal.line(f"ended by {names.get(-code, f'signal {-code}')}", DIM)
    elif code > 0:
        terminal.line(f"exit code {code}", DIM)
    elif command.split()[0] == "cd":
        terminal.line("a shell of its own has changed its folder: tinychat stays in its own", DIM)


def confirms(question: results.Question, terminal: Terminal) -> bool:
    """Ask a question; return whether the answer is yes."""
    text = escape_controls(question.text) + results.YES_OR_NO
    try:
        if terminal.dumb:
            return question.is_yes(read_line(terminal, text))
        prompt: PromptSession[str] = PromptSession(
            key_bindings=base_bindings(), include_default_pygments_style=False, enable_suspend=True
        )
        prompt.app.renderer.cpr_not_supported_callback = None
        return question.is_yes(ask(prompt, text))
    except (EOFError, KeyboardInterrupt):
        return False
