"""A server in this process, its clients, and JSON Lines to compare them with."""

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tinychat.cli.main import run
from tinychat.serve.options import ServerOptions
from tinychat.serve.server import Server
from tinychat.session.session import Session


class Served:
    """A server that runs in a thread."""

    def __init__(self, model: Path, **options: Any) -> None:
        session = Session()
        session.open_model(str(model))
        self.lines: list[str] = []
        options = {"port": 0} | options
        self.server = Server(session.model, session.settings.current, ServerOptions(**options), log=self.lines.append)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        self.port = int(self.server.url.split(":")[2].split("/")[0])

    def request(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Post a body, or get without one; return the status and the JSON of the response."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"connection": "close"} | headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self.server.stop()
        self.server.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """A function that serves a model, with options of the server."""
    begun: list[Served] = []

    def begin(model: Path, **options: Any) -> Served:
        begun.append(Served(model, **options))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


@pytest.fixture
def client() -> Callable[[Served], Any]:
    """A function that returns OpenAI's client of a server; it never tries again by itself."""
    from openai import OpenAI

    return lambda served: OpenAI(base_url=served.server.url, api_key="any", max_retries=0)


@pytest.fixture
def json_lines(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., list[dict[str, Any]]]:
    """A function that gives lines to `tinychat --jsonl`, and returns the lines that it writes."""

    def answer(model: Path, *lines: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        text = "\n".join(map(json.dumps, lines)).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert run(["-m", str(model), "--jsonl", *arguments]) == 0
        return [json.loads(line) for line in capfdbinary.readouterr().out.decode().splitlines()]

    return answer
