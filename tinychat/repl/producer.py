"""Makes answers in a thread, so that keys act meanwhile: it can be stopped and paused, and keeps to a pace.

What is made waits in a short queue, so that the model never runs far ahead of the screen.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

FRAME = 0.02
"""seconds between two looks at the keyboard, when no token comes"""
AHEAD = 64
"""records that may wait to be drawn"""

Made = TypeVar("Made")


class Producer(Generic[Made]):
    """Makes records in a thread; `None` comes after the last, or after the error that was in the way.

    Args:
        start: begins to make them, and is handed a function that says whether to stop.
        pace: asked after each record for the seconds until the next one may come; None: at once, and in a pause too.
        ahead: how many may wait to be drawn.
    """

    def __init__(
        self,
        start: Callable[[Callable[[], bool]], Iterator[Made]],
        pace: Callable[[Made], float | None],
        ahead: int = AHEAD,
    ) -> None:
        self._start, self._pace = start, pace
        self._records: queue.Queue[Made | BaseException | None] = queue.Queue(ahead)
        self._changed = threading.Condition()
        self._stopping = self._pausing = self._holding = False
        self._to_come = 0  # in spite of the pause
        threading.Thread(target=self._make, name="answer", daemon=True).start()

    @property
    def is_stopping(self) -> bool:
        """Whether it has been asked to end."""
        return self._stopping

    @property
    def is_pausing(self) -> bool:
        """Whether no more tokens come by themselves."""
        return self._pausing

    def stop(self) -> None:
        """Asks for the end, also of a pause."""
        with self._changed:
            self._stopping, self._pausing = True, False
            self._changed.notify()

    def pause(self) -> None:
        """Makes no more tokens, or goes on."""
        with self._changed:
            self._pausing, self._to_come = not self._pausing, 0
            self._changed.notify()

    def hold(self, holding: bool) -> None:
        """Makes nothing meanwhile, unless it is to end."""
        with self._changed:
            self._holding = holding
            self._changed.notify()

    def make_more(self, count: int = 1) -> None:
        """Makes so many tokens more in a pause."""
        with self._changed:
            self._to_come += count
            self._changed.notify()

    def take(self, wait: float = FRAME) -> list[Made | BaseException | None]:
        """All that is there; waits a moment (seconds) for the first."""
        taken: list[Made | BaseException | None] = []
        try:
            taken.append(self._records.get(timeout=wait))
            while len(taken) < self._records.maxsize:
                taken.append(self._records.get_nowait())
        except queue.Empty:
            pass
        return taken

    def _make(self) -> None:
        try:
            for record in self._start(lambda: self._stopping):
                self._records.put(record)
                seconds = self._pace(record)
                if seconds is not None:
                    self._wait(seconds)
        except BaseException as error:  # raised anew where the screen is
            self._records.put(error)
        self._records.put(None)

    def _wait(self, seconds: float) -> None:
        """Between two tokens: as long as the pace says, and to the end of a pause."""
        with self._changed:
            if seconds:
                self._changed.wait_for(lambda: self._stopping or self._pausing, seconds)
            self._changed.wait_for(lambda: self._stopping or not self._holding)
            self._changed.wait_for(lambda: not self._pausing or self._to_come)
            self._to_come = max(0, self._to_come - 1)
