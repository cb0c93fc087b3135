"""Who may ask a server without a key, by the headers of a request alone."""

import asyncio
import json
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from tinychat.config.settings import SettingStore
from tinychat.errors import UsageError
from tinychat.serve.app import Service
from tinychat.serve.options import ServerOptions
from tinychat.serve.server import Server
from tinychat.session.open_model import OpenModel


@pytest.fixture(scope="module")
def service(letters: Path) -> Iterator[Service]:
    settings = SettingStore()
    service = Service(OpenModel(str(letters), settings), settings.current, ServerOptions())
    yield service
    service.scheduler.stop(0)
    service.scheduler.join()


def ask(
    service: Service, headers: Mapping[str, str | bytes], method: str = "GET", path: str = "/v1/models"
) -> tuple[int, dict[str, str], bytes]:
    """Send a request without a body; return the status, the headers and the body of the response."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"", "http_version": "1.1",
        "headers": [
            (name.encode(), value.encode() if isinstance(value, str) else value) for name, value in headers.items()
        ],
    }  # fmt: skip
    asyncio.run(service(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


def get(service: Service, headers: Mapping[str, str | bytes]) -> tuple[int, Any]:
    """Ask for the models; return the status and the JSON of the response."""
    status, _, body = ask(service, headers)
    return status, json.loads(body)


@pytest.mark.parametrize("key", ["sesame", "sésame ouvre-toi", "ключ", "a\udcff"], ids=ascii)
def test_a_key_is_compared_byte_by_byte(service: Service, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(service, "options", ServerOptions(api_key=key))
    service.options.check_key()
    sent = key.encode(errors="surrogateescape")
    assert get(service, {"authorization": b"Bearer " + sent})[0] == 200
    assert get(service, {"authorization": b"Bearer " + sent[:-1]})[0] == 401


@pytest.mark.parametrize("key", [" ", "sesame ", " sesame", "sesame\n"], ids=ascii)
def test_a_key_that_no_client_can_send_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="the key is blank, or begins or ends with a space"):
        ServerOptions(api_key=key).check_key()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:1"}, 200), ({"host": "[::1]:1"}, 200), ({"host": "example.com"}, 403),
        ({"host": "["}, 400),
        ({"host": "localhost", "origin": "http://["}, 400), ({"host": "[x]"}, 400), ({}, 200),
        ({"host": "localhost", "origin": "null"}, 403), ({"host": "localhost", "origin": "http://127.0.0.1:3"}, 200),
    ],
)  # fmt: skip
def test_only_addresses_of_this_machine_may_ask(service: Service, headers: dict[str, str], status: int) -> None:
    found, told = get(service, headers)
    assert found == status
    if status != 200:
        assert told["error"]["type"] == "invalid_request_error"


ALLOWED = "access-control-allow-origin"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, x-any"}


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("http://localhost:3000", True), ("https://127.0.0.1", True), ("http://[::1]:8080", True),
        ("http://example.com", False), ("http://localhost.example.com", False), ("null", False),
    ],
)  # fmt: skip
def test_the_web_pages_that_may_ask_may_read(service: Service, origin: str, is_allowed: bool) -> None:
    for path in ("/v1/models", "/v1/models/nothing", "/health"):
        status, headers, _ = ask(service, {"host": "localhost", "origin": origin}, path=path)
        assert (status != 403) == is_allowed
        assert headers.get(ALLOWED) == (origin if is_allowed else None)
    sent = {"host": "localhost", "origin": origin} | PREFLIGHT
    status, headers, _ = ask(service, sent, "OPTIONS", "/v1/chat/completions")
    assert (status == 200) == is_allowed
    assert headers.get(ALLOWED) == (origin if is_allowed else None)
    assert headers["access-control-allow-headers"] == "authorization, x-any"


def test_a_web_page_that_has_the_key_may_read_wherever_it_is_from(letters: Path) -> None:
    settings = SettingStore()
    service = Service(OpenModel(str(letters), settings), settings.current, ServerOptions(api_key="sesame"))
    page = {"host": "localhost", "origin": "http://example.com"}
    assert ask(service, page | PREFLIGHT, "OPTIONS", "/v1/completions")[0] == 200
    for sent, status in ((page, 401), (page | {"authorization": "Bearer sesame"}, 200)):
        found, headers, _ = ask(service, sent)
        assert (found, headers[ALLOWED]) == (status, "*")
    assert ALLOWED not in ask(service, page, path="/health")[1]  # which needs no key
    service.scheduler.stop(0)
    service.scheduler.join()


def test_a_wrong_method_is_told_the_right_one(service: Service) -> None:
    status, headers, _ = ask(service, {}, path="/v1/completions")
    assert (status, headers["allow"]) == (405, "POST")


def test_settings_that_the_model_ignores_are_reported_at_the_start(letters: Path) -> None:
    store, reported = SettingStore(), list[str]()
    model = OpenModel(str(letters), store)
    store.set("system", "be kind")
    server = Server(model, store.current, ServerOptions(port=0), report=reported.append)
    server.stop()
    server.run()
    assert reported == ["letters reads no system message: it is no chat model: the system message is left out"]
