"""The REPL at a pseudo-terminal, with control sequences in all that others choose: none reaches the screen."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from poison import POISON, find_foreign
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.layout.screen import Char
from rich.panel import Panel
from rich.text import Text
from screens import Person, Screen, answered
from scripted import make_model

from tinychat.commands import COMMANDS, results
from tinychat.repl.completion import CommandCompleter
from tinychat.repl.render.palette import DIM
from tinychat.repl.render.results import draw
from tinychat.repl.render.terminal import Region, StatusLine
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.textutil import LAYOUT_CONTROLS

SitDown = Callable[..., Person]
ESCAPE, ENTER, CTRL_C = "\x1b", "\r", "\x03"
COMMAND_LINES = (
    "/model", "/show", "/settings", f"/stop {POISON}", "/settings", "/why", "/tokens", f"/tokens {POISON}",
    f"/score {POISON}", "/tree", "/history", "/retry", "/samples 2", "/runs", "/recipes", f"/recipes {POISON}",
    f"/open missing {POISON}", f"/train --plain missing{POISON}", f"/{POISON}", f"/help {POISON}", f"/model {POISON}",
    f"/set temperature {POISON}", "/info", "/color", "/repeat", "/open", f"/rm {POISON}", f"/rename a {POISON}",
    "/steps", f"/lesson {POISON}", f"/ban {POISON}", f"/boost {POISON} 2", f"/begin {POISON}", f"/choices a,{POISON}",
    f"/regex ({POISON}", f"/steer {POISON}-b 1", "/why", "/settings",
)  # fmt: skip


@pytest.fixture
def model(home: Path) -> Path:
    """A model with a poisoned name and description."""
    folder = make_model(home / "models", f"parrot {POISON}")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    architecture = config["architecture"] | {"n_layer": 1, "d_model": 16}
    config |= {"name": f"parrot {POISON}", "description": f"says {POISON}", "architecture": architecture}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def paste(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


@pytest.mark.slow
def test_no_control_sequence_reaches_the_terminal(sit_down: SitDown, tmp_path: Path) -> None:
    lesson = f"# Poison: {POISON} (4 minutes)\n\nA page with {POISON} in it.\n\n```tinychat\n/tokens {POISON}\n```\n"
    (tmp_path / "poisoned.md").write_text(lesson, "utf-8")
    person = sit_down(columns=120, rows=50)
    person.type(paste(f"hello {POISON}"))
    person.sees(lambda lines: any("esrever" in line for line in lines))
    person.type(ENTER)
    person.sees(answered)
    lines = (*COMMAND_LINES, f"/lesson {tmp_path / 'poisoned.md'}", "/lesson", "/lesson off")
    for number, line in enumerate(lines):
        person.type(paste(line), ENTER, f"/seed {number}", ENTER)
        person.sees(lambda lines, number=number: any(line.endswith(f"→ {number}") for line in lines))
    person.type("/model p")
    person.sees(lambda lines: any(line.strip().startswith("parrot") for line in lines[-8:]))
    person.type(CTRL_C, "/edit", ENTER)
    person.sees(lambda lines: any(line.startswith("› hello ") for line in lines[-8:]))
    assert find_foreign(person.raw.decode()) == []
    assert person.raw.decode().count("esrever") > len(COMMAND_LINES)
    assert b"unexpected" not in person.raw
    assert "A page with" in person.raw.decode()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [{}, {"TERM": "dumb"}], ids=["colours", "plain"])
def test_a_line_of_the_history_is_shown_safely(sit_down: SitDown, home: Path, mode: dict[str, str]) -> None:
    paths.history_file().write_text(f"\n# a line\n+first {POISON}\n\n# another\n+/recipes {POISON}\n", "utf-8")
    person = sit_down(columns=120, **mode)
    person.type("\x10")  # Ctrl-P: the line before
    person.sees(lambda lines: any("/recipes" in line for line in lines))
    person.type("\x10", ENTER)
    person.sees(lambda lines: any(line.startswith("you said: first ") for line in lines))
    person.sees(answered)
    person.type("/edit", ENTER)
    person.sees(lambda lines: sum(line.startswith(("› first", "> first")) for line in lines) == 2)
    person.type("\x15", "/model p", "" if mode else "\t\t")
    person.sees(lambda lines: any(line.startswith((" parrot", "> /model p")) for line in lines[1:-1]))
    assert find_foreign(person.raw.decode()) == []
    assert "esrever" in person.raw.decode()


@pytest.fixture
def talked(session: Session) -> Session:
    """A session whose model has answered a poisoned prompt."""
    list(session.answer(f"hello {POISON}"))
    return session


def drawn(session: Session, line: str, *, dumb: bool = False) -> str:
    """Return the output of a command."""
    screen = Screen(120, 50)
    terminal, result = screen.terminal(colour=not dumb, dumb=dumb), COMMANDS.dispatch(session, line)
    if isinstance(result, results.TokenBrowser):
        result = result.bars_at(4)
    assert isinstance(result, results.Drawable)
    draw(terminal, result)
    return screen.getvalue()


@pytest.mark.parametrize("dumb", [False, True])
@pytest.mark.parametrize(
    "line",
    ["/model", "/show", f"/stop {POISON}", "/why", f"/tokens {POISON}", f"/score {POISON}", "/tree"],
    ids=lambda line: line.split()[0],
)
def test_results_are_drawn_without_control_sequences(talked: Session, line: str, dumb: bool) -> None:
    output = drawn(talked, line, dumb=dumb)
    assert find_foreign(output) == []
    assert "␛" in output or r"\x1b" in output or line == "/why"


@pytest.mark.parametrize("line", ["/show", "/tree"])
def test_the_terminal_escapes(talked: Session, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.repl.render.terminal.escape_controls", str)
    assert find_foreign(drawn(talked, line)) != []


def test_the_console_escapes_what_rich_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Screen().terminal(colour=True)
    shown = Text.assemble((f"title {POISON}", "bold"), "\n", "line")
    assert find_foreign(terminal.render(Panel(shown))) == []
    assert "esrever" in terminal.render(shown)
    monkeypatch.setattr("tinychat.repl.render.console.escape_controls", str)
    assert find_foreign(terminal.render(shown)) != []


def test_lines_drawn_in_place_are_escaped() -> None:
    screen = Screen()
    terminal = screen.terminal(colour=True)
    Region(terminal).draw([terminal.styled(POISON, DIM), *terminal.render_lines(Text(POISON))])
    with StatusLine(terminal) as status:
        status.show(POISON)
    assert find_foreign(screen.getvalue()) == []
    assert screen.getvalue().count("esrever") == 3


@pytest.mark.parametrize("char", [*LAYOUT_CONTROLS, "\x1b", "\x7f", "\x9b"])
def test_the_prompt_shows_control_characters(char: str) -> None:
    assert Char(char).char.isprintable()
    assert Char(char).char != char


def test_completions_are_shown_on_one_line(session: Session) -> None:
    shown = list(CommandCompleter(session, lambda: 80).get_completions(Document("/model p"), CompleteEvent()))
    texts = [one.display_text + one.display_meta_text for one in shown]
    assert any("esrever" in text for text in texts)
    assert find_foreign("".join(texts)) == []
