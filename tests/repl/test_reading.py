"""What the REPL shows of real models and toys on a screen of 80 columns, read as a person would."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from screens import Person

from tinychat.commands.inspect import HOW_TO_READ_LENS
from tinychat.repl.render.heatmap import HOW_TO_READ_MAPS
from tinychat.repl.render.palette import THEMES
from tinychat.repl.render.results import HOW_TO_READ_BARS, HOW_TO_READ_BOTH, HOW_TO_READ_SURPRISAL
from tinychat.store.models import find_model

CTRL_L, ESCAPE, ENTER = "\x0c", "\x1b", "\r"
WHITE = 231
"""Number of white among the 256 colours of a terminal."""


def runs(person: Person, line: str, wanted: str | Callable[[str], bool]) -> list[str]:
    """Run a command on an empty screen, and return the lines of what it shows."""
    person.type(CTRL_L, line, ENTER)

    def is_shown(lines: list[str]) -> bool:
        text = "\n".join(lines)
        begin = text.partition(f" {line}\n")[2]
        return (wanted in begin if isinstance(wanted, str) else wanted(begin)) and bool(re.search("\n[›¶→]\n", text))

    lines = person.sees(is_shown)
    first = next(index for index, shown in enumerate(lines) if shown.endswith(f" {line}"))
    return lines[first + 1 : max(index for index, shown in enumerate(lines) if shown in ("›", "¶", "→"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prompt"),
    [("smalltalk", "hello there"), ("tales", "Once upon a time"), ("translate", "Nobody knows the answer.")],
)
def test_the_pictures_of_each_bundled_model_say_something_and_how_to_read_them(
    home: Path, name: str, prompt: str
) -> None:
    person = Person(find_model(name), home, TINYCHAT_TEST_TORCH="1", TINYCHAT_THEME="light")
    person.sees(lambda lines: any(line in ("›", "¶", "→") for line in lines))
    person.type("/seed 7", ENTER, "/max-tokens 40", ENTER)
    person.sees(lambda lines: any("→ 40" in line for line in lines))
    runs(person, prompt, " · stop: ")
    person.type(CTRL_L, "/why", ENTER)
    lines = person.sees(HOW_TO_READ_BARS)
    place = next(re.match(r"token (\d+) of (\d+) · rank .* · surprisal [\d.]+ bits · ", line) for line in lines[1:3])
    assert place is not None
    assert place[1] != place[2]  # the last token of each answer is one that nobody wonders about
    assert any(re.search("before sampling +after (temp|all settings)", line) for line in lines)
    person.type(ESCAPE)
    lines = runs(person, "/color", "perplexity ")
    both = "upper bars" in "\n".join(lines)
    assert (HOW_TO_READ_BOTH if both else HOW_TO_READ_SURPRISAL) in lines
    assert both == (name != "translate")
    lines = runs(person, "/lens", HOW_TO_READ_LENS)
    first = next(line for line in lines if line.startswith("embeddings"))
    share = re.search(r"([\d.]+) %", first)
    assert share is not None
    assert float(share[1]) < 50
    assert not any(line.endswith("…") and not line.endswith(" · …") for line in lines)
    # Maps of six layers do not fit on a screen of 24 lines.
    lines = runs(person, "/attention 1" if name == "smalltalk" else "/attention", HOW_TO_READ_MAPS)
    assert any("→" in line for line in lines[1:]) == (name == "translate")
    assert THEMES["light"].heat[0] == WHITE
    assert f"8;5;{WHITE}".encode() in person.raw
    for command in ("why", "color", "lens", "attention", "tokens", "steps"):
        lines = runs(person, f"/help {command}", "/" + command)
        body = lines[lines.index("") + 1 :]
        assert len([line for line in body if line.startswith("  ")]) == 3
    person.kill()


@pytest.mark.slow
def test_notices_wrap_at_words_and_pieces_are_whole(sit_down: Callable[..., Person]) -> None:
    person = sit_down(columns=44)
    lines = runs(person, "/set num_predict 9", "max-tokens?")
    assert lines == ["there is no setting 'num_predict'", "did you mean max-tokens?"]
    lines = runs(person, "/train --resume nothing --minutes 1", "runs: ")
    assert lines == ["there is no run 'nothing'", "runs: none yet"]
    lines = runs(person, "/top-k x", "none, not 'x'")
    assert lines == ["top-k takes a whole number from 1 to 2^53", "or none, not 'x'"]
    lines = runs(person, "/tokens hello ä", "tokens for")
    assert lines[0] == r"'he' 256  'llo' 273  ' ' 220  '\xc3' 127"
    assert lines[1:] == [
        r"'\xa4' 97",
        "5 tokens for 7 characters · each piece",
        "stands before its id in the vocabulary",
    ]
