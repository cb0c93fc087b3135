"""Export the conversation to a file, in the format of its extension.

The text is quoted or escaped, so the file can run nothing when it is opened, and it fetches nothing.
"""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.atomic import atomic_write
from tinychat.commands.registry import refuse_ending
from tinychat.commands.results import MARKS, summary
from tinychat.repl.render.palette import THEMES, rgb
from tinychat.repl.render.plot import replace_not_in_xml
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session
from tinychat.session.transcript import transcript_of
from tinychat.textutil import escape_controls, json_line, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.terminal_theme import TerminalTheme


def export(session: Session, terminal: Terminal, path: Path) -> None:
    """Write the conversation to a file; HTML pages and SVG pictures are as wide as the terminal.

    Raises:
        UsageError: If no format has the extension.
        OSError: If the file cannot be written.
    """
    render = FORMATS.get(path.suffix.lower())
    if render is None:
        raise refuse_ending(path, FORMATS)
    atomic_write(path, render(session, terminal).encode("utf-8", "replace"))


def _markdown(session: Session, terminal: Terminal) -> str:
    """Fence each text, so that no markup in it has an effect and all spaces are preserved."""
    name = re.sub(r"([^\w\s])", r"\\\1", one_line(session.model.name))
    parts = [f"# A conversation with {name}"]
    for turn in session.turns:
        parts += ["**Prompt**", _fence(turn.prompt), "**Answer**", _fence(turn.answer)]
    return "\n\n".join(parts) + "\n"


def _fence(text: str) -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
    return f"{fence}text\n{escape_controls(text)}\n{fence}"


def _plain(session: Session, terminal: Terminal) -> str:
    mark = MARKS[session.mode]
    return "\n".join(escape_controls(f"{mark} {turn.prompt}\n{turn.answer}\n") for turn in session.turns)


def _json(session: Session, terminal: Terminal) -> str:
    return transcript_of(session.model.name, session.settings.current, session.conversation)


def _json_lines(session: Session, terminal: Terminal) -> str:
    """Write a line for each turn, with the field names of `tinychat --jsonl`."""
    turns = [
        {"prompt": turn.prompt, "completion": turn.answer}
        | ({"finish_reason": turn.finished.reason, "seed": turn.finished.seed} if turn.finished else {})
        for turn in session.turns
    ]
    return "".join(json_line(turn) + "\n" for turn in turns)


def _html(session: Session, terminal: Terminal) -> str:
    return _record(session, terminal).export_html(theme=_theme())


def _svg(session: Session, terminal: Terminal) -> str:
    return as_svg(_record(session, terminal), session.model.name)


def as_svg(record: "Console", title: str) -> str:
    """Return the recording of a rich console as an SVG picture that fetches nothing."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    # rich's template fetches a font from the network
    template = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return record.export_svg(title=replace_not_in_xml(title), theme=_theme(), code_format=template)


def _theme() -> "TerminalTheme":
    """Return the colours of the dark theme as rich takes them for a picture."""
    from rich.terminal_theme import TerminalTheme

    dark = THEMES["dark"]
    background, text = rgb(dark.background), rgb(dark.text)
    colours = (dark.red, dark.green, dark.yellow, dark.blue, dark.magenta, dark.cyan)
    return TerminalTheme(background, text, [background, *map(rgb, colours), text])


def _record(session: Session, terminal: Terminal) -> "Console":
    """Record the conversation as it looks on a screen with colours, as wide as this one."""
    from rich.text import Text

    from tinychat.repl.render.console import SafeConsole

    console = SafeConsole(
        record=True, file=io.StringIO(), width=terminal.width, force_terminal=True, color_system="standard",
        no_color=False, highlight=False, markup=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    console.print(Text(escape_controls(session.model.info.summary), "dim"))
    for turn in session.turns:
        console.print(Text.assemble((f"{MARKS[session.mode]} ", "bold cyan"), replace_not_in_xml(turn.prompt)))
        console.print(Text(replace_not_in_xml(turn.answer).removesuffix("\n")))
        if turn.finished is not None and turn.tokens:
            console.print(Text(summary(turn.finished, session, show_seed=True), "dim"))
    return console


FORMATS: Mapping[str, Callable[[Session, Terminal], str]] = {
    ".md": _markdown, ".txt": _plain, ".json": _json, ".jsonl": _json_lines, ".html": _html, ".svg": _svg,
}  # fmt: skip
"""Functions that render the conversation, by file extension."""
