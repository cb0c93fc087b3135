"""`tinychat serve` as a program: what it says, and its end by a signal."""

import importlib.util
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinychat.cli.main import run

Serve = Callable[..., tuple[int, str]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_with_an_answer_under_way(letters: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tinychat", "serve", str(letters), "--port", "0", "--max-answer", "10000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        body = b'{"prompt": "abc", "max_tokens": 10000000, "stream": true}'
        with urllib.request.urlopen(f"{url}/completions", body, timeout=60) as stream:
            assert stream.readline().startswith(b"data: ")
            process.send_signal(number)
            rest = stream.read()
        out, err = process.communicate(timeout=60)
    assert rest.endswith(b"data: [DONE]\n\n")
    assert b"the server ends" in rest
    assert (process.returncode, out) == (0, "")
    assert err.splitlines()[1:] == ["stopped after 1 answer"]


@pytest.fixture
def serve(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """A function that runs `tinychat serve`, which cannot begin, and returns its exit code and stderr."""
    return lambda *arguments: (run(["serve", *arguments]), capfd.readouterr().err)


def test_what_is_missing_is_one_clear_line(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_others(name: str, *arguments: Any) -> Any:
        return None if name == "uvicorn" else find(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", find_others)
    assert serve() == (2, "tinychat: serve needs uvicorn\n  pip install 'tinychat[serve]'\n")


def test_other_machines_need_a_key(letters: Path, serve: Serve) -> None:
    code, err = serve(str(letters), "--host", "0.0.0.0")
    assert code == 2
    assert err.startswith("tinychat: at 0.0.0.0, other machines can use the model, and there is no key\n")


def test_an_address_that_is_taken_is_told(letters: Path, serve: Serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, err = serve(str(letters), "--port", str(port))
    assert code == 2
    assert err.startswith(f"tinychat: nothing can listen at 127.0.0.1, port {port}: Address already in use\n")
