"""Records of generation (tokens of an answer) and of training (events of a run).

Both are streams that end with exactly one record that gives the reason; user interfaces differ only in how they display
them. Training events are also lines of JSON: in a run's `events.jsonl`, and on stdout with `--json`.
"""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args

from tinychat.textutil import json_line, percent
from tinychat.untrusted import replace_surrogates

# --- generation --------------------------------------------------------------------------------------------------

FinishReason = Literal["end", "length", "stop", "interrupted"]


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """One of the most likely tokens at a position, with its log-probability (nats, before temperature and filters)."""

    id: int
    text: str
    logprob: float


class AvoidedText(NamedTuple):
    """A text with a banned one in it, which was drawn, and drawn again."""

    text: str
    id: int
    """Of its first token."""
    probability: float
    """Probability of being drawn, after temperature and filters."""


class Token(NamedTuple):
    """One token of an answer; a tuple, since thousands are created per second."""

    id: int
    text: str
    """Text that it adds to the answer; empty while a character is incomplete. The texts, joined, are the answer."""
    logprob: float
    """Log-probability in nats, before temperature and filters."""
    seconds: float
    """Time since the answer began."""
    top: tuple[TopLogprob, ...] = ()
    """The most likely tokens at its position, if requested."""
    avoided: tuple[AvoidedText, ...] = ()
    """Texts that were drawn here before it."""
    replaced: int | None = None
    """Number of tokens at the end of the prompt that it replaces, of whose text only the rest is new: see
    `token_healing`. None if the prompt was not looked at; so for all tokens but the first."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Message to the user, in one line; not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """Change of the sampling settings during an answer: the tokens that follow use the new ones, as in `temp 1.3`."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerStart:
    """Start of the answer of a model or checkpoint, given by name, if several answer one prompt."""

    name: str


class ChoiceProbability(NamedTuple):
    """One of the texts that an answer may be."""

    text: str
    model: float
    """Probability under the model, among the choices."""
    probability: float
    """Probability of being drawn, after temperature and filters."""


@dataclass(frozen=True, slots=True)
class ChoiceProbabilities:
    """The texts that an answer may be, the likeliest under the model first."""

    choices: tuple[ChoiceProbability, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The probabilities in words; those of being drawn too if they are others."""
        model = " · ".join(f"{one.text} {percent(one.model)}" for one in self.choices)
        drawn = " · ".join(f"{one.text} {percent(one.probability)}" for one in self.choices)
        return (f"choices: {model}",) if drawn == model else (f"choices: {model}", f"as sampled: {drawn}")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The answers that the best was chosen from, best first: texts, and the mean log-probability of their tokens."""

    answers: tuple[tuple[str, float], ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The log-probabilities in words."""
        (_, best), (_, second), *_, (_, worst) = (*self.answers, self.answers[-1])
        others = f"{second:.2f} to {worst:.2f}" if len(self.answers) > 2 else f"{second:.2f}"
        return (f"best of {len(self.answers)}: log-probability {best:.2f} per token, the others {others}",)


@dataclass(frozen=True, slots=True)
class Finished:
    """Last record of an answer, with the number of tokens shown, the duration and the random seed, set or drawn."""

    reason: FinishReason
    tokens: int
    seconds: float
    seed: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


Record = Token | Notice | SettingsChanged | AnswerStart | ChoiceProbabilities | Candidates | Finished


# --- training ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    """Plan of a run, reported before training starts."""

    lines: tuple[str, ...]
    """Summary of the plan, for display."""
    parameters: int
    tokens: int
    """Number of training tokens."""
    steps: int | None
    seconds: float | None
    """Time limit; None if the number of steps ends the run, which is None otherwise."""
    device: str
    memory: int
    """Estimated memory in bytes."""
    epochs: float | None = None
    """None if the length of the run is not given in epochs."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """Progress of training, reported every few steps."""

    step: int
    progress: float
    """Completed fraction of the run, from 0 to 1."""
    loss: float
    """Training loss in nats per token, averaged since the last event."""
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    seconds: float
    """Training time so far, including before a resume."""
    remaining: float
    """Estimated remaining time in seconds."""
    steps: int
    """Total number of steps, estimated if a time limit ends the run."""
    memory: int = 0
    """Bytes used by the trainer's process, or peak bytes allocated on a GPU; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Evaluation during training on one fixed part of a split, `val` or `train`, or on all of a short one.

    The loss is in nats per token. The measure of the model, over the whole split, is that of `Ended`; if this one is
    over a part, it is comparable with the others of its run alone.
    """

    step: int
    loss: float
    perplexity: float
    bits_per_character: float
    best: bool
    """Whether the loss is the lowest so far, so that these weights are kept as the best."""
    split: str = "val"
    seconds: float = 0.0
    training_seconds: float = 0.0
    """Training time before the evaluation, which took `seconds`."""
    accuracy: float | None = None
    """Fraction of tokens that were the model's most likely token."""
    epoch: int | None = None
    """Epoch that ends with this step; None if none does."""
    tokens: int = 0
    """Number of tokens that the loss is the mean of."""
    is_part: bool = False
    """Whether these are only a part of the split."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Text generated by the model from a prompt."""

    step: int
    prompt: str
    text: str
    is_continuation: bool = True
    """Whether the text continues the prompt; otherwise it is a reply or a translation."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written to disk."""

    step: int


@dataclass(frozen=True, slots=True)
class Noticed:
    """Message to the user, in one line."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Last event of a run that produced a model, in `folder`. All losses are in nats per token."""

    reason: Literal["done", "stopped"]
    step: int
    loss: float
    """Loss of the best weights, those of `best_step`, on the whole of `split`: the one measure of the model."""
    perplexity: float
    bits_per_character: float
    seconds: float
    """Training time, including before a resume."""
    folder: str
    samples: tuple[str, ...] = ()
    """Texts generated by the best weights, one for each of `prompts`."""
    split: str = "val"
    """Split that `loss` is measured on; `train` if the text is too short for a validation split."""
    tokens: int = 0
    """Number of its tokens, all of which `loss` is the mean of."""
    best_step: int | None = None
    training_loss: float | None = None
    """Loss of the best weights on a part of the training split."""
    part_tokens: int = 0
    """Number of tokens of the part of `split` that is evaluated during training, maybe all of them."""
    best_part_loss: float | None = None
    last_part_loss: float | None = None
    """Losses of the best and of the last weights on that part."""
    last_training_loss: float | None = None
    """Mean training loss of the last steps, with dropout."""
    overfits_since: int | None = None
    """Step after which the validation loss rose while the training loss fell."""
    copied: str = ""
    """Longest span of the samples that occurs verbatim in the training text."""
    copied_position: float = 0.0
    """Its position in the training text, from 0 to 1."""
    copied_searched: float = 0.0
    """Fraction of the training text that was searched."""
    start_seconds: float = 0.0
    """Time from the command to the first step; of the last resume, if there was one."""
    step_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    """Part of `seconds` spent in evaluations, as `step_seconds` in steps."""
    accuracy: float | None = None
    """Fraction of tokens that were the most likely token under the best weights."""
    prompts: tuple[str, ...] = ()
    mixture: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of a model with n-grams, for `layers`, `counts` and `matches`: the mean share, and the loss and accuracy alone;
    of matches, the fraction of tokens with one and how often it is right. Empty without n-grams."""
    mixture_tokens: int = 0
    """Number of tokens of `split` that these are of."""
    start: str = ""
    """Name of the model that the run started from, if any."""
    start_loss: float | None = None
    """Loss of that model on `split`; `best_step` is 0 if no step made it lower, so that its weights are kept."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Last event of a run that failed; its checkpoints remain."""

    problem: str
    remedy: str = ""
    is_mistake: bool = False
    """Whether its recipe or its text is to blame: a run without a checkpoint is then removed."""
    is_stopped: bool = False
    """Whether it was stopped before its first new step, and nothing went wrong."""


Event = Planned | Stepped | Evaluated | Sampled | Saved | Noticed | Ended | Failed

EVENTS: dict[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}
"""Training events by name, as in the key `event` of their JSON."""


def to_json(event: Event) -> str:
    """Serialize an event as a line of JSON without the newline: `{"event": "stepped", "step": 10, …}`."""
    values = {"event": type(event).__name__.lower()} | dataclasses.asdict(event)
    return replace_surrogates(json_line(values))  # of names of files and of fields


def from_json(line: str) -> Event:
    """Parse an event from a line of JSON; unknown fields, of other versions, are ignored.

    Raises:
        ValueError: If the line is not an event.
        TypeError: If it lacks a field, or the value of one.
    """
    try:
        values: Any = json.loads(line)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(values, dict):
        raise ValueError(f"no event: {line[:80]!r}")
    kind = EVENTS.get(values.pop("event", ""))
    if kind is None:
        raise ValueError(f"no event: {line[:80]!r}")
    fields = [field for field in dataclasses.fields(kind) if field.name in values]
    for one in fields:
        value, types = values[one.name], get_args(one.type) or (one.type,)
        if (value is None and NoneType not in types) or (isinstance(value, str) and {int, float} & {*types}):
            raise TypeError(f"{one.name} is {value!r}")
    known = {field.name: values[field.name] for field in fields}
    arguments: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    return kind(**arguments)


@dataclass
class LineReader:
    """Reads the complete lines of a file that another process may still be writing."""

    path: Path
    position: int = 0
    """Position in the file up to which it was read, in bytes."""
    _rest: bytes = field(default=b"", repr=False)

    def lines(self) -> list[bytes]:
        """Return the lines written since the last call; an incomplete one is returned by a later call."""
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
        """Yield the events written since the last call; lines that are not events are skipped."""
        for line in self.lines():
            try:
                event = from_json(line.decode("utf-8"))
            except (ValueError, TypeError):
                continue
            yield event
