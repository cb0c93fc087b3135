"""Files and folders that are written whole or not at all.

Each is written beside its place under another name, forced to the disk and then renamed: whoever looks, even after a
crash, finds the old one or the new one. What a killed process left behind is cleared by the next write to that place.
"""

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def atomic_write(path: Path, data: bytes | str, *, private: bool = False) -> None:
    """Writes a file, text as UTF-8; folders on the way to it are made."""
    with atomic_file(path, private=private) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def atomic_file(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place once the block ends without an error.

    Args:
        private: whether its owner alone may read it.
    """
    with _draft(path) as draft:
        with draft.open("xb") as file:
            if private:
                draft.chmod(0o600)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path.resolve())


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes its place, and an older one's, once the block ends without an error."""
    with _draft(path) as draft:
        draft.mkdir()
        yield draft
        for parent, _, names in os.walk(draft):
            for name in names:
                with Path(parent, name).open("rb") as file:
                    os.fsync(file.fileno())  # a disk may say only now that it is full
            _sync_names(Path(parent))
        target = path.resolve()
        if not target.is_dir():
            draft.rename(target)
        elif not _exchange(draft, target):
            # two steps where the system knows no exchange: the old folder stays whole beside the new one in between
            old = draft.with_suffix(".old")
            target.rename(old)
            draft.rename(target)
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """A name beside `path` that nothing has yet; whatever has it at the end is removed, be there an error or not."""
    path = path.resolve()  # a link stays one: what it leads to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{_escape(path.name)}.*.tmp"):
        if not _is_alive(left.name.split(".")[-2].partition("-")[0]):
            _remove(left)
    draft = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        yield draft
        _sync_names(path.parent)
    finally:
        _remove(draft)


def _escape(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _is_alive(process: str) -> bool:
    """Whether that process may still be writing; always, where asking is not safe."""
    if os.name != "posix" or not process.isdecimal():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _sync_names(path: Path) -> None:
    """Forces what a folder lists to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Lets two folders change places in one step; False where the system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    call: Callable[..., int]
    try:
        system = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return bool(system.renamex_np(first, second, 2) == 0)  # RENAME_SWAP
        here = -100  # AT_FDCWD: names are relative to the working folder
        call = system.renameat2
        return bool(call(here, first, here, second, 2) == 0)  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):
        return False
