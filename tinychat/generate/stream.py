"""Answers as streams of records: the one loop that REPL, pipe and JSON run.

An `Answer` turns the tokens of one sequence into records; a `Batch` extends many at once with one engine, a call at a
time; `drive` runs batches until all their answers are finished.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence

from tinychat.config.settings import Settings, describe_sampling
from tinychat.events import Changed, Finished, FinishReason, Notice, Record, Token, TopLogprob
from tinychat.generate.engine import Engine, Request, SampledToken
from tinychat.tokenizer.tokenizer import Tokenizer

LONGEST_CALL = 0.015
"""seconds: keys and Ctrl-C act within this time"""


class Answer:
    """One answer in the making.

    Args:
        tokenizer: of the model.
        prompt: token ids, at least one.
        settings: asked anew before each call of the engine.
        seed: of its random numbers.
        prompt_index: of the prompt in the input; with the seed it makes the random numbers.
        end_ids: tokens that end the answer and are no part of it.
        top_logprobs: how many of the likeliest tokens to record at each place.
        source: what the encoder reads, in an encoder-decoder model.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        settings: Callable[[], Settings],
        *,
        seed: int,
        prompt_index: int = 0,
        end_ids: frozenset[int] = frozenset(),
        top_logprobs: int = 0,
        source: tuple[int, ...] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.settings = settings
        self.top_logprobs = top_logprobs
        self.request = Request(0, list(prompt), 0, settings(), seed, prompt_index, end_ids, source)
        self.finished: Finished | None = None
        self._decoder = tokenizer.stream()
        self._held: list[Token] = []  # what may yet turn out to be the beginning of a stop string
        self._shown = 0
        self._began = time.perf_counter()
        self._told_of_context = False

    def begin(self) -> None:
        """Starts its clock: what came before (a model that had to be loaded) does not count."""
        self._began = time.perf_counter()

    def go_on(self, ids: Sequence[int], said: Sequence[int], num_generated: int) -> None:
        """Takes up an answer that has begun.

        Args:
            ids: prompt and answer so far.
            said: those of the answer, which its next text joins on to.
            num_generated: how many tokens count as made: for the most that there may be, and for the random numbers.
        """
        self.request.ids, self.request.num_generated = list(ids), num_generated
        for id in said:
            self._decoder.push(id)

    @property
    def ids(self) -> list[int]:
        """Prompt and answer so far."""
        return self.request.ids

    def refresh(self) -> Iterator[Record]:
        """Takes a new snapshot of the settings, and says how tokens are chosen from now on where that has changed."""
        before, self.request.settings = self.request.settings, self.settings()
        if before is self.request.settings:
            return
        if self.request.num_generated and (words := describe_sampling(self.request.settings, other_than=before)):
            yield Changed(" · ".join(words))

    def take(
        self, drawn: Sequence[SampledToken], context_length: int, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """The records of newly made tokens; `Finished` among them once the answer is over.

        What was drawn before the settings changed, or it was to stop, is let go: both act on the very next token.
        """
        for token in drawn:
            settings = self.settings()
            if should_stop() or (settings is not self.request.settings and settings != self.request.settings):
                return
            self.request.ids.append(token.id)
            self.request.num_generated += 1
            if token.id in self.request.end_ids:
                yield from self.finish("end")
                return
            self._held.append(self._token(token, self._decoder.push(token.id)))
            if self.request.settings.stop:
                yield from self._release()
                if self.finished:
                    return
            else:
                yield from self._hand_out()
            if self.request.left <= 0:
                break
        if len(self.request.ids) > context_length and not self._told_of_context:
            self._told_of_context = True
            yield Notice(
                f"all together longer than the model's context of {context_length} tokens: "
                "it goes on from the newest part"
            )
        if self.request.left <= 0:
            yield from self.finish("length")

    def finish(self, reason: FinishReason) -> Iterator[Record]:
        """Ends the answer: what was held back, then `Finished`."""
        rest = self._decoder.flush()
        if rest and self._held:  # a character that was never completed belongs to the token that began it
            self._held[-1] = self._held[-1]._replace(text=self._held[-1].text + rest)
        yield from self._release(reason)

    def _release(self, reason: FinishReason | None = None) -> Iterator[Record]:
        """Hands out the held tokens in which no stop string can begin any more; all of them where there is a reason.

        The answer ends before a stop string: the token in which one begins is cut short.
        """
        text = "".join(token.text for token in self._held)
        stops = self.request.settings.stop
        found = min((position for stop in stops if (position := text.find(stop)) >= 0), default=None)
        if found is not None:
            handed = self._hand_out(found)
            yield from handed
            left = found - sum(len(token.text) for token in handed)
            if self._held and left:
                self._shown += 1
                yield self._held[0]._replace(text=self._held[0].text[:left])
            reason = "stop"
        elif reason is not None:
            yield from self._hand_out(len(text))
        else:
            waiting = max((_overlap(text, stop) for stop in stops), default=0)
            yield from self._hand_out(len(text) - waiting)
        if reason is not None:
            self.finished = Finished(reason, self._shown, self._seconds(), self.request.seed)
            yield self.finished

    def _hand_out(self, characters: float = math.inf) -> list[Token]:
        """The tokens that lie wholly within the first characters held."""
        whole = len(self._held) - self._decoder.pending  # the last one is not whole before its character is
        count = 0
        while count < whole and (characters := characters - len(self._held[count].text)) >= 0:
            count += 1
        handed, self._held = self._held[:count], self._held[count:]
        self._shown += count
        return handed

    def _token(self, drawn: SampledToken, text: str) -> Token:
        likeliest = [
            TopLogprob(token, self.tokenizer.token_text(token), logprob)
            for token, logprob in drawn.top_logprobs[: self.top_logprobs]
        ]
        return Token(drawn.id, text, drawn.logprob, self._seconds(), tuple(likeliest))

    def _seconds(self) -> float:
        return time.perf_counter() - self._began


class Batch:
    """The answers that one engine extends together; answers may join at any time.

    Args:
        engine: that makes the tokens.
        should_stop: asked before each call of the engine and each token; once it says yes, every answer ends as
            interrupted.
    """

    def __init__(self, engine: Engine, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.engine = engine
        self.should_stop = should_stop
        self.answers: list[Answer] = []
        self._next_slot = 0

    def add(self, answer: Answer) -> None:
        """Lets an answer join; the only one there is takes over the cache of the last."""
        if self.answers:
            self._next_slot += 1
        answer.request.slot = self._next_slot
        answer.begin()
        self.answers.append(answer)

    def step(self) -> Iterator[tuple[Answer, Iterator[Record]]]:
        """One call of the engine: the new records of each answer, to be taken in turn; finished answers leave.

        Raises:
            GenerationError: the model gave NaN or infinite logits.
        """
        going: list[Answer] = []
        stop = self.should_stop()
        for answer in list(self.answers):  # one that joins meanwhile is extended in the next step
            yield answer, answer.refresh()
            if stop:
                yield answer, answer.finish("interrupted")
            elif answer.request.left <= 0:
                yield answer, answer.finish("length")
            else:
                going.append(answer)
        if going:
            requests = [answer.request for answer in going]
            top_logprobs = max(answer.top_logprobs for answer in going)
            made = self.engine.extend(requests, max(one.left for one in requests), top_logprobs, LONGEST_CALL)
            for answer, drawn in zip(going, made, strict=True):
                yield answer, answer.take(drawn, self.engine.context_length, self.should_stop)
        self.answers = [answer for answer in self.answers if answer.finished is None]

    def close(self) -> None:
        """End the answers that are still open as interrupted; their last records are lost."""
        for answer in self.answers:
            if answer.finished is None:
                for _ in answer.finish("interrupted"):
                    pass
        self.answers = []


def drive(*batches: Batch, admit: Callable[[], bool] = lambda: False) -> Iterator[tuple[Answer, Record]]:
    """Run batches until all their answers are finished; yield each record with the answer that it belongs to.

    The last record of each answer is its only `Finished`. An error, or closing this generator, ends the answers that
    are still open: their `finished` says that they were interrupted, and no further record is yielded.

    Args:
        batches: one for each engine; they take turns, one step each.
        admit: called before each round of steps, when it may add answers to the batches. It returns whether it is to
            be called again even if there is no answer left. An error that it raises ends the run.

    Raises:
        GenerationError: the model gave NaN or infinite logits.
    """
    try:
        while admit() or any(batch.answers for batch in batches):
            for batch in batches:
                for answer, records in batch.step():
                    for record in records:
                        yield answer, record
    finally:
        for batch in batches:
            batch.close()


def stream(engine: Engine, answer: Answer, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
    """Drive one answer; yield its records, the last of them `Finished`.

    Raises:
        GenerationError: the model gave NaN or infinite logits.
    """
    batch = Batch(engine, should_stop)
    batch.add(answer)
    for _, record in drive(batch):
        yield record


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that is a beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if text.endswith(stop[:length])), 0)
