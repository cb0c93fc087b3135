"""The HTTP side of `tinychat serve`: its endpoints, who may use them, and how much may come in."""

import asyncio
import hmac
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tinychat.config.settings import Settings
from tinychat.serve.exchange import Exchange, to_api_error
from tinychat.serve.options import ServerOptions
from tinychat.serve.requests import ApiError, Ask, check_model, parse_chat, parse_completion
from tinychat.serve.scheduler import QueueFullError, Scheduler
from tinychat.session.open_model import OpenModel

BODY_SECONDS = 30
"""Seconds in which a client must have sent its request."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names of this machine under which browsers and other clients reach a server without a key."""

Parse = Callable[[bytes, Settings, OpenModel], Ask]


class Service:
    """The endpoints for one model. `log` is called with a line for each request."""

    def __init__(
        self,
        model: OpenModel,
        settings: Settings,
        options: ServerOptions,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.model, self.options, self.log = model, options, log
        self.settings = replace(settings, max_tokens=min(settings.max_tokens, options.max_answer))
        """Settings of requests that name none."""
        self.scheduler = Scheduler(model, max_queue=options.max_queue, max_batch=options.max_batch)
        self.created = int(time.time())
        self.num_requests = 0
        """Number of open requests for answers."""
        self._app = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/v1/models/{name:path}", self._model),
                Route("/v1/chat/completions", _Endpoint(self, parse_chat), methods=["POST"]),
                Route("/v1/completions", _Endpoint(self, parse_completion), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _http_error, ApiError: _api_error, Exception: _unexpected_error},
        )
        names = "|".join(re.escape(f"[{name}]" if ":" in name else name) for name in (*LOCAL_NAMES, options.host))
        self._app_for_pages = CORSMiddleware(
            self._checked_app,
            allow_origins=() if options.api_key is None else ("*",),  # a page that has the key may come from anywhere
            allow_origin_regex=rf"[a-z][a-z0-9+.-]*://(?:{names})(?::\d+)?",
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI); the web pages that may ask are let read the response (CORS)."""
        if scope["type"] != "http":
            return
        is_open_to_all = self.options.api_key is not None and scope["path"] == "/health"
        await (self._checked_app if is_open_to_all else self._app_for_pages)(scope, receive, send)

    async def _checked_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI) of a client that may ask."""
        try:
            self._check_client(Request(scope))
        except ApiError as error:
            await _respond(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_client(self, request: Request) -> None:
        """Check that a client has the key; without one, that no web page of another machine asks.

        A page could have its own name lead to this machine (DNS rebinding).
        """
        if self.options.api_key is None:
            names = [
                _host_name(request, header, prefix)
                for header, prefix in (("host", "//"), ("origin", ""))
                if header in request.headers
            ]
            if any(name not in (*LOCAL_NAMES, self.options.host) for name in names):
                raise ApiError(403, "this server is for this machine alone: others need --host and a key")
        elif request.url.path != "/health":
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            sent = key.encode("latin-1")  # as which Starlette decodes the bytes of any header
            wanted = self.options.api_key.encode(errors="surrogateescape")  # the environment may hold any bytes
            if scheme.lower() != "bearer" or not hmac.compare_digest(sent, wanted):
                raise ApiError(
                    401, "the key is missing or wrong: send `Authorization: Bearer KEY`", code="invalid_api_key"
                )

    async def _health(self, request: Request) -> Response:
        scheduler = self.scheduler
        counts = {"running": scheduler.num_running, "waiting": scheduler.num_waiting, "done": scheduler.num_finished}
        return JSONResponse({"status": "ok", "model": self.model.name, **counts})

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._describe()]})

    async def _model(self, request: Request) -> Response:
        check_model(request.path_params["name"], self.model)
        return JSONResponse(self._describe())

    def _describe(self) -> dict[str, Any]:
        return {"id": self.model.name, "object": "model", "created": self.created, "owned_by": "tinychat"}


class _Endpoint:
    """An endpoint that answers."""

    def __init__(self, service: Service, parse: Parse) -> None:
        self._service, self._parse = service, parse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        service, began = self._service, time.monotonic()
        if service.num_requests >= service.scheduler.capacity:
            raise to_api_error(QueueFullError("too many requests wait already", "try again in a moment"))
        service.num_requests += 1
        told = "the client left"
        try:
            body = await _read_body(Request(scope, receive), service.options.max_body)
            ask = await asyncio.to_thread(self._parse, body, service.settings, service.model)
            if ask.settings.max_tokens > (most := service.options.max_answer):
                raise ApiError(400, f"an answer has up to {most:,} tokens here", param="max_tokens")
            if ask.n * len(ask.prompts) > service.scheduler.capacity:
                raise ApiError(400, f"up to {service.scheduler.capacity} answers can be asked for at once", param="n")
            exchange = Exchange(service.scheduler, service.model, ask, began + service.options.max_seconds)
            told = await exchange.run(receive, send)
        except ApiError as error:
            told = f"{error.status} · {error.message.partition('; ')[0]}"
            raise
        except (ClientDisconnect, ConnectionError):
            pass
        finally:
            service.num_requests -= 1
            service.log(f"{scope['path']} · {told} · {time.monotonic() - began:.3f} s")


def _host_name(request: Request, header: str, prefix: str = "") -> str | None:
    """Return the name of the machine that a header names; None if it names none, as `null` of a sandboxed page.

    Raises:
        ApiError: If it is no address, such as one with an open bracket.
    """
    try:
        return urlsplit(prefix + request.headers.get(header, "")).hostname
    except ValueError:
        raise ApiError(400, f"the header {header} is no address") from None


async def _read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        ApiError: If it is too large, or does not come.
        ClientDisconnect: If the client leaves.
    """
    too_large = ApiError(413, f"the request is larger than {limit:,} bytes, the limit of this server")
    length = request.headers.get("content-length", "")
    if length.isdigit() and len(length) < 20 and int(length) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except TimeoutError:
        raise ApiError(408, f"the request did not come within {BODY_SECONDS} seconds") from None
    return bytes(body)


def _respond(error: ApiError) -> Response:
    headers = {"retry-after": str(error.retry_after)} if error.retry_after else None
    return JSONResponse(error.body, error.status, headers)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _respond(error)


async def _http_error(request: Request, error: Exception) -> Response:
    """Respond to what no endpoint takes."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path}"
    response = _respond(ApiError(error.status_code, f"there is no {what} here: see docs/serve.md for what there is"))
    response.headers.update(error.headers or {})  # such as the methods that there are
    return response


async def _unexpected_error(request: Request, error: Exception) -> Response:
    return _respond(to_api_error(error))
