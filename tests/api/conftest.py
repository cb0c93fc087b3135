"""Models loaded in Python."""

from pathlib import Path

import pytest

import tinychat
from tinychat import Model


@pytest.fixture(scope="session")
def loaded(letters: Path) -> Model:
    """A completion model with a vocabulary of letters, with the torch engine."""
    return tinychat.load(letters, engine="torch", max_tokens=30)
