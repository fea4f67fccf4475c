"""The process of the server: its socket, its open files, its signals, and its end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from wfdsl.errors import UsageError
from wfdsl.server.endpoints import LONGEST_HEAD

_BACKLOG = 2048
_OPEN_FILES: Final = 10_240  # the most that macOS allows
_KEEP_ALIVE_S = 75
"""Seconds for which an idle connection stays open, as in nginx: a client that sends its next request in the moment in
which the server closes the connection sees an error."""
FINISHED: Final = "finished"
"""Where an application keeps, in the state of its lifespan, a function that returns a coroutine. Its end is waited for
as requests in progress are, for work that no request waits for."""
_STOPS = (signal.SIGTERM, signal.SIGINT)


def allow_open_files() -> None:
    """Raise the soft limit of open files: each request and each call of a worker is a connection."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  (not on Windows)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def listen(host: str, port: int, options: str = "--host or --port") -> socket.socket:
    """A socket that listens; `options` change its address.

    Raises:
        UsageError: the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        why = (getattr(error, "strerror", None) or str(error)).partition(" (")[0]
        raise UsageError(f"cannot listen on {host}, port {port}: {why}; choose another {options}") from error


def address_of(listening: socket.socket) -> str:
    """The address of a socket that listens, such as `http://127.0.0.1:8600`."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    app: ASGIApp,
    listening: socket.socket,
    drain_s: float,
    started: Callable[[], None],
    ending: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; `ending` is called with the signal's name. Requests in progress then
    have `drain_s` seconds, or until the second Ctrl-C, and so has what `FINISHED` waits for; then they are cancelled.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        http="h11",  # the other parser does not limit the size of headers
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(int(drain_s), 1),
    )
    asyncio.run(_Server(config, started, ending).serve(sockets=[listening]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None], ending: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say_started = started
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets=sockets)
        if self.started:
            gc.freeze()  # what is here now stays as long as the server, and a collection would stop all requests
            self._say_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the requests in progress, and what no request waits for."""
        self._ending(next((signal.Signals(each).name for each in self._captured_signals), "an error"))
        if (finished := self.lifespan.state.get(FINISHED)) is not None:
            tasks, task = self.server_state.tasks, asyncio.create_task(finished())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear the signals that end the server, and let none of them end the process by itself."""
        before = {each: signal.signal(each, self.handle_exit) for each in _STOPS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
