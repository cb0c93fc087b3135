"""The toolbar: the settings in force, the newest background run, and the ruler, which counts the prompt's tokens."""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.utils import get_cwidth

from tinychat.commands.registry import for_the_prompt, prompt_of
from tinychat.config.settings import SAMPLING, SETTINGS, describe_sampling
from tinychat.events import Failed
from tinychat.repl.completion import strip_block
from tinychat.repl.render.palette import DIM
from tinychat.repl.render.terminal import SEPARATOR, Terminal
from tinychat.session.run_monitor import BackgroundRun
from tinychat.session.session import Session
from tinychat.textutil import count, duration

RUN_SEPARATOR = " │ "
"""Separator of a background run and the settings on the toolbar."""
TOOLBAR_GAP = 2
"""Minimum number of cells between the left and the right part of the toolbar."""
SYNC_LIMIT = 500
"""Maximum number of characters to measure synchronously, in about half a millisecond."""
MAX_SHOWN = 4
"""Maximum number of unknown characters to show."""


def toolbar(session: Session) -> str:
    """Return `smalltalk · temp 0.8 · top-p 0.95 · sample · max 256 · seed –`, after the newest background run."""
    current = session.settings.current
    words = [session.info.name if session.info else "no model", *describe_sampling(current)]
    for name, setting in SETTINGS.items():
        if name not in SAMPLING and setting.toolbar and (word := setting.toolbar(getattr(current, name))):
            words.append(word)
    lessons = [f"{session.lesson.lesson.title}, {session.lesson.position}"] if session.lesson else []
    return RUN_SEPARATOR.join([*lessons, *map(describe_run, session.runs.all[-1:]), SEPARATOR.join(words)])


def style_toolbar(line: str, session: Session) -> FormattedText:
    """Return the toolbar with the lesson, the run and the model's name standing out."""
    run, separator, settings = line.rpartition(RUN_SEPARATOR)
    name = f" {session.info.name}"[bool(run) :] if session.info else ""
    if not settings.startswith(name):
        return FormattedText([("", line)])
    return FormattedText(
        [
            ("class:bottom-toolbar.run", run),
            ("", separator),
            ("class:bottom-toolbar.model", name),
            ("", settings.removeprefix(name)),
        ]
    )


def justify(left: str, right: str, width: int) -> str:
    """Return a line of `width` cells with text on both sides, dropping the last parts of `left` that do not fit."""
    parts = left.split(SEPARATOR)
    while parts and get_cwidth(SEPARATOR.join(parts)) + get_cwidth(right) + TOOLBAR_GAP > width:
        parts.pop()
    left = SEPARATOR.join(parts)
    return left + " " * max(0, width - get_cwidth(left) - get_cwidth(right)) + right


def describe_run(run: BackgroundRun) -> str:
    """Return `shakespeare trains: step 1,480/4,000 · loss 1.71 · 1:02 left`."""
    if (now := run.stepped) is None:
        return f"{run.run.name} is starting"
    step = f"{run.run.name} trains: step {now.step:,}/{now.steps:,}"
    return f"{step} · loss {now.loss:.2f} · {duration(now.remaining)} left"


def report_ended(runs: Sequence[BackgroundRun], session: Session, terminal: Terminal) -> None:
    """Write how runs ended and how to talk to their models."""
    for name, last in ((run.run.name, run.last) for run in runs):
        if isinstance(last, Failed):
            terminal.problem(f"{name}: {last.problem}", for_the_prompt(last.remedy))
        elif last is not None:
            is_open = session.info is not None and str(session.info.folder) == last.folder
            hint = "it answers now" if is_open else f"/model {name} talks to it"
            terminal.line(f"{name} is {last.reason}: step {last.step:,}, loss {last.loss:.3f} · {hint}")
            from tinychat.train.report import warnings

            for heading, text in warnings(last):
                terminal.line(f"{heading}: {text}", DIM)


# --- the ruler ---


@dataclass(frozen=True)
class Measure:
    """The size of a prompt in tokens."""

    tokens: int
    left: int
    """Number of tokens left in the context after the conversation and this text; negative if it is too long."""
    drops_turns: bool = False
    """Whether the oldest turns are dropped to make room for the text."""
    unknown: frozenset[str] = frozenset()
    """The characters without a token."""

    @property
    def text(self) -> str:
        """The measure in words: `12 tokens · 1,830 left`."""
        words = [count(self.tokens, "token")]
        if self.drops_turns:
            words.append("the oldest turns make room")
        else:
            words.append(f"{self.left:,} left" if self.left >= 0 else f"{-self.left:,} too many")
        if self.unknown:
            shown = [repr(char)[1:-1] if char != "'" else char for char in sorted(self.unknown)[:MAX_SHOWN]]
            more = ["…"] if len(self.unknown) > MAX_SHOWN else []
            words.append(" ".join(["unknown:", *shown, *more]))
        return SEPARATOR.join(words)


class Ruler(Processor):
    """Counts the tokens of the text being typed, and highlights characters that are not in the vocabulary.

    Short texts are measured synchronously. The first text of a prompt, which may have to load the tokenizer, and long
    texts are measured in a thread, so that typing never waits; it calls `on_measured` when it has finished.
    """

    def __init__(self, session: Session, on_measured: Callable[[], object]) -> None:
        self._session, self._on_measured = session, on_measured
        self.reset()

    def reset(self) -> None:
        """Start a new prompt: the model or the conversation may have changed."""
        self._measurement = _Measurement(self._session)

    def update(self, typed: str) -> Measure | None:
        """Return the measure of the text, or the last one while a thread measures; None for a command or no text."""
        current, text = self._measurement, prompt_of(strip_block(typed))
        if not text or self._session.info is None:
            return None
        if text != current.text and not current.is_busy:
            if current.is_ready and len(text) <= SYNC_LIMIT:
                current.measure_text(text)
            else:
                current.is_busy = True
                threading.Thread(target=self._measure, args=(current, text), name="ruler", daemon=True).start()
        return current.measure

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        measure = self.update(transformation_input.document.text)
        if measure is None or not measure.unknown:
            return Transformation(fragments)
        unknown = re.compile(f"([{re.escape(''.join(measure.unknown))}]+)")
        highlighted: StyleAndTextTuples = [
            (f"{style} class:unknown" if index % 2 else style, part)
            for style, text, *_ in fragments
            for index, part in enumerate(unknown.split(text))
        ]
        return Transformation(highlighted)

    def _measure(self, measurement: "_Measurement", text: str) -> None:
        try:
            measurement.measure_text(text)
        except Exception:  # whatever it is, such as a damaged tokenizer, is reported when the prompt is sent
            measurement.text = text
        measurement.is_busy = False
        self._on_measured()


class _Measurement:
    """Measures the texts of one prompt, for which it caches the tokens around it and the known characters."""

    def __init__(self, session: Session) -> None:
        self._session, self.text = session, ""
        self.measure: Measure | None = None
        self.is_ready = self.is_busy = False
        self._num_around = 0
        self._known: set[str] = set()
        self._unknown: set[str] = set()

    def measure_text(self, text: str) -> None:
        """Set `text` and `measure`; fail if the tokenizer of the model cannot be loaded."""
        session = self._session
        encoder, tokenizer = session.model.prompt_encoder, session.model.source_tokenizer
        if not self.is_ready:
            self._num_around = _tokens_around(session)
        new = set(text) - self._known - self._unknown
        self._unknown.update(tokenizer.unknown("".join(new)))
        self._known |= new - self._unknown
        tokens = len(tokenizer.encode_array(text))
        total = self._num_around + tokens
        room = encoder.room(session.settings.current.max_tokens)
        drops_turns = encoder.template is not None and bool(session.turns) and total > room
        unknown = frozenset(self._unknown & set(text))
        self.measure = Measure(tokens, encoder.context_length - total, drops_turns, unknown)
        self.text, self.is_ready = text, True


def _tokens_around(session: Session) -> int:
    """Return the number of tokens around the next prompt: of the conversation, and special tokens."""
    encoder = session.model.prompt_encoder
    if (source := encoder.encode_source("")) is not None:
        return len(source)
    if encoder.template is None:
        return len(encoder.encode_text(""))
    before = ((turn.prompt, turn.answer) for turn in reversed(session.turns))
    settings = session.settings.current
    return len(encoder.encode("", before, settings.max_tokens, settings.system))
