"""Generates the answers of several clients as one batch, in a thread of its own.

Answers join the batch as places get free, first come first served: among those of one sequence, and among those of
several. What a client gets depends on its own request alone: an error of one answer ends that answer, and one whose
client has left gives its place to the next.
"""

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tinychat.config.settings import Settings
from tinychat.errors import TinychatError
from tinychat.events import Finished, Record
from tinychat.generate.answer import Answer
from tinychat.generate.controls import FORBIDDEN
from tinychat.generate.engine import Engine, Request, SampledToken, score_windows
from tinychat.generate.stream import AnswerBatch
from tinychat.session.open_model import OpenModel

SCORING_SECONDS = 0.1
"""Duration of a piece of scoring: between two pieces the answers of others go on."""
SCORING_SLOT = -1
"""Slot of the sequence that is scored; those of answers are not negative."""
IDLE_SECONDS = 1.0
"""Longest wait for something to do: then deadlines are looked at again."""


@dataclass(frozen=True, slots=True)
class Started:
    """First event of an answer or a score: the number of tokens that the model reads before it."""

    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Scored:
    """Last event of a score: the tokens of the prompt; the first has no context, so its log-probability is None."""

    ids: Sequence[int]
    tokens: Sequence[SampledToken | None]


Event = Record | Started | Scored | TinychatError | Exception
"""Something that happens to a job: the last one is `Finished`, `Scored` or an error."""


@dataclass(eq=False)
class Job:
    """Something to do for a client; `post` is called with new events, in the thread of the scheduler."""

    post: "Callable[[Job, list[Event]], None]"
    deadline: float
    """Time (`time.monotonic`) at which it ends."""
    is_cancelled: bool = False
    events: list[Event] = field(default_factory=list)
    """Those that are not posted yet."""


@dataclass(eq=False)
class AnswerJob(Job):
    """An answer to generate: `make` returns it, in the thread of the scheduler."""

    make: Callable[[OpenModel], Answer] = field(kw_only=True)
    num_sequences: int = 1
    """Number of sequences that are extended for it: its beams, or the answers it is the best of."""


@dataclass(eq=False)
class ScoreJob(Job):
    """A prompt to score: `encode` returns its ids, in the thread of the scheduler."""

    encode: Callable[[OpenModel], list[int]] = field(kw_only=True)
    top_logprobs: int = 0


class QueueFullError(TinychatError):
    """Too many answers wait already."""


class OverdueError(TinychatError):
    """A job has waited too long."""


class EngineError(TinychatError):
    """The engine failed, for all answers that it was generating."""


class Stopped(TinychatError):
    """The server ends."""


class Scheduler:
    """Does the jobs of all clients; `max_batch` sequences at once, by default those with which the engine is fast.

    An answer may have more by itself, as the best of many has: then it is the only one of several sequences.
    """

    def __init__(self, model: OpenModel, *, max_queue: int, max_batch: int | None = None) -> None:
        self._model, self._engine = model, model.engine
        self._max_queue, self._places = max_queue, max_batch or self._engine.batch_size
        self._condition = threading.Condition()
        self._waiting: deque[AnswerJob] = deque()
        self._scoring: deque[tuple[ScoreJob, Iterator[None]]] = deque()
        self._new_scores: deque[ScoreJob] = deque()
        self._running: dict[Answer, AnswerJob] = {}
        self._posted: dict[Job, None] = {}
        self._end: float | None = None
        self.num_finished = 0
        """Number of jobs that are over."""
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)
        self._thread.start()

    @property
    def num_running(self) -> int:
        """Number of answers that are being generated."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Number of jobs that wait for their turn."""
        return len(self._waiting) + len(self._new_scores) + len(self._scoring)

    @property
    def capacity(self) -> int:
        """Number of answers that may be there at once, waiting and being generated."""
        return self._max_queue + self._places

    def submit(self, jobs: Sequence[Job]) -> None:
        """Add the jobs of one request, all or none.

        Raises:
            QueueFullError: If too many wait already.
            Stopped: If the server ends.
        """
        with self._condition:
            if self._end is not None:
                raise Stopped("the server ends")
            if self.num_waiting + self.num_running + len(jobs) > self.capacity:
                raise QueueFullError(f"{self.num_waiting:,} answers wait already", "try again in a moment")
            self._waiting += (job for job in jobs if isinstance(job, AnswerJob))
            self._new_scores += (job for job in jobs if isinstance(job, ScoreJob))
            self._condition.notify()

    def cancel(self, jobs: Sequence[Job]) -> None:
        """End jobs whose client has left; no more events are posted."""
        for job in jobs:
            job.is_cancelled = True
        with self._condition:
            self._condition.notify()

    def stop(self, seconds: float) -> None:
        """Take no more jobs; those that are not over after some seconds end with `Stopped`."""
        with self._condition:
            end = time.monotonic() + seconds
            self._end = end if self._end is None else min(end, self._end)
            self._condition.notify()

    def join(self) -> None:
        """Wait until all jobs are over, after `stop`."""
        self._thread.join()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        batch, goes_on = AnswerBatch(self._engine), True
        while goes_on:
            try:
                goes_on = self._admit(batch)
                self._step(batch)
                self._score()
            except Exception as error:  # of the engine: it concerns all answers that are being generated
                for job in self._running.values():
                    self._add(job, EngineError(str(error) or type(error).__name__))
                self._running = {}
                batch = AnswerBatch(self._engine)  # to end the answers of the old one might fail again
            self._post()

    def _admit(self, batch: AnswerBatch) -> bool:
        """End what is to end, wait for something to do, and begin it; return whether the thread goes on."""
        with self._condition:
            while not self._has_work():
                if self._end is not None:
                    return False
                self._condition.wait(IDLE_SECONDS)
            self._drop_waiting()
        self._end_running(batch)  # before others leave the queue: they would be lost if it failed
        with self._condition:
            new = self._take_waiting()
            scores = [self._new_scores.popleft() for _ in range(len(self._new_scores))]
        for job in new:
            try:
                answer = job.make(self._model)
                self._add(job, Started(len(answer.ids)))
                batch.add(answer)
                self._running[answer] = job
            except Exception as error:
                self._add(job, error)
        self._scoring += ((job, self._scorer(job)) for job in scores)
        return True

    def _take_waiting(self) -> list[AnswerJob]:
        """Take the answers from the queue that may begin.

        One of several sequences never takes the last place, so that those of one sequence, which may pass it, are
        answered meanwhile; and these leave it the places that it waits for.
        """
        new: list[AnswerJob] = []
        costs = [self._cost(job) for job in self._running.values()]
        narrow = costs.count(1)
        wide, wanted = sum(costs) - narrow, 0
        for job in self._waiting:
            cost = self._cost(job)
            if cost == 1 and narrow < self._places - max(wide, wanted):
                narrow += 1
            elif cost > 1 and not wanted and narrow + wide + cost <= self._places:
                wide += cost
            elif cost > 1:
                wanted = wanted or cost
                continue
            else:
                break
            new.append(job)
        for job in new:
            self._waiting.remove(job)
        return new

    def _cost(self, job: AnswerJob) -> int:
        """Return the number of places that an answer takes."""
        return max(1, min(job.num_sequences, self._places - 1))

    def _has_work(self) -> bool:
        return bool(self._running or self._waiting or self._scoring or self._new_scores)

    def _why_over(self, job: Job) -> TinychatError | None:
        """Return why a job that is not finished ends now; None if it goes on."""
        now = time.monotonic()
        if job.is_cancelled or (self._end is not None and now >= self._end):
            return Stopped("the server ends")
        return OverdueError("it took too long", "ask for less, or again later") if now >= job.deadline else None

    def _drop_waiting(self) -> None:
        for queue in (self._waiting, self._new_scores):
            over = [(job, error) for job in queue if (error := self._why_over(job))]
            for job, error in over:
                queue.remove(job)  # type: ignore[arg-type]
                self._add(job, error)

    def _end_running(self, batch: AnswerBatch) -> None:
        """End the answers whose time is over, with what there is of them, and those whose client has left."""
        for answer, job in list(self._running.items()):
            if error := self._why_over(job):
                records = batch.remove(answer)
                self._add(job, *([error] if isinstance(error, Stopped) else records))
                del self._running[answer]

    def _step(self, batch: AnswerBatch) -> None:
        """Generate some tokens of each answer."""
        if not batch.answers:
            return
        for answer, records in batch.step():
            found: list[Event] = []
            try:
                found.extend(records)
            except Exception as error:  # of this answer alone, such as choices that the model cannot write
                batch.remove(answer)
                found.append(error)
            if found and (job := self._running.get(answer)):
                self._add(job, *found)
        self._running = {answer: job for answer, job in self._running.items() if answer.finished is None}

    def _score(self) -> None:
        """Go on with the first score, for a while; then it is the turn of the next."""
        while self._scoring:
            job, scorer = self._scoring[0]
            try:
                error = self._why_over(job)
                if error is None:
                    next(scorer)
                    self._scoring.rotate(-1)
                    return
                self._add(job, error)
            except StopIteration:
                pass
            except Exception as error:
                self._add(job, error)
            self._scoring.popleft()

    def _scorer(self, job: ScoreJob) -> Iterator[None]:
        """Score a prompt; yield now and then, so that others go on."""
        ids = job.encode(self._model)
        self._add(job, Started(len(ids)))
        tokens: list[SampledToken | None] = [None] * bool(ids)
        for piece in score(self._engine, ids, self._model.config.vocab_size, job.top_logprobs):
            tokens += piece
            yield
        self._add(job, Scored(ids, tokens))

    def _add(self, job: Job, *events: Event) -> None:
        self.num_finished += any(isinstance(event, Finished | Scored | Exception) for event in events[-1:])
        job.events += events
        self._posted[job] = None

    def _post(self) -> None:
        """Post the new events of all jobs."""
        posted, self._posted = self._posted, {}
        for job in posted:
            events, job.events = job.events, []
            if not job.is_cancelled:
                job.post(job, events)


def score(engine: Engine, ids: Sequence[int], vocab_size: int, top_logprobs: int = 0) -> Iterator[list[SampledToken]]:
    """Yield the log-probabilities of all tokens but the first, a piece at a time, in the windows of `Engine.score`.

    Likeliest tokens, if asked for, come from steps in which all tokens but the one that is there are forbidden.
    """
    for window, scored in score_windows(ids, engine.context_length):
        if not top_logprobs:
            yield list(map(SampledToken, window[scored + 1 :], engine.score(window)[scored:]))
            continue
        piece, began = list[SampledToken](), time.perf_counter()
        for position in range(scored + 1, len(window)):
            piece += _force(engine, window[:position], window[position], vocab_size, top_logprobs)
            if time.perf_counter() - began > SCORING_SECONDS:
                yield piece
                piece, began = [], time.perf_counter()
        yield piece


def _force(engine: Engine, ids: Sequence[int], id: int, vocab_size: int, top_logprobs: int) -> list[SampledToken]:
    """Return a token that follows others, with its log-probability and the likeliest tokens in its place."""
    biases = array("f", [FORBIDDEN]) * vocab_size
    biases[id] = 0.0
    request = Request(SCORING_SLOT, list(ids), 0, Settings(temperature=0.0, max_tokens=1), 0, biases=biases)
    (tokens,) = engine.extend([request], 1, top_logprobs)
    return tokens
