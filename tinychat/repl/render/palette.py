"""The palette: all colours of the program, on a dark and on a light background.

Text is styled by role, with the sequences below or rich's names of the same colours; a theme says how they look. Bold
(`bold`) is for titles and what is current, dim (`dim`) for what explains, the accent (`cyan`) for what can be typed and
for data, a warning's colour (`yellow`) for what deserves a look and for a second curve, an error's (`red`) for what
went wrong, and the colour of lines (`bright_black`) for frames.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

DIM, BOLD, REVERSE = "\x1b[2m", "\x1b[1m", "\x1b[7m"
LINE = "\x1b[90m"
ERROR, GOOD, WARNING, ACCENT = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"
CURVES = (ACCENT, WARNING, GOOD, "\x1b[35m", ERROR, "\x1b[34m")
"""Styles of curves that are drawn together."""
RESET = "\x1b[0m"
STYLE = re.compile(r"\x1b\[([\d;]*)m")
EXTENDED = ("38", "48")
"""Codes before a colour that is given by number."""


@dataclass(frozen=True)
class Theme:
    """The colours on one background, as numbers of the 256-colour palette; text contrasts with it by 3.5 to 1 or more.

    They are numbers, not names, since the colours behind names differ between terminals, and dim text is often
    unreadable on a projector.
    """

    dim: int
    red: int
    green: int
    yellow: int
    blue: int
    magenta: int
    cyan: int
    line: int
    """The colour of frames and of what is still to do, which need no contrast."""
    heat: tuple[int, ...]
    """Colours of a heat map, from nothing, which is close to the background, to the largest values."""
    cold: tuple[int, ...]
    """The same for negative numbers."""
    text: int
    """The colour of text in pictures and menus; elsewhere it is the terminal's own."""
    background: int
    """The background of pictures."""
    menu: int
    """The background of the completion menu."""
    selected: int
    """The background of the selected line of the menu."""

    def apply(self, styled: str) -> str:
        """Replace the standard colours in the styles of a text by those of this theme."""
        return STYLE.sub(lambda style: f"\x1b[{';'.join(self._codes(style[1].split(';')))}m", styled)

    def _codes(self, codes: list[str]) -> list[str]:
        names = {"2": self.dim, "31": self.red, "32": self.green, "33": self.yellow, "34": self.blue}
        names |= {"35": self.magenta, "36": self.cyan, "90": self.line}
        if codes[0] in EXTENDED:
            return codes
        if "2" in codes:  # dim text has no other colour
            codes = [*(code for code in codes if code not in names), "2"]
        return [f"38;5;{names[code]}" if code in names else code for code in codes]

    def prompt_styles(self) -> dict[str, str]:
        """Return the styles of the prompt, its menu and its toolbar for prompt_toolkit."""
        dim, text, menu = hex_colour(self.dim), hex_colour(self.text), hex_colour(self.menu)
        return {
            "mark": f"bold {hex_colour(self.cyan)}",
            "continuation": dim,
            "auto-suggestion": dim,
            "unknown": f"underline {hex_colour(self.red)}",
            "text": "bold",
            "cursor": dim,
            "bottom-toolbar": f"noreverse {dim}",
            "bottom-toolbar.model": f"bold {text}",
            "bottom-toolbar.run": hex_colour(self.green),
            "completion-menu": f"bg:{menu} {text}",
            "completion-menu.completion": f"bg:{menu} {text}",
            "completion-menu.completion.current": f"noreverse bold bg:{hex_colour(self.selected)} {text}",
            "completion-menu.meta.completion": f"bg:{menu} {dim}",
            "completion-menu.meta.completion.current": f"bg:{hex_colour(self.selected)} {text}",
            "scrollbar.background": f"bg:{menu}",
            "scrollbar.button": f"bg:{dim}",
        }


THEMES: Mapping[str, Theme] = {
    "dark": Theme(
        dim=245, red=203, green=114, yellow=221, blue=111, magenta=176, cyan=80, line=240,
        heat=(235, 53, 90, 126, 162, 203, 215, 229), cold=(235, 17, 18, 25, 31, 38, 80, 159),
        text=253, background=234, menu=236, selected=24,
    ),
    "light": Theme(
        dim=242, red=160, green=28, yellow=130, blue=25, magenta=127, cyan=30, line=250,
        heat=(231, 224, 217, 210, 204, 161, 89, 53), cold=(231, 195, 153, 117, 74, 31, 25, 17),
        text=235, background=231, menu=255, selected=153,
    ),
}  # fmt: skip

PICTURE_CURVES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Curves in picture files: colours that colour-blind people can distinguish (Okabe and Ito, "Color Universal Design",
2008)."""
PICTURE_INK, PICTURE_GRID, PICTURE_BACKGROUND = "#333333", "#dddddd", "#ffffff"


def rgb(colour: int) -> tuple[int, int, int]:
    """Return the red, green and blue of a colour from 16 to 255, as xterm has them: a 6 × 6 × 6 cube, then greys."""
    if colour >= 232:
        grey = 8 + 10 * (colour - 232)
        return grey, grey, grey
    red, green, blue = ((colour - 16) // weight % 6 for weight in (36, 6, 1))
    return _level(red), _level(green), _level(blue)


def hex_colour(colour: int) -> str:
    """Return a colour as `#5fd7d7`."""
    return "#" + bytes(rgb(colour)).hex()


def _level(step: int) -> int:
    return 55 + 40 * step if step else 0
