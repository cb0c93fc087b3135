"""Run the programs that generate corpora, as a user would, or read what they made."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "data" / "make.py"
Pairs = list[tuple[str, str]]


def split(text: bytes) -> Pairs:
    """Return the two sides of each line of pairs."""
    return [(left, right) for left, right in (line.split("\t") for line in text.decode().splitlines())]


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[bytes, bytes]]:
    """Return a function that generates a corpus and returns the bytes of its training and held-out splits."""

    def make(name: str, *, seed: int = 1, count: int, held_out: int = 1) -> tuple[bytes, bytes]:
        folder = tmp_path_factory.mktemp(name)
        options = [f"--out={folder}", f"--seed={seed}", f"--count={count}", f"--held-out={held_out}"]
        subprocess.run([sys.executable, PROGRAM, name, *options], capture_output=True, check=True)
        train, held_out = sorted(folder.iterdir(), key=lambda path: path.name, reverse=True)
        assert (train.stem, held_out.stem) == ("train", "held-out")
        return train.read_bytes(), held_out.read_bytes()

    return make


@pytest.fixture(scope="session")
def known(generated: Callable[[str], Path]) -> Callable[..., tuple[bytes, bytes]]:
    """Return a function that returns the first documents of both splits of a known data set; default: all of them."""

    def first(name: str, count: int | None = None, held_out: int | None = None) -> tuple[bytes, bytes]:
        train, other = sorted(generated(name).iterdir(), key=lambda path: path.name, reverse=True)
        assert (train.stem, other.stem) == ("train", "held-out")
        splits = ((train, count), (other, held_out))
        one, two = (b"".join(path.read_bytes().splitlines(keepends=True)[:most]) for path, most in splits)
        return one, two

    return first


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of the programs importable."""
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
