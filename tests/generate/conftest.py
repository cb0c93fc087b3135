"""What the tests of engines share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "model"))

from tinychat.generate.native import build


@pytest.fixture
def native(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library that the tests compiled serves, whatever lies in the package or the cache."""
    monkeypatch.setattr(build, "library_file", lambda: compiled)
    build.load_library.cache_clear()
    yield
    build.load_library.cache_clear()
