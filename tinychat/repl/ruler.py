"""The ruler: how many tokens the text being typed takes, what it leaves of the context, and what the model lacks.

A short text is measured as it is typed. The first one of a prompt, which may have to read the tokenizer, and long ones
are measured in a thread: typing waits for neither.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from tinychat.commands.registry import prompt_of
from tinychat.errors import TinychatError
from tinychat.repl.keys import unblock
from tinychat.repl.render.terminal import SEPARATOR
from tinychat.session.session import Session
from tinychat.textutil import count

QUICK = 500
"""characters, at most, that are measured at once: half a millisecond"""
NAMED = 4
"""of the characters that the vocabulary lacks, how many are named"""


@dataclass(frozen=True)
class Measure:
    """What a text takes.

    `tokens` are its own; `left` is what it leaves of the context, with the conversation before it, below 0 where it is
    too long; `forgets` says whether the oldest turns make room for it; `lacking` are the characters that have no token.
    """

    tokens: int
    left: int
    forgets: bool = False
    lacking: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """`12 tokens · 1,830 left`."""
        words = [count(self.tokens, "token")]
        if self.forgets:
            words.append("the oldest turns make room")
        else:
            words.append(f"{self.left:,} left" if self.left >= 0 else f"{-self.left:,} too many")
        if self.lacking:
            named = sorted(self.lacking)[:NAMED]
            more = " …" if len(self.lacking) > NAMED else ""
            words.append("unknown: " + " ".join(repr(char)[1:-1] if char != "'" else char for char in named) + more)
        return SEPARATOR.join(words)


class Ruler(Processor):
    """Measures the text being typed, and marks what the vocabulary lacks in it.

    Args:
        on_measured: called from a thread when a measure has come that was waited for.
    """

    def __init__(self, session: Session, on_measured: Callable[[], object]) -> None:
        self._session, self._on_measured = session, on_measured
        self.begin()

    def begin(self) -> None:
        """A new prompt: the model may be another, and more has been said."""
        self._now = _Measuring(self._session)

    def look(self, typed: str) -> Measure | None:
        """The measure of what is typed, or the one before, while it comes; None for a command, or nothing."""
        now, text = self._now, prompt_of(unblock(typed))
        if not text or self._session.info is None:
            return None
        if text != now.text and not now.is_busy:
            if now.is_ready and len(text) <= QUICK:
                now.measure_text(text)
            else:
                now.is_busy = True
                threading.Thread(target=self._measure, args=(now, text), name="ruler", daemon=True).start()
        return now.measure

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """A line with the characters that the vocabulary lacks marked."""
        fragments = transformation_input.fragments
        measure = self.look(transformation_input.document.text)
        if measure is None or not measure.lacking:
            return Transformation(fragments)
        marked = re.compile(f"([{re.escape(''.join(measure.lacking))}]+)")
        return Transformation(
            [
                (f"{style} class:lacking" if index % 2 else style, part)
                for style, text, *_ in fragments
                for index, part in enumerate(marked.split(text))
            ]
        )

    def _measure(self, now: "_Measuring", text: str) -> None:
        try:
            now.measure_text(text)
        except TinychatError:  # a damaged tokenizer is told of when the prompt is sent
            now.text = text
        now.is_busy = False
        self._on_measured()


class _Measuring:
    """Measures texts for one prompt: what is said before it, and which characters are known, is found out once."""

    def __init__(self, session: Session) -> None:
        self.text = ""
        self.measure: Measure | None = None
        self.is_ready = self.is_busy = False
        self._session = session
        self._around = 0
        self._known: set[str] = set()
        self._lacking: set[str] = set()

    def measure_text(self, text: str) -> None:
        """Sets `text` and its `measure`.

        Raises:
            TinychatError: the model has no tokenizer that can be read.
        """
        session = self._session
        encoder = session.model.prompt_encoder
        tokenizer = session.model.source_tokenizer
        if not self.is_ready:
            self._around = _tokens_around(session)
        new = set(text) - self._known - self._lacking
        self._lacking.update(tokenizer.unknown("".join(new)))
        self._known |= new - self._lacking
        count = len(tokenizer.encode_array(text))
        total = self._around + count
        most = encoder.room(session.settings.current.max_tokens)
        forgets = encoder.template is not None and bool(session.turns) and total > most
        self.measure = Measure(count, encoder.context_length - total, forgets, frozenset(self._lacking & set(text)))
        self.text, self.is_ready = text, True


def _tokens_around(session: Session) -> int:
    """How many tokens the next prompt stands among: those of the conversation, and those that mark who speaks."""
    encoder = session.model.prompt_encoder
    if (source := encoder.encode_source("")) is not None:
        return len(source)
    if encoder.template is None:
        return len(encoder.encode_text(""))
    before = [(turn.prompt, turn.answer) for turn in session.turns]
    return len(encoder.encode("", before, session.settings.current.max_tokens))
