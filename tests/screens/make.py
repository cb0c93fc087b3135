"""Makes the README's pictures, anew: `make screens`.

Somebody sits at a pseudo-terminal of 80×24, in which the real `tinychat` runs; each picture is what is on their screen
then, with its colours. The text that is trained on is made by the project's own programs.
"""

import io
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.text import Text

from tinychat.repl.exporting import as_svg

HERE = Path(__file__).parent
COLUMNS, ROWS = 80, 24
CORPUS = HERE.parent.parent / "data" / "make.py"
ENTER, UP = "\r", "\x1b[A"
PATIENCE = 600.0
NAMES = {"brown": "yellow", "brightbrown": "bright_yellow", "default": "default"}
"""pyte's names of colours, where they are not rich's"""


class Screen(pyte.Screen):
    """A screen that shows what is dim in grey."""

    def select_graphic_rendition(self, *attributes: int, **facts: bool) -> None:
        super().select_graphic_rendition(*(90 if one == 2 else one for one in attributes), **facts)


class Sitter:
    """Somebody at a terminal.

    Args:
        arguments: of `tinychat`.
        home: where models and runs are kept.
    """

    def __init__(self, home: Path, *arguments: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TINYCHAT_", "NO_COLOR"))}
        env = kept | {"TINYCHAT_HOME": str(home), "TERM": "xterm-256color", "INPUTRC": os.devnull}
        command = [sys.executable, "-m", "tinychat", *arguments]
        self._process = pexpect.spawn(
            command[0], command[1:], env=env, cwd=str(home), dimensions=(ROWS, COLUMNS), timeout=PATIENCE
        )
        self.screen = Screen(COLUMNS, ROWS)
        self.screen.write_process_input = self.type  # type: ignore[assignment, method-assign]
        self._stream = pyte.ByteStream(self.screen)

    def type(self, keys: str) -> None:
        """Presses keys."""
        self._process.send(keys)

    def wait(self, condition: Callable[[str], bool]) -> None:
        """Until the screen shows what is wanted."""
        end = time.monotonic() + PATIENCE
        while not condition("\n".join(line.rstrip() for line in self.screen.display)):
            if time.monotonic() > end:
                raise TimeoutError("\n".join(self.screen.display))
            try:
                self._stream.feed(self._process.read_nonblocking(256, 0.2))
            except pexpect.TIMEOUT:
                continue

    def say(self, line: str) -> None:
        """Types a line, and waits until it has been dealt with."""
        self.type(line + ENTER)
        self.wait(lambda text: f"› {line}\n" in text and "\n›\n" in text.rpartition(f"› {line}\n")[2])

    def picture(self, name: str) -> None:
        """Writes what is on screen."""
        console = Console(
            record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True, color_system="truecolor",
            highlight=False, markup=False, emoji=False, legacy_windows=False,
        )  # fmt: skip
        console.print(Text("\n").join(self._line(row) for row in range(ROWS)))
        HERE.joinpath(f"{name}.svg").write_text(as_svg(console, "tinychat"), encoding="utf-8")

    def leave(self) -> None:
        """Ends the program."""
        self._process.close(force=True)

    def _line(self, row: int) -> Text:
        """A row, in runs of one style."""
        cells = [self.screen.buffer[row][column] for column in range(COLUMNS)]
        runs = itertools.groupby(cells, key=lambda cell: (cell.bold, cell.reverse, cell.fg))
        parts = [("".join(cell.data for cell in run), style) for style, run in runs]
        return Text.assemble(*((text, _style(*style)) for text, style in parts))


def _style(bold: bool, reverse: bool, colour: str) -> str:
    return f"{'bold ' * bold}{'reverse ' * reverse}{_colour(colour)}"


def _colour(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    if name.startswith("bright"):
        return f"bright_{name.removeprefix('bright')}"
    return f"#{name}" if len(name) == 6 and all(char in "0123456789abcdef" for char in name) else name


def first_minute(home: Path) -> None:
    """An answer, another whose temperature is changed while it prints, and its last line."""
    sitter = Sitter(home, "--seed", "4")
    sitter.wait(lambda text: "\n›\n" in text)
    sitter.say("hello there")
    sitter.say("/slow 20")  # tokens a second, so that there is time for a key
    sitter.type("tell me a story" + ENTER)
    sitter.wait(lambda text: " who " in text.rpartition("tell me a story")[2])
    sitter.type(UP + UP + UP)
    sitter.wait(lambda text: "⟨temp" in text and text.count("stop: ") == 2 and "\n›\n" in text)
    sitter.picture("first-minute")
    sitter.leave()


def why(home: Path) -> None:
    """What else a token could have been, and what the settings made of the odds."""
    sitter = Sitter(home, "--seed", "8")
    sitter.wait(lambda text: "\n›\n" in text)
    sitter.say("tell me a story")
    sitter.type("/why 5" + ENTER)
    sitter.wait(lambda text: "any other key ends" in text)
    sitter.picture("why")
    sitter.leave()


def training(home: Path) -> None:
    """The dashboard, towards the end of a training run."""
    make = [sys.executable, str(CORPUS), "smalltalk", "--count", "4000", "--seed", "1", "--out", str(home / "corpus")]
    subprocess.run(make, check=True, capture_output=True)
    (home / "corpus" / "train.jsonl").rename(home / "corpus.jsonl")
    sitter = Sitter(home)
    sitter.wait(lambda text: "\n›\n" in text)
    sitter.type("/train corpus.jsonl --mode chat --steps 200 --n-layer 2 --d-model 96 --context 128" + ENTER)
    sitter.wait(lambda text: any(f" {share} % ·" in text for share in range(80, 99)) and "sample at" in text)
    sitter.picture("training")
    sitter.leave()


def main() -> None:
    """Makes the pictures that are named, or all."""
    pictures = {"first-minute": first_minute, "why": why, "training": training}
    for name in sys.argv[1:] or pictures:
        with tempfile.TemporaryDirectory(prefix="tinychat-screens-", ignore_cleanup_errors=True) as home:
            compile_kernel = [sys.executable, "-m", "tinychat.generate.native.library"]
            subprocess.run(compile_kernel, env=os.environ | {"TINYCHAT_HOME": home}, check=True)
            pictures[name](Path(home))
        print(HERE / f"{name}.svg")  # noqa: T201


if __name__ == "__main__":
    main()
