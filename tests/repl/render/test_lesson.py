"""Pages of a lesson on the screen: beside a bar, wrapped at words, and in plain lines."""

from screens import Screen

from tinychat.commands.results import LessonPage
from tinychat.repl.render.results import draw
from tinychat.session.lesson import Block, LessonLine, Question

QUESTION = Question("How **many**?", (Block("paragraph", "Two."),), ("`one`", "two " * 20), frozenset({1}))
PAGE = LessonPage(
    (
        Block("paragraph", "A **model** guesses `tokens`, *one* after another, until somebody stops it or it ends."),
        Block("bullet", "- one"),
        Block("bullet", "2. two"),
        Block("code", "a   b"),
    ),
    QUESTION,
    heading=("Try it", "step 2 of 8"),
    verdict="right",
    notes=("a note",),
)


def drawn(page: LessonPage, *, width: int = 40, colour: bool = False, dumb: bool = False) -> Screen:
    screen = Screen(width, 40)
    draw(screen.terminal(colour=colour, dumb=dumb), page)
    return screen


def test_a_page_stands_beside_a_bar() -> None:
    assert drawn(PAGE, colour=True).lines == [
        "━━ Try it ━━━━━━━━━━━━━━━━━ step 2 of 8",
        "┃ right",
        "┃ A model guesses tokens, one after",
        "┃ another, until somebody stops it or",
        "┃ it ends.",
        "┃",
        "┃ • one",
        "┃ 2. two",
        "┃",
        "┃     a   b",
        "┃",
        "┃ ? How many?",
        "┃   a  one",
        "┃   b  two two two two two two two two",
        "┃      two two two two two two two two",
        "┃      two two two two",
        "a note",
    ]


def test_no_line_is_longer_than_can_be_read_on_a_projector() -> None:
    lines = drawn(PAGE, width=200).lines
    assert max(map(len, lines)) == 78
    assert lines[0].endswith(" step 2 of 8")


def test_a_dumb_terminal_gets_plain_lines() -> None:
    screen = drawn(LessonPage(PAGE.blocks[:2], LessonLine("/tokens x", 1), heading=PAGE.heading), dumb=True)
    assert screen.lines == [
        "Try it, step 2 of 8",
        "A model guesses `tokens`, one after",
        "another, until somebody stops it or it",
        "ends.",
        "",
        "- one",
        "",
        "`/tokens x`",
    ]
    assert "\x1b" not in screen.getvalue()


def test_what_drives_a_terminal_is_escaped() -> None:
    evil = "a\x1b[2Jb\x9b"
    page = LessonPage((Block("paragraph", evil), Block("code", evil)), LessonLine(evil, 1), heading=(evil, "x"))
    written = drawn(page, colour=True).getvalue()
    assert "\x1b[2J" not in written
    assert "\x9b" not in written
