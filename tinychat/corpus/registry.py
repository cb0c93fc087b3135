"""Known data sets: where each is published, its checksum, its licence, and how it is read (`datasets.toml`)."""

import hashlib
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
from tinychat.errors import SourceError
from tinychat.text.decoding import open_bytes

Progress = Callable[[int, int | None], None]
"""told the bytes done, and all of them"""

PIECE = 1 << 16
SECONDS = 30
"""how long a server may stay silent"""

SEED = 1
"""of data sets that are made"""

MIRROR = "name a folder that holds the data sets in TINYCHAT_MIRROR"


@dataclass(frozen=True)
class DataFile:
    """One file: its size and checksum are those of its plain bytes, packed or not."""

    name: str
    bytes: int
    sha256: str
    url: str = ""
    """empty where the file is made here"""
    member: str = ""
    """the file within the zip archive at `url`"""
    is_read: bool = True
    """whether the data set's name stands for this file; the others are named as NAME/FILE"""


@dataclass(frozen=True)
class Dataset:
    """What there is to know of a data set, and how it is read."""

    name: str
    about: str
    licence: str
    split: str
    """how the field divides it"""
    files: tuple[DataFile, ...]
    format: str = ""
    """of records, a key of `formats.FORMATS`; empty for plain text"""
    column: str | None = None
    separator: str = ""
    """what stands between the documents of a plain text"""
    mode: str = "completion"
    is_text: bool = True
    is_made: bool = False
    """by a program of tinychat's own; sizes and checksums are those of seed 1"""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


KNOWN: dict[str, Dataset] = {
    name: Dataset(name=name, files=tuple(DataFile(**file) for file in facts.pop("files")), **facts)
    for name, facts in tomllib.loads((Path(__file__).parent / "datasets.toml").read_text(encoding="utf-8")).items()
}
"""Every known data set by its name."""


def find_dataset(name: str) -> Dataset:
    """The data set of that name.

    Raises:
        SourceError: there is none.
    """
    if name in KNOWN:
        return KNOWN[name]
    near = get_close_matches(name, KNOWN, 1)
    hint = f"is it {near[0]}?" if near else "data sets: " + ", ".join(KNOWN)
    raise SourceError(f"there is no data set {name!r}", hint)


def fetch(name: str, *, cache: Path, mirror: Path | None = None, progress: Progress | None = None) -> Path:
    """The folder with the files of a data set, each checked; `find_file` finds them in it. One to be made is made once.

    Args:
        name: of the data set.
        cache: a folder that what is downloaded is kept in, under the data set's name.
        mirror: a folder of data sets, a folder each; nothing is downloaded where it is given.
        progress: told of the download.

    Raises:
        SourceError: there is no such data set, it cannot be reached or made, or a file is not what was published.
    """
    dataset = find_dataset(name)
    if dataset.is_made:
        if not is_there(dataset, cache / name):
            make(name, cache / name)
        return cache / name
    folder = (mirror or cache) / name
    done = 0
    for file in dataset.files:
        path = find_file(folder, file)
        if path is not None:
            _check(path, file)
        elif mirror is not None:
            raise SourceError(f"the mirror {mirror} has no {name}/{file.name}", "remove TINYCHAT_MIRROR to download it")
        else:
            _download(folder / file.name, file, progress, done, dataset.bytes)
        done += file.bytes
    return folder


def programs() -> Path:
    """Where the programs lie: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "corpora"
    return installed if installed.is_dir() else package.parent / "data"


def make(name: str, folder: Path, seed: int = SEED, count: int | None = None) -> str:
    """Writes a data set into a folder: what to train on, and a held-out part.

    The programs are no part of the package: they run in a process of their own.

    Args:
        name: of the data set.
        folder: is made where it is missing.
        seed: the same seed gives the same bytes on every machine.
        count: documents to train on; None: as many as the data set has.

    Returns:
        What was written, a line a file.

    Raises:
        SourceError: the program is missing or fails.
    """
    program = programs() / "make.py"
    command = [sys.executable, str(program), name, "--out", str(folder), "--seed", str(seed)]
    command += ["--count", str(count)] if count else []
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise SourceError(f"{name} cannot be made: {why[0]}", f"its program is {program}")
    return done.stderr.strip()


def is_there(dataset: Dataset, folder: Path) -> bool:
    """Whether all files of a data set lie in a folder."""
    return all(find_file(folder, file) is not None for file in dataset.files)


def find_file(folder: Path, file: DataFile) -> Path | None:
    """Where a file of a data set lies, plain or packed by gzip."""
    return next((path for end in ("", ".gz") if (path := folder / (file.name + end)).is_file()), None)


def _check(path: Path, file: DataFile) -> None:
    digest = hashlib.sha256()
    with open_bytes(path) as data:
        while piece := data.read(PIECE):
            digest.update(piece)
    if digest.hexdigest() != file.sha256:
        raise SourceError(
            f"{path} is not what was published: its checksum differs", "remove it, and it is fetched anew"
        )


def _download(path: Path, file: DataFile, progress: Progress | None, before: int, total: int) -> None:
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with tempfile.TemporaryFile() as kept, urlopen(file.url, timeout=SECONDS) as answer:
            while piece := answer.read(PIECE):
                kept.write(piece)
                if progress is not None:
                    progress(before + min(kept.tell(), file.bytes), total)
            kept.seek(0)
            digest = hashlib.sha256()
            archive = zipfile.ZipFile(kept) if file.member else None
            with archive.open(file.member) if archive else nullcontext(kept) as plain, atomic_file(path) as out:
                while piece := plain.read(PIECE):
                    digest.update(piece)
                    out.write(piece)
                if digest.hexdigest() != file.sha256:
                    raise SourceError(f"{file.url} is not what was published: its checksum differs", MIRROR)
    except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise SourceError(f"{file.url} cannot be downloaded: {error}", "try again, or " + MIRROR) from None
