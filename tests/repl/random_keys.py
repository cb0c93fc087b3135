"""What somebody who presses keys at random does next."""

import random
from collections.abc import Callable, Mapping

from screens import CURSOR_KEYS

from tinychat.commands import COMMANDS
from tinychat.settings import SETTINGS

ENTER, ESCAPE, CTRL_C, CTRL_L = "\r", "\x1b", "\x03", "\x0c"

TEXTS = (
    "count", "lines", "temp", "wide", "escape", "fail", "hello there", "//slash", "help", '"quoted', "a\\ b", "-1",
    "x" * 300, "你好吗", "e\u0301a\u0308o\u0302\u0323", "שלום עולם", "مرحبا", "👩\u200d👩\u200d👧 👍🏽",
    "\u202eback", "ｗｉｄｅ", "\u0301", "한국어",
)  # fmt: skip
OFTEN = (9, 5, 3, 3)
"""how often the first of them are chosen; the others once"""
VALUES = (
    "", "0", "1", "2", "3", "-1", "0.5", "1.5", "99", "1e3", "nan", "none", "auto", "hot", "on", "parrot", "smalltalk",
    "hello there", "你好", "talk.json", "talk.html", "talk.svg", "talk.md", "nowhere/talk.json", ".", "'", '"a b"',
    "\\n", "temperature=0.2,0.8,1.4", "top-p=0.5,1 hi", "model=parrot,smalltalk", "temperature=0.1", "greedy", "a=b,c",
)  # fmt: skip
LIVE_KEYS = (*CURSOR_KEYS.values(), " ", " ", "g", "[", "]", "?")
EDITING_KEYS = (
    *"abgqsep \t\x7f\x01\x02\x05\x06\x07\x0b\x0e\x10\x13\x14\x15\x17\x19\x1f\n",
    *CURSOR_KEYS.values(), "\x1b[Z", "\x1b[H", "\x1b[F", "\x1b[3~", "\x1b[5~", "\x1b[1;5C", "\x1bOP", "\x1b[15~",
    "\x1bb", "\x1bf", "\x1bd", "\x1b.", "\x1b<", "\x1b\x7f", "\x1b", "\x1b[", "\x1b[I", "\x1b[<0;3;3M", "\x1bOS\x1bOS",
)  # fmt: skip
LEFT_OUT = ("quit", "train")
"""commands that are not typed at random"""

Choice = Callable[[random.Random], str]


def prompt(chosen: random.Random) -> str:
    weights = [*OFTEN, *[1] * (len(TEXTS) - len(OFTEN))]
    return " ".join(chosen.choices(TEXTS, weights, k=chosen.choice((1, 1, 2)))) + ENTER


def words(chosen: random.Random) -> str:
    return chosen.choice(TEXTS)[:20]


def command(chosen: random.Random) -> str:
    """A line that begins with a command: as its example says, or with anything behind it."""
    one = COMMANDS[chosen.choice([name for name in COMMANDS if name not in LEFT_OUT])]
    if one.example and chosen.random() < 0.4:
        return one.example + ENTER
    values = [chosen.choice((*VALUES, *SETTINGS)) for _ in range(chosen.choice((0, 1, 1, 2)))]
    return " ".join([f"/{chosen.choice(one.names)}", *values]) + ENTER


def completion(chosen: random.Random) -> str:
    name = chosen.choice(list(COMMANDS))
    begun = f"/{name[: chosen.randint(0, len(name))]}" + chosen.choice(("", " ", " t", " model=", " --"))
    return begun + "\t" * chosen.randint(1, 3) + chosen.choice(("", ENTER, CURSOR_KEYS["down"], CURSOR_KEYS["up"]))


def paste(chosen: random.Random) -> str:
    lines = chosen.choices(TEXTS, k=chosen.randint(1, 8))
    return "\x1b[200~" + chosen.choice("\r\n").join(lines) + "\x1b[201~" + chosen.choice(("", ENTER))


def search(chosen: random.Random) -> str:
    found = chosen.choice(("o", "ell", "/s", "你", "nothing"))
    return f"\x12{found}" + chosen.choice(("", "\x12", ESCAPE, ENTER, CTRL_C))


def block(chosen: random.Random) -> str:
    return ENTER.join(['"""', *chosen.choices(TEXTS, k=2), chosen.choice(('"""', ""))]) + ENTER


CHOICES: Mapping[Choice, int] = {
    prompt: 14,
    words: 6,
    command: 22,
    completion: 5,
    paste: 3,
    search: 2,
    block: 1,
    lambda chosen: chosen.choice(LIVE_KEYS): 30,
    lambda chosen: chosen.choice(EDITING_KEYS): 16,
    lambda chosen: chosen.choice((ESCAPE, CTRL_C)): 6,
    lambda chosen: "\x18\x05": 1,  # Ctrl-X Ctrl-E: the editor
    lambda chosen: CTRL_L: 1,
}
"""What is done next, and how often."""
