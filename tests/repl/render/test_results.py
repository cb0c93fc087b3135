"""Results of commands as drawn on a screen, and in plain lines."""

import dataclasses
import textwrap

import pytest
from screens import Screen

from tinychat.commands import COMMANDS
from tinychat.commands.results import (
    Bar,
    BarChart,
    Change,
    Drawable,
    HeatMap,
    HeatMaps,
    Help,
    Message,
    Pieces,
    ShadedText,
    SmallMap,
    Table,
    Tree,
    TreeRow,
    Turns,
)
from tinychat.corpus.types import Mode
from tinychat.repl.render.palette import ACCENT, DIM, ERROR, RESET, THEMES, WARNING
from tinychat.repl.render.results import HOW_TO_READ_BARS, HOW_TO_READ_BOTH, HOW_TO_READ_SURPRISAL, bar_lines, draw
from tinychat.repl.render.terminal import fit
from tinychat.session.session import Session

RESULTS: list[tuple[Drawable, list[str]]] = [
    (
        Table(("", "model", "mode"), (("›", "parrot", "chat"), ("", "other", "")), notes=("that is all",)),
        ["model: mode", "here, parrot: chat", "other", "that is all"],
    ),
    (Table(("run", "state"), ()), ["none yet"]),
    (
        BarChart("token 1", (Bar("'a'", 0.5, True, 0.75), Bar("'b'", 0.25, False, 0)), ("as set now",)),
        ["token 1", "chosen: 'a' 50.0 %, then 75.0 %", "'b' 25.0 %, then cut", "as set now"],
    ),
    (
        ShadedText((("well ", 1.0), ("now", 7.5)), ("perplexity 9",)),
        ["well [now]", "surprisal, up to 7.5 bits, in brackets: less likely than 1 in 8", "perplexity 9"],
    ),
    (
        Tree((TreeRow("", "1  hello", False, True), TreeRow("└─ ", "2  hi", True, True))),
        ["1 deep: 1 hello", "here, 2 deep: 2 hi"],
    ),
    (
        Tree((TreeRow("", "1  hello → " + "one\n\n two " * 40, False, True),)),
        ["1 deep: 1 hello → one two one two one two one two one two one two one two one …"],
    ),
    (Turns("chat", (("hello", "hi\nyou"),), ("turn 1",)), ["> hello", "hi", "you", "turn 1"]),
    (Turns("completion", (("hello", "you"),)), ["text> hello", "you"]),
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
def test_a_dumb_terminal_gets_results_in_plain_lines(result: Drawable, lines: list[str]) -> None:
    screen = Screen()
    draw(screen.terminal(dumb=True), result)
    assert screen.lines == lines


def drawn(result: Message | Turns | Change | Table | BarChart | ShadedText, columns: int = 80) -> list[str]:
    screen = Screen(columns, 60)
    draw(screen.terminal(), result)
    return screen.lines


@pytest.mark.parametrize(("mode", "mark"), [("chat", "›"), ("completion", "¶"), ("translation", "→")])
def test_turns_have_the_mark_of_the_prompt_line(mode: Mode, mark: str) -> None:
    assert drawn(Turns(mode, (("one", "two"), ("more", "")), ("beside",))) == [
        f"{mark} one",
        "two",
        f"{mark} more",
        "",
        "beside",
    ]


def test_messages_and_changes() -> None:
    assert drawn(Message(("one", "two"), ("beside",))) == ["one", "two", "beside"]
    assert drawn(Change("temperature", "0.8", "1.2")) == ["temperature 0.8 → 1.2"]


TABLE = Table(
    ("run", "step", "about"), (("a", "1,480", "the first"), ("语言", "9", "x" * 40)), right=(1,), notes=("n",)
)


def test_tables_align_wide_characters_too() -> None:
    screen = Screen()
    draw(screen.terminal(), TABLE)
    assert [line.rstrip() for line in screen.getvalue().splitlines()] == [
        "run    step  about",
        "a     1,480  the first",
        "语言      9  " + "x" * 40,
        "n",
    ]


def test_the_last_column_of_a_table_is_cut_where_the_screen_is_narrow() -> None:
    lines = drawn(TABLE, 30)
    assert lines[2].endswith("xxx…")
    assert len(lines) == 4


def test_a_wrapped_column_goes_below_its_row_and_names_are_not_cut() -> None:
    rows = (("a", "1,480", "the first of them all"), ("a\x1bname", "9", "语言 " * 9))
    table = Table(("run", "step", "about"), rows, right=(1,), notes=("n",), wraps=True)
    assert [line.rstrip() for line in drawn(table)] == [
        "run      step  about",
        "a       1,480  the first of them all",
        "a␛name      9  " + "语言 " * 8 + "语言",
        "n",
    ]
    assert [line.rstrip() for line in drawn(table, 30)] == [
        "run      step",
        "a       1,480",
        "     the first of them all",
        "a␛name      9",
        "     语言 语言 语言 语言",
        "     语言 语言 语言 语言",
        "     语言",
        "n",
    ]
    assert [line.rstrip() for line in drawn(table, 47)][2:] == [
        "a␛name      9  语言 语言 语言 语言 语言 语言",
        "               语言 语言 语言",
        "n",
    ]
    assert [line.rstrip() for line in drawn(table, 12)[:5]] == [
        "run    step",
        "a     1,480",
        "     the",
        "     first",
        "     of",
    ]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (
            60,
            [
                "   model        mode        params  date          size",
                "›  a            chat          3.3M  bundled     6.7 MB",
            ],
        ),
        (34, ["   model       mode        params", "›  a           chat          3.3M"]),
        (20, ["   model", "›  a"]),
    ],
)
def test_the_last_columns_of_a_row_that_is_too_narrow_are_left_out(columns: int, rows: list[str]) -> None:
    names = ("", "model", "mode", "params", "date", "size", "loss", "about")
    table = Table(
        names,
        (("›", "a", "chat", "3.3M", "bundled", "6.7 MB", "2.782", "talk"),
         ("", "a-long-name", "completion", "1.9M", "2026-11-20", "3.8 MB", "0.260", "tell")),
        right=(3, 5, 6), wraps=True,
    )  # fmt: skip
    lines = [line.rstrip() for line in drawn(table, columns)]
    assert lines[:3] == [*rows, "     talk"]
    assert all(len(line) < columns for line in lines)
    assert "a-long-name" in "\n".join(lines)


def test_all_settings_are_shown_whole_at_80_columns(session: Session) -> None:
    table = COMMANDS.dispatch(session, "/settings")
    assert isinstance(table, Table)
    screen = Screen()
    draw(screen.terminal(), table)
    text = " ".join(screen.getvalue().split())
    assert "…" not in text
    assert all(row[-1].rpartition(" ")[2] in text for row in table.rows)


def test_an_empty_table_says_so() -> None:
    assert drawn(Table(("run",), (), notes=("make one",))) == ["none yet", "make one"]


def test_bars_are_as_long_as_their_fractions() -> None:
    bars = (Bar("' talk'", 0.5, marked=True), Bar("' do'", 0.25), Bar("'x'", 0.0001))
    assert drawn(BarChart("token 5 of 14", bars)) == [
        "token 5 of 14",
        "› ' talk'  50.0 % " + "▇" * 12,
        "  ' do'    25.0 % " + "▇" * 6,
        "  'x'       0.0 %",
        HOW_TO_READ_BARS,
    ]


@pytest.mark.parametrize(
    ("selected", "height", "shown"),
    [
        (None, 20, "abcdefgh"), (6, 11, "abcdefgh"), (None, 8, "abcde"), (6, 8, "defgh"), (7, 8, "defgh"),
        (0, 8, "abcde"), (6, 4, "g"), (6, 3, "g"), (6, 1, "g"), (6, 0, ""),
    ],
)  # fmt: skip
def test_bars_that_do_not_fit_are_scrolled_to_the_selected_one(selected: int | None, height: int, shown: str) -> None:
    bars = tuple(Bar(repr(letter), 0.125, letter == "c", 0.125) for letter in "abcdefgh")
    chart = BarChart("token 1 of 2", bars, ("a note",), ("one", "two", "three"), ("before", "after"))
    lines = bar_lines(Screen().terminal(), chart, selected, height)
    assert "".join(line.split("'")[1] for line in lines if "'" in line) == shown
    assert len(lines) <= height
    if height > 3:
        assert (lines[0], lines[1]) == ("token 1 of 2", "one›two‹three")
    if selected is not None and height:
        assert [line[3] for line in lines if line.startswith("»")] == ["abcdefgh"[selected]]
    assert ("a note" in lines) is (height > 11)


def test_bars_before_and_after_are_side_by_side() -> None:
    bars = (Bar("'a'", 0.5, marked=True, after=1.0), Bar("'b'", 0.25, after=0.0))
    chart = BarChart("title", bars, ("a note",), headings=("before sampling", "after top-k 1"))
    for columns, longest in ((80, 24), (40, 7)):
        cells, half, quarter = 8 + longest, "▇" * round(longest / 2), "▇" * round(longest / 4)
        assert [line.rstrip() for line in drawn(chart, columns)] == [
            "title",
            f"      {fit('before sampling', cells):{cells}} after top-k 1",
            f"› 'a' {' 50.0 % ' + half:{cells}} 100.0 % {'▇' * longest}",
            f"  'b' {' 25.0 % ' + quarter:{cells}}     cut",
            "a note",
            *textwrap.wrap(HOW_TO_READ_BARS, columns),
        ]


SHADED = ShadedText((("t", None), ("he", 0.5), (" q", 7.0), ("u\x1b", 4.0), ("ick", 2.0)), ("perplexity 4.00",))


def test_a_shaded_text_has_its_surprises_in_brackets_where_there_is_no_colour() -> None:
    assert drawn(SHADED) == [
        "the[ qu␛]ick",
        " ▁▁  █▅▅ ▃▃▃",
        "surprisal, up to 7.0 bits · in brackets: less likely than 1 in 8",
        HOW_TO_READ_SURPRISAL,
        "perplexity 4.00",
    ]


def test_where_nothing_is_surprising_no_bar_is_high() -> None:
    assert drawn(ShadedText((("a", 0.001), ("b", 0.0), ("c", 0.5))))[1] == "▁▁▅"


def test_a_shaded_text_is_shaded_where_there_is_colour() -> None:
    screen = Screen()
    draw(screen.terminal(colour=True), SHADED)
    first, bars, legend, *_ = screen.getvalue().splitlines()
    dim, accent, warning, error = map(THEMES["dark"].apply, (DIM, ACCENT, WARNING, ERROR))
    assert first == f"{dim}t{RESET}he{error} q{RESET}{warning}u␛{RESET}{accent}ick{RESET}"
    assert bars.endswith(f"{error} █{RESET}{warning}▅▅{RESET}{accent}▃▃▃{RESET}")
    for style, words in ((accent, "3 bits (1 in 8)"), (warning, "6 bits (1 in 64)"), (error, "more")):
        assert f"{style}{words[:4]}" in legend
    assert screen.lines == [
        "the qu␛ick",
        " ▁▁ █▅▅▃▃▃",
        "surprisal: up to 1 bit (1 in 2) · 3 bits (1 in 8) · 6 bits (1 in 64) · more",
        HOW_TO_READ_SURPRISAL,
        "perplexity 4.00",
    ]


def test_entropies_are_a_line_of_their_own_in_figures_of_a_token() -> None:
    shaded = dataclasses.replace(SHADED, entropies=((0.0,), (1.0,), (2.0,), (1.5, 2.5)))
    assert drawn(shaded)[1:] == [
        " ▁▁  █▅▅ ▃▃▃",
        " ▁▁  ▃▅▅ ███",
        "surprisal, up to 7.0 bits · in brackets: less likely than 1 in 8",
        "entropy, up to 2.5 bits, 1.4 on average",
        HOW_TO_READ_BOTH,
        "perplexity 4.00",
    ]


def test_each_bar_stands_under_its_token_on_every_row() -> None:
    words = (("one", 4.0), (" two", 2.0), (" three", 8.0), ("\n", 4.0), ("你好", 2.0), (" ", 4.0), ("abcdefghijk", 8.0))
    screen = Screen(11, 30)
    draw(screen.terminal(colour=True), ShadedText(words))
    assert screen.lines[:8] == [
        *("one two", "▅▅▅ ▃▃▃"),
        *("three", "█████▅"),  # the new line has a bar too
        *("你好 abcd", "▃▃▃▃▅████"),
        *("efghijk", "███████"),
    ]


def test_columns_that_are_too_wide_share_what_the_narrow_ones_leave() -> None:
    table = Table(("field", "one", "other"), (("loss", "0.10", "0.25"), ("text", "'a long text'", "'another text'")))
    assert drawn(table, 28) == [
        "field  one        other",
        "loss   0.10       0.25",
        "text   'a long …  'another…",
    ]


def test_a_list_that_is_too_long_for_its_column_ends_at_an_item() -> None:
    table = Table(("layer", "likeliest"), (("1", "'!' 80 % · ' there' 20 %"), ("2", "x" * 30)))
    assert drawn(table, 27) == ["layer  likeliest", "1      '!' 80 % · …", f"2      {'x' * 18}…"]


def test_pieces_are_not_broken() -> None:
    pieces = ("'a b' 1", "'你' 2", "' and so on' 345")
    assert drawn(Pieces(pieces, ("3 tokens",)), 20) == ["'a b' 1  '你' 2", "' and so on' 345", "3 tokens"]


def test_control_characters_from_anywhere_do_nothing() -> None:
    screen = Screen()
    for result in (Message(("\x1b[31m",)), Table(("a",), (("\x1b[31m",),)), BarChart("t", (Bar("\x1b[31m", 0.5),))):
        draw(screen.terminal(), result)
    assert "\x1b" not in screen.getvalue()
    assert screen.getvalue().count("␛[31m") == 3


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (80, 32), (200, 24), (40, 64), (200, 50)])
def test_help_fits_its_screen_and_names_every_command(session: Session, columns: int, rows: int) -> None:
    screen = Screen(columns, 80)
    terminal = screen.terminal()
    terminal.size = lambda: (columns, rows)
    draw(terminal, COMMANDS.dispatch(session, "/help"))  # type: ignore[arg-type]
    assert len(screen.lines) <= rows - 3
    words = " ".join(screen.lines).split()
    assert all(f"/{name}" in words for name, command in COMMANDS.items() if command.is_listed)
    if (columns, rows) == (80, 32):
        assert screen.lines[:2] == [
            "talk      /retry        answer again         /continue     continue the answer",
            "          /undo         take it back         /edit         change and resend",
        ]


@pytest.mark.parametrize(("columns", "widest"), [(40, 39), (80, 79), (200, 79)])
def test_the_help_of_a_command_wraps_at_words_below_its_usage(session: Session, columns: int, widest: int) -> None:
    screen = Screen(columns, 40)
    draw(screen.terminal(), COMMANDS.dispatch(session, "/help train"))  # type: ignore[arg-type]
    begin = next(index for index, line in enumerate(screen.lines) if line.startswith("  Train a model"))
    (end,) = (index for index, line in enumerate(screen.lines) if line.startswith("example: "))
    body = screen.lines[begin:end]
    assert all(not line or (line[:2] == "  " and line[2] != " ") for line in body)
    assert widest - 10 < max(map(len, body)) <= widest
    assert " ".join(" ".join(body).split()) == " ".join(COMMANDS["train"].help.split())


def test_colour_is_used_where_it_may_be() -> None:
    for colour in (True, False):
        screen = Screen()
        screen.terminal(colour=colour).problem("it broke", "mend it")
        assert screen.lines == ["it broke", "mend it"]
        error, dim = map(THEMES["dark"].apply, (ERROR, DIM))
        expected = f"{error}it broke{RESET}\n{dim}mend it{RESET}\n" if colour else "it broke\nmend it\n"
        assert screen.getvalue() == expected


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [("hello", 5, "hello"), ("hello!", 5, "hell…"), ("你好吗", 5, "你好…"), ("a\nb\x1b", 9, "a b␛"), ("ab", 0, "")],
)
def test_a_text_is_cut_to_fit(text: str, width: int, cut: str) -> None:
    assert fit(text, width) == cut


def test_the_terminal_knows_where_its_cursor_is() -> None:
    terminal = Screen(10).terminal()
    columns = []
    for text in ("abc", "\t", "d", "e", "f", "\n", "你好你好你", "吗", "a\x1b"):
        terminal.write(text)
        columns.append(terminal.column)
    assert columns == [3, 8, 9, 10, 1, 0, 10, 2, 4]


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    screen = Screen()
    screen.terminal().line("a\ud800b")
    assert screen.lines == ["a?b"]
