"""What a command comes back with: plain data, which a face draws or acts on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from tinychat.evaluate.shannon_game import Game
from tinychat.events import Finished, Record
from tinychat.model.diagram import Diagram
from tinychat.session.session import Session
from tinychat.store.runs import RunFolder
from tinychat.textutil import count


@dataclass(frozen=True)
class Message:
    """Lines that answer the command, and lines beside the point."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A setting has another value now; both as a person would type them."""

    name: str
    old: str
    new: str

    @property
    def text(self) -> str:
        """`temperature 0.8 → 1.2`."""
        return f"{self.name} {self.old} → {self.new}" if self.old != self.new else f"{self.name} is {self.new} already"


@dataclass(frozen=True)
class Table:
    """Rows under column heads; the columns in `right` are figures."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    right: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bar:
    """One bar: its length is `share`, from 0 to 1; `after` is what became of that, 0 where it was cut."""

    label: str
    share: float
    marked: bool = False
    after: float | None = None


@dataclass(frozen=True)
class Bars:
    """Shares as bars, under a title; `where` is the text before, at and behind the place that they are about."""

    title: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()
    where: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True)
class Walk:
    """Places of an answer that can be looked at one after the other; in each, something else can be chosen.

    Args:
        place: to begin with, from 0.
        count: of places.
        at: what stands at a place.
        choose: goes on from a place with what one of its bars stands for.
    """

    index: int
    count: int
    at: Callable[[int], Bars]
    choose: "Callable[[int, int], Answer]"


@dataclass(frozen=True)
class OutlineRow:
    """A node of a tree: the lines that lead to it, whether one stands there, and whether it leads there."""

    prefix: str
    text: str
    is_here: bool
    is_on_path: bool


@dataclass(frozen=True)
class Outline:
    """A tree, a row for each of its nodes."""

    rows: tuple[OutlineRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shaded:
    """A text in pieces, each with its surprise: the bits that it takes, −log₂ of its probability; None: not known.

    `entropies` are, for each token, the bits that were open before it.
    """

    pieces: tuple[tuple[str, float | None], ...]
    notes: tuple[str, ...] = ()
    entropies: tuple[float, ...] = ()


@dataclass(frozen=True)
class LossCurve:
    """The losses of a run (nats per token) by steps or minutes, each in that order; `split` is what was evaluated."""

    name: str
    training: tuple[tuple[float, float], ...]
    validation: tuple[tuple[float, float], ...]
    split: str = "val"


@dataclass(frozen=True)
class Plot:
    """Loss curves over each other, by `steps` or `minutes`; `out` is the picture to write in the place of a drawing."""

    curves: tuple[LossCurve, ...]
    unit: str = "steps"
    out: Path | None = None


@dataclass(frozen=True)
class Architecture:
    """What a model is made of; not `is_sized`: its sizes are not known yet."""

    title: str
    diagram: Diagram
    notes: tuple[str, ...] = ()
    is_sized: bool = True


@dataclass(frozen=True)
class HeatMap:
    """Shares, from 0 to 1, of what rows give to columns; a row is as long as the columns that it may look at.

    The rows are the newest, and where these are the columns too, the last one of each is its own. Labels from `marked`
    on are those that matter most.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float, ...], ...]
    marked: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SmallMap:
    """A heat map to be drawn small: a caption in the place of labels."""

    caption: str
    cells: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class HeatMaps:
    """Small maps in a grid; a single row or column of them may be folded."""

    title: str
    rows: tuple[tuple[SmallMap, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Play:
    """A guessing game; `start` is handed a function that says whether to stop, and makes the text to guess."""

    start: Callable[[Callable[[], bool]], Game]


@dataclass(frozen=True)
class Help:
    """The overview: of each theme its commands, with a few words on each; without them its name says enough."""

    themes: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Answer:
    """The model speaks.

    `start` is handed a function that says whether to stop, and gives the records. `before` is the end of what has been
    said already, where this goes on from it.
    """

    start: Callable[[Callable[[], bool]], Iterator[Record]]
    before: str = ""


@dataclass(frozen=True)
class Answers:
    """The model speaks in several ways at once, each under its head, until one is chosen.

    `start` is as that of `Answer`; each record comes with the place of its answer.
    """

    heads: tuple[str, ...]
    start: Callable[[Callable[[], bool]], Iterator[tuple[int, Record]]]


@dataclass(frozen=True)
class Watch:
    """A training run to be watched; `process` is its trainer where it was started here."""

    run: RunFolder
    process: "Popen[bytes] | None" = None


@dataclass(frozen=True)
class EditPrompt:
    """A text to be put into the prompt, for the person to change."""

    text: str


@dataclass(frozen=True)
class Export:
    """The conversation is to be written to a file, as its ending says."""

    path: Path


@dataclass(frozen=True)
class Leave:
    """The session is over."""


Drawn = Message | Change | Table | Bars | Outline | Shaded | HeatMap | HeatMaps | Architecture | Help
"""What is drawn and done with."""

Result = Drawn | Walk | Plot | Play | Answer | Answers | Watch | EditPrompt | Export | Leave


_REASONS = {"length": "max tokens", "stop": "stop text", "interrupted": "interrupted"}
_ENDS = {"chat": "end of turn"}
"""by the mode of the model; others end their texts"""


def summary(finished: Finished, session: Session, *, show_seed: bool) -> str:
    """Return how an answer ended: `14 tokens · 2,310 tok/s · stop: end of turn`."""
    words = [count(finished.tokens, "token")]
    if finished.tokens and finished.tokens_per_second:
        words.append(f"{finished.tokens_per_second:,.0f} tok/s")
    mode = session.info.mode if session.info else ""
    words.append("stop: " + _REASONS.get(finished.reason, _ENDS.get(mode, "end of text")))
    if session.runs.speaker:
        words.append(session.runs.speaker)
    elif show_seed:  # weights on their way are gone tomorrow: their seed makes nothing again
        words.append(f"seed {finished.seed}")
    return " · ".join(words)
