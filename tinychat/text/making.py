"""Makes the data sets that tinychat writes itself, by programs that come with it."""

import subprocess
import sys
from pathlib import Path

from tinychat.errors import SourceError

SEED = 1


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
