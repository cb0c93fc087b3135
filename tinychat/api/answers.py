"""Answers: finished ones, as records, and streams of tokens."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tinychat.config.settings import Settings
from tinychat.events import (
    Candidates,
    ChoiceProbabilities,
    ChoiceProbability,
    Finished,
    FinishReason,
    Notice,
    Record,
    Token,
)
from tinychat.generate import answer as generate_answer
from tinychat.session.conversation import Turn
from tinychat.textutil import count, escape_controls, shorten

MAX_SHOWN = 60
"""Maximum number of characters of a text in the representation of a record."""


@dataclass(frozen=True, repr=False)
class Answer:
    """An answer to a prompt. `str(answer)` is its text."""

    prompt: str
    text: str
    tokens: tuple[Token, ...]
    """Its tokens: `id`, `text`, `logprob` (nats, before temperature and filters), `seconds` since the answer began, and
    `top`, the likeliest tokens there, each with `id`, `text` and `logprob`. The texts, joined, are that of the
    answer."""
    finish_reason: FinishReason
    """`end` if the model ended it, `length` after `max_tokens`, `stop` at a stop text, `interrupted` if it was left."""
    seed: int
    """Random seed of this answer: with it and the same settings, the prompt alone gets it again."""
    seconds: float
    """Duration."""
    model: str
    """Name of the model that answered, or its path if the name finds another model."""
    settings: Settings = field(compare=False)
    notices: tuple[str, ...] = ()
    """Remarks, such as which characters of the prompt the model does not know."""
    choice_probabilities: tuple[ChoiceProbability, ...] = ()
    """With the setting `choices`: each with its `text`, its probability under the `model`, and that of being drawn."""
    candidates: tuple[tuple[str, float], ...] = ()
    """With `best_of`: the text of each candidate and its mean log-probability in nats per token, best first."""
    prompt_ids: tuple[int, ...] = field(default=(), compare=False)
    """Ids of all tokens before the answer; its first token may replace the last ones, as its `replaced` says."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        prompt, text = (shorten(repr(text), MAX_SHOWN) for text in (self.prompt, self.text))
        return f"<Answer {text} to {prompt} · {escape_controls(self._facts)}>"

    @property
    def _facts(self) -> str:
        facts = (count(len(self.tokens), "token"), self.finish_reason, f"seed {self.seed}", self.model)
        return " · ".join(facts)

    def _repr_html_(self) -> str:
        from tinychat.api import html

        return html.answer(self.prompt, self.tokens, (*self.notices, self._facts))

    @property
    def turn(self) -> Turn:
        """The answer as a turn of a conversation, as the rest of the program has it."""
        finished = Finished(self.finish_reason, len(self.tokens), self.seconds, self.seed)
        return Turn(self.prompt, list(self.prompt_ids), self.tokens, finished, model=self.model, settings=self.settings)


class AnswerBuilder:
    """Collects the records of an answer."""

    def __init__(self, prompt: str, answer: generate_answer.Answer, model: str, notices: Sequence[str] = ()) -> None:
        self._answer = answer
        self._prompt, self._model, self._prompt_ids = prompt, model, tuple(answer.ids)
        self._tokens: list[Token] = []
        self._notices = list(notices)
        self._choices: tuple[ChoiceProbability, ...] = ()
        self._candidates: tuple[tuple[str, float], ...] = ()
        self._finished: Finished | None = None
        self._seed = answer.request.seed

    def add(self, record: Record) -> None:
        """Add a record of the answer."""
        match record:
            case Token():
                self._tokens.append(record)
            case Notice(text):
                self._notices.append(text)
            case ChoiceProbabilities(choices):
                self._choices = choices
            case Candidates(answers):
                self._candidates = answers
            case Finished():
                self._finished = record

    def build(self) -> Answer:
        """Return the answer; one that has not ended counts as interrupted."""
        finished, request = self._finished, self._answer.request
        reason, seed, seconds = (
            (finished.reason, finished.seed, finished.seconds)
            if finished
            else ("interrupted", self._seed, self._tokens[-1].seconds if self._tokens else 0.0)
        )
        text = "".join(token.text for token in self._tokens)
        return Answer(
            self._prompt, text, tuple(self._tokens), reason, seed, seconds, self._model, request.settings,
            tuple(self._notices), self._choices, self._candidates, self._prompt_ids,
        )  # fmt: skip


Advance = Callable[[Iterator[Record], Callable[[Record], object]], bool]
"""Takes records for some milliseconds and hands each to a function; returns whether there may be more."""


class Stream(Iterator[Token]):
    """The tokens of an answer, as they are generated; iterate over it, or leave it early: nothing is lost.

    `close()`, the end of a `with` block or the last reference ends the answer. Another thread may take tokens, too;
    each token goes to one of them. Ctrl-C raises KeyboardInterrupt between two tokens, never inside the engine.
    """

    def __init__(
        self,
        records: Generator[Record],
        builder: AnswerBuilder,
        advance: Advance,
        on_end: Callable[[Answer], None] = lambda answer: None,
    ) -> None:
        self._records, self._builder, self._advance, self._on_end = records, builder, advance, on_end
        self._waiting: deque[Record] = deque()
        self._lock = threading.Lock()
        self._is_over = self._has_failed = self._has_ended = False

    def __next__(self) -> Token:
        with self._lock:
            while True:
                while self._waiting:
                    record = self._waiting.popleft()
                    self._builder.add(record)
                    if isinstance(record, Token):
                        return record
                if self._is_over:
                    self._end()
                    raise StopIteration
                try:
                    self._is_over = not self._advance(self._records, self._waiting.append)
                except Exception:
                    self._is_over = self._has_failed = True
                    raise

    def close(self) -> None:
        """End the answer, as `interrupted` if it has not ended yet."""
        with self._lock:
            self._records.close()
            self._waiting.clear()
            self._is_over = True
            self._end()

    def _end(self) -> None:
        """Hand the answer over, unless an error came before its first token."""
        if not self._has_ended:
            self._has_ended = True
            answer = self.answer
            if answer.tokens or not self._has_failed:
                self._on_end(answer)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def answer(self) -> Answer:
        """The answer so far: whole once there are no more tokens, `interrupted` before."""
        return self._builder.build()

    def __repr__(self) -> str:
        return repr(self.answer).replace("<Answer", "<Stream", 1)

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()
