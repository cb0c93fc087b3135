"""Known data sets (`datasets.toml`): the source, checksum and licence of each, and how to read it."""

import hashlib
import signal
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tinychat.atomic import atomic_file
from tinychat.corpus.encoding import open_bytes
from tinychat.errors import Interrupted, SourceError

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the total."""

PIECE = 1 << 16
"""Bytes read at a time."""
TIMEOUT = 30
"""Seconds that a server may stay silent."""

MIRROR = "name a folder that holds the data sets in TINYCHAT_MIRROR"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set; size and checksum are those of its uncompressed bytes."""

    name: str
    bytes: int
    sha256: str
    url: str = ""
    """Empty if the file is generated here."""
    member: str = ""
    """Path of the file within the zip archive at `url`."""
    is_read: bool = True
    """Whether the data set's name includes this file; any other file is named as NAME/FILE."""


@dataclass(frozen=True)
class Dataset:
    """A known data set: facts about it, and how to read it."""

    name: str
    description: str
    licence: str
    split: str
    """The usual split into training and test parts in the literature."""
    files: tuple[DataFile, ...]
    format: str = ""
    """Record format, a key of `readers.FORMATS`; empty for plain text."""
    column: str | None = None
    separator: str = ""
    """String between the documents of a plain text."""
    mode: str = "completion"
    is_text: bool = True
    """False for vocabularies"""
    is_generated: bool = False
    """Whether a program of tinychat generates it; sizes and checksums are those of seed 1."""

    @property
    def bytes(self) -> int:
        """Total size of its files."""
        return sum(file.bytes for file in self.files)


KNOWN: dict[str, Dataset] = {
    name: Dataset(name=name, files=tuple(DataFile(**file) for file in facts.pop("files")), **facts)
    for name, facts in tomllib.loads((Path(__file__).parent / "datasets.toml").read_text(encoding="utf-8")).items()
}
"""All known data sets by name."""


def find_dataset(name: str) -> Dataset:
    """Return the data set with a name.

    Raises:
        SourceError: If there is no such data set.
    """
    if name in KNOWN:
        return KNOWN[name]
    near = get_close_matches(name, KNOWN, 1)
    hint = f"is it {near[0]}?" if near else "data sets: " + ", ".join(KNOWN)
    raise SourceError(f"there is no data set {name!r}", hint)


def fetch(name: str, *, cache: Path, mirror: Path | None = None, progress: Progress | None = None) -> Path:
    """Download or generate a data set unless it is there already, check its files, and return their folder.

    Data sets are kept in `cache`, each in a folder of its name, and read from `mirror` if given instead of downloaded.

    Raises:
        SourceError: If there is no such data set, it cannot be downloaded or generated, or a checksum differs.
    """
    dataset = find_dataset(name)
    if dataset.is_generated:
        mirror = None
        if not is_complete(dataset, cache / name):
            generate(name, cache / name)
    folder, done = (mirror or cache) / name, 0
    for file in dataset.files:
        if path := find_file(folder, file):
            _check(path, file)
        elif mirror is not None:
            raise SourceError(f"the mirror {mirror} has no {name}/{file.name}", "remove TINYCHAT_MIRROR to download it")
        else:
            _download(folder / file.name, file, progress, done, dataset.bytes)
        done += file.bytes
    return folder


def generators_folder() -> Path:
    """Return the folder of the generator programs: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "corpora"
    return installed if installed.is_dir() else package.parent / "data"


def generate(name: str, folder: Path, seed: int = 1, count: int | None = None) -> str:
    """Generate a data set, files to train on and a held-out part; return the program's report, a line for each file.

    The programs are not part of the package, so they run in a process of their own. The same seed gives the same bytes
    on every machine. `count` is the number of training documents; None: as many as the known data set has.

    Raises:
        SourceError: If the program is missing or fails.
        Interrupted: If SIGINT ended it.
    """
    program = generators_folder() / "make.py"
    command = [sys.executable, str(program), name, "--out", str(folder), "--seed", str(seed)]
    command += ["--count", str(count)] if count else []
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode == -signal.SIGINT:
        raise Interrupted(f"{name} was not made: it was stopped")
    if result.returncode:
        why = result.stderr.strip().splitlines()[-1:] or [f"it ended with {result.returncode}"]
        raise SourceError(f"{name} cannot be made: {why[0]}", f"its program is {program}")
    return result.stderr.strip()


def is_complete(dataset: Dataset, folder: Path) -> bool:
    """Return whether a folder holds all files of a data set; one that another version generated does not count."""
    for file in dataset.files:
        path = find_file(folder, file)
        if path is None or (dataset.is_generated and path.stat().st_size != file.bytes):
            return False
    return True


def find_file(folder: Path, file: DataFile) -> Path | None:
    """Return the path of a data set's file in a folder, plain or with `.gz`; None if it is missing."""
    return next((path for end in ("", ".gz") if (path := folder / (file.name + end)).is_file()), None)


def _check(path: Path, file: DataFile) -> None:
    with open_bytes(path) as data:
        digest = hashlib.file_digest(data, "sha256")
    if digest.hexdigest() != file.sha256:
        problem = f"{path} is not what was published: its checksum differs"
        raise SourceError(problem, f"remove it, and it is {'fetched' if file.url else 'made'} anew")


def _download(path: Path, file: DataFile, progress: Progress | None, before: int, total: int) -> None:
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with tempfile.TemporaryFile() as download, urlopen(file.url, timeout=TIMEOUT) as answer:
            while piece := answer.read(PIECE):
                download.write(piece)
                if progress is not None:
                    progress(before + min(download.tell(), file.bytes), total)
            download.seek(0)
            digest = hashlib.sha256()
            archive = zipfile.ZipFile(download) if file.member else None
            with archive.open(file.member) if archive else nullcontext(download) as plain, atomic_file(path) as out:
                while piece := plain.read(PIECE):
                    digest.update(piece)
                    out.write(piece)
                if digest.hexdigest() != file.sha256:
                    raise SourceError(f"{file.url} is not what was published: its checksum differs", MIRROR)
    except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise SourceError(f"{file.url} cannot be downloaded: {error}", "try again, or " + MIRROR) from None
