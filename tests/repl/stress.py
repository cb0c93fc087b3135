"""Random keys, commands, pastes and sizes of the window while text streams; the terminal is checked as it goes.

    python tests/repl/stress.py --keys 10000 --seed 1 --size 80x24

    --keys N      key presses and lines in all
    --seed N      of the choice; the moments at which keys arrive are the machine's
    --size CxR    columns and rows to begin with
    --model NAME  talk to this model in earnest, and train a tiny one now and then; else to one that repeats
    --term NAME   the terminal's name; `dumb` is one without control sequences
    --no-color    with NO_COLOR

After every few dozen keys Ctrl-C must bring back an empty prompt. Then a prompt must be answered, the answer on screen
must be that of the transcript, and prompts typed ahead while an answer prints must all be answered, in their order.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import unicodedata
from collections import deque
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import pexpect
import pyte
from pyte.modes import DECAWM, DECTCEM
from random_keys import CHOICES, CTRL_C, CTRL_L, ENTER, ESCAPE
from screens import CURSOR_KEYS, Person
from scripted import make_model
from wcwidth import wcwidth

from tinychat.commands import COMMANDS
from tinychat.errors import UsageError
from tinychat.repl.marks import MARKS, PLAIN_MARKS
from tinychat.store.models import find_model, read_tokenizer
from tinychat.tokenizer.tokenizer import Tokenizer

KEYS_BETWEEN_CHECKS = 80
SILENCE = 0.15
"""seconds without output after which the program is taken to wait"""
PATIENCE = 60.0
"""seconds in which the prompt must come back"""
PRESSING = 1.0
"""seconds from one Ctrl-C to the next until it does"""
REMEMBERED = 80
"""actions that are told when something goes wrong"""
NEVER = (b"Traceback (most recent", b"unexpected ")
"""what must not be written"""

SIZES = ((80, 24), (200, 50), (40, 10), (100, 16), (66, 24), (19, 5), (120, 8))
TRAINING = "text.txt --steps 30 --tokenizer char --n-layer 1 --n-head 1 --d-model 16 --context 16 --batch-size 8"


class Screen(pyte.Screen):
    """A screen that wraps wide characters as terminals do, and loses none behind one without width."""

    def draw(self, data: str) -> None:
        for char in data:
            if wcwidth(char) == 2 and self.cursor.x == self.columns - 1:
                super().draw(" ")
            super().draw(char)


class Stress:
    """Somebody who presses keys at random.

    Args:
        folder: an empty one, for all that comes to be.
        seed: of what is chosen.
        columns: of the screen to begin with.
        rows: likewise.
        model: the name of one that answers in earnest; None: one that repeats.
        environment: variables to set.
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
        self.chosen = random.Random(seed)
        self.size = (columns, rows)
        self.done: deque[str] = deque(maxlen=REMEMBERED)
        self.restarts = 0
        self._home, self._in_earnest = folder / "home", model is not None
        self._model = find_model(model) if model else make_model(self._home / "models")
        self._tokenizer: Tokenizer = read_tokenizer(self._model)
        self._is_dumb = environment.get("TERM") == "dumb"
        self._marks = (PLAIN_MARKS if self._is_dumb else MARKS).values()
        self._environment = {"EDITOR": "true", "PYTHONFAULTHANDLER": "1", "TINYCHAT_TEST_DELAY": "0.001"} | environment
        if self._in_earnest:
            self._environment |= {"TINYCHAT_TEST_TORCH": "1"}
        self._folder = folder / "here"
        self._folder.mkdir()
        (self._folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
        self._sit_down()

    # --- what is done --------------------------------------------------------------------------------------------

    def run(self, keys: int) -> None:
        """Presses so many keys, and checks; the last check is that it can be left."""
        try:
            self.check()
            for number in range(1, keys + 1):
                self._act()
                if number % KEYS_BETWEEN_CHECKS == 0 or number == keys:
                    self.check()
            self._leave()
        finally:
            self._person.is_gone()

    def _act(self) -> None:
        chance = self.chosen.random()
        if chance < 0.01:
            self._resize(*self.chosen.choice(SIZES))
        elif chance < 0.002 * self._in_earnest + 0.01:
            self._type(f"/train {TRAINING}{self.chosen.choice(('', ' &'))}{ENTER}")
        else:
            (choice,) = self.chosen.choices(list(CHOICES), CHOICES.values())
            self._type(choice(self.chosen))
        self._look(self.chosen.choice((0.0, 0.001, 0.005, 0.02)))

    def _type(self, *keys: str) -> None:
        for one in keys:
            self.done.append(repr(one))
            self._person.process.send(one)

    def _resize(self, columns: int, rows: int) -> None:
        self.done.append(f"resize {columns}x{rows}")
        self._person.resize(columns, rows)

    def _look(self, seconds: float) -> bool:
        """Takes in what is written within that time; whether there was something."""
        end, saw = time.monotonic() + seconds, False
        while True:
            try:
                data = self._person.process.read_nonblocking(65536, max(0.0, end - time.monotonic()))
            except pexpect.TIMEOUT:
                return saw
            except pexpect.EOF:
                self._came_to_an_end()
                return True
            self._person._take(data)
            saw = True
            recent = self._person.raw[-len(data) - 40 :]
            self._holds(not any(word in recent for word in NEVER), "something went wrong")
            if time.monotonic() >= end:
                return saw

    def _sit_down(self) -> None:
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
        self._wait(self._is_at_rest)

    def _came_to_an_end(self) -> None:
        """A completed or recalled `/quit` may have been sent: then somebody sits down anew."""
        code, signal = self._person.ended(), self._person.process.signalstatus
        left = code in (0, 130) or signal == SIGINT  # a key may have come after
        self._holds(left and self._says_quit(), f"it ended with {code}, by signal {signal}")
        self.restarts += 1
        self.done.append("(sat down again)")
        self._sit_down()

    def _says_quit(self) -> bool:
        history = (self._home / "history").read_text(encoding="utf-8", errors="replace")
        _, *lines = history.rstrip("\n").rpartition("\n# ")[2].split("\n")  # the time, then each line behind a +
        try:
            return COMMANDS.split("\n".join(line.removeprefix("+") for line in lines))[0] is COMMANDS["quit"]
        except UsageError:
            return False

    # --- what must hold ------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Comes to rest, and makes sure of everything."""
        end = time.monotonic() + PATIENCE
        self._break_off()
        while not (self._is_at_rest() and self._settles(PRESSING)):  # each ends one of the answers to what was typed
            self._holds(time.monotonic() < end, "the prompt did not come back")
            self._break_off()
        if (self._person.screen.columns, self._person.screen.lines) != self.size:
            self._resize(*self.size)
        if self._is_dumb:  # which nothing wipes once the size has changed
            self._person.screen.reset()
        self._person.raw = b""
        self._do(f"/reset{ENTER}/model {self._model}{ENTER}/clear")
        self._answers_a_prompt()
        if not self._in_earnest:
            self._answers_what_is_typed_ahead()
        self.done.clear()

    def _answers_a_prompt(self) -> None:
        asked = f"the end 你好 {self.chosen.randint(0, 10**6)} e\u0301"
        began = len(self._person.raw)
        self._type(CTRL_L, f"{asked}{ENTER}")
        self._wait(lambda: self._ended(began) == 1 and self._is_at_rest())
        lines = self._person.lines
        (turn,) = self._saved()
        self._holds(turn["prompt"] == asked, f"{turn['prompt']!r} is not {asked!r}")
        self._holds(plain(turn["answer"]) in plain("".join(lines)), f"{turn['answer']!r} is not on screen")
        if not self._in_earnest:
            self._is_repeated(turn)

    def _answers_what_is_typed_ahead(self) -> None:
        words = self.chosen.sample(("one", "two 你", "e\u0301", "חם"), 3)
        asked = [f"{word} {self.chosen.randint(0, 10**6)}" for word in words]
        self._do(f"/max 1000000{ENTER}/clear")
        began = len(self._person.raw)
        self._type(f"flood{ENTER}")
        self._wait(lambda: len(self._person.raw) > began + 1000)
        for text in asked:
            self._type("".join(self.chosen.choices(tuple(CURSOR_KEYS.values()), k=2)))
            self._look(0.005)
            self._type(f"{text}{ENTER}")
        self._type(ESCAPE)
        self._wait(lambda: self._ended(began) == 1 + len(asked) and self._is_at_rest())
        first, *others = self._saved()
        said = [first["prompt"], *(turn["prompt"] for turn in others)]
        self._holds(said == ["flood", *asked], f"{said} is not what was typed")
        self._holds(first["answer"].startswith(" hello there hello"), f"{first['answer']!r} is all there is")
        for turn in others:
            self._is_repeated(turn)

    def _is_repeated(self, turn: dict[str, str]) -> None:
        expected = self._tokenizer.decode(self._tokenizer.encode(f"you said: {turn['prompt']}"))
        self._holds(turn["answer"] == expected, f"{turn['answer']!r} is not {expected!r}")

    def _saved(self) -> list[dict[str, str]]:
        path = self._folder / "end.json"
        path.unlink(missing_ok=True)
        self._do("/save end.json")
        self._holds(path.exists(), "nothing was saved")
        turns: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["turns"]
        return turns

    def _do(self, line: str) -> None:
        self._type(f"{line}{ENTER}")
        self._holds(self._settles(PATIENCE), "it hangs")

    def _break_off(self) -> None:
        self._type(CTRL_C)
        self._look(2 * SILENCE)  # it throws away what is typed before it has been dealt with

    def _settles(self, seconds: float) -> bool:
        """Whether all that was typed so far is dealt with within that time, and the prompt is empty."""
        name = f"/nothing-{self.chosen.randint(0, 10**9)}"
        self._type(f"{name}{ENTER}")
        end = time.monotonic() + seconds
        while f"no command {name}".encode() not in self._person.raw or not self._is_at_rest():
            if time.monotonic() > end:
                return False
            self._look(0.01)
        return True

    def _ended(self, began: int) -> int:
        """How many answers have ended since."""
        return self._person.raw[began:].count("· stop: ".encode())

    def _wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self._holds(time.monotonic() < end, "it hangs")
            self._look(0.01)

    def _is_at_rest(self) -> bool:
        """Whether the cursor stands, seen and plain, behind an empty prompt, and nothing happens any more."""
        if self._look(SILENCE):
            return False
        screen = self._person.screen
        line = self._person.lines[min(screen.cursor.y, screen.lines - 1)]
        if line not in self._marks or screen.cursor.x != len(line) + 1:
            return False
        self._holds(screen.margins is None, f"only {screen.margins} scrolls")
        self._holds(DECTCEM in screen.mode and not screen.cursor.hidden, "the cursor is hidden")
        self._holds(DECAWM in screen.mode, "lines do not wrap")
        self._holds(screen.cursor.attrs == screen.default_char, f"a style is left: {screen.cursor.attrs}")
        return True

    def _leave(self) -> None:
        self._person.process.send(f"/quit{ENTER}")
        self._holds(self._person.leaves() == 0, "it did not leave well")

    def _holds(self, condition: bool, otherwise: str) -> None:
        assert condition, self._report(otherwise)

    def _report(self, problem: str) -> str:
        lines = "\n".join(f"|{line}" for line in self._person.lines)
        return f"{problem}\nafter {' '.join(self.done)}\n{lines}\n{self._person.raw[-300:]!r}"


def plain(text: str) -> str:
    """Without the spaces, for lines are wrapped."""
    return "".join(unicodedata.normalize("NFC", text).split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--model")
    parser.add_argument("--term", default="xterm-256color")
    parser.add_argument("--no-color", action="store_true")
    given = parser.parse_args()
    columns, rows = map(int, given.size.split("x"))
    environment = {"TERM": given.term} | ({"NO_COLOR": "1"} if given.no_color else {})
    with tempfile.TemporaryDirectory(prefix="tinychat-stress-", ignore_cleanup_errors=True) as folder:
        began = time.monotonic()
        Stress(Path(folder), given.seed, columns, rows, given.model, **environment).run(given.keys)
        print(f"{given.keys:,} keys in {time.monotonic() - began:.0f} s: all is well")  # noqa: T201


if __name__ == "__main__":
    main()
