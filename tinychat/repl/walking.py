"""Walks through an answer: at each token the odds, in a region that is drawn anew; Enter goes on from another token."""

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tinychat.commands.results import Answer, Walk
from tinychat.repl.bars import bars_drawing
from tinychat.repl.keyboard import Keyboard
from tinychat.repl.plain_draw import draw_plain
from tinychat.repl.region import Region
from tinychat.repl.terminal import DIM, RESET, Terminal, fit

WAIT = 0.2
"""seconds between two looks at the size of the screen, when no key comes"""
WALKING_KEYS = "←/→ walk · ↑/↓ choose, Enter goes on from there · any other key ends"


def walk(looks: Walk, terminal: Terminal, keyboard: Keyboard) -> Answer | None:
    """Shows one place after the other as keys say; what was chosen to go on from, or None.

    The key that ends it, unless it is Esc or Enter, belongs to the next prompt, with all behind it.
    """
    if terminal.dumb:
        draw_plain(terminal, looks.at(looks.place))
        return None
    return _Walk(looks, terminal, keyboard).go()


class _Walk:
    def __init__(self, looks: Walk, terminal: Terminal, keyboard: Keyboard) -> None:
        self._looks, self._terminal, self._keyboard = looks, terminal, keyboard
        self._region = Region(terminal)
        self._place = looks.place
        self._bars = looks.at(self._place)
        self._pointed_at: int | None = None

    def go(self) -> Answer | None:
        drawn, keys = None, self._keyboard.take_back()
        with self._keyboard.live():
            while True:
                drawing = self._terminal.size(), self._place, self._pointed_at
                if drawing != drawn:
                    self._draw(WALKING_KEYS)
                    drawn = drawing
                for place, key in enumerate(keys):
                    if not self._press(key):
                        return self._end(key, keys[place:])
                keys = self._keyboard.read(WAIT)

    def _press(self, key: KeyPress) -> bool:
        """Moves; whether the key was one that does."""
        match key.key:
            case Keys.Left | Keys.Right:
                step = 1 if key.key is Keys.Right else -1
                self._go_to(min(max(self._place + step, 0), self._looks.count - 1))
            case Keys.Home | Keys.End:
                self._go_to(0 if key.key is Keys.Home else self._looks.count - 1)
            case Keys.Up | Keys.Down:
                self._point(1 if key.key is Keys.Down else -1)
            case _:
                return False
        return True

    def _go_to(self, place: int) -> None:
        if place != self._place:
            self._place, self._bars, self._pointed_at = place, self._looks.at(place), None

    def _point(self, step: int) -> None:
        chosen = next((place for place, bar in enumerate(self._bars.bars) if bar.marked), 0)
        place = chosen if self._pointed_at is None else self._pointed_at
        self._pointed_at = (place + step) % len(self._bars.bars)

    def _end(self, key: KeyPress, left: list[KeyPress]) -> Answer | None:
        """Lets stand what is shown; what comes of the key."""
        self._draw()
        self._region.leave()
        if key.key is Keys.ControlM and self._pointed_at is not None:
            self._keyboard.keep(left[1:])
            return self._looks.choose(self._place, self._pointed_at)
        self._keyboard.keep(left[1:] if key.key in (Keys.Escape, Keys.ControlM, Keys.ControlC) else left)
        return None

    def _draw(self, hint: str = "") -> None:
        width, height = self._terminal.size()
        drawing = bars_drawing(self._bars, width - 1, self._pointed_at)
        lines = self._terminal.render(drawing, width - 1).splitlines()
        if hint:
            hint = fit(hint, width - 1)
            lines = [*lines[: height - 2], f"{DIM}{hint}{RESET}" if self._terminal.colour else hint]
        self._region.draw(lines)
