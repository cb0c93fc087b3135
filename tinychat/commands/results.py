"""Results of commands: plain data, which the REPL draws or acts on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from tinychat.corpus.types import Mode
from tinychat.evaluate.shannon_game import Game
from tinychat.events import Finished, Record
from tinychat.generate.computation import Computation
from tinychat.model.config import Diagram
from tinychat.session.lesson import Block, LessonLine
from tinychat.session.lesson import Question as LessonQuestion
from tinychat.session.open_model import ShouldStop
from tinychat.session.session import Session
from tinychat.store.runs import RunFolder
from tinychat.textutil import count

MARKS: Mapping[Mode, str] = {"chat": "›", "completion": "¶", "translation": "→"}
"""The mark before a prompt, for each mode."""
PLAIN_MARKS: Mapping[Mode, str] = {"chat": ">", "completion": "text>", "translation": "translate>"}
"""The marks of plain mode: ASCII, as a screen reader may speak them."""


@dataclass(frozen=True)
class Message:
    """Lines of text, or paragraphs under a title if there is one, and notes of lesser weight."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Turns:
    """Turns of a conversation, each a prompt after the mark of a mode, and its answer; and notes of lesser weight."""

    mode: Mode
    turns: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A changed setting, with the old and the new value as a person would type them."""

    name: str
    old: str
    new: str

    @property
    def text(self) -> str:
        """`temperature 0.8 → 1.2`."""
        return f"{self.name} {self.old} → {self.new}" if self.old != self.new else f"{self.name} is {self.new} already"


@dataclass(frozen=True)
class Table:
    """Rows under column headings; the columns whose indices are in `right` hold figures and are aligned right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    right: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    wraps: bool = False
    """Whether the last column wraps, or goes below its row, where the screen is too narrow, instead of being cut."""


@dataclass(frozen=True)
class Bar:
    """A bar as long as `fraction`, from 0 to 1."""

    label: str
    fraction: float
    marked: bool = False
    after: float | None = None
    """Fraction after temperature and filters: 0 if it was cut, None if there is nothing to compare."""


@dataclass(frozen=True)
class BarChart:
    """Bars under a title; `context` is the text before, at and after the token that they describe."""

    title: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()
    context: tuple[str, str, str] = ("", "", "")
    headings: tuple[str, str] = ("", "")
    """Of the bars and of those after temperature and filters, if they have any."""


@dataclass(frozen=True)
class TokenBrowser:
    """The tokens of an answer to browse, beginning with that at `index`, with the alternatives to each."""

    index: int
    count: int
    bars_at: Callable[[int], BarChart]
    """Returns the alternatives to the token at an index."""
    branch_from: "Callable[[int, int], StreamAnswer]"
    """Continues from the token at an index, replaced by the alternative at a second one."""


@dataclass(frozen=True)
class Steps:
    """A computation to walk through, one operation after the other."""

    computation: Computation


@dataclass(frozen=True)
class TreeRow:
    """A node of a tree after the branch lines in `prefix`; the path ends at the current node."""

    prefix: str
    text: str
    is_here: bool
    is_on_path: bool


@dataclass(frozen=True)
class Tree:
    """A tree, with a row for each node."""

    rows: tuple[TreeRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShadedText:
    """A text in pieces, each with its surprisal in bits (None if unknown).

    The entropies, in bits, are those of the predictions of the tokens of each piece with a surprisal, or none at all.
    """

    pieces: tuple[tuple[str, float | None], ...]
    notes: tuple[str, ...] = ()
    entropies: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Pieces:
    """Short texts beside each other, none of them broken, and notes."""

    pieces: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LossCurve:
    """The losses of a run as (x, nats per token), x being steps or minutes; `split` is the evaluated one."""

    name: str
    training: tuple[tuple[float, float], ...]
    validation: tuple[tuple[float, float], ...]
    split: str = "val"


@dataclass(frozen=True)
class Plot:
    """Loss curves in one plot, by `steps` or `minutes`; `out` is a picture to write instead of drawing it."""

    curves: tuple[LossCurve, ...]
    unit: str = "steps"
    out: Path | None = None


@dataclass(frozen=True)
class Architecture:
    """The architecture of a model; `is_sized` is False if its sizes are not yet known."""

    title: str
    diagram: Diagram
    notes: tuple[str, ...] = ()
    is_sized: bool = True


@dataclass(frozen=True)
class HeatMap:
    """Attention weights from 0 to 1, each row a query and each column a key; rows are as long as their causal mask.

    Rows may be the newest queries only. Rows from `marked` on belong to the answer.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float, ...], ...]
    marked: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SmallMap:
    """A heat map to draw small, with a caption instead of labels."""

    caption: str
    cells: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class HeatMaps:
    """Small heat maps in a grid; a single row or column of them may be wrapped."""

    title: str
    rows: tuple[tuple[SmallMap, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LessonPage:
    """Part of a lesson until it waits again: for a line to run, for an answer, or, with None, for Enter."""

    blocks: tuple[Block, ...] = ()
    due: LessonLine | LessonQuestion | None = None
    heading: tuple[str, str] | None = None
    """The title of the step that begins, and its place: `step 2 of 8`."""
    verdict: str = ""
    """Verdict on an answer to a question, before the blocks."""
    is_right: bool = True
    """Whether the verdict is one on a right answer."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuessingGame:
    """A guessing game; `start` makes the text to guess."""

    start: Callable[[], Game]


@dataclass(frozen=True)
class Help:
    """The overview: for each category its commands, each with a few words or none."""

    categories: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class StreamAnswer:
    """An answer to stream; `before` is the last line of the text that it continues, if any."""

    start: Callable[[ShouldStop], Iterator[Record]]
    before: str = ""


@dataclass(frozen=True)
class ParallelAnswers:
    """Several answers to stream side by side, each under its label; records come with the index of their answer."""

    labels: tuple[str, ...]
    start: Callable[[ShouldStop], Iterator[tuple[int, Record]]]


@dataclass(frozen=True)
class WatchRun:
    """A training run to watch; `process` is its trainer if this session started it."""

    run: RunFolder
    process: "Popen[bytes] | None" = None


YES_OR_NO = " [y/N] "
"""Text after a question."""


@dataclass(frozen=True)
class Question:
    """A question to be answered with yes or no."""

    text: str
    act: "Callable[[], Result]"
    """Does what is asked, after a yes."""
    refused: str
    """Message after any other answer."""

    @staticmethod
    def is_yes(answer: str) -> bool:
        return answer.strip().lower() in ("y", "yes")


@dataclass(frozen=True)
class EditPrompt:
    """A text to put into the prompt for editing."""

    text: str


@dataclass(frozen=True)
class Export:
    """The conversation, to be written to a file in the format of its suffix."""

    path: Path


@dataclass(frozen=True)
class Quit:
    """The end of the session."""


Drawable = (
    Message
    | Turns
    | Change
    | Table
    | BarChart
    | Tree
    | ShadedText
    | Pieces
    | HeatMap
    | HeatMaps
    | Architecture
    | Help
    | LessonPage
)
"""Results that only need drawing."""

Result = (
    Drawable
    | TokenBrowser
    | Steps
    | Plot
    | GuessingGame
    | StreamAnswer
    | ParallelAnswers
    | WatchRun
    | Question
    | EditPrompt
    | Export
    | Quit
)

_REASONS = {"length": "max tokens", "stop": "stop text", "interrupted": "interrupted"}


def summary(finished: Finished, session: Session, *, show_seed: bool) -> str:
    """Summarize a finished answer: `14 tokens · 2,310 tok/s · stop: end of turn`."""
    words = [count(finished.tokens, "token")]
    if finished.tokens and finished.tokens_per_second:
        words.append(f"{finished.tokens_per_second:,.0f} tok/s")
    regular_end = "end of turn" if session.info and session.info.mode == "chat" else "end of text"
    words.append("stop: " + _REASONS.get(finished.reason, regular_end))
    if session.runs.training_label:
        words.append(session.runs.training_label)
    elif show_seed:  # the weights of a run in training change: a seed reproduces nothing
        words.append(f"seed {finished.seed}")
    return " · ".join(words)
