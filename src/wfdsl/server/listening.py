"""The process of the server: its socket, its signals, and its end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from wfdsl.errors import UsageError

_BACKLOG = 2048
_LONGEST_HEAD = 65_536  # bytes of the headers of a request; our choice
_STOPS = (signal.SIGTERM, signal.SIGINT)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        UsageError: the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {why}; choose another --host or --port") from error


def serve(app: ASGIApp, listening: socket.socket, drain_s: float, started: Callable[[], None]) -> None:
    """Answer requests until SIGTERM or Ctrl-C. Requests in progress then have `drain_s` seconds, or until the second
    signal.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        http="h11",  # the other parser does not limit headers
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_graceful_shutdown=max(int(drain_s), 1),
    )
    asyncio.run(_Server(config, started).serve(sockets=[listening]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._say_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear the signals that end the server, and let none of them end the process by itself."""
        before = {each: signal.signal(each, self.handle_exit) for each in _STOPS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
