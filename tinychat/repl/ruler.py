"""The ruler: counts the tokens of the text being typed and marks characters that are not in the vocabulary.

Short texts are measured synchronously. The first text of a prompt, which may have to load the tokenizer, and long texts
are measured in a thread, so that typing never waits.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from tinychat.commands.registry import prompt_of
from tinychat.errors import TinychatError
from tinychat.repl.keys import strip_block
from tinychat.repl.render.terminal import SEPARATOR
from tinychat.session.session import Session
from tinychat.textutil import count

SYNC_LIMIT = 500
"""Maximum number of characters to measure synchronously, in about half a millisecond."""
MAX_SHOWN = 4
"""Maximum number of unknown characters to show."""


@dataclass(frozen=True)
class Measure:
    """The size of a prompt in tokens."""

    tokens: int
    """Number of tokens of the text itself."""
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
            shown = sorted(self.unknown)[:MAX_SHOWN]
            more = " …" if len(self.unknown) > MAX_SHOWN else ""
            words.append("unknown: " + " ".join(repr(char)[1:-1] if char != "'" else char for char in shown) + more)
        return SEPARATOR.join(words)


class Ruler(Processor):
    """Measures the text being typed and highlights its unknown characters.

    Args:
        session: the session that the prompt belongs to.
        on_measured: called from the measuring thread when it has finished.
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
        """Return the line with its unknown characters highlighted."""
        fragments = transformation_input.fragments
        measure = self.update(transformation_input.document.text)
        if measure is None or not measure.unknown:
            return Transformation(fragments)
        unknown = re.compile(f"([{re.escape(''.join(measure.unknown))}]+)")
        return Transformation(
            [
                (f"{style} class:unknown" if index % 2 else style, part)
                for style, text, *_ in fragments
                for index, part in enumerate(unknown.split(text))
            ]
        )

    def _measure(self, measurement: "_Measurement", text: str) -> None:
        try:
            measurement.measure_text(text)
        except TinychatError:  # a damaged tokenizer is reported when the prompt is sent
            measurement.text = text
        measurement.is_busy = False
        self._on_measured()


class _Measurement:
    """Measures the texts of one prompt, for which it caches the tokens around it and the known characters."""

    def __init__(self, session: Session) -> None:
        self.text = ""
        self.measure: Measure | None = None
        self.is_ready = self.is_busy = False
        self._session = session
        self._num_around = 0
        self._known: set[str] = set()
        self._unknown: set[str] = set()

    def measure_text(self, text: str) -> None:
        """Set `text` and `measure`.

        Raises:
            TinychatError: If the tokenizer of the model cannot be loaded.
        """
        session = self._session
        encoder = session.model.prompt_encoder
        tokenizer = session.model.source_tokenizer
        if not self.is_ready:
            self._num_around = _tokens_around(session)
        new = set(text) - self._known - self._unknown
        self._unknown.update(tokenizer.unknown("".join(new)))
        self._known |= new - self._unknown
        count = len(tokenizer.encode_array(text))
        total = self._num_around + count
        room = encoder.room(session.settings.current.max_tokens)
        drops_turns = encoder.template is not None and bool(session.turns) and total > room
        self.measure = Measure(count, encoder.context_length - total, drops_turns, frozenset(self._unknown & set(text)))
        self.text, self.is_ready = text, True


def _tokens_around(session: Session) -> int:
    """Return the number of tokens around the next prompt: of the conversation, and special tokens."""
    encoder = session.model.prompt_encoder
    if (source := encoder.encode_source("")) is not None:
        return len(source)
    if encoder.template is None:
        return len(encoder.encode_text(""))
    before = [(turn.prompt, turn.answer) for turn in session.turns]
    return len(encoder.encode("", before, session.settings.current.max_tokens))
