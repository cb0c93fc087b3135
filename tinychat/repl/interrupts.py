"""The interrupt signal: Ctrl-C where the terminal makes one of it, or `kill -INT`; never in the midst of drawing."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

RETRY = 0.01
"""seconds from one look to the next whether KeyboardInterrupt may be raised"""


@dataclass
class Interrupts:
    """How often Ctrl-C was pressed, or the signal came, so far."""

    count: int = 0


@contextmanager
def counted_interrupts(then: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Lets the signal be counted, in the main thread, where it would break off whatever is being done.

    Args:
        then: called after each.
    """
    interrupts = Interrupts()

    def note(*_: object) -> None:
        interrupts.count += 1
        then()

    with _handled(note):
        yield interrupts


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Lets the signal raise KeyboardInterrupt, once: what that leads to is not broken off by the next."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            threading.Timer(RETRY, _send_again, [number]).start()
            return
        signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    def tell(lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        signal.signal(signal.SIGINT, interrupt)
        threading.Timer(RETRY, _send_again, [signal.SIGINT]).start()

    before = sys.unraisablehook
    sys.unraisablehook = tell  # where nothing can be raised: while garbage is collected
    try:
        with _handled(interrupt):
            yield
    finally:
        sys.unraisablehook = before


def _send_again(number: int) -> None:
    main = threading.main_thread().ident
    if sys.platform == "win32" or main is None:
        signal.raise_signal(number)
    else:
        signal.pthread_kill(main, number)  # which ends what it waits for


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, half of which would stay."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
