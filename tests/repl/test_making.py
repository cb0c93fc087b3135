"""Making answers in a thread that keys can stop and pause."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tinychat.repl.making import Maker

PATIENCE = 60.0


def taken(maker: Maker[Any], count: int) -> list[Any]:
    """The next so many records."""
    records: list[Any] = []
    while len(records) < count:
        records += maker.take(PATIENCE)
    return records


def test_in_a_pause_comes_what_is_asked_for_and_stopping_ends_it() -> None:
    go = threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count())

    maker = Maker(count, lambda number: 0.0)
    maker.pause()
    go.set()
    assert taken(maker, 1) == [0]
    maker.make_more(3)
    assert taken(maker, 3) == [1, 2, 3]
    assert maker.is_pausing
    maker.stop()
    assert not maker.is_pausing
    assert taken(maker, 1) == [None]


def test_nothing_is_made_while_it_is_held_and_stopping_ends_that() -> None:
    go, made = threading.Event(), threading.Event()

    def count(should_stop: Callable[[], bool]) -> Iterator[int]:
        go.wait(PATIENCE)
        yield from range(2)
        made.set()
        yield from itertools.takewhile(lambda _: not should_stop(), itertools.count(2))

    maker = Maker(count, lambda number: 0.0)
    maker.hold(True)
    go.set()
    assert taken(maker, 1) == [0]
    assert not made.is_set()
    maker.hold(False)
    assert taken(maker, 1)[0] == 1
    maker.hold(True)
    maker.stop()
    while taken(maker, 1)[-1] is not None:
        pass


def test_what_has_no_pace_comes_in_a_pause_too() -> None:
    go = threading.Event()

    def letters(should_stop: Callable[[], bool]) -> Iterator[str]:
        go.wait(PATIENCE)
        yield from "abcd"

    maker = Maker(letters, lambda letter: 0.0 if letter == "c" else None)
    maker.pause()
    go.set()
    assert taken(maker, 3) == ["a", "b", "c"]
    maker.pause()
    assert taken(maker, 2) == ["d", None]


def test_an_error_comes_in_the_place_of_what_it_was_in_the_way_of() -> None:
    def fail(should_stop: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("no")

    one, error, end = taken(Maker(fail, lambda number: None), 3)
    assert (one, str(error), end) == (1, "no", None)
