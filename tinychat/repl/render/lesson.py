"""Draw the pages of a lesson: text beside a coloured bar, which tells it from what models and commands say."""

import re

from prompt_toolkit.utils import get_cwidth
from rich.text import Text

from tinychat.commands.results import LessonPage
from tinychat.repl.render.palette import ACCENT, BOLD, DIM
from tinychat.repl.render.terminal import Terminal, fit
from tinychat.session.lesson import CHOICES, Block, Question, Run
from tinychat.textutil import escape_controls

BAR, RULE, RUN_MARK = "┃", "━", "▸"
MAX_WIDTH = 78
"""Cells of a line, bar included: longer lines are hard to read, also on a projector."""
INDENT = "    "
"""What stands before a line to run and before code."""
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<bold>[^*]+)\*\*|(?<![\w*])\*(?P<italic>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
)
_STYLES = {"code": "cyan", "bold": "bold", "italic": "italic"}


def draw_page(terminal: Terminal, page: LessonPage) -> None:
    """Draw a page; on a dumb terminal without bars, rules and styles."""
    writer = _Writer(terminal)
    with terminal.batch():
        terminal.fresh_line()
        if page.heading is not None:
            writer.heading(*page.heading)
        if page.verdict:
            writer.text(Text(escape_controls(page.verdict), "bold green" if page.is_right else "bold yellow"))
        previous = ""
        for block in page.blocks:
            if previous and not previous == block.kind == "bullet":
                writer.gap()
            writer.block(block)
            previous = block.kind
        if page.due is not None and previous:
            writer.gap()
        match page.due:
            case Run(line=line):
                writer.text(_code(line, terminal), "" if terminal.dumb else f"{INDENT}{RUN_MARK} ")
            case Question() as question:
                writer.text(inline(question.text, terminal, "bold"), "? ")
                for letter, choice in zip(CHOICES, question.choices, strict=False):
                    writer.text(inline(choice, terminal), f"  {letter}  ")
        for note in page.notes:
            terminal.line(note, DIM)


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


class _Writer:
    """Writes lines beside a bar; on a dumb terminal without it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._bar = "" if terminal.dumb else terminal.styled(f"{BAR} ", ACCENT)
        self._width = min(terminal.width - 1, MAX_WIDTH)

    def heading(self, title: str, place: str) -> None:
        """Write `━━ Words in pieces ━━━━━━━━━━━━━━ step 2 of 8`."""
        terminal = self._terminal
        if terminal.dumb:
            terminal.line(f"{title}, {place}")
            return
        title = fit(title, self._width - len(place) - 6)
        terminal.write(f"{RULE * 2} ", ACCENT)
        terminal.write(title, BOLD)
        terminal.write(f" {RULE * (self._width - get_cwidth(title) - len(place) - 5)} ", ACCENT)
        terminal.write(f"{place}\n", DIM)

    def gap(self) -> None:
        """Write an empty line."""
        self._line("")

    def block(self, block: Block) -> None:
        """Write a paragraph, a bullet or code."""
        match block.kind:
            case "code":
                for line in block.text.splitlines():
                    self._line(INDENT, self._terminal.styled(fit(line, self._room(INDENT))))
            case "bullet":
                mark, _, text = block.text.partition(" ")
                self.text(inline(text, self._terminal), f"{mark if len(mark) > 1 or self._terminal.dumb else '•'} ")
            case "paragraph":
                self.text(inline(block.text, self._terminal))

    def text(self, text: Text, mark: str = "") -> None:
        """Write a text, wrapped at words; its first line stands after a mark, the others under their first word."""
        for line in self._terminal.render_lines(text, self._room(mark)):
            self._line(mark, line)
            mark = " " * get_cwidth(mark)

    def _room(self, mark: str) -> int:
        return max(1, self._width - get_cwidth(mark) - len(BAR) - 1)

    def _line(self, mark: str, text: str = "") -> None:
        self._terminal.control(f"{self._bar}{self._terminal.styled(mark, ACCENT)}{text}\n")
