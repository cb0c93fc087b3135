"""Fetches known data sets, with a progress bar at a terminal."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

from tinychat.store import places
from tinychat.text.datasets import fetch


def fetch_with_bar(name: str, *, plain: bool = False) -> Path:
    """The folder of a known data set; without a bar where lines are to be `plain`.

    Raises:
        SourceError: there is none of that name, it cannot be reached, or is not what was published.
    """
    bar = DownloadBar(name) if sys.stderr.isatty() and not plain and places.mirror() is None else None
    try:
        return fetch(name, cache=places.datasets_folder(), mirror=places.mirror(), progress=bar)
    finally:
        if bar is not None:
            bar.close()


class DownloadBar:
    """A progress bar on stderr for a download."""

    def __init__(self, name: str) -> None:
        columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(name, total=None)
        self._progress.start()

    def __call__(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """Takes it down."""
        self._progress.stop()
