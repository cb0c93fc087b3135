"""Making answers in a thread that keys can stop and pause."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tinychat.repl.producer import Producer

PATIENCE = 60.0


def taken(producer: Producer[Any], count: int) -> list[Any]:
    """The next so many records."""
    records: list[Any] = []
    while len(records) < count:
        records += producer.take(PATIENCE)
    return records


def test_in_a_pause_comes_what_is_asked_for_and_stopping_ends_it() -> None:
    go = threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count())

    producer = Producer(count, lambda number: 0.0)
    producer.pause()
    go.set()
    assert taken(producer, 1) == [0]
    producer.make_more(3)
    assert taken(producer, 3) == [1, 2, 3]
    assert producer.is_pausing
    producer.stop()
    assert not producer.is_pausing
    assert taken(producer, 1) == [None]


def test_nothing_is_made_while_it_is_held_and_stopping_ends_that() -> None:
    go, made = threading.Event(), threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from range(2)
        made.set()
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count(2))

    producer = Producer(count, lambda number: 0.0)
    producer.hold(True)
    go.set()
    assert taken(producer, 1) == [0]
    assert not made.is_set()
    producer.hold(False)
    assert taken(producer, 1)[0] == 1
    producer.hold(True)
    producer.stop()
    while taken(producer, 1)[-1] is not None:
        pass


def test_what_has_no_pace_comes_in_a_pause_too() -> None:
    go = threading.Event()

    def letters(should_stop: Callable[[], bool]) -> Iterator[str]:
        go.wait(PATIENCE)
        yield from "abcd"

    producer = Producer(letters, lambda letter: 0.0 if letter == "c" else None)
    producer.pause()
    go.set()
    assert taken(producer, 3) == ["a", "b", "c"]
    producer.pause()
    assert taken(producer, 2) == ["d", None]


def test_an_error_comes_in_the_place_of_what_it_was_in_the_way_of() -> None:
    def fail(should_stop: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("no")

    one, error, end = taken(Producer(fail, lambda number: None), 3)
    assert (one, str(error), end) == (1, "no", None)
