"""Raise KeyboardInterrupt on SIGINT, but only where that is neither printed nor lost, and damages nothing."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def raise_once(leave: Callable[[], None]) -> None:
    """Raise KeyboardInterrupt on the first SIGINT; `leave` the process on the next, and wherever none can be raised.

    None can be raised during an import, where callbacks of weak references run, and in finalizers: Python would print
    the exception and go on.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(number, lambda *_: leave())
        if is_importing(frame):
            leave()
        raise KeyboardInterrupt

    def handle_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            leave()
        sys.__unraisablehook__(unraisable)

    sys.unraisablehook = handle_unraisable
    signal.signal(signal.SIGINT, interrupt)


def is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, which an exception would leave half initialized."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Call the handler of SIGINT only at the end of the block, which an exception inside could leave half done.

    Yields a function that returns whether one is waiting. Other threads than the main one get no signals.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: waiting.append(arguments))
    try:
        yield lambda: bool(waiting)
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(*waiting[0])
