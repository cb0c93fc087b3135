"""The command line, called in this process with a text on stdin."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tinychat.cli.main import run


@pytest.fixture
def call(
    letters: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs `tinychat` with `stdin` and returns its exit code, stdout and stderr."""

    def call(*arguments: str, stdin: str | bytes = "", model: Path = letters) -> tuple[int, str, str]:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = run(["-m", str(model), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return call
