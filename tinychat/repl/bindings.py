"""The keys of the prompt, beside those of vi or emacs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from tinychat.repl.blocks import is_open_block


def prompt_bindings() -> KeyBindings:
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


def wants_vi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the person has set vi keys for all programs that read lines, in `~/.inputrc`."""
    path = Path(environment.get("INPUTRC") or "~/.inputrc")
    try:
        return bool(re.search(r"(?m)^\s*set\s+editing-mode\s+vi\b", path.expanduser().read_text(errors="replace")))
    except (OSError, RuntimeError):
        return False
