"""Fetches known data sets, with a progress bar at a terminal; those that are made here, with a line that says so."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

from tinychat.corpus.registry import fetch, find_dataset, is_there
from tinychat.store import places


def fetch_with_bar(name: str, *, plain: bool = False) -> Path:
    """The folder of a known data set; without a bar where lines are to be `plain`.

    Raises:
        SourceError: there is none of that name, it cannot be reached, or is not what was published.
    """
    dataset, cache, mirror = find_dataset(name), places.datasets_folder(), places.mirror()
    if dataset.is_made and not is_there(dataset, cache / name):
        sys.stderr.write(f"making {name}, which takes some seconds, once\n")
    if dataset.is_made or plain or mirror is not None or not sys.stderr.isatty():
        return fetch(name, cache=cache, mirror=mirror)
    columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        return fetch(name, cache=cache, mirror=mirror, progress=show)
