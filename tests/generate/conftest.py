"""What the tests of engines share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tinychat.generate.native import library


@pytest.fixture
def native(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library that the tests compiled serves, whatever lies in the package or the cache."""
    monkeypatch.setattr(library, "library_file", lambda: compiled)
    library.load_library.cache_clear()
    yield
    library.load_library.cache_clear()
