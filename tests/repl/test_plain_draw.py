"""What commands come back with, in lines of words."""

import pytest
from screens import Screen

from tinychat.commands.results import (
    Bar,
    Bars,
    Drawn,
    HeatMap,
    HeatMaps,
    Help,
    Outline,
    OutlineRow,
    Shaded,
    SmallMap,
    Table,
)
from tinychat.repl.draw import draw

RESULTS: list[tuple[Drawn, list[str]]] = [
    (
        Table(("", "model", "mode"), (("›", "parrot", "chat"), ("", "other", "")), notes=("that is all",)),
        ["model: mode", "here, parrot: chat", "other", "that is all"],
    ),
    (Table(("run", "state"), ()), ["none yet"]),
    (
        Bars("token 1", (Bar("'a'", 0.5, True, 0.75), Bar("'b'", 0.25, False, 0)), ("as set now",)),
        ["token 1", "chosen: 'a' 50.0 %, then 75.0 %", "'b' 25.0 %, then cut", "as set now"],
    ),
    (
        Shaded((("well ", 1.0), ("now", 7.5)), ("perplexity 9",)),
        ["well [now]", "surprise, up to 7.5 bits, in brackets: less likely than 1 in 8", "perplexity 9"],
    ),
    (
        Outline((OutlineRow("", "1  hello", False, True), OutlineRow("└─ ", "2  hi", True, True))),
        ["1  hello, 1 deep", "here, 2  hi, 2 deep"],
    ),
    (
        HeatMap("head 1", ("a", "b"), ("a", "b"), ((1.0,), (0.25, 0.75))),
        ["head 1", "a: a 100.0 %", "b: b 75.0 %, a 25.0 %"],
    ),
    (HeatMaps("heads", ((SmallMap("1 1", ((1.0,),)), SmallMap("1 2", ((1.0,),))),)), ["heads", "1 1", "1 2"]),
    (
        Help({"talk": {"undo": "take it back", "seed": ""}}),
        [
            "talk: /undo take it back, /seed",
            "/help COMMAND says more, with an example; the beginning of a name is enough",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("result", "lines"), RESULTS, ids=lambda value: type(value).__name__)
def test_what_would_be_drawn_is_told(result: Drawn, lines: list[str]) -> None:
    screen = Screen()
    draw(screen.terminal(dumb=True), result)
    assert screen.lines == lines
