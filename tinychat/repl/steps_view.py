"""The view of `/steps`: keys walk through the operations of a computation, which are drawn in place."""

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.generate.computation import Computation
from tinychat.repl.keys import LEAVING, Keyboard
from tinychat.repl.render.palette import DIM
from tinychat.repl.render.steps import HINT, plain_lines, step_lines
from tinychat.repl.render.terminal import Region, Styled, Terminal, fit

RESIZE_POLL_INTERVAL = 0.2
"""Seconds to wait for a key before the size of the window is polled again."""


def walk_steps(computation: Computation, terminal: Terminal, keyboard: Keyboard) -> None:
    """Show one operation after the other; all at once, in plain text, on a dumb terminal."""
    if terminal.dumb:
        for line in plain_lines(terminal, computation):
            terminal.line(line)
        return
    StepsView(computation, terminal, keyboard).run()


class StepsView:
    """An operation on the screen, and the cell of its output that is derived, if one is selected."""

    def __init__(self, computation: Computation, terminal: Terminal, keyboard: Keyboard) -> None:
        self._computation, self._terminal, self._keyboard = computation, terminal, keyboard
        self._region = Region(terminal)
        self._index = 0
        self._cell: tuple[int, int] | None = None

    def run(self) -> None:
        """Handle keys until one is not the view's own, and leave that to the next prompt unless it is in `LEAVING`.

        The last drawing stays on screen.
        """
        drawn, keys = None, self._keyboard.pop_typeahead()
        try:
            with self._keyboard.live():
                while True:
                    if (state := (self._terminal.size(), self._index, self._cell)) != drawn:
                        width, height = self._terminal.size()
                        hint = self._terminal.styled(fit(HINT, width - 1), DIM)
                        self._region.draw([*self._lines()[: height - 2], hint])
                        drawn = state
                    for position, key in enumerate(keys):
                        if not self._press(key):
                            rest = keys[position:]
                            self._keyboard.push_typeahead(rest[1:] if key.key in LEAVING else rest)
                            return
                    keys = self._keyboard.read(RESIZE_POLL_INTERVAL)
        finally:
            self._region.leave(self._lines())

    def _lines(self) -> list[Styled]:
        return step_lines(self._terminal, self._computation, self._index, self._cell)

    def _press(self, key: KeyPress) -> bool:
        """Handle a key, and return whether it is one of the view's own."""
        last = len(self._computation.operations) - 1
        match key.key:
            case Keys.Left | "p":
                self._go(self._index - 1)
            case Keys.Right | "n" | " ":
                self._go(self._index + 1)
            case Keys.Home:
                self._go(0)
            case Keys.End:
                self._go(last)
            case Keys.PageDown:
                self._go(
                    next((index for index in range(self._index, last) if self._begins_part(index + 1)), last - 1) + 1
                )
            case Keys.PageUp:
                self._go(next((index for index in range(self._index - 1, 0, -1) if self._begins_part(index)), 0))
            case Keys.Down:
                self._select(1, 0)
            case Keys.Up:
                self._select(-1, 0)
            case Keys.Tab:
                self._select(0, 1)
            case Keys.BackTab:
                self._select(0, -1)
            case _:
                return False
        return True

    def _begins_part(self, index: int) -> bool:
        operations = self._computation.operations
        return operations[index].part != operations[index - 1].part

    def _go(self, index: int) -> None:
        index = max(0, min(index, len(self._computation.operations) - 1))
        if index != self._index:
            self._index, self._cell = index, None

    def _select(self, down: int, right: int) -> None:
        """Move the selection by cells, down a column and on at the top of the next one, or along a row."""
        operation = self._computation.operations[self._index]
        rows, columns = operation.output.shape
        if self._cell is None:
            self._cell = operation.first_cell
            return
        row, column = self._cell
        if right:
            self._cell = (row, (column + right) % columns)
        else:
            position = (column * rows + row + down) % (rows * columns)
            self._cell = (position % rows, position // rows)
