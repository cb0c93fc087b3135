"""Fetches known data sets, with a progress bar at a terminal; those that are made here, with a line that says so."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

from tinychat.store import places
from tinychat.text.datasets import fetch, find_dataset, is_there


def fetch_with_bar(name: str, *, plain: bool = False) -> Path:
    """The folder of a known data set; without a bar where lines are to be `plain`.

    Raises:
        SourceError: there is none of that name, it cannot be reached, or is not what was published.
    """
    dataset = find_dataset(name)
    if dataset.is_made and not is_there(dataset, places.datasets_folder() / name):
        sys.stderr.write(f"making {name}, which takes some seconds, once\n")
    bar = (
        DownloadBar(name)
        if not dataset.is_made and sys.stderr.isatty() and not plain and places.mirror() is None
        else None
    )
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
