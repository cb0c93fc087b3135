"""Random actions of a simulated person at the REPL."""

import random
from collections.abc import Callable, Mapping

from screens import CURSOR_KEYS

from tinychat.commands import COMMANDS
from tinychat.config.settings import SETTINGS

ENTER, ESCAPE, CTRL_C, CTRL_L = "\r", "\x1b", "\x03", "\x0c"

TEXTS = (
    "count", "lines", "temp", "wide", "escape", "fail", "hello there", "//slash", "help", '"quoted', "a\\ b", "-1",
    "x" * 300, "你好吗", "e\u0301a\u0308o\u0302\u0323", "שלום עולם", "مرحبا", "👩\u200d👩\u200d👧 👍🏽",
    "\u202eback", "ｗｉｄｅ", "\u0301", "한국어",
)  # fmt: skip
TEXT_WEIGHTS = (9, 5, 3, 3)
"""weights of the first texts; the others have weight 1"""
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
EXCLUDED = ("quit", "train")
"""commands that are never typed at random"""

Choice = Callable[[random.Random], str]


def prompt(rng: random.Random) -> str:
    weights = [*TEXT_WEIGHTS, *[1] * (len(TEXTS) - len(TEXT_WEIGHTS))]
    return " ".join(rng.choices(TEXTS, weights, k=rng.choice((1, 1, 2)))) + ENTER


def words(rng: random.Random) -> str:
    return rng.choice(TEXTS)[:20]


def command(rng: random.Random) -> str:
    """Return a line that begins with a command, either its example or with random arguments."""
    one = COMMANDS[rng.choice([name for name in COMMANDS if name not in EXCLUDED])]
    if one.example and rng.random() < 0.4:
        return one.example + ENTER
    values = [rng.choice((*VALUES, *SETTINGS)) for _ in range(rng.choice((0, 1, 1, 2)))]
    return " ".join([f"/{rng.choice(one.names)}", *values]) + ENTER


def completion(rng: random.Random) -> str:
    name = rng.choice(list(COMMANDS))
    begun = f"/{name[: rng.randint(0, len(name))]}" + rng.choice(("", " ", " t", " model=", " --"))
    return begun + "\t" * rng.randint(1, 3) + rng.choice(("", ENTER, CURSOR_KEYS["down"], CURSOR_KEYS["up"]))


def paste(rng: random.Random) -> str:
    lines = rng.choices(TEXTS, k=rng.randint(1, 8))
    return "\x1b[200~" + rng.choice("\r\n").join(lines) + "\x1b[201~" + rng.choice(("", ENTER))


def search(rng: random.Random) -> str:
    found = rng.choice(("o", "ell", "/s", "你", "nothing"))
    return f"\x12{found}" + rng.choice(("", "\x12", ESCAPE, ENTER, CTRL_C))


def block(rng: random.Random) -> str:
    return ENTER.join(['"""', *rng.choices(TEXTS, k=2), rng.choice(('"""', ""))]) + ENTER


CHOICES: Mapping[Choice, int] = {
    prompt: 14,
    words: 6,
    command: 22,
    completion: 5,
    paste: 3,
    search: 2,
    block: 1,
    lambda rng: rng.choice(LIVE_KEYS): 30,
    lambda rng: rng.choice(EDITING_KEYS): 16,
    lambda rng: rng.choice((ESCAPE, CTRL_C)): 6,
    lambda rng: "\x18\x05": 1,  # Ctrl-X Ctrl-E: the editor
    lambda rng: CTRL_L: 1,
}
"""random actions and their weights"""
