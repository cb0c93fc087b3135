"""Each test in a folder of its own, on one thread: tiny models gain nothing from more, and lose much beside others."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The trainer listens to signals, and sets the threads: both are given back to the tests afterwards."""
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    for number, handler in handlers.items():
        signal.signal(number, handler)
