"""The keys of the prompt, beside those of vi or emacs."""

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import has_focus, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from tinychat.commands import COMMANDS
from tinychat.commands.settings import switch
from tinychat.errors import UsageError
from tinychat.repl.blocks import is_open_block
from tinychat.repl.keyboard import ESCAPE_WAIT
from tinychat.repl.terminal import Terminal
from tinychat.session import Session

EDITORS = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/pico", "/usr/bin/vi", "/usr/bin/emacs")
"""what prompt_toolkit opens where nothing is set, in its order"""

VI_WAIT, EMACS_WAIT = 0.3, 1.0
"""seconds in which the next key may still belong to the one before: Esc Enter, Ctrl-X Ctrl-E"""


def prompt_bindings(session: Session, terminal: Terminal) -> KeyBindings:
    """Enter sends, but in an open block; Alt-Enter and Ctrl-J begin a new line; Ctrl-C clears; Ctrl-X Ctrl-E edits.

    F1 is help, with the command that is being typed; F2 changes between greedy and sampling, F4 between vi and emacs.
    """
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

    @bindings.add("c-x", "c-e", filter=editing)
    @bindings.add("v", filter=editing & vi_navigation_mode)
    def edit(event: KeyPressEvent) -> None:
        try:
            find_editor()
        except UsageError as error:
            run_in_terminal(partial(terminal.problem, error.problem, error.remedy))
            return
        event.current_buffer.open_in_editor()

    @bindings.add("f1")
    def help(event: KeyPressEvent) -> None:
        run_in_terminal(partial(_show_help, session, terminal, event.current_buffer.text))

    @bindings.add("f2")
    def change_sampling(event: KeyPressEvent) -> None:
        switch(session)

    @bindings.add("f4")
    def change_keys(event: KeyPressEvent) -> None:
        use_keys(event.app, vi=event.app.editing_mode is not EditingMode.VI)

    return bindings


def use_keys(app: Application[Any], *, vi: bool) -> None:
    """Edits with the keys of vi, whose Esc acts soon, or with those of emacs, which come one after the other."""
    app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
    app.ttimeoutlen = ESCAPE_WAIT
    app.timeoutlen = VI_WAIT if vi else EMACS_WAIT


def _show_help(session: Session, terminal: Terminal, typed: str) -> None:
    """Help of the command that a line begins with, or of all."""
    from tinychat.repl.draw import draw

    command = COMMANDS.command_of(typed) if len(typed) > 1 else None
    draw(terminal, COMMANDS.dispatch(session, f"/help {command.name if command else ''}"))  # type: ignore[arg-type]


def find_editor(environment: Mapping[str, str] = os.environ) -> str:
    """The command of the person's editor, or of one that the system has.

    Raises:
        UsageError: there is none.
    """
    for variable in ("VISUAL", "EDITOR"):
        if command := environment.get(variable):
            words = command.split()
            if not words or shutil.which(words[0]) is None:
                raise UsageError(f"{variable} is {command!r}, which is no program here", "set it to an editor")
            return command
    for command in EDITORS:
        if Path(command).exists():
            return command
    raise UsageError("there is no editor here", "install one, and name it in EDITOR")


def wants_vi(keys: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether keys are vi's: `vi`, or with `auto` where the person has set so for all programs, in `~/.inputrc`."""
    if keys != "auto":
        return keys == "vi"
    path = Path(environment.get("INPUTRC") or "~/.inputrc")
    try:
        return bool(re.search(r"(?m)^\s*set\s+editing-mode\s+vi\b", path.expanduser().read_text(errors="replace")))
    except (OSError, RuntimeError):
        return False
