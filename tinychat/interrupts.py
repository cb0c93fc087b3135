"""SIGINT while the command line runs: raise KeyboardInterrupt, but only where that is neither printed nor lost."""

import signal
import sys
from collections.abc import Callable
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
