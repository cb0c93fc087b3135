"""Test the REPL with random keys, commands, pastes and window sizes while text streams.

    python tests/repl/stress.py --keys 10000 --seed 1 --size 80x24

    --keys N      total number of key presses and lines
    --seed N      seed of the choices; when keys arrive still depends on the machine
    --size CxR    initial columns and rows
    --model NAME  use this model, and sometimes train a tiny one (default: a scripted model that repeats its prompt)
    --term NAME   value of TERM; `dumb` means no control sequences
    --no-color    set NO_COLOR

After every few dozen keys, Ctrl-C must bring back an empty prompt. Then a prompt must be answered, the answer on screen
must equal that of the transcript, and prompts typed while an answer prints must all be answered in order.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGINT

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import pexpect
import pyte
from pyte.modes import DECAWM, DECTCEM
from screens import CURSOR_KEYS, Person, go_to_next_row_for_wide
from scripted import make_model

from tinychat.commands import COMMANDS
from tinychat.commands.results import MARKS, PLAIN_MARKS
from tinychat.config.settings import SETTINGS
from tinychat.errors import UsageError
from tinychat.store.models import find_model, read_tokenizer
from tinychat.tokenizer.tokenizer import Tokenizer

KEYS_BETWEEN_CHECKS = 80
IDLE_SECONDS = 0.15
"""seconds without output after which the program counts as idle"""
PATIENCE = 60.0
"""seconds within which the prompt must return"""
CTRL_C_INTERVAL = 1.0
"""seconds between repeated presses of Ctrl-C until it does"""
MAX_REPORTED_ACTIONS = 80
"""number of actions reported on failure"""
ERROR_OUTPUT = (b"Traceback (most recent", b"unexpected ")
"""output that indicates an error"""

SIZES = ((80, 24), (200, 50), (40, 10), (100, 16), (66, 24), (19, 5), (120, 8))
TRAINING = "text.txt --steps 30 --tokenizer char --n-layer 1 --n-head 1 --d-model 16 --context-length 16 --batch-size 8"


# --- random actions ---

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
IN_LESSON = re.compile(r"step \d+ of \d+ │ ")
"""what the toolbar shows during a lesson"""

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


# --- the person who takes them ---


class Screen(pyte.Screen):
    """A screen that wraps wide characters as terminals do, and keeps characters after zero-width ones."""

    def draw(self, data: str) -> None:
        for char in data:
            go_to_next_row_for_wide(self, char)
            super().draw(char)


class Stress:
    """A simulated person who presses random keys.

    Args:
        folder: an empty folder for all files.
        seed: seed of the choices.
        columns: initial width of the screen.
        rows: initial height of the screen.
        model: name of a real model; None for a scripted one that repeats its prompt.
        environment: environment variables to set.
    """

    def __init__(
        self,
        folder: Path,
        seed: int = 1,
        columns: int = 80,
        rows: int = 24,
        model: str | None = None,
        **environment: str,
    ) -> None:
        self.rng = random.Random(seed)
        self.size = (columns, rows)
        self.actions: deque[str] = deque(maxlen=MAX_REPORTED_ACTIONS)
        self.restarts = 0
        self._home, self._uses_real_model = folder / "home", model is not None
        self._model = find_model(model) if model else make_model(self._home / "models")
        self._tokenizer: Tokenizer = read_tokenizer(self._model)
        self._is_dumb = environment.get("TERM") == "dumb"
        self._marks = (PLAIN_MARKS if self._is_dumb else MARKS).values()
        self._environment = {"EDITOR": "true", "PYTHONFAULTHANDLER": "1", "TINYCHAT_TEST_DELAY": "0.001"} | environment
        if self._uses_real_model:
            self._environment |= {"TINYCHAT_TEST_TORCH": "1"}
        self._folder = folder / "here"
        self._folder.mkdir()
        (self._folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
        self._start()

    # --- actions ------------------------------------------------------------------------------------------------

    def run(self, keys: int) -> None:
        """Press so many keys with regular checks, then check that the program can be left."""
        try:
            self.check()
            for number in range(1, keys + 1):
                self._act()
                if number % KEYS_BETWEEN_CHECKS == 0 or number == keys:
                    self.check()
            self._leave()
        finally:
            self._person.kill()

    def _act(self) -> None:
        chance = self.rng.random()
        if chance < 0.01:
            self._resize(*self.rng.choice(SIZES))
        elif chance < 0.002 * self._uses_real_model + 0.01:
            self._type(f"/train {TRAINING}{self.rng.choice(('', ' &'))}{ENTER}")
        else:
            (choice,) = self.rng.choices(list(CHOICES), CHOICES.values())
            self._type(choice(self.rng))
        self._read(self.rng.choice((0.0, 0.001, 0.005, 0.02)))

    def _type(self, *keys: str) -> None:
        for one in keys:
            self.actions.append(repr(one))
            self._person.process.send(one)

    def _resize(self, columns: int, rows: int) -> None:
        self.actions.append(f"resize {columns}x{rows}")
        self._person.resize(columns, rows)

    def _read(self, seconds: float) -> bool:
        """Read output for the given time, and return whether there was any."""
        end, has_output = time.monotonic() + seconds, False
        while True:
            try:
                data = self._person.process.read_nonblocking(65536, max(0.0, end - time.monotonic()))
            except pexpect.TIMEOUT:
                return has_output
            except pexpect.EOF:
                self._handle_exit()
                return True
            self._person._feed(data)
            has_output = True
            recent = self._person.raw[-len(data) - 40 :]
            self._require(not any(word in recent for word in ERROR_OUTPUT), "an error appeared")
            if time.monotonic() >= end:
                return has_output

    def _start(self) -> None:
        here = Path.cwd()
        os.chdir(self._folder)
        try:
            self._person = Person(self._model, self._home, *self.size, **self._environment)
        finally:
            os.chdir(here)
        person = self._person
        person.screen = Screen(*self.size)
        person.screen.write_process_input = person.type  # type: ignore[assignment, method-assign]
        person._stream = pyte.ByteStream(person.screen)
        self._wait(self._is_idle)

    def _handle_exit(self) -> None:
        """Verify that the program was left by `/quit`, possibly completed or recalled, and restart it."""
        code, signal = self._person.exit_code(), self._person.process.signalstatus
        left = code in (0, 130) or signal == SIGINT  # a key may have followed
        self._require(left and self._says_quit(), f"it ended with {code}, by signal {signal}")
        self.restarts += 1
        self.actions.append("(restarted)")
        self._start()

    def _says_quit(self) -> bool:
        history = (self._home / "history").read_text(encoding="utf-8", errors="replace")
        _, *lines = history.rstrip("\n").rpartition("\n# ")[2].split("\n")  # a time stamp, then lines prefixed with +
        try:
            return COMMANDS.split("\n".join(line.removeprefix("+") for line in lines))[0] is COMMANDS["quit"]
        except UsageError:
            return False

    # --- invariants ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Return to an idle prompt and verify all invariants."""
        end = time.monotonic() + PATIENCE
        self._interrupt()
        while not (self._is_idle() and self._settles(CTRL_C_INTERVAL)):  # each Ctrl-C ends one pending answer
            self._require(time.monotonic() < end, "the prompt did not come back")
            self._interrupt()
        if (self._person.screen.columns, self._person.screen.lines) != self.size:
            self._resize(*self.size)
        if self._is_dumb:  # nothing clears a dumb terminal after a resize
            self._person.screen.reset()
        self._person.raw = b""
        self._submit(f"/reset{ENTER}/model {self._model}{ENTER}/clear")
        self._answers_a_prompt()
        if not self._uses_real_model:
            self._answers_what_is_typed_ahead()
        self.actions.clear()

    def _answers_a_prompt(self) -> None:
        prompt = f"the end 你好 {self.rng.randint(0, 10**6)} e\u0301"
        start = len(self._person.raw)
        self._type(CTRL_L, f"{prompt}{ENTER}")
        self._wait(lambda: self._ended(start) == 1 and self._is_idle())
        lines = self._person.lines
        (turn,) = self._save_transcript()
        self._require(turn["prompt"] == prompt, f"{turn['prompt']!r} is not {prompt!r}")
        self._require(plain(turn["answer"]) in plain("".join(lines)), f"{turn['answer']!r} is not on screen")
        if not self._uses_real_model:
            self._is_repeated(turn)

    def _answers_what_is_typed_ahead(self) -> None:
        words = self.rng.sample(("one", "two 你", "e\u0301", "חם"), 3)
        typed_ahead = [f"{word} {self.rng.randint(0, 10**6)}" for word in words]
        self._submit(f"/max 1000000{ENTER}/clear")
        start = len(self._person.raw)
        self._type(f"flood{ENTER}")
        self._wait(lambda: len(self._person.raw) > start + 1000)
        for text in typed_ahead:
            self._type("".join(self.rng.choices(tuple(CURSOR_KEYS.values()), k=2)))
            self._read(0.005)
            self._type(f"{text}{ENTER}")
        self._type(ESCAPE)
        self._wait(lambda: self._ended(start) == 1 + len(typed_ahead) and self._is_idle())
        first, *others = self._save_transcript()
        prompts = [first["prompt"], *(turn["prompt"] for turn in others)]
        self._require(prompts == ["flood", *typed_ahead], f"{prompts} is not what was typed")
        self._require(first["answer"].startswith(" hello there hello"), f"{first['answer']!r} is all there is")
        for turn in others:
            self._is_repeated(turn)

    def _is_repeated(self, turn: dict[str, str]) -> None:
        expected = self._tokenizer.decode(self._tokenizer.encode(f"you said: {turn['prompt']}"))
        self._require(turn["answer"] == expected, f"{turn['answer']!r} is not {expected!r}")

    def _save_transcript(self) -> list[dict[str, str]]:
        path = self._folder / "end.json"
        path.unlink(missing_ok=True)
        self._submit("/save end.json")
        self._require(path.exists(), "nothing was saved")
        turns: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["turns"]
        return turns

    def _submit(self, line: str) -> None:
        self._type(f"{line}{ENTER}")
        self._require(self._settles(PATIENCE), "it hangs")

    def _interrupt(self) -> None:
        self._type(CTRL_C)
        self._read(2 * IDLE_SECONDS)  # pending input is discarded
        if any(IN_LESSON.search(line) for line in self._person.lines):  # its hint stands behind the prompt
            self._type(f"/lesson off{ENTER}")
            self._read(2 * IDLE_SECONDS)

    def _settles(self, seconds: float) -> bool:
        """Return whether everything typed so far is processed in time, leaving an empty prompt."""
        name = f"/nothing-{self.rng.randint(0, 10**9)}"
        self._type(f"{name}{ENTER}")
        end = time.monotonic() + seconds
        while f"no command {name}".encode() not in self._person.raw or not self._is_idle():
            if time.monotonic() > end:
                return False
            self._read(0.01)
        return True

    def _ended(self, start: int) -> int:
        """Return the number of answers that have ended since byte `start` of the output."""
        return self._person.raw[start:].count("· stop: ".encode())

    def _wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self._require(time.monotonic() < end, "it hangs")
            self._read(0.01)

    def _is_idle(self) -> bool:
        """Return whether the program is idle, with a visible, unstyled cursor behind an empty prompt."""
        if self._read(IDLE_SECONDS):
            return False
        screen = self._person.screen
        line = self._person.lines[min(screen.cursor.y, screen.lines - 1)]
        if line not in self._marks or screen.cursor.x != len(line) + 1:
            return False
        self._require(screen.margins is None, f"only {screen.margins} scrolls")
        self._require(DECTCEM in screen.mode and not screen.cursor.hidden, "the cursor is hidden")
        self._require(DECAWM in screen.mode, "lines do not wrap")
        self._require(screen.cursor.attrs == screen.default_char, f"a style is left: {screen.cursor.attrs}")
        return True

    def _leave(self) -> None:
        self._person.process.send(f"/quit{ENTER}")
        self._require(self._person.wait_for_exit() == 0, "it did not leave well")

    def _require(self, condition: bool, otherwise: str) -> None:
        assert condition, self._report(otherwise)

    def _report(self, problem: str) -> str:
        lines = "\n".join(f"|{line}" for line in self._person.lines)
        return f"{problem}\nafter {' '.join(self.actions)}\n{lines}\n{self._person.raw[-300:]!r}"


def plain(text: str) -> str:
    """Remove spaces, since lines are wrapped, and normalize to NFC."""
    return "".join(unicodedata.normalize("NFC", text).split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--model")
    parser.add_argument("--term", default="xterm-256color")
    parser.add_argument("--no-color", action="store_true")
    args = parser.parse_args()
    columns, rows = map(int, args.size.split("x"))
    environment = {"TERM": args.term} | ({"NO_COLOR": "1"} if args.no_color else {})
    with tempfile.TemporaryDirectory(prefix="tinychat-stress-", ignore_cleanup_errors=True) as folder:
        start = time.monotonic()
        Stress(Path(folder), args.seed, columns, rows, args.model, **environment).run(args.keys)
        print(f"{args.keys:,} keys in {time.monotonic() - start:.0f} s: all is well")  # noqa: T201


if __name__ == "__main__":
    main()
