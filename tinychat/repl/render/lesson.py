"""Draw the pages of a lesson: text beside a coloured bar, which tells it from what models and commands say."""

import re

from prompt_toolkit.utils import get_cwidth
from rich.console import Group
from rich.text import Text

from tinychat.commands.results import LessonPage
from tinychat.repl.render.terminal import Terminal, fit
from tinychat.session.lesson import CHOICES, Block, LessonLine, Question
from tinychat.textutil import escape_controls

BAR, RULE, RUN_MARK = "┃", "━", "▸"
MAX_WIDTH = 78
"""Cells of a line, bar included: longer lines are hard to read, also on a projector."""
INDENT = "    "
"""Marks before a line to run and before code."""
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<bold>[^*]+)\*\*|(?<![\w*])\*(?P<italic>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
)
_STYLES = {"code": "cyan", "bold": "bold", "italic": "italic"}


def draw_page(terminal: Terminal, page: LessonPage) -> None:
    """Draw a page; on a dumb terminal without bars, rules and styles."""
    drawing = _Drawing(terminal)
    if page.heading is not None:
        drawing.heading(*page.heading)
    if page.verdict:
        drawing.text(Text(escape_controls(page.verdict), "bold green" if page.is_right else "bold yellow"))
    previous = ""
    for block in page.blocks:
        if previous and not previous == block.kind == "bullet":
            drawing.gap()
        drawing.block(block)
        previous = block.kind
    if page.due is not None and previous:
        drawing.gap()
    match page.due:
        case LessonLine(line=line):
            drawing.text(_code(line, terminal), "" if terminal.dumb else f"{INDENT}{RUN_MARK} ")
        case Question() as question:
            drawing.text(inline(question.text, terminal, "bold"), "? ")
            for letter, choice in zip(CHOICES, question.choices, strict=False):
                drawing.text(inline(choice, terminal), f"  {letter}  ")
    drawing.lines += [Text(escape_controls(note), "dim") for note in page.notes]
    terminal.show(Group(*drawing.lines))


def inline(text: str, terminal: Terminal, style: str = "") -> Text:
    """Return a text with its `code`, **bold** and *italic* parts styled; without colours, code keeps its quotes."""
    text, styled, end = escape_controls(text), Text(style=style), 0
    for found in _INLINE.finditer(text):
        styled.append(text[end : found.start()])
        kind = found.lastgroup or ""
        styled.append_text(_code(found[kind], terminal) if kind == "code" else Text(found[kind], _STYLES[kind]))
        end = found.end()
    return styled.append(text[end:])


def _code(code: str, terminal: Terminal) -> Text:
    return Text(escape_controls(code), _STYLES["code"]) if terminal.colour else Text(f"`{escape_controls(code)}`")


class _Drawing:
    """Lines beside a bar; on a dumb terminal without it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._bar = "" if terminal.dumb else f"{BAR} "
        self._width = min(terminal.width - 1, MAX_WIDTH)
        self.lines: list[Text] = []

    def heading(self, title: str, place: str) -> None:
        """Add `━━ Words in pieces ━━━━━━━━━━━━━━ step 2 of 8`."""
        if self._terminal.dumb:
            self.lines.append(Text(escape_controls(f"{title}, {place}")))
            return
        title = fit(title, self._width - len(place) - 6)
        rule = RULE * (self._width - get_cwidth(title) - len(place) - 5)
        self.lines.append(
            Text.assemble((f"{RULE * 2} ", "cyan"), (title, "bold"), (f" {rule} ", "cyan"), (place, "dim"))
        )

    def gap(self) -> None:
        """Add an empty line."""
        self._add("")

    def block(self, block: Block) -> None:
        """Add a paragraph, a bullet or code."""
        match block.kind:
            case "code":
                for line in block.text.splitlines():
                    self._add(INDENT, Text(fit(line, self._room(INDENT))))
            case "bullet":
                mark, _, text = block.text.partition(" ")
                self.text(inline(text, self._terminal), f"{mark if len(mark) > 1 or self._terminal.dumb else '•'} ")
            case "paragraph":
                self.text(inline(block.text, self._terminal))

    def text(self, text: Text, mark: str = "") -> None:
        """Add a text, wrapped at words; its first line stands after a mark, the others under their first word."""
        for line in text.wrap(self._terminal.console(), self._room(mark)):
            line.rstrip()
            self._add(mark, line)
            mark = " " * get_cwidth(mark)

    def _room(self, mark: str) -> int:
        return max(1, self._width - len(self._bar) - get_cwidth(mark))

    def _add(self, mark: str, text: Text | str = "") -> None:
        self.lines.append(Text.assemble((self._bar, "cyan"), (mark, "cyan"), text))
