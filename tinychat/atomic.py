"""Atomic writes of files and folders.

Each is written under a temporary name in the same folder, synced to disk and then renamed, so that readers find the
old version or the new one, even after a crash. The next write to the same path removes files left by a killed process.
"""

import ctypes
import errno
import glob
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def atomic_write(path: Path, data: bytes | str, *, private: bool = False) -> None:
    """Write bytes, or text as UTF-8, to a file, creating its parent folders; `private`: only the owner may read it."""
    with atomic_file(path, private=private) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def atomic_file(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file, which replaces `path` if the block ends without an error, and keeps its permissions."""
    with _draft(path) as draft:
        with draft.open("xb") as file:
            if private:
                draft.chmod(0o600)
            else:
                with suppress(OSError):  # there is no such file yet, or its disk knows no permissions
                    shutil.copymode(path, draft)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path.resolve())


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Create a temporary folder, which replaces `path` if the block ends without an error."""
    with _draft(path) as draft:
        draft.mkdir()
        yield draft
        for parent, _, names in os.walk(draft):
            for name in names:
                with Path(parent, name).open("rb") as file:
                    os.fsync(file.fileno())  # may raise only now if the disk is full
            _sync_folder(Path(parent))
        target = path.resolve()
        if not target.is_dir():
            draft.rename(target)
        elif not _exchange(draft, target):
            # Without a system call to swap them, it takes two steps; both folders are complete in between.
            old = draft.with_suffix(".old")
            target.rename(old)
            draft.rename(target)
            shutil.rmtree(old, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it, so that readers find all of it or nothing; of a symbolic link, the link.

    Raises:
        OSError: If it cannot be removed, or not all that is in it: the error names the hidden folder with what is left.
    """
    draft = _draft_of(path)
    path.rename(draft)
    _remove(draft)
    if os.path.lexists(draft):
        raise OSError(errno.ENOTEMPTY, "not all of it could be removed", str(draft))


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Yield an unused temporary path beside `path`, and remove it at the end if it still exists."""
    path = path.resolve()  # replaces the target of a symbolic link, not the link
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if not _is_alive(leftover.name.split(".")[-2].partition("-")[0]):
            _remove(leftover)
    draft = _draft_of(path)
    try:
        yield draft
        _sync_folder(path.parent)
    finally:
        _remove(draft)


def _draft_of(path: Path) -> Path:
    """Return an unused temporary path beside a path."""
    return path.parent / f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"


def _is_alive(process_id: str) -> bool:
    """Return whether a process may be alive; True if that cannot be checked safely."""
    if process_id.isdecimal():
        try:
            os.kill(int(process_id), 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            pass
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _sync_folder(path: Path) -> None:
    """Sync a folder's entries to disk, if the operating system supports it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return False if the operating system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        libc = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return bool(libc.renamex_np(first, second, 2) == 0)  # RENAME_SWAP
        cwd = -100  # AT_FDCWD: paths are relative to the working folder
        return bool(libc.renameat2(cwd, first, cwd, second, 2) == 0)  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):
        return False
