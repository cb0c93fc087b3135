"""The process of `tinychat serve`: its socket, its signals and its end."""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.serve.app import Service
from tinychat.serve.options import ServerOptions
from tinychat.session.open_model import OpenModel

GRACE_SECONDS = 3.0
"""Seconds that answers have to end after the signal to stop."""
BACKLOG = 512
"""Number of connections that may wait to be accepted."""
CLOSING_SECONDS = 2
"""Seconds after that until connections are closed whatever they do."""


class Server:
    """Serves one model.

    `log` is called with a line for each request, `report` with one for each problem and each setting that the model
    ignores.

    Raises:
        UsageError: If the address cannot be listened at.
        TinychatError: If the model cannot be loaded.
    """

    def __init__(
        self,
        model: OpenModel,
        settings: Settings,
        options: ServerOptions,
        *,
        log: Callable[[str], None] = lambda line: None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._socket = _listen(options.host, options.port)
        self.service = Service(model, settings, options, log)
        _report_problems(report)
        for notice in model.ignored(settings):
            report(notice.text)
        config = uvicorn.Config(
            self.service, log_config=None, access_log=False, lifespan="off", ws="none", loop="asyncio",
            server_header=False, backlog=BACKLOG, timeout_graceful_shutdown=int(GRACE_SECONDS) + CLOSING_SECONDS,
        )  # fmt: skip
        self._server = _Uvicorn(config)

    @property
    def url(self) -> str:
        """The base of the addresses of its endpoints, as clients want it."""
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    def run(self) -> None:
        """Serve until `stop` is called, or SIGINT or SIGTERM comes, which ends it as soon as its answers have ended."""
        try:
            asyncio.run(self._serve())
        finally:
            self.service.scheduler.stop(0)
            self.service.scheduler.join()

    def stop(self) -> None:
        """Take no more requests, and end soon; called again, at once."""
        self.service.scheduler.stop(0 if self._server.should_exit else GRACE_SECONDS)
        self._server.force_exit = self._server.should_exit
        self._server.should_exit = True

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell does for jobs in the background
                    loop.add_signal_handler(number, self.stop)
        await self._server.serve([self._socket])


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us: it would send them to the process again when it has ended."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        UsageError: If it cannot be.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)  # before the address is told: who connects at once is served once uvicorn runs
    except OSError as error:
        found.close()
        problem = f"nothing can listen at {host}, port {port}: {error.strerror or error}"
        raise UsageError(problem, "--port 0 takes a free port, --host another address") from None
    return found


def _report_problems(report: Callable[[str], None]) -> None:
    """Pass errors on, a line each; that clients send what is wrong, or leave, is none."""

    class Reporter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            report(f"{record.getMessage().splitlines()[0]}{f': {error!r}' if error else ''}")

    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Reporter()], False
        logger.setLevel(logging.ERROR)
