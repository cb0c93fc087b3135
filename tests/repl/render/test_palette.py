"""The palette: both themes are readable, and no other file names a colour."""

import io
import itertools
import re
from pathlib import Path

import pytest
from prompt_toolkit.styles import Style
from rich.text import Text

import tinychat
from tinychat.repl.render.palette import ACCENT, DIM, ERROR, THEMES, Theme, hex_colour, rgb
from tinychat.repl.render.terminal import Terminal

PACKAGE = Path(tinychat.__file__).parent
ROLES = ("dim", "red", "green", "yellow", "blue", "magenta", "cyan", "text")
MIN_CONTRAST = 3.5


def luminance(colour: int) -> float:
    """Return the relative luminance of a colour (WCAG 2.1)."""
    linear = [c / 12.92 if (c := value / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for value in rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: int, second: int) -> float:
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_each_colour_is_readable_on_its_background_and_differs_from_the_others(theme: Theme) -> None:
    colours = {role: getattr(theme, role) for role in ROLES}
    faint = {role: contrast(colour, theme.background) for role, colour in colours.items()}
    assert {role: value for role, value in faint.items() if value < MIN_CONTRAST} == {}
    assert len(set(colours.values())) == len(colours)
    assert min(contrast(theme.text, theme.menu), contrast(theme.text, theme.selected)) > MIN_CONTRAST


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_heat_map_goes_from_the_background_evenly_away_from_it(theme: Theme) -> None:
    contrasts = [contrast(colour, theme.background) for colour in theme.heat]
    assert contrasts[0] < 1.2
    assert all(before < after for before, after in itertools.pairwise(contrasts))


def test_nothing_is_white_on_a_light_background() -> None:
    assert hex_colour(THEMES["light"].heat[0]) == "#ffffff"


def test_styles_of_rich_and_of_our_own_take_the_theme_and_other_colours_stay() -> None:
    for name, theme in THEMES.items():
        screen = io.StringIO()
        terminal = Terminal(screen, lambda: (80, 24), colour=True, theme=name)
        terminal.write("a", ACCENT)
        terminal.write("b", "\x1b[38;5;36;48;5;2m")
        terminal.show(Text("c", "bold cyan"))
        cyan = f"38;5;{theme.cyan}"
        assert screen.getvalue() == f"\x1b[{cyan}ma\x1b[0m\x1b[38;5;36;48;5;2mb\x1b[0m\n\x1b[1;{cyan}mc\x1b[0m\n"
        assert theme.apply("\x1b[2;1;31m") == f"\x1b[1;38;5;{theme.dim}m", "dim text is grey whatever its colour"
        assert theme.apply(DIM + ERROR) == f"\x1b[38;5;{theme.dim}m\x1b[38;5;{theme.red}m"


def test_the_prompt_takes_its_colours_from_the_theme() -> None:
    for theme in THEMES.values():
        mark = Style.from_dict(theme.prompt_styles()).get_attrs_for_style_str("class:mark")
        assert (f"#{mark.color}", mark.bold) == (hex_colour(theme.cyan), True)


def test_colours_are_named_in_the_palette_alone() -> None:
    colour = re.compile(r"\\x1b\[(?:1;|2;)*[34][0-7]m|38;5;\d|#[0-9a-f]{6}\b|ansi(?:red|green|blue|cyan|yellow)")
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "palette.py"]
    assert [str(path) for path in files if colour.search(path.read_text(encoding="utf-8"))] == []
