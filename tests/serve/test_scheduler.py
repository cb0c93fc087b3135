"""The thread of the scheduler: it outlives all errors, and every job gets a last event."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Queue

import pytest

from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import GenerationError
from tinychat.events import Finished
from tinychat.generate.answer import Answer
from tinychat.generate.stream import AnswerBatch
from tinychat.serve.scheduler import AnswerJob, EngineError, Event, Job, Scheduler, Scored, ScoreJob
from tinychat.session.open_model import OpenModel


@pytest.fixture
def scheduler(letters: Path) -> Iterator[Scheduler]:
    scheduler = Scheduler(OpenModel(str(letters), SettingStore()), max_queue=4, max_batch=1)
    yield scheduler
    scheduler.stop(0)
    scheduler.join()


def submit(scheduler: Scheduler, seconds: float, settings: Settings) -> "Queue[Event]":
    """Ask for an answer to `abc` within some seconds; return the queue of its events."""
    events = Queue[Event]()

    def make(model: OpenModel) -> Answer:
        ids = model.tokenizer.encode("abc")
        return Answer(model.tokenizer, ids, lambda: settings, seed=1, vocabulary=model.vocabulary)

    def post(_: Job, new: list[Event]) -> None:
        for one in new:
            events.put(one)

    scheduler.submit([AnswerJob(post, time.monotonic() + seconds, make=make)])
    return events


def last(events: "Queue[Event]") -> Event:
    while not isinstance(event := events.get(timeout=20), Finished | Exception):
        pass
    return event


def test_answers_of_several_sequences_leave_a_place_and_get_theirs(letters: Path) -> None:
    scheduler = Scheduler(OpenModel(str(letters), SettingStore()), max_queue=99, max_batch=4)
    scheduler.stop(0)
    scheduler.join()

    def take(running: Sequence[int], waiting: Sequence[int]) -> list[int]:
        """Return which of the waiting answers begin beside those that run, given by their numbers of sequences."""

        def job(number: int) -> AnswerJob:
            return AnswerJob(print, 0, make=print, num_sequences=number)  # type: ignore[arg-type]

        scheduler._running = {object(): job(number) for number in running}  # type: ignore[misc]
        jobs = list(map(job, waiting))
        scheduler._waiting = deque(jobs)
        taken = scheduler._take_waiting()
        assert [*scheduler._waiting] == [one for one in jobs if one not in taken]
        return [jobs.index(one) for one in taken]

    assert take([], [1] * 6) == [0, 1, 2, 3]
    assert take([1, 1], [1, 1, 1]) == [0, 1]
    assert take([], [2, 2, 1]) == [0, 1]
    assert take([], [64, 64, 1, 1]) == [0, 2]
    assert take([64], [64, 2, 1, 1]) == [2]
    assert take([64, 1], [64, 1]) == []
    assert take([1, 1, 1], [64, 1]) == []  # it gets the places that it waits for
    assert take([1], [64, 1]) == [0]


def test_a_long_score_does_not_hold_a_short_one(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.serve.scheduler.SCORING_SECONDS", 0)
    scored = Queue[int]()

    def post(_: Job, new: list[Event]) -> None:
        for one in new:
            if isinstance(one, Scored | Exception):
                scored.put(len(one.ids) if isinstance(one, Scored) else 0)

    def job(length: int) -> ScoreJob:
        return ScoreJob(post, time.monotonic() + 60, encode=lambda model: [1] * length, top_logprobs=1)

    scheduler.submit([job(100), job(3), job(5)])
    assert [scored.get(timeout=20) for _ in range(3)] == [3, 5, 100]


def test_an_answer_that_cannot_end_leaves_those_that_wait(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: AnswerBatch, answer: Answer) -> None:
        raise ValueError("it cannot end")

    monkeypatch.setattr(AnswerBatch, "remove", fail)
    endless = submit(scheduler, 0.2, Settings(max_tokens=10**6))
    waiting = submit(scheduler, 60, Settings(max_tokens=5))
    error = last(endless)
    assert isinstance(error, EngineError)
    assert str(error.problem) == "it cannot end"
    assert isinstance(last(waiting), Finished)


def test_an_answer_that_cannot_be_steered_leaves_those_beside_it(letters: Path) -> None:
    scheduler = Scheduler(OpenModel(str(letters), SettingStore()), max_queue=4, max_batch=4)
    running = submit(scheduler, 60, Settings(max_tokens=300))
    for _ in range(3):
        error = last(submit(scheduler, 60, Settings(max_tokens=5, steer="abc-xyz 2 layer 99")))
        assert isinstance(error, GenerationError)
        assert error.problem == "there is no layer 99 to steer"
    assert isinstance(last(running), Finished)
    scheduler.stop(0)
    scheduler.join()
