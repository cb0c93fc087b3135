"""A short run of `stress.py`, which tests the REPL with random keys for any length of time."""

from pathlib import Path

import pytest
from stress import Stress


@pytest.mark.slow
def test_random_keys_while_text_streams_break_nothing(tmp_path: Path) -> None:
    Stress(tmp_path, seed=1).run(600)
