"""The conversation as a file to read or to show; what it is follows from the file's ending.

Nothing in it acts when it is opened: what was said is quoted or escaped, and nothing is fetched.
"""

import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.atomic import atomic_write
from tinychat.commands.results import summary
from tinychat.errors import UsageError
from tinychat.repl.render.picture import replace_not_in_xml
from tinychat.repl.render.terminal import Terminal
from tinychat.session.session import Session
from tinychat.session.transcript import transcript_of
from tinychat.textutil import escape_controls

if TYPE_CHECKING:
    from rich.console import Console

FENCE = re.compile("`{3,}")


def export(session: Session, terminal: Terminal, path: Path) -> None:
    """Writes the conversation.

    Raises:
        UsageError: the ending stands for no form.
        OSError: it cannot be written there.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"{path} has no ending that says what to write", "one of " + " ".join(FORMS))
    atomic_write(path, form(session, terminal).encode("utf-8", "replace"))


def _markdown(session: Session, terminal: Terminal) -> str:
    """Each text in a fence, where nothing is markup, and every space counts."""
    parts = [f"# A conversation with {_quote(session.model.name)}"]
    for turn in session.turns:
        parts += ["**Prompt**", _fence(turn.prompt), "**Answer**", _fence(turn.answer)]
    return "\n\n".join(parts) + "\n"


def _fence(text: str) -> str:
    marks = "`" * max([3, *(len(run) + 1 for run in FENCE.findall(text))])
    return f"{marks}text\n{escape_controls(text)}\n{marks}"


def _quote(name: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", name)


def _plain(session: Session, terminal: Terminal) -> str:
    return "\n".join(escape_controls(f"› {turn.prompt}\n{turn.answer}\n") for turn in session.turns)


def _json(session: Session, terminal: Terminal) -> str:
    return transcript_of(session.model.name, session.settings.current, session.conversation)


def _json_lines(session: Session, terminal: Terminal) -> str:
    """By the names that `tinychat --jsonl` writes."""
    turns = [
        {"prompt": turn.prompt, "completion": turn.answer}
        | ({"finish_reason": turn.finished.reason, "seed": turn.finished.seed} if turn.finished else {})
        for turn in session.turns
    ]
    return "".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in turns)


def _html(session: Session, terminal: Terminal) -> str:
    from rich.terminal_theme import MONOKAI

    return _record(session, terminal).export_html(theme=MONOKAI)


def _svg(session: Session, terminal: Terminal) -> str:
    return as_svg(_record(session, terminal), session.model.name)


def as_svg(record: "Console", title: str) -> str:
    """What a console has recorded as a picture that fetches nothing."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.terminal_theme import MONOKAI

    # rich's own form fetches a font from the network
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return record.export_svg(title=title, theme=MONOKAI, code_format=form)


def _record(session: Session, terminal: Terminal) -> "Console":
    """The conversation as it looks on a screen with colours, as wide as this one."""
    from rich.console import Console
    from rich.text import Text

    console = Console(
        record=True, file=io.StringIO(), width=terminal.width, force_terminal=True, color_system="standard",
        no_color=False, highlight=False, markup=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    console.print(Text(escape_controls(session.model.info.summary), "dim"))
    for turn in session.turns:
        console.print(Text.assemble(("› ", "bold cyan"), replace_not_in_xml(turn.prompt)))
        console.print(Text(replace_not_in_xml(turn.answer).removesuffix("\n")))
        if turn.finished is not None and turn.tokens:
            console.print(Text(summary(turn.finished, session, show_seed=True), "dim"))
    return console


FORMS: Mapping[str, Callable[[Session, Terminal], str]] = {
    ".md": _markdown,
    ".txt": _plain,
    ".json": _json,
    ".jsonl": _json_lines,
    ".html": _html,
    ".svg": _svg,
}
"""By the file's ending."""
