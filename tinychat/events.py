"""What happens, as records: the tokens of an answer, and the steps of a training run.

Both are streams that end with exactly one record that says why. Faces differ in how they draw these and in nothing
else. Training events are also lines of JSON: the same in a run's `events.jsonl`, on stdout with `--json`, and in
the dashboard.
"""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

# --- an answer ---------------------------------------------------------------------------------------------------

FinishReason = Literal["end", "length", "stop", "interrupted"]


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """A token that could have come at some place, and its log-probability there (nats, before any filter)."""

    id: int
    text: str
    logprob: float


class Token(NamedTuple):
    """One token of an answer; a tuple, as thousands of them are made in a second.

    `text` is what this token adds to the answer: the pieces joined are the decoded whole, so that a token which
    holds only a part of a character has an empty one. `logprob` is in nats, under the model itself, before
    temperature and filters. `top_logprobs` are the likeliest tokens at this place, when they were asked for.
    `seconds` is the time since the answer began.
    """

    id: int
    text: str
    logprob: float
    seconds: float
    top_logprobs: tuple[TopLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the person should know, in one line; never part of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """From here on an answer is made with other settings: `temp 1.3`; never part of it."""

    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """What comes now is another answer, by this name: where one prompt is answered several times."""

    name: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last record of an answer: why it ended, and how to make it again.

    `tokens` counts the tokens shown, `seconds` runs from the start of the answer to its end, `seed` is the one used,
    set or drawn.
    """

    reason: FinishReason
    tokens: int
    seconds: float
    seed: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


Record = Token | Notice | Changed | Part | Finished


# --- a training run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    """What will be trained, said before it starts; `lines` are for a person, the rest for a program."""

    lines: tuple[str, ...]
    parameters: int
    tokens: int
    """of the training part"""
    steps: int | None
    """None: by the clock"""
    seconds: float | None
    """None: by steps"""
    device: str
    memory: int
    """bytes, estimated"""
    epochs: float | None = None
    """None: the length is said otherwise"""


@dataclass(frozen=True, slots=True)
class Stepped:
    """Some steps are done. Losses are in nats per token, averaged since the last event; `progress` is from 0 to 1."""

    step: int
    progress: float
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    seconds: float
    """of training so far, over all sittings"""
    remaining: float
    """seconds, estimated"""
    steps: int
    """in all, estimated where the clock decides"""
    memory: int = 0
    """bytes: of the trainer's process, or the most that was allocated on a GPU; 0: not known"""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The loss over a whole split, in nats per token."""

    step: int
    """of the weights: at the end of a run those kept are measured again, which may be earlier ones"""
    loss: float
    perplexity: float
    bits_per_character: float
    best: bool
    """the lowest so far: these weights are kept, unless better ones come"""
    split: str = "val"
    seconds: float = 0.0
    """that it took"""
    trained: float = 0.0
    """seconds of training before it"""
    accuracy: float | None = None
    """the share of the tokens that the model found likeliest"""
    epoch: int | None = None
    """the epoch that ends with this step; None: none does"""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the model says at this step to `prompt`."""

    step: int
    prompt: str
    text: str
    goes_on: bool = True
    """whether the text goes on from the prompt; else it answers it"""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint is whole on disk."""

    step: int


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something that the person should know, in one line."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event: the model is in `folder`. Losses are in nats per token, those of the weights kept first."""

    reason: Literal["done", "stopped"]
    step: int
    loss: float
    perplexity: float
    bits_per_character: float
    seconds: float
    """of training, over all sittings"""
    folder: str
    samples: tuple[str, ...] = ()
    split: str = "val"
    """what `loss` is measured on; `train` where the text is too short to keep a part"""
    best_step: int | None = None
    """of the weights kept"""
    training_loss: float | None = None
    """of the weights kept, over a part of the text that was trained on"""
    last_loss: float | None = None
    """of the last weights, over the part of `split` that is looked at on the way"""
    last_training_loss: float | None = None
    """mean over the last steps, as they were trained: with dropout"""
    overfits_since: int | None = None
    """the step from which validation loss rose while that of training fell"""
    copied: str = ""
    """the longest span of the samples that stands word for word in the text that was trained on"""
    copied_position: float = 0.0
    """where it stands there, from 0 to 1"""
    copied_searched: float = 0.0
    """the share of that text that was looked at"""
    start_seconds: float = 0.0
    """from the command to the first step of the last sitting"""
    step_seconds: float = 0.0
    """of `seconds`, in steps"""
    evaluation_seconds: float = 0.0
    """of `seconds`, in evaluations"""
    accuracy: float | None = None
    """of the weights kept: the share of the tokens that they found likeliest"""
    prompts: tuple[str, ...] = ()
    """of each sample"""


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a run that could not go on; what was saved before stays."""

    problem: str
    remedy: str = ""


Event = Planned | Stepped | Evaluated | Sampled | Saved | Noticed | Ended | Failed

EVENTS: dict[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def to_json(event: Event) -> str:
    """One line of JSON, without its newline: `{"event": "stepped", "step": 10, …}`."""
    fields = {name.name: getattr(event, name.name) for name in dataclasses.fields(event)}
    return json.dumps({"event": type(event).__name__.lower(), **fields}, ensure_ascii=False)


def from_json(line: str) -> Event:
    """The event that a line holds; fields of newer versions are passed over.

    Raises:
        ValueError: it is no event.
    """
    given: dict[str, Any] = json.loads(line)
    kind = EVENTS.get(given.pop("event", ""))
    if kind is None:
        raise ValueError(f"no event: {line[:80]!r}")
    known = {name.name for name in dataclasses.fields(kind)}
    values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return kind(**{name: value for name, value in values.items() if name in known})


@dataclass
class LineReader:
    """Hands out the whole lines of a file that another process may still be writing."""

    path: Path
    position: int = 0
    _rest: bytes = field(default=b"", repr=False)

    def lines(self) -> list[bytes]:
        """The lines written since the last call; an unfinished one waits for the next call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                data = file.read()
        except FileNotFoundError:
            return []
        self.position += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def events(self) -> Iterator[Event]:
        """The events written since the last call."""
        for line in self.lines():
            try:
                event = from_json(line.decode("utf-8"))
            except (ValueError, TypeError):  # damaged, or of a newer version
                continue
            yield event
